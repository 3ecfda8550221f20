"""Spans disturb nobody: what keeps them may fail, streams may break at their end, and each keeper ends for itself."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from core import observing
from core.observing import Finished, begun, context_now, keep_spans, span, spanned, spanned_items
from tests.collected_spans import collected


@pytest.fixture
def kept() -> Iterator[list[Finished]]:
    found: list[Finished] = []
    end = keep_spans(found.append)
    yield found
    end()


def test_a_trace_that_cannot_be_kept_lets_the_work_go_on(
    kept: list[Finished], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "_complained", False)

    def full(_: Finished) -> None:
        raise OSError(28, "No space left on device")

    end = keep_spans(full)
    try:
        with caplog.at_level(logging.WARNING), span("one"), span("two"):
            pass
        with pytest.raises(ValueError, match="its own"), span("three"):
            raise ValueError("its own")
    finally:
        end()
    assert [one.name for one in kept] == ["two", "one", "three"]
    assert caplog.text.count("A span cannot be kept: OSError") == 1


def test_what_lies_in_a_span_that_is_not_sampled_is_not_either_and_is_kept_here_in_its_place(
    kept: list[Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with collected(monkeypatch) as exporter:
        with span("asked", within=f"00-{trace}-{caller}-00"):
            told = context_now()
            with span("model"):
                pass
        with span("elsewhere", within=told):
            pass
        assert exporter.get_finished_spans() == ()
        with span("asked again", within=f"00-{trace}-{caller}-01"):
            pass
        assert [one.name for one in exporter.get_finished_spans()] == ["asked again"]
    model, asked, elsewhere, _ = kept
    assert (asked.trace, asked.parent, told) == (trace, caller, f"00-{trace}-{asked.id}-00")
    assert (model.trace, model.parent) == (elsewhere.trace, elsewhere.parent) == (trace, asked.id)


def test_who_keeps_them_ends_its_own_keeping_alone() -> None:
    found: list[Finished] = []
    first, second = keep_spans(found.append), keep_spans(found.append)
    first()
    first()
    with span("one"):
        pass
    second()
    assert [one.name for one in found] == ["one"]


@pytest.mark.anyio
async def test_a_stream_that_breaks_while_it_is_closed_ends_its_span(kept: list[Finished]) -> None:
    async def events() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            raise RuntimeError("broken")

    stream = spanned(lambda: begun("stream"), events())
    assert await anext(stream) == 1
    with pytest.raises(RuntimeError, match="broken"):
        await stream.aclose()
    assert [one.name for one in kept] == ["stream"]


def test_items_that_break_while_they_are_closed_end_their_span(kept: list[Finished]) -> None:
    def items() -> Generator[int, None, None]:
        try:
            yield 1
            yield 2
        finally:
            raise RuntimeError("broken")

    made = spanned_items(lambda: begun("items"), items())
    assert next(made) == 1
    with pytest.raises(RuntimeError, match="broken"):
        made.close()
    assert [one.name for one in kept] == ["items"]


def test_what_another_thread_is_still_importing_is_not_used_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry.trace", "opentelemetry.metrics"):
        begun_to_be_imported = ModuleType(name)  # as it stands in `sys.modules` until its code has run
        begun_to_be_imported.__spec__ = spec = ModuleSpec(name, None)
        spec._initializing = True  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        monkeypatch.setitem(sys.modules, name, begun_to_be_imported)
    for name in observing.INSTRUMENTS:
        observing.count(name)
        observing.record(name, 1.0)
    assert not observing.is_traced()
    assert not observing.is_measured()
    assert observing.ids_now() == {}
    with span("one"):
        pass


def test_a_gauge_waits_for_what_another_thread_is_still_importing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    metrics: Any = ModuleType("opentelemetry.metrics")
    spec: Any = ModuleSpec("opentelemetry.metrics", None)
    spec._initializing = True
    metrics.__spec__ = spec
    metrics.get_meter = lambda _: SimpleNamespace(create_observable_gauge=lambda name, *_, **__: made.append(name))
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", metrics)
    observing.gauge("parlour.things", "Things.", lambda: 1.0)
    assert made == ["parlour.things"]
