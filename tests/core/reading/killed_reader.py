"""A Parlour that reads documents and never comes to their end, to be killed: says `ready`, and `held` once it reads."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from core.engine import Engine
from core.rag.library import Library
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel

SECRET = "the same for all"


async def read(database: str, home: Path) -> None:
    """Read what comes, as far as something of it can be searched."""
    add: Any = Library.aadd

    async def held(self: Library, path: Path, *, progress: Any, **options: Any) -> Any:
        def wait(told: Any) -> None:
            progress(told)
            if told.chunks:
                print("held", flush=True)
                sys.stdin.readline()

        return await add(self, path, progress=wait, **options)

    Library.aadd = held  # type: ignore[method-assign,assignment]
    given: Any = {"home": home, "retrieval": "keyword", "code": "off", "secret": SECRET}
    async with Engine(Settings.load(database=database, role="worker", **given), model=ScriptedModel()):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(read(sys.argv[1], Path(sys.argv[2])))
