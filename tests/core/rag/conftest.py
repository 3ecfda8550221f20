"""Small real documents, made by the libraries that write them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.rag.library import Library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library") as opened:
        yield opened


@pytest.fixture
def make_pdf(tmp_path: Path) -> Callable[..., Path]:
    """A PDF with one page for each text; `font="china-s"` writes Chinese."""

    def make(*pages: str, name: str = "made.pdf", rotation: int = 0, font: str = "helv", **options: Any) -> Path:
        import pymupdf

        document = pymupdf.open()
        for text in pages:
            page = document.new_page(width=400, height=500)
            if text:
                page.insert_text((50, 60), text, fontsize=12, fontname=font)
            page.set_rotation(rotation)
        if "toc" in options:
            document.set_toc(options.pop("toc"))
        path = tmp_path / name
        document.save(path, **options)
        return path

    return make


@pytest.fixture
def picture_bytes() -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, "PNG")
    return out.getvalue()
