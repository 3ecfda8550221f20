"""What a collector of traces is sent while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@contextmanager
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """To the end of the block, all spans of this process that are over."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def parent(one: ReadableSpan) -> int:
    """The id of the span that one lies in; 0 for none."""
    return one.parent.span_id if one.parent is not None else 0


def own(one: ReadableSpan) -> trace.SpanContext:
    """Its trace and its id."""
    assert one.context is not None
    return one.context
