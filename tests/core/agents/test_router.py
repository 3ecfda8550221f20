"""`Router`: its model picks who answers; nobody sees how."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.router import CallLine, Router
from core.errors import SettingsError
from core.messages.events import MessageStarted, TextDelta
from core.messages.message import Message
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from core.tools.from_function import tool

ASKED = [Message("user", "A cat, please.")]


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def painter(*turns: Any, **options: Any) -> BasicAgent:
    return BasicAgent(llm=ScriptedModel(*turns or ["Here is a cat."]), name="Painter", description="Paints.", **options)


def counter(*turns: Any) -> FnCallAgent:
    turns = turns or (Reply(calls=[("double", {"n": 21})]), "It is 42.")
    return FnCallAgent([double], ScriptedModel(*turns), name="Counter", description="Counts.")


def router(*turns: Any, agents: Any = None, **options: Any) -> Router:
    return Router(ScriptedModel(*turns), agents or [painter(), counter()], name="Desk", **options)


def texts(reply: list[Message]) -> list[tuple[str | None, str]]:
    return [(message.name, message.get_text_content()) for message in reply]


@pytest.mark.parametrize(
    "line",
    [
        "Call: Counter",
        "Call: Counter\nReply: 41",
        "call：counter\n",
        "**Call:** “Counter”.",
        "I will ask.\nCall: Counter",
    ],
)
def test_the_picked_agent_answers_in_the_routers_place(line: str):
    reply = router(line).run_nonstream(ASKED)
    assert texts(reply) == [("Counter", ""), ("double", "42"), ("Counter", "It is 42.")]


def test_no_snapshot_ever_shows_how_it_was_picked():
    desk = router(Reply(text=["Ca", "ll: ", "Pain", "ter\n", "Reply: no"], pace=0.06))
    assert all(one[-1].name == "Painter" and "no" not in one[-1].content for one in desk.run(ASKED))


def test_the_model_reads_the_names_and_descriptions_in_the_language_of_the_question():
    desk = router("Call: Painter")
    desk.run_nonstream(ASKED)
    desk.run_nonstream([Message("user", "请画一只猫。")])
    english, chinese = (request.messages[0].get_text_content() for request in desk.llm.requests)  # type: ignore[union-attr]
    assert "- Painter: Paints.\n- Counter: Counts." in english
    assert "- Painter：Paints." in chinese
    assert "助手" in chinese


@pytest.mark.parametrize(("line", "said"), [("Call: Cook", "no helper named “Cook”"), ("Call:", "No helper was named")])
def test_an_unknown_name_goes_to_the_first_agent_and_the_reader_is_told(line: str, said: str):
    reply = router(line).run_nonstream(ASKED)
    assert [name for name, _ in texts(reply)] == ["Desk", "Painter"]
    assert said in reply[0].get_text_content()
    assert "“Painter” answers" in reply[0].get_text_content()
    assert reply[1].content == "Here is a cat."


def test_without_a_call_the_router_answers_itself():
    long = "You can reach us every day from nine to five. " * 5 + "Call us:\nCalling is free."
    assert texts(router(long).run_nonstream(ASKED)) == [("Desk", long)]
    assert texts(router("Hello!").run_nonstream(ASKED)) == [("Desk", "Hello!")]


def test_a_small_model_is_reminded_behind_the_question_and_the_agent_is_not():
    artist = painter()
    desk = router("Call: Painter", agents=[artist])
    desk.llm.small = True  # type: ignore[union-attr]
    desk.run_nonstream(ASKED)
    read = desk.llm.requests[0].messages[-1].get_text_content()  # type: ignore[union-attr]
    assert read.startswith("A cat, please.\n\n(Write “Call: ” and one of: Painter.")
    assert artist.llm.requests[0].messages[-1].content == "A cat, please."  # type: ignore[union-attr]


def test_a_follow_up_sees_who_answered_and_not_how():
    desk = router("Call: Counter", "Call: Painter")
    first = desk.run_nonstream(ASKED)
    desk.run_nonstream([*ASKED, *first, Message("user", "And now a dog.")])
    read = desk.llm.requests[1].messages  # type: ignore[union-attr]
    assert [(m.role, m.get_text_content()) for m in read[1:]] == [
        ("user", "A cat, please."),
        ("assistant", "Call: Counter\nReply: It is 42."),
        ("user", "And now a dog."),
    ]
    assert read[1].extra == {"files": [""]}  # a tool had been at work


def test_the_agent_reads_the_conversation_without_the_routers_instructions():
    artist = painter()
    desk = router("Call: Painter", agents=[artist], system_message="Be kind.")
    desk.run_nonstream([Message("system", "Use blue."), *ASKED])
    read = artist.llm.requests[0].messages  # type: ignore[union-attr]
    assert [m.get_text_content() for m in read] == ["Use blue.", "A cat, please."]


def test_what_a_rule_forbids_is_forbidden_to_its_agents_too():
    reply = router("Call: Counter").run_nonstream(ASKED, approval=Policy(deny=("double",)))
    assert (reply[1].extra or {})["failed"] == "refused_rule"


def test_an_agent_that_says_nothing_is_named():
    assert texts(router("Call: Painter", agents=[painter("")]).run_nonstream(ASKED)) == [
        ("Desk", "“Painter” had nothing to say.")
    ]


@pytest.mark.anyio
async def test_what_the_picking_cost_counts():
    desk = router(Reply(text="Call: Painter", usage=(10, 3)))
    events = [event async for event in desk.stream(ASKED)]
    usage = Transcript(events).usage
    assert usage is not None
    assert usage.prompt_tokens >= 10
    assert usage.completion_tokens > 3  # the painter's words count, too
    assert [event.name for event in events if isinstance(event, MessageStarted)] == ["Desk", "Painter"]


@pytest.mark.anyio
async def test_leaving_early_stops_the_picked_agent():
    artist = painter(Reply(text="a b c d e", pace=0.001))
    async with aclosing(router("Call: Painter", agents=[artist]).stream(ASKED)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert artist.llm.closed == 1  # type: ignore[union-attr]


def test_its_own_tools_and_its_agents_never_share_the_id_of_a_call():
    own = ScriptedModel(
        '<tool_call>\n{"name": "double", "arguments": {"n": 1}}\n</tool_call>', "Call: Counter", native=False
    )
    theirs = ScriptedModel('<tool_call>\n{"name": "double", "arguments": {"n": 2}}\n</tool_call>', "4", native=False)
    desk = Router(own, [FnCallAgent([double], theirs, name="Counter")], function_list=[double])
    reply = desk.run_nonstream(ASKED)
    ids = [(m.extra or {}).get("function_id") for m in reply if m.function_call is not None]
    assert len(ids) == len(set(ids)) == 2


class Broken(Agent):
    """Fails in the middle, as Qwen-Agent's hook may."""

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield [Message("assistant", "one")]
        raise RuntimeError("out of paper")


