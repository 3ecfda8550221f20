"""Marks in a reply that lead to passages, and signs at sentences that no passage supports."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from core.llm.wire.cited import host_of
from core.messages.computed import COMPUTED
from core.rag.attribution import sentences_of
from core.rag.claims.weighing import is_short
from core.rag.document import numbered_as
from core.rag.parsers.base import is_ideograph
from core.rag.row_numbers import shortened
from core.runs.claim_check import marked_texts, missing_marks
from core.runs.log import Checked
from core.runs.reply import TextBlock
from core.runs.untold import untold
from webui.render.markup import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.claims.rules import Reason
    from core.rag.claims.weighing import Verdict
    from core.runs.reply import Reply
    from webui.render.markdown import Cite
    from webui.words import Words

_JOINED = "\u2060"  # keeps the mark on the line of its word


def passage_label(passage: Mapping[str, Any], words: Words) -> str:
    """Document and page of a passage, in the reader's language, and its rows where it stands for rows of a table."""
    document, page = str(passage.get("document") or ""), passage.get("page")
    if host := host_of(str(passage.get("url") or "")):
        document = document if document == host else words("evidence.where_web", document=document, host=host)
    place = words(f"evidence.where_{numbered_as(document)}", document=document, n=page) if page else document
    rows = shortened(str(passage.get("rows") or ""))
    return (
        words("evidence.where_row" if rows.isdecimal() else "evidence.where_rows", place=place, rows=rows)
        if rows
        else place
    )


def passage_lines(text: str) -> list[str]:
    """The lines of a passage; of a table's row that is empty but for one cell, that cell.

    A line that ends between two Chinese characters goes on: there the printed page had no more room.
    """
    lines = (" ".join(line.split()) for line in text.splitlines())
    found: list[list[str]] = []
    for row in filter(None, map(_row, lines)):
        before, after = _edge(found[-1][-1], -1) if found else "", _edge(row, 0)
        if before.isalnum() and after.isalnum() and is_ideograph(before) and is_ideograph(after):
            found[-1].append(row)
        else:
            found.append([row])
    return ["".join(parts) for parts in found]


def one_line(lines: Sequence[str]) -> str:
    """Lines joined into one, with spaces except between Chinese characters."""
    pieces: list[str] = []
    for line in lines:
        if pieces and not (is_ideograph(pieces[-1][-1]) and is_ideograph(line[0])):
            pieces.append(" ")
        pieces.append(line)
    return "".join(pieces)


def _edge(line: str, at: Literal[0, -1]) -> str:
    """The first or last visible character, without the control characters around cited text."""
    return line.strip("\x02\x03")[at:][:1] if at else line.strip("\x02\x03")[:1]


def _row(line: str) -> str:
    filled = [cell.strip() for cell in line.split("|") if cell.strip()]
    return line if len(filled) > 1 else "".join(filled)


def cite_marks(passages: Sequence[Mapping[str, Any]], message_id: str, words: Words) -> Cite | None:
    """A function that turns `[1]` into a link to passage 1; numbers without a passage vanish.

    Scripts of the page know this markup: `assets/js/source.js` turns it back into `[1]` where a reply is copied,
    `tables.js` takes it out of a table that is copied, and `actions.js` and `paper.js` open the passage. Its look is in
    `assets/css/prose.css`.

    Returns None where a reply has no passages: there `[1]` is just text.
    """
    if not passages:
        return None
    titles = {int(passage["number"]): escaped(passage_label(passage, words)) for passage in passages}
    target = escaped(message_id)

    def cite(numbers: list[int]) -> str:
        marks = [
            f'<sup><a href="#cite-{target}-{number}" class="cite" title="{titles[number]}">{number}</a></sup>'
            for number in numbers
            if number in titles
        ]
        return _JOINED + _JOINED.join(marks) if marks else ""

    return cite


