"""A font with Chinese, Japanese and Korean characters for the labels of plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def put_fonts(share: Path) -> None:
    """Make the folder that all sandboxes read, with the font where PyMuPDF is there to give it. Raises OSError."""
    from core.rag.parsers.pdf_mupdf import cjk_font

    fonts = share / "fonts"
    for folder in (share, fonts):
        folder.mkdir(mode=0o755, exist_ok=True)
        folder.chmod(0o755)
    font = cjk_font()
    if font:
        path = fonts / "cjk.ttf"
        path.write_bytes(font)
        path.chmod(0o644)
