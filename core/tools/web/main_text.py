"""The near side of finding a page's main text: starts the process, keeps its time, reads its answer."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.rag.child import environment

if TYPE_CHECKING:
    from asyncio.subprocess import Process

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
        url: Where it is from.
    """
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
