"""`approval=` of an agent: a program's tools run as it lists them, unless somebody is to decide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import core
from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.basic import FnCallAgent
from core.agents.react import ReActChat
from core.errors import SettingsError
from core.messages.message import Message
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import ApprovalFailedError, ApprovalRequest, Decision, Guard, Policy
from tests.core.runs.note_tools import Note, writes

pytestmark = pytest.mark.anyio

ASK = [{"role": "user", "content": "Write!"}]


class Seedlike(FnCallAgent):
    """An agent of Qwen-Agent's kind, which passes nothing on."""

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        text = self._call_tool("write_note", '{"text": "hi"}')
        yield [Message("assistant", str(text))]


class Around(Agent):
    """An agent that lets another one answer."""

    def __init__(self, inner: Agent) -> None:
        super().__init__()
        self.inner = inner

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield from self.inner.run(messages, **kwargs)


def steps(*turns: Any) -> ScriptedModel:
    return ScriptedModel(*turns)


def made(note: Note) -> Sequence[Agent]:
    """Agents of all kinds, each about to write a note."""
    react = 'Thought: I write.\nAction: write_note\nAction Input: {"text": "hi"}\nObservation:'
    return (
        FnCallAgent([note], ScriptedModel(writes("hi"), "Done.")),
        Assistant([note], ScriptedModel(writes("hi"), "Done.")),
        ReActChat([note], ScriptedModel(react, "Thought: done\nFinal Answer: Done.")),
        Seedlike([note]),
        Around(FnCallAgent([note], ScriptedModel(writes("hi"), "Done."))),
    )


