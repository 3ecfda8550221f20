"""Traces of calls, for a program that asked for them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core.errors import ModelUnavailableError
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a program around us collects."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_a_call_is_a_span_with_the_genai_attributes(spans: InMemorySpanExporter):
    model = ScriptedModel(Reply(text="It is sunny.", usage=(7, 3)))
    model.cfg = {"base_url": "https://api.openai.com:444/v1", "api_key": "sk-hidden"}
    model.model = "gpt-4o"
    settings = {"temperature": 0.5, "max_tokens": 60, "stop": ["END"], "seed": 1}
    with trace.get_tracer("test").start_as_current_span("asked") as outer:
        await model.achat([{"role": "user", "content": "Weather?"}], extra_generate_cfg=settings)
    span = spans.get_finished_spans()[0]
    said = attributes(span)
    assert (span.name, span.kind) == ("chat gpt-4o", trace.SpanKind.CLIENT)
    assert span.parent is not None
    assert span.parent.span_id == outer.get_span_context().span_id
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 60,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.seed": 1,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "server.address": "api.openai.com",
        "server.port": 444,
        "parlour.outcome": "finished",
        "parlour.cache_hit": False,
    }
    assert {name: said.get(name) for name in expected} == expected
    assert "gen_ai.response.time_to_first_chunk" in said
    everything = json.dumps({name: str(value) for name, value in said.items()})
    assert not any(word in everything for word in ("sunny", "Weather", "hidden"))


async def test_what_was_said_travels_where_it_is_asked_for(spans: InMemorySpanExporter):
    model = ScriptedModel(Reply(reasoning="Paris.", calls=[("weather", {"city": "Paris"})]))
    await model.achat([{"role": "user", "content": "Weather?"}], extra_generate_cfg={"log_messages": True})
    said = attributes(spans.get_finished_spans()[0])
    assert json.loads(str(said["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
    ]
    reasoning, call = json.loads(str(said["gen_ai.output.messages"]))
    assert reasoning["parts"] == [{"type": "reasoning", "content": "Paris."}]
    assert call["parts"][0]["name"] == "weather"
    assert call["finish_reason"] == "calls"


async def test_a_failure_is_an_error_without_its_text(spans: InMemorySpanExporter):
    with pytest.raises(ModelUnavailableError):
        await ScriptedModel(ModelUnavailableError(None, "503", "busy")).achat([{"role": "user", "content": "q"}])
    span = spans.get_finished_spans()[0]
    assert span.status.status_code is trace.StatusCode.ERROR
    assert attributes(span)["error.type"] == "503"
    assert "busy" not in str(span.status.description)


def test_a_program_that_traces_nothing_loads_nothing_for_it():
    program = """
import sys
from core.testing.scripted_model import ScriptedModel
ScriptedModel("a").quick_chat("q")
print([name for name in ("opentelemetry", "genai_prices", "diskcache") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
