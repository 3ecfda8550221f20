"""The elements of a list in a large JSON file, one after the other: only one is in memory."""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_VALUES: Final = 4_000_000
"""Of one element. A text takes about thrice its bytes while it is read, but a small value up to a hundred bytes for its
two or three: by bytes alone, 128 MB could take many GB."""
_BLOCK: Final = 1 << 18
_SIGNS: Final = re.compile(rb'["\\{}\[\]]')
_GAPS: Final = re.compile(rb"[ \t\r\n,]*")
_OPENING: Final = frozenset(b"{[")
_CLOSING: Final = frozenset(b"}]")
_QUOTE, _ESCAPE = ord('"'), ord("\\")
_END_OF_LIST = ord("]")
_PLAIN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[^\s,\[\]{}"]++', re.DOTALL)
"""A text, a number or a word."""


class ElementError(ValueError):
    """The file is no list and no object, or an element is too large for memory; `large` says which."""

    def __init__(self, *, large: bool = False) -> None:
        super().__init__("too large" if large else "no JSON")
        self.large = large


def elements(file: IO[bytes], most: int) -> Iterator[Any]:
    """What a list holds, or the one object that is the whole file.

    Args:
        file: UTF-8, with a byte order mark or without.
        most: Bytes of one element.

    Raises:
        ElementError: It is none, is cut short, or an element is larger or has more than `MOST_VALUES`.
    """
    buffer = file.read(_BLOCK).removeprefix(b"\xef\xbb\xbf").lstrip()
    is_list = buffer.startswith(b"[")
    if not is_list and not buffer.startswith(b"{"):
        raise ElementError
    at = 1 if is_list else 0
    while True:
        at = _after_gap(buffer, at)
        while at == len(buffer):
            buffer = file.read(_BLOCK)
            if not buffer:
                raise ElementError  # a list that nothing ends
            at = _after_gap(buffer, 0)
        if is_list and buffer[at] == _END_OF_LIST:
            return
        reading = _element if buffer[at] in _OPENING else _plain
        text, buffer, at = reading(file, buffer, at, most)
        yield _read(text)
        if not is_list:
            if buffer[at:].strip() or file.read(_BLOCK).strip():
                raise ElementError
            return


def _after_gap(buffer: bytes, at: int) -> int:
    found = _GAPS.match(buffer, at)
    return found.end() if found is not None else at


def _element(file: IO[bytes], piece: bytes, begin: int, most: int) -> tuple[bytes, bytes, int]:
    """The object that begins there; the piece that it ends in, and where it does."""
    pieces: list[bytes] = []
    length, depth, values, in_text, skip = 0, 0, 0, False, begin
    while True:
        at = skip
        while (found := _SIGNS.search(piece, at)) is not None:
            at = found.end()
            sign = piece[at - 1]
            if sign == _ESCAPE:
                if in_text:
                    at += 1
            elif sign == _QUOTE:
                in_text = not in_text
            elif not in_text:
                depth += (sign in _OPENING) - (sign in _CLOSING)
                if depth == 0:
                    return b"".join([*pieces, piece[begin:at]]), piece, at
        skip = max(0, at - len(piece))  # the sign after a backslash stands in the next piece
        pieces.append(piece[begin:])
        length += len(piece) - begin
        # Those within texts are counted as well, for speed: of prose they are one sign in fifty.
        values += sum(pieces[-1].count(sign) for sign in (b",", b"{", b"["))
        if length > most or values > MOST_VALUES:
            raise ElementError(large=True)
        piece, begin = file.read(_BLOCK), 0
        if not piece:
            raise ElementError


def _plain(file: IO[bytes], piece: bytes, begin: int, most: int) -> tuple[bytes, bytes, int]:
    """As `_element`, of what is neither an object nor a list."""
    while True:
        found = _PLAIN.match(piece, begin)
        if found is not None and found.end() < len(piece):
            return found[0], piece, found.end()
        more = file.read(_BLOCK)
        if not more:
            raise ElementError
        piece, begin = piece[begin:] + more, 0
        if len(piece) > most:
            raise ElementError(large=True)


def _read(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ElementError from error
