"""Reads JSON that a model wrote: strictly first, then what is nearly JSON exactly, and only then by guessing."""

from __future__ import annotations

import json
import re
from functools import lru_cache, partial
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NoReturn, SupportsIndex, cast

if TYPE_CHECKING:
    from collections.abc import Callable


LONGEST: Final = 20_000
"""Characters of the longest text that is repaired."""
DEEPEST: Final = 100
"""How many brackets may be open at once."""
# What people and models really write is repaired in 1 to 10 looks a character.
_LOOKS: Final = 20
_LOOKS_OF_ANY: Final = 20_000
_AT_ONCE: Final = 32  # characters that are searched in the time of one look
_KEPT: Final = 256


def repaired(text: str) -> str:
    """The JSON text that `text` was probably meant to be. Results and failures of recent texts are kept.

    Raises:
        ValueError: It is too long or too deep, or would take too long.
    """
    if len(text) > LONGEST:
        raise ValueError(f"JSON of {len(text)} characters is too long to be repaired.")
    found, problem = _remembered(text)
    if problem:
        raise ValueError(problem)
    return found


@lru_cache(maxsize=_KEPT)
def _remembered(text: str) -> tuple[str, str]:
    """The JSON text and no problem, or the other way round: what is raised would not be kept."""
    if _depth(text) > DEEPEST:
        return "", "The JSON is nested too deeply."
    repair: Any = import_module("json_repair")
    try:
        found = repair.loads(_Metered.of(text), skip_json_loads=True)
        return json.dumps(found, ensure_ascii=False), ""
    except RecursionError:
        return "", "The JSON is nested too deeply."
    except (_SpentError, ValueError) as error:
        return "", str(error)


def _depth(text: str) -> int:
    """How many brackets are open at once at most. Strings do not count: where they end is what nobody knows."""
    deepest = depth = 0
    for char in text:
        if char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "}]" and depth:
            depth -= 1
    return deepest


class _SpentError(Exception):
    """No look is left. Not a `ValueError`, which the library catches."""


class _Metered(str):
    """Text that can be looked at so many times only."""

    __slots__ = ("_spend",)
    _spend: Callable[[int], None]

    @classmethod
    def of(cls, text: str) -> _Metered:
        """The text with the looks that its length gives."""
        left = _LOOKS * len(text) + _LOOKS_OF_ANY

        def spend(looks: int) -> None:
            nonlocal left
            left -= looks
            if left < 0:
                raise _SpentError("It takes too long to guess what this JSON was meant to be.")

        return cls._with(text, spend)

    @classmethod
    def _with(cls, text: str, spend: Callable[[int], None]) -> _Metered:
        made = cls(text)
        made._spend = spend
        return made

    def __getitem__(self, at: SupportsIndex | slice) -> str:
        found = super().__getitem__(at)
        if not isinstance(at, slice):
            self._spend(1)
            return found
        self._spend(1 + len(found))  # it may be gone through one by one
        return self._with(found, self._spend)

    def __add__(self, other: str) -> str:
        return self._with(super().__add__(other), self._spend)

    def __radd__(self, other: str) -> str:
        return self._with(str(other) + str(self), self._spend)

    def find(self, *looked_for: Any) -> int:
        """As ever, for as many looks as it passes characters."""
        found = super().find(*looked_for)
        begin = looked_for[1] if len(looked_for) > 1 else 0
        self._spend(1 + ((found if found >= 0 else len(self)) - begin) // _AT_ONCE)
        return found


_GAP: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_BARE_KEY: Final = re.compile(r"[^\W\d][\w$.-]*")
_WORD: Final = re.compile(r"[A-Za-z_]+|-Infinity")
_NUMBER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])")
_STRING: Final = {
    '"': re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL),
    "`": re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL),
    '"""': re.compile(r'"""(.*?)"""', re.DOTALL),
    "'''": re.compile(r"'''(.*?)'''", re.DOTALL),
}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "", **{c: c for c in "\"'`\\/"}}
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "None", "NULL", "undefined", "NaN", "nan", "Infinity", "-Infinity", "inf")),
}
_CLOSING: Final = "}]) \t\r\n,;"
_MOST: Final = 50_000  # values: each costs some microseconds


def read_loose(text: str) -> Any:
    """The object or list that `text` begins with; halves of surrogate pairs are left as they are.

    Raises:
        ValueError: It is no such thing, or it could be read in more than one way.
    """
    reader = _Reader(text)
    found = reader.container()
    reader.skip()
    if text[reader.at :].strip(_CLOSING):
        reader.fail()
    return found


