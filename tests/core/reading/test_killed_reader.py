"""A process is killed while it reads a document: another one reads it to its end, in the time that replies take."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from core.engine import Engine
from core.rag.parsers import process
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.process import Limits
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import PAGES, index_of, long_pdf
from tests.core.reading.killed_reader import SECRET
from tests.core.talks import world_of

pytestmark = pytest.mark.anyio
WITHIN = 20.0  # seconds; a lease lasts eight, and is looked at every two


async def line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return (await asyncio.to_thread(program.stdout.readline)).strip()


async def test_a_document_whose_reader_is_killed_is_read_to_its_end_by_another_from_the_pages_that_are_kept(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    stream = process.stream

    def noted(path: Path, name: str, parser: str, limits: Limits, asked: ParseOptions, **more: Any) -> Any:
        begun.append(asked.first_page)
        return stream(path, name, parser, limits, asked, **more)

    monkeypatch.setattr(process, "stream", noted)
    given: Any = {"home": tmp_path / "home", "retrieval": "keyword", "code": "off", "secret": SECRET}
    command = [sys.executable, "-m", "tests.core.reading.killed_reader", postgres, str(tmp_path / "home")]
    async with Engine(Settings.load(database=postgres, role="web", **given), model=ScriptedModel()) as web:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert await line(program) == "ready"
            mine = web.stores.of("alice")
            talk, file = await mine.conversations.create(), await mine.files.put("policy.pdf", long_pdf())
            intake = world_of(web, "alice").intake
            record = await intake.add(talk.id, file)
            assert await line(program) == "held"
            assert web.intake.jobs == {}
            elsewhere = await mine.conversations.create()
            same = await intake.add(elsewhere.id, await mine.files.put("the same.pdf", long_pdf()))
            async with Engine(Settings.load(database=postgres, role="worker", **given), model=ScriptedModel()) as other:
                program.kill()
                killed = time.monotonic()
                async with asyncio.timeout(180):
                    read = await intake.wait_for_end(record.id)
                assert time.monotonic() - killed < WITHIN
                assert (read.status, read.pages) == ("ready", PAGES)
                async with asyncio.timeout(180):
                    assert (await intake.wait_for_end(same.id)).status == "ready"
                (document,) = (await index_of(other, "alice")).documents()
                assert (document.status, document.pages) == ("ready", PAGES)
                rows = await web.stores.database.read(lambda c: c.execute(text("SELECT * FROM readings")).all())
                assert rows == []
                assert [one > 1 for one in begun] == [True], "once for both, and behind the pages that were read"
