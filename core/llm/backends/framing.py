"""Pieces of a reply that lie in a connection together, as one: each of them passes a dozen hands on its way up.

A service sends each word in a chunk of its own (RFC 9112, 7.1). Where several of them are read at once, what is handed
on is one chunk with the words of all, and no word is held back: of a chunk that is there in part, that part is handed
on as a chunk. All else is left as it came, so whoever reads HTTP above finds what is wrong with it.
"""

from __future__ import annotations

import re
from typing import Final

_END: Final = b"\r\n"
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_LONGEST_HEAD: Final = 100 * 1024  # what is longer is refused above
_LONGEST_LINE: Final = 256
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[^\r\n]*|[ \t]*)\Z")
_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d)\d\d[ \r]")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_CODED: Final = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)


class Framing:
    """The bytes of one connection's answers, their chunks joined."""

    def __init__(self) -> None:
        self._rest = b""  # of a head or of a line with a size, which is not whole yet
        self._left = 0  # bytes of a chunk that are still to come, with the end of its line
        self._read = self._head

    def asked(self) -> None:
        """A request goes out: what comes next is the head of its answer."""
        if self._read == self._as_it_came:
            self._rest, self._left, self._read = b"", 0, self._head

    def joined(self, data: bytes) -> bytes:
        """What came, to be handed on; empty where it is only part of a line that says how long a chunk is."""
        return self._read(data)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _as_it_came(self, data: bytes) -> bytes:
        return data

    def _head(self, data: bytes) -> bytes:
        """A head is handed on as it comes; once it is whole it is known how its body is framed."""
        known = self._rest + data
        end = _HEAD_END.search(known)
        if end is None:
            self._rest = known
            if len(known) > _LONGEST_HEAD:
                self._leave()
            return data
        head, body = known[: end.end()], known[end.end() :]
        before = data[: len(data) - len(body)]
        status = _STATUS.match(head)
        self._rest = b""
        if status is not None and status[1] == b"1":  # another head follows
            return before + (self._head(body) if body else b"")
        if end[0] != _END + _END or status is None or not _CHUNKED.search(head) or len(_CODED.findall(head)) > 1:
            self._leave()
            return data
        self._read = self._chunks
        return before + (self._chunks(body) if body else b"")

    def _chunks(self, data: bytes) -> bytes:
        """The words of all chunks as one."""
        known = self._rest + data if self._rest else data
        at, size, words = 0, len(known), list[bytes]()
        ended = b""  # the end of the line of a chunk whose words were handed on before
        while at < size:
            if self._left > len(_END):
                part = known[at : at + self._left - len(_END)]
                words.append(part)
                at += len(part)
                self._left -= len(part)
            elif self._left:  # the end of the chunk's line
                ends = known[at : at + self._left]
                if ends != _END[-self._left :][: len(ends)]:
                    return self._left_alone(ended, words, known[at:])
                ended = ended if words else ends
                at += len(ends)
                self._left -= len(ends)
            else:
                end = known.find(_END, at)
                if end < 0 and size - at <= _LONGEST_LINE:
                    break
                line = _SIZE.match(known[at:end]) if 0 <= end - at <= _LONGEST_LINE else None
                length = int(line[1], 16) if line is not None else 0
                if not length:  # the last one, or none at all
                    return self._left_alone(ended, words, known[at:])
                at, self._left = end + len(_END), length + len(_END)
        self._rest = known[at:]
        return ended + self._chunk(words)

    def _left_alone(self, ended: bytes, words: list[bytes], rest: bytes) -> bytes:
        """What was read, and then all as it comes."""
        read = ended + self._chunk(words)
        self._leave()
        return read + rest

    def _chunk(self, words: list[bytes]) -> bytes:
        """Words as one chunk. Where they are whole, the end of its line is handed on as it comes: it may be wrong."""
        data = words[0] if len(words) == 1 else b"".join(words)
        if not data:
            return b""
        missing = self._left if self._left <= len(_END) else 0
        return b"%x\r\n%b%b" % (len(data), data, _END[: len(_END) - missing])

    def _leave(self) -> None:
        self._rest, self._left, self._read = b"", 0, self._as_it_came
