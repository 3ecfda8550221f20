"""Spans and measurements for OpenTelemetry, where the program has imported it; else nothing happens.

Names follow the GenAI conventions where those have one. No name, attribute or value holds a text of a message, whose it
is, or a secret.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

Value: TypeAlias = str | int | float | bool
Kind: TypeAlias = Literal["counter", "histogram"]

SCOPE: Final = "parlour"
_TRACE: Final = "opentelemetry.trace"
_METRICS: Final = "opentelemetry.metrics"
# Seconds: from what a database takes to the ten minutes after which a reply pauses.
_SECONDS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_TOKENS: Final = (1, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One thing that is measured.

    Args:
        unit: As UCUM writes it; "" for a plain number.
        buckets: The upper bounds of a histogram.
    """

    kind: Kind
    unit: str
    description: str
    buckets: tuple[float, ...] = ()


INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    "parlour.replies": Instrument("counter", "{reply}", "Replies that ended, by how they ended."),
    "parlour.reply.duration": Instrument("histogram", "s", "From asking to the end of a reply.", _SECONDS),
    "parlour.reply.queued": Instrument("histogram", "s", "How long a reply waited for its turn.", _SECONDS),
    "parlour.reply.first_token": Instrument("histogram", "s", "From asking to the first of a reply.", _SECONDS),
    "parlour.reply.overhead": Instrument(
        "histogram", "s", "The same without the time that models took: what Parlour adds.", _SECONDS
    ),
    "parlour.tool.duration": Instrument("histogram", "s", "How long calls of tools took, by how they ended.", _SECONDS),
    "parlour.database.duration": Instrument("histogram", "s", "How long the database took.", _SECONDS),
    "parlour.loop.stalls": Instrument("counter", "{stall}", "How often the event loop stood still for half a second."),
    "parlour.requests": Instrument("counter", "{request}", "Requests that were answered, by kind and status."),
    "gen_ai.client.operation.duration": Instrument(
        "histogram", "s", "How long calls of models took, by model and how they ended.", _SECONDS
    ),
    "gen_ai.client.operation.time_to_first_chunk": Instrument(
        "histogram", "s", "From a request to a model to the first of its reply.", _SECONDS
    ),
    "gen_ai.client.token.usage": Instrument("histogram", "{token}", "Tokens that models read and wrote.", _TOKENS),
}
"""Everything that is measured where it happens. What stands in tables is read when it is asked for."""


class Span:
    """One piece of work in a trace; without tracing it takes what it is told and forgets it."""

    __slots__ = ("_span",)

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Set attributes; those that are `None` are left out."""
        if self._span is not None:
            self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def fail(self, kind: str) -> None:
        """Mark it as failed.

        Args:
            kind: The error's key or class, never its message.
        """
        if self._span is not None:
            self._span.set_attribute("error.type", kind)
            self._span.set_status(sys.modules[_TRACE].StatusCode.ERROR, kind)


_NO_SPAN: Final = Span()
_RUN: ContextVar[tuple[str, str]] = ContextVar("the run and its conversation")


def within_run(run: str, conversation: str) -> None:
    """Say which run all that this task does from now on belongs to, by its id and its conversation's."""
    _RUN.set((run, conversation))


def ids_now() -> dict[str, str]:
    """What is being worked for: `run` and `conversation`, `trace` and `span`, as far as there are any."""
    run = _RUN.get(None)
    told = {} if run is None else {"run": run[0], "conversation": run[1]}
    api: Any = sys.modules.get(_TRACE)
    if api is not None and (context := api.get_current_span().get_span_context()).is_valid:
        told |= {"trace": f"{context.trace_id:032x}", "span": f"{context.span_id:016x}"}
    return told


@contextmanager
def span(name: str, attributes: Mapping[str, Value | None] | None = None) -> Generator[Span]:
    """A span that is the current one to the end of the block, so that spans begun inside are its children.

    An exception that leaves the block marks it as failed, with its class. A block in an asynchronous generator would
    leave the span with whoever reads it: there, and only there, it must not be used.
    """
    api: Any = sys.modules.get(_TRACE)
    if api is None:
        yield _NO_SPAN
        return
    begun = api.get_tracer(SCOPE).start_span(name)
    if not begun.is_recording():
        yield _NO_SPAN
        return
    told = Span(begun)
    told.set(attributes or {})
    with api.use_span(begun, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield told
        except BaseException as error:
            told.fail(type(error).__name__)
            raise


def count(name: str, attributes: Mapping[str, Value] | None = None) -> None:
    """Count one more of an instrument of `INSTRUMENTS`."""
    api: Any = sys.modules.get(_METRICS)
    if api is not None:
        _instrument(name).add(1, attributes)


def record(name: str, value: float, attributes: Mapping[str, Value] | None = None) -> None:
    """Note a value for a histogram of `INSTRUMENTS`."""
    api: Any = sys.modules.get(_METRICS)
    if api is not None:
        _instrument(name).record(value, attributes)


def gauge(name: str, description: str, value: Callable[[], float]) -> None:
    """Have a number read whenever somebody asks, from now on.

    Args:
        value: The number now; called in any thread.
    """
    api: Any = sys.modules.get(_METRICS)
    if api is not None:

        def read(_options: object) -> list[object]:
            return [api.Observation(value())]

        api.get_meter(SCOPE).create_observable_gauge(name, [read], description=description)


def is_measured() -> bool:
    """Whether anybody could be told what is measured; what costs something to find out is left alone where not."""
    return _METRICS in sys.modules


@cache
def _instrument(name: str) -> Any:
    """The instrument; one that was made before the program chose where measurements go finds it later on."""
    made, meter = INSTRUMENTS[name], sys.modules[_METRICS].get_meter(SCOPE)
    if made.kind == "counter":
        return meter.create_counter(name, made.unit, made.description)
    return meter.create_histogram(
        name, made.unit, made.description, explicit_bucket_boundaries_advisory=list(made.buckets)
    )
