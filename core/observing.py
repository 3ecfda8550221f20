"""Spans and measurements: for OpenTelemetry, where the program has imported it, and for a trace that is kept here.

Where there is neither, nothing happens. Names follow the GenAI conventions where those have one. No name, attribute or
value holds a text of a message, whose it is, or a secret; what only a trace that is kept here may hold are `details`.
"""

from __future__ import annotations

import logging
import re
import sys
from asyncio import CancelledError
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from secrets import token_hex
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping

T = TypeVar("T")
Side: TypeAlias = Literal["server", "client", ""]
SpanKind: TypeAlias = Literal["run", "agent", "model", "tool", ""]
Value: TypeAlias = str | int | float | bool
Kind: TypeAlias = Literal["counter", "histogram"]

_LOG: Final = logging.getLogger(__name__)
SCOPE: Final = "parlour"
_TRACE: Final = "opentelemetry.trace"
_METRICS: Final = "opentelemetry.metrics"
_CONTEXT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.{0,200})?")
"""`traceparent` of W3C: what is told of a span to whoever works for it elsewhere."""
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
    "parlour.reply.untaken": Instrument(
        "histogram", "s", "How long a reply waited for a process that writes it, where others ask than write.", _SECONDS
    ),
    "parlour.reply.first_token": Instrument("histogram", "s", "From asking to the first of a reply.", _SECONDS),
    "parlour.reply.overhead": Instrument(
        "histogram", "s", "The same without the time that models took: what Parlour adds.", _SECONDS
    ),
    "parlour.tool.duration": Instrument("histogram", "s", "How long calls of tools took, by how they ended.", _SECONDS),
    "parlour.database.duration": Instrument("histogram", "s", "How long the database took.", _SECONDS),
    "parlour.loop.stalls": Instrument("counter", "{stall}", "How often the event loop stood still for half a second."),
    "parlour.sandbox.cells": Instrument("counter", "{cell}", "Cells that a sandbox ran, by how they ended."),
    "parlour.marks.dropped": Instrument(
        "counter", "{mark}", "Marks that were not shown, as the page does not have their words there."
    ),
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


class Finished(NamedTuple):
    """A span that is over.

    Args:
        trace: Its trace's id, in hex.
        parent: The id of the span that it lies in; "" for the whole.
        kind: `run`, `agent`, `model`, `tool`, or "".
        began: Unix seconds.
        error: The key or class of what it failed with, "" where it did not.
        details: What is for the eyes of this machine's user alone, such as a tool's arguments.
    """

    trace: str
    id: str
    parent: str
    kind: SpanKind
    name: str
    began: float
    seconds: float
    error: str
    attributes: Mapping[str, Any]
    details: Mapping[str, Any]


_keepers: dict[object, Callable[[Finished], None]] = {}


def keep_spans(keep: Callable[[Finished], None]) -> Callable[[], None]:
    """Have every span of this process kept from now on, once it is over.

    Args:
        keep: Called with each, in whatever thread it ends. What it fails with is logged once, and disturbs nobody.

    Returns:
        What ends that.
    """
    mark = object()  # somebody else may keep them in the same way
    _keepers[mark] = keep

    def end() -> None:
        _keepers.pop(mark, None)

    return end


