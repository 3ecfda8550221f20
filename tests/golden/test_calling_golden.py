"""Prompts about tools and the reading of calls, as Qwen-Agent 0.0.34 was recorded: the same, or better and why."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from core.llm.calling.call_text import read_calls
from core.llm.calling.nous import NousTemplate, tools_text
from core.llm.calling.qwen import ONE_TOOL, TOOLS, QwenTemplate
from core.llm.request import ChatRequest
from core.messages.message import Message
from core.messages.transcript import Transcript, call_message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.golden.claimed import Record, name, of

CODE_TOOL = {"name": "code_interpreter", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}}}
OFFERED = [
    *({"name": each, "parameters": {"type": "object"}} for each in ("f", "g", "a", "b", "get_weather")),
    CODE_TOOL,
]
CALL_F = ("", "", "f", '{"x": 1}')
HALF = '<tool_call>\n{"name": "get_weather", "arguments": '

BETTER: dict[str, tuple[list[tuple[str, str, str, str]], str]] = {
    "post_text": ([("", "", "get_weather", '{"city": "Paris"}'), ("Done.", "", "", "")], "text after a call is kept"),
    "missing_brace": ([CALL_F], "a missing brace is mended"),
    "extra_brace": ([CALL_F], "an extra brace is left out"),
    "newline_in_string": ([("", "", "f", '{"code": "a\\nb"}')], "arguments are always JSON"),
    "arguments_string": ([CALL_F], "arguments that were JSON text already are not encoded twice"),
    "arguments_missing": ([("", "", "f", "{}")], "a call without arguments is a call"),
    "parameters_key": ([CALL_F], "`parameters` are arguments"),
    "name_missing": (
        [('<tool_call>\n{"arguments": {"x": 1}}\n</tool_call>', "", "", "")],
        "what cannot be read stays text and does not vanish",
    ),
    "empty_call": (
        [("<tool_call>\n\n</tool_call>", "", "", "")],
        "there is never a call to a tool named nothing, and no reply that says nothing",
    ),
    "open_only": ([("<tool_call>", "", "", "")], "a reply that ends there is not nothing: it stays text"),
    "partial_args0": ([(HALF, "", "", "")], "a reply that ends in a call has no call to run: it stays text"),
    "partial_args1": ([(HALF + "{", "", "", "")], "the same"),
    "partial_args2": ([(HALF + '{"city": "Par', "", "", "")], "the same; no character is lost"),
    "partial_close_tag": ([CALL_F], "half a tag is no argument"),
    "think_then_text": ([("", "hmm\n", "", ""), ("Answer", "", "", "")], "a thought is reasoning, not text"),
    "think_then_call": ([("", "hmm\n", "", ""), CALL_F], "a thought is reasoning, not text"),
    "think_contains_call": (
        [
            ("", 'maybe <tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>', "", ""),
            ("no call", "", "", ""),
        ],
        "a thought is reasoning, not text",
    ),
    "think_open": (
        [("", 'thinking <tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', "", "")],
        "a thought is reasoning, not text",
    ),
    "think_double_close": (
        [("", "a", "", ""), ("b</think>", "", "", ""), ("", "", "f", "{}")],
        "a thought is reasoning, not text, and ends where it ends",
    ),
    "close_only_no_flag": (
        [("reasoning </think>", "", "", ""), ("", "", "f", "{}")],
        "line breaks before a call are not shown",
    ),
    "nested_marker_in_arg": ([("", "", "f", '{"t": "literal </tool_call> inside"}')], "a tag in a string is text"),
    "nan_inf": ([("", "", "f", '{"x": null, "y": null}')], "JSON has no NaN"),
    "xml_qwen3_coder": ([("", "", "f", '{"x": "1"}')], "XML calls are read"),
    "tic_close_only": ([("", "reasoning ", "", ""), ("", "", "f", "{}")], "a thought is reasoning, not text"),
    "tic_open": (
        [("still thinking", "", "", ""), ("", "", "f", "{}")],
        "a reply that closes no thought is an answer, and its calls are calls",
    ),
    "ok": (
        [("", "", "code_interpreter", '{"code": "print(\\"a\\")"}')],
        "the tags' line breaks are no part of the code",
    ),
    "partial_code": (
        [('<tool_call>\n{"name": "code_interpreter", "arguments": {"code": ""}}\n<code>\nprint("a', "", "", "")],
        "half a program is not run",
    ),
    "code_contains_tag": ([("", "", "code_interpreter", '{"code": "s = \\"<code>x</code>\\""}')], "code stays whole"),
    "code": (
        [("", "", "code_interpreter", '{"code": "print(1)"}'), ("extra", "", "", "")],
        "code in a fence becomes an argument, and text after it is kept",
    ),
}


def seen(messages: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Text, thought, the call's name and its arguments of each message; how texts are cut into items says nothing."""
    found = []
    for message in messages:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "".join(item["text"] for item in content)
        call = message.get("function_call") or {"name": "", "arguments": ""}
        found.append((text, message.get("reasoning_content") or "", call["name"], call["arguments"]))
    return found


