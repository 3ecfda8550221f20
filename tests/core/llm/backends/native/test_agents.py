"""Agents on services with protocols of their own: tools, thoughts, typed answers, a conversation that goes on."""

from __future__ import annotations

from dataclasses import dataclass

from core.agents.basic import BasicAgent, FnCallAgent
from core.testing.script import Reply
from core.tools.from_function import tool


@dataclass
class Town:
    name: str
    people: int


@tool
def people_in(town: str) -> int:
    """How many people live in a town.

    Args:
        town: Its name.
    """
    return {"Oslo": 700_000}.get(town, 0)


def test_an_agent_calls_a_tool_and_thinks_between_its_turns(native):
    native.play(
        Reply(reasoning="I must look.", calls=[("people_in", {"town": "Oslo"})], usage=(10, 5)),
        Reply(reasoning="Now I know.", text="700,000 people.", usage=(20, 5)),
    )
    agent = FnCallAgent(llm=native.model(), function_list=[people_in])
    reply = agent.ask("How many people live in Oslo?")
    assert reply.text == "700,000 people."
    assert reply.reasoning == "I must look.\n\nNow I know."
    assert [(call.name, call.result) for call in reply.calls] == [("people_in", "700000")]
    assert reply.usage.total_tokens == 40
    assert "700000" in native.sent()


def test_an_answer_is_a_value_of_a_type(native):
    native.play(Reply(text='{"name": "Oslo", "people": 700000}'))
    reply = BasicAgent(llm=native.model()).ask("Which town?", output_type=Town)
    assert reply.output == Town("Oslo", 700_000)
    assert '"people"' in native.sent()
    assert '"additionalProperties": false' in native.sent()


def test_a_conversation_goes_on_with_what_was_thought_before(native):
    native.play(
        Reply(reasoning="I must look.", calls=[("people_in", {"town": "Oslo"})]),
        Reply(reasoning="Now I know.", text="700,000."),
        Reply(text="Yes."),
    )
    agent = FnCallAgent(llm=native.model(), function_list=[people_in])
    first = agent.ask("How many people live in Oslo?")
    assert agent.ask("Is that many?", history=first.history).text == "Yes."
