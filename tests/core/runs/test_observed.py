"""A run in traces and measurements: its calls are its children, and nothing that was said or whose it is goes along."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core import observing
from core.agents.basic import FnCallAgent
from core.errors import ModelUnavailableError
from core.messages.events import Event, TextDelta
from core.messages.message import Message, Usage
from core.runs.ledger import times
from core.runs.log import LoggedEvent, ModelCalled, Queued, RunEvent
from core.runs.picking_up import begin
from core.storage.base import QUEUED
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.from_function import tool
from tests.collected_spans import collected, own, parent
from tests.core.runs.conftest import Speaker, Talk
from webui.observing import JsonLines

pytestmark = pytest.mark.anyio


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a collector is sent."""
    with collected(monkeypatch) as exporter:
        yield exporter


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """What is measured while a test runs."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
    observing._instrument.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield reader
    observing._instrument.cache_clear()  # pyright: ignore[reportPrivateUsage]
    provider.shutdown()


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """The data points of each instrument."""
    data = reader.get_metrics_data()
    assert data is not None
    found = [one for whole in data.resource_metrics for scope in whole.scope_metrics for one in scope.metrics]
    return {one.name: list(one.data.data_points) for one in found}


@tool
def whisper(text: str) -> str:
    """Repeat a text, or fail."""
    if text == "fail":
        raise ValueError("secret reason")
    return text


def agent(*turns: Any) -> FnCallAgent:
    return FnCallAgent(function_list=[whisper], llm=ScriptedModel(*turns))


async def test_the_calls_of_a_run_are_its_children_and_no_text_goes_along(talk: Talk, spans: InMemorySpanExporter):
    calls = [("whisper", {"text": "plum pudding"}), ("whisper", {"text": "fail"})]
    run = await talk.ask(agent(Reply(calls=calls), "Plum pudding."), "Say plum pudding")
    assert await run.wait() == "complete"
    finished = {one.name: one for one in spans.get_finished_spans()}
    whole = finished["invoke_agent parlour"]
    assert (whole.attributes or {})["parlour.run_id"] == run.id
    assert (whole.attributes or {})["parlour.outcome"] == "complete"
    assert 0 <= float(str((whole.attributes or {})["parlour.since_asked"])) < 60
    inside = [one for one in spans.get_finished_spans() if one is not whole]
    assert sorted(one.name for one in inside) == ["chat scripted", "chat scripted", *["execute_tool whisper"] * 2]
    assert {parent(one) for one in inside} == {own(whole).span_id}
    failed = [one for one in inside if one.status.status_code is trace.StatusCode.ERROR]
    assert [(one.attributes or {})["error.type"] for one in failed] == ["ValueError"]
    told = " ".join(one.to_json() for one in spans.get_finished_spans()).lower()
    assert not any(word in told for word in ("pudding", "secret", "alice"))


async def test_a_run_that_fails_is_a_failed_span_and_counted_as_such(
    talk: Talk, spans: InMemorySpanExporter, measured: InMemoryMetricReader, speaker: type[Speaker]
):
    assert await (await talk.ask(speaker(ModelUnavailableError(None, "503", "busy")))).wait() == "error"
    whole = next(one for one in spans.get_finished_spans() if one.name == "invoke_agent parlour")
    assert whole.status.status_code is trace.StatusCode.ERROR
    assert "busy" not in str(whole.status.description)
    (counted,) = points(measured)["parlour.replies"]
    assert (dict(counted.attributes), counted.value) == ({"outcome": "error"}, 1)


async def test_replies_calls_and_tokens_are_measured(talk: Talk, measured: InMemoryMetricReader):
    turns = [Reply(calls=[("whisper", {"text": "a"})], usage=(7, 3)), Reply(text="Done.", usage=(20, 5))]
    assert await (await talk.ask(agent(*turns))).wait() == "complete"
    found = points(measured)
    tokens = {one.attributes["gen_ai.token.type"]: one.sum for one in found["gen_ai.client.token.usage"]}
    assert tokens == {"input": 27, "output": 8}
    (tools,) = found["parlour.tool.duration"]
    assert dict(tools.attributes) == {"gen_ai.tool.name": "other", "outcome": "finished"}  # nobody's own names
    assert found["parlour.reply.first_token"][0].count == found["parlour.reply.overhead"][0].count == 1
    assert sum(one.count for one in found["parlour.database.duration"]) > 0
    assert {name for name in found if not name.startswith("otel.")} <= set(observing.INSTRUMENTS)


async def test_how_long_a_reply_waited_for_a_process_that_writes_it_is_measured(
    talk: Talk, measured: InMemoryMetricReader
):
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker=QUEUED)
    ((_, lease),) = await talk.stores.runs.running()

    async def goes_on(_: object) -> None:
        """It would be written from here on."""

    asked = replace(record, started_at=record.started_at - 7)
    await begin(talk.stores, asked, lease, "here", goes_on, lasts=20.0)
    (waited,) = points(measured)["parlour.reply.untaken"]
    assert waited.count == 1
    assert 7 <= waited.sum < 60


def log(*events: tuple[float, RunEvent]) -> list[LoggedEvent]:
    return [LoggedEvent(seq, at, event) for seq, (at, event) in enumerate(events, start=1)]


def called(seconds: float) -> ModelCalled:
    return ModelCalled("answer", "m", Usage(prompt_tokens=1, completion_tokens=1), seconds)


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        (log(), {}),
        (log((1.0, Queued())), {}),
        (log((0.0, Queued()), (2.0, Queued(waiting=False)), (5.0, TextDelta("a")), (6.0, called(3.5))), (2, 3, 0.5)),
        # two calls at the same time count once, and one that began before the turn counts from there
        (
            log(
                *((0.0, Queued()), (1.0, Queued(waiting=False)), (3.0, called(9.0)), (3.5, called(1.0))),
                *((4.0, TextDelta("a")), (4.0, called(0.0))),
            ),
            (1, 3, 0.5),
        ),
    ],
)
def test_what_parlour_adds_is_the_time_to_the_first_word_without_that_of_models(
    logged: list[LoggedEvent], expected: Any
):
    names = ("queued", "first_token", "overhead")
    assert times(logged) == (dict(zip(names, expected, strict=True)) if expected else {})


async def test_a_log_line_within_a_run_says_which_run_it_belongs_to(
    talk: Talk, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
):
    lines: list[dict[str, Any]] = []

    class Speaking(Speaker):
        async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
            record = logging.LogRecord("a.b", logging.WARNING, "", 0, "odd\n%s", ("line",), None)
            lines.append(json.loads(JsonLines().format(record)))
            async for event in super().stream(messages, **kwargs):
                yield event

    run = await talk.ask(Speaking("Yes."))
    await run.wait()
    whole = next(one for one in spans.get_finished_spans() if one.name == "invoke_agent parlour")
    (line,) = lines
    assert (line["run"], line["conversation"], line["message"]) == (run.id, talk.id, "odd\nline")
    assert (line["trace"], line["span"]) == (f"{own(whole).trace_id:032x}", f"{own(whole).span_id:016x}")