def replied(reply: Reply | str, **generate: Any) -> list[dict[str, Any]]:
    model = ScriptedModel(reply, native=False)
    asked = [{"role": "user", "content": "q"}]
    return model.chat(asked, OFFERED, stream=False, extra_generate_cfg=generate)  # type: ignore[return-value]


READ = [r for r in of("nous.postprocess", "nous.code_mode.postprocess", "qwen.postprocess") if r["input"] is not None]


@pytest.mark.parametrize("record", READ, ids=name)
def test_a_reply_is_read_as_recorded_or_better(record: Record) -> None:
    given = {"text": record["input"]} if isinstance(record["input"], str) else dict(record["input"])
    reply = Reply(text=given.pop("text"), reasoning=given.pop("reasoning_content", ""))
    if record["fn"] == "qwen.postprocess":
        given["fncall_prompt_type"] = "qwen"
    got = replied(reply, **given)
    expected, why = BETTER.get(record["id"], (seen(record["output"]), ""))
    assert seen(got) == expected, why
    ids = [message["extra"]["function_id"] for message in got if message.get("function_call")]
    assert ids == [str(number) for number, _ in enumerate(ids, 1)]
    if record.get("peer_bug"):
        assert record["id"] in BETTER or record["id"] == "unicode_escape"  # that one the recorder wrote down mended


def test_pictures_of_a_reply_and_a_named_choice_are_no_obstacle() -> None:
    """`multimodal_out` and `extra_kept` have no input recorded; `function_choice_named` raised: here it is honoured."""
    by_hand = {record["id"] for record in of("nous.postprocess", "nous.code_mode.postprocess", "qwen.postprocess")}
    assert by_hand - {record["id"] for record in READ} == {"multimodal_out", "extra_kept", "function_choice_named"}
    model = ScriptedModel('see\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', native=False)
    said = model.chat([Message("user", "q")], OFFERED, stream=False, extra_generate_cfg={"function_choice": "f"})
    assert [message["content"] for message in said] == ["see", ""]
    assert model.requests[0].messages[0].get_text_content().endswith("Call the function f now, and no other.")


@pytest.mark.parametrize("record", of("nous.postprocess.stream"), ids=name)
def test_while_a_reply_grows_only_what_is_certain_is_shown(record: Record) -> None:
    """Better than recorded: no half tag and no half argument is ever shown, and no call before its end is known."""
    text, shown = record["input"]["text"], ""
    request = ChatRequest((Message("user", "q"),), tuple(OFFERED))
    reader, growing = NousTemplate().reader(request), Transcript()
    for at, character in enumerate(text):
        for event in reader.feed(character):
            growing.apply(event)
        shown = "".join(message.get_text_content() for message in growing.messages())
        assert "<" not in shown
        assert reader.calls == text.count("</tool_call>", 0, at + 1)
    for event in reader.close():
        growing.apply(event)
    assert seen(replied(text)) == [(found[0].rstrip("\n"), *found[1:]) for found in seen(record["output"][-1])]
    assert shown == ("Hi." if text.startswith("Hi.") else "")


@pytest.mark.parametrize("record", of("nous.extract_fn"), ids=name)
def test_the_body_of_a_call_is_read_as_recorded_or_better(record: Record) -> None:
    calls = [(call.name, call.arguments) for call in read_calls(record["input"]) if call.readable]
    better = {
        "c": [],  # a name alone is no call
        "g": [],
        "f": [("f", "1")],  # nothing is lost
        "h": [('"q"', '{"x": "}"}')],  # the name is JSON text like any other
    }
    assert calls == better.get(record["id"], [tuple(record["output"])])


def request_of(record: Record) -> ChatRequest:
    messages = [as_message(message) for message in record["input"].get("messages", [{"role": "user", "content": "x"}])]
    return ChatRequest(tuple(messages), tuple(record["input"]["functions"]))


def as_message(given: dict[str, Any]) -> Message:
    """A recorded message; a call with broken arguments is what a model's reply makes of them."""
    call = given.get("function_call")
    return call_message("1", call["name"], call["arguments"]) if call and not given["content"] else Message(**given)


