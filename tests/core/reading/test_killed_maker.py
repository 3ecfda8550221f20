"""A process is killed while it makes vectors: another one makes those that are missing, and none of the others."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.engine import Engine
from core.testing.scripted_model import ScriptedModel
from tests.contract.test_vector_jobs import Model
from tests.core.reading.held_reading import index_of, long_pdf
from tests.core.reading.killed_maker import settings
from tests.core.reading.test_killed_reader import line
from tests.core.talks import world_of

pytestmark = pytest.mark.anyio
WITHIN = 20.0  # seconds; a lease lasts eight, and is looked at every two


async def test_vectors_whose_maker_is_killed_are_made_by_another_from_the_batches_that_are_kept(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    monkeypatch.setattr("core.rag.embedding.catalog.embedders", lambda _: [model])
    command = [sys.executable, "-m", "tests.core.reading.killed_maker", postgres, str(tmp_path / "home")]
    async with Engine(settings(postgres, tmp_path / "home", "web"), model=ScriptedModel()) as web:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert await line(program) == "ready"
            mine = web.stores.of("alice")
            talk, file = await mine.conversations.create(), await mine.files.put("policy.pdf", long_pdf())
            intake = world_of(web, "alice").intake
            record = await intake.add(talk.id, file)
            assert await line(program) == "held"
            async with asyncio.timeout(180):
                assert (await intake.wait_for_end(record.id)).status == "ready"
            assert model.made == []
            async with Engine(settings(postgres, tmp_path / "home", "worker"), model=ScriptedModel()):
                index = await index_of(web, "alice")
                program.kill()
                killed = time.monotonic()
                assert await asyncio.to_thread(index.wait_for_vectors, 60)
                assert time.monotonic() - killed < WITHIN
            (document,) = index.documents()
            done, every = index.retriever.vector_progress([document.id])[document.id]
            assert done == every == len(model.made) + 8, "but for the batch that was kept"