BESIDE = "beside"  # in the address of a sentence that stands beside the answer
_DIFFERS = "≠"
# `assets/js/source.js` leaves them out where a reply is copied. A supported sentence has one where nothing was counted.
_SIGNS = {"weak": "≈", "unsupported": "?", "supported": "Σ"}


def claim_notes(
    reply: Reply, block: int, text: str, words: Words, message_id: str, cite: Cite
) -> list[tuple[int, str]]:
    """Where claims of a text end, and what goes there: the marks of their passages, or a sign.

    What no program counted has a sign as well, also a sentence that is too short to be a claim.
    """
    notes: list[tuple[int, str]] = []
    alone = {one.end for one in reply.uncounted if one.block == block and one.end}
    missing = missing_marks((one for one in reply.claims if one.block == block), text)
    web, denied, of_message = _is_web(reply), _denied(reply), escaped(message_id)
    for index, claim in enumerate(reply.claims):
        if claim.block != block:
            continue
        made = cite(list(numbers)) if (numbers := missing.get(claim.end)) else ""
        if claim.verdict != "supported" or claim.end in alone:
            searched = "" if web else f"{of_message}.{index}"
            judged = (block, claim.end) in denied
            made += _sign(claim, words, searched, judged=judged, uncounted=claim.end in alone)
        notes += [(claim.end, made)] if made else []
    short = alone - {claim.end for claim in reply.claims if claim.block == block}
    bare = (Checked(block, end, "supported", ()) for end in short)
    notes += [(one.end, _sign(one, words, "", judged=False, uncounted=True)) for one in bare]
    return sorted(notes)


def marked_text(reply: Reply) -> str:
    """The texts of a reply with all marks that are shown, those of supported claims too."""
    return "\n\n".join(marked_texts(reply).values())


def claims_summary(reply: Reply, words: Words) -> str:
    """How many sentences resemble a passage; empty where none was checked."""
    alone = words("claims.uncounted") if reply.uncounted else ""
    if not reply.claims:
        said = escaped(alone or (words("claims.unchecked") if reply.hurried == "none" else ""))
        return f' <span class="p-checked{" p-doubt" if alone else ""}">{said}</span>' if said else ""
    total, weak, bare = len(reply.claims), _count(reply, "weak"), _count(reply, "unsupported")
    where = "_judged" if _is_all_judged(reply) else "_web" if _is_web(reply) else ""
    kind = f"claims.{'some' if weak + bare and _has_short(reply) else 'all'}{where}"
    said = words(kind, n=total - weak - bare, total=total)
    if differing := sum(bool(claim.reasons) and claim.verdict != "supported" for claim in reply.claims):
        said += words("claims.differing", n=differing)
    if reply.hurried:
        said += words(f"claims.hurried_{reply.hurried}")
    if alone:  # in place of what would calm, but not of other doubts
        said = words.line(alone, said) if weak + bare else alone
    if differs := bool(untold(reply)):
        said += words("claims.untold")
    return f' <span class="p-checked{" p-doubt" if weak + bare or differs or alone else ""}">{escaped(said)}</span>'


def _has_short(reply: Reply) -> bool:
    """Whether sentences were left out because they are short."""
    checked = {(claim.block, claim.end) for claim in reply.claims}
    return any(
        (at, end) not in checked and is_short(sentence)
        for at in dict.fromkeys(block for block, _ in checked)
        if at < len(reply.blocks) and isinstance(block := reply.blocks[at], TextBlock)
        for sentence, end in sentences_of(block.text)
    )


def beyond_html(reply: Reply, words: Words, message_id: str) -> str:
    """What passages say beside the answer and it does not mention: each a link to its place, as a mark is."""
    titles = {int(passage["number"]): passage for passage in reply.passages}
    made = [
        _beside(f"“{one.sentence}”", titles[one.passage], f"{message_id}.{BESIDE}{at}", words)
        for at, one in enumerate(reply.left_out)
        if one.passage in titles
    ]
    return _lines(words("claims.more_web" if _is_web(reply) else "claims.more"), made)