def dumped(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    return [message.model_dump(exclude_none=True) for message in messages]


NOUS = [record for record in of("nous.preprocess") if record["input"] is not None]


@pytest.mark.parametrize("record", NOUS, ids=name)
def test_a_conversation_with_tools_is_written_as_recorded_or_better(record: Record) -> None:
    messages = dumped(NousTemplate().prepare(request_of(record)).messages)
    record = deepcopy(record)  # what others read is not changed
    match record["id"]:
        case "call_with_content":  # a call stands on a line of its own
            record["output"][2]["content"].insert(1, {"text": "\n"})
        case "empty_args":  # no arguments are an empty object, as the format wants it
            record["output"][2]["content"][0]["text"] = (
                '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
            )
        case "reasoning_lost" | "reasoning_on_second":  # a thought is not lost where messages are joined
            assert [m["reasoning_content"] for m in messages if "reasoning_content" in m] != []
            messages = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in messages]
            record["output"][2].pop("reasoning_content", None)
        case "tool_result_has_markup":  # a result cannot forge our tags
            assert "</tool_response> ignore" not in str(messages)
            messages = [without_breaks(message) for message in messages]
        case "function_first":  # a result without a call is a result all the same
            assert messages[1]["content"][1] == {"text": "1"}
            return
        case _:
            assert not record.get("peer_bug")
    assert messages == record["output"]


def without_breaks(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "content": [{"text": item["text"].replace("\u200b", "")} for item in message["content"]]}


def test_a_named_choice_is_honoured_where_the_peer_raises() -> None:
    [record] = [record for record in of("nous.preprocess") if record["id"] == "function_choice_named"]
    assert [other for other in of("nous.preprocess") if other not in NOUS] == [record]
    assert record["raises"] == "NotImplementedError"
    request = ChatRequest((Message("user", "w?"),), tuple(OFFERED), {"function_choice": "f"})
    assert "Call the function f now" in NousTemplate().prepare(request).messages[0].get_text_content()


def test_code_travels_as_an_argument_like_any_other() -> None:
    """Better than recorded: one form for all tools. What a model writes in the form with `<code>` is read (above)."""
    [record] = of("nous.code_mode.preprocess")
    told = tools_text(record["input"]["functions"])
    assert record["output"][0]["content"][0]["text"].startswith(told)


@pytest.mark.parametrize("record", of("qwen.preprocess"), ids=name)
def test_the_first_qwen_template_is_written_as_recorded(record: Record) -> None:
    weather = of("nous.preprocess")[0]["input"]["functions"]
    given = record["input"] or {"functions": weather, "lang": "en", "parallel": False}
    generate: dict[str, Any] = {"parallel_function_calls": given["parallel"]}
    messages = [Message("user", "w?")]
    if record["input"]:
        messages.insert(0, Message("system", "You are helpful."))
    if record["id"] == "round":
        messages.append(call_message("1", "get_weather", '{"city": "A"}'))
        messages.append(Message("function", "1", name="get_weather", extra={"function_id": "1"}))
    if record["id"] == "choice":
        generate["function_choice"] = "get_weather"
    asked = ChatRequest(tuple(messages), tuple(given["functions"]), generate, given["lang"])
    prepared = QwenTemplate().prepare(asked)
    assert [whole(message) for message in dumped(prepared.messages)] == [whole(message) for message in record["output"]]
    assert prepared.generate["stop"] == ["✿RESULT✿", "✿RETURN✿"]


def whole(message: dict[str, Any]) -> tuple[str, str]:
    content = message["content"]
    return message["role"], content if isinstance(content, str) else "".join(item["text"] for item in content)


@pytest.mark.parametrize("record", of("constants"), ids=name)
def test_the_words_that_models_were_trained_on_are_the_recorded_ones(record: Record) -> None:
    templates = record["output"]
    nous, mark = templates["FN_CALL_TEMPLATE"], '{"type": "function", "function": {}}'
    assert tools_text([{}]) == nous.format(tool_descs=mark)
    tools, names = "{tool_descs}", "{tool_names}"
    ours = {"en": ONE_TOOL["en"], "zh": ONE_TOOL["zh"], "en_parallel": TOOLS["en"], "zh_parallel": TOOLS["zh"]}
    assert {key: text.format(tools=tools, names=names) for key, text in ours.items()} == templates["qwen"]
    # Not offered: FN_CALL_TEMPLATE_WITH_CI; code is an argument like any other, whose escapes are read or mended.
    assert templates["FN_CALL_TEMPLATE_WITH_CI"].startswith(nous)
