"""Documents for tests of reading, and a gate that holds their reading while something is looked at."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pymupdf

from core.engine import Engine
from core.rag.document import ReadingProgress
from core.rag.library import Library
from core.storage.base import DocumentRecord

CLAUSE = "The deductible for water damage is four hundred and twenty euros."
PAGES = 60


@cache
def pdf(*pages: str, password: str = "") -> bytes:
    document: Any = pymupdf.open()
    for text in pages:
        document.new_page(width=400, height=500).insert_textbox((40, 40, 360, 460), text, fontsize=10)
    if not password:
        return bytes(document.tobytes())
    aes = getattr(pymupdf, "PDF_ENCRYPT_AES_256")  # noqa: B009 - PyMuPDF's stubs do not know it
    return bytes(document.tobytes(encryption=aes, user_pw=password, owner_pw=password))


def long_pdf() -> bytes:
    filler = "This policy covers the contents of one flat. " * 12
    return pdf(f"Section 1. {CLAUSE}", *(f"Section {n}. {filler}" for n in range(2, PAGES + 1)))


async def is_read(engine: Engine, document_id: str) -> DocumentRecord:
    """Alice's document, once it is no longer being read."""
    change = asyncio.Event()
    leave = engine.on_change(lambda _owner, _talk: change.set())
    async with asyncio.timeout(180):
        while (record := await engine.stores.of("alice").documents.get(document_id)).status == "reading":
            await change.wait()
            change.clear()
    leave()
    return record


async def index_of(engine: Engine, owner: str) -> Library:
    """An owner's index; it stays open for some minutes, which is longer than a test."""
    async with engine.workspaces.index(owner) as library:
        return library


class Gate:
    """Holds reading as soon as something of a document can be searched, until it is opened or reading called off.

    Args:
        library: That reads.
        early: Hold it already before that.
    """

    def __init__(self, library: Library, *, early: bool = False) -> None:
        self.opened = threading.Event()
        self.held = threading.Event()
        self._early = early
        self.begun: list[str] = []
        self._add = library.aadd
        library.aadd = self._held  # type: ignore[method-assign]

    async def _held(
        self,
        path: str | Path,
        *,
        progress: Callable[[ReadingProgress], None],
        cancelled: threading.Event,
        enough: threading.Event,
        **options: Any,
    ) -> Any:
        self.begun.append(str(options["name"]))

        def wait(told: ReadingProgress) -> None:
            progress(told)
            stops = (cancelled, enough)
            while (told.chunks or self._early) and not any(stop.is_set() for stop in stops):
                self.held.set()
                if self.opened.wait(0.02):
                    break

        return await self._add(path, progress=wait, cancelled=cancelled, enough=enough, **options)
