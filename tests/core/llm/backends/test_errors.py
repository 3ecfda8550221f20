"""Failures of model services read alike whichever protocol is spoken, and never show a key."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx2
import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.backends.dashscope import service as dashscope_service
from core.llm.backends.errors import Translator, seconds_until, without_keys
from core.llm.backends.openai import service as openai_service

KEY = "sk-CANARY-0123456789abcdef"
SPEAKERS = [openai_service.Translator, dashscope_service.Translator]


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


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect key: 0123456789abcdef.", "Incorrect key: …."),
        ("Incorrect key: sk-somebody-elses", "Incorrect key: …"),
        ("Incorrect key: sk-****************wxyz", "Incorrect key: …"),
        ("Authorization: Bearer abcdef123", "Authorization: Bearer …"),
        ("The task is any-thing you like", "The task is any-thing you like"),
    ],
)
def test_no_key_is_shown_whatever_it_looks_like(said, shown):
    assert without_keys(said, "0123456789abcdef", "any", "") == shown


def test_long_words_are_cut():
    assert len(without_keys("x" * 10_000)) == 501


NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 12:00:30 -0000", 30.0),
        ("Sat, 21 Nov 2026 13:00:30 +0100", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_seconds_and_dates_are_read_and_nonsense_is_nothing(header, seconds):
    assert seconds_until(header, NOW) == seconds
