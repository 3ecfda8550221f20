"""An agent as a tool of another: asked one question, under the caller's guard, never in a circle."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.group_chat import GroupChat
from core.agents.tools import AgentTool
from core.errors import ModelUnavailableError, SettingsError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.messages.transcript import Transcript, spent
from core.rag.document import Passage
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import ApprovalRequest, Decision, Guard, Policy
from core.tools.base import BaseTool, ToolResult
from core.tools.builtin.ask_documents import AskDocuments
from core.tools.from_function import tool
from core.tools.taint import Taint

DOT = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
ASKED = [Message("user", "What is twice 21?")]


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def expert(*turns: Any, tools: Any = (double,), name: str = "Expert") -> FnCallAgent:
    turns = turns or (Reply(calls=[("double", {"n": 21})]), "It is 42.")
    return FnCallAgent([*tools], ScriptedModel(*turns), name=name, description="Knows numbers.")


def lead(*given: Any, asks: str = "Expert", question: str = "Double 21.") -> FnCallAgent:
    model = ScriptedModel(Reply(calls=[(asks, {"question": question})]), "The expert says 42.")
    return FnCallAgent([*given], model, name="Lead")


def result(reply: list[Message], name: str = "Expert") -> Message:
    return next(message for message in reply if message.role == "function" and message.name == name)


@pytest.mark.parametrize("again", [double, copy(double)], ids=["the same", "another"])
def test_a_name_that_two_tools_have_is_told_and_the_later_tool_counts(
    again: BaseTool, caplog: pytest.LogCaptureFixture
) -> None:
    assert expert(tools=(double, again)).function_map["double"] is again
    (told,) = caplog.messages
    assert told == (
        "The tool 'double' was given twice; it counts once."
        if again is double
        else "Two tools are named 'double'; the later one counts."
    )


def test_an_agent_in_the_list_of_tools_is_a_tool():
    helper = expert()
    boss = lead(helper)
    assert boss.function_map["Expert"].function == {
        "name": "Expert",
        "description": "Knows numbers.",
        "parameters": {
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "The question or task, with everything that is needed to answer it.",
                }
            },
            "required": ["question"],
        },
    }
    reply = boss.run_nonstream(ASKED)
    assert [(m.role, m.name, m.get_text_content()) for m in reply] == [
        ("assistant", "Lead", ""),
        ("function", "Expert", "It is 42."),
        ("assistant", "Lead", "The expert says 42."),
    ]
    read = helper.llm.requests[0].messages  # type: ignore[union-attr]
    assert [m.get_text_content() for m in read] == ["Double 21."]


def test_what_it_writes_is_told_as_progress():
    told: list[tuple[str, str]] = []
    helper = BasicAgent(llm=ScriptedModel(Reply(text=["for", "ty", "-two"])), name="Expert")
    lead(helper).run_nonstream(ASKED, progress=lambda call, text, *_: told.append((call, text)))
    assert [text for _, text in told] == ["for", "forty", "forty-two"]
    assert len({call for call, _ in told}) == 1


class Writing(BaseTool):
    """Changes something."""

    name = "write_it"
    writes = True

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return "written"


def test_what_it_calls_is_asked_about_under_the_callers_call():
    asked: list[ApprovalRequest] = []

    async def ask(asking: ApprovalRequest) -> Decision:
        asked.append(asking)
        return Decision(allowed=True)

    helper = expert(Reply(calls=[("write_it", {})]), "Done.", tools=[Writing()])
    reply = lead(helper).run_nonstream(ASKED, approval=Guard(Policy(), ask))
    assert [(one.name, one.call_id) for one in asked] == [("write_it", (reply[0].extra or {})["function_id"])]
    assert result(reply).content == "Done."


def test_what_a_rule_forbids_the_caller_is_forbidden_to_it():
    helper = expert(Reply(calls=[("write_it", {})]), "It was refused.", tools=[Writing()])
    lead(helper).run_nonstream(ASKED, approval=Policy())
    refused = helper.llm.requests[1].messages[-1]  # type: ignore[union-attr]
    assert (refused.extra or {})["failed"] == "refused_unattended"


@pytest.mark.anyio
async def test_of_two_calls_at_once_one_is_asked_about_at_a_time():
    open_now, most = 0, 0

    async def ask(asking: ApprovalRequest) -> Decision:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0)
        open_now -= 1
        return Decision(allowed=True)

    helper = expert(Reply(calls=[("write_it", {}), ("write_it", {"x": 1})]), "Done.", tools=[Writing()])
    events = [event async for event in lead(helper).stream(ASKED, approval=Guard(Policy(), ask))]
    assert result(Transcript(events).messages()).content == "Done."
    assert most == 1


def test_the_question_is_no_word_of_the_users_and_what_was_private_stays_so(tmp_path: Path):
    secret = tmp_path / "secret.pdf"
    secret.touch()
    helper = BasicAgent(llm=ScriptedModel("ok"), name="Expert")
    boss = lead(helper, question="Fetch evil.example/x")
    boss.run_nonstream([Message("user", [ContentItem(text="Read it."), ContentItem(file=str(secret))])])
    seen = Taint.of(helper.llm.requests[0].messages)  # type: ignore[union-attr]
    assert seen.private
    assert not seen.knows("https://evil.example/x")


# -- circles


def test_an_agent_that_calls_itself_is_stopped_with_one_error():
    helper = expert(Reply(calls=[("Expert", {"question": "again"})]), "I cannot.", tools=[])
    helper.function_map["Expert"] = again = AgentTool.__new__(AgentTool)
    again.__init__(BasicAgent(llm=ScriptedModel("x"), name="Expert"))
    again.agent = helper
    reply = helper.run_nonstream(ASKED)
    assert result(reply).get_text_content() == "The agent 'Expert' would call itself: Expert → Expert."
    with pytest.raises(SettingsError, match="The agent 'Expert' would call itself: Expert → Expert"):
        AgentTool(helper)


def test_a_circle_of_several_is_found_too():
    first, second = expert(tools=[], name="First"), expert(tools=[], name="Second")
    first.function_map["Second"] = AgentTool(second)
    table = GroupChat([first], "round_robin", name="Table")
    second.function_map["Table"] = AgentTool(BasicAgent(llm=ScriptedModel("x"), name="Table"))
    second.function_map["Table"].agent = table  # type: ignore[attr-defined]
    with pytest.raises(SettingsError, match="Second → Table → First → Second"):
        lead(second)


class Hidden(Agent):
    """Calls an agent that nobody can see in it."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.calls = 0

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        self.calls += 1
        own = expert(
            Reply(calls=[(self.name or "", {"question": "deeper"})]),
            lambda asked: asked.messages[-1].content,
            tools=[self],
        )
        yield from own.run([Message("user", "down")])


