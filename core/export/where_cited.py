"""Where in its document a cited passage stands, in words: the same in every form that a conversation is exported in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.rag.document import numbered_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.export.schema import ExportedCitation
    from core.languages import Lang

_PLACES: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {"page": "page {n}", "slide": "slide {n}", "sheet": "sheet {n}"},
    "zh": {"page": "第 {n} 页", "slide": "第 {n} 张幻灯片", "sheet": "第 {n} 个工作表"},
}
_COMMA: Final[Mapping[Lang, str]] = {"en": ", ", "zh": "，"}


def place_in_words(one: ExportedCitation, lang: Lang) -> str:
    """The page, slide or sheet by its number; "" where there is none, and for a sheet that has a title.

    A sheet is known by its title, which is the heading of its passages, and nobody counts sheets.
    """
    kind = numbered_as(one.document)
    if one.page is None or (kind == "sheet" and one.heading):
        return ""
    return _PLACES[lang][kind].format(n=one.page)


def where_cited(one: ExportedCitation, lang: Lang) -> str:
    """The document, and which page, slide or sheet of it, such as "talk.pptx, slide 3" or "orders.xlsx, Paper"."""
    title = one.heading.partition(" > ")[0] if one.page is not None else ""
    place = place_in_words(one, lang) or (title if numbered_as(one.document) == "sheet" else "")
    return f"{one.document}{_COMMA[lang]}{place}" if place else one.document
