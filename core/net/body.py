"""The bytes of an answer, unpacked no further than was agreed."""

from __future__ import annotations

import zlib
from typing import Final

# What is asked for; unpacking it can be bounded at each step.
ENCODINGS = "gzip"
WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""What `zlib` calls the ways in which an answer may be packed."""


class TooLargeError(Exception):
    """More than was agreed came, or would come out."""


class Body:
    """Takes an answer in pieces.

    Args:
        encoding: The answer's `content-encoding`.
        most: Bytes that may come out.

    Raises:
        ValueError: It is packed in a way that was not asked for.
    """

    def __init__(self, encoding: str, most: int) -> None:
        packed = encoding.strip().lower()
        if packed not in {"", "identity", *WINDOWS}:
            raise ValueError(packed)
        self._unpacking = zlib.decompressobj(WINDOWS[packed]) if packed in WINDOWS else None
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take in a piece.

        Raises:
            TooLargeError: There is no room for it.
            ValueError: It cannot be unpacked.
        """
        while piece:
            out, piece = self._unpacked(piece)
            self._size += len(out)
            if self._size > self._most:
                raise TooLargeError
            self._parts.append(out)

    def _unpacked(self, piece: bytes) -> tuple[bytes, bytes]:
        """What comes out of a piece, one byte beyond the room at most, and what of the piece is left."""
        if self._unpacking is None:
            return piece, b""
        if self._unpacking.eof:
            return b"", b""  # what follows the end belongs to nothing
        try:
            out = self._unpacking.decompress(piece, self._most - self._size + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        return out, self._unpacking.unconsumed_tail

    def whole(self) -> bytes:
        """Everything.

        Raises:
            ValueError: It ended before its end.
        """
        if self._unpacking is not None and self._size and not self._unpacking.eof:
            raise ValueError("The answer was cut off.")
        return b"".join(self._parts)


ASKED: Final = {"accept-encoding": ENCODINGS}
"""The header that asks for nothing that cannot be unpacked here."""
