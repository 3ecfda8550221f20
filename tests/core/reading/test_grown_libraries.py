"""Where rows are in PostgreSQL, so are the passages of libraries: what one Parlour read another one finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engine import Engine
from core.settings import Settings
from core.storage.base import folder_name
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, index_of, is_read, pdf
from tests.core.talks import world_of
from tests.grown_postgres import empty_postgres, migrated_postgres, postgres, postgres_server

pytestmark = pytest.mark.anyio
__all__ = ["empty_postgres", "migrated_postgres", "postgres", "postgres_server"]

QUESTION = "What is the deductible for water damage?"


def house(home: Path, database: str) -> Engine:
    return Engine(
        Settings.load(home=home, retrieval="keyword", database=database, secret="the same for both"),
        model=ScriptedModel(),
    )


async def test_what_one_parlour_read_another_finds_and_nobody_else(tmp_path: Path, postgres: str) -> None:
    async with house(tmp_path / "one", postgres) as engine, house(tmp_path / "other", postgres) as other:
        talk = await engine.stores.of("alice").conversations.create()
        file = await engine.stores.of("alice").files.put("policy.pdf", pdf(CLAUSE))
        record = await world_of(engine, "alice").intake.add(talk.id, file)
        assert (await is_read(engine, record.id)).status == "ready"
        (found,) = await (await index_of(other, "alice")).afind(QUESTION)
        assert found.text == (await (await index_of(engine, "alice")).afind(QUESTION))[0].text
        assert (found.document, found.page) == ("policy.pdf", 1)
        assert found.rectangles
        assert await (await index_of(other, "bob")).afind(QUESTION) == []
        await (await index_of(engine, "alice")).aremove(found.document_id)
        assert await (await index_of(other, "alice")).afind(QUESTION) == []
    assert not (tmp_path / "one" / "libraries" / folder_name("alice") / "library.sqlite").exists()
