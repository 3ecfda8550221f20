"""A second question has the head that the SDK made for the first one, and whatever goes wrong is told the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.errors import ModelServiceError, SettingsError
from core.testing.script import Reply, html_page, refusal

MOVED = Reply(status=302, body="", content_type="text/plain", headers={"Location": "https://elsewhere.example/v1"})


def told(model) -> tuple[tuple[object, ...], dict[str, object]]:
    with pytest.raises(ModelServiceError) as caught:
        model.quick_chat("q")
    error = caught.value
    return (type(error), str(error), error.code, error.words_key, error.retry_after), error.details


def test_the_second_question_is_sent_as_the_first_one(server, opened, monkeypatch):
    server.add(*(Reply(text="yes") for _ in range(4)))
    model = opened(default_headers={"X-Team": "blue"}, generate_cfg={"extra_query": {"v": "2"}})
    other = opened(default_headers={"X-Team": "red"})
    made: list[str] = []
    build = type(model).pool().heads.request.__func__
    monkeypatch.setattr(
        "core.llm.backends.openai.service.Heads.request",
        lambda *given: made.append(type(request := build(*given)).__name__) or request,
    )
    for asked in (model, model, other, model):
        assert asked.quick_chat("很好 q") == "yes"
    assert made == ["NoneType", "Request", "NoneType", "Request"]
    first, second, red, third = server.requests
    assert first.headers == second.headers == third.headers
    assert (first.body, first.query, first.path) == (second.body, second.query, second.path)
    assert first.query == "v=2"
    assert (red.headers["x-team"], red.query) == ("red", "")


@pytest.mark.parametrize(
    "reply",
    [
        refusal(401, "Incorrect API key provided: sk-test-0123.", code="invalid_api_key"),
        refusal(400, "This model's maximum context length is 8 tokens.", code="context_length_exceeded"),
        refusal(429, "Too many.", retry_after="7"),
        refusal(500, "The engine died."),
        Reply(status=503, body="down", content_type="text/plain"),
        Reply(status=400, body="[{}]", content_type="application/json"),
        html_page(404),
        html_page(),
        MOVED,
        Reply(silent=True),
    ],
)
def test_what_goes_wrong_is_told_as_for_a_first_question(server, opened, reply):
    fresh, known = opened(), opened(model="another", default_headers={"X-Team": "blue"})
    server.add(Reply(text="yes"))
    assert known.quick_chat("q") == "yes"
    server.add(reply, reply)
    (first, of_first), (second, of_second) = told(fresh), told(known)
    # The model's own name is the only thing in which they differ.
    assert {**of_second, "model": ""} == {**of_first, "model": ""}
    assert second == first


def test_what_cannot_be_sent_is_told_and_half_of_a_pair_is_replaced(server, opened):
    server.add(Reply(text="yes"), Reply(text="yes"))
    model = opened()
    model.quick_chat("q")
    assert model.quick_chat("half \ud83d of a pair") == "yes"
    assert server.requests[1].messages[-1]["content"] == "half ? of a pair"
    with pytest.raises(SettingsError, match="cannot be sent"):
        model.chat([{"role": "user", "content": "q"}], stream=False, extra_generate_cfg={"odd": {1, 2}})
    assert len(server.requests) == 2


def test_what_the_sdk_alone_can_write_is_sent_each_time(server, opened):
    server.add(*(Reply(text="yes") for _ in range(2)))
    model = opened(generate_cfg={"extra_body": {"since": datetime(2026, 1, 2, tzinfo=UTC)}})
    for _ in range(2):
        assert model.quick_chat("q") == "yes"
    assert [asked.body["since"] for asked in server.requests] == ["2026-01-02T00:00:00+00:00"] * 2