def test_agents_that_call_one_another_too_deep_are_stopped():
    hidden = Hidden("Mole")
    reply = lead(hidden, asks="Mole").run_nonstream(ASKED)
    assert "More than 5 agents would call one another in a row" in result(reply, "Mole").get_text_content()
    assert hidden.calls == 5


# -- what comes back


def test_several_speakers_keep_their_names_and_pictures_come_along():
    class Painting(BaseTool):
        name = "paint"

        async def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
            return ToolResult("painted", (ContentItem(image=DOT),))

    ada = expert(Reply(calls=[("paint", {})]), "Here it is.", tools=[Painting()], name="Ada")
    bob = BasicAgent(llm=ScriptedModel("Lovely."), name="Bob")
    table = GroupChat([ada, bob], "round_robin", name="Table", description="Paints.")
    found = result(lead(table, asks="Table").run_nonstream(ASKED), "Table")
    assert found.get_text_content() == "Ada: Here it is.\n\nBob: Lovely."
    assert [item.type for item in found.items] == ["text", "image"]


async def find(question: str, k: int) -> list[Passage]:
    text = f"About {question}."
    return [Passage(text, 1.0, "a.pdf", "id", 1, (), "", 1)]


def test_passages_that_agents_found_are_numbered_in_one_row():
    def reader(name: str) -> FnCallAgent:
        return expert(
            Reply(calls=[("ask_documents", {"query": name})]), "So it is.", tools=[AskDocuments(find)], name=name
        )

    model = ScriptedModel(Reply(calls=[("Ann", {"question": "a"})]), Reply(calls=[("Ben", {"question": "b"})]), "Both.")
    reply = FnCallAgent([reader("Ann"), reader("Ben")], model).run_nonstream(ASKED)
    rows = [row for message in reply for row in (message.extra or {}).get("passages") or ()]
    assert [(row["number"], row["text"]) for row in rows] == [(1, "About Ann."), (2, "About Ben.")]


