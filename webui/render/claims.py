"""What the passages say to the sentences of a reply: small signs at their ends, and a line below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.rag.claims import sentences_of
from core.runs.marks import marked_texts, missing_marks
from core.runs.reply import TextBlock
from webui.render.html import escaped

if TYPE_CHECKING:
    from core.runs.log import Checked
    from core.runs.reply import Reply
    from webui.render.inline import Cite
    from webui.words import Words

_JOINED = "\u2060"  # keeps the sign on the line of its word
_SIGNS = {"weak": "≈", "unsupported": "?"}


def notes_of(reply: Reply, block: int, text: str, words: Words, message_id: str, cite: Cite) -> list[tuple[int, str]]:
    """The signs for one text of a reply, and where each goes; a supported sentence shows the marks of its passages."""
    notes: list[tuple[int, str]] = []
    missing = missing_marks((one for one in reply.claims if one.block == block), text)
    for index, claim in enumerate(reply.claims):
        if claim.block != block:
            continue
        if claim.verdict != "supported":
            sign = _web_sign(claim, words) if _is_web(reply) else _sign(claim, index, words, message_id)
            notes.append((claim.end, sign))
        elif numbers := missing.get(claim.end):
            notes.append((claim.end, cite(list(numbers))))
    return notes


def marked_text(reply: Reply) -> str:
    """The texts of a reply with every mark that is shown in them, those of supported sentences too."""
    return "\n\n".join(marked_texts(reply).values())


def claimed(reply: Reply, index: int) -> str:
    """The sentence that one of the reply's claims is about; "" where there is no such claim."""
    if index >= len(reply.claims):
        return ""
    claim = reply.claims[index]
    block = reply.blocks[claim.block] if claim.block < len(reply.blocks) else None
    sentences = sentences_of(block.text) if isinstance(block, TextBlock) else []
    return next((sentence for sentence, end in sentences if end == claim.end), "")


def summary(reply: Reply, words: Words) -> str:
    """How many of the sentences resemble a passage, and no more than that; empty where none was checked."""
    if not reply.claims:
        return ""
    total, weak, bare = len(reply.claims), _count(reply, "weak"), _count(reply, "unsupported")
    kind = f"claims.{'some' if weak + bare else 'all'}{'_web' if _is_web(reply) else ''}"
    said = words(kind, n=total - weak - bare, total=total)
    return f' <span class="p-checked{"" if not weak + bare else " p-doubt"}">{escaped(said)}</span>'


def _sign(claim: Checked, index: int, words: Words, message_id: str) -> str:
    said = escaped(words(f"claims.{claim.verdict}"))
    return (
        f'{_JOINED}<sup><a class="p-do p-claim p-{claim.verdict}" role="button" '
        f'href="#do-again-{escaped(message_id)}.{index}" title="{said}">'
        f'<span aria-hidden="true">{_SIGNS[claim.verdict]}</span><span class="p-sr">{said}</span></a></sup>'
    )


def _web_sign(claim: Checked, words: Words) -> str:
    """Without a search again, for that is one of documents."""
    said = escaped(words(f"claims.{claim.verdict}_web"))
    return (
        f'{_JOINED}<sup><a class="p-claim p-{claim.verdict}" title="{said}">'
        f'<span aria-hidden="true">{_SIGNS[claim.verdict]}</span><span class="p-sr">{said}</span></a></sup>'
    )


def _is_web(reply: Reply) -> bool:
    """Whether all that it was given is from the web."""
    return bool(reply.passages) and all(passage.get("url") for passage in reply.passages)


def _count(reply: Reply, verdict: str) -> int:
    return sum(claim.verdict == verdict for claim in reply.claims)