class _Reader:
    """A place in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.values = 0

    def fail(self) -> NoReturn:
        raise ValueError(f"This is not nearly JSON, at character {self.at}: {self.text[self.at : self.at + 40]!r}.")

    def skip(self) -> str:
        """Pass white space and comments; the character that follows, empty at the end."""
        found = _GAP.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def container(self) -> Any:
        following = self.skip()
        if following == "{":
            return self._object()
        return self._list() if following == "[" else self.fail()

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        while (following := self.skip()) not in {"}", ""}:
            key = self._string() if following in "\"'" else self._bare_key()
            if self.skip() != ":":
                self.fail()
            self.at += 1
            found[key] = self._value()
            self._comma("}")
        self.at += 1
        return found

    def _list(self) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while self.skip() not in {"]", ""}:
            found.append(self._value())
            self._comma("]")
        self.at += 1
        return found

    def _comma(self, end: str) -> None:
        """What must follow a value: a comma, or the end, which may be missing at the end of the text."""
        following = self.skip()
        if following == ",":
            self.at += 1
        elif following not in {end, ""}:
            self.fail()

    def _value(self) -> Any:
        self.values += 1
        if self.values > _MOST:
            raise ValueError(f"This is not JSON, and has more than {_MOST:,} values.")
        following = self.skip()
        if following in {"{", "["}:
            return self.container()
        if following and following in "\"'`":
            return self._string()
        if found := _NUMBER.match(self.text, self.at):
            self.at = found.end()
            return _number(found.group())
        found = _WORD.match(self.text, self.at)
        if found is None or found.group() not in _WORDS:
            self.fail()
        self.at = found.end()
        return _WORDS[found.group()]

    def _bare_key(self) -> str:
        found = _BARE_KEY.match(self.text, self.at)
        if found is None:
            self.fail()
        self.at = found.end()
        return found.group()

    def _string(self) -> str:
        quote = self.text[self.at]
        raw = quote != "`" and self.text.startswith(quote * 3, self.at)
        found = _STRING[quote * 3 if raw else quote].match(self.text, self.at)
        if found is None:
            self.fail()
        self.at = found.end()
        return found.group(1) if raw else _ESCAPE.sub(_resolved, found.group(1))


def _resolved(escape: re.Match[str]) -> str:
    said = escape.group(1)
    if len(said) > 1:
        return chr(int(said[1:], 16))
    return _ESCAPED.get(said, escape.group())


def finite(text: str) -> float | None:
    """A number as JSON has them: none beyond all bounds."""
    number = float(text)
    return number if isfinite(number) else None


def _number(text: str) -> int | float | None:
    text = text.lstrip("+")
    if "x" in text or "X" in text:
        return int(text, 16)
    try:
        return int(text)
    except ValueError:
        return finite(text)


_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_LOOSE = 1_000_000
_ANY_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_COMMENTS = ("//", "/*", "#")

compact = partial(json.dumps, ensure_ascii=False)
"""JSON text for a model: characters as they are, one space after `:` and `,`."""


def read_object(text: str) -> dict[str, Any]:
    """The one JSON object that `text` holds, bare or in a code fence.

    Raw line breaks in strings, single quotes, bare keys, trailing commas, comments, `None`/`True`, a missing or an
    extra brace and JSON inside a JSON string are understood. NaN and infinities, which JSON does not have, become
    `None`; half a surrogate pair becomes U+FFFD.

    Raises:
        ValueError: There is no object, or nothing that can be mended into one.
    """
    found = read_value(text)
    if isinstance(found, str):  # JSON text inside a JSON string
        found = read_value(found)
    if not isinstance(found, dict):
        raise ValueError(f"There is no JSON object in {text[:80]!r}.")  # noqa: TRY004 - bad text, not a wrong type
    return cast("dict[str, Any]", found)


def read_value(text: str) -> Any:
    """The JSON value that `text` holds, read like `read_object`: an object or a list is mended where it must be.

    Raises:
        ValueError: There is none.
    """
    text = text.strip()
    fenced = _FENCE.match(text)
    if fenced:
        text = fenced.group(1).strip()
    found = _read(text)
    return _whole(found) if "\\u" in text.lower() else found


def _read(text: str) -> object:
    try:
        return json.loads(text, strict=False, parse_constant=_no_number, parse_float=finite)
    except json.JSONDecodeError:
        return _mended(text)
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error


def _mended(text: str) -> object:
    if not text.startswith(("{", "[")) or len(text) > _LONGEST_LOOSE:
        raise ValueError(f"This is not JSON: {text[:80]!r}.")
    try:
        return read_loose(text)
    except ValueError:
        pass
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error
    found = repaired(text)
    if _letters(found) < _letters(text) and not any(mark in text for mark in _COMMENTS):
        raise ValueError(f"This cannot be mended without losing something: {text[:80]!r}.")
    return json.loads(found, parse_constant=_no_number, parse_float=finite)


def _letters(text: str) -> int:
    """How many letters there are; mending must not lose any but those of comments."""
    return sum(map(str.isalpha, _ANY_ESCAPE.sub("", text)))


def _no_number(_: str) -> None:
    return None


def _whole(value: object) -> object:
    """The value with surrogate pairs as the characters they stand for, and without lone halves, which nothing takes."""
    if isinstance(value, str):
        if _LONE_SURROGATE.search(value) is None:
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[object]", value)]
    return value
