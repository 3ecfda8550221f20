"""Runs: started, followed, stopped, failing, outliving whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from core.errors import ConflictError, ModelRefusedError, NoSpaceError, NotFoundError
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.runs import run as run_module
from core.runs.log import RunFinished
from core.runs.manager import Runs
from core.runs.reply import CallBlock, Reply
from core.runs.run import Run, RunOptions
from core.storage.runs import RunStore
from core.testing.script import Reply as Say

pytestmark = pytest.mark.anyio


async def heard(run: Run, text: str) -> None:
    """Wait until the reply contains this."""
    async for _ in run.log.follow():
        if text in run.reply().text:
            return


async def in_table(talk: Any, run: Run, text: str) -> None:
    """Wait until the table contains this."""
    while text not in str(await talk.store.events(run.id)):
        await asyncio.sleep(0.01)


class Stubborn:
    """An agent that does not listen when it is told to stop."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        yield MessageStarted()
        yield TextDelta("so far")
        while not self.over.is_set():
            try:
                await self.over.wait()
            except asyncio.CancelledError:
                continue


class Broken:
    """An agent with a mistake in it."""

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        yield TextDelta("half")
        raise ZeroDivisionError("secret details")


async def test_the_question_and_the_replys_place_are_stored_before_the_model_is_asked(talk: Any, speaker: Any) -> None:
    stored: list[str] = []

    class Looking(speaker):
        async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
            stored.extend(f"{turn.role} {turn.status}" for turn in await talk.thread())
            async for event in super().stream(messages):
                yield event

    run = await talk.ask(Looking("Hi."))
    assert await run.wait() == "complete"
    assert stored == ["user complete", "assistant running"]


async def test_a_reply_is_stored_whole_and_reads_the_same_afterwards(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(text="Hello there.", reasoning="hm", usage=(3, 4))), title="Greeting")
    assert await run.wait() == "complete"
    turn = await talk.last()
    assert [m.get_text_content() or m.reasoning_content for m in turn.parts] == ["hm", "Hello there."]
    assert (turn.status, turn.run_id, turn.id) == ("complete", run.id, run.message_id)
    record = await talk.store.get(run.id)
    assert record.usage is not None
    assert record.usage.total_tokens == 7
    assert talk.runs.live(talk.id) is None
    past = await Runs(talk.stores).of("alice").reply(turn)
    assert [(b.kind, getattr(b, "text", "")) for b in past.blocks] == [
        (b.kind, getattr(b, "text", "")) for b in run.reply().blocks
    ]
    assert past.status == "complete"
    assert (await talk.talks.get(talk.id)).title == "Greeting"


async def test_a_run_goes_on_when_nobody_follows_and_a_late_reader_gets_all_of_it(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(text="one two three four five", pace=0.02)))
    first = run.log.follow()
    await anext(first)
    await first.aclose()
    await heard(run, "three")
    late = Reply([one async for one in run.log.follow()])
    assert (late.text, late.status) == ("one two three four five", "complete")


async def test_the_table_is_never_far_behind(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(text="one two " + "three " * 200, pace=0.3)))  # a minute
    await heard(run, "two")
    async with asyncio.timeout(30):
        await in_table(talk, run, "two")
    assert (await Runs(talk.stores, worker="other").of("alice").reply(await talk.last())).status == "running"
    await run.stop()


async def test_text_is_joined_in_the_table_and_none_of_it_is_missing(talk: Any, speaker: Any) -> None:
    said = "".join(f"{number} " for number in range(150))
    run = await talk.ask(speaker(Say(text=said, pace=0.005)))
    await run.wait()
    stored = await talk.store.events(run.id)
    assert 3 < len(stored) < 75
    assert (await Runs(talk.stores).of("alice").reply(await talk.last())).text == said


async def test_stop_ends_the_source_at_once_and_keeps_what_there_is(talk: Any, speaker: Any) -> None:
    agent = speaker(Say(text="one " + "more " * 400, pace=0.3))
    run = await talk.ask(agent)
    await heard(run, "one")
    async with asyncio.timeout(180):  # to its end it would take two minutes
        await talk.runs.of("alice").stop(talk.id)
    assert agent.model.closed == 1
    turn = await talk.last()
    assert (turn.status, run.status) == ("stopped", "stopped")
    assert turn.parts[0].get_text_content().startswith("one")
    assert await talk.ask(speaker("next"))