def test_an_agent_that_fails_fails_the_reply():
    with pytest.raises(RuntimeError, match="out of paper"):
        router("Call: Broken", agents=[Broken(name="Broken")]).run_nonstream(ASKED)


class Itself(Router):
    """A router among its own agents."""

    def __init__(self) -> None:
        self.name = "Itself"
        super().__init__(ScriptedModel("x"), [painter(), self], name="Itself")


def test_agents_that_cannot_be_led_are_told_at_once():
    for agents, said in [
        ([], "has no agents"),
        ([painter(), painter()], "Two agents are named 'Painter'"),
        ([BasicAgent(llm=ScriptedModel("x"))], "has no name"),
        (["Painter"], "which is no agent: 'Painter'"),
    ]:
        with pytest.raises(SettingsError, match=said):
            Router(ScriptedModel("x"), agents)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="cannot be one of its own agents"):
        Itself()


def test_the_list_that_was_given_stays_the_callers():
    mine: list[Agent] = [painter()]
    desk = Router(ScriptedModel("x"), mine)
    mine.append(desk)
    assert desk.agent_names == ["Painter"]
    assert desk.nonuser_agents == desk.agents


@pytest.mark.parametrize(
    "said", ["Waiter: Call: Waiter", "Waiter: Call: Waiter\nGood evening.", "**Waiter**: call： Waiter"]
)
def test_a_name_in_front_as_in_a_play_is_no_matter(said: str):
    line = CallLine()
    assert line.feed(said) + line.close() == ""
    assert line.name == "Waiter"


@given(st.lists(st.text(alphabet="Cal:l x\n*", max_size=6), max_size=30))
def test_the_line_is_found_however_the_text_is_cut(pieces: list[str]):
    whole, cut = CallLine(held=10), CallLine(held=10)
    text = "".join(pieces)
    at_once = whole.feed(text) + whole.close()
    in_pieces = "".join(map(cut.feed, pieces)) + cut.close()
    assert whole.name == cut.name
    if whole.name is None:
        assert at_once == in_pieces == text


def test_a_reply_that_was_broken_off_goes_on_with_the_agent_in_the_middle_of_its_call():
    desk = router("never asked", agents=[painter(), counter("It is 42.")])
    call = Message("assistant", "", "Counter", {"name": "double", "arguments": '{"n": 21}'}, extra={"function_id": "7"})
    reply = desk.run_nonstream([*ASKED, call], may_have_run=())
    assert texts(reply) == [("double", "42"), ("Counter", "It is 42.")]
    assert desk.llm.requests == []  # type: ignore[union-attr]