def _imported(name: str) -> Any:
    """A module that the program has imported; `None` where another thread is still at it."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def is_traced() -> bool:
    """Whether anybody could be told of spans; where not, nothing is spent on them."""
    if _keepers:
        return True
    api: Any = _imported(_TRACE)  # other packages import it, too: it does nothing until a provider is set
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


class _Elsewhere(NamedTuple):
    """A span of another process, or of a request that is answered already."""

    trace: str
    id: str
    flags: str

    @classmethod
    def read(cls, context: str) -> _Elsewhere | None:
        """What `traceparent` says; `None` where that is nothing of the kind."""
        found = _CONTEXT.fullmatch(context)
        if found is None or not int(found[1], 16) or not int(found[2], 16):
            return None
        return cls(found[1], found[2], found[3])


class Span:
    """One piece of work in a trace.

    Args:
        otel: OpenTelemetry's span of it, where there is one.
        outer: The span that it lies in.
        since: When it began, in Unix seconds; now, if left out.
    """

    __slots__ = ("_began", "_clock", "_details", "_error", "_otel", "_said", "id", "kind", "name", "parent", "trace")

    def __init__(
        self, name: str, kind: SpanKind, otel: Any, outer: Span | _Elsewhere | None, since: float | None = None
    ) -> None:
        self.name, self._otel = name, otel
        self.kind: SpanKind = kind
        context = None if otel is None else otel.get_span_context()
        if context is not None:
            self.trace, self.id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
        else:
            self.trace, self.id = outer.trace if outer is not None else token_hex(16), token_hex(8)
        self.parent = "" if outer is None or outer.trace != self.trace else outer.id
        self._began, self._clock = time(), perf_counter()
        if since is not None:
            self._began, self._clock = since, self._clock - max(0.0, self._began - since)
        self._said: dict[str, Any] = {}
        self._details: dict[str, Any] = {}
        self._error = ""

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes; those that are `None` are left out."""
        told = {name: value for name, value in attributes.items() if value is not None}
        self._said |= told
        if self._otel is not None:
            self._otel.set_attributes(told)

    def detail(self, **details: Any) -> None:
        """Add what only a trace that is kept on this machine may hold; it is made fit to be seen before it is kept."""
        self._details |= details

    def fail(self, kind: str) -> None:
        """Mark it as failed.

        Args:
            kind: The error's key or class, never its message.
        """
        self._error = kind
        if self._otel is not None:
            self._otel.set_attribute("error.type", kind)
            self._otel.set_status(sys.modules[_TRACE].StatusCode.ERROR, kind)

    def fail_with(self, error: BaseException) -> None:
        """Mark it as failed with an exception; what that says is a detail."""
        self.fail(type(error).__name__)
        self.detail(said=str(error.args[0]) if error.args else "")

    @contextmanager
    def current(self) -> Generator[None]:
        """Make it the current one to the end of the block: spans begun inside are its children."""
        token = _CURRENT.set(self)
        try:
            if self._otel is None:
                yield
                return
            use = sys.modules[_TRACE].use_span
            with use(self._otel, end_on_exit=False, record_exception=False, set_status_on_exception=False):
                yield
        finally:
            _CURRENT.reset(token)

    def end(self) -> None:
        """It is over."""
        if self._otel is not None:
            self._otel.end()
        if _keepers:
            seconds = perf_counter() - self._clock
            ids, what = (self.trace, self.id, self.parent), (self.name, self._began, seconds, self._error)
            over = Finished(*ids, self.kind, *what, self._said, self._details)
            for keep in tuple(_keepers.values()):
                _kept(keep, over)


def _kept(keep: Callable[[Finished], None], over: Finished) -> None:
    """Hand a span over; a trace that cannot be kept is no reason for the work itself to fail."""
    global _complained  # noqa: PLW0603 - said once in this process
    try:
        keep(over)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not the work's
        if not _complained:
            _complained = True
            _LOG.warning("A span cannot be kept: %s.", type(error).__name__)


_complained = False
_CURRENT: ContextVar[Span | None] = ContextVar("the current span", default=None)
_RUN: ContextVar[tuple[str, str]] = ContextVar("the run and its conversation")


def within_run(run: str, conversation: str) -> None:
    """Say which run all that this task does from now on belongs to, by its id and its conversation's."""
    _RUN.set((run, conversation))


def run_now() -> str | None:
    """The id of the run that is being worked for, if any."""
    run = _RUN.get(None)
    return None if run is None else run[0]


def ids_now() -> dict[str, str]:
    """What is being worked for: `run` and `conversation`, `trace` and `span`, as far as there are any."""
    run = _RUN.get(None)
    told = {} if run is None else {"run": run[0], "conversation": run[1]}
    api: Any = _imported(_TRACE)
    if api is not None and (context := api.get_current_span().get_span_context()).is_valid:
        told |= {"trace": f"{context.trace_id:032x}", "span": f"{context.span_id:016x}"}
    elif (own := _CURRENT.get()) is not None:
        told |= {"trace": own.trace, "span": own.id}
    return told


def context_now() -> str:
    """The current span as `traceparent` tells it to whoever works for it elsewhere; "" where there is none."""
    api: Any = _imported(_TRACE)
    if api is not None and (context := api.get_current_span().get_span_context()).is_valid:
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    own = _CURRENT.get()
    return "" if own is None else f"00-{own.trace}-{own.id}-01"


def begun(
    name: str,
    attributes: Mapping[str, Any] | None = None,
    kind: SpanKind = "",
    *,
    side: Side = "",
    within: str = "",
    since: float | None = None,
) -> Span | None:
    """A span that lies in the current one, to be ended by whoever asks; `None` where nobody is told.

    Args:
        side: `server` answers a request of somebody else, `client` makes one.
        within: The span that it lies in in place of the current one, as `context_now` told it in another process, or a
            request in its header `traceparent`; what is nothing of the kind counts as left out.
        since: When it began, in Unix seconds; now, if left out.
    """
    outer = _Elsewhere.read(within) if within else None
    otel = _of_otel(name, side, outer, since)
    if otel is None and not _keepers:
        return None
    made = Span(name, kind, otel, outer or _CURRENT.get(), since)
    made.set(attributes or {})
    return made


