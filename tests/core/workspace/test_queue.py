"""Messages that wait for the end of a reply: sent by themselves, in order, once, and left alone where it failed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import ConflictError, ModelUnavailableError, NoSpaceError, NotFoundError, ParlourError
from core.llm.request import ChatRequest
from core.messages.events import Event
from core.messages.message import Message
from core.settings import Settings
from core.storage.base import StoredMessage
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation
from core.workspace.queue import MOST, ConversationQueue
from core.workspace.sending import Sending
from tests.core.talks import world_of

pytestmark = pytest.mark.anyio


class Gate:
    """A model that says what it was asked, once it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.fails = False

    def reply(self, asked: list[Message]) -> Reply:
        if self.fails:
            raise ModelUnavailableError("The service is away.")
        question = asked[-1].get_text_content()
        return Reply(text=["You said: ", *question.split(" ")], pace=0.0)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def engine(tmp_path: Path, gate: Gate, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=model_of(gate)) as running:
        yield running


def model_of(gate: Gate) -> Any:
    class Held(ScriptedModel):
        async def _stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
            await gate.go.wait()
            async for event in super()._stream(request):
                yield event

    return Held(lambda request: gate.reply(list(request.messages)))


async def begun(engine: Engine, owner: str = "alice") -> tuple[Conversation, ConversationQueue]:
    """A conversation whose first reply is being written, and its queue."""
    world = world_of(engine, owner)
    talk = world.conversation((await world.conversations.create()).id)
    await talk.ask("one")
    return talk, world.queue(talk.id)


async def settled(engine: Engine, talk: Conversation, *others: Sending) -> list[StoredMessage]:
    """The turns, once nothing is being written or sent any more, by these others neither."""
    async with asyncio.timeout(20):
        while True:
            run = engine.runs.live(talk.id)
            if run is not None:
                await run.wait()
            elif any(sending.is_sending("alice") for sending in (engine.chores.sending, *others)):
                await asyncio.sleep(0)
            else:
                return await talk.messages()


def asked(thread: list[StoredMessage]) -> list[str]:
    return [turn.parts[0].get_text_content() for turn in thread if turn.role == "user"]


async def test_what_waits_is_sent_when_the_reply_ends_one_after_another_with_no_page_open(
    engine: Engine, gate: Gate
) -> None:
    talk, queue = await begun(engine)
    for text in ("two", "three", "four"):
        await queue.add(text)
    assert [one.message.text for one in await queue.list()] == ["two", "three", "four"]
    assert asked(await talk.messages()) == ["one"]
    gate.go.set()
    thread = await settled(engine, talk)
    assert asked(thread) == ["one", "two", "three", "four"]
    assert [turn.status for turn in thread] == ["complete"] * 8
    assert thread[5].parts[0].get_text_content() == "You said: three"
    assert await queue.list() == []


