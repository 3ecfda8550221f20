"""Where rows are in PostgreSQL, so are the passages of libraries: what one Parlour read another one finds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.settings import Settings
from core.storage.base import folder_name
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, index_of, is_read, pdf
from tests.core.talks import world_of
from tests.grown_postgres import empty_postgres, migrated_postgres, postgres, postgres_server
from tests.grown_servers import S3Server, s3

pytestmark = pytest.mark.anyio
__all__ = ["empty_postgres", "migrated_postgres", "postgres", "postgres_server", "s3"]

QUESTION = "What is the deductible for water damage?"


def house(home: Path, database: str, **store: Any) -> Engine:
    return Engine(
        Settings.load(home=home, retrieval="keyword", database=database, secret="the same for both", **store),
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


async def test_a_page_of_a_document_that_another_parlour_added_is_drawn(
    tmp_path: Path, postgres: str, s3: S3Server
) -> None:
    store: dict[str, Any] = {
        "files": f"s3://{s3.make_bucket()}/parlour",
        "aws_access_key_id": "AKIDTEST",
        "aws_secret_access_key": "a secret of the store",
        "aws_endpoint_url": s3.address,
    }
    async with (
        house(tmp_path / "one", postgres, **store) as engine,
        house(tmp_path / "other", postgres, **store) as other,
    ):
        talk = await engine.stores.of("alice").conversations.create()
        file = await engine.stores.of("alice").files.put("policy.pdf", pdf(CLAUSE))
        record = await world_of(engine, "alice").intake.add(talk.id, file)
        assert (await is_read(engine, record.id)).status == "ready"
        there, here = await index_of(other, "alice"), await index_of(engine, "alice")
        (found,) = await there.afind(QUESTION)
        drawn = await asyncio.to_thread(there.page_picture, found)
        assert drawn == await asyncio.to_thread(here.page_picture, found)
        await engine.stores.of("alice").files.delete(file.id)
        assert await asyncio.to_thread(there.page_picture, found) == drawn, "what was fetched stays"
