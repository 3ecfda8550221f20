"""Reads what is nearly JSON exactly: nothing is guessed, so no value changes by how it was written.

Understood beyond JSON: single and triple quotes, backticks, bare keys, comments, trailing commas, raw line breaks in
strings, Python's words and numbers, brackets that are missing at the end, and stray ones after it.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Final, NoReturn

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