async def test_what_waits_is_sent_in_the_order_that_it_was_put_into(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    two, three, four = [await queue.add(text) for text in ("two", "three", "four")]

    async def order() -> str:
        return " ".join(one.message.text for one in await queue.list())

    for moved, before, expected in (
        (four, two.id, "four two three"),
        (two, "", "four three two"),
        (three, four.id, "three four two"),
        (three, three.id, "three four two"),  # before itself it stays
        (three, "sent meanwhile", "four two three"),
    ):
        await queue.move(moved.id, before)
        assert await order() == expected
    _, other = await begun(engine)
    for stranger in (other, (await begun(engine, "bob"))[1]):
        with pytest.raises(NotFoundError):
            await stranger.move(two.id)
    gate.go.set()
    assert asked(await settled(engine, talk)) == ["one", "four", "two", "three"]


async def test_a_stopped_reply_leaves_the_queue_standing_until_its_owner_sends_it(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    waits = await queue.add("two")
    await queue.add("three")
    await talk.stop()
    assert asked(await settled(engine, talk)) == ["one"]
    assert await engine.stores.queued.due() == []  # nobody opens the owner's workspace for it again and again
    await engine.chores.sending.look(patiently=False)
    assert asked(await settled(engine, talk)) == ["one"]
    gate.go.set()
    await queue.send(waits.id)
    assert asked(await settled(engine, talk)) == ["one", "two", "three"]


async def test_a_reply_that_fails_leaves_the_queue_standing(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    await queue.add("two")
    gate.fails = True
    gate.go.set()
    thread = await settled(engine, talk)
    assert (asked(thread), thread[-1].status) == (["one"], "error")
    assert [one.message.text for one in await queue.list()] == ["two"]
    gate.fails = False
    await talk.regenerate(thread[-1].id)  # once there is a whole reply, what waits for it is sent
    assert asked(await settled(engine, talk)) == ["one", "two"]


async def test_what_is_asked_now_stops_the_reply_and_passes_the_queue(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    await queue.add("later")
    await talk.ask_now("now")
    assert [turn.status for turn in await talk.messages()] == ["complete", "stopped", "complete", "running"]
    assert [one.message.text for one in await queue.list()] == ["later"]
    gate.go.set()
    assert asked(await settled(engine, talk)) == ["one", "now", "later"]


async def test_nothing_is_stopped_for_a_message_that_cannot_be_sent(engine: Engine) -> None:
    talk, _ = await begun(engine)
    with pytest.raises(ParlourError) as caught:
        await talk.ask_now("  ")
    assert caught.value.words_key == "empty_message"
    assert engine.runs.live(talk.id) is not None


async def test_files_stay_with_their_message(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    file = await talk.stores.files.put("dot.png", b"\x89PNG\r\n\x1a\n0000")
    await queue.add("What is it?", [file.id])
    (waiting,) = await queue.list()
    assert [one.name for one in waiting.files] == ["dot.png"]
    gate.go.set()
    thread = await settled(engine, talk)
    assert [one["name"] for one in (thread[2].parts[0].extra or {})["files"]] == ["dot.png"]
    assert (await talk.stores.files.record(file.id)).name == "dot.png"


async def test_what_is_taken_back_is_not_sent_and_what_is_removed_takes_its_file_along(
    engine: Engine, gate: Gate
) -> None:
    talk, queue = await begun(engine)
    files = [await talk.stores.files.put(name, b"words") for name in ("kept.txt", "gone.txt")]
    first, second = await queue.add("two", [files[0].id]), await queue.add("three", [files[1].id])
    assert (await queue.take(first.id)).message.text == "two"
    await queue.remove(second.id)
    assert (await talk.stores.files.record(files[0].id)).name == "kept.txt"  # the composer is about to fetch it
    with pytest.raises(NotFoundError):
        await talk.stores.files.record(files[1].id)
    gate.go.set()
    assert asked(await settled(engine, talk)) == ["one"]
    for gone in (first.id, second.id):
        with pytest.raises(NotFoundError) as caught:
            await queue.take(gone)
        assert caught.value.words_key == "queue_gone"


async def test_two_who_take_one_message_get_it_once(engine: Engine) -> None:
    _, queue = await begun(engine)
    one = await queue.add("two")
    found = await asyncio.gather(queue.take(one.id), queue.take(one.id), return_exceptions=True)
    assert sorted(type(each).__name__ for each in found) == ["NotFoundError", "Waiting"]


async def test_a_message_changed_after_it_was_read_is_not_sent_as_it_was(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    await talk.stop()
    old = await queue.add("teh old words")
    await talk.stores.queued.change(old.id, text="the new words")
    with pytest.raises(ConflictError) as caught:
        await talk.ask(old.text, queued=old)
    assert caught.value.words_key == "queue_changed"
    assert asked(await talk.messages()) == ["one"]
    gate.go.set()
    await queue.send(old.id)
    assert asked(await settled(engine, talk)) == ["one", "the new words"]


async def test_what_comes_as_the_reply_ends_is_sent_all_the_same(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    gate.go.set()
    await settled(engine, talk)
    await queue.add("two")  # written while the reply was still there
    assert asked(await settled(engine, talk)) == ["one", "two"]


async def test_what_comes_as_the_reply_ends_and_cannot_be_sent_waits_with_its_files(
    engine: Engine, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise NoSpaceError("The disk is full.")

    talk, queue = await begun(engine)
    gate.go.set()
    await settled(engine, talk)
    file = await talk.stores.files.put("dot.png", b"\x89PNG\r\n\x1a\n0000")
    with monkeypatch.context() as broken:
        broken.setattr(Conversation, "ask", fails)
        first, second = await queue.add("two", [file.id]), await queue.add("three")
        await queue.move(second.id, first.id)
    waiting = await queue.list()
    assert [one.message.text for one in waiting] == ["three", "two"]
    assert [one.name for one in waiting[1].files] == ["dot.png"]


async def test_several_who_look_at_one_queue_send_each_message_once(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    await queue.add("two")
    gate.go.set()
    others = [Sending(engine.runs, engine.stores.queued, engine.workspaces.open) for _ in range(8)]
    await settled(engine, talk, *others)
    await asyncio.gather(*(other.look(patiently=False) for other in others))
    assert asked(await settled(engine, talk, *others)) == ["one", "two"]
    for other in others:
        await other.__aexit__()


async def test_where_nothing_waits_no_workspace_is_opened_for_a_reply_that_ends(engine: Engine, gate: Gate) -> None:
    opened: list[str] = []

    def opening(owner: str) -> Any:
        opened.append(owner)
        return engine.workspaces.open(owner)

    other = Sending(engine.runs, engine.stores.queued, opening)
    first, _ = await begun(engine)
    second, queue = await begun(engine, "bob")
    await queue.add("two")
    gate.go.set()
    await settled(engine, first, other)
    thread = await settled(engine, second, other)
    while other.is_sending("bob"):
        await asyncio.sleep(0)
    assert len(thread) >= 2
    assert "alice" not in opened
    assert "bob" in opened
    await other.__aexit__()


async def test_only_so_many_wait_and_only_in_ones_own_conversation(engine: Engine) -> None:
    talk, queue = await begun(engine)
    waits = [await queue.add(f"message {number}") for number in range(MOST)][-1]
    with pytest.raises(ParlourError) as caught:
        await queue.add("one more")
    assert caught.value.words_key == "messages_full"
    for stranger in (world_of(engine, "bob").queue(talk.id), (await begun(engine))[1]):
        with pytest.raises(NotFoundError):
            await stranger.take(waits.id)
    with pytest.raises(NotFoundError):
        await world_of(engine, "bob").queue(talk.id).add("not mine")


async def test_a_deleted_conversation_takes_its_queue_along(engine: Engine, gate: Gate) -> None:
    talk, queue = await begun(engine)
    await queue.add("two")
    await talk.delete()
    gate.go.set()
    assert await engine.stores.queued.due() == []
    with pytest.raises(NotFoundError):
        await queue.list()


_DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.workspace.queue import ConversationQueue

async def main():
    async def die(self): os.kill(os.getpid(), signal.SIGKILL)
    async with Engine(Settings.load(home=Path(sys.argv[1])), model=ScriptedModel(*["Yes."] * 9)) as engine:
        async with engine.workspaces.open("alice") as world:
            talk = world.conversation((await world.conversations.create()).id)
            run = await talk.ask("one")
            for text in ("two", "three"):
                await world.queue(talk.id).add(text)
            print(talk.id, flush=True)
            ConversationQueue.send_due = die
            await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_after_a_kill_between_two_replies_the_next_start_sends_what_waits(
    tmp_path: Path, migrated: Callable[[], bytes]
) -> None:
    home = tmp_path / "killed"
    home.mkdir(mode=0o700)
    (home / "parlour.db").write_bytes(migrated())
    child = subprocess.Popen(
        [sys.executable, "-c", _DIES, str(home)], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    said, _ = await asyncio.to_thread(child.communicate)
    assert child.returncode == -signal.SIGKILL
    async with Engine(Settings.load(home=home), model=ScriptedModel(*["Yes."] * 9)) as engine:
        talk = world_of(engine, "alice").conversation(said.strip())
        thread = await settled(engine, talk)
        assert asked(thread) == ["one", "two", "three"]
        assert {turn.status for turn in thread} == {"complete"}