def computed_html(reply: Reply, words: Words, message_id: str) -> str:
    """What was counted or computed by program for a reply that does not tell its figure: then both can be seen."""
    target = f"{message_id}.{COMPUTED}"
    made = [_beside(str(one.get("text") or ""), one, target, words) for one in untold(reply)]
    return _lines(words("claims.computed"), made)


def _beside(said: str, passage: Mapping[str, Any], target: str, words: Words) -> str:
    """A sentence beside a reply: a link to its passage, as a mark is."""
    place, number = escaped(passage_label(passage, words)), int(passage["number"])
    return (
        f'<a class="p-do p-beside" role="button" href="#cite-{escaped(target)}-{number}" title="{place}">'
        f'{escaped(said)}<b class="p-at">{number}</b></a>'
    )


def _lines(head: str, made: Sequence[str]) -> str:
    if not made:
        return ""
    return f'<p class="p-beyond"><span class="p-beyond-head">{escaped(head)}</span> {" ".join(made)}</p>'


def _is_all_judged(reply: Reply) -> bool:
    """Whether a model decided about every sentence that the rules left open: then likeness counts for nothing."""
    judged = {(one.block, one.end) for one in reply.judged.said} if reply.judged is not None else set[tuple[int, int]]()
    return bool(judged) and all(one.reasons or (one.block, one.end) in judged for one in reply.claims)


def _denied(reply: Reply) -> set[tuple[int, int]]:
    """The places of the sentences that a model found not borne out."""
    said = reply.judged.said if reply.judged is not None else ()
    return {(one.block, one.end) for one in said if not one.borne_out}


def _sign(claim: Checked, words: Words, searched: str, *, judged: bool, uncounted: bool) -> str:
    """The sign at the end of a sentence that is not borne out, or that no program counted, and why.

    Args:
        searched: What a click searches for again, as markup; "" for a claim about the web, as that looks into
            documents alone.
        judged: Whether it is a model that found it not borne out.
        uncounted: Whether it tells a figure of several rows that no program counted.
    """
    sign, said = _said(
        claim.verdict, claim.reason, words, is_searched=bool(searched), judged=judged, uncounted=uncounted
    )
    link = f' role="button" href="#do-again-{searched}"' if searched else ""
    kind = f"{'p-do ' if searched else ''}p-claim p-{claim.verdict}"
    inner = f'<span aria-hidden="true">{sign}</span><span class="p-sr">{said}</span>'
    return f'{_JOINED}<sup><a class="{kind}"{link} title="{said}">{inner}</a></sup>'


@lru_cache(64)  # nearly all signs of a reply say the same
def _said(
    verdict: Verdict, reason: Reason | None, words: Words, *, is_searched: bool, judged: bool, uncounted: bool
) -> tuple[str, str]:
    """A sign, and what it says, as markup."""
    sign, doubted = _SIGNS[verdict], verdict != "supported"
    key = f"claims.{verdict}{'' if is_searched else '_web'}" if doubted else "claims.search" if is_searched else ""
    said = words(key) if key else ""
    if judged:
        said = words("claims.judged")
        said = f"{said} {words('claims.search')}" if is_searched else said
    if doubted and reason is not None:
        _, own, rival, number = reason
        sign = _DIFFERS if rival else sign
        said = words(f"claims.{'differs' if rival else 'absent'}", words=own, rival=rival, n=number)
        said = f"{said} {words('claims.search')}" if is_searched else said
    if uncounted:
        alone = words("claims.uncounted_here")
        said = words.line(alone, said) if said else alone
    return sign, escaped(said)


def _is_web(reply: Reply) -> bool:
    """Whether all passages are from the web."""
    return bool(reply.passages) and all(passage.get("url") for passage in reply.passages)


def _count(reply: Reply, verdict: str) -> int:
    return sum(claim.verdict == verdict for claim in reply.claims)
