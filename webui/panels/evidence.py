"""The page a claim came from: what stands on it with the passages marked, and the passages in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from webui.panels.evidence_lists import Listing, listing_html, quotes
from webui.panels.evidence_page import ShownPage, picture
from webui.panels.evidence_text import ShownText, text_page
from webui.panels.evidence_web import web_place
from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webui.words import Words

__all__ = ["Listing", "Lists", "Shown", "ShownPage", "ShownText", "evidence_html"]

Shown: TypeAlias = ShownPage | ShownText


@dataclass(frozen=True, slots=True)
class Lists:
    """What is said of the passages besides their words.

    Args:
        uncited: Numbers of those that were found but not cited.
        cited: Of the open one, what bears out the reply's sentence, as start and end in its text.
        listing: All chunks of the document, or how many there are.
        sought: A line that says what the passages were searched for, where it is not the reply that found them.
        gone: Whether the document is not there any more.
    """

    uncited: frozenset[int] = frozenset()
    cited: tuple[tuple[int, int], ...] = ()
    listing: Listing | None = None
    sought: str = ""
    gone: bool = False


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
        open_number: The one that is open; `None` where the reader turned to another page.
        words: The reader's.
        message_id: The reply's, for the links.
        page: What is shown of the document; `None` for one of which nothing can be shown.
        lists: What else is known of the passages.
    """
    lists = lists or Lists()
    opened = next((one for one in passages if one["number"] == open_number), None)
    document = escaped(page.document if page else str((opened or {}).get("document") or ""))
    quoted = quotes(passages, open_number, words, message_id, uncited=lists.uncited, cited=lists.cited)
    # Where a document was given whole all of it was found: marking that would mark nothing.
    told = [one for one in passages if one["number"] == open_number or one["number"] not in lists.uncited]
    listed = listing_html(lists.listing, words) if lists.listing else ""
    chunk = lists.listing.open_chunk if lists.listing else None
    sought = f'<p class="p-sought">{escaped(lists.sought)}</p>' if lists.sought else ""
    return (
        f'<div class="p-evidence" data-open="{escaped(message_id)}" '
        f'data-place="{escaped(f"{open_number}/{chunk}/{_place(page)}")}"><header>'
        f'<h2>{escaped(words("evidence.title"))}</h2><span class="p-file" title="{document}">{document}</span>'
        f'<button type="button" class="p-icon p-close" data-do="close" '
        f'aria-label="{escaped(words("evidence.close"))}"></button></header>'
        f"{sought}{_page(page, told, open_number, words, message_id) or _nothing(words, gone=lists.gone)}"
        f'<div class="p-lists">{quoted}{listed}</div></div>'
    )


def _place(page: Shown | None) -> str:
    part = page.content.part if isinstance(page, ShownText) else 0
    return f"{page.document_id[:12]}/{page.page}/{part}" if page else ""


def _page(
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


def _nothing(words: Words, *, gone: bool) -> str:
    """Why no page is shown."""
    return f'<p class="p-none">{escaped(words("evidence.gone" if gone else "evidence.no_picture"))}</p>'


def _turner(page: Shown, words: Words) -> str:
    """Which page it is, the way to the next ones, and how large it is shown."""
    kind = page.content.kind if isinstance(page, ShownText) else "page"
    if isinstance(page, ShownText) and page.page is None:
        before, label, after = _parts(page, words)
    else:
        before, label, after = _pages(page, words, "" if kind == "page" else kind)
    whole = escaped(words("evidence.whole"))
    fit = (
        f'<button type="button" class="p-icon p-whole" data-do="whole" aria-label="{whole}" title="{whole}"></button>'
        if kind in {"page", "slide"}
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
    """A text without pages is turned part by part."""
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
