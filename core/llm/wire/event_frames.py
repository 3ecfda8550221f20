"""Amazon's event streams: binary frames with checksums, as the JSON of their events."""

from __future__ import annotations

import json
from struct import Struct
from typing import Final
from zlib import crc32

from core.llm.wire.reading import EventLines, misread

_PRELUDE: Final = Struct(">III")
_CHECK: Final = Struct(">I")
_SHORT: Final = Struct(">H")
_LEAST: Final = _PRELUDE.size + _CHECK.size
MOST_FRAME: Final = 24 << 20
"""Bytes of one frame: the service's own limit is 16 MiB of payload."""
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value, by its type; those of texts and bytes say how long they are."""
_SIZED: Final = frozenset({6, 7})


class EventFrames(EventLines):
    """Splits bytes into frames, and gives each as one JSON object: `{"<name of the event>": payload}`.

    A failure within the stream is `{"exception": "<its name>", "said": payload}`. A reply that came at once, as one
    server-sent event, is passed on as it is.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept = bytearray()
        self._is_text: bool | None = None

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that this piece completes.

        Raises:
            ModelMisbehavedError: What came is no frame, or was changed on its way.
        """
        if self._is_text is None and piece:
            self._is_text = piece[:1] not in {b"\0", b"\1"}  # a frame begins with its length
        if self._is_text:
            return super().feed(piece)
        self._kept += piece
        found: list[bytes] = []
        at = 0
        while len(self._kept) - at >= _LEAST:
            whole, headers, check = _PRELUDE.unpack_from(self._kept, at)
            if not _LEAST + headers <= whole <= MOST_FRAME or crc32(self._kept[at : at + 8]) != check:
                raise misread("that is no frame of an event stream")
            if len(self._kept) - at < whole:
                break
            found.append(_event(bytes(self._kept[at : at + whole]), headers))
            at += whole
        del self._kept[:at]
        return found

    def close(self) -> list[bytes]:
        """The data of an unterminated last event; of a frame that was cut off there is none."""
        return super().close() if self._is_text else []


def _event(frame: bytes, size: int) -> bytes:
    if crc32(frame[:-4]) != _CHECK.unpack(frame[-4:])[0]:
        raise misread("with a wrong checksum")
    headers = _headers(frame[_PRELUDE.size : _PRELUDE.size + size])
    payload = frame[_PRELUDE.size + size : -4] or b"{}"
    if headers.get(":message-type", "event") == "event":
        return b'{"%b": %b}' % (json.dumps(headers.get(":event-type", ""))[1:-1].encode(), payload)
    name = headers.get(":exception-type") or headers.get(":error-code") or "error"
    if "json" not in headers.get(":content-type", "json"):
        payload = json.dumps({"message": payload.decode("utf-8", "replace")}).encode()
    if said := headers.get(":error-message"):
        payload = json.dumps({"message": said}).encode()
    return b'{"exception": %b, "said": %b}' % (json.dumps(name).encode(), payload)


def _headers(raw: bytes) -> dict[str, str]:
    """The headers that are texts."""
    found: dict[str, str] = {}
    at = 0
    while at < len(raw):
        name = raw[at + 1 : at + 1 + raw[at]].decode("utf-8", "replace")
        at += 1 + raw[at]
        kind = raw[at] if at < len(raw) else -1
        at += 1
        if kind in _SIZED and at + 2 <= len(raw):
            size = _SHORT.unpack_from(raw, at)[0]
            at += 2
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise misread("with a header of an unknown form")
        if kind == 7:
            found[name] = raw[at : at + size].decode("utf-8", "replace")
        at += size
    return found
