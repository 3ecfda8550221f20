"""What agents that are tools ask about is asked of the program, each call for itself, and answered in one response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from core import Agent, FnCallAgent, tool
from core.agents.tools import AgentTool
from core.languages import Lang
from core.llm.request import Stream
from core.messages.message import Message
from core.testing.script import Reply
from tests.doors.house import OWNER, House, house_in

WRITTEN: list[str] = []


@tool
def write_note(text: str) -> str:
    """Write a note."""
    WRITTEN.append(text)
    return f"{text} is written"


write_note.writes = True


class OwnClerk(FnCallAgent):
    """One whose replies are made by code of its own: it begins anew in each response."""

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        kwargs.pop("may_have_run", None)
        return super()._stream_reply(messages, lang=lang, **kwargs)


def agents(address: str) -> list[Agent]:
    llm = {"model": "scripted", "base_url": address, "api_key": "any"}
    clerk = FnCallAgent([write_note], llm, name="Clerk", description="Writes notes.")
    own = OwnClerk([write_note], llm, name="Clerk", description="Writes notes.")
    return [FnCallAgent([AgentTool(one)], llm, name=name) for one, name in ((clerk, "Chief"), (own, "Boss"))]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("within") / "home", agents) as house:
        yield house


@pytest.mark.parametrize(("name", "turns"), [("Chief", 1), ("Boss", 3)])  # how often the clerk's model makes its calls
@pytest.mark.parametrize("yes", [(True, True), (True, False), (False, True)])
def test_two_calls_of_an_agent_that_is_a_tool_are_answered_each_for_itself(
    house: House, yes: tuple[bool, bool], name: str, turns: int
) -> None:
    WRITTEN.clear()
    key = house.key(f"tests of {name} {yes}")
    with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
        house.says(
            Reply(calls=[("Clerk", {"question": "Note a and b."})]),
            *(Reply(calls=[("write_note", {"text": one}) for one in ("a", "b")]) for _ in range(turns)),
            Reply(text="The clerk is done."),
            Reply(text="Noted."),
        )
        made = client.responses.create(model=f"agent:{name}", input="Note a and b.")
        for _ in range(4):
            asked = [one for one in made.output if one.type == "mcp_approval_request"]
            if not asked:
                break
            answers: list[Any] = [
                {
                    "type": "mcp_approval_response",
                    "approval_request_id": one.id,
                    "approve": yes['"b"' in one.arguments],
                }
                for one in asked
            ]
            made = client.responses.create(model=f"agent:{name}", input=answers, previous_response_id=made.id)
        assert sorted(WRITTEN) == [one for one, is_yes in zip("ab", yes, strict=True) if is_yes]
        assert made.output_text == "Noted."


def test_of_what_agents_that_are_tools_did_only_that_of_calls_that_wait_is_kept(house: House) -> None:
    WRITTEN.clear()
    with OpenAI(base_url=house.base_url, api_key=house.key("kept"), max_retries=0, timeout=30) as client:
        house.says(
            Reply(calls=[("Clerk", {"question": "What is there?"})]),
            Reply(text="There is nothing yet."),
            Reply(calls=[("Clerk", {"question": "Note a."})]),
            Reply(calls=[("write_note", {"text": "a"})]),
            Reply(text="It is noted."),
            Reply(text="Noted."),
        )
        made = client.responses.create(model="agent:Chief", input="Note a.")
        (asked,) = [one for one in made.output if one.type == "mcp_approval_request"]
        kept = house.do(lambda engine: engine.stores.of(OWNER).api_responses.get(made.id))
        assert len({payload["calls"][0] for _, _, payload in kept["inside"]}) == 1
        assert "nothing yet" not in str(kept["inside"])
        yes: Any = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
        again = client.responses.create(model="agent:Chief", input=[yes], previous_response_id=made.id)
        assert (again.output_text, WRITTEN) == ("Noted.", ["a"])
        assert not house.do(lambda engine: engine.stores.of(OWNER).api_responses.get(again.id))["inside"]
