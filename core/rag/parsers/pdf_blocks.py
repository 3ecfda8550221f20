"""A page's blocks of text and its drawings, in one reading.

The library gives drawings for nothing if asked, but parts the text wherever something is drawn: at an underlined word,
at a fraction's bar. Here those parts are put together by the rules that it joins letters by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError
from core.rag.parsers.pdf_file import View, damage_told, pymupdf

if TYPE_CHECKING:
    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_tables import Word

_DRAWING = 3  # the library's name for a block that is no text
_HAIR = 0.1  # points: lines without a thickness have this
# In letter sizes, as in the library.
_SAME_LINE, _NEXT_LINE = 0.8, 1.4
_SAME_WORD, _SAME_SENTENCE = 0.15, 0.8


class Blocks:
    """What stands on a page.

    Args:
        page: The library's page; a damaged one is empty.
        view: How it is displayed.
    """

    def __init__(self, page: Any, view: View) -> None:
        self._view = view
        self._reading: Any = None
        self.texts: list[dict[str, Any]] = []
        self.drawn: list[Rectangle] = []  # lines and rectangles, as displayed
        library = pymupdf()
        flags = library.TEXTFLAGS_DICT & ~library.TEXT_PRESERVE_IMAGES & ~library.TEXT_PRESERVE_LIGATURES
        try:
            with damage_told("The page is damaged."):
                self._reading = page.get_textpage(flags=flags | library.TEXT_COLLECT_VECTORS)
                found: list[dict[str, Any]] = self._reading.extractDICT()["blocks"]
                drawings = [block for block in found if block["type"] == _DRAWING]
                if drawings and page.rotation:  # the rules are for lines across
                    found = page.get_textpage(flags=flags).extractDICT()["blocks"]
        except BrokenDocumentError:
            return
        self.texts = _mended(found) if drawings else [block for block in found if block.get("lines")]
        boxes = (view.shown(block["bbox"], edge=_HAIR) for block in drawings if _is_ruling(block))
        self.drawn = [box for box in boxes if box]

    def words(self) -> list[Word]:
        """Every word with its box, as displayed, in reading order."""
        words: list[tuple[Any, ...]] = self._reading.extractWORDS()
        return [(*box, word[4]) for word in words if (box := self._view.shown(word[:4]))]


def _is_ruling(block: dict[str, Any]) -> bool:
    """Whether a drawing is a rectangle or a straight line; a slope or a curve is neither."""
    x0, y0, x1, y1 = block["bbox"]
    return bool(block["isrect"]) or min(x1 - x0, y1 - y0) <= 1


def _mended(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    texts: list[dict[str, Any]] = []
    drawn = False
    for block in found:
        if not block.get("lines"):
            drawn = drawn or block["type"] == _DRAWING
        elif not (drawn and texts and _goes_on(texts[-1]["lines"], block["lines"])):
            texts.append(block)
            drawn = False
        else:
            drawn = False
    return texts


def _goes_on(lines: list[dict[str, Any]], more: list[dict[str, Any]]) -> bool:
    """Add lines to a block if the first of them goes on where it ended."""
    before, line = lines[-1], more[0]
    if before["dir"] != (1.0, 0.0) or line["dir"] != (1.0, 0.0):
        return False
    last, span = before["spans"][-1], line["spans"][0]
    size: float = span["size"]
    down = abs(span["origin"][1] - last["origin"][1])
    if down > _NEXT_LINE * size:
        return False
    if down < _SAME_LINE * size:
        gap = span["origin"][0] - last["bbox"][2]
        if not -_SAME_SENTENCE * size < gap < _SAME_SENTENCE * size:
            return False
        if gap >= _SAME_WORD * size:
            last["text"] += " "
        before["spans"] += line["spans"]
        (x0, y0, x1, y1), (u0, v0, u1, v1) = before["bbox"], line["bbox"]
        before["bbox"] = (min(x0, u0), min(y0, v0), max(x1, u1), max(y1, v1))
        more = more[1:]
    elif abs(last["size"] - size) > 0.1 * size:
        return False
    lines += more
    return True
