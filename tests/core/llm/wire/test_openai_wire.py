"""Requests in the OpenAI protocol, as strict services want them."""

from __future__ import annotations

from core.languages import Lang
from core.llm.request import ChatRequest
from core.llm.wire.openai import Senses, messages_json, settings_json
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, FunctionCall, Message

BLIND, SEEING = Senses(), Senses(pictures=True, audio=True)


def ask(name="f", call_id: str | None = "c1", arguments="{}"):
    extra = {"function_id": call_id} if call_id else None
    return Message(ASSISTANT, "", function_call=FunctionCall(name, arguments), extra=extra)


def answer(name="f", call_id: str | None = "c1", content="result"):
    return Message(FUNCTION, content, name=name, extra={"function_id": call_id} if call_id else None)


def sent(*messages, senses=BLIND, lang: Lang = "en"):
    return messages_json(messages, senses, lang)


def tool_call(call_id, name="f"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


QUESTION = Message(USER, "q")


def test_text_and_calls_of_a_turn_are_one_message_and_results_carry_the_calls_id():
    assert sent(
        QUESTION, Message(ASSISTANT, "text"), ask("f", "c1"), ask("g", "c2"), answer("f", "c1"), answer("g", "c2")
    ) == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "text", "tool_calls": [tool_call("c1"), tool_call("c2", "g")]},
        {"role": "tool", "tool_call_id": "c1", "content": "result"},
        {"role": "tool", "tool_call_id": "c2", "content": "result"},
    ]


def test_no_message_lacks_its_content():
    assert [message["content"] for message in sent(QUESTION, ask(), answer(content=""))] == ["q", "", ""]


def test_two_assistant_texts_in_a_row_are_both_kept():
    assert sent(QUESTION, Message(ASSISTANT, "one"), Message(ASSISTANT, "two"), QUESTION)[1] == {
        "role": "assistant",
        "content": "one\ntwo",
    }


def test_calls_without_ids_are_paired_with_their_results():
    messages = sent(QUESTION, ask("f", None), ask("g", None), answer("g", None), answer("f", None))
    ids = {call["function"]["name"]: call["id"] for call in messages[1]["tool_calls"]}
    assert [message["tool_call_id"] for message in messages[2:]] == [ids["g"], ids["f"]]


def test_a_call_that_was_never_answered_gets_a_result_that_says_so():
    messages = sent(QUESTION, ask(), QUESTION)
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "No result."}
    assert messages[3]["role"] == "user"
    assert sent(QUESTION, ask(), lang="zh")[-1]["content"] == "没有结果。"


def test_a_result_whose_call_is_gone_becomes_a_users_text():
    assert sent(QUESTION, answer("f", "lost"))[-1] == {"role": "user", "content": 'The tool "f" returned:\nresult'}


def test_the_same_id_in_two_turns_stays_paired():
    messages = sent(QUESTION, ask(), answer(content="1"), ask(), answer(content="2"))
    assert [message.get("content") for message in messages if message["role"] == "tool"] == ["1", "2"]


def test_reasoning_is_not_sent_back():
    messages = sent(QUESTION, Message(ASSISTANT, "", reasoning_content="hm"), Message(ASSISTANT, "a"), QUESTION)
    assert "hm" not in str(messages)
    assert len(messages) == 3


def test_extra_and_names_stay_at_home():
    message = Message(USER, "q", name="Ann Müller", extra={"secret": 1})
    assert sent(message) == [{"role": "user", "content": "q"}]


def test_a_history_that_ends_with_the_assistant_asks_for_its_continuation():
    assert sent(Message(SYSTEM, "s"), Message(USER, "u"), Message(ASSISTANT, "part")) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u\n\npart"},
    ]
    assert sent(Message(ASSISTANT, "x")) == [{"role": "user", "content": "x"}]


def test_a_continuation_after_a_tools_result_is_asked_for_in_words():
    messages = sent(QUESTION, ask(), answer(), Message(ASSISTANT, "part"))
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert "exactly where you stopped" in messages[-1]["content"]


def test_a_model_that_sees_gets_pictures_and_others_a_note():
    message = Message(USER, [ContentItem(text="what is this"), ContentItem(image="https://example.org/my%20sky.png")])
    assert sent(message, senses=SEEING)[0]["content"] == [
        {"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": "https://example.org/my%20sky.png"}},
    ]
    assert sent(message)[0]["content"] == "what is this\n[picture my sky.png]\n"
    assert "[图片 my sky.png]" in sent(message, lang="zh")[0]["content"]


