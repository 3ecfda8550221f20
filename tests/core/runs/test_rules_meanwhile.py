"""What an owner lets tools do, changed while a reply is made: the next call is decided by what stands then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.errors import NotFoundError, StorageError
from core.messages.message import Message
from core.runs.approvals import Questions
from core.runs.log import RunLog
from core.runs.manager import Runs
from core.runs.resumable import ResumableRun
from core.runs.run import Run
from core.settings import Settings
from core.storage.owner_settings import OwnerSettings
from core.testing.scripted_model import ScriptedModel
from core.toolbox.choices import Rules as RulesOf
from core.tools.approval import ApprovalRequest, Decision, Policy
from core.workspace.conversation import Conversation
from core.workspace.services import OwnerServices
from tests.core.runs.note_tools import Changing, Held, Note, agent_of, writes

pytestmark = pytest.mark.anyio


async def waiting(run: Run) -> str:
    """The id of the call that waits for the user."""
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            if run.reply().asking:
                return run.reply().asking[0].call_id
    raise AssertionError(run.reply().blocks)


async def held_up(run: Run, tool: str) -> str:
    """The id of the call of a tool that waits for the user."""
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            if found := [call.call_id for call in run.reply().asking if call.name == tool]:
                return found[0]
    raise AssertionError(run.reply().blocks)


class Rules:
    """A conversation with what its rules are made of alone, and the choices of its owner."""

    def __init__(self, talk: Any, owner: str = "alice") -> None:
        self.choices = talk.stores.of(owner).settings
        self.services: Any = SimpleNamespace(
            settings=Settings(),
            toolbox=SimpleNamespace(of=lambda owner: SimpleNamespace(rules=RulesOf(talk.stores.of(owner).settings))),
            stores=talk.stores,
            runs=talk.runs,
            intake=None,
            remembering=None,
            titles=SimpleNamespace(of=lambda stores: None),
            agents=None,
            models=SimpleNamespace(of=lambda owner: None),
            code=SimpleNamespace(of=lambda owner: None),
        )
        self.talk = Conversation(OwnerServices(self.services, owner), talk.id)


@pytest.fixture
def rules(talk: Any) -> Rules:
    return Rules(talk)


async def begun(talk: Any, rules: Rules, agent: Any) -> Run:
    return await talk.ask(agent, terms=await rules.talk.terms())


async def test_a_rule_set_while_a_reply_is_made_holds_for_its_next_call(talk: Any, rules: Rules) -> None:
    await rules.choices.change("approval", lambda _: {"mode": "never"})
    held = Held()
    run = await begun(talk, rules, agent_of(held, writes("1", tool=held.name), writes("2", tool=held.name), "Done."))
    await held.began.wait()
    await rules.choices.change("approval", lambda _: {"mode": "never", "deny": [held.name]})
    held.released.set()
    assert await run.wait() == "complete"
    assert held.written == ["1"]


async def test_a_rule_set_while_the_user_thinks_outranks_the_answer(talk: Any, rules: Rules) -> None:
    note = Note()
    run = await begun(talk, rules, agent_of(note, writes("1"), "Not done."))
    call = await waiting(run)
    await rules.choices.change("approval", lambda _: {"deny": [note.name]})
    await rules.talk.decide(call, allowed=True)
    assert await run.wait() == "complete"
    assert note.written == []


async def test_a_tool_that_is_let_run_now_is_not_asked_about_in_the_same_reply(talk: Any, rules: Rules) -> None:
    note = Note()
    run = await begun(talk, rules, agent_of(note, writes("1"), writes("2"), "Done."))
    call = await waiting(run)
    await rules.choices.change("approval", lambda _: {"allow": [note.name]})
    await rules.talk.decide(call, allowed=True)
    assert await run.wait() == "complete"
    assert note.written == ["1", "2"]


async def test_what_always_allowed_is_seen_and_taken_back_for_the_reply_that_is_being_made(
    talk: Any, rules: Rules
) -> None:
    held = Held()
    agent = agent_of(held, writes("1", tool=held.name), writes("2", tool=held.name), "Done.")
    run = await begun(talk, rules, agent)
    await rules.talk.decide(await waiting(run), allowed=True, always=True)
    assert await rules.talk.allowed() == [held.name]
    await held.began.wait()
    await rules.talk.revoke_allowance(held.name)
    assert await rules.talk.allowed() == []
    held.released.set()
    call = await waiting(run)
    await rules.talk.decide(call, allowed=False)
    assert await run.wait() == "complete"
    assert held.written == ["1"]
    assert await rules.talk.policy() == Policy()


async def test_where_the_rules_cannot_be_read_nothing_is_done(
    talk: Any, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rules.choices.change("approval", lambda _: {"mode": "never"})
    held = Held()
    turns = [writes("1", tool=held.name), writes("2", tool=held.name), "Not done."]
    run = await begun(talk, rules, agent_of(held, *turns))
    await held.began.wait()

    async def broken(*_: object) -> None:
        raise StorageError("The disk is gone.")

    monkeypatch.setattr(OwnerSettings, "get", broken)
    held.released.set()
    assert await run.wait() == "complete"
    assert held.written == ["1"]


async def test_somebody_elses_conversation_shows_and_loses_nothing(talk: Any) -> None:
    mallory = Rules(talk, "mallory").talk
    for work in (mallory.allowed(), mallory.revoke_allowance("write_note")):
        with pytest.raises(NotFoundError):
            await work


async def test_always_that_is_taken_back_before_another_call_starts_lets_that_one_wait_again() -> None:
    kept = asyncio.Event()
    asked = Questions(RunLog(), kept.wait, lambda _: None)  # type: ignore[arg-type]
    wishes = [ApprovalRequest(name, "note", {}, "writes", {"en": "", "zh": ""}) for name in ("1", "2")]
    first, other = (asyncio.create_task(asked.ask(one, "note")) for one in wishes)
    await asyncio.sleep(0)
    deciding = asyncio.create_task(asked.decide("1", Decision(allowed=True), always=True))
    await asyncio.sleep(0)
    assert not asked.waiting
    asked.ask_again("note")
    kept.set()
    async with asyncio.timeout(20):
        await deciding
        assert (await first).allowed
        while not asked.waiting:
            await asyncio.sleep(0)
        await asked.decide("2", Decision(allowed=False))
        assert not (await other).allowed


@pytest.fixture
async def after_restart(talk: Any, rules: Rules) -> AsyncIterator[Callable[[Run, Any], Awaitable[Run]]]:
    """Ends the process in order, and lets its run go on in the next one, under the owner's rules."""
    later: list[Runs] = []

    async def restarted(run: Run, agent: Any) -> Run:
        await talk.runs.aclose()
        runs = Runs(talk.stores)
        later.append(runs)
        rules.services.runs = runs
        rules.talk = Conversation(OwnerServices(rules.services, "alice"), talk.id)

        async def resume(resumable: ResumableRun) -> None:
            history = [Message("user", "q"), *resumable.messages()]
            await runs.of(resumable.record.owner_id).resume(
                resumable, agent, history=history, terms=await rules.talk.terms()
            )

        assert await runs.recover(resume) == 1
        again = runs.live(talk.id)
        assert again is not None
        assert again.id == run.id
        return again

    yield restarted
    for runs in later:
        await runs.aclose()


