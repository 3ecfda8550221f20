"""A Parlour that makes a first batch of vectors and never comes to the end of the second, to be killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from core.engine import Engine
from core.rag.embedding import catalog
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.contract.test_vector_jobs import Model
from tests.core.reading.killed_reader import SECRET


def settings(database: str, home: Path, role: Any) -> Settings:
    return Settings.load(database=database, role=role, home=home, retrieval="hybrid", code="off", secret=SECRET)


async def make(database: str, home: Path) -> None:
    """Make what waits, as far as one batch; says `ready`, and `held` at the second."""
    model = Model()

    def wait() -> None:
        if model.made:
            print("held", flush=True)
            sys.stdin.readline()

    model.before = wait
    catalog.embedders = lambda _: [model]  # type: ignore[assignment]
    async with Engine(settings(database, home, "worker"), model=ScriptedModel()):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(make(sys.argv[1], Path(sys.argv[2])))
