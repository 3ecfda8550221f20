"""A question that cannot be asked is refused before anybody is asked, with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import BadMessagesError, ModelServiceError, SettingsError
from core.testing.scripted_model import ScriptedModel

ASK: Any = [{"role": "user", "content": "q"}]
WRONG: dict[str, list[Any]] = {
    "no message": [],
    "2 system messages": [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, *ASK],
    "role 'assistant'": [{"role": "assistant", "content": "a"}, *ASK],
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_input_tokens", -1),
        ("max_retries", -3),
        ("request_timeout", 0),
        ("request_timeout", -2.5),
        ("max_tokens", 0),
        ("max_tokens", "many"),
        ("max_retries", float("nan")),
    ],
)
def test_a_limit_that_makes_no_sense_is_named_with_what_it_may_be(name: str, value: Any) -> None:
    model = ScriptedModel("never")
    with pytest.raises(SettingsError, match=name) as caught:
        model.chat(ASK, extra_generate_cfg={name: value})  # at once, not when the first item is asked for
    assert caught.value.hint.startswith("Give ")
    assert model.requests == []


def test_limits_as_configuration_files_write_them_are_taken() -> None:
    limits = {"max_input_tokens": "0", "max_retries": "2", "request_timeout": "1.5", "max_tokens": None}
    assert ScriptedModel("fine").chat(ASK, stream=False, extra_generate_cfg=limits)[0]["content"] == "fine"