async def test_stop_before_the_first_word_works_too(talk: Any, speaker: Any) -> None:
    agent = speaker(Say(hang=True))
    run = await talk.ask(agent)
    await talk.runs.of("alice").stop(talk.id)
    assert (run.status, (await talk.last()).parts) == ("stopped", ())


async def test_what_does_not_listen_is_left_behind(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.runs.run._CLOSES_WITHIN", 0.1)
    agent = Stubborn()
    run = await talk.ask(agent)
    await heard(run, "so far")
    try:
        async with asyncio.timeout(180):
            await run.stop()
        assert (await talk.last()).status == "stopped"
    finally:
        agent.over.set()


async def test_a_second_question_is_refused_while_the_first_is_answered(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(hang=True)))
    with pytest.raises(ConflictError) as caught:
        await talk.ask(speaker("no"))
    assert caught.value.words_key == "busy"
    await run.stop()
    assert len(await talk.thread()) == 2


async def test_two_questions_at_the_same_moment_give_one_run(talk: Any, speaker: Any) -> None:
    started = await asyncio.gather(
        *(talk.ask(speaker(Say(text="Hi.", delay=0.05)), f"{n}?") for n in range(5)), return_exceptions=True
    )
    (run,) = [one for one in started if isinstance(one, Run)]
    assert {type(one) for one in started if one is not run} == {ConflictError}
    assert await run.wait() == "complete"
    assert len(await talk.thread()) == 2


async def test_an_error_is_kept_with_its_remedy_and_the_partial_reply(talk: Any) -> None:
    class Refused:
        async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
            yield TextDelta("half")
            raise ModelRefusedError(code="401", message="no such key", hint="Check the key.")

    run = await talk.ask(Refused())
    assert await run.wait() == "error"
    turn = await talk.last()
    assert (turn.status, turn.parts[0].get_text_content()) == ("error", "half")
    past = await Runs(talk.stores).of("alice").reply(turn)
    assert past.error == run.error
    assert past.error is not None
    assert (past.error["key"], past.error["hint"]) == ("model_refused", "Check the key.")
    assert past.error["details"]["code"] == "401"


async def test_an_agent_that_would_end_the_program_ends_its_run_alone(talk: Any) -> None:
    class Leaves:
        async def stream(self, messages: list[Message], **kwargs: Any) -> Any:
            yield TextDelta("Bye")
            raise SystemExit(3)

    run = await talk.ask(Leaves())
    assert await run.wait() == "error"
    assert run.reply().text == "Bye"


