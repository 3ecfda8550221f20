"""`chat` and its relatives: Qwen-Agent's promises over the event stream."""

from __future__ import annotations

import threading

import pytest

from core.errors import ModelUnavailableError
from core.llm.base import BaseChatModel
from core.llm.catalog import LLM_REGISTRY, register_llm
from core.llm.open_model import get_chat_model
from core.messages.content import ContentItem
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, USER, FunctionCall, Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

ASK = [{"role": "user", "content": "q"}]
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}


def test_dicts_in_dicts_out_and_a_message_in_messages_out():
    model = ScriptedModel("answer")
    assert model.chat(ASK, stream=False) == [{"role": "assistant", "content": "answer"}]
    assert model.chat([Message(USER, "q")], stream=False) == [Message(ASSISTANT, "answer")]
    assert list(model.chat(ASK))[-1] == [{"role": "assistant", "content": "answer"}]
    assert isinstance(list(model.chat([*ASK, Message(USER, "q")]))[-1][0], Message)


def test_the_last_of_a_stream_is_what_no_stream_gives():
    model = ScriptedModel(Reply(reasoning="hm", text="one two"))
    assert list(model.chat(ASK))[-1] == model.chat(ASK, stream=False)


def test_reasoning_text_and_each_call_are_messages_of_their_own():
    model = ScriptedModel(Reply(reasoning="hm", text="I look", calls=[("weather", {}), ("weather", {"b": 2})]))
    said = model.chat(ASK, functions=[WEATHER], stream=False)
    assert [sorted(message) for message in said] == [
        ["content", "reasoning_content", "role"],
        ["content", "role"],
        ["content", "extra", "function_call", "role"],
        ["content", "extra", "function_call", "role"],
    ]
    assert said[-1]["function_call"] == {"name": "weather", "arguments": '{"b": 2}'}


def test_the_callers_messages_and_settings_are_not_changed():
    messages = [{"role": "user", "content": [{"text": "q"}]}, {"role": "assistant", "content": None}]
    extra = {"stop": ["x"]}
    cfg = {"model": "scripted", "model_type": "scripted", "generate_cfg": {"stop": ["y"]}}
    model = get_chat_model(cfg)
    model.chat(messages, stream=False, extra_generate_cfg=extra)
    assert messages == [{"role": "user", "content": [{"text": "q"}]}, {"role": "assistant", "content": None}]
    assert extra == {"stop": ["x"]}
    assert cfg == {"model": "scripted", "model_type": "scripted", "generate_cfg": {"stop": ["y"]}}


def test_a_snapshot_that_was_given_never_changes():
    model = ScriptedModel(Reply(text="a b c d e f", pace=0.03))
    shown = [(snapshot, str(snapshot)) for snapshot in model.chat([Message(USER, "q")])]
    assert len(shown) > 1
    assert all(str(snapshot) == text for snapshot, text in shown)


def test_delta_stream_gives_what_is_new_and_refuses_functions():
    model = ScriptedModel(Reply(reasoning="hm", text=["a", "b"]))
    assert list(model.chat(ASK, delta_stream=True)) == [
        [{"role": "assistant", "content": "", "reasoning_content": "hm"}],
        [{"role": "assistant", "content": "a"}],
        [{"role": "assistant", "content": "b"}],
    ]
    with pytest.raises(NotImplementedError):
        model.chat(ASK, functions=[WEATHER], delta_stream=True)


def test_closing_the_iterator_stops_the_model():
    model = ScriptedModel(Reply(text="a b c", hang=False, pace=0.05))
    for given in (ASK, [Message(USER, "q")]):
        reply = model.chat(given)
        next(reply)
        reply.close()
    assert model.closed == 2


def test_generate_settings_are_merged_and_stop_words_of_both_kept():
    model = ScriptedModel("a", "b")
    model.generate_cfg = {"temperature": 0, "top_p": 1, "stop": ["x"]}
    model.chat(ASK, stream=False, extra_generate_cfg={"top_p": 0.5, "stop": ["y", "x"]})
    assert model.requests[0].generate == {"temperature": 0, "top_p": 0.5, "stop": ["x", "y"]}
    model.chat(ASK, stream=False, extra_generate_cfg={"stop": "END"})
    assert model.requests[1].generate["stop"] == ["x", "END"]


@pytest.mark.parametrize(("text", "lang"), [("what?", "en"), ("这个模型要训练多久？", "zh")])
def test_the_language_follows_the_question_unless_it_is_set(text, lang):
    model = ScriptedModel("a")
    model.chat([{"role": "user", "content": text}], stream=False)
    model.chat([{"role": "user", "content": text}], stream=False, extra_generate_cfg={"lang": "zh"})
    assert [request.lang for request in model.requests] == [lang, "zh"]


