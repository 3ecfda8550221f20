"""HTML of our own as PDF, made in a process of its own: what a conversation holds may be more than a library bears."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from core.child_process import environment
from core.errors import BrokenDocumentError, extra_for
from core.rag.parsers.pdf_mupdf import pymupdf

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS: Final = 180.0
_MARGINS: Final = (54, 54, -54, -64)
_FOOT: Final = 36.0  # points above the lower edge


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
    story = library.Story(html=Path(given).read_text("utf-8"), user_css=Path(style).read_text("utf-8"), em=10)
    draft = f"{made}.part"
    writer = library.DocumentWriter(draft)
    sheet = library.paper_rect("a4")
    for device in _sheets(writer, story, sheet, sheet + _MARGINS):
        story.draw(device)
    writer.close()
    document = library.open(draft)
    for number, page in enumerate(document, start=1):
        said = f"{number} / {len(document)}"
        width = library.get_text_length(said, fontsize=8)
        at = ((page.rect.width - width) / 2, page.rect.height - _FOOT)
        page.insert_text(at, said, fontsize=8, color=(0.37, 0.38, 0.35))
    document.subset_fonts(fallback=False)
    document.save(made, garbage=3, deflate=True)


def _sheets(writer: Any, story: Any, sheet: Any, within: Any) -> Iterator[Any]:
    more = True
    while more:
        device = writer.begin_page(sheet)
        more, _ = story.place(within)
        yield device
        writer.end_page()


if __name__ == "__main__":
    main(*sys.argv[1:])
