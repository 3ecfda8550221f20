"""Messages and their forms, against what Qwen-Agent made of them: the same, or better, and why."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from core.errors import BadMessagesError
from core.llm.calling.neutral import flattened
from core.llm.layers.messages import with_upload_names
from core.llm.wire.openai import Senses, messages_json
from core.llm.wire.turns import item_name
from core.messages.content import ContentItem
from core.messages.message import FunctionCall, Message
from core.testing.scripted_model import ScriptedModel
from tests.golden.claimed import Record, name, of

NEXT = Message("user", "and?")


def messages_of(dicts: list[dict[str, Any]]) -> list[Message]:
    return [Message(**each) for each in dicts]


def plain(messages: list[Message]) -> list[tuple[str, str]]:
    """Role and text, however the text is cut into items."""
    return [(m.role, "".join(item.text or "" for item in m.items)) for m in messages]


# -- the schema -------------------------------------------------------------------------------------------------------

CALL = FunctionCall("f", "{}")
SCHEMA: dict[str, Any] = {
    "empty_text": lambda: ContentItem(text="").model_dump(),
    "dump_excludes_none": lambda: Message("user", "x").model_dump(),
    "json": lambda: Message("user", [ContentItem(text="你")]).model_dump_json(),
    "get_falsy_default": lambda: [
        Message("user", "").get("content", "D"),
        Message("user", "").get("name", "D"),
        Message("user", "").get("role", "D"),
    ],
    "repr": lambda: repr(Message("assistant", "", function_call=CALL)),
    "video_list": lambda: ContentItem(video=["f1.jpg", "f2.jpg"]).type,
    "dict_fc": lambda: Message("assistant", "", function_call={"name": "f", "arguments": "{}"}).model_dump(),
    "text_image_both": lambda: ContentItem(text="a", image="b"),
    "bad_role": lambda: Message("tool", "x"),
}


@pytest.mark.parametrize("record", of("schema"), ids=name)
def test_messages_hold_and_refuse_the_same(record: Record) -> None:
    if "raises" in record:
        with pytest.raises(ValidationError) as caught:
            SCHEMA[record["id"]]()
        assert type(caught.value).__name__ == record["raises"]
    else:
        assert SCHEMA[record["id"]]() == record["output"]


# -- uploads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", of("format_as_multimodal_message"), ids=name)
def test_uploads_are_named_before_what_the_model_sees_itself(record: Record) -> None:
    asked = record["input"]
    names_all = asked["add_multimodel_upload_info"] or asked["add_audio_upload_info"]
    message = with_upload_names(
        Message(**asked["message"]), lambda item: item.type != "file", asked["lang"], names_all=names_all
    )
    if record["id"] == "assistant_file":
        # The file stays in the message, which is not the model's to change; what is sent is the same.
        assert messages_json([message, NEXT], Senses(pictures=True, audio=True))[0]["content"] == "t"
        return
    assert message.model_dump() == record["output"]


@pytest.mark.parametrize("record", of("format_as_text_message"), ids=name)
def test_uploads_are_named_to_a_model_that_reads_alone(record: Record) -> None:
    message = with_upload_names(Message(**record["input"]["message"]), lambda item: item.type == "text")
    if record["id"] == "assistant_file":
        assert messages_json([message, NEXT], Senses())[0] == record["output"]
        return
    assert message.model_dump() == record["output"]


def test_the_name_of_an_upload_is_told_once_and_never_made_of_its_data() -> None:
    message = Message("user", [ContentItem(text="see"), ContentItem(image="data:image/png;base64,AAAA/BBBB")])
    once = with_upload_names(message, lambda item: item.type == "text")
    assert once.content == "(Uploaded [image]) see"  # the peer takes the end of the data for a file name
    told = [ContentItem(text="(Uploaded [file](a.txt)) see"), ContentItem(file="a.txt")]
    assert (
        with_upload_names(Message("user", told), lambda item: item.type == "text").content
        == "(Uploaded [file](a.txt)) see"
    )


@pytest.mark.parametrize("record", of("get_basename_from_url"), ids=name)
def test_the_name_of_an_address_is_its_last_part(record: Record) -> None:
    assert item_name(ContentItem(file=record["input"])) == record["output"]


# -- to a service -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", of("oai.convert_messages_to_dicts"), ids=name)
def test_a_service_gets_what_its_protocol_wants(record: Record) -> None:
    if record["id"] == "assistant_first":  # the peer crashes
        with pytest.raises(BadMessagesError):
            ScriptedModel("never").chat(record["input"], stream=False)
        return
    sent = messages_json(messages_of(record["input"]), Senses())
    peer = record["output"]
    match record["id"]:
        case "parallel":  # the peer's results carry `id` and `extra`, which no service knows
            assert sent[:2] == peer[:2]
            assert sent[2:] == [
                {"role": "tool", "tool_call_id": "c1", "content": "1"},
                {"role": "tool", "tool_call_id": "c2", "content": "2"},
            ]
        case "two_assistant_texts":  # the peer loses the first text
            assert [each["content"] for each in sent] == ["q", "one\ntwo", "q2"]
        case "no_content_call":
            # The peer leaves the content and the result out, and gives each call the id "1"; services want all three.
            assert [each["role"] for each in sent] == ["user", "assistant", "tool"]
            assert sent[1]["content"] == ""
            assert sent[1]["tool_calls"][0]["function"] == peer[1]["tool_calls"][0]["function"]
            assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]
        case other:
            pytest.fail(f"nothing is said about {other}")


@pytest.mark.parametrize("record", of("remove_fncall_messages"), ids=name)
def test_old_calls_become_text_for_a_model_without_tools(record: Record) -> None:
    asked = record["input"]
    ours = plain(flattened(messages_of(asked["messages"]), asked["lang"]))
    peer = plain(messages_of(record["output"]))
    if record["id"] == "rm_empty_result_zh":  # the peer says "No result." in the middle of Chinese
        peer = [(role, text.replace("No result.", "没有结果。")) for role, text in peer]
    if record["id"].startswith("rm_two_users"):
        # The peer puts an answer "..." between two questions, which a model may take for its own; ours stay two.
        peer = [each for each in peer if each != ("assistant", "...")]
    assert ours == peer


def test_a_conversation_that_ends_with_the_assistant_is_continued() -> None:
    same, refused = of("simulate_completion")
    conversation = [Message("user", "u"), Message("assistant", "part")]
    assert messages_json(conversation, Senses()) == same["output"]
    # After a system message the peer fails on its own assertion: ours asks for the continuation all the same.
    assert refused["raises"] == "AssertionError"
    assert messages_json([Message("system", "s"), *conversation], Senses()) == [
        {"role": "system", "content": "s"},
        *same["output"],
    ]


@pytest.mark.parametrize("record", of("validate_num_fncall_results"), ids=name)
def test_results_find_their_calls_in_whatever_order_they_come(record: Record) -> None:
    sent = messages_json(messages_of(record["input"]), Senses())
    calls = {call["id"]: call["function"]["name"] for each in sent for call in each.get("tool_calls", [])}
    results = [calls[each["tool_call_id"]] for each in sent if each["role"] == "tool"]
    if record.get("raises"):  # better: the peer refuses results in another order than the calls
        assert results == ["g", "f"]
    else:
        assert results == ["f"]
