"""What a server wants to know from the user: passed on to whoever asks, where that is allowed at all."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from core.errors import ParlourError
from core.mcp.journal import many_lines, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import ElicitResult


_LOG = logging.getLogger(__name__)

Elicit: TypeAlias = Callable[[str, str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
AskUser: TypeAlias = Callable[[str, str, str, dict[str, Any]], Awaitable[dict[str, Any] | None]]

PATIENCE = 600.0  # seconds that a person has for an answer
_LONGEST_QUESTION = 4000
_MOST_FIELDS = 40


@dataclass(frozen=True, eq=False)
class Caller:
    """Who makes a call, and may be asked during it.

    Args:
        ask: Asks that user: `await ask(call_id, server, message, schema)`, as of `Elicit`. Those that are equal ask in
            the same place.
        loop: Where `ask` is at home.
    """

    ask: AskUser
    call_id: str
    loop: asyncio.AbstractEventLoop

    async def elicit(self, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask, from whichever loop."""

        async def asking() -> dict[str, Any] | None:
            return await self.ask(self.call_id, server, message, schema)

        if asyncio.get_running_loop() is self.loop:
            return await asking()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking(), self.loop))


# The call during which a server of the newer kind asks: it does so instead of answering. The older ones ask in between,
# and do not say for which call.
_NOW: ContextVar[Caller | None] = ContextVar("the call during which a server asks", default=None)


