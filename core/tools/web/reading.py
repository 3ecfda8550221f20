"""A page or document of the web, fetched and cut into parts."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.child_process import environment
from core.errors import need_packages
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, fetch, with_ending
from core.rag.chunking import chunks_of
from core.rag.document import About, Block
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.parsers.process import Limits, stream
from core.rag.parsers.text import markdown_blocks
from core.rag.sources import as_readable

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable

    from core.rag.document import Chunk


_SECONDS = 20.0
_LONGEST = 8 * 1024 * 1024  # bytes of an answer


@dataclass(frozen=True, slots=True)
class MainText:
    """What a page says.

    Args:
        title: Its title, "" where it has none.
        date: When it was written, as year-month-day; "" where that cannot be known.
        text: Markdown; "" where no main text was found.
    """

    title: str = ""
    date: str = ""
    text: str = ""


async def main_text(page: bytes, url: str) -> MainText:
    """The main text of a page, without menus and advertisements; nothing where that fails or takes too long.

    Args:
        page: HTML, in the encoding that it names or that can be seen from it.
    """
    need_packages("The main text of web pages", ["trafilatura"])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "core.tools.web.main_text_worker"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(),
    )
    try:
        async with asyncio.timeout(_SECONDS):
            said, _ = await process.communicate(url.encode("utf-8", "replace") + b"\n" + page)
    except (TimeoutError, OSError):
        return MainText()
    finally:
        await _ended(process)
    return _read(said)


async def _ended(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


def _read(said: bytes) -> MainText:
    try:
        found: Any = json.loads(said) if len(said) <= _LONGEST else None
    except ValueError:
        return MainText()
    if not isinstance(found, dict):
        return MainText()
    values = {name: str(found.get(name) or "") for name in ("title", "date", "text")}  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - JSON
    return MainText(" ".join(values["title"].split())[:200], values["date"][:10], values["text"])


_LIMITS = FetchLimits()
_FILE = Limits(file_bytes=_LIMITS.size, seconds=15.0, seconds_per_page=0.1, answer_bytes=16 * 1024 * 1024)
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_PART = 350  # tokens
_OPEN = Reach()


@dataclass(frozen=True, slots=True)
class Page:
    """What stands at an address.

    Args:
        url: Where it was in the end.
        title: Its title; "" where it has none.
        date: When it was written, as year-month-day; "" where that is not known.
    """

    url: str
    title: str = ""
    date: str = ""
    parts: tuple[Chunk, ...] = field(default=())


async def read(url: str, reach: Reach = _OPEN, limits: FetchLimits = _LIMITS) -> Page:
    """Fetch a page and find its main text; a PDF or another document is read by its parser.

    Neither opens what came in this process.

    Args:
        url: Begins with `http://` or `https://`.
        reach: How far the fetch may go.

    Raises:
        FetchError: It cannot be fetched, or may not be.
        DocumentError: It cannot be read.
    """
    fetched = await fetch(url, limits=limits, reach=reach)
    data, title = await asyncio.to_thread(as_readable, fetched)
    name = with_ending(title or fetched.name, fetched.media_type)
    if fetched.media_type in _PAGES:
        found = await main_text(data, fetched.url)
        if found.text.strip():
            parts = await asyncio.to_thread(_cut, list(markdown_blocks(found.text)))
            return Page(fetched.url, found.title or title, found.date, parts)
    over = threading.Event()
    try:
        own, blocks = await asyncio.to_thread(_parsed, data, name, over.is_set)
    finally:
        over.set()
    return Page(fetched.url, own or title or fetched.name, "", await asyncio.to_thread(_cut, blocks))


def _parsed(data: bytes, name: str, stopped: Callable[[], bool]) -> tuple[str, list[Block]]:
    """Title and blocks of a document."""
    parser, _ = parser_for(name, data[:HEAD])
    title, blocks = "", list[Block]()
    with tempfile.TemporaryDirectory(prefix="parlour-web-") as folder:
        file = Path(folder) / "fetched"
        file.write_bytes(data)
        # Recognising the words of a scan takes minutes, and a tool has seconds.
        for found in stream(file, name, parser, _FILE, ParseOptions(pictures=False), stopped):
            match found:
                case About():
                    title = found.title or title
                case Block():
                    blocks.append(found)
                case _:
                    pass
    return title, blocks


def _cut(blocks: list[Block]) -> tuple[Chunk, ...]:
    return tuple(chunks_of(blocks, _PART, overlap=0))
