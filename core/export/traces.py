"""A trace of each reply in a file of this machine: written as JSON lines, read as trees.

A line is a span that is over. What is called a key, or looks like one, is taken out before a line is written.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import SettingsError
from core.export.redaction import Redaction
from core.mcp.journal import one_line
from core.messages.message import Usage
from core.observing import Finished, keep_spans
from core.settings import TRACE_FILE, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

_LOG = logging.getLogger(__name__)
_MOST: Final = 32 * 1024 * 1024
"""Bytes after which the file gets the ending `.1`, in the place of the one before, and another is begun."""
_LONGEST: Final = 160  # characters of a value
_DEEPEST: Final = 200  # spans in each other
_MOST_VALUES: Final = 20  # arguments of a call
_LATEST: Final = 1e11  # seconds: times that a calendar has
_FIELDS: Final = frozenset(Finished._fields)


# ---- written


class Tracing:
    """That traces are kept, until `close` or the end of the `with` block; `trace_to` makes it.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self._redaction = Redaction(secrets)
        self._lock = threading.Lock()
        self._file = _opened(path)
        self._end = keep_spans(self._keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Keep no more."""
        self._end()
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _keep(self, span: Finished) -> None:
        try:
            line = json.dumps(self._fit(span), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
            with self._lock:
                if self._file >= 0:
                    self._turn_over()
                    os.write(self._file, line + b"\n")  # one write, so that lines of several processes stay whole
        except Exception as error:  # noqa: BLE001 - a reply does not fail by its trace
            self._end()
            _LOG.warning("No more traces are kept: %s cannot be written (%s).", self.path, error)

    def _fit(self, span: Finished) -> dict[str, Any]:
        said = self._redaction.said
        given = cast("dict[str, Any]", self._redaction.value(dict(span.attributes)))
        details = cast("dict[str, Any]", self._redaction.value(dict(span.details)))
        told = {**span._asdict(), "name": said(span.name), "attributes": given, "details": shortened(details)}
        return {name: value for name, value in told.items() if value not in ("", {})}

    def _turn_over(self) -> None:
        if os.fstat(self._file).st_size < _MOST:
            return
        if self.path.exists() and os.path.samestat(os.fstat(self._file), self.path.stat()):
            self.path.replace(_before(self.path))
        os.close(self._file)
        self._file = _opened(self.path)


def trace_to(file: str | Path | None = None, *, secrets: Iterable[str] = ()) -> Tracing:
    """Keep a trace of every reply of this process from now on: `parlour traces` shows them.

    Args:
        file: Where; left out, as `PARLOUR_TRACES=file:…` says. It is made where it is not there.
        secrets: What must not stand in it, beside what is called a key or looks like one.

    Raises:
        SettingsError: No file is named, or it cannot be written.
    """
    path = trace_file(file)
    try:
        return Tracing(path, secrets)
    except OSError as error:
        why = error.strerror or type(error).__name__
        said = f"The trace cannot be written to {path}: {why}."
        hint = "Name a file in a folder that you may write in."
        raise SettingsError(said, hint=hint, key="trace_no_write", file=str(path), why=why) from error


def trace_file(file: str | Path | None = None) -> Path:
    """The file of traces that is meant.

    Args:
        file: As of `trace_to`.

    Raises:
        SettingsError: None is, or what is given is no path.
    """
    if file is not None and not str(cast("object", file) if isinstance(file, str | Path) else "").strip():  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
        said = f"file must be a path, not {file!r}."
        raise SettingsError(said, hint='Write trace_to("traces.jsonl").', name="file")
    place = str(file if file is not None else Settings.load().traces or "")
    if not place or (file is None and not place.startswith(TRACE_FILE)):
        said = "No file of traces is named."
        raise SettingsError(said, hint="Set PARLOUR_TRACES=file:traces.jsonl, or name the file.", key="no_traces")
    return Path(place.removeprefix(TRACE_FILE)).expanduser()


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _before(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


def shortened(details: Mapping[str, Any]) -> dict[str, Any]:
    """Details in a length that a line can show."""
    shown: dict[str, Any] = {}
    for name, value in details.items():
        if isinstance(value, dict):
            items = list(cast("dict[str, Any]", value).items())
            shown[name] = {key[:_LONGEST]: _cut(one) for key, one in items[:_MOST_VALUES]}
        elif value:
            shown[name] = _cut(value)
    return shown


def _cut(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# ---- read


@dataclass(frozen=True, slots=True)
class Traced:
    """A span of a trace, with those that lie in it.

    Args:
        kind: `run`, `agent`, `model`, `tool`, or "".
        name: Of the agent, the model or the tool.
        began: Unix seconds.
        error: The key or class of what it failed with; "" where it did not.
        usage: Of a model call: tokens and cost.
        first: Of a model call: seconds to its first word, where one came.
        arguments: Of a tool, shortened and without keys.
        said: What went wrong, in a sentence.
        outcome: How it ended, where that was told.
        purpose: Of a model call: what it was for, where that was told.
        inside: In the order in which they began.
    """

    id: str
    kind: str
    name: str
    began: float
    seconds: float
    error: str = ""
    usage: Usage | None = None
    first: float | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    said: str = ""
    outcome: str = ""
    purpose: str = ""
    inside: tuple[Traced, ...] = ()

    @property
    def everything(self) -> Iterator[Traced]:
        """It, and all that lies in it, at whatever depth."""
        yield self
        for one in self.inside:
            yield from one.everything

    def as_dict(self) -> dict[str, Any]:
        """As plain values, without what is empty."""
        usage = None if self.usage is None else self.usage.model_dump()
        own = {"id": self.id, "kind": self.kind, "name": self.name, "began": self.began, "seconds": self.seconds}
        more = {
            "error": self.error,
            "said": self.said,
            "outcome": self.outcome,
            "purpose": self.purpose,
            "usage": usage,
            "first_token_seconds": self.first,
            "arguments": dict(self.arguments),
            "inside": [one.as_dict() for one in self.inside],
        }
        return {**own, **{name: value for name, value in more.items() if value not in ("", None, {}, [])}}


@dataclass(frozen=True, slots=True)
class Trace:
    """What was done for one reply.

    Args:
        id: In hex.
        roots: Its spans as trees; more than one where it is not over, or its beginning is not in the file any more.
        run: The id of the page's run, where it was one.
    """

    id: str
    roots: tuple[Traced, ...]
    run: str = ""

    @property
    def everything(self) -> list[Traced]:
        """All its spans, parents before what lies in them."""
        return [one for root in self.roots for one in root.everything]

    @property
    def name(self) -> str:
        """Of the agent that answered; of the request where none did."""
        kinds: dict[str, Traced] = {}
        for one in self.everything:
            kinds.setdefault(one.kind, one)
        return (kinds.get("agent") or kinds.get("run") or self.roots[0]).name

    @property
    def began(self) -> float:
        """Unix seconds."""
        return min(one.began for one in self.roots)

    @property
    def seconds(self) -> float:
        """From its beginning to its end."""
        return max(one.began + one.seconds for one in self.roots) - self.began

    @property
    def usage(self) -> Usage:
        """Tokens and cost of all its model calls."""
        usage = Usage()
        for one in self.everything:
            usage += one.usage or Usage()
        return usage

    @property
    def errors(self) -> list[Traced]:
        """What failed in it."""
        return [one for one in self.everything if one.error]

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        own = {"id": self.id, "name": self.name, "began": self.began, "seconds": self.seconds}
        usage = self.usage.model_dump()
        return {**own, "run": self.run, "usage": usage, "spans": [one.as_dict() for one in self.roots]}


def traces_in(file: str | Path, last: int | None = None) -> list[Trace]:
    """The traces of a file, the latest first.

    Args:
        file: That which they were written to.
        last: How many; all of them where it is left out.

    Raises:
        SettingsError: There is no such file, or it cannot be read.
    """
    path = Path(file)
    spans: dict[str, dict[str, dict[str, Any]]] = {}
    for one in (*_lines(_before(path)), *_lines(path, needed=True)):
        spans.setdefault(str(one["trace"]), {})[str(one["id"])] = one
    found = sorted(map(_trace, spans, spans.values()), key=lambda one: one.began, reverse=True)
    return found if last is None else found[:last]


def trace_in(file: str | Path, beginning: str) -> Trace:
    """One trace of a file.

    Args:
        beginning: Of its id, or of the id of its run.

    Raises:
        SettingsError: There is none, or more than one.
    """
    fits = [one for one in traces_in(file) if one.id.startswith(beginning) or one.run == beginning]
    if len(fits) == 1:
        return fits[0]
    if fits:
        said = f"Several traces begin with {beginning!r}."
        raise SettingsError(said, hint="Write more of its id.", key="trace_several", name=beginning)
    said = f"There is no trace {beginning!r}."
    raise SettingsError(said, hint="`parlour traces` lists those that there are.", key="trace_none", name=beginning)


def _lines(path: Path, *, needed: bool = False) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if (one := _span(line)) is not None:
                    yield one
    except FileNotFoundError as error:
        if needed:
            said = f"There is no file {path}: no reply was traced yet."
            hint = "Set PARLOUR_TRACES=file:… where agents run."
            raise SettingsError(said, hint=hint, key="trace_no_file", file=str(path)) from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        said = f"The traces in {path} cannot be read: {why}."
        hint = "Name a file that you may read."
        raise SettingsError(said, hint=hint, key="trace_no_read", file=str(path), why=why) from error


def _span(line: str) -> dict[str, Any] | None:
    """A line that is a span; half of one, which a kill left behind, is none."""
    try:
        one: Any = json.loads(line)
        has_times = 0 <= float(one["began"]) <= _LATEST and 0 <= float(one["seconds"]) <= _LATEST
        if not has_times or not {"trace", "id", "name"} <= one.keys() <= _FIELDS:
            return None
        _traced(one)  # what is told of it can be read
        return one
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _trace(name: str, spans: Mapping[str, dict[str, Any]]) -> Trace:
    by_parent: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(spans.values(), key=lambda one: float(one["began"])):
        by_parent.setdefault(_parent(one, spans), []).append(one)
    attributes = [cast("dict[str, Any]", one.get("attributes") or {}) for one in spans.values()]
    run = next((str(one["parlour.run_id"]) for one in attributes if "parlour.run_id" in one), "")
    return Trace(name, _trees("", by_parent), run)


def _parent(one: Mapping[str, Any], spans: Mapping[str, Mapping[str, Any]]) -> str:
    """The id of the span that one lies in; "" where it is not there, or where it would lie in itself."""
    parent, seen = str(one.get("parent", "")), {str(one["id"])}
    at = parent
    while at in spans:
        if at in seen or len(seen) > _DEEPEST:
            return ""
        seen.add(at)
        at = str(spans[at].get("parent", ""))
    return parent if parent in spans else ""


def _trees(parent: str, by_parent: Mapping[str, Sequence[dict[str, Any]]]) -> tuple[Traced, ...]:
    found = by_parent.get(parent, ())
    return tuple(replace(_traced(one), inside=_trees(str(one["id"]), by_parent)) for one in found)


def _traced(one: dict[str, Any]) -> Traced:
    told = cast("dict[str, Any]", one.get("attributes") or {})
    details = cast("dict[str, Any]", one.get("details") or {})
    kind = str(one.get("kind", ""))
    own = {"agent": "gen_ai.agent.name", "run": "gen_ai.agent.name", "model": "gen_ai.request.model"}
    name = str(told.get(own.get(kind, "gen_ai.tool.name"), one["name"]))
    first = told.get("gen_ai.response.time_to_first_chunk")
    return Traced(
        str(one["id"]),
        kind,
        one_line(name),
        float(one["began"]),
        float(one["seconds"]),
        error=one_line(str(one.get("error", ""))),
        usage=_usage(told),
        first=None if first is None else float(first),
        arguments=dict(cast("dict[str, Any]", details.get("arguments") or {})),
        said=one_line(str(details.get("said", "")), _LONGEST),
        outcome=str(told.get("parlour.outcome", "")),
    )


def _usage(told: Mapping[str, Any]) -> Usage | None:
    """The tokens of a model call."""
    if "gen_ai.usage.input_tokens" not in told:
        return None
    read, wrote = told["gen_ai.usage.input_tokens"], told.get("gen_ai.usage.output_tokens") or 0
    return Usage(
        prompt_tokens=read,
        completion_tokens=wrote,
        total_tokens=read + wrote,
        reasoning_tokens=told.get("gen_ai.usage.reasoning.output_tokens") or 0,
        cached_tokens=told.get("gen_ai.usage.cache_read.input_tokens") or 0,
        cost=told.get("parlour.usage.cost"),
        estimated=bool(told.get("parlour.usage.estimated")),
    )
