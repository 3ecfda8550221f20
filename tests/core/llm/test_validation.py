"""A question that cannot be asked is refused before anybody is asked, with a hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.bridge.sync import run
from core.errors import BadMessagesError, ModelRefusedError, ModelServiceError, ParlourError, SettingsError
from core.llm.backends.transformers.inputs import sampling
from core.llm.open_model import get_chat_model
from core.testing.scripted_model import ScriptedModel

ASK: Any = [{"role": "user", "content": "q"}]
WRONG: dict[str, list[Any]] = {
    "no message": [],
    "2 system messages": [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, *ASK],
    "role 'assistant'": [{"role": "assistant", "content": "a"}, *ASK],
    "The last message is empty": [*ASK, {"role": "assistant", "content": "a"}, {"role": "user", "content": ""}],
    "last message is empty": [{"role": "user", "content": [{"text": " \n"}]}],
    "role 'function'": [{"role": "system", "content": "a"}, {"role": "function", "name": "f", "content": "a"}, *ASK],
}


@pytest.mark.parametrize("said", WRONG)
def test_messages_that_make_no_question_are_refused_in_every_form(said: str) -> None:
    model = ScriptedModel("never")
    with pytest.raises(BadMessagesError, match=said) as caught:
        model.chat(WRONG[said], stream=False)
    with pytest.raises(ModelServiceError, match=said):
        list(model.chat(WRONG[said]))
    with pytest.raises(ValueError, match=said):
        model.chat(WRONG[said], delta_stream=True)
    assert caught.value.code == "400"
    assert caught.value.hint
    assert model.requests == []


NO_MESSAGES: list[Any] = ["hi", None, {"role": "user", "content": "hi"}, ["hi"], [None], [{"role": "nobody"}], 7]


@pytest.mark.parametrize("given", NO_MESSAGES)
def test_what_is_no_list_of_messages_is_refused_in_every_way_to_ask(given: Any) -> None:
    model = ScriptedModel("never")
    ways: list[Callable[[], Any]] = [
        lambda: model.chat(given),
        lambda: model.chat(given, stream=False),
        lambda: run(model.achat(given)),
        lambda: model.batch([given]),
        lambda: list(model.quick_chat_oai(given)),
        lambda: model.raw_chat(given),
    ]
    for ask in ways:
        with pytest.raises(BadMessagesError) as caught:
            ask()
        assert caught.value.hint
    assert model.requests == []


def test_a_bad_question_of_many_takes_the_place_of_its_reply() -> None:
    wrong: Any = "hi"
    replies = ScriptedModel("fine").batch([ASK, wrong, ASK], keep_errors=True)
    assert isinstance(replies[1], BadMessagesError)
    assert [replies[0], replies[2]] == [[{"role": "assistant", "content": "fine"}]] * 2
    with pytest.raises(BadMessagesError, match="given as str"):
        ScriptedModel("never").batch(wrong)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_input_tokens", -1),
        ("max_retries", -3),
        ("request_timeout", 0),
        ("request_timeout", -2.5),
        ("max_tokens", 0),
        ("max_tokens", "many"),
        ("max_tokens", "1.5"),
        ("turn_timeout", "soon"),
        ("max_retries", float("nan")),
    ],
)
def test_a_limit_that_makes_no_sense_is_named_with_what_it_may_be(name: str, value: Any) -> None:
    model = ScriptedModel("never")
    with pytest.raises(SettingsError, match=name) as caught:
        model.chat(ASK, extra_generate_cfg={name: value})  # at once, not when the first item is asked for
    assert caught.value.hint.startswith("Give ")
    assert model.requests == []


def test_limits_as_configuration_files_write_them_reach_every_back_end_as_numbers() -> None:
    limits = {"max_input_tokens": "1e4", "max_retries": "2", "request_timeout": "1.5", "max_tokens": "30"}
    model = ScriptedModel("fine")
    assert model.chat(ASK, stream=False, extra_generate_cfg=limits)[0]["content"] == "fine"
    sent = model.requests[0].generate
    assert {name: sent[name] for name in limits} == {
        "max_input_tokens": 10_000,
        "max_retries": 2,
        "request_timeout": 1.5,
        "max_tokens": 30,
    }
    assert all(type(sent[name]) is int for name in limits if name != "request_timeout")
    kept = get_chat_model({"model": "m", "base_url": "http://127.0.0.1:1/v1", "generate_cfg": {"max_retries": "1e1"}})
    assert kept.max_retries == 10
    assert sampling({"max_new_tokens": model.requests[0].generate["max_tokens"]}).max_tokens == 30
    inside = get_chat_model({"model_type": "llama_cpp", "context": "2048", "generate_cfg": {"max_tokens": "3e1"}})
    assert inside.generate_cfg["max_tokens"] == 30


BROKEN: dict[str, Any] = {
    "has no name": {"description": "what?"},
    "'f' is not an object": {"name": "f", "parameters": "none"},
    "type 'strin'": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "strin"}}}},
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_tool_is_refused_however_the_model_would_be_told_of_it(said: str, native: bool) -> None:
    model = ScriptedModel("never", native=native)
    with pytest.raises(ModelRefusedError, match=said) as caught:
        model.chat(ASK, [BROKEN[said]], stream=False)
    assert caught.value.hint
    assert model.requests == []


@pytest.mark.parametrize("native", [True, False])
def test_a_choice_that_is_no_tool_on_offer_is_refused_with_the_near_ones(native: bool) -> None:
    model = ScriptedModel("never", native=native)
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    with pytest.raises(ParlourError, match="no tool named 'whether'") as caught:
        model.chat(ASK, [tool], stream=False, extra_generate_cfg={"function_choice": "whether"})
    assert "weather" in caught.value.hint
    assert model.requests == []


def test_tools_as_openai_wraps_them_are_tools() -> None:
    model = ScriptedModel('<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>', native=False)
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    (reply,) = model.chat(ASK, [tool], stream=False)
    assert reply["function_call"]["name"] == "weather"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_input_tokens", float("inf")),
        ("max_retries", "inf"),
        ("stop", 5),
        ("extra_body", "x"),
        ("extra_headers", [1]),
    ],
)
def test_a_setting_of_no_use_is_named_and_no_traceback(name: str, value: Any) -> None:
    model = ScriptedModel("never")
    with pytest.raises(SettingsError, match=name) as caught:
        model.chat(ASK, stream=False, extra_generate_cfg={name: value})
    assert caught.value.hint
    assert model.requests == []


def test_a_language_that_parlour_does_not_speak_is_said() -> None:
    with pytest.raises(SettingsError, match="lang") as caught:
        ScriptedModel("never").chat(ASK, stream=False, extra_generate_cfg={"lang": "fr"})
    assert "zh" in caught.value.hint


WRITTEN = {
    "nous": '<tool_call>\n{"name": "look up", "arguments": {"x": 1}}\n</tool_call>',
    "qwen": '✿FUNCTION✿: look up\n✿ARGS✿: {"x": 1}',
    "json_schema": '{"name": "look up", "arguments": {"x": 1}}',
}


@pytest.mark.parametrize("template", WRITTEN)
def test_a_tool_whose_name_has_spaces_is_called_by_it_in_every_template(template: str) -> None:
    tool = {"name": "look up", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}
    model = ScriptedModel(WRITTEN[template], native=False)
    [message] = model.chat(ASK, [tool], stream=False, extra_generate_cfg={"fncall_prompt_type": template})
    assert message["function_call"] == {"name": "look up", "arguments": '{"x": 1}'}
    assert "look up" in str(model.requests[0])
