"""A data folder with a conversation, a file that is a document, a note and a kept key; and what is found in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from core.engine import Engine
from core.errors import StorageError
from core.messages.message import Message
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.sealing import Sealer
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import world_of
from tests.stored_files import stored

TEXT = "The lighthouse keeper collects 950 rare stamps."
KEY = "sk-0123456789abcdef"


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[Engine]:
    settings = Settings.load(home=home, retrieval="keyword", check_claims=False)
    async with Engine(settings, model=ScriptedModel()) as engine:
        yield engine


async def fill(engine: Engine) -> None:
    talks = engine.stores.of(LOCAL_OWNER).conversations
    talk = await talks.create("A trip")
    question = await talks.add_message(talk.id, "user", [Message("user", "Where to?")], None)
    await talks.add_message(talk.id, "assistant", [Message("assistant", "North.")], question.id)
    file = await engine.stores.of(LOCAL_OWNER).files.put("keeper.txt", TEXT.encode())
    await add_document(engine, talk.id, file.id)
    services = engine.stores.of(LOCAL_OWNER).model_services
    await services.save("deepseek", address="", model="m", key=KEY, use=False)
    await engine.stores.of(LOCAL_OWNER).notes.put("diary", "Windy.")


async def add_document(engine: Engine, talk: str, file_id: str) -> None:
    document = await world_of(engine, LOCAL_OWNER).intake.add(
        talk, await engine.stores.of(LOCAL_OWNER).files.record(file_id)
    )
    change = asyncio.Event()
    leave = engine.on_change(lambda _owner, _talk: change.set())
    async with asyncio.timeout(180):
        while (await engine.stores.of(LOCAL_OWNER).documents.get(document.id)).status != "ready":
            await change.wait()
            change.clear()
    leave()


async def found_in(home: Path) -> dict[str, object]:
    """What an owner finds: conversations, the document's passage, the file, the note and the key."""
    async with opened(home) as engine:
        talks = engine.stores.of(LOCAL_OWNER).conversations
        titles = {
            talk.title: [turn.parts[0].content for turn in await talks.thread(talk.id)] for talk in await talks.list()
        }
        talk = (await talks.list())[-1]
        (record,) = await engine.stores.of(LOCAL_OWNER).documents.list(talk.id)
        file, path = await stored(engine.stores.of(LOCAL_OWNER).files, record.file_id)
        async with engine.workspaces.index(LOCAL_OWNER) as library:
            passages = [passage.text for passage in await library.afind("Who collects stamps?")]
        notes = [note.text for note in await engine.toolbox.of(LOCAL_OWNER).notes.list()]
        services = engine.stores.of(LOCAL_OWNER).model_services
        sealed = await services.get("deepseek")
        return {
            "titles": titles,
            "file": (file.name, path.read_text("utf-8")),
            "passages": passages,
            "notes": notes,
            "key": _opened(engine, sealed.key or "") if sealed else "",
        }


def _opened(engine: Engine, sealed: str) -> str:
    try:
        return Sealer(engine.settings.signing_secret()).open(sealed, LOCAL_OWNER, "deepseek")
    except StorageError as error:
        return error.words_key
