"""What goes wrong on the way is said alike, whichever protocol the service speaks."""

from __future__ import annotations

import httpx2
import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.backends import dashscope_errors, openai_errors
from core.llm.backends.translator import Translator

KEY = "sk-CANARY-0123456789abcdef"
SPEAKERS = [dashscope_errors.Translator, openai_errors.Translator]


@pytest.mark.parametrize("kind", SPEAKERS)
@pytest.mark.parametrize(
    ("error", "spoke", "made", "key"),
    [
        (httpx2.ConnectTimeout("slow"), False, ModelUnavailableError, "model_unreachable"),
        (httpx2.ConnectError("refused"), False, ModelUnavailableError, "model_unreachable"),
        (httpx2.InvalidURL("bad"), False, ModelUnavailableError, "model_unreachable"),
        (httpx2.ReadTimeout("slow"), False, ModelUnavailableError, "model_slow"),
        (TimeoutError(), False, ModelUnavailableError, "model_slow"),
        (httpx2.ReadError("reset"), True, ModelMisbehavedError, "model_cut_off"),
        (httpx2.ConnectError("CERTIFICATE_VERIFY_FAILED"), False, ModelRefusedError, "model_unreachable"),
        (httpx2.ConnectError("[SSL] WRONG_VERSION_NUMBER"), False, ModelMisbehavedError, "model_misbehaved"),
        (httpx2.RemoteProtocolError("illegal status line"), False, ModelMisbehavedError, "model_misbehaved"),
        (httpx2.RemoteProtocolError("illegal chunk header"), True, ModelMisbehavedError, "model_cut_off"),
    ],
)
def test_failures_of_the_network_are_one_typed_error_with_a_hint_and_the_host(
    kind: type[Translator], error: Exception, spoke: bool, made: type[ModelServiceError], key: str
) -> None:
    found = kind("https://user:secret@one.example/v1", KEY, "m").translated(error, spoke=spoke)
    assert (type(found), found.words_key) == (made, key)
    assert found.details["host"] == "one.example"
    assert found.hint
    assert "secret" not in str(found)


@pytest.mark.parametrize("kind", SPEAKERS)
def test_a_key_that_a_service_repeats_is_not_told_on(kind: type[Translator]) -> None:
    translator = kind("https://one.example/v1", "an-odd-key-without-form", "m")
    translator.learn("another-odd-one")
    assert translator.redacted(f"{KEY} an-odd-key-without-form another-odd-one") == "… … …"