def test_no_message_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="no message"):
        ScriptedModel("a").chat([])


def test_an_error_reaches_the_caller_in_every_form():
    error = ModelUnavailableError(None, "503", "busy")
    with pytest.raises(ModelUnavailableError):
        ScriptedModel(error).chat(ASK, stream=False)
    with pytest.raises(ModelUnavailableError):
        list(ScriptedModel(error).chat(ASK))
    with pytest.raises(ModelUnavailableError):
        ScriptedModel(error).quick_chat("q")


def test_quick_chat_gives_the_text_alone():
    assert ScriptedModel(Reply(reasoning="hm", text="an answer")).quick_chat("q") == "an answer"


@pytest.mark.anyio
async def test_achat_is_the_async_twin():
    assert await ScriptedModel("a").achat(ASK) == [Message(ASSISTANT, "a")]


class Seed(BaseChatModel):
    """A model of Qwen-Agent's shape."""

    def _chat_stream(self, messages, delta_stream, generate_cfg):
        assert delta_stream is False
        yield [Message(ASSISTANT, "", reasoning_content="h")]
        yield [Message(ASSISTANT, "", reasoning_content="hm"), Message(ASSISTANT, "an")]
        call = FunctionCall("f", '{"a": 1}')
        yield [
            Message(ASSISTANT, "", reasoning_content="hm"),
            Message(ASSISTANT, "answer"),
            Message(ASSISTANT, "", function_call=call, extra={"function_id": "7"}),
        ]


def test_a_model_of_the_seeds_shape_speaks_through_stream():
    reply = Seed({"model": "m"}).chat(ASK, stream=False)
    assert [message.get("reasoning_content") or message["content"] for message in reply] == ["hm", "answer", ""]
    assert reply[-1]["extra"] == {"function_id": "7"}


def test_a_model_that_only_answers_whole_will_do():
    class Whole(BaseChatModel):
        def _chat_no_stream(self, messages, generate_cfg):
            return [Message(ASSISTANT, [ContentItem(text="look"), ContentItem(image="a.png")])]

    (message,) = Whole({"model": "m"}).chat([Message(USER, "q")], stream=False)
    assert isinstance(message, Message)
    assert [item.type for item in message.items] == ["text", "image"]


def test_a_hook_that_fails_fails_the_call():
    class Broken(BaseChatModel):
        def _chat_stream(self, messages, delta_stream, generate_cfg):
            yield [Message(ASSISTANT, "a")]
            raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        Broken({"model": "m"}).quick_chat("q")
    with pytest.raises(NotImplementedError):
        BaseChatModel({"model": "m"}).quick_chat("q")


def test_closing_early_closes_the_hooks_generator(tmp_path):
    closed = threading.Event()

    class Endless(BaseChatModel):
        def _chat_stream(self, messages, delta_stream, generate_cfg):
            text = ""
            try:
                while True:
                    text += "a"
                    yield [Message(ASSISTANT, text)]
            finally:
                closed.set()

    reply = Endless({"model": "m"}).chat(ASK)
    next(reply)
    reply.close()
    assert closed.wait(60)  # in a thread of its own


def test_a_registered_model_is_opened_by_its_name():
    @register_llm("mine_for_this_test")
    class Mine(BaseChatModel):
        async def _stream(self, request):
            yield MessageStarted()
            yield TextDelta(f"{self.model} heard {request.messages[-1].content}")
            yield MessageFinished("stop")

    try:
        model = get_chat_model({"model": "m", "model_type": "mine_for_this_test"})
        assert model.model_type == "mine_for_this_test"
        assert model.quick_chat("you") == "m heard you"
        assert "mine_for_this_test" in LLM_REGISTRY
    finally:
        LLM_REGISTRY.remove("mine_for_this_test")


def test_a_hook_may_change_what_it_is_given_and_the_caller_sees_nothing_of_it():
    class Careless(BaseChatModel):
        def _chat_no_stream(self, messages, generate_cfg):
            messages[0].items.append(ContentItem(text="changed"))
            messages.pop()
            return [Message(ASSISTANT, "a")]

    asked = [Message(USER, [ContentItem(text="q")])]
    Careless({"model": "m"}).chat(asked, stream=False)
    assert asked == [Message(USER, [ContentItem(text="q")])]


def test_a_table_of_numbers_is_not_taken_for_a_few_words():
    assert BaseChatModel({"model": "m"}).count_tokens("3141592653" * 10) >= 100
