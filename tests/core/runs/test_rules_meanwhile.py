"""What an owner lets tools do, changed while a reply is made: the next call is decided by what stands then."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import NotFoundError, StorageError
from core.runs.approvals import Questions
from core.runs.log import RunLog
from core.runs.run import Run
from core.settings import Settings
from core.storage.conversations import Allowances
from core.storage.owner_settings import OwnerSettings
from core.storage.sealing import Sealer
from core.toolbox.choices import ToolChoices
from core.tools.approval import Asking, Decision, Policy
from core.workspace.conversation import Conversation
from tests.core.runs.note_tools import Held, Note, agent_of, writes

pytestmark = pytest.mark.anyio


async def waiting(run: Run) -> str:
    """The id of the call that waits for the user."""
    async with asyncio.timeout(20):
        async for _ in run.follow():
            if run.reply().asking:
                return run.reply().asking[0].call_id
    raise AssertionError(run.reply().blocks)


class Rules:
    """A conversation with what its rules are made of alone, and the choices of its owner."""

    def __init__(self, talk: Any, owner: str = "alice") -> None:
        self.choices = OwnerSettings(talk.database)
        services: Any = SimpleNamespace(
            settings=Settings(),
            toolbox=SimpleNamespace(choices=ToolChoices(self.choices, Sealer("secret"))),
            allowances=Allowances(talk.database),
            runs=talk.runs,
        )
        self.talk = Conversation(services, owner, talk.id)


@pytest.fixture
def rules(talk: Any) -> Rules:
    return Rules(talk)


async def begun(talk: Any, rules: Rules, agent: Any) -> Run:
    return await talk.ask(agent, terms=await rules.talk.terms())


async def test_a_rule_set_while_a_reply_is_made_holds_for_its_next_call(talk: Any, rules: Rules) -> None:
    await rules.choices.change("alice", "approval", lambda _: {"mode": "never"})
    held = Held()
    run = await begun(talk, rules, agent_of(held, writes("1", tool=held.name), writes("2", tool=held.name), "Done."))
    await held.began.wait()
    await rules.choices.change("alice", "approval", lambda _: {"mode": "never", "deny": [held.name]})
    held.released.set()
    assert await run.wait() == "complete"
    assert held.written == ["1"]


async def test_a_rule_set_while_the_user_thinks_outranks_the_answer(talk: Any, rules: Rules) -> None:
    note = Note()
    run = await begun(talk, rules, agent_of(note, writes("1"), "Not done."))
    call = await waiting(run)
    await rules.choices.change("alice", "approval", lambda _: {"deny": [note.name]})
    await rules.talk.decide(call, allowed=True)
    assert await run.wait() == "complete"
    assert note.written == []


async def test_a_tool_that_is_let_run_now_is_not_asked_about_in_the_same_reply(talk: Any, rules: Rules) -> None:
    note = Note()
    run = await begun(talk, rules, agent_of(note, writes("1"), writes("2"), "Done."))
    call = await waiting(run)
    await rules.choices.change("alice", "approval", lambda _: {"allow": [note.name]})
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
    await rules.talk.take_back(held.name)
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
    await rules.choices.change("alice", "approval", lambda _: {"mode": "never"})
    held = Held()
    turns = [writes("1", tool=held.name), writes("2", tool=held.name), "Not done."]
    run = await begun(talk, rules, agent_of(held, *turns))
    await held.began.wait()

    async def broken(*_: object) -> None:
        raise StorageError("The disk is gone.")

    monkeypatch.setattr(rules.choices, "get", broken)
    held.released.set()
    assert await run.wait() == "complete"
    assert held.written == ["1"]


async def test_somebody_elses_conversation_shows_and_loses_nothing(talk: Any) -> None:
    mallory = Rules(talk, "mallory").talk
    for work in (mallory.allowed(), mallory.take_back("write_note")):
        with pytest.raises(NotFoundError):
            await work


async def test_always_that_is_taken_back_before_another_call_starts_lets_that_one_wait_again() -> None:
    kept = asyncio.Event()
    asked = Questions(RunLog(), kept.wait, lambda _: None)  # type: ignore[arg-type]
    wishes = [Asking(name, "note", {}, "writes", {"en": "", "zh": ""}) for name in ("1", "2")]
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
