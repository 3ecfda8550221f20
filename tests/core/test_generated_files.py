"""What a model draws or says aloud is kept as a file of the one who asked."""

from __future__ import annotations

import io
import time
import wave
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from core.engine import Engine
from core.errors import NotFoundError, StorageError
from core.generated_files import store_generated
from core.messages.content import ContentItem
from core.messages.events import ItemAdded, TextDelta, ToolFinished
from core.messages.message import Message
from core.settings import Settings
from core.storage.base import FILE_ADDRESS, file_ids
from core.storage.files import FileStore
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.base import ToolResult
from core.tools.results import as_message
from tests.core.talks import talk_of
from tests.stored_files import stored

pytestmark = pytest.mark.anyio


def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(out, "PNG")
    return out.getvalue()


def wav() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, 24_000, 0, "NONE", ""))
        sound.writeframes(b"\0\1" * 2400)
    return out.getvalue()


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    model = ScriptedModel(Reply(text="See and hear:", images=[png()], audio=wav()), "yes")
    async with Engine(Settings.load(home=tmp_path / "home"), model=model) as running:
        yield running


async def ask(engine: Engine, talk_id: str, text: str) -> None:
    run = await talk_of(engine, "alice", talk_id).ask(text, ())
    assert await run.wait() == "complete", run.error


async def test_the_reply_names_files_and_only_their_owner_has_them(engine: Engine) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    await ask(engine, talk.id, "Draw and speak")
    thread = await engine.stores.of("alice").conversations.thread(talk.id)
    items = [item for part in thread[-1].parts for item in part.items]
    assert [item.type for item in items] == ["text", "image", "audio"]
    for item, name, raw in zip(items[1:], ("picture.png", "recording.wav"), (png(), wav()), strict=True):
        file_id = str(item.value).removeprefix(FILE_ADDRESS)
        record, path = await stored(engine.stores.of("alice").files, file_id)
        assert (record.name, path.read_bytes()) == (name, raw)
        with pytest.raises(NotFoundError):
            await stored(engine.stores.of("bob").files, file_id)


async def test_they_stay_as_long_as_the_conversation_and_go_with_it(engine: Engine) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    await ask(engine, talk.id, "Draw and speak")
    assert await engine.stores.files.delete_unused(time.time() + 60) == 0
    thread = await engine.stores.of("alice").conversations.thread(talk.id)
    made = file_ids(thread[-1].parts)
    paths = [(await stored(engine.stores.of("alice").files, file_id))[1] for file_id in made]
    assert len(paths) == 2
    await talk_of(engine, "alice", talk.id).delete()
    assert not [path for path in paths if path.exists()]


async def test_the_model_is_told_its_words_alone_the_next_time(engine: Engine) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    await ask(engine, talk.id, "Draw and speak")
    await ask(engine, talk.id, "Again?")
    model = engine.model
    assert isinstance(model, ScriptedModel)
    said = [message for message in model.requests[-1].messages if message.role == "assistant"]
    assert [message.content for message in said] == ["See and hear:"]


@pytest.mark.parametrize(
    "item",
    [
        ContentItem(image="https://example.org/a.png"),
        ContentItem(image="data:image/png;base64,!"),
        ContentItem(image="data:image/png,plain"),
        ContentItem(image="data:image/png;base64,PGh0bWw+"),
        ContentItem(audio={"data": "AAAA", "format": "wav"}),
        ContentItem(video="data:video/mp4;base64,AAAA"),
    ],
)
async def test_what_is_none_of_these_is_not_kept(engine: Engine, item: ContentItem) -> None:
    event = ItemAdded(item)
    assert await store_generated(event, engine.stores.of("alice").files) is event


async def test_a_full_disk_costs_the_picture_and_not_the_reply(engine: Engine, monkeypatch) -> None:
    async def full(*_: object) -> None:
        raise StorageError("full")

    monkeypatch.setattr(FileStore, "put", full)
    event = ItemAdded(ContentItem(audio="data:audio/wav;base64,AAAA"))
    assert await store_generated(event, engine.stores.of("alice").files) is event
    text = TextDelta("a")
    assert await store_generated(text, engine.stores.of("alice").files) is text


def result(*items: ContentItem, **extra: object) -> ToolFinished:
    return ToolFinished("c1", Message("function", list(items), name="tool", extra={"function_id": "c1", **extra}))


def data(media_type: str, raw: bytes, name: str = "") -> str:
    return f"data:{media_type}{f';name={name}' if name else ''};base64,{b64encode(raw).decode()}"


async def test_what_a_tool_makes_becomes_files_under_their_names(engine: Engine) -> None:
    event = result(
        ContentItem(text="Done."),
        ContentItem(image=data("image/png", png())),
        ContentItem(file=data("text/csv", b"a,b\n1,2\n", "%E8%A1%A8.csv")),
        ContentItem(image=data("image/svg+xml", b"<svg onload='x()'></svg>")),
    )
    after = await store_generated(event, engine.stores.of("alice").files)
    assert isinstance(after, ToolFinished)
    assert [item.type for item in after.message.items] == ["text", "image", "file", "file"]
    records = [(await stored(engine.stores.of("alice").files, file_id))[0] for file_id in file_ids([after.message])]
    assert [record.name for record in records] == ["picture.png", "表.csv", "picture.svg"]
    assert [about["name"] for about in (after.message.extra or {})["files"]] == [record.name for record in records]
    assert event.message.items[1].value != after.message.items[1].value  # the tool's own message is as it was


async def test_a_long_result_is_there_whole_as_a_file_of_the_conversation(engine: Engine) -> None:
    long = "头" + "x" * 200_000 + "尾"
    event = ToolFinished("c1", as_message("my tool", ToolResult(long), 64 * 1024, function_id="c1"))
    after = await store_generated(event, engine.stores.of("alice").files)
    assert isinstance(after, ToolFinished)
    address = (after.message.extra or {})["whole"]
    record, path = await stored(engine.stores.of("alice").files, str(address).removeprefix(FILE_ADDRESS))
    assert (record.name, path.read_text("utf-8")) == ("my_tool.txt", long)
    assert len(after.message.get_text_content().encode()) <= 64 * 1024


@pytest.mark.parametrize(
    "value", ["https://example.org/a.png", "/files/somebody-else", "/etc/passwd", "file:///etc/passwd"]
)
async def test_a_result_that_names_a_place_is_never_read_from_there(engine: Engine, value: str) -> None:
    event = result(ContentItem(file=value))
    assert await store_generated(event, engine.stores.of("alice").files) is event
