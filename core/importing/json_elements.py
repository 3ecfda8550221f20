"""The elements of a list in a large JSON file, one after the other: only one is in memory."""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = 1 << 18
_SIGNS: Final = re.compile(rb'["\\{}\[\]]')
_GAPS: Final = b" \t\r\n,"
_OPENING: Final = frozenset(b"{[")
_CLOSING: Final = frozenset(b"}]")
_QUOTE, _ESCAPE = ord('"'), ord("\\")


class ElementError(ValueError):
    """The file is no list of objects, or an element is too large; `large` says which."""

    def __init__(self, *, large: bool = False) -> None:
        super().__init__("too large" if large else "no JSON")
        self.large = large


def elements(file: IO[bytes], most: int) -> Iterator[Any]:
    """The objects of a list, or the one object that is the whole file.

    Args:
        file: UTF-8, with a byte order mark or without.
        most: Bytes of one element.

    Raises:
        ElementError: It is none, is cut short, or an element is larger.
    """
    buffer = file.read(_BLOCK).removeprefix(b"\xef\xbb\xbf").lstrip()
    is_list = buffer.startswith(b"[")
    if not is_list and not buffer.startswith(b"{"):
        raise ElementError
    buffer = buffer[1:] if is_list else buffer
    while True:
        buffer = buffer.lstrip(_GAPS)
        while not buffer:
            more = file.read(_BLOCK)
            if not more:
                raise ElementError  # a list that nothing ends
            buffer = more.lstrip(_GAPS)
        if is_list and buffer.startswith(b"]"):
            return
        if not buffer.startswith(b"{"):
            raise ElementError
        end, buffer = _end(file, buffer, most)
        yield _read(buffer[:end])
        buffer = buffer[end:]
        if not is_list:
            if buffer.strip() or file.read(_BLOCK).strip():
                raise ElementError
            return


def _end(file: IO[bytes], buffer: bytes, most: int) -> tuple[int, bytes]:
    """Where the object ends that the buffer begins with, and the buffer with all of it."""
    pieces, length, depth, in_text = [buffer], 0, 0, False
    piece, skip = buffer, 0
    while True:
        at = skip
        skip = 0
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
                    return length + at, b"".join(pieces)
        skip = max(0, at - len(piece))  # the sign after a backslash stands in the next piece
        length += len(piece)
        if length > most:
            raise ElementError(large=True)
        piece = file.read(_BLOCK)
        if not piece:
            raise ElementError
        pieces.append(piece)


def _read(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ElementError from error
