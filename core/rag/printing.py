"""HTML of our own as PDF, made in a process of its own: what a conversation holds may be more than a library bears."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from core.child_process import environment
from core.errors import BrokenDocumentError, extra_for
from core.rag.paper_tables import fitted
from core.rag.parsers.pdf_mupdf import pymupdf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS: Final = 180.0
_MARGINS: Final = (54, 54, -54, -64)
_FOOT: Final = 36.0  # points above the lower edge
_LONGEST_WORD: Final = 2000  # signs; MuPDF takes the square of a word's length to break it
_SHORTER: Final = (0.37, 3.13, 7.71)  # points of a sheet
_LETTER: Final = 1.0  # points that are no letter yet
_LINE: Final = 6.0  # points that are no line yet
_BELOW: Final = 60.0  # points that margins below a text can add to a sheet that it fills
_SURELY_FITS: Final = 30  # signs, in any place where something is too wide after all
_SIGN: Final = re.compile(r"&#?\w+;|[^\s&<>]")
_WORD: Final = re.compile(rf"(?:{_SIGN.pattern})+")
_NAMED: Final = re.compile(rb"^<([0-9a-f]{4})> (?:<([0-9a-f]{4})> )?<([0-9a-f]{4,6})>", re.MULTILINE | re.IGNORECASE)
_JOINED: Final = ((0xFB00, 0xFB06), (0xFB50, 0xFDFB), (0xFE70, 0xFEFC))  # ligatures of Latin and forms of Arabic
_UNDRAWN: Final = re.compile("[\ufe0e\ufe0f]|(?<=\\S)[\U0001f3fb-\U0001f3ff]")
"""Says in which colour an emoji is drawn: MuPDF has black ones alone, and draws an empty box for it."""
_TAGS: Final = re.compile(r"(<[^<>]*>)")


def as_pdf(html: str, style: str) -> bytes:
    """A page as PDF with numbered pages, in fonts that have Chinese.

    Args:
        html: What is printed; its pictures stand in it.
        style: What MuPDF understands of CSS.

    Raises:
        BrokenDocumentError: key `print_failed`: it cannot be printed, or takes too long.
        MissingExtraError: The extra `documents` is not installed.
    """
    with extra_for("A PDF"), TemporaryDirectory(prefix="parlour-print-") as folder:
        pymupdf()
        given, sheet, made = (Path(folder) / name for name in ("page.html", "page.css", "page.pdf"))
        given.write_text(html, "utf-8")
        sheet.write_text(style, "utf-8")
        try:
            subprocess.run(  # noqa: S603 - our own words alone
                [sys.executable, "-P", "-m", "core.rag.printing", str(given), str(sheet), str(made)],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=True,
            )
            return made.read_bytes()
        except (subprocess.SubprocessError, OSError) as error:
            said = "This conversation cannot be printed as PDF."
            raise BrokenDocumentError(said, hint="Export it as HTML and print that.", key="print_failed") from error


def main(given: str, style: str, made: str) -> None:
    """What the process does: read the page, lay it out, number its sheets, and keep only the letters it needs."""
    library = pymupdf()
    draft = f"{made}.part"
    html = _UNDRAWN.sub("", Path(given).read_text("utf-8"))
    _Paper(library, Path(style).read_text("utf-8")).write(html, draft)
    document = library.open(draft)
    for number, page in enumerate(document, start=1):
        said = f"{number} / {len(document)}"
        width = library.get_text_length(said, fontsize=8)
        at = ((page.rect.width - width) / 2, page.rect.height - _FOOT)
        page.insert_text(at, said, fontsize=8, color=(0.37, 0.38, 0.35))
    title = re.search(r"<title>(.*?)</title>", html, re.DOTALL)
    document.set_metadata({"title": unescape(title[1]) if title is not None else ""})
    document.subset_fonts(fallback=False)
    _name_letters(document)
    document.save(made, garbage=3, deflate=True)


def _name_letters(document: Any) -> None:
    """Let what is copied be the letters that were written.

    MuPDF names joined letters by signs of their own (ﬁ, and how Arabic letters look in a word), and a sign above
    U+FFFF, such as an emoji, in a way that readers take for another one.
    """

    def named(found: re.Match[bytes]) -> bytes:
        first, last, code = (int(one, 16) for one in (found[1], found[2] or found[1], found[3]))
        signs = [
            b"<" + _written(code + more).encode("utf-16-be").hex().encode() + b">" for more in range(last - first + 1)
        ]
        if found[2] is None:
            return b"<%s> %s" % (found[1], signs[0])
        return b"<%s> <%s> [%s]" % (found[1], found[2], b" ".join(signs))

    for xref in range(1, document.xref_length()):
        if document.xref_is_stream(xref) and b"begincmap" in (text := document.xref_stream(xref)):
            document.update_stream(xref, _NAMED.sub(named, text))


def _written(code: int) -> str:
    sign = chr(code) if not 0xD800 <= code <= 0xDFFF else "\ufffd"
    return unicodedata.normalize("NFKC", sign) if any(first <= code <= last for first, last in _JOINED) else sign


class _Paper:
    """Lays a page out on sheets, so that nothing of it is beyond their margins.

    MuPDF breaks long words where `overflow-wrap` says so, but in no cell of a table; what is too wide it draws beyond
    the edge without a word, and where a line ends exactly with a sheet it loses the sheet that follows. It tells how
    far it went, though. So tables are made to fit, and a page of which something is beyond the margins after all is
    laid out again, with sheets a little shorter and then with its long words cut.
    """

    def __init__(self, library: Any, style: str) -> None:
        self._library, self._style = library, style
        self._sheet = library.paper_rect("a4")
        self._within = self._sheet + _MARGINS

    def write(self, html: str, draft: str) -> None:
        """Lay a page out in a file. Raises ValueError where something of it would be lost."""
        for longest, lists in ((_LONGEST_WORD, False), (_SURELY_FITS, True)):
            page = fitted(cut_words(html, longest), self._overflows, lists=lists)
            if any(self._drawn(page, draft, less) for less in _SHORTER):
                return
        raise ValueError

    def _drawn(self, html: str, draft: str, less: float) -> bool:
        """Write a file, whose sheets are shorter by so many points; returns whether all of the page is on them."""
        left, top, right, bottom = self._within
        within = self._library.Rect(left, top, right, bottom - less)
        writer = self._library.DocumentWriter(draft)
        fits = all(self._sheets(html, within, lambda: writer.begin_page(self._sheet), writer.end_page))
        writer.close()
        return fits and not self._has_text_beyond(draft)

    def _has_text_beyond(self, draft: str) -> bool:
        edge = self._within
        with self._library.open(draft) as document:
            lines = (line for page in document for line in page.get_text("blocks", flags=0))  # also off the sheet
            return any(x1 > edge.x1 + _LETTER or y1 > edge.y1 + _LINE for _, _, x1, y1, *_ in lines)

    def _overflows(self, html: str) -> bool:
        return not all(self._sheets(html, self._within, lambda: None, lambda: None))

    def _sheets(self, html: str, within: Any, begin: Callable[[], Any], end: Callable[[], None]) -> Iterator[bool]:
        """Draw sheet after sheet; each gives whether what is on it seems to be within the margins."""
        story = self._library.Story(html=html, user_css=self._style, em=10)
        more = True
        while more:
            device = begin()
            more, filled = story.place(within)
            story.draw(device)
            end()
            yield filled[2] <= within.x1 + _LETTER and filled[3] <= within.y1 + _BELOW


def cut_words(html: str, longest: int) -> str:
    """The page with a line break in each word of its text that is longer than so many signs."""

    def parted(found: re.Match[str]) -> str:
        signs = _SIGN.findall(found[0])
        return "<br>".join("".join(signs[at : at + longest]) for at in range(0, len(signs), longest))

    return "".join(one if one.startswith("<") else _WORD.sub(parted, one) for one in _TAGS.split(html))


if __name__ == "__main__":
    main(*sys.argv[1:])
