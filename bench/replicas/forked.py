"""`python -m bench.replicas.forked FILE`: page servers are forked from it; their assistant has one tool, see below."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.kills.forked_page import origin
from bench.kills.life import Note
from core.toolbox.toolbox import OwnerTools

_IMPORTED = ("core.storage.postgres_database", "core.runs.redis_feed", "redis.asyncio", "pgvector")


class Line(Note):
    """Adds its text, which names the question it is for, to a file. Twice the same line: done twice."""

    async def call(self, params: str | dict[str, Any], **_: Any) -> str:
        """Write the line, and take a moment before and after."""
        text = self._verify_json_format_args(params)["text"]
        await asyncio.sleep(0.1)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"{text}\n".encode())
        os.close(file)
        await asyncio.sleep(0.1)
        return f"written: {text}"


def _give(calls: Path) -> None:
    async def tools(_self: OwnerTools, _talk: str, **_: Any) -> list[Any]:
        return [Line(calls)]

    OwnerTools.for_model = tools  # pyright: ignore[reportAttributeAccessIssue] - everybody has the one tool


if __name__ == "__main__":
    for name in _IMPORTED:
        import_module(name)
    _give(Path(sys.argv[1]))
    origin()
