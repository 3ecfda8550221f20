"""The panel of sources: the cited page with its passages marked, and the passages as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from core.llm.wire.cited import host_of
from core.rag.document import numbered_as
from webui.panels.evidence_page import UNREAD, ShownPage, picture
from webui.panels.evidence_text import ShownText, text_page
from webui.render.citations import one_line, passage_label, passage_lines
from webui.render.markup import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.document import Passage
    from webui.words import Words

__all__ = ["UNREAD", "Listing", "Lists", "Shown", "ShownPage", "ShownText", "evidence_html"]

Shown: TypeAlias = ShownPage | ShownText


@dataclass(frozen=True, slots=True)
class Lists:
    """What the panel shows besides the passages themselves.

    Args:
        uncited: Numbers of passages that were found but not cited.
        cited: Evidence spans of the open passage, as start and end in its text.
        listing: Chunks of the document, or their number.
        sought: The line about a search that the reader started; empty for the reply's own.
        nothing: Why no page can be shown, where none is: `no_picture`, `gone`, `taken_back` or `unread`.
        player: Markup of a player of what is cited; "" for what is no recording.
    """

    uncited: frozenset[int] = frozenset()
    cited: tuple[tuple[int, int], ...] = ()
    listing: Listing | None = None
    sought: str = ""
    nothing: str = "no_picture"
    player: str = ""


def evidence_html(
    passages: Sequence[Mapping[str, Any]],
    open_number: int | None,
    words: Words,
    *,
    message_id: str,
    page: Shown | None,
    lists: Lists | None = None,
) -> str:
    """Markup for `#page`.

    Args:
        passages: The reply's, each with its `number`.
        open_number: The open passage; `None` where the reader turned to another page.
        message_id: The reply's, for the links.
        page: The shown page; `None` where nothing can be shown.
    """
    lists = lists or Lists()
    opened = next((one for one in passages if one["number"] == open_number), None)
    document = escaped(page.document if page else str((opened or {}).get("document") or ""))
    quoted = quotes(passages, open_number, words, message_id, uncited=lists.uncited, cited=lists.cited)
    # Passages that were not cited are not marked, or a document that was given in full would be marked all over.
    told = [one for one in passages if one["number"] == open_number or one["number"] not in lists.uncited]
    listed = listing_html(lists.listing, words) if lists.listing else ""
    chunk = lists.listing.open_chunk if lists.listing else None
    chunks = bool(lists.listing and lists.listing.chunks)
    sought = f'<p class="p-sought">{escaped(lists.sought)}</p>' if lists.sought else ""
    return (
        f'<div class="p-evidence" data-open="{escaped(message_id)}" '
        f'data-place="{escaped(f"{open_number}/{chunk}/{_place(page)}")}"><header>'
        f'<h2>{escaped(words("evidence.title"))}</h2><span class="p-file" title="{document}">{document}</span>'
        f'<button type="button" class="p-icon p-close" data-do="close" '
        f'aria-label="{escaped(words("evidence.close"))}"></button></header>'
        f"{sought}{lists.player}"
        f"{_page_html(page, told, open_number, words, message_id) or _nothing(words, lists.nothing)}"
        f'<div class="p-lists{" p-of-chunks" if chunks else ""}">{quoted}{listed}</div></div>'
    )


def _place(page: Shown | None) -> str:
    part = page.content.part if isinstance(page, ShownText) else 0
    return f"{page.document_id[:12]}/{page.page}/{part}" if page else ""


def _page_html(
    page: Shown | None,
    passages: Sequence[Mapping[str, Any]],
    open_number: int | None,
    words: Words,
    message_id: str,
) -> str:
    if page is None:
        opened = next((one for one in passages if one["number"] == open_number), None)
        return web_place(opened, words) if opened else ""
    here = [one for one in passages if one.get("document_id") == page.document_id and one.get("page") == page.page]
    draw = text_page if isinstance(page, ShownText) else picture
    return f"{draw(page, here, open_number, words, message_id)}{_turner(page, words)}"  # pyright: ignore[reportArgumentType]


def _nothing(words: Words, why: str) -> str:
    """Why no page is shown; of one that is still being read the script of the page sees that it may come."""
    unread = UNREAD if why == "unread" else ""
    return f'<p class="p-none"{unread}>{escaped(words(f"evidence.{why}"))}</p>'


def _turner(page: Shown, words: Words) -> str:
    """Page number, previous and next page, and zoom."""
    kind = page.content.kind if isinstance(page, ShownText) else "page"
    if isinstance(page, ShownText) and page.page is None:
        before, label, after = _parts(page, words)
    else:
        before, label, after = _pages(page, words, "" if kind == "page" else kind)
    if isinstance(page, ShownPage) and page.file:
        before = after = ""
    whole = escaped(words("evidence.whole"))
    fit = (
        f'<button type="button" class="p-icon p-whole" data-do="whole" aria-label="{whole}" title="{whole}"></button>'
        if kind == "slide" or isinstance(page, ShownPage)
        else ""
    )
    zoom = "".join(
        f'<button type="button" class="p-icon p-{way}" data-do="{way}" aria-label="{said}" title="{said}"></button>'
        for way in ("smaller", "larger")
        for said in (escaped(words(f"evidence.{way}")),)
    )
    return (
        f'<div class="p-turner">{before}<span>{escaped(label)}</span>{after}<div class="p-zoom">{zoom}{fit}</div></div>'
    )


def _pages(page: Shown, words: Words, kind: str) -> tuple[str, str, str]:
    number, named = page.page or 1, kind or "page"
    label = (
        words(f"evidence.{named}_of", n=number, total=page.pages)
        if page.pages
        else words(f"evidence.{named}", n=number)
    )
    ending = f"_{kind}" if kind else ""
    before = _turn("before", words(f"evidence.before{ending}"), page, number - 1, 0, off=number <= 1)
    off = page.pages is not None and number >= page.pages
    after = _turn("after", words(f"evidence.after{ending}"), page, number + 1, 0, off=off)
    return before, label, after


def _parts(page: ShownText, words: Words) -> tuple[str, str, str]:
    """Previous and next part of a text without pages."""
    content = page.content
    if content.kind == "lines" and content.blocks:
        numbers = [row[0] for block in content.blocks for row in block.cells if row[0]]
        label = words("evidence.lines", first=numbers[0], last=numbers[-1]) if numbers else ""
    else:
        label = words("evidence.part_of", n=content.part, total=content.parts) if content.parts > 1 else ""
    if content.parts == 1:
        return "", label, ""
    first, last = content.part <= 1, content.last >= content.parts
    before = _turn("before", words("evidence.before_part"), page, 0, content.part - 1, off=first)
    after = _turn("after", words("evidence.after_part"), page, 0, content.last + 1, off=last)
    return before, label, after


def _turn(way: str, label: str, page: Shown, number: int, part: int, *, off: bool) -> str:
    disabled = " disabled" if off else ""
    return (
        f'<button type="button" class="p-icon p-{way}" data-do="page" data-document="{escaped(page.document_id)}" '
        f'data-n="{number}" data-part="{part}" aria-label="{escaped(label)}"{disabled}></button>'
    )


_LINE = 200  # characters of a passage on one line
_SHORT = 150  # characters that need no button to unfold
_BEGIN, _END = "\x02", "\x03"  # around evidence spans, until they are markup
_STRENGTH = {_BEGIN: '<mark class="p-m3">', _END: "</mark>"}


@dataclass(frozen=True, slots=True)
class Listing:
    """A section of the chunks of a document, in document order.

    Args:
        total: How many it has.
        start: Index of the first of these.
        chunks: The section; empty where the list is folded.
        step: Chunks of a section.
        page: The shown page, whose chunks are highlighted.
        open_chunk: The chunk that is marked on the page.
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
    """The passages of a reply as text; those that it does not cite are folded.

    Args:
        passages: In order of their numbers.
        message_id: The reply's, for the links.
        uncited: Numbers of passages that the reply does not cite.
        cited: Evidence spans of the open passage, as start and end in its text.
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
    """A passage; the open one (`cited` is not `None`) in full."""
    text = str(passage.get("text") or "").replace(_BEGIN, "").replace(_END, "")
    is_open, number = cited is not None, passage["number"]
    here = ' class="p-here" aria-current="true"' if is_open else ""
    lines = passage_lines(_bracketed(text, cited or ()) if is_open else text[: 4 * _LINE])
    if not is_open:
        lines = [_cut(one_line(lines))]
    quoted = " <br>".join(map(escaped, lines))
    for sign, tag in _STRENGTH.items():
        quoted = quoted.replace(sign, tag)
    more = _unfold(words) if is_open and (len(text) > _SHORT or len(lines) > 3) else ""
    return (
        f'<li{here}><a class="cite" href="#cite-{escaped(message_id)}-{number}"><span class="p-n">{number}</span>'
        f'<span class="p-quote" dir="auto">{quoted}</span>'
        f'<span class="p-where">{escaped(_where(passage, words))}</span>'
        f"</a>{more}</li>"
    )


def _where(passage: Mapping[str, Any], words: Words) -> str:
    """Where a passage stands, and whether the model was shown its figure or page as a picture."""
    place = passage_label(passage, words)
    return words("evidence.seen", place=place) if passage.get("seen") else place


def _bracketed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with control characters around evidence spans, line by line, for lines become rows."""
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
    """The chunks of the shown document, a section at a time, folded at first."""
    if not listing.chunks:
        if not listing.total:
            return ""
        label = escaped(words("evidence.all", n=listing.total))
        return f'<div class="p-all">{_unfold_button(0, label, is_open=False, name="p-unfold")}</div>'
    last = listing.start + len(listing.chunks)
    items = "".join(_chunk(one, listing, words) for one in listing.chunks)
    title = escaped(words("evidence.all_title", first=listing.start + 1, last=last, total=listing.total))
    fold = escaped(words("evidence.all_close"))
    before = _list_way("before", max(0, listing.start - listing.step), words, off=listing.start <= 0)
    after = _list_way("after", last, words, off=last >= listing.total)
    ways = (
        f'<div class="p-some">{before}<span>{title}</span>{after}</div>' if len(listing.chunks) < listing.total else ""
    )
    return (
        f'<div class="p-all">{_unfold_button(-1, fold, is_open=True, name="p-unfold")}{ways}'
        f'<ol class="p-chunks" role="list" data-start="{listing.start}">{items}</ol></div>'
    )


def _unfold_button(start: int, label: str, *, is_open: bool, name: str) -> str:
    expanded = "true" if is_open else "false"
    return (
        f'<button type="button" class="{name}" data-do="passages" data-n="{start}" aria-expanded="{expanded}">'
        f"{label}</button>"
    )


def _list_way(way: str, start: int, words: Words, *, off: bool) -> str:
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
    text = escaped(_cut(one_line(passage_lines(chunk.text[: 4 * _LINE]))))
    return (
        f'<li class="p-chunk{state}"{current}><button type="button" data-do="chunk" data-n="{chunk.chunk_id}">'
        f'<span class="p-quote" dir="auto">{text}</span><span class="p-where">{place}</span></button></li>'
    )


def web_place(passage: Mapping[str, Any], words: Words) -> str:
    """The link to a passage's web page, in place of a page picture; "" for a passage of a document."""
    host = host_of(str(passage.get("url") or ""))
    if not host:
        return ""
    address = escaped(str(passage["url"]))
    return (
        f'<p class="p-none p-web">{escaped(words("evidence.web"))} '
        f'<a href="{address}" target="_blank" rel="noopener noreferrer nofollow" title="{address}">'
        f"{escaped(words('evidence.web_open', host=host))}</a></p>"
    )
