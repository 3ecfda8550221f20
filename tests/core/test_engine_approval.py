"""Asking first through the engine: rules and allowances of owners, restarts, calls made again, limits."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import ConflictError, NotFoundError
from core.messages.events import CallDelta, CallStarted, Event, MessageFinished, MessageStarted
from core.messages.message import Usage
from core.models.model_name import INSTALLED
from core.runs.rows import logged_of
from core.runs.run import Run
from core.settings import Settings
from core.storage.owner_settings import OwnerSettings
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.toolbox.toolbox import OwnerTools
from core.tools.approval import Policy
from core.tools.base import BaseTool
from tests.core.runs.note_tools import Note, writes
from tests.core.runs.test_asking import calls, questions
from tests.core.talks import asked_here, talk_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def note(monkeypatch: pytest.MonkeyPatch) -> Note:
    """The one tool of everybody."""
    tool = Note()

    async def tools(self: OwnerTools, conversation_id: str, **kwargs: Any) -> list[BaseTool]:
        return [tool]

    monkeypatch.setattr(OwnerTools, "for_model", tools)
    return tool


@pytest.fixture
async def open_engine(tmp_path: Path, note: Note, anyio_backend: str) -> AsyncIterator[Any]:
    """Opens engines with a script; all are closed at the end."""
    engines: list[Engine] = []

    async def opened(*turns: Any, home: str = "home", **options: Any) -> Engine:
        engine = Engine(Settings.load(home=tmp_path / home, **options), model=ScriptedModel(*turns))
        engines.append(await engine.__aenter__())
        return engine

    yield opened
    for engine in engines:
        await engine.__aexit__(None, None, None)


def priced(cost: float, text: str) -> list[Event]:
    """A turn that writes a note and costs something."""
    usage = Usage(prompt_tokens=1, completion_tokens=1, total_tokens=2, cost=cost)
    call = [CallStarted(text, "write_note"), CallDelta(text, json.dumps({"text": text}))]
    return [MessageStarted(), *call, MessageFinished("calls", usage)]


async def ask(engine: Engine, talk_id: str = "") -> Run:
    talk_id = talk_id or (await engine.stores.of("alice").conversations.create()).id
    return await asked_here(engine, "alice", talk_id, "Write it down.")


async def test_two_models_side_by_side_are_asked_about_nothing_and_write_nothing(open_engine: Any, note: Note) -> None:
    engine = await open_engine(writes("mine"), writes("mine too"), "Done.")
    talk = talk_of(engine, "alice", (await engine.stores.of("alice").conversations.create()).id)
    await engine.stores.of("alice").allowances.add(talk.id, note.full_name)  # but for one reply at a time
    await talk.choose_second_model(INSTALLED)
    run = await talk.ask("Write it down.")
    assert await run.wait() == "complete"
    async with asyncio.timeout(30):
        while (now := await talk.comparing.now()) is None or now.second is None or now.second.status == "running":
            await asyncio.sleep(0)
    assert note.written == []
    assert "approval_asked" not in {one.event.kind for one in run.log.since()}


def choices(engine: Engine) -> OwnerSettings:
    return engine.stores.of("alice").settings


async def test_always_in_this_chat_holds_in_this_chat_alone(open_engine: Any, note: Note) -> None:
    engine = await open_engine(writes("a"), "1", writes("b"), "2", writes("c"), "3")
    run = await ask(engine)
    (call,) = await questions(run)
    await talk_of(engine, "alice", run.conversation_id).decide(call.call_id, True, always=True)
    assert await run.wait() == "complete"
    assert (await talk_of(engine, "alice", run.conversation_id).policy()).lasting == ("write_note",)
    again = await ask(engine, run.conversation_id)
    assert await again.wait() == "complete"
    assert note.written == ["a", "b"]
    other = await ask(engine)
    (asked,) = await questions(other)
    await talk_of(engine, "alice", other.conversation_id).decide(asked.call_id, False)
    assert await other.wait() == "complete"
    assert note.written == ["a", "b"]


async def test_for_what_may_destroy_always_is_not_kept(open_engine: Any, note: Note) -> None:
    note.destructive = True
    engine = await open_engine(writes("a"), "1")
    run = await ask(engine)
    (call,) = await questions(run)
    await talk_of(engine, "alice", run.conversation_id).decide(call.call_id, True, always=True)
    assert await run.wait() == "complete"
    assert await talk_of(engine, "alice", run.conversation_id).policy() == Policy()


async def test_the_rules_of_an_owner_are_the_rules_of_the_run(open_engine: Any, note: Note) -> None:
    engine = await open_engine(writes("a"), "1", writes("b"), "2")
    await choices(engine).change("approval", lambda _: {"mode": "never"})
    assert await (await ask(engine)).wait() == "complete"
    await choices(engine).change("approval", lambda _: {"mode": "never", "deny": ["write_*"], "ask": "nonsense"})
    run = await ask(engine)
    assert await run.wait() == "complete"
    assert (note.written, calls(run)[0].state) == (["a"], "refused")


@pytest.mark.parametrize("nonsense", [{"mode": "whatever"}, "never", ["never"], {"mode": None}])
async def test_rules_that_make_no_sense_ask_about_everything(open_engine: Any, nonsense: Any) -> None:
    engine = await open_engine("x")
    await choices(engine).change("approval", lambda _: nonsense)
    assert (await engine.toolbox.of("alice").rules.policy()).mode == "always"
    assert (await engine.toolbox.of("bob").rules.policy()).mode == "writes"


async def test_a_rule_that_forbids_holds_where_it_is_no_list(open_engine: Any) -> None:
    engine = await open_engine("x")
    await choices(engine).change("approval", lambda _: {"deny": "mcp:*", "ask": "storage", "allow": "*"})
    assert await engine.toolbox.of("alice").rules.policy() == Policy(deny=("mcp:*",), ask=("storage",))


async def test_nobody_decides_in_somebody_elses_conversation(open_engine: Any, note: Note) -> None:
    engine = await open_engine(writes("a"), "1")
    run = await ask(engine)
    (call,) = await questions(run)
    for attempt in (
        talk_of(engine, "bob", run.conversation_id).decide(call.call_id, True),
        talk_of(engine, "bob", run.conversation_id).policy(),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    await talk_of(engine, "alice", run.conversation_id).decide(call.call_id, False)
    await run.wait()
    with pytest.raises(ConflictError, match="already answered"):
        await talk_of(engine, "alice", run.conversation_id).decide(call.call_id, True)
    assert note.written == []


async def test_a_conversation_that_asks_can_be_deleted(open_engine: Any, note: Note) -> None:
    engine = await open_engine(writes("a"), "1")
    run = await ask(engine)
    (call,) = await questions(run)
    await talk_of(engine, "alice", run.conversation_id).delete()
    assert run.status == "stopped"
    with pytest.raises(NotFoundError):
        await talk_of(engine, "alice", run.conversation_id).decide(call.call_id, True)
    assert note.written == []


async def killed_copy(engine: Engine, run: Run, tmp_path: Path) -> None:
    """The data folder as a kill at this moment would leave it, in `copy`."""
    table = engine.stores.of("alice").runs
    async with asyncio.timeout(10):
        while "approval_asked" not in [one.event.kind for one in logged_of(await table.events(run.id))]:
            await asyncio.sleep(0.01)
    shutil.copytree(tmp_path / "home", tmp_path / "copy")


async def test_after_a_restart_the_engine_asks_on_in_the_same_message(
    open_engine: Any, note: Note, tmp_path: Path
) -> None:  # fault case 14
    engine = await open_engine(writes("a"), "never said")
    run = await ask(engine)
    (call,) = await questions(run)
    await killed_copy(engine, run, tmp_path)
    await run.stop()
    restarted = await open_engine("Written.", home="copy")
    again = restarted.runs.live(run.conversation_id)
    assert again is not None
    assert (again.id, again.message_id) == (run.id, run.message_id)
    assert [one.call_id for one in again.reply().asking] == [call.call_id]
    talk = talk_of(restarted, "alice", run.conversation_id)
    await talk.decide(call.call_id, True, {"text": "b"})
    assert await again.wait() == "complete"
    question, reply = await restarted.stores.of("alice").conversations.thread(run.conversation_id)
    assert (note.written, reply.status, reply.id) == (["b"], "complete", run.message_id)
    assert [part.role for part in reply.parts] == ["assistant", "function", "assistant"]
    heard = restarted.model.requests[0].messages
    assert [message.role for message in heard if message.role != "system"] == ["user", "assistant", "function"]
    assert question.parts[0].get_text_content() == "Write it down."


async def test_a_reply_that_waited_when_the_engine_was_closed_can_be_continued(open_engine: Any, note: Note) -> None:
    engine = await open_engine(writes("a"), "I was cut off.")
    run = await ask(engine)
    await questions(run)
    await run.stop()
    again = await talk_of(engine, "alice", run.conversation_id).continue_(run.message_id)
    assert await again.wait() == "complete"
    assert (note.written, again.reply().text) == ([], "I was cut off.")
    assert [call.state for call in calls(again)] == ["failed"]


async def test_a_call_is_made_again_with_other_arguments_and_earlier_results_are_kept(
    open_engine: Any, note: Note
) -> None:
    note.writes = False
    engine = await open_engine(writes("one"), writes("two", "three"), writes("four"), "All.", "Other.")
    run = await ask(engine)
    assert await run.wait() == "complete"
    second = calls(run)[1]
    again = await talk_of(engine, "alice", run.conversation_id).run_again(run.message_id, second.call_id, {"text": "2"})
    assert await again.wait() == "complete"
    assert sorted(note.written[1:3]) == ["three", "two"], "called at the same time"
    assert [note.written[0], *note.written[3:]] == ["one", "four", "2"]
    shown = [(json.loads(call.arguments)["text"], call.state) for call in calls(again)]
    assert shown == [("one", "done"), ("2", "done"), ("three", "done")]
    assert again.reply().text == "Other."
    (_, reply) = await engine.stores.of("alice").conversations.thread(run.conversation_id)
    assert reply.id == again.message_id
    siblings = await engine.stores.of("alice").conversations.siblings(reply.id)
    assert [turn.id for turn in siblings] == [run.message_id, again.message_id]
    texts = [message.get_text_content() for message in engine.model.requests[-1].messages if message.role == "function"]
    assert sorted(texts) == ["written: 2", "written: one", "written: three"]
    past = await engine.runs.of("alice").reply(reply)
    assert past.text == "Other."


async def test_a_call_made_again_asks_like_any_other(open_engine: Any, note: Note) -> None:  # P4
    engine = await open_engine(writes("one"), "First.", "Second.")
    run = await ask(engine)
    (call,) = await questions(run)
    await talk_of(engine, "alice", run.conversation_id).decide(call.call_id, False)
    await run.wait()
    again = await talk_of(engine, "alice", run.conversation_id).run_again(run.message_id, call.call_id, {"text": "2"})
    (asked,) = await questions(again)
    assert asked.asked is not None
    assert (asked.asked.arguments, note.written) == ({"text": "2"}, [])
    await talk_of(engine, "alice", run.conversation_id).decide(asked.call_id, True)
    assert await again.wait() == "complete"
    assert (note.written, again.reply().text) == (["2"], "Second.")


async def test_only_a_call_of_ones_own_reply_is_made_again(open_engine: Any) -> None:
    engine = await open_engine("Nothing to call.")
    run = await ask(engine)
    await run.wait()
    for owner, message_id, call_id in (
        ("alice", run.message_id, "none"),
        ("bob", run.message_id, "none"),
        ("alice", "no such message", "none"),
    ):
        with pytest.raises(NotFoundError):
            await talk_of(engine, owner, run.conversation_id).run_again(message_id, call_id, {})


async def test_a_reply_that_has_used_its_model_calls_pauses_and_goes_on_with_as_many(  # R3
    open_engine: Any, note: Note
) -> None:
    note.writes = False
    turns = [writes(str(number)) for number in range(5)]
    engine = await open_engine(*turns, "Done.", max_iteration=3)
    run = await ask(engine)
    assert await run.wait() == "paused"
    assert run.error is not None
    assert (run.error["key"], run.error["details"], note.written) == ("call_limit", {"calls": 3}, ["0", "1", "2"])
    stored = (await engine.stores.of("alice").conversations.thread(run.conversation_id))[-1]
    assert (stored.status, (await engine.runs.of("alice").reply(stored)).status) == ("paused", "paused")
    again = await talk_of(engine, "alice", run.conversation_id).continue_(run.message_id)
    assert await again.wait() == "complete"
    assert (note.written, again.reply().text) == (["0", "1", "2", "3", "4"], "Done.")
    assert len(calls(again)) == 5


async def test_a_reply_that_has_cost_enough_pauses(open_engine: Any, note: Note) -> None:
    note.writes = False
    engine = await open_engine(priced(0.02, "a"), priced(0.04, "b"), "Done.", reply_cost=0.05)
    run = await ask(engine)
    assert await run.wait() == "paused"
    assert run.error is not None
    assert (run.error["key"], note.written) == ("cost_limit", ["a", "b"])
    again = await talk_of(engine, "alice", run.conversation_id).continue_(run.message_id)
    assert await again.wait() == "complete"


async def test_a_reply_that_has_taken_its_time_pauses_with_what_it_has(open_engine: Any) -> None:
    # A busy machine needs a second to begin.
    engine = await open_engine(Say(text="word " * 1000, pace=0.02), reply_seconds=2)
    run = await ask(engine)
    assert await run.wait() == "paused"
    assert run.error is not None
    assert run.error["key"] == "time_limit"
    assert run.reply().text.startswith("word")