async def test_what_nobody_foresaw_is_logged_and_told_without_details(
    talk: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = await talk.ask(Broken())
    assert await run.wait() == "error"
    assert run.error is not None
    assert run.error["key"] == "unexpected"
    assert "secret details" not in str(run.error)
    assert "ZeroDivisionError" in caplog.text
    assert (await talk.last()).parts[0].get_text_content() == "half"


async def test_a_turn_has_an_end_even_if_the_model_has_none(talk: Any, speaker: Any) -> None:
    runs = Runs(talk.stores, limit=0.2)
    question = Message("user", "q")
    agent = speaker(Say(text="word " * 1000, pace=0.05))
    run = await runs.of("alice").start(talk.id, agent, user=question, parent_id=None, history=[question])
    assert await run.wait() == "paused"
    assert run.error is not None
    assert run.error["key"] == "time_limit"
    assert agent.model.closed == 1
    assert ((await talk.last()).status, run.reply().status) == ("paused", "paused")


async def test_the_model_calls_of_a_turn_may_write_only_so_much_together(talk: Any) -> None:
    class Talkative:
        async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
            while True:  # as an agent does whose model asks for a tool again and again
                yield MessageStarted()
                yield ReasoningDelta("so")
                yield CallStarted("a", "look")
                yield CallDelta("a", "{}")
                yield TextDelta("a word")
                yield MessageFinished("calls")

    question = Message("user", "q")
    terms = RunOptions(letters=25)
    run = await talk.runs.of("alice").start(
        talk.id, Talkative(), user=question, parent_id=None, history=[question], terms=terms
    )
    assert await run.wait() == "paused"
    assert run.error is not None
    assert (run.error["key"], run.error["details"]) == ("length_limit", {"characters": "25"})
    assert run.reply().text == "a word\n\na word"


async def test_a_call_that_was_cut_off_has_a_result_that_says_so(talk: Any) -> None:
    class Calling:
        async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
            yield MessageStarted()
            yield CallStarted("a", "slow")
            yield CallDelta("a", '{"x": 1}')
            yield MessageFinished("calls")
            yield ToolStarted("a")
            await asyncio.Event().wait()

    run = await talk.ask(Calling())
    async for one in run.log.follow():
        if isinstance(one.event, ToolStarted):
            break
    await run.stop()
    call, result = (await talk.last()).parts
    assert call.function_call is not None
    assert (result.role, result.name, result.extra) == ("function", "slow", {"function_id": "a", "failed": "stopped"})
    (block,) = run.reply().blocks
    assert isinstance(block, CallBlock)
    assert block.state == "stopped"


async def test_whoever_asked_may_go_and_the_answer_comes_all_the_same(talk: Any, speaker: Any) -> None:
    question = Message("user", "q")
    starting = talk.runs.of("alice").start(talk.id, speaker("Hi."), user=question, parent_id=None, history=[question])
    asking = asyncio.create_task(starting)
    await asyncio.sleep(0)
    asking.cancel()
    run = await asking  # what is stored is known to be stored: nobody deletes its files
    assert await run.wait() == "complete"
    assert [turn.status for turn in await talk.thread()] == ["complete", "complete"]


class Untidy:
    """An agent whose tool brings along what no table can keep."""

    def __init__(self, extra: dict[str, Any]) -> None:
        self._extra = extra

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        yield CallStarted("1", "t")
        yield MessageFinished("calls")
        yield ToolFinished("1", Message("function", "found", name="t", extra=self._extra))
        yield TextDelta("Done.")
        yield MessageFinished("stop")


async def test_what_is_no_json_is_kept_as_text(talk: Any) -> None:
    run = await talk.ask(Untidy({"by": ZeroDivisionError("x")}))
    assert await run.wait() == "complete"
    assert [part.get_text_content() for part in (await talk.last()).parts] == ["", "found", "Done."]


async def test_a_reply_that_cannot_be_stored_ends_all_the_same_and_the_next_one_works(talk: Any) -> None:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    run = await talk.ask(Untidy(circle))
    async with asyncio.timeout(60):
        await run.wait()
    assert (await talk.last()).status == "error"
    assert await (await talk.ask(Untidy({}))).wait() == "complete"


async def test_runs_opened_beside_others_in_one_process_leave_theirs_alone(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(hang=True)))
    assert await Runs(talk.stores).recover() == 0
    assert (await talk.last()).status == "running"
    await run.stop()


@pytest.mark.parametrize(("first", "second"), [("stopped", "interrupted"), ("interrupted", "stopped")])
async def test_of_two_reasons_to_stop_the_first_one_counts(talk: Any, speaker: Any, first: Any, second: Any) -> None:
    run = await talk.ask(speaker(Say(hang=True)))
    async with asyncio.timeout(180):
        await asyncio.gather(run.stop(first), run.stop(second))
    assert ((await talk.last()).status, run.status) == (first, first)


async def test_closing_keeps_partial_replies_as_interrupted(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(text="one two three", pace=0.3)))
    await heard(run, "one")
    await talk.runs.aclose()
    turn = await talk.last()
    assert turn.status == "interrupted"
    assert turn.parts[0].get_text_content().startswith("one")


async def test_somebody_elses_run_does_not_exist(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(hang=True)))
    assert await talk.runs.of("alice").get(run.id) is run
    assert talk.runs.of("alice").live_conversations() == {talk.id}
    assert talk.runs.of("bob").live_conversations() == set()
    assert talk.runs.of("alice").live(talk.id) is run
    assert talk.runs.of("bob").live(talk.id) is None
    with pytest.raises(NotFoundError):
        await talk.runs.of("bob").get(run.id)
    with pytest.raises(NotFoundError):
        await talk.runs.of("bob").stop(talk.id)
    with pytest.raises(NotFoundError):
        await talk.runs.of("bob").reply(await talk.last())
    with pytest.raises(NotFoundError):
        await talk.runs.of("bob").start(talk.id, speaker(Say(text="me")), user=None, parent_id=None, history=[])
    assert run.status == "running"