class Asker:
    """Answers the questions of one server, one after another.

    A question goes to the user whose call the server is working at. Where it works for several at once, nobody can
    tell whose it is, and it is declined: it might tell one what is another's.

    Args:
        server: The server's name, for the user.
        elicit: Asks where no call says whom; `None` where servers may not ask at all.
        hidden: Takes out of a question what who is asked may not know.
    """

    def __init__(self, server: str, elicit: Elicit | None, hidden: Callable[[Any], Any] | None = None) -> None:
        self._server = server
        self._elicit = elicit
        self._hidden: Callable[[Any], Any] = hidden or _as_it_is
        self._clocks: set[asyncio.Timeout] = set()
        self._callers: list[Caller | None] = []
        self._asked: tuple[Caller | None, asyncio.Future[dict[str, Any] | None]] | None = None

    @contextmanager
    def during(self, clock: asyncio.Timeout, caller: Caller | None) -> Generator[None]:
        """While a request runs: its clock stands still while the user is asked; its end takes its question back."""
        self._clocks.add(clock)
        self._callers.append(caller)
        before = _NOW.set(caller)
        try:
            yield
        finally:
            _NOW.reset(before)
            self._clocks.discard(clock)
            self._callers.remove(caller)
            if self._asked is not None and caller is not None and self._asked[0] is caller:
                self._asked[1].cancel()

    async def answer(self, context: Any, params: Any) -> ElicitResult:
        """What the SDK calls when the server asks. Only forms are passed on: no server sends a user to an address."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        del context
        if self._elicit is None or not isinstance(params, ElicitRequestFormParams) or self._asked is not None:
            return ElicitResult(action="decline")
        schema: dict[str, Any] = dict(params.requested_schema)
        if len(schema.get("properties") or {}) > _MOST_FIELDS:
            return ElicitResult(action="decline")
        whose = self._whose()
        if whose is None and any(self._callers):
            return ElicitResult(action="decline")
        elicit = whose.elicit if whose is not None else self._elicit
        question = many_lines(self._hidden(params.message), _LONGEST_QUESTION)
        asked = asyncio.ensure_future(elicit(self._server, question, self._hidden(schema)))
        self._asked = whose, asked
        try:
            with self.standing():
                return await _answered(asked, self._server)
        finally:
            self._asked = None
            asked.cancel()

    def _whose(self) -> Caller | None:
        """Whose call it is that the server asks about, where that is certain."""
        caller = _NOW.get()
        if caller is not None:
            return caller
        if len({one.ask if one is not None else None for one in self._callers}) != 1:
            return None
        return self._callers[0]

    @contextmanager
    def standing(self) -> Generator[None]:
        """While it is open, all clocks stand still: a person is asked."""
        resting = {clock: clock.when() for clock in self._clocks}
        now = asyncio.get_running_loop().time
        began = now()
        for clock in resting:
            clock.reschedule(None)
        try:
            yield
        finally:
            for clock, when in resting.items():
                if when is not None and clock in self._clocks:
                    clock.reschedule(when + now() - began)


def _as_it_is(said: Any) -> Any:
    return said


async def _answered(asked: asyncio.Future[dict[str, Any] | None], server: str) -> ElicitResult:
    from mcp_types import ElicitResult

    try:
        async with asyncio.timeout(PATIENCE):
            given = await asked
    except TimeoutError:
        return ElicitResult(action="cancel")
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ElicitResult(action="cancel")  # the call is over: nobody wants the answer any more
    except ParlourError as error:
        _LOG.info("The question of the MCP server %r was not answered: %s", server, error)
        return ElicitResult(action="cancel")
    return ElicitResult(action="decline") if given is None else ElicitResult(action="accept", content=given)


FieldKind: TypeAlias = Literal["text", "number", "integer", "truth", "choice", "choices"]

_KINDS: dict[str, FieldKind] = {"string": "text", "number": "number", "integer": "integer", "boolean": "truth"}
_BOUNDS: dict[FieldKind, tuple[str, str]] = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}
_MOST_CHOICES = 200
_LONGEST_HINT = 500
_LONGEST_ANSWER = 20_000
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")


class FormField(NamedTuple):
    """A field of a form. What people read of it is the server's: without hidden signs, and not too long.

    Args:
        name: What the server calls it.
        kind: What may stand in it; of a `truth`, "true" or "false"; of `choices`, a JSON list of some of them.
        title: What people are shown for a name.
        hint: What the server says of it.
        needed: Whether it must be filled in.
        text: What stands in it at first.
        choices: Of a `choice` or `choices`, each value with what people are shown for it.
        least: The smallest number, or the least characters or choices.
        most: The largest number, or the most characters or choices.
    """

    name: str
    kind: FieldKind
    title: str
    hint: str
    needed: bool
    text: str
    choices: tuple[tuple[str, str], ...] = ()
    least: float | None = None
    most: float | None = None


def form_of(schema: Mapping[str, Any]) -> tuple[FormField, ...] | None:
    """The fields of a flat schema of an object, in order; `None` where one that must be filled in cannot be shown."""
    given = schema.get("properties")
    if not isinstance(given, dict):
        return () if given is None else None
    asked = schema.get("required")
    needed = set(map(str, cast("list[Any]", asked))) if isinstance(asked, list) else set[str]()
    found: list[FormField] = []
    for name, about in cast("dict[str, Any]", given).items():
        field = _field(name, about, needed=name in needed)
        if field is not None:
            found.append(field)
        elif name in needed:
            return None
    return tuple(found)


def answers(fields: tuple[FormField, ...], typed: Mapping[str, object]) -> dict[str, Any]:
    """The values that a server is sent: of each field what was typed, nothing for one that was left empty.

    Where something was ticked at first and nothing is any more, that is an answer, too: an empty list.

    Args:
        typed: Texts by the fields' names.

    Raises:
        ParlourError: key `wrong_answer` (details: name): something is missing, or is not what the field takes.
    """
    made: dict[str, Any] = {}
    for field in fields:
        text = typed.get(field.name, "")
        if not isinstance(text, str) or len(text) > _LONGEST_ANSWER:
            raise _wrong(field)
        value = _value(field, text) if text.strip() else ""
        if value not in ("", []) or (value == [] and _says_none(field)):
            made[field.name] = value
        elif field.needed:
            raise _wrong(field)
    return made


def _says_none(field: FormField) -> bool:
    """Whether nothing ticked is an answer: without one, a server would take what was ticked at first."""
    return field.needed or (field.text != "[]" and _within(field, 0))


def _field(name: str, about: Any, *, needed: bool) -> FormField | None:
    if not isinstance(about, dict):
        return None
    known = cast("dict[str, Any]", about)
    items = known.get("items") if known.get("type") == "array" else None
    choices = _choices(cast("dict[str, Any]", items) if isinstance(items, dict) else known)
    many = items is not None and bool(choices)
    kind: FieldKind | None = "choices" if many else "choice" if choices else _KINDS.get(str(known.get("type")))
    if kind is None or choices is None:
        return None
    text = _first(known.get("default"), kind, dict(choices))
    title, hint = _text(known.get("title")), many_lines(_text(known.get("description")), _LONGEST_HINT)
    least, most = _BOUNDS.get(kind, ("minimum", "maximum"))
    return FormField(
        name,
        kind,
        one_line(title or name),
        hint,
        needed,
        text,
        choices,
        _number(known.get(least)),
        _number(known.get(most)),
    )


def _first(default: object, kind: FieldKind, choices: Mapping[str, str]) -> str:
    """What stands in a field at first, as text."""
    if kind == "choices":
        given = cast("list[object]", default) if isinstance(default, list) else []
        return json.dumps([one for one in choices if one in given], ensure_ascii=False)
    text = "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return "" if (kind == "choice" and text not in choices) or len(text) > _LONGEST_ANSWER else text


def _choices(about: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """The values to choose from; empty where anything may be typed, `None` where they cannot be shown."""
    values: list[Any]
    named: list[Any]
    several = about.get("oneOf") or about.get("anyOf")
    if isinstance(several, list):
        ones = [cast("dict[str, Any]", one) for one in cast("list[Any]", several) if isinstance(one, dict)]
        values, named = [one.get("const") for one in ones], [one.get("title") for one in ones]
    elif isinstance(about.get("enum"), list):
        values = about["enum"]
        names = about.get("enumNames")
        named = cast("list[Any]", names) if isinstance(names, list) else []
    else:
        return ()
    if not 0 < len(values) <= _MOST_CHOICES or not all(isinstance(value, str) for value in values):
        return None
    named = [*named, *([None] * len(values))]
    return tuple((value, one_line(_text(name) or value)) for value, name in zip(values, named, strict=False))


def _picked(field: FormField, text: str) -> list[str]:
    """Some of the choices, each once, in the order in which they are offered."""
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong(field) from None
    known = dict(field.choices)
    if not isinstance(given, list) or not all(
        isinstance(one, str) and one in known for one in cast("list[Any]", given)
    ):
        raise _wrong(field)
    picked = [one for one in known if one in cast("list[Any]", given)]
    if (picked or field.needed) and not _within(field, len(picked)):
        raise _wrong(field)
    return picked


def _value(field: FormField, text: str) -> Any:
    match field.kind:
        case "choices":
            return _picked(field, text)
        case "text":
            value, size = text, float(len(text))
        case "choice":
            value, size = text, None
            if text not in dict(field.choices):
                raise _wrong(field)
        case "truth":
            value, size = text == "true", None
            if text not in {"true", "false"}:
                raise _wrong(field)
        case "number" | "integer":
            value = _read_number(field, text.strip())
            size = float(value)
    if size is not None and not _within(field, size):
        raise _wrong(field)
    return value


def _read_number(field: FormField, text: str) -> int | float:
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise _wrong(field)
    value = float(text)
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    if field.kind == "integer":
        raise _wrong(field)
    return value


def _within(field: FormField, size: float) -> bool:
    return (field.least is None or size >= field.least) and (field.most is None or size <= field.most)


def _wrong(field: FormField) -> ParlourError:
    text = f"{field.title!r} cannot be answered in this way."
    return ParlourError(text, hint="Correct it.", key="wrong_answer", name=field.title)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
