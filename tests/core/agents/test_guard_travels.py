"""The guard of a reply holds for whatever runs within it, also where a program passes nothing on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from core.agents.base import Agent
from core.agents.basic import FnCallAgent
from core.llm.request import Stream
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import ApprovalRequest, Decision, Guard, Policy
from core.tools.base import BaseTool
from tests.core.runs.note_tools import Note, agent_of, writes

pytestmark = pytest.mark.anyio

ASK = [{"role": "user", "content": "Write!"}]


class Wrapped(Agent):
    """An agent with a helper that it tells nothing of how it is called."""

    def __init__(self, helper: Agent) -> None:
        super().__init__(name="Wrapped")
        self.helper = helper


class Yields(Wrapped):
    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield [Message("assistant", "I ask.")]
        for reply in self.helper.run(messages):
            yield [Message("assistant", "I ask."), *reply]


class Returns(Wrapped):
    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        return self.helper.run(messages)


class Waits(Wrapped):
    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield self.helper.run_nonstream(messages)


class Streams(Wrapped):
    async def _stream_reply(self, messages: list[Message], **kwargs: Any) -> Stream:
        async with aclosing(self.helper.stream(messages)) as events:
            async for event in events:
                yield event


class Hands(Wrapped):
    def _stream_reply(self, messages: list[Message], **kwargs: Any) -> Stream:
        return self.helper.stream(messages)


class Maps(Wrapped):
    async def _stream_reply(self, messages: list[Message], **kwargs: Any) -> Stream:
        await self.helper.amap(["Write!"])
        async with aclosing(agent_of(Note(), "Done.").stream(messages)) as events:
            async for event in events:
                yield event


class AsksInAThread(BaseTool):
    """A tool that asks an agent, from its thread."""

    name = "ask"
    description = "Asks."
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}

    def __init__(self, helper: Agent) -> None:
        super().__init__()
        self.helper = helper

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
        return str(self.helper.run_nonstream(ASK)[-1]["content"])


class AsksOnTheLoop(AsksInAThread):
    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
        async with aclosing(self.helper.stream(ASK)) as events:
            return str([event async for event in events])


def plain(note: Note) -> Agent:
    return agent_of(note, writes("hi"), "Done.")


def by_tool(kind: type[AsksInAThread]) -> Callable[[Note], Agent]:
    return lambda note: agent_of(kind(plain(note)), writes("", tool="ask"), "Done.")


KINDS: list[Callable[[Note], Agent]] = [
    *(lambda note, kind=kind: kind(plain(note)) for kind in (Yields, Returns, Waits, Streams, Hands, Maps)),
    lambda note: Yields(Returns(plain(note))),
    lambda note: Streams(Waits(plain(note))),
    lambda note: Hands(Yields(plain(note))),
    by_tool(AsksInAThread),
    by_tool(AsksOnTheLoop),
]
ASKED = [*([["write_note"]] * 9), *([["ask", "write_note"]] * 2)]  # by kind, the calls that models make
ALL = pytest.mark.parametrize("kind", range(len(KINDS)))


async def _whole(agent: Agent, **how: Any) -> None:
    async with aclosing(agent.stream(ASK, **how)) as events:
        async for _ in events:
            pass


def _runs(agent: Agent, how: str, **options: Any) -> None:
    match how:
        case "run":
            for _ in agent.run(ASK, **options):
                pass
        case "run_nonstream":
            agent.run_nonstream(ASK, **options)
        case "map":
            agent.map(["Write!"], **options)
        case _:
            asyncio.run(_whole(agent, **options))


@ALL
@pytest.mark.parametrize("how", ["run", "run_nonstream", "stream", "map"])
def test_a_helper_that_is_told_nothing_runs_under_the_guard_of_its_caller(kind: int, how: str) -> None:  # P4
    note, asked = Note(), list[str]()

    def no(asking: ApprovalRequest) -> bool:
        asked.append(asking.name)
        return asking.name == "ask"

    _runs(KINDS[kind](note), how, approval=no)
    assert (note.written, asked) == ([], ASKED[kind])
    _runs(KINDS[kind](note), how)
    assert note.written == ["hi"]


@ALL
def test_whoever_is_asked_says_yes_once(kind: int) -> None:
    note, asked = Note(), list[str]()

    def yes(asking: ApprovalRequest) -> bool:
        asked.append(asking.name)
        return True

    KINDS[kind](note).run_nonstream(ASK, approval=yes)
    assert (note.written, asked) == (["hi"], ASKED[kind])


def test_agents_that_take_turns_in_one_thread_do_not_see_each_others_guard() -> None:
    kept, free = Note(), Note()
    guarded = Yields(plain(kept)).run(ASK, approval=Policy())
    unguarded = Yields(plain(free)).run(ASK)
    next(guarded)
    next(unguarded)
    for one in (unguarded, guarded):
        for _ in one:
            pass
    assert (kept.written, free.written) == ([], ["hi"])


async def test_agents_that_take_turns_in_one_task_do_not_see_each_others_guard() -> None:
    kept, free = Note(), Note()
    async with (
        aclosing(Streams(plain(kept)).stream(ASK, approval=Policy())) as guarded,
        aclosing(Streams(plain(free)).stream(ASK)) as unguarded,
    ):
        await anext(guarded)
        async for _ in unguarded:
            pass
        async for _ in guarded:
            pass
    assert (kept.written, free.written) == ([], ["hi"])


async def test_agents_at_the_same_time_do_not_see_each_others_guard() -> None:
    kept, free = Note(), Note()
    guarded = (_whole(Waits(plain(kept)), approval=Policy()) for _ in range(4))
    await asyncio.gather(*guarded, *(_whole(Waits(plain(free))) for _ in range(4)))
    assert (kept.written, free.written) == ([], ["hi"] * 4)


@pytest.mark.parametrize("kind", [Yields, Waits, Streams])
async def test_whoever_streams_a_reply_is_asked_on_their_own_loop(kind: Any) -> None:
    note, here = Note(), asyncio.get_running_loop()

    async def yes(asking: ApprovalRequest) -> bool:
        answer = here.create_future()
        here.call_soon(answer.set_result, asyncio.get_running_loop() is here)
        return await answer

    await _whole(kind(plain(note)), approval=yes)
    assert note.written == ["hi"]


class Loosens(Wrapped):
    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield self.helper.run_nonstream(messages, approval=Policy("never"))


def test_an_approval_within_a_guarded_reply_cannot_make_it_looser() -> None:
    note = Note()
    Loosens(plain(note)).run_nonstream(ASK, approval=Policy())
    assert note.written == []
    Loosens(plain(note)).run_nonstream(ASK)
    assert note.written == ["hi"]


class Tightens(Wrapped):
    def __init__(self, helper: Agent, own: Any) -> None:
        super().__init__(helper)
        self.own = own

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield self.helper.run_nonstream(messages, approval=self.own)


def test_an_approval_within_a_guarded_reply_may_make_it_stricter() -> None:
    note = Note()
    Tightens(plain(note), Policy(deny=("write_note",))).run_nonstream(ASK, approval=lambda _: True)
    assert note.written == []


def test_what_the_outer_one_edits_the_inner_one_sees() -> None:
    note, seen = Note(), list[Any]()

    def inner(asking: ApprovalRequest) -> bool:
        seen.append(asking.arguments["text"])
        return asking.arguments["text"] == "hi"

    def outer(asking: ApprovalRequest) -> Decision:
        return Decision(allowed=True, arguments={"text": "ho"})

    Tightens(plain(note), inner).run_nonstream(ASK, approval=outer)
    assert (note.written, seen) == ([], ["hi", "ho"])


def test_what_the_inner_one_edits_the_outer_one_sees() -> None:
    note, seen = Note(), list[Any]()

    def inner(asking: ApprovalRequest) -> Decision:
        return Decision(allowed=True, arguments={"text": "ho"})

    def outer(asking: ApprovalRequest) -> bool:
        seen.append(asking.arguments["text"])
        return True

    Tightens(plain(note), inner).run_nonstream(ASK, approval=outer)
    assert (note.written, seen) == (["ho"], ["ho"])


def test_the_same_guard_passed_on_asks_once() -> None:
    note, asked = Note(), list[str]()

    def yes(asking: ApprovalRequest) -> bool:
        asked.append(asking.name)
        return True

    guard = Guard(Policy(), yes)
    Tightens(plain(note), guard).run_nonstream(ASK, approval=guard)
    assert (note.written, asked) == (["hi"], ["write_note"])


def test_an_agent_that_decides_is_not_decided_about() -> None:
    looked, note = Note(), Note()

    def judge(asking: ApprovalRequest) -> bool:
        agent_of(looked, writes("looked"), "Fine.").run_nonstream(ASK)
        return True

    plain(note).run_nonstream(ASK, approval=judge)
    assert (looked.written, note.written) == (["looked"], ["hi"])


def test_a_reply_left_in_the_middle_leaves_no_guard_behind() -> None:
    kept, free = Note(), Note()
    growing = Yields(plain(kept)).run(ASK, approval=Policy())
    next(growing)
    growing.close()
    plain(free).run_nonstream(ASK)
    assert free.written == ["hi"]


def test_an_agent_made_for_one_thread_keeps_its_own_guard_in_another() -> None:
    """`_call_tool` in a thread of a program's own, where no context comes along."""
    from concurrent.futures import ThreadPoolExecutor

    class Spreads(FnCallAgent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            with ThreadPoolExecutor(2) as pool:
                texts = list(pool.map(lambda text: self._call_tool("write_note", f'{{"text": "{text}"}}'), "ab"))
            yield [Message("assistant", str(texts))]

    note = Note()
    Spreads([note], ScriptedModel("x")).run_nonstream(ASK, approval=Policy())
    assert note.written == []


class Fetch(Note):
    """Only reads, from an address."""

    name = "fetch"
    writes = False
    reaches_out = True

    def addresses(self, arguments: Any) -> tuple[str, ...]:
        return (arguments["text"],)


@pytest.mark.parametrize(("said", "asked"), [("See https://a.example/", []), ("See it", ["fetch"])])
def test_an_address_that_a_tool_makes_up_for_a_helper_is_not_the_users(said: str, asked: list[str]) -> None:  # P5
    fetch, seen = Fetch(), list[str]()

    class Passes(AsksInAThread):
        def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
            words = [{"role": "user", "content": "Read https://a.example/"}]
            return str(self.helper.run_nonstream(words)[-1]["content"])

    def no(asking: ApprovalRequest) -> bool:
        seen.append(asking.name)
        return False

    helper = agent_of(fetch, writes("https://a.example/", tool="fetch"), "Done.")
    boss = agent_of(Passes(helper), writes("", tool="ask"), "Done.")
    boss.run_nonstream([{"role": "user", "content": said}], approval=Guard(Policy(), no))
    assert (seen, fetch.written) == (asked, [] if asked else ["https://a.example/"])


async def test_the_time_of_a_tool_does_not_run_while_somebody_is_asked_within_it() -> None:
    note = Note()
    slow = AsksOnTheLoop(plain(note))
    slow.timeout = 0.5
    waiting = asyncio.get_running_loop().time()

    async def late(asking: ApprovalRequest) -> bool:
        while asyncio.get_running_loop().time() < waiting + 1.0:
            await asyncio.sleep(0.02)
        return True

    await _whole(agent_of(slow, writes("", tool="ask"), "Done."), approval=late)
    assert note.written == ["hi"]
