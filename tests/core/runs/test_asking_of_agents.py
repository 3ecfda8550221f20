"""Asking first where one agent calls another: the user sees the outer call, and a yes counts for what was asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.languages import Lang
from core.llm.request import Stream
from core.messages.message import Message
from core.runs.log import ApprovalAsked
from core.runs.manager import Runs
from core.runs.reply import CallBlock
from core.runs.resumable import ResumableRun
from core.runs.run import Run
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision
from tests.core.runs.note_tools import Note, agent_of, writes

pytestmark = pytest.mark.anyio

YES = Decision(allowed=True)


class Twice(Note):
    """May be written a second time."""

    idempotent = True


def boss(note: Note, *turns: Any, said: tuple[Any, ...] = (writes("hi"), "It is written.")) -> FnCallAgent:
    helper = agent_of(note, *said)
    helper.name = "Helper"
    return FnCallAgent([helper], ScriptedModel(*turns))


async def asked(run: Run, since: float = 0.0) -> CallBlock:
    """The call that waits for the user, asked about after `since` (its deadline is later)."""
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            for call in run.reply().asking:
                if call.asked is not None and call.asked.until > since:
                    return call
    raise AssertionError(run.reply().blocks)


async def test_the_user_is_asked_at_the_outer_call(talk: Any) -> None:
    note = Note()
    run = await talk.ask(boss(note, Say(calls=[("Helper", {"question": "Write hi."})]), "Done."))
    call = await asked(run)
    assert call.name == "Helper"
    assert call.asked is not None
    assert (call.asked.name, call.asked.arguments) == (note.name, {"text": "hi"})
    await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    assert await run.wait() == "complete"
    assert note.written == ["hi"]


@pytest.mark.parametrize("kind", [Note, Twice])
async def test_after_a_restart_the_same_question_waits_and_the_agent_goes_on_where_it_was(talk: Any, kind: Any) -> None:
    note = kind()
    run = await talk.ask(boss(note, Say(calls=[("Helper", {"question": "Write hi."})]), "never said"))
    first = (await asked(run)).asked
    assert first is not None
    await talk.runs.aclose()
    later = Runs(talk.stores)

    async def resume(resumable: ResumableRun) -> None:
        await later.of(resumable.record.owner_id).resume(
            resumable,
            boss(note, "Done.", said=("It is written.",)),  # neither of them comes to its first turn again
            history=[Message("user", "q"), *resumable.messages()],
        )

    assert await later.recover(resume) == 1
    again = later.live(talk.id)
    assert again is not None
    call = await asked(again)
    assert (call.asked, note.written) == (first, [])
    assert sum(isinstance(one.event, ApprovalAsked) for one in again.log.since()) == 1
    await later.of("alice").decide(talk.id, call.call_id, YES)
    assert await again.wait() == "complete"
    assert note.written == ["hi"]


class Count(Note):
    """Writes without being asked about."""

    name = "count"
    writes = False


class Own(FnCallAgent):
    """One whose replies are made by code of its own: it begins anew after a restart."""

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        kwargs.pop("may_have_run", None)
        return super()._stream_reply(messages, lang=lang, **kwargs)


@pytest.mark.parametrize("counts", [True, False])
async def test_an_agent_of_own_code_that_has_done_something_and_waits_is_not_begun_anew_after_a_restart(
    talk: Any, counts: bool
) -> None:
    note, count = Note(), Count()

    def chief(*turns: Any) -> FnCallAgent:
        said = [*([writes("one", tool="count")] if counts else []), writes("hi"), "It is written."]
        helper = Own([note, count], ScriptedModel(*said), name="Helper")
        return FnCallAgent([helper], ScriptedModel(*turns))

    run = await talk.ask(chief(Say(calls=[("Helper", {"question": "Count, then write."})]), "never said"))
    await asked(run)
    await talk.runs.aclose()
    later = Runs(talk.stores)

    async def resume(resumable: ResumableRun) -> None:
        history = [Message("user", "q"), *resumable.messages()]
        await later.of(resumable.record.owner_id).resume(resumable, chief("Done."), history=history)

    assert await later.recover(resume) == 1
    again = later.live(talk.id)
    assert again is not None
    if not counts:  # nothing is lost where nothing was done
        await later.of("alice").decide(talk.id, (await asked(again)).call_id, YES)
    async with asyncio.timeout(10):
        assert await again.wait() == "complete"
    assert not again.questions.waiting
    assert (count.written, note.written) == ((["one"], []) if counts else ([], ["hi"]))
    await later.aclose()