def test_a_data_uri_has_no_name_and_never_ends_up_in_the_text():
    message = Message(USER, [ContentItem(image="data:image/png;base64,AAAA"), ContentItem(file="C:\\a\\b.pdf")])
    assert sent(message)[0]["content"] == "[picture]\n[file b.pdf]\n"


def test_recordings_go_out_as_the_service_wants_them():
    message = Message(
        USER, [ContentItem(audio="data:audio/x-wav;base64,QUJD"), ContentItem(audio={"data": "A", "format": "mp3"})]
    )
    assert [part["input_audio"]["data"] for part in sent(message, senses=SEEING)[0]["content"]] == ["QUJD", "A"]


def test_pictures_of_a_result_follow_it_in_a_users_message():
    shown = Message(
        FUNCTION,
        [ContentItem(text="drawn"), ContentItem(image="data:image/png;base64,A")],
        name="draw",
        extra={"function_id": "c1"},
    )
    messages = sent(QUESTION, ask("draw"), shown, senses=SEEING)
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "drawn"}
    assert messages[3]["content"][1]["type"] == "image_url"
    assert "[picture]" in sent(QUESTION, ask("draw"), shown)[2]["content"]


def test_our_own_settings_stay_here_and_the_rest_goes_out_untouched():
    generate = {
        "max_retries": 3,
        "lang": "zh",
        "temperature": 0,
        "top_k": 5,
        "stop": ["x"],
        "seed": 1,
        "enable_thinking": False,
        "extra_body": {"repetition_penalty": 1.1},
        "max_tokens": None,
        "cache_dir": "c",
    }
    assert settings_json(ChatRequest((QUESTION,), generate=generate)) == {
        "temperature": 0,
        "top_k": 5,
        "stop": ["x"],
        "seed": 1,
        "enable_thinking": False,
        "repetition_penalty": 1.1,
    }


def test_tools_go_out_with_the_choice():
    functions = ({"name": "f", "description": "", "parameters": {}},)
    made = settings_json(ChatRequest((QUESTION,), functions, {"function_choice": "f", "parallel_function_calls": True}))
    schema = {"type": "object", "properties": {}}
    assert made["tools"] == [{"type": "function", "function": {**functions[0], "parameters": schema}}]
    assert made["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert made["parallel_tool_calls"] is True
    assert settings_json(ChatRequest((QUESTION,), functions))["tool_choice"] == "auto"
    assert settings_json(ChatRequest((QUESTION,), (), {"function_choice": "none"})) == {}


def test_the_messages_are_not_changed():
    messages = [QUESTION, Message(ASSISTANT, "part")]
    before = [message.model_dump() for message in messages]
    sent(*messages)
    assert [message.model_dump() for message in messages] == before


def test_what_systems_say_is_one_message_at_the_top():
    messages = sent(Message(SYSTEM, "one"), QUESTION, Message(SYSTEM, ""), Message(SYSTEM, "two"), QUESTION)
    assert [(message["role"], message["content"]) for message in messages] == [
        ("system", "one\n\ntwo"),
        ("user", "q"),
        ("user", "q"),
    ]


def test_recordings_and_videos_go_as_parts_of_their_own():
    senses = Senses(pictures=True, audio=True, video=True)
    items = [
        ContentItem(audio="data:audio/mpeg;base64,AAAA"),
        ContentItem(audio="data:audio/x-wav;base64,BBBB"),
        ContentItem(audio="https://example.org/talk.ogg?x=1"),
        ContentItem(audio={"data": "CCCC", "format": "flac"}),
        ContentItem(video="data:video/mp4;base64,DDDD"),
        ContentItem(video=["https://example.org/1.png", "https://example.org/2.png"]),
    ]
    (message,) = sent(Message(USER, items), senses=senses)
    assert message["content"] == [
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "https://example.org/talk.ogg?x=1", "format": "ogg"}},
        {"type": "input_audio", "input_audio": {"data": "CCCC", "format": "flac"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,DDDD"}},
        {"type": "video", "video": ["https://example.org/1.png", "https://example.org/2.png"]},
    ]


def test_what_the_assistant_drew_or_spoke_is_told_by_its_words():
    spoken = Message(ASSISTANT, [ContentItem(text="Good"), ContentItem(text=" day"), ContentItem(audio="a.wav")])
    drawn = Message(ASSISTANT, [ContentItem(image="https://example.org/a.png")])
    assert sent(QUESTION, spoken, QUESTION)[1]["content"] == "Good day"
    assert sent(QUESTION, drawn, QUESTION)[1]["content"] == "[picture a.png]\n"
