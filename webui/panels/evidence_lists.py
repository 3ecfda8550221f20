"""Passages in words: those of the reply, those it did not cite, and all of a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.rag.document import numbered_as
from webui.render.evidence import one_line, rows, where
from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.document import Passage
    from webui.words import Words

_LINE = 200  # letters of a passage that is shown in one line
_SHORT = 150  # letters that need no button to see all of them
_BEGIN, _END = "\x02", "\x03"  # around what is cited, until it is markup
_STRENGTH = {_BEGIN: '<mark class="p-m3">', _END: "</mark>"}


@dataclass(frozen=True, slots=True)
class Listing:
    """Some of the chunks of a document, in its order.

    Args:
        document_id: Whose.
        total: How many it has.
        start: How many come before the first of these.
        chunks: These; none where the list is folded.
        step: How many are shown at once.
        page: The page that is shown, whose chunks stand out.
        open_chunk: The one that is marked on it.
    """

    document_id: str
    total: int
    start: int = 0
    chunks: Sequence[Passage] = ()
    step: int = 50
    page: int | None = None
    open_chunk: int | None = None


def quotes(
    passages: Sequence[Mapping[str, Any]],
    open_number: int | None,
    words: Words,
    message_id: str,
    *,
    uncited: frozenset[int] = frozenset(),
    cited: Sequence[tuple[int, int]] = (),
) -> str:
    """The passages of a reply; those it does not cite are folded below.

    Args:
        passages: In order of their numbers.
        open_number: The one that is open.
        words: The reader's.
        message_id: The reply's, for the links.
        uncited: Numbers of passages that the reply does not cite.
        cited: Of the open one, what bears out the reply's sentence, as start and end in its text.
    """

    def listed(some: Sequence[Mapping[str, Any]]) -> str:
        items = "".join(_quote(one, words, message_id, cited if one["number"] == open_number else None) for one in some)
        return f'<ol class="p-quotes" role="list">{items}</ol>'

    also = [one for one in passages if one["number"] in uncited]
    first = [one for one in passages if one["number"] not in uncited]
    if not also or not first:
        return listed(passages)
    unfolded = " open" if open_number in uncited else ""
    summary = escaped(words("evidence.also", n=len(also)))
    return f'{listed(first)}<details class="p-also"{unfolded}><summary>{summary}</summary>{listed(also)}</details>'


def _quote(passage: Mapping[str, Any], words: Words, message_id: str, cited: Sequence[tuple[int, int]] | None) -> str:
    """One passage; the open one (`cited` is not `None`) with all its words."""
    text = str(passage.get("text") or "").replace(_BEGIN, "").replace(_END, "")
    is_open, number = cited is not None, passage["number"]
    here = ' class="p-here" aria-current="true"' if is_open else ""
    lines = rows(_bracketed(text, cited or ()) if is_open else text[: 4 * _LINE])
    if not is_open:
        lines = [_cut(one_line(lines))]
    quoted = " <br>".join(map(escaped, lines))
    for sign, tag in _STRENGTH.items():
        quoted = quoted.replace(sign, tag)
    more = _unfold(words) if is_open and (len(text) > _SHORT or len(lines) > 3) else ""
    return (
        f'<li{here}><a class="cite" href="#cite-{escaped(message_id)}-{number}"><span class="p-n">{number}</span>'
        f'<span class="p-quote" dir="auto">{quoted}</span>'
        f'<span class="p-where">{escaped(where(passage, words))}</span>'
        f"</a>{more}</li>"
    )


def _bracketed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with signs around what is cited, line by line, for lines become rows of markup."""
    pieces, reached = list[str](), 0
    for start, end in sorted(spans):
        if start < reached or end > len(text):
            continue
        inside = f"{_END}\n{_BEGIN}".join(text[start:end].split("\n"))
        pieces += [text[reached:start], _BEGIN, inside, _END]
        reached = end
    return "".join([*pieces, text[reached:]])


def _cut(text: str) -> str:
    return text if len(text) <= _LINE else text[: _LINE - 1].rstrip() + "…"


def _unfold(words: Words) -> str:
    more, less = escaped(words("evidence.more")), escaped(words("evidence.less"))
    return (
        '<button type="button" class="p-more" data-do="unfold" aria-expanded="false">'
        f"<span>{more}</span><span>{less}</span></button>"
    )


def listing_html(listing: Listing, words: Words) -> str:
    """All passages of the document that is shown, some at a time, folded until they are asked for."""
    if not listing.chunks:
        if not listing.total:
            return ""
        label = escaped(words("evidence.all", n=listing.total))
        return f'<div class="p-all">{_button(0, label, is_open=False, name="p-unfold")}</div>'
    last = listing.start + len(listing.chunks)
    items = "".join(_chunk(one, listing, words) for one in listing.chunks)
    title = escaped(words("evidence.all_title", first=listing.start + 1, last=last, total=listing.total))
    fold = escaped(words("evidence.all_close"))
    before = _way("before", max(0, listing.start - listing.step), words, off=listing.start <= 0)
    after = _way("after", last, words, off=last >= listing.total)
    ways = (
        f'<div class="p-some">{before}<span>{title}</span>{after}</div>' if len(listing.chunks) < listing.total else ""
    )
    return (
        f'<div class="p-all">{_button(-1, fold, is_open=True, name="p-unfold")}{ways}'
        f'<ol class="p-chunks" role="list" data-start="{listing.start}">{items}</ol></div>'
    )


def _button(start: int, label: str, *, is_open: bool, name: str) -> str:
    expanded = "true" if is_open else "false"
    return (
        f'<button type="button" class="{name}" data-do="passages" data-n="{start}" aria-expanded="{expanded}">'
        f"{label}</button>"
    )


def _way(way: str, start: int, words: Words, *, off: bool) -> str:
    disabled = " disabled" if off else ""
    return (
        f'<button type="button" class="p-icon p-{way}" data-do="passages" data-n="{start}" '
        f'aria-label="{escaped(words(f"evidence.all_{way}"))}"{disabled}></button>'
    )


def _chunk(chunk: Passage, listing: Listing, words: Words) -> str:
    is_open = chunk.chunk_id == listing.open_chunk
    state = " p-here" if is_open else ""
    state += " p-near" if chunk.page is not None and chunk.page == listing.page else ""
    current = ' aria-current="true"' if is_open else ""
    place = escaped(words(f"evidence.{numbered_as(chunk.document)}", n=chunk.page)) if chunk.page else ""
    text = escaped(_cut(one_line(rows(chunk.text[: 4 * _LINE]))))
    return (
        f'<li class="p-chunk{state}"{current}><button type="button" data-do="chunk" data-n="{chunk.chunk_id}">'
        f'<span class="p-quote" dir="auto">{text}</span><span class="p-where">{place}</span></button></li>'
    )
