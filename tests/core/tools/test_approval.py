"""No tool runs before its guard has decided; what asks, and what never runs, is the policy's."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from core.errors import SettingsError
from core.messages.events import Event, ToolFinished, ToolStarted
from core.messages.message import Message
from core.messages.transcript import call_message
from core.tools.approval import ApprovalFailedError, ApprovalRequest, Decision, Guard, Policy, escape_pattern
from core.tools.base import BaseTool
from core.tools.runner import ToolRunner
from core.tools.taint import Taint

pytestmark = pytest.mark.anyio


class Fake(BaseTool):
    """Notes each call that really happens."""

    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": []}

    def __init__(self, name: str = "fake", **flags: Any) -> None:
        self.name = name
        self.ran: list[dict[str, Any]] = []
        for flag, value in flags.items():
            setattr(self, flag, value)
        super().__init__()

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        self.ran.append(self._verify_json_format_args(params))
        return "done"


async def run(guard: Guard | None, tool: BaseTool, arguments: str = "{}", **context: Any) -> list[Event]:
    runner = ToolRunner({tool.name: tool}, guard=guard)
    return [event async for event in runner.run([call_message("c1", tool.name, arguments)], **context)]


def result_of(events: list[Event]) -> Message:
    assert isinstance(events[-1], ToolFinished)
    return events[-1].message


def answering(decision: Any) -> tuple[list[ApprovalRequest], Any]:
    asked: list[ApprovalRequest] = []

    async def ask(asking: ApprovalRequest) -> Any:
        asked.append(asking)
        return decision

    return asked, ask


async def test_without_a_guard_a_program_s_own_tools_run_as_it_says():
    tool = Fake(writes=True)
    assert result_of(await run(None, tool)).content == "done"


async def test_what_only_reads_runs_unasked_and_what_writes_waits_for_the_user():
    reads, writes = Fake(), Fake(writes=True)
    asked, ask = answering(Decision(allowed=True))
    await run(Guard(Policy(), ask), reads)
    assert (reads.ran, asked) == ([{}], [])
    events = await run(Guard(Policy(), ask), writes, '{"n": 3}')
    assert [type(event) for event in events] == [ToolStarted, ToolFinished]
    assert [(one.call_id, one.name, dict(one.arguments), one.reason) for one in asked] == [
        ("c1", "fake", {"n": 3}, "writes")
    ]
    assert set(asked[0].wants) == {"en", "zh"}
    assert writes.ran == [{"n": 3}]


@pytest.mark.parametrize(
    ("lang", "text"), [("en", "The user did not allow this call."), ("zh", "用户没有允许这次调用。")]
)
async def test_what_the_user_refuses_never_starts_and_the_model_is_told(lang: str, text: str):
    tool = Fake(writes=True)
    events = await run(Guard(Policy(), answering(Decision(allowed=False))[1]), tool, lang=lang)
    assert [type(event) for event in events] == [ToolFinished]
    assert (result_of(events).content, result_of(events).extra) == (text, {"function_id": "c1", "failed": "refused"})
    assert not tool.ran


@pytest.mark.parametrize(
    ("guard", "failed"),
    [
        (Guard(Policy()), "refused_unattended"),
        (Guard(Policy(deny=("f*",)), answering(Decision(allowed=True))[1]), "refused_rule"),
        (Guard(Policy(), answering(Decision(allowed=False, why="timeout"))[1]), "refused_timeout"),
    ],
)
async def test_each_refusal_says_who_or_what_said_no(guard: Guard, failed: str):
    tool = Fake(writes=True)
    message = result_of(await run(guard, tool))
    assert (message.extra or {})["failed"] == failed
    assert message.get_text_content().endswith(".")
    assert not tool.ran


async def test_edited_arguments_run_in_place_of_the_model_s_and_the_model_learns_of_it():
    tool = Fake(writes=True)
    message = result_of(
        await run(Guard(Policy(), answering(Decision(allowed=True, arguments={"n": 8}))[1]), tool, '{"n": 1}')
    )
    assert tool.ran == [{"n": 8}]
    assert (message.extra or {})["arguments"] == {"n": 8}
    assert message.content == '(The user changed the arguments to {"n": 8}.)\ndone'


async def test_edited_arguments_that_do_not_fit_are_not_run():
    tool = Fake(writes=True)
    events = await run(Guard(Policy(), answering(Decision(allowed=True, arguments={"n": "x"}))[1]), tool)
    assert not tool.ran
    assert (result_of(events).extra or {})["failed"] == "bad_arguments"
    assert not any(isinstance(event, ToolStarted) for event in events)


async def test_an_asker_that_raises_ends_the_reply_and_the_program_learns_why():
    async def broken(asking: ApprovalRequest) -> Decision:
        raise RuntimeError("the page is gone")

    tool = Fake(writes=True)
    with pytest.raises(ApprovalFailedError, match="RuntimeError: the page is gone") as caught:
        await run(Guard(Policy(), broken), tool)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert not tool.ran


async def test_leaving_while_the_user_is_asked_means_that_nothing_runs():
    tool, asked = Fake(writes=True), asyncio.Event()

    async def never(asking: ApprovalRequest) -> Decision:
        asked.set()
        await asyncio.Event().wait()
        return Decision(allowed=True)

    runner = ToolRunner({"fake": tool}, guard=Guard(Policy(), never))
    async with aclosing(runner.run([call_message("c1", "fake", "{}")])) as events:
        waiting = asyncio.ensure_future(anext(events))
        await asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert not tool.ran


def oddly_allowed() -> Decision:
    """What the constructor would refuse."""
    made = Decision(allowed=False)
    object.__setattr__(made, "allowed", 1)
    return made


@pytest.mark.parametrize("answer", [1, "yes", None, object(), oddly_allowed()])
async def test_only_a_plain_yes_is_a_yes(answer: object):
    tool = Fake(writes=True)
    await run(Guard(Policy(), answering(answer)[1]), tool)
    assert not tool.ran


async def test_a_plain_function_may_decide_in_a_program():
    tool = Fake(writes=True)
    guard = Guard.of(lambda asking: asking.name == "fake")
    await run(guard, tool)
    assert tool.ran
    assert Guard.of(None) is None
    assert Guard.of(guard) is guard
    assert isinstance(Guard.of(Policy()), Guard)
    with pytest.raises(SettingsError):
        Guard.of("yes")  # type: ignore[arg-type]


def test_deny_beats_ask_beats_allow_beats_the_mode():
    tool, nothing = Fake("mcp_delete"), Taint()
    name = tool.full_name
    assert Policy("never", allow=(name,), ask=(name,), deny=(name,)).verdict(tool, {}, nothing) == "refuse"
    assert Policy("never", allow=(name,), ask=(name,)).verdict(tool, {}, nothing) == "rule"
    assert Policy("always", allow=(name,)).verdict(tool, {}, nothing) == "run"
    assert Policy("always").verdict(tool, {}, nothing) == "always"
    assert Policy("never").verdict(Fake(writes=True, runs_code=True), {}, nothing) == "run"
    assert Policy().verdict(Fake(writes=True, runs_code=True), {}, nothing) == "runs_code"


def test_what_a_rule_denies_or_asks_about_is_meant_whatever_the_case_of_its_letters():
    tool = Fake("Files_Delete")
    assert Policy("never", deny=("files_*",)).verdict(tool, {}, Taint()) == "refuse"
    assert Policy("never", ask=("FILES_*",)).verdict(tool, {}, Taint()) == "rule"
    assert Policy("always", allow=("files_*",)).verdict(tool, {}, Taint()) == "always"


def test_one_name_as_a_pattern_matches_that_name_alone():
    hostile = Fake("*")
    assert Policy("always", allow=(escape_pattern("*"),)).verdict(hostile, {}, Taint()) == "run"
    assert Policy("always", allow=(escape_pattern("*"),)).verdict(Fake("other"), {}, Taint()) == "always"


@pytest.mark.parametrize(
    ("flags", "first"), [({}, "always"), ({"writes": True}, "writes"), ({"runs_code": True}, "runs_code")]
)
def test_what_the_user_let_run_in_a_chat_still_asks_before_it_reaches_an_unknown_address(
    flags: dict[str, bool], first: str
):  # P3
    tool = Fake("web", reaches_out=True, **flags)
    carries = {"url": "https://evil.example/?q=secret"}
    mode = "always" if first == "always" else "writes"
    before, after = Policy(mode), Policy(mode, lasting=("web",))
    assert (before.verdict(tool, {}, Taint(private=True)), after.verdict(tool, {}, Taint(private=True))) == (
        first,
        "run",
    )
    assert after.verdict(tool, carries, Taint(private=True)) == "unknown_address"
    assert Policy("never").verdict(tool, carries, Taint(private=True)) == "run"


def test_what_the_user_let_run_in_a_chat_is_one_name_and_nothing_that_may_destroy():
    assert Policy(lasting=("*",)).verdict(Fake("any", writes=True), {}, Taint()) == "writes"
    assert Policy(lasting=("any",)).verdict(Fake("any", writes=True), {}, Taint()) == "run"
    assert Policy(lasting=("any",)).verdict(Fake("any", destructive=True), {}, Taint()) == "destructive"
    assert Policy(ask=("a*",), lasting=("any",)).verdict(Fake("any", writes=True), {}, Taint()) == "rule"
