"""The font with Chinese, Japanese and Korean characters that PyMuPDF brings along: Droid Sans Fallback, Apache 2.0."""

from __future__ import annotations

from typing import Any


def cjk_font() -> bytes:
    """The font file; empty where PyMuPDF is not installed."""
    try:
        import pymupdf
    except ImportError:
        return b""
    font: Any = pymupdf.Font("cjk")
    return bytes(font.buffer)
