"""Front ends that speak AG-UI read the events with the types of its own package: texts, thoughts, tools, errors."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    EventType,
    ReasoningMessageContentEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from pydantic import TypeAdapter

from core.testing.script import Reply, refusal
from tests.doors.house import House, house_in

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
HELLO: list[dict[str, Any]] = [{"id": "1", "role": "user", "content": "Hello?"}]
PAINT: dict[str, Any] = {
    "name": "paint",
    "description": "Paints the page",
    "parameters": {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("agui") / "home") as house:
        yield house


@pytest.fixture(scope="module")
def key(house: House) -> str:
    return house.key("front end")


def post(house: House, key: str, body: Any, model: str = "") -> httpx.Response:
    address = f"{house.base_url}/ag-ui{f'/{model}' if model else ''}"
    return httpx.post(address, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=30)


def run(
    house: House, key: str, messages: list[dict[str, Any]], model: str = "", *, ends: bool = True, **more: Any
) -> list[Event]:
    """The events of a run, each read by the protocol's own types, in an order that the protocol allows."""
    asked = RunAgentInput.model_validate({"threadId": "t", "runId": "r", "messages": messages, **more})
    answer = post(house, key, json.loads(asked.model_dump_json(by_alias=True)), model)
    assert answer.status_code == 200, answer.text
    told = [EVENT.validate_json(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: ")]
    assert isinstance(told[0], RunStartedEvent)
    assert isinstance(told[-1], RunFinishedEvent if ends else RunErrorEvent)
    opened: list[str] = []
    for event in told:  # what begins ends, and nothing begins within a text or a thought
        kind = str(event.type.value)
        if kind.endswith("_START") and kind != "REASONING_MESSAGE_START":
            assert not opened, (kind, opened)
            opened.append(kind.removesuffix("_START"))
        elif kind.endswith("_END") and kind != "REASONING_MESSAGE_END":
            assert opened.pop() == kind.removesuffix("_END")
        elif kind.endswith(("_CONTENT", "_ARGS")):
            assert opened
    assert not opened
    return told


def said(told: list[Event]) -> str:
    return "".join(one.delta for one in told if isinstance(one, TextMessageContentEvent))


def test_texts_and_thoughts_come_piece_by_piece_and_the_end_says_what_was_used(house: House, key: str) -> None:
    house.says(Reply(text="One two three.", reasoning="Hm, well.", usage=(9, 4), pace=0.02))
    told = run(house, key, HELLO, "installed")
    assert said(told) == "One two three."
    assert "".join(one.delta for one in told if isinstance(one, ReasoningMessageContentEvent)) == "Hm, well."
    assert len([one for one in told if one.type is EventType.TEXT_MESSAGE_CONTENT]) > 1
    last = told[-1]
    assert isinstance(last, RunFinishedEvent)
    assert (last.thread_id, last.run_id) == ("t", "r")
    (used,) = list(last.usage or ())
    assert (used.input_tokens, used.output_tokens) == (9, 4)


@pytest.mark.parametrize("model", ["installed", "parlour"])
def test_tools_of_the_front_end_are_handed_to_it_and_their_results_come_back(
    house: House, key: str, model: str
) -> None:
    house.says(Reply(calls=[("paint", {"colour": "green"})]), "It is green.")
    told = run(house, key, HELLO, model, tools=[PAINT], context=[{"description": "The page", "value": "is white"}])
    (call,) = [one for one in told if isinstance(one, ToolCallStartEvent)]
    arguments = "".join(one.delta for one in told if isinstance(one, ToolCallArgsEvent))
    assert (call.tool_call_name, json.loads(arguments)) == ("paint", {"colour": "green"})
    assert "The page: is white" in str(house.model.requests[0].body["messages"])
    last = told[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.outcome is not None
    assert last.outcome.type == "success"
    assert last.outcome.pending_tool_call_ids == [call.tool_call_id]
    made = {"id": call.tool_call_id, "type": "function", "function": {"name": "paint", "arguments": arguments}}
    turns = [*HELLO, {"id": "2", "role": "assistant", "toolCalls": [made]}]
    turns += [{"id": "3", "role": "tool", "toolCallId": call.tool_call_id, "content": "painted"}]
    assert said(run(house, key, turns, model, tools=[PAINT])) == "It is green."
    roles = [one["role"] for one in house.model.requests[-1].body["messages"]]
    assert roles[-3:] == ["user", "assistant", "tool"]


def test_tools_of_the_house_are_told_with_their_results(house: House, key: str) -> None:
    house.says(Reply(text="Let me see.", calls=[("calculator", {"expression": "17 * 23"})]), "It is 391.")
    told = run(house, key, HELLO)
    (start,) = [one for one in told if isinstance(one, ToolCallStartEvent)]
    (result,) = [one for one in told if isinstance(one, ToolCallResultEvent)]
    assert (start.tool_call_name, start.tool_call_id) == ("calculator", result.tool_call_id)
    assert "391" in str(result.content)
    assert said(told) == "Let me see.It is 391."
    assert len({one.message_id for one in told if isinstance(one, TextMessageContentEvent)}) == 2


def test_a_document_is_answered_from_and_its_marks_are_told(house: House, key: str) -> None:
    house.says("With heliotrope [1].")
    text = base64.b64encode(b"The vault opens with the word heliotrope.").decode()
    source = {"type": "data", "value": text, "mimeType": "text/markdown"}
    document = {"type": "document", "source": source, "metadata": {"filename": "vault.md"}}
    content = [{"type": "text", "text": "With which word does the vault open?"}, document]
    told = run(house, key, [{"id": "1", "role": "user", "content": content}])
    (cited,) = [one for one in told if isinstance(one, CustomEvent)]
    assert cited.name == "citations"
    assert [one["file_citation"]["filename"] for one in cited.value] == ["vault.md"]


def test_what_goes_wrong_in_its_midst_is_the_last_event(house: House, key: str) -> None:
    house.says(Reply(text="It begins and goes on", error_after=3, error={"message": "The service fell over."}))
    told = run(house, key, HELLO, "installed", ends=False)
    assert isinstance(told[-1], RunErrorEvent)
    assert told[-1].message.endswith(".")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"threadId": ""}, 400),
        ({"runId": 7}, 400),
        ({"messages": []}, 400),
        ({"messages": [{"id": "1", "role": "activity", "content": {}}]}, 400),
        ({"context": "here"}, 400),
        ({"context": ["here"]}, 400),
        ({"tools": {"name": "x"}}, 400),
        ({"tools": [{"name": ""}]}, 400),
        ({"messages": [{"id": "1", "role": "user", "content": [{"type": "image", "source": {"type": "data"}}]}]}, 400),
        ({"messages": [{"id": "1", "role": "user", "content": [{"type": "video", "source": {}}]}]}, 400),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(
    house: House, key: str, change: dict[str, Any], status: int
) -> None:
    answer = post(house, key, {"threadId": "t", "runId": "r", "messages": HELLO, **change})
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"].endswith(".")


def test_who_is_not_there_and_who_may_not_are_told_with_their_status(house: House, key: str) -> None:
    body = {"threadId": "t", "runId": "r", "messages": HELLO}
    assert post(house, key, body, "persona:x").status_code == 404
    assert post(house, house.key("files alone", scopes=["files"]), body).status_code == 403
    assert post(house, "pk-parlour-" + "A" * 43, body).status_code == 401
    house.says(*[refusal(429, retry_after="0.01")] * 4)
    assert post(house, key, body, "installed").status_code == 429