def _of_otel(name: str, side: Side, outer: _Elsewhere | None, since: float | None) -> Any:
    """OpenTelemetry's span; `None` where it makes none.

    One that is not sampled is made: what lies in it is to be left out as well, and not to begin traces of its own.
    """
    api: Any = _imported(_TRACE)
    if api is None:
        return None
    how = {"server": api.SpanKind.SERVER, "client": api.SpanKind.CLIENT, "": api.SpanKind.INTERNAL}[side]
    context = None
    if outer is not None:
        flags = api.TraceFlags(int(outer.flags, 16))
        parent = api.SpanContext(int(outer.trace, 16), int(outer.id, 16), is_remote=True, trace_flags=flags)
        context = api.set_span_in_context(api.NonRecordingSpan(parent))
    began = None if since is None else int(since * 1e9)
    made = api.get_tracer(SCOPE).start_span(name, context=context, kind=how, start_time=began)
    # Without the SDK what is handed back is the span around it, or none that is valid.
    own, around = made.get_span_context(), api.get_current_span(context).get_span_context()
    return made if made.is_recording() or (own.is_valid and own.span_id != around.span_id) else None


@contextmanager
def span(
    name: str, attributes: Mapping[str, Value | None] | None = None, kind: SpanKind = "", *, within: str = ""
) -> Generator[Span | None]:
    """A span that is the current one to the end of the block, so that spans begun inside are its children.

    An exception that leaves the block marks it as failed, with its class. A block in an asynchronous generator would
    leave the span with whoever reads it: there, and only there, it must not be used; `spanned` is for those. It is
    `None` where nobody is told.

    Args:
        within: As of `begun`.
    """
    told = begun(name, attributes, kind, within=within)
    if told is None:
        yield None
        return
    try:
        with told.current():
            yield told
    except BaseException as error:
        told.fail_with(error)
        raise
    finally:
        told.end()


async def spanned(begin: Callable[[], Span | None], events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same events, each made within a span that lasts until they end; closing it closes them.

    Args:
        begin: Makes the span when the first event is asked for.
    """
    made = begin()
    within = nullcontext if made is None else made.current
    try:
        while True:
            with within():
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
            yield event
    except BaseException as error:
        _left(made, error)
        raise
    finally:
        try:
            with within():
                await events.aclose()
        finally:
            if made is not None:
                made.end()


def spanned_items(begin: Callable[[], Span | None], items: Generator[T, None, None]) -> Generator[T, None, None]:
    """As `spanned`, of items that are made one after another."""
    made = begin()
    within = nullcontext if made is None else made.current
    try:
        while True:
            with within():
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item
    except BaseException as error:
        _left(made, error)
        raise
    finally:
        try:
            with within():
                items.close()
        finally:
            if made is not None:
                made.end()


def _left(made: Span | None, error: BaseException) -> None:
    """How a stream was left before its end: stopped by who reads it, or by an error."""
    if made is None:
        return
    if isinstance(error, GeneratorExit | CancelledError):
        made.set({"parlour.outcome": "stopped"})
    else:
        made.fail_with(error)


def stands_for_agent() -> bool:
    """Whether the current span is that of a run, which stands for an agent without a name that answers in it."""
    outer = _CURRENT.get()
    return outer is not None and outer.kind == "run"


def count(name: str, attributes: Mapping[str, Value] | None = None) -> None:
    """Count one more of an instrument of `INSTRUMENTS`."""
    api: Any = _imported(_METRICS)
    if api is not None:
        _instrument(name).add(1, attributes)


def record(name: str, value: float, attributes: Mapping[str, Value] | None = None) -> None:
    """Note a value for a histogram of `INSTRUMENTS`."""
    api: Any = _imported(_METRICS)
    if api is not None:
        _instrument(name).record(value, attributes)


def gauge(name: str, description: str, value: Callable[[], float]) -> None:
    """Have a number read whenever somebody asks, from now on.

    Args:
        value: The number now; called in any thread.
    """
    if _METRICS in sys.modules:
        api: Any = import_module(_METRICS)  # made once: it waits for a thread that is still at it

        def read(_options: object) -> list[object]:
            return [api.Observation(value())]

        api.get_meter(SCOPE).create_observable_gauge(name, [read], description=description)


def is_measured() -> bool:
    """Whether anybody could be told what is measured; what costs something to find out is left alone where not."""
    return _imported(_METRICS) is not None


@cache
def _instrument(name: str) -> Any:
    """The instrument; one that was made before the program chose where measurements go finds it later on."""
    made, meter = INSTRUMENTS[name], sys.modules[_METRICS].get_meter(SCOPE)
    if made.kind == "counter":
        return meter.create_counter(name, made.unit, made.description)
    return meter.create_histogram(
        name, made.unit, made.description, explicit_bucket_boundaries_advisory=list(made.buckets)
    )
