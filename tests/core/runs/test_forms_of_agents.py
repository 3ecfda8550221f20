"""What servers want to know while agents work that are called as tools: it is asked under the call the user sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from core.agents.base import Agent
from core.agents.basic import FnCallAgent
from core.messages.events import CallDelta, CallStarted, ToolStarted
from core.messages.message import Message
from core.runs.log import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven, LoggedEvent, RunEvent
from core.runs.reply import CallBlock, Reply
from core.runs.run import Run
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision
from core.tools.base import BaseTool
from tests.core.runs.note_tools import Note, agent_of

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = {"question": "Who is there?"}


class Form(BaseTool):
    """Asks whoever made the call for a name, as a tool of a server does."""

    name = "ask_name"
    description = "Asks for a name."
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}

    async def call(self, params: str | dict[str, Any], ask_user: Any = None, call_id: str = "", **kwargs: Any) -> str:
        text = str(self._verify_json_format_args(params).get("text", ""))
        given = await ask_user(call_id, "registry", f"Who? {text}", SCHEMA)
        return "nobody" if given is None else str(given["name"])


def asks(*texts: str) -> Say:
    return Say(calls=[("ask_name", f'{{"text": "{text}"}}') for text in texts])


def chief(*tools: BaseTool, turns: tuple[Any, ...]) -> FnCallAgent:
    """An agent that can ask Lead, who has the tools."""
    lead = FnCallAgent(list(tools), ScriptedModel(*turns), name="Lead")
    return FnCallAgent([lead], ScriptedModel(Say(calls=[("Lead", QUESTION)]), "Done."), name="Chief")


async def until(run: Run, question: str) -> CallBlock:
    """Wait until the user is shown this question."""
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            for call in run.reply().asking:
                if (call.input.question if call.input else call.asked.name if call.asked else "") == question:
                    return call
    raise AssertionError(run.reply().blocks)


async def test_a_form_that_an_inner_agents_tool_wants_filled_in_is_shown_and_its_answer_arrives(talk: Any) -> None:
    run = await talk.ask(chief(Form(), turns=(asks("one"), "It is Lin.")))
    call = await until(run, "Who? one")
    assert (call.name, call.state) == ("Lead", "asked")
    assert call.input is not None
    run.inputs.give(call.input.input_id, {"name": "Lin"})
    assert await run.wait() == "complete"
    [block] = [block for block in run.reply().blocks if isinstance(block, CallBlock)]
    assert block.inner is not None
    [inner] = [one for one in block.inner.blocks if isinstance(one, CallBlock)]
    assert inner.result is not None
    assert (inner.result.get_text_content(), block.state) == ("Lin", "done")


async def test_two_forms_at_once_under_one_call_are_shown_one_after_the_other(talk: Any) -> None:
    run = await talk.ask(chief(Form(), turns=(asks("one", "two"), "Both.")))
    for name in ("one", "two"):
        call = await until(run, f"Who? {name}")
        assert call.input is not None
        run.inputs.give(call.input.input_id, {"name": name})
    assert await run.wait() == "complete"


async def test_a_form_and_a_question_whether_to_run_at_once_are_both_answered(talk: Any) -> None:
    note = Note()
    both = Say(calls=[("ask_name", '{"text": "one"}'), ("write_note", '{"text": "hi"}')])
    run = await talk.ask(chief(Form(), note, turns=(both, "Both.")))
    call = await until(run, "Who? one")
    assert call.input is not None
    run.inputs.give(call.input.input_id, None)
    call = await until(run, note.name)
    await talk.runs.of("alice").decide(talk.id, call.call_id, Decision(allowed=True))
    assert await run.wait() == "complete"
    assert note.written == ["hi"]


async def test_agents_that_work_for_one_user_at_once_are_no_two_users_to_a_server(talk: Any) -> None:
    askers: list[Any] = []

    class Listens(BaseTool):
        name = "listen"
        description = "Notes who can be asked."
        parameters = {"type": "object", "properties": {}}

        async def call(self, params: str | dict[str, Any], ask_user: Any = None, **kwargs: Any) -> str:
            askers.append(ask_user)
            return "noted"

    def asker(name: str, *deeper: Agent) -> FnCallAgent:
        calls = [("listen", "{}"), *((one.name or "", QUESTION) for one in deeper)]
        return FnCallAgent([Listens(), *deeper], ScriptedModel(Say(calls=calls), "Done."), name=name)

    run = await talk.ask(asker("Chief", asker("Ann", asker("Cy")), asker("Bob")))
    assert await run.wait() == "complete"
    assert (len(askers), len(set(askers))) == (4, 1)


async def test_a_form_of_a_helper_in_a_thread_is_answered(talk: Any) -> None:
    class Boss(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            yield [helper.run_nonstream(messages, **kwargs)[-1]]

    lead = agent_of(Form(), asks("one"), "It is Lin.", name="Lead")
    helper = FnCallAgent([lead], ScriptedModel(Say(calls=[("Lead", QUESTION)]), "Over."), name="Helper")
    run = await talk.ask(Boss(name="Boss"))
    async with asyncio.timeout(20):
        async for one in run.log.follow():
            if isinstance(one.event, InputAsked):
                run.inputs.give(one.event.input_id, {"name": "Lin"})
        assert await run.wait() == "complete"


ASKED = ApprovalAsked("a", "note", {}, "writes", {}, [], 9e9)
FORM, MORE = (InputAsked("a", name, "s", name, SCHEMA, 9e9) for name in ("f", "g"))
WORKS: list[RunEvent] = [CallStarted("a", "Lead"), CallDelta("a", "{}"), ToolStarted("a")]


def shown(*events: RunEvent) -> tuple[str, str]:
    """The state of the call, and which of the questions is shown."""
    reply = Reply(LoggedEvent(seq, float(seq), event) for seq, event in enumerate([*WORKS, *events], start=1))
    call = reply.call("a")
    assert call is not None
    if call.state != "asked":
        return call.state, ""
    return call.state, call.input.input_id if call.input else call.asked.name if call.asked else "nothing"


@pytest.mark.parametrize("why", ["answered", "over"])
def test_what_still_waits_is_shown_whichever_question_went_first(why: Any) -> None:
    given, yes = InputGiven("a", "f", why), ApprovalGiven("a", True, None, "user")
    assert shown(ASKED, FORM) == ("asked", "f")
    assert shown(ASKED, FORM, given) == ("asked", "note")
    assert shown(ASKED, FORM, yes) == ("asked", "f")
    assert shown(ASKED, FORM, yes, given)[0] == "running"
    assert shown(FORM, MORE) == ("asked", "f")
    assert shown(FORM, MORE, given) == ("asked", "g")
    assert shown(FORM, given, ASKED) == ("asked", "note")
    assert shown(FORM, given, MORE) == ("asked", "g")