async def test_a_reply_that_was_read_by_its_owner_is_not_shown_to_another(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker("private"))
    await run.wait()
    turn = await talk.last()
    assert (await talk.runs.of("alice").reply(turn)).text == "private"
    with pytest.raises(NotFoundError):
        await talk.runs.of("bob").reply(turn)


async def test_changes_are_told_at_the_start_and_at_the_end(talk: Any, speaker: Any) -> None:
    told: list[tuple[str, str, bool]] = []
    leave = talk.runs.on_change(lambda owner, cid: told.append((owner, cid, talk.runs.live(cid) is not None)))
    await (await talk.ask(speaker("Hi."))).wait()
    leave()
    await (await talk.ask(speaker("Hi."))).wait()
    assert told == [("alice", talk.id, True), ("alice", talk.id, False)]


async def test_on_a_full_disk_the_reply_is_shown_says_so_and_is_stored_when_there_is_space(
    talk: Any, speaker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def limit(pages: int) -> None:
        await talk.database.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar())

    run = await talk.ask(speaker(Say(text=["x" * 200_000, " end"], delay=0.1)))
    await limit(1)
    assert await run.wait() == "error"
    assert run.error is not None
    assert run.error["key"] == "no_space"
    assert run.reply().text.endswith(" end")
    assert await talk.runs.of("alice").reply(await talk.last()) is run.reply()  # not what the table still says
    assert Reply(await talk.runs.of("alice").events(run.id)).text.endswith(" end")  # for exports
    with pytest.raises(NoSpaceError):
        await talk.ask(speaker("still full"))
    await limit(1_000_000)
    again = await talk.ask(speaker("works again"))
    assert await again.wait() == "complete"
    kept = (await talk.thread())[1]
    assert kept.parts[0].get_text_content().endswith(" end")
    assert (kept.status, run.status, run.error) == ("complete", "complete", None)
    assert (await talk.runs.of("alice").reply(kept)).status == "complete"


async def test_a_reply_that_could_not_be_stored_at_once_is_stored_and_shown_as_it_ended(
    talk: Any, speaker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, locked = RunStore.finish, [True, True]

    async def finished(*args: Any, **kwargs: Any) -> None:
        if locked:
            locked.pop()
            raise ConflictError("The database is busy.", key="storage_busy")
        await finish(*args, **kwargs)

    monkeypatch.setattr(RunStore, "finish", finished)
    monkeypatch.setattr(run_module, "_TRY_AGAIN_AFTER", 0.01)
    told: list[str] = []
    whole = asyncio.Event()

    def changed(owner: str, conversation_id: str) -> None:
        told.append(run.status)
        if run.stored:
            whole.set()

    run = await talk.ask(speaker("All of it."))
    talk.runs.on_change(changed)
    assert await run.wait() == "error"
    assert (run.error or {})["key"] == "storage_busy"
    async with asyncio.timeout(10):
        await whole.wait()
    assert told == ["error", "complete"]  # whoever shows it is told twice
    kept = await talk.last()
    assert (kept.status, kept.parts[0].get_text_content()) == ("complete", "All of it.")
    shown = await talk.runs.of("alice").reply(kept)
    assert (shown.status, shown.error, shown.text) == ("complete", None, "All of it.")
    assert await (await talk.ask(speaker("And more."))).wait() == "complete"


async def test_a_conversation_deleted_in_the_middle_ends_its_run(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker(Say(text="word " * 10_000, pace=0.01)))
    await heard(run, "word")
    await talk.talks.delete(talk.id)
    async with asyncio.timeout(60):  # all of it would take longer
        assert await run.wait() == "stopped"
    assert [one.event async for one in run.log.follow()][-1] == RunFinished("stopped")


async def test_a_turn_that_no_run_wrote_can_be_read_too(talk: Any) -> None:
    parts = [
        Message("assistant", "", reasoning_content="hm"),
        Message("assistant", "", function_call={"name": "f", "arguments": "{}"}, extra={"function_id": "1"}),
        Message("function", "ok", name="f", extra={"function_id": "1"}),
        Message("assistant", "Done."),
    ]
    turn = await talk.talks.add_message(talk.id, "assistant", parts, None)
    reply = await talk.runs.of("alice").reply(turn)
    assert [block.kind for block in reply.blocks] == ["reasoning", "call", "text"]
    assert (reply.status, reply.text) == ("complete", "Done.")
