"""Where measurements, traces and log lines go: `/metrics` for Prometheus, a collector that speaks OTLP, JSON lines."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from starlette.datastructures import Headers

from core.errors import need_packages
from core.export.redaction import own_secrets
from core.export.traces import trace_to
from core.extras import PACKAGES
from core.observing import gauge, ids_now
from core.settings import TRACE_FILE
from webui.middleware.answers import answer, refuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Scope, Send

    from core.engine import Engine
    from core.settings import Settings

    Measurements: TypeAlias = Callable[[Scope, Send], Awaitable[None]]

_MOST_SERIES = 500  # of one instrument: people may set up models of any name


def observing(settings: Settings) -> Measurements | None:
    """Begin to measure and to trace, as far as the settings ask for it; once for each process.

    Returns:
        What answers `/metrics`; `None` where nobody may read it.

    Raises:
        MissingExtraError: What it is made with is not installed.
        SettingsError: The file of traces cannot be written.
    """
    if settings.traces is not None and settings.traces.startswith(TRACE_FILE):
        trace_to(settings.traces, secrets=own_secrets(settings))
        settings = settings.model_copy(update={"traces": None})
    if settings.traces is None and settings.metrics_token is None:
        return None
    need_packages("What is measured", PACKAGES["observed"])
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create({"service.name": "parlour"})
    if settings.traces is not None:
        _trace(settings.traces, resource)
    return None if settings.metrics_token is None else _measure(settings.metrics_token.get_secret_value(), resource)


def gauges(engine: Engine) -> None:
    """Measure from now on what is going on at the same time."""
    gauge("parlour.replies.live", "Replies that are written now.", lambda: len(engine.runs.table.live))
    gauge("parlour.workspaces.open", "People whose things are open now.", lambda: len(engine.workspaces))


def _trace(address: str, resource: Any) -> None:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource)
    # Told apart from the variable, which the exporter would read by itself: the path is added as OTLP has it.
    exporter = OTLPSpanExporter(endpoint=f"{address.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


def _measure(token: str, resource: Any) -> Measurements:
    from opentelemetry import metrics
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    limits: Any = {Counter: _MOST_SERIES, Histogram: _MOST_SERIES}
    reader = PrometheusMetricReader(
        disable_target_info=True, scope_info_enabled=False, registry=registry, cardinality_limits=limits
    )
    metrics.set_meter_provider(MeterProvider([reader], resource=resource))
    return _Exposition(token, registry)


class _Exposition:
    """Answers `/metrics` to who shows the token.

    Args:
        registry: What is measured.
    """

    def __init__(self, token: str, registry: Any) -> None:
        self._token = token.encode()
        self._registry = registry

    async def __call__(self, scope: Scope, send: Send) -> None:
        """Answer one request."""
        from prometheus_client.exposition import choose_encoder

        headers = Headers(scope=scope)
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), self._token):
            await refuse(scope, send, 401, "refused.metrics", [("www-authenticate", "Bearer")])
            return
        encode, content_type = choose_encoder(headers.get("accept", ""))
        text = await asyncio.to_thread(encode, self._registry)
        await answer(send, 200, text.decode(), content_type, [("cache-control", "no-store")])


class JsonLines(logging.Formatter):
    """One object for each record: `time`, `level`, `logger`, `message`, and what it belongs to.

    `run` and `conversation` are there within a reply, `trace` and `span` where it is traced, `error` with the stack
    where an exception was logged, and `model_call` with its values where a model was called.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **ids_now(),
        }
        call: object = getattr(record, "model_call", None)
        if isinstance(call, dict):
            told["model_call"] = cast("dict[str, Any]", call)
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


def log_as_json() -> None:
    """Have all handlers of this process write such lines from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLines())
