"""Agents and tools that somebody wrote carelessly: one clear error, or the reply goes on; nothing stays behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.basic import FnCallAgent
from core.agents.compat.articles import WriteFromScratch
from core.agents.compat.dialogue_retrieval import DialogueRetrievalAgent
from core.agents.compat.parallel_doc_qa import ParallelDocQA
from core.agents.group_chat import GroupChat
from core.agents.memory import Memory
from core.agents.react import ReActChat
from core.agents.router import Router
from core.agents.tools import AgentTool
from core.errors import ModelMisbehavedError, SettingsError
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.from_function import tool

ASKED = [Message("user", "Go!")]


class Breaks(Agent):
    """Raises in the middle, the first time."""

    broken = False

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield [Message("assistant", "One")]
        if not self.broken:
            self.broken = True
            raise RuntimeError("out of paper")
        yield [Message("assistant", "One and two.")]


class Stuck(Agent):
    """Never comes to its first word."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.begun, self.let_go, self.left = threading.Event(), threading.Event(), threading.Event()

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        self.begun.set()
        try:
            self.let_go.wait(60)
            yield [Message("assistant", "At last.")]
        finally:
            self.left.set()


@tool
def silent() -> Any:
    """Does something and says nothing."""


def leading(member: Agent) -> list[Agent]:
    """Agents of several kinds that let this one answer."""
    return [
        GroupChat([member], "round_robin"),
        Router(ScriptedModel(f"Call: {member.name}"), [member]),
    ]


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        (FnCallAgent, (Reply(calls=[("silent", {})]), "Done.")),
        (Assistant, (Reply(calls=[("silent", {})]), "Done.")),
        (ReActChat, ("Thought: I do it.\nAction: silent\nAction Input: {}", "Thought: So.\nFinal Answer: Done.")),
    ],
)
def test_a_tool_that_returns_nothing_is_answered_with_nothing_and_the_reply_goes_on(kind: Any, turns: Any) -> None:
    reply = kind([silent], ScriptedModel(*turns)).run_nonstream(ASKED)
    (result,) = [message for message in reply if message.role == "function"]
    assert (result.get_text_content(), (result.extra or {}).get("failed")) == ("", None)
    assert reply[-1].get_text_content() == "Done."


@pytest.mark.parametrize("which", range(2))
def test_a_member_that_raises_in_the_middle_is_one_error_and_may_be_asked_again(which: int) -> None:
    agent = leading(Breaks(name="Bob"))[which]
    with pytest.raises(RuntimeError, match="out of paper"):
        agent.run_nonstream(ASKED)
    assert agent.run_nonstream(ASKED)[-1].content == "One and two."


def test_a_tool_that_is_such_an_agent_fails_as_a_call_and_the_caller_goes_on() -> None:
    model = ScriptedModel(Reply(calls=[("Bob", {"question": "Why?"})]), "Bob has failed.")
    reply = Assistant([AgentTool(Breaks(name="Bob", description="Breaks."))], model).run_nonstream(ASKED)
    assert "out of paper" in reply[1].get_text_content()
    assert (reply[1].extra or {})["failed"]
    assert reply[-1].content == "Bob has failed."


@pytest.mark.anyio
@pytest.mark.parametrize("which", range(4))
async def test_one_that_never_comes_to_its_first_word_can_be_left_at_once(which: int) -> None:
    stuck = Stuck(name="Bob", description="Waits.")
    caller = Assistant([AgentTool(stuck)], ScriptedModel(Reply(calls=[("Bob", {"question": "Why?"})]), "Done."))
    agent = [stuck, *leading(stuck), caller][which]

    async def read() -> None:
        async with aclosing(agent.stream(ASKED)) as events:
            async for _ in events:
                pass

    reading = asyncio.create_task(read())
    try:
        assert await asyncio.to_thread(stuck.begun.wait, 20)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(reading, 20)
    finally:
        stuck.let_go.set()
    assert await asyncio.to_thread(stuck.left.wait, 20), "its thread ends once it can"


@pytest.mark.parametrize("given", [None, 3, Breaks(name="Bob")])
def test_agents_that_are_no_list_are_one_clear_error(given: Any) -> None:
    for make in (lambda: GroupChat(given, "round_robin"), lambda: Router(ScriptedModel(), given)):
        with pytest.raises(SettingsError, match="takes a list of agents"):
            make()


def test_one_that_says_nothing_at_all_has_an_empty_reply() -> None:
    class Mute(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            return iter(())

    assert Mute().run_nonstream(ASKED) == []
    assert (
        GroupChat([Mute(name="Bob")], "round_robin").run_nonstream(ASKED)[-1].content == "Nobody had anything to say."
    )


@pytest.mark.parametrize("given", ["A text.", None, [5], [["A text."]], [Message("assistant", "Not in a list.")]])
def test_a_run_of_ones_own_that_gives_no_reply_is_told_so(given: Any):
    class Odd(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Any:
            return given

    with pytest.raises(ModelMisbehavedError, match=r"Odd\._run gave what is no reply.*Yield lists of messages"):
        Odd().run_nonstream(ASKED)


@pytest.mark.parametrize("field", ["name", "description", "system_message"])
def test_what_is_said_of_an_agent_is_text(field: str):
    wrong: Any = {field: 5}
    with pytest.raises(SettingsError, match=f"{field} must be a text, not 5"):
        FnCallAgent(**wrong)


@pytest.mark.parametrize("kind", [Assistant, Memory])
@pytest.mark.parametrize("given", ["policy.pdf", 5])
def test_one_path_is_not_taken_for_a_list_of_letters(kind: Any, given: Any):
    with pytest.raises(SettingsError, match="files must be a list of paths"):
        kind(files=given)


@pytest.mark.parametrize(
    ("kind", "field", "bounds"),
    [
        (FnCallAgent, "max_iteration", "1 to 99"),
        (ReActChat, "max_iteration", "1 to 99"),
        (WriteFromScratch, "most_chapters", "1 to 30"),
        (ParallelDocQA, "part_tokens", "200 to 100000"),
        (ParallelDocQA, "at_once", "1 to 64"),
        (DialogueRetrievalAgent, "dialogue_tokens", "200 or more"),
    ],
)
@pytest.mark.parametrize("given", ["5", None, 2.5, True, 0, 1_000_000])
def test_a_number_that_an_agent_is_given_is_whole_and_in_its_bounds(kind: Any, field: str, bounds: str, given: Any):
    if field == "dialogue_tokens" and given == 1_000_000:
        kind(**{field: given})
        return
    with pytest.raises(SettingsError, match=f"{field} must be {bounds}, as a whole number, not {given!r}"):
        kind(**{field: given})


@pytest.mark.parametrize("library", ["papers", 5, ["papers"]])
def test_what_is_no_library_is_told_where_the_assistant_is_made(library: Any) -> None:
    with pytest.raises(SettingsError, match=r"^library must be a Library, not .+ Give library=Library\.open\(path\)"):
        Assistant(llm=ScriptedModel("fine"), library=library)