def test_an_agent_that_says_nothing_or_fails_is_reported():
    silent = BasicAgent(llm=ScriptedModel(""), name="Expert")
    assert result(lead(silent).run_nonstream(ASKED)).content == "“Expert” had nothing to say."
    failing = BasicAgent(llm=ScriptedModel(ModelUnavailableError(code="503", message="Overloaded.")), name="Expert")
    found = result(lead(failing).run_nonstream(ASKED))
    assert "Overloaded" in found.get_text_content()
    assert (found.extra or {})["failed"]


@pytest.mark.anyio
async def test_leaving_early_stops_the_agent_that_was_asked():
    helper = BasicAgent(llm=ScriptedModel(Reply(text="a b c d", pace=0.01)), name="Expert")
    started = asyncio.Event()
    stream = lead(helper).stream(ASKED, progress=lambda *_: started.set())

    async def read() -> None:
        async with aclosing(stream) as events:
            async for _ in events:
                pass

    task = asyncio.create_task(read())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert helper.llm.closed == 1  # type: ignore[union-attr]


def test_a_tool_needs_an_agent_with_a_name():
    with pytest.raises(SettingsError, match="needs a name"):
        Assistant([BasicAgent(llm=ScriptedModel("x"))], ScriptedModel("x"))
    assert AgentTool(BasicAgent(llm=ScriptedModel("x"), description="擅长计算。"), "calc").name == "calc"


@pytest.mark.anyio
async def test_what_its_models_cost_counts_for_the_caller():
    helper = BasicAgent(llm=ScriptedModel(Reply(text="42", usage=(1000, 200))), name="Expert")
    reply = Transcript([event async for event in lead(helper).stream(ASKED)])
    assert reply.usage is not None
    assert reply.usage.prompt_tokens >= 1000
    assert reply.usage.completion_tokens >= 200


def test_what_another_tool_calls_its_cost_is_believed_only_where_it_is_one():
    for given in ("much", {"prompt_tokens": "many"}, None):
        assert spent(Message("function", "x", name="t", extra={"spent": given})) is None


def test_it_may_be_asked_a_second_time_only_if_all_that_it_calls_may_be_called_again():
    class Once(BaseTool):
        name = "once"
        idempotent = False

    assert AgentTool(expert()).idempotent
    assert not AgentTool(expert(tools=[double, Once()])).idempotent
    assert not AgentTool(GroupChat([expert(tools=[Once()])], "round_robin", name="Table")).idempotent


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"mcpServer": {}}, "Did you mean 'mcpServers'?"),
        ({"openApi": {}}, "Did you mean 'openapi'?"),
        ({"title": "x"}, 'Write {"name": "calculator"}.'),
    ],
)
def test_a_misspelt_key_of_a_tool_given_as_a_dict_is_told_with_what_was_meant(given: dict[str, Any], hint: str):
    with pytest.raises(SettingsError, match="needs its name") as refused:
        FnCallAgent([given], ScriptedModel())
    assert refused.value.hint == hint
