"""Programs that use OpenAI's responses get typed items, go on from what was said, and answer questions about calls."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any, cast

import openai
import pytest
from openai import OpenAI

from core.doors.guard import Answered, DoorGuard
from core.doors.namespaces import clash
from core.engine import Engine
from core.messages.message import Message
from core.models.pool import ModelLoader
from core.testing.script import Reply, refusal
from core.tools.approval import ApprovalRequest, Decision, Policy
from core.tools.taint import Taint
from tests.doors.house import OWNER, House, house_in

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("responses") / "home") as house:
        yield house


@pytest.fixture(scope="module")
def client(house: House) -> Iterator[OpenAI]:
    with OpenAI(base_url=house.base_url, api_key=house.key("tests"), max_retries=0, timeout=30) as client:
        yield client


@pytest.mark.parametrize("model", ["installed", "parlour"])
def test_a_response_is_gone_on_from_and_forgotten(client: OpenAI, house: House, model: str) -> None:
    house.says(Reply(text="Hello, world.", reasoning="Hm.", usage=(11, 3)), "Again.")
    made = client.responses.create(model=model, input="Hello?", instructions="Be brief.")
    assert (made.output_text, [one.type for one in made.output]) == ("Hello, world.", ["reasoning", "message"])
    assert made.usage is not None
    assert (made.usage.input_tokens, made.usage.output_tokens) == (11, 3)
    assert "Be brief." in str(house.model.requests[0].body["messages"][0])
    more = client.responses.create(model=model, input="And?", previous_response_id=made.id)
    told = house.model.requests[-1].body["messages"]
    assert [one["role"] for one in told][-3:] == ["user", "assistant", "user"]
    assert "Be brief." not in str(told)
    assert client.responses.retrieve(more.id).output_text == "Again."
    client.responses.delete(more.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(more.id)
    unkept = client.responses.create(model=model, input="And?", store=False) if house.says("No.") is None else None
    assert unkept is not None
    with pytest.raises(openai.BadRequestError, match="go on from"):
        client.responses.create(model=model, input="And?", previous_response_id=unkept.id)


@pytest.mark.parametrize("model", ["installed", "parlour"])
def test_events_are_numbered_and_calls_of_the_program_are_handed_to_it(
    client: OpenAI, house: House, model: str
) -> None:
    house.says(Reply(calls=[("get_weather", {"city": "Köln"})]), "It rains.")
    with client.responses.stream(model=model, input="Weather in Köln?", tools=[WEATHER]) as stream:
        numbers = [one.sequence_number for one in stream]
        made = stream.get_final_response()
    assert numbers == list(range(len(numbers)))
    (call,) = made.output
    assert call.type == "function_call"
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Köln"}')
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "12 degrees"}
    after = client.responses.create(model=model, input=[result], previous_response_id=made.id, tools=[WEATHER])
    assert after.output_text == "It rains."


@pytest.mark.parametrize("model", ["installed", "parlour"])
def test_a_tool_of_a_namespace_is_called_by_one_name_and_comes_back_with_both(
    client: OpenAI, house: House, model: str
) -> None:
    tools: Any = [{"type": "namespace", "name": "mcp__sky", "description": "Of the sky", "tools": [WEATHER]}, WEATHER]
    house.says(Reply(calls=[("mcp__sky__get_weather", {"city": "Rome"})]), "It rains.")
    with client.responses.stream(model=model, input="Weather?", tools=tools, store=False) as stream:
        done = [one.item for one in stream if one.type == "response.output_item.done"]
        made = stream.get_final_response()
    offered = [one["function"]["name"] for one in house.model.requests[-1].body["tools"]]
    assert {"mcp__sky__get_weather", "get_weather"} <= {*offered}
    (call,) = [one.model_dump(exclude_none=True) for one in made.output]
    assert (call["name"], call["namespace"]) == ("get_weather", "mcp__sky")
    assert [one.model_dump(exclude_none=True) for one in done] == [call]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "12 degrees"}
    asked: Any = [{"role": "user", "content": "Weather?"}, call, result]
    after = client.responses.create(model=model, input=asked, tools=tools, store=False)
    assert after.output_text == "It rains."
    told = house.model.requests[-1].body["messages"]
    made_before = next(one for one in told if one.get("tool_calls"))
    assert made_before["tool_calls"][0]["function"]["name"] == "mcp__sky__get_weather"
    assert "12 degrees" in str(house.model.requests[-1].body["messages"][-1])


def test_tools_of_namespaces_whose_names_would_be_the_same_are_refused(client: OpenAI) -> None:
    of_sky: Any = {"type": "namespace", "name": "sky", "tools": [WEATHER]}
    others: list[Any] = [{**WEATHER, "name": "sky__get_weather"}, {**of_sky, "name": "sky__"}]
    for other in others:
        with pytest.raises(openai.BadRequestError, match="'sky__get_weather' is the name of two tools"):
            client.responses.create(model="installed", input="Weather?", tools=[of_sky, other])
    assert clash([of_sky, of_sky, WEATHER, WEATHER, {"name": []}, "x"]) == ""


@pytest.mark.parametrize("yes", [True, False])
def test_what_would_be_asked_about_is_asked_of_the_program(client: OpenAI, house: House, yes: bool) -> None:
    rules = house.engine.toolbox.of(OWNER).rules
    house.do(lambda _: rules.change(mode="always"))
    try:
        house.says(Reply(calls=[("calculator", {"expression": "17 * 23"})]), "Done.")
        made = client.responses.create(model="parlour", input="17 * 23?")
        (asked,) = made.output
        assert asked.type == "mcp_approval_request"
        assert (asked.name, "17 * 23" in asked.arguments) == (
            "calculator",
            True,
        )
        answer: Any = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": yes}
        after = client.responses.create(model="parlour", input=[answer], previous_response_id=made.id)
        call = after.output[0]
        assert call.type == "mcp_call"
        assert call.status == ("completed" if yes else "failed")
        assert "17 * 23" in call.arguments
        assert ("391" in (call.output or ""), call.error is None) == (yes, yes)
        assert after.output_text == "Done."
        with pytest.raises(openai.BadRequestError, match="answered already"):
            client.responses.create(model="parlour", input=[answer], previous_response_id=made.id)
        with pytest.raises(openai.BadRequestError):
            forged: Any = {**answer, "approval_request_id": f"{asked.id}9"}
            client.responses.create(model="parlour", input=[forged], previous_response_id=made.id)
        house.says(Reply(calls=[("calculator", {"expression": "1 + 1"})]), "I could not.")
        unkept = client.responses.create(model="parlour", input="1 + 1?", store=False)
        assert "Not run: calculator." in unkept.output_text  # nobody could go on from it
    finally:
        house.do(lambda _: rules.change(mode="writes"))


@pytest.mark.anyio
@pytest.mark.parametrize("other", [{"name": "delete"}, {"arguments": {"path": "b"}}, {"call_id": "2"}, {}])
async def test_a_yes_is_for_the_call_that_was_asked_about_alone_and_once(other: dict[str, Any]) -> None:
    open_ = ["mcpr_1"]

    async def spend() -> bool:
        return bool(open_) and bool(open_.pop())

    asked: dict[str, Any] = {"call_id": "1", "name": "note", "arguments": {"path": "a"}}
    answer = Answered(**asked, yes=True, spend=spend)
    for once in (True, False):
        guard = DoorGuard(Policy(), None, parked=lambda: None, given=[answer])
        asking = ApprovalRequest(**{**asked, **other}, reason="writes", wants={})
        assert guard.asks is not None
        answered: Any = guard.asks(asking)
        decision = await answered
        assert isinstance(decision, Decision)
        assert decision.allowed is (once and not other)
    assert len(open_) == (1 if other else 0)


def test_a_question_that_is_left_open_is_asked_again(client: OpenAI, house: House) -> None:
    rules = house.engine.toolbox.of(OWNER).rules
    house.do(lambda _: rules.change(mode="always"))
    try:
        house.says(Reply(calls=[("calculator", {"expression": one}) for one in ("1 + 1", "2 + 2")]), "Both.")
        made = client.responses.create(model="parlour", input="Both?")
        assert [one.type for one in made.output] == ["mcp_approval_request"] * 2
        answers: list[Any] = [
            {"type": "mcp_approval_response", "approval_request_id": str(one.id), "approve": True}
            for one in made.output
        ]
        half = client.responses.create(model="parlour", input=answers[:1], previous_response_id=made.id)
        assert sorted(one.type for one in half.output) == ["mcp_approval_request", "mcp_call"]
        (asked,) = [one for one in half.output if one.type == "mcp_approval_request"]
        rest: Any = {**answers[1], "approval_request_id": asked.id}
        whole = client.responses.create(model="parlour", input=[rest], previous_response_id=half.id)
        assert whole.output_text == "Both."
    finally:
        house.do(lambda _: rules.change(mode="writes"))


def test_marks_lead_to_files_and_no_owner_reads_anothers_response(client: OpenAI, house: House) -> None:
    text = base64.b64encode(b"The vault opens with the word heliotrope.").decode()
    house.says("With heliotrope [1].")
    parts = [
        {"type": "input_text", "text": "With which word does the vault open?"},
        {"type": "input_file", "filename": "vault.md", "file_data": f"data:text/plain;base64,{text}"},
    ]
    asked: Any = [{"role": "user", "content": parts}]
    made = client.responses.create(model="parlour", input=asked)
    content: Any = made.output[-1].model_dump()["content"][0]
    (mark,) = content["annotations"]
    assert (mark["type"], mark["filename"], mark["number"]) == ("file_citation", "vault.md", 1)
    assert content["text"][mark["start_index"] : mark["end_index"]] == "[1]"
    with OpenAI(base_url=house.base_url, api_key=house.key("bob", owner="b-bob"), max_retries=0) as bob:
        with pytest.raises(openai.NotFoundError):
            bob.responses.retrieve(made.id)
        with pytest.raises(openai.BadRequestError):
            bob.responses.create(model="parlour", input="And?", previous_response_id=made.id)


def test_a_service_that_refuses_is_told_with_its_status(client: OpenAI, house: House) -> None:
    house.says(refusal(400, "Too hot."))
    with pytest.raises(openai.BadRequestError, match="Too hot"):
        list(client.responses.create(model="installed", input="Hello?", stream=True))


def test_a_response_says_all_that_open_responses_asks_of_one(client: OpenAI, house: House) -> None:
    told = {
        *("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "instructions"),
        *("previous_response_id", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls"),
        *("text", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning"),
        *("usage", "max_output_tokens", "max_tool_calls", "store", "background", "service_tier", "metadata"),
        *("safety_identifier", "prompt_cache_key"),
    }
    house.says("Hello.", "Hello.")
    given: dict[str, Any] = {"truncation": 7, "metadata": [], "tools": [{**WEATHER}]}
    for body in (None, given):
        raw = client.responses.with_raw_response.create(model="installed", input="Hello?", extra_body=body)
        made = raw.http_response.json()
        assert told - set(made) == set()
        usual = {"temperature": 1.0, "top_p": 1.0, "truncation": "disabled", "metadata": {}, "background": False}
        assert {name: made[name] for name in usual} == usual, "what cannot be so is told as it is meant"
        assert made["completed_at"] >= made["created_at"]
        assert made["text"] == {"format": {"type": "text"}}
        assert made["reasoning"] == {"effort": None, "summary": None}
    house.says("Hello.")
    events = list(client.responses.create(model="installed", input="Hello?", stream=True))
    begun, over = events[0], events[-1]
    assert begun.type == "response.created"
    assert over.type == "response.completed"
    assert told - set(begun.response.model_dump()) == set()
    assert begun.response.completed_at is None


def test_a_conversation_may_begin_with_what_the_assistant_said(client: OpenAI, house: House) -> None:
    house.says("Four.")
    said: Any = [
        {"type": "message", "role": "assistant", "phase": "final_answer", "content": "The number is four."},
        {"type": "message", "role": "user", "content": "Repeat only the number."},
    ]
    assert client.responses.create(model="installed", input=said).output_text == "Four."
    told = house.model.requests[0].body["messages"]
    assert [one["role"] for one in told if one["role"] != "system"] == ["user", "assistant", "user"]


def test_of_an_earlier_response_the_words_of_the_user_stay_beside_the_summary(client: OpenAI, house: House) -> None:
    house.says("Hello Ann.", "A greeting.", "A greeting of a greeting.")
    first = client.responses.create(model="installed", input="My name is Ann.")
    made = client.responses.compact(model="parlour", previous_response_id=first.id, input="Say it again.")
    kept: Any = [one.model_dump(exclude_none=True, warnings=False) for one in made.output]
    assert [one["content"][0]["text"] for one in kept[:-1]] == ["My name is Ann.", "Say it again."]
    again = client.responses.compact(model="parlour", input=kept)
    assert [one.type for one in again.output] == ["message", "message", "compaction"]


def test_what_was_said_is_summed_up_and_goes_on_from_a_summary_that_nobody_else_can_use(
    client: OpenAI, house: House
) -> None:
    said: Any = [
        {"role": "user", "content": "We launch on Tuesday."},
        {"role": "assistant", "content": "Understood: Tuesday."},
    ]
    house.says(Reply(text="They launch on Tuesday.", usage=(40, 5)), "On Tuesday.")
    made = client.responses.compact(model="parlour", input=said)
    assert (made.object, made.usage.input_tokens, made.usage.output_tokens) == ("response.compaction", 40, 5)
    kept, item = [one.model_dump(exclude_none=True, warnings=False) for one in made.output]
    assert (kept["role"], kept["content"][0]["text"]) == ("user", "We launch on Tuesday.")
    assert item["type"] == "compaction"
    assert "Tuesday" not in item["encrypted_content"]
    window: Any = [kept, item, {"role": "user", "content": "When?"}]
    assert client.responses.create(model="installed", input=window).output_text == "On Tuesday."
    told = house.model.requests[-1].body["messages"]
    assert "They launch on Tuesday." in [one["content"] for one in told if one["role"] == "assistant"]
    with (
        OpenAI(base_url=house.base_url, api_key=house.key("eve", owner="e-eve"), max_retries=0) as eve,
        pytest.raises(openai.BadRequestError, match="not made here"),
    ):
        eve.responses.create(model="parlour", input=window)
    with pytest.raises(openai.BadRequestError, match="input must be"):
        client.responses.compact(model="parlour", input=[])
    with pytest.raises(openai.BadRequestError, match="names no model"):
        client.post("/responses/compact", body={"input": said}, cast_to=object)


def test_a_summary_whose_model_is_never_ready_ends_with_the_time_of_a_reply_and_holds_no_place(
    client: OpenAI, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_loader: ModelLoader) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(ModelLoader, "ready", never)
        patched.setitem(vars(house.engine.settings), "reply_seconds", 0.05)
        for _ in range(house.engine.settings.replies_at_once + 1):
            with pytest.raises(openai.APIStatusError, match=r"taken 0\.05 seconds"):
                client.responses.compact(model="parlour", input="We launch on Tuesday.")
    house.says("They launch on Tuesday.")
    assert client.responses.compact(model="parlour", input="We launch on Tuesday.").object == "response.compaction"


@pytest.mark.parametrize("private", [True, False])
def test_a_summary_of_something_private_stays_private(client: OpenAI, house: House, private: bool) -> None:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    asks = [{"type": "input_text", "text": "What is this?"}, *([picture] if private else [])]
    said: Any = [{"role": "user", "content": asks}, {"role": "assistant", "content": "The key of the safe."}]
    house.says("They have the key of a safe.", "Still the same.", "They have it still.", "Yes.")
    for _ in range(2):  # a summary of a summary, too
        item = client.responses.compact(model="parlour", input=said).output[-1]
        said = [item.model_dump(exclude_none=True, warnings=False), {"role": "user", "content": "Still?"}]
        made = client.responses.create(model="parlour", input=said)
        kept = house.do(lambda engine, made=made: engine.stores.of(OWNER).api_responses.get(made.id))["messages"]
        assert Taint.of(Message(**one) for one in kept).private is private


def test_to_sum_up_counts_towards_the_limit_of_questions(house: House) -> None:
    house.says(Reply(text="They launch on Tuesday.", usage=(40, 5)))

    async def used(engine: Engine) -> tuple[int, int]:
        while (found := (await engine.stores.use.since("2000-01-01")).get("z-zoe")) is None:
            await asyncio.sleep(0)
        return found.messages, found.tokens

    with OpenAI(base_url=house.base_url, api_key=house.key("zoe", owner="z-zoe"), max_retries=0, timeout=30) as zoe:
        zoe.responses.compact(model="parlour", input="We launch on Tuesday.")
        assert house.do(used) == (1, 45)


def test_what_a_request_said_is_listed_page_by_page(client: OpenAI, house: House) -> None:
    house.says(Reply(text="Fine."))
    picture: Any = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    said: Any = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "One."},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "Sun."},
        {"role": "user", "content": [{"type": "input_text", "text": "Two?"}, picture]},
    ]
    made = client.responses.create(model="installed", input=said, tools=[WEATHER])
    pages = client.responses.input_items
    newest, *_, oldest = list(pages.list(made.id, limit=2))  # the package turns the pages
    assert [one.type for one in pages.list(made.id, order="asc")] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    texts: Any = (newest, oldest)
    assert [one.content[0].text for one in texts] == ["Two?", "One?"]
    assert PNG not in str(newest)
    page: Any = pages.list(made.id, order="asc", limit=1, after=oldest.id or "")
    assert ([one.role for one in page.data], page.has_more, page.first_id == page.last_id) == (
        ["assistant"],
        True,
        True,
    )
    assert house.says("Again.") is None
    more = client.responses.create(model="installed", input="And?", previous_response_id=made.id)
    (only,) = cast("Any", pages.list(more.id))
    assert only.content[0].text == "And?"
    wrong: Any
    for wrong in ({"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "msg_1"}):
        with pytest.raises(openai.BadRequestError, match=next(iter(wrong))):
            pages.list(made.id, **wrong)
    with pytest.raises(openai.NotFoundError):
        pages.list("resp_nobody")


def test_a_response_that_is_over_is_neither_cancelled_nor_streamed_once_more(client: OpenAI, house: House) -> None:
    house.says("Over.")
    made = client.responses.create(model="installed", input="Hello?")
    with pytest.raises(openai.BadRequestError, match="in the background"):
        client.responses.cancel(made.id)
    with pytest.raises(openai.BadRequestError, match="in the background"):
        client.responses.retrieve(made.id, stream=True, starting_after=1)
    with pytest.raises(openai.NotFoundError):
        client.responses.cancel("resp_nobody")
