"""Asking first: what changes something waits for the user, and does nothing without a yes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.errors import BadArgumentsError, ConflictError, NoSpaceError, NotFoundError
from core.messages.message import Message
from core.runs.approvals import Questions
from core.runs.log import ApprovalAsked, ApprovalGiven, LoggedEvent, RunLog
from core.runs.manager import Live, Runs
from core.runs.reply import CallBlock, Reply
from core.runs.resumable import ResumableRun
from core.runs.run import Run, RunOptions
from core.storage.runs import RunStore
from core.testing.script import Reply as Say
from core.tools.approval import Decision, Policy
from tests.core.runs.note_tools import Changing, Held, Note, agent_of, writes

pytestmark = pytest.mark.anyio

YES, NO = Decision(allowed=True), Decision(allowed=False)


async def seen(run: Live, there: Callable[[Reply], bool]) -> Reply:
    """The reply, as soon as it looks like this."""
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            if there(run.reply()):
                return run.reply()
    raise AssertionError(run.reply().blocks)


async def questions(run: Live, count: int = 1) -> list[CallBlock]:
    """The calls that wait for the user, once there are so many."""
    return (await seen(run, lambda reply: len(reply.asking) == count)).asking


def calls(run: Live) -> list[CallBlock]:
    return [block for block in run.reply().blocks if isinstance(block, CallBlock)]


def told(agent: FnCallAgent) -> str:
    """The last thing the model was told."""
    model: Any = agent.llm
    return model.requests[-1].messages[-1].get_text_content()


async def test_nothing_is_written_before_the_user_agrees_and_then_once(talk: Any) -> None:  # P4
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "Done."))
    (call,) = await questions(run)
    assert (call.state, note.written) == ("asked", [])
    assert call.asked is not None
    assert (call.asked.name, call.asked.arguments, call.asked.reason) == ("write_note", {"text": "hi"}, "writes")
    assert set(call.asked.wants) == {"en", "zh"}
    assert 590 < call.asked.until - time.time() <= 600
    await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    assert await run.wait() == "complete"
    assert note.written == ["hi"]
    kinds = [one.event.kind for one in run.log.since()]
    order = ["approval_asked", "approval_given", "tool_started", "tool_finished"]
    assert [kind for kind in kinds if kind in order] == order
    past = await Runs(talk.stores).of("alice").reply(await talk.last())
    assert [(block.state, block.asked) for block in past.blocks if isinstance(block, CallBlock)] == [
        ("done", call.asked)
    ]


async def test_a_refused_call_is_not_run_and_the_model_is_told(talk: Any) -> None:  # P4
    note = Note()
    agent = agent_of(note, writes("hi"), "As you wish.")
    run = await talk.ask(agent)
    (call,) = await questions(run)
    await talk.runs.of("alice").decide(talk.id, call.call_id, NO)
    assert await run.wait() == "complete"
    assert (note.written, calls(run)[0].state) == ([], "refused")
    assert "did not allow" in told(agent)
    assert run.reply().text == "As you wish."


async def test_edited_arguments_are_what_runs_and_what_the_model_sees_from_then_on(talk: Any) -> None:
    note = Note()
    agent = agent_of(note, writes("hi"), "Done.")
    run = await talk.ask(agent)
    (call,) = await questions(run)
    await talk.runs.of("alice").decide(talk.id, call.call_id, Decision(allowed=True, arguments={"text": "ho"}))
    assert await run.wait() == "complete"
    assert note.written == ["ho"]
    assert (calls(run)[0].edited, calls(run)[0].arguments) == ({"text": "ho"}, '{"text": "hi"}')
    stored = (await talk.last()).parts[0].function_call
    model: Any = agent.llm
    (asked_for,) = [m.function_call for m in model.requests[-1].messages if m.function_call]
    assert stored is not None
    assert stored.arguments == asked_for.arguments == '{"text": "ho"}'


async def test_edited_arguments_that_do_not_fit_run_nothing_and_the_question_stays(talk: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "Hm."))
    (call,) = await questions(run)
    with pytest.raises(BadArgumentsError, match="text"):
        await talk.runs.of("alice").decide(talk.id, call.call_id, Decision(allowed=True, arguments={"text": 5}))
    (still,) = await questions(run)
    assert (note.written, still.call_id) == ([], call.call_id)
    await talk.runs.of("alice").decide(talk.id, call.call_id, Decision(allowed=True, arguments={"text": "ho"}))
    assert await run.wait() == "complete"
    assert note.written == ["ho"]


async def test_always_answers_for_the_other_calls_of_the_tool_and_for_later_ones(talk: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("a", "b"), writes("c"), "Done."))
    first, _ = await questions(run, 2)
    asked = await talk.runs.of("alice").decide(talk.id, first.call_id, YES, always=True)
    assert asked.may_be_always
    assert await asyncio.wait_for(run.wait(), 20) == "complete"
    assert sorted(note.written) == ["a", "b", "c"]
    assert calls(run)[2].asked is None


async def test_always_is_not_heeded_for_what_may_destroy(talk: Any) -> None:
    note = Note(destructive=True)
    run = await talk.ask(agent_of(note, writes("a"), writes("b"), "Done."))
    (call,) = await questions(run)
    asked = await talk.runs.of("alice").decide(talk.id, call.call_id, YES, always=True)
    assert (asked.reason, asked.may_be_always) == ("destructive", False)
    (second,) = await questions(run)
    assert second.call_id != call.call_id
    await talk.runs.of("alice").decide(talk.id, second.call_id, NO)
    await run.wait()
    assert note.written == ["a"]
    assert not any(one.event.always for one in run.log.since() if isinstance(one.event, ApprovalGiven))


async def test_of_two_who_decide_at_once_the_first_counts(talk: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "Done."))
    (call,) = await questions(run)
    tabs = [talk.runs.of("alice").decide(talk.id, call.call_id, answer) for answer in (NO, YES)]
    first, second = await asyncio.gather(*tabs, return_exceptions=True)
    assert isinstance(first, ApprovalAsked)
    assert isinstance(second, ConflictError)
    assert second.words_key == "already_decided"
    assert await run.wait() == "complete"
    assert note.written == []


async def test_a_call_that_is_over_needs_no_decision(talk: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("a"), writes("b"), "Done."))
    (call,) = await questions(run)
    await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    (second,) = await seen_next(run, call)
    with pytest.raises(ConflictError, match="already answered"):
        await talk.runs.of("alice").decide(talk.id, call.call_id, NO)
    with pytest.raises(NotFoundError):
        await talk.runs.of("alice").decide(talk.id, "no such call", YES)
    with pytest.raises(NotFoundError):
        await talk.runs.of("bob").decide(talk.id, second.call_id, YES)
    await run.stop()
    with pytest.raises(ConflictError):
        await talk.runs.of("alice").decide(talk.id, second.call_id, YES)
    assert note.written == ["a"]


async def seen_next(run: Run, before: CallBlock) -> list[CallBlock]:
    """The question after this one."""
    reply = await seen(run, lambda reply: bool(reply.asking) and reply.asking[0].call_id != before.call_id)
    return reply.asking


async def test_silence_is_a_refusal_and_the_reply_goes_on(talk: Any) -> None:
    note = Note()
    agent = agent_of(note, writes("hi"), "Then not.")
    run = await talk.ask(agent, terms=RunOptions(asked_for=0.05))
    assert await run.wait() == "complete"
    (given,) = [one.event for one in run.log.since() if isinstance(one.event, ApprovalGiven)]
    assert (given.allowed, given.why, note.written) == (False, "timeout", [])
    result = calls(run)[0].result
    assert result is not None
    assert (result.extra or {})["failed"] == "refused_timeout"
    assert run.reply().text == "Then not."


async def test_the_clock_of_a_run_stands_still_while_it_waits_for_the_user(talk: Any) -> None:
    run = await talk.ask(agent_of(Note(), writes("hi"), "Then not."), terms=RunOptions(seconds=0.5, asked_for=1.0))
    assert await run.wait() == "complete"


async def test_where_two_models_are_compared_what_would_be_asked_is_refused(talk: Any) -> None:  # P4
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "No."), terms=RunOptions(attended=False))
    assert await run.wait() == "complete"
    result = calls(run)[0].result
    assert result is not None
    assert ((result.extra or {})["failed"], note.written) == ("refused_compared", [])


@pytest.mark.parametrize(
    ("policy", "written", "states"),
    [
        (Policy("never"), ["hi"], ["done"]),
        (Policy(allow=("write_*",)), ["hi"], ["done"]),
        (Policy("never", allow=("*",), deny=("write_*",)), [], ["refused"]),
    ],
)
async def test_rules_decide_without_a_question(talk: Any, policy: Policy, written: list[str], states: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "So."), terms=RunOptions(policy))
    assert await run.wait() == "complete"
    assert (note.written, [call.state for call in calls(run)]) == (written, states)
    assert not any(isinstance(one.event, ApprovalAsked) for one in run.log.since())


async def test_stopped_while_it_asks_the_call_is_stopped_at_once(talk: Any) -> None:  # fault case 10
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "Done."))
    (call,) = await questions(run)
    async with asyncio.timeout(180):  # nobody will ever answer
        await talk.runs.of("alice").stop(talk.id)
    assert (run.status, calls(run)[0].state, note.written) == ("stopped", "stopped", [])
    with pytest.raises(ConflictError):
        await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    past = await Runs(talk.stores).of("alice").reply(await talk.last())
    assert [block.state for block in past.blocks if isinstance(block, CallBlock)] == ["stopped"]


async def test_a_yes_is_in_the_table_before_its_tool_starts(talk: Any) -> None:  # fault case 14
    stored: list[str] = []

    class Looking(Note):
        async def call(self, params: Any, **kwargs: Any) -> str:
            stored.extend(row.kind for row in await talk.store.events(run.id))
            return await super().call(params)

    run = await talk.ask(agent_of(Looking(), writes("hi"), "Done."))
    (call,) = await questions(run)
    await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    assert await run.wait() == "complete"
    assert [kind for kind in stored if kind not in {"tool_started", "call_stages"}][-2:] == [
        "approval_asked",
        "approval_given",
    ]


async def test_whoever_decides_may_close_the_page_at_once(talk: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "Done."))
    (call,) = await questions(run)
    deciding = asyncio.create_task(talk.runs.of("alice").decide(talk.id, call.call_id, YES))
    await asyncio.sleep(0)
    deciding.cancel()
    assert await run.wait() == "complete"
    assert note.written == ["hi"]


async def test_calls_that_need_no_answer_work_while_another_waits(talk: Any) -> None:
    held, note = Held(), Note()
    agent = agent_of(note, Say(calls=[("hold_note", '{"text": "x"}'), ("write_note", '{"text": "y"}')]), "Done.")
    agent.function_map["hold_note"] = held
    run = await talk.ask(agent, terms=RunOptions(Policy(allow=("hold_note",))))
    (call,) = await questions(run)
    await held.began.wait()
    assert [block.state for block in calls(run)] == ["running", "asked"]
    held.released.set()
    await seen(run, lambda reply: calls(run)[0].state == "done")
    await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    assert await run.wait() == "complete"


async def test_progress_is_told_at_most_four_times_a_second_and_the_last_always(talk: Any) -> None:
    class Busy(Note):
        async def call(self, params: Any, *, progress: Any, **kwargs: Any) -> str:
            for number in range(1000):
                progress(f"step {number}", number, 1000)
            progress("all but done", float("nan"), None)
            return "ok"

    run = await talk.ask(agent_of(Busy(), writes("hi"), "Done."), terms=RunOptions(Policy("never")))
    assert await run.wait() == "complete"
    steps = [one.event for one in run.log.since() if one.event.kind == "tool_progress"]
    assert 2 <= len(steps) <= 6
    last = calls(run)[0].progress
    assert last is not None
    assert (last.text, last.done, last.total) == ("all but done", None, None)


async def test_a_question_waits_on_when_the_process_ends_in_order(talk: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "never said"))
    (call,) = await questions(run)
    await talk.runs.aclose()
    assert [one.event.kind async for one in run.log.follow()][-1] == "run_finished"
    assert (await talk.last()).status == "running"
    later = Runs(talk.stores)

    async def resume(resumable: ResumableRun) -> None:
        await later.of(resumable.record.owner_id).resume(
            resumable, agent_of(note, "Done."), history=[Message("user", "q"), *resumable.messages()]
        )

    assert await later.recover(resume) == 1
    await later.of("alice").decide(talk.id, call.call_id, YES)
    again = later.live(talk.id)
    assert again is not None
    assert await again.wait() == "complete"
    assert (again.message_id, note.written, (await talk.last()).status) == (run.message_id, ["hi"], "complete")


@pytest.mark.parametrize("said", ["before", "after"])
async def test_a_yes_to_what_a_tool_was_is_none_to_what_it_became(talk: Any, said: str) -> None:  # M4
    run = await talk.ask(agent_of(Note(), writes("hi"), "never said"))
    (call,) = await questions(run)
    await talk.runs.aclose()
    note, later = Changing(), Runs(talk.stores)
    note.changed = said == "before"

    async def resume(resumable: ResumableRun) -> None:
        await later.of(resumable.record.owner_id).resume(
            resumable, agent_of(note, "Done."), history=[Message("user", "q"), *resumable.messages()]
        )

    assert await later.recover(resume) == 1
    again = later.live(talk.id)
    assert again is not None
    if said == "after":
        await note.looked_at.wait()  # as it was when it was asked about, and now it waits
        note.changed = True
        await later.of("alice").decide(talk.id, call.call_id, YES)
    new = await seen(again, lambda reply: any(one.asked and one.asked.reason == "changed" for one in reply.asking))
    assert (new.asking[0].call_id, note.written) == (call.call_id, [])
    await later.of("alice").decide(talk.id, call.call_id, YES)
    assert await again.wait() == "complete"
    assert note.written == ["hi"]


async def test_a_question_about_a_tool_that_is_gone_after_a_restart_waits_for_nobody(talk: Any) -> None:
    run = await talk.ask(agent_of(Note(), writes("hi"), "never said"))
    (call,) = await questions(run)
    await talk.runs.aclose()
    later, other = Runs(talk.stores), Held()

    async def resume(resumable: ResumableRun) -> None:
        turns = agent_of(other, writes("more", tool="hold_note"), "Done.")
        terms = RunOptions(Policy("never"), seconds=0.3)
        await later.of(resumable.record.owner_id).resume(
            resumable, turns, history=[Message("user", "q"), *resumable.messages()], terms=terms
        )

    assert await later.recover(resume) == 1
    again = later.live(talk.id)
    assert again is not None
    await other.began.wait()
    with pytest.raises(ConflictError):
        await later.of("alice").decide(talk.id, call.call_id, YES)
    assert await asyncio.wait_for(again.wait(), 20) == "paused"  # its clock went on
    assert [one.state for one in calls(again)] == ["failed", "stopped"]


async def test_other_arguments_after_a_restart_are_asked_about_anew(talk: Any) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "never said"))
    (call,) = await questions(run)
    await talk.runs.aclose()
    later = Runs(talk.stores)

    async def resume(resumable: ResumableRun) -> None:
        agent = agent_of(note, "Done.")
        agent.before_tool(lambda name, arguments: {"text": "other"})
        history = [Message("user", "q"), *resumable.messages()]
        await later.of(resumable.record.owner_id).resume(resumable, agent, history=history)

    assert await later.recover(resume) == 1
    again = later.live(talk.id)
    assert again is not None
    new = await seen(
        again, lambda reply: any(one.asked and one.asked.arguments != {"text": "hi"} for one in reply.asking)
    )
    assert (new.asking[0].call_id, note.written) == (call.call_id, [])
    await later.of("alice").decide(talk.id, call.call_id, YES)
    assert await again.wait() == "complete"
    assert note.written == ["other"]


async def test_the_answer_to_an_earlier_question_about_a_call_is_none_to_the_later_one(talk: Any) -> None:
    first = ApprovalAsked("c", "n", {}, "writes", {}, [], time.time() + 60)
    earlier = [first, ApprovalGiven("c", True, None, "user"), replace(first, reason="changed")]
    questions = Questions(RunLog(), lambda: asyncio.sleep(0), lambda _: None)
    questions.restore([LoggedEvent(at, 0.0, event) for at, event in enumerate(earlier, 1)], ["c"])
    assert questions.waiting
    await questions.decide("c", NO)
    assert not (await questions.answer("c")).allowed


async def test_a_stop_is_a_stop_also_when_the_process_ends_meanwhile(talk: Any) -> None:
    run = await talk.ask(agent_of(Note(), writes("hi"), "never said"))
    await questions(run)
    await asyncio.gather(run.stop(), run.suspend())
    assert (await talk.last()).status == "stopped"


async def test_a_full_disk_does_not_hold_up_what_was_allowed(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "Done."))
    (call,) = await questions(run)

    async def full(*args: Any, **kwargs: Any) -> None:
        raise NoSpaceError("full")

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "append", full)
        await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
        await seen(run, lambda reply: calls(run)[0].state == "done")
    assert note.written == ["hi"]
    assert await run.wait() == "complete"
    assert [row.kind for row in await talk.store.events(run.id)].count("approval_given") == 1
