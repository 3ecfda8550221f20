"""What every agent in the catalog promises."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from core.agents.basic import BasicAgent
from core.agents.catalog import AGENTS
from core.agents.compat.group_chat_creator import NOT_PROPOSED, WRONG_PROPOSAL
from core.agents.group_chat import GroupChat
from core.agents.hub import PENDING_USER_INPUT
from core.agents.router import Router
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("name", sorted(AGENTS))]

QUESTION = [Message("user", "How are you?")]
LONG = "I am well, and I can say so in many more words than anybody would want to hear of me. " * 3

# Those that are not made of a model alone.
MADE: dict[str, Callable[..., Any]] = {
    "GroupChat": lambda model, **options: GroupChat(
        llm=model,
        agents=[BasicAgent(llm=model, name="Member")],
        agent_selection_method="round_robin",
        **options,
    ),
    "Router": lambda model, **options: Router(
        llm=model, agents=[BasicAgent(llm=ScriptedModel("Not me."), name="Other")], **options
    ),
}
# Those that say something else than their model does.
SAYS = {
    "GroupChatCreator": NOT_PROPOSED["en"].format(why=WRONG_PROPOSAL["en"]["no_object"]),
    "Memory": "[]",
    "UserAgent": PENDING_USER_INPUT,
}
# Those whose reply begins with a thought: the plan of what follows.
THINKS = {"WriteFromScratch"}
SPEAKS = {"GroupChat": "Member"}
WITHOUT_MODEL = {"Memory", "UserAgent"}
# Those that speak only when their model has; their own tests show that leaving stops it.
HOLDS_BACK = {"GroupChatCreator"}


def agent(kind: str, *turns: Any, **options: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*turns)
    made = MADE[kind](model, **options) if kind in MADE else AGENTS[kind](llm=model, **options)
    return made, model


def says(kind: str, text: str) -> str:
    return SAYS.get(kind, text)


async def test_its_reply_begins_and_ends_as_events_do(name: str):
    events = [event async for event in agent(name, "I am well.")[0].stream(QUESTION)]
    assert isinstance(events[0], MessageStarted)
    assert isinstance(events[-1], MessageFinished)
    assert Transcript(events).messages()[-1].get_text_content() == says(name, "I am well.")


def test_dicts_and_messages_come_back_as_they_went_in(name: str):
    one, _ = agent(name, "I am well.")
    asked = [{"role": "user", "content": "How are you?"}]
    answer = {"role": "assistant", "content": says(name, "I am well.")}
    thought = {"role": "assistant", "content": "", "reasoning_content": "I am well."}
    reply = [thought, answer] if name in THINKS else [answer]
    assert without_names(one.run_nonstream(asked)) == reply
    assert without_names(message.model_dump() for message in one.run_nonstream(QUESTION)) == reply
    assert without_names(list(one.run(asked))[-1]) == reply
    assert asked == [{"role": "user", "content": "How are you?"}]


def without_names(reply: Any) -> list[dict[str, Any]]:
    """The reply; where there are several speakers each has a name."""
    return [{key: value for key, value in message.items() if key != "name"} for message in reply]


def test_a_snapshot_that_was_given_never_changes(name: str):
    one, _ = agent(name, Reply(text=LONG, pace=0.002))
    given = [(reply, [message.model_dump() for message in reply]) for reply in one.run(QUESTION)]
    assert all([message.model_dump() for message in reply] == then for reply, then in given)
    assert given[-1][1][-1]["content"] == says(name, LONG)


async def test_leaving_early_stops_its_model(name: str):
    one, model = agent(name, Reply(text=LONG, pace=0.001))
    async with aclosing(one.stream(QUESTION)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert model.closed == (name not in WITHOUT_MODEL | HOLDS_BACK)


def test_its_system_message_is_the_first_thing_the_model_reads(name: str):
    one, model = agent(name, "ok", system_message="Speak in rhymes.")
    one.run_nonstream(QUESTION)
    read = [request.messages[0].get_text_content() for request in model.requests]
    assert all("Speak in rhymes." in text for text in read)
    assert bool(read) == (name not in WITHOUT_MODEL)


def test_it_has_the_name_and_description_it_was_given(name: str):
    one, _ = agent(name, "ok", name="Ada", description="Counts.")
    assert (one.name, one.description) == ("Ada", "Counts.")
    assert one.run_nonstream(QUESTION)[-1].name == SPEAKS.get(name, "Ada")