async def test_a_rule_set_while_a_question_waits_after_a_restart_outranks_the_answer(
    talk: Any, rules: Rules, after_restart: Any
) -> None:
    run = await begun(talk, rules, agent_of(Note(), writes("1"), "never said"))
    call = await waiting(run)
    note = Changing()
    again = await after_restart(run, agent_of(note, "Not done."))
    await note.looked_at.wait()
    assert await waiting(again) == call
    await rules.choices.change("approval", lambda _: {"deny": [note.name]})
    await rules.talk.decide(call, allowed=True)
    assert await again.wait() == "complete"
    assert note.written == []


async def test_always_that_was_taken_back_is_none_after_a_restart(talk: Any, rules: Rules, after_restart: Any) -> None:
    note, held = Note(), Held()
    held.released.set()
    model = ScriptedModel(writes("1"), writes("2", tool=held.name), "never said")
    run = await begun(talk, rules, FnCallAgent([note, held], model))
    await rules.talk.decide(await waiting(run), allowed=True, always=True)
    await held_up(run, held.name)
    await rules.talk.revoke_allowance(note.name)
    again = await after_restart(run, FnCallAgent([note, held], ScriptedModel(writes("3"), "Not done.")))
    await rules.talk.decide(await held_up(again, held.name), allowed=True)
    await rules.talk.decide(await held_up(again, note.name), allowed=False)
    assert await again.wait() == "complete"
    assert (note.written, held.written) == (["1"], ["2"])