KINDS = range(5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_tools_that_a_program_lists_run(kind: int) -> None:
    note = Note()
    made(note)[kind].run_nonstream(ASK)
    assert note.written == ["hi"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["guard", "policy", "function"])
def test_with_approval_nothing_runs_that_nobody_allows(kind: int, how: str) -> None:  # P4
    note = Note()
    approval: Any = {"guard": Guard(Policy()), "policy": Policy(), "function": lambda asking: False}[how]
    agent = made(note)[kind]
    agent.run_nonstream(ASK, approval=approval)
    assert note.written == []
    for _ in made(note)[kind].run(ASK, approval=approval):
        pass
    assert note.written == []


@pytest.mark.parametrize("kind", KINDS)
async def test_approval_holds_for_a_stream_too(kind: int) -> None:  # P4
    note = Note()
    async with aclosing(made(note)[kind].stream(ASK, approval=Policy())) as events:
        async for _ in events:
            pass
    assert note.written == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_approval_is_for_one_reply(kind: int) -> None:
    note = Note()
    agent = made(note)[kind]
    other = Note()
    agent.run_nonstream(ASK, approval=Policy())
    made(other)[kind].run_nonstream(ASK)
    assert (note.written, other.written, agent._guard) == ([], ["hi"], None)  # pyright: ignore[reportPrivateUsage]


async def test_whoever_is_asked_may_change_the_arguments() -> None:
    note = Note()
    asked: list[ApprovalRequest] = []

    async def decide(asking: ApprovalRequest) -> Decision:
        asked.append(asking)
        return Decision(allowed=True, arguments={"text": "ho"})

    agent = FnCallAgent([note], ScriptedModel(writes("hi"), "Done."))
    async with aclosing(agent.stream(ASK, approval=decide)) as events:
        async for _ in events:
            pass
    assert (note.written, asked[0].name, dict(asked[0].arguments)) == (["ho"], "write_note", {"text": "hi"})


SENT: list[str] = []


@core.tool
def send_mail(to: str) -> str:
    """Send a mail."""
    SENT.append(to)
    return "sent"


class Sends(core.BaseTool):
    """A tool that does not say what it does to the world."""

    name = "send_mail"
    parameters = [{"name": "to", "type": "string", "required": True}]

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        SENT.append("class")
        return "sent"


@pytest.mark.parametrize("listed", [send_mail, Sends(), "calculator"])
@pytest.mark.parametrize("answer", [True, False])
def test_a_function_is_asked_about_each_call_of_a_model(listed: Any, answer: bool) -> None:
    SENT.clear()
    asked: list[str] = []
    call = ("calculator", {"expression": "1+1"}) if listed == "calculator" else ("send_mail", {"to": "boss"})
    agent = FnCallAgent([listed], ScriptedModel(Say(calls=[call]), "Done."))
    reply = agent.ask("Write!", approval=lambda asking: asked.append(asking.name) or answer)
    assert asked == [call[0]]
    assert bool(SENT) is (answer and listed != "calculator")
    assert reply.text == "Done."


def test_a_function_within_a_guard_is_asked_where_the_rules_say() -> None:
    SENT.clear()
    asked: list[str] = []
    rules = Policy(ask=("calculator",))
    calls = Say(calls=[("send_mail", {"to": "boss"}), ("calculator", {"expression": "1+1"})])
    agent = FnCallAgent([send_mail, "calculator"], ScriptedModel(calls, "Done."))
    agent.ask("Write!", approval=Guard(rules, lambda asking: asked.append(asking.name) or False))
    assert (asked, SENT) == (["calculator"], ["boss"])


@pytest.mark.parametrize("answer", [True, False])
def test_in_a_session_in_a_file_a_function_is_asked_about_each_call(tmp_path: Path, answer: bool) -> None:
    SENT.clear()
    agent = FnCallAgent([send_mail], ScriptedModel(Say(calls=[("send_mail", {"to": "boss"})]), "Done."))
    with agent.session(tmp_path / "talks.db", approval=lambda asking: answer) as session:
        session.ask("Write!")
    assert (["boss"] if answer else []) == SENT


@pytest.mark.parametrize("most", [0, 100])
@pytest.mark.parametrize("kind", [FnCallAgent, Assistant, ReActChat])
def test_a_limit_that_makes_no_sense_is_refused(kind: Any, most: int) -> None:
    with pytest.raises(SettingsError, match="1 to 99"):
        kind([], ScriptedModel("x"), max_iteration=most)


@pytest.mark.parametrize("kind", [FnCallAgent, Assistant])
def test_an_agent_asks_its_model_as_often_as_it_may(kind: Any) -> None:
    note = Note()
    model = ScriptedModel(writes("1"), writes("2"), Say(calls=[("write_note", '{"text": "3"}')]))
    reply = kind([note], model, max_iteration=3).run_nonstream(ASK)
    assert (note.written, len(model.requests)) == (["1", "2"], 3)
    assert reply[-1]["content"].startswith("I stopped here: after 3 model calls")


@pytest.mark.parametrize("wanted", ["run", "run_nonstream", "map", "stream"])
def test_an_approval_function_that_raises_tells_the_program_and_the_tool_does_not_run(wanted: str) -> None:
    note = Note()

    def mistaken(asking: ApprovalRequest) -> Any:
        return core.Decision(allow=True)  # pyright: ignore[reportCallIssue] - the mistake: it is `allowed`

    async def streamed(agent: Agent) -> None:
        async for _ in agent.stream([Message("user", "Go")], approval=mistaken):
            pass

    agent = FnCallAgent([note], ScriptedModel(writes("x"), "after"))
    ways: dict[str, Callable[[], object]] = {
        "run": lambda: list(agent.run([Message("user", "Go")], approval=mistaken)),
        "run_nonstream": lambda: agent.run_nonstream([Message("user", "Go")], approval=mistaken),
        "map": lambda: agent.map(["Go"], approval=mistaken),
        "stream": lambda: asyncio.run(streamed(agent)),
    }
    with pytest.raises(
        ApprovalFailedError, match=r"'write_note' failed with .*no parameter `allow`.*The call was not made"
    ):
        ways[wanted]()
    assert note.written == []
