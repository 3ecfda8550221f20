"""A spoken reply out of its pieces."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from dataclasses import dataclass, field
from struct import pack
from typing import Final

from core.messages.content import ContentItem

_RATE: Final = 24_000  # samples a second, in 16 bits and one channel: what services speak when they send bare samples
_KINDS: Final = {
    b"RIFF": "wav",
    b"ID3": "mpeg",
    b"\xff\xfb": "mpeg",
    b"\xff\xf3": "mpeg",
    b"\xff\xf2": "mpeg",
    b"OggS": "ogg",
    b"fLaC": "flac",
    b"\xff\xf1": "aac",
}


@dataclass(slots=True)
class Speech:
    """Collects base64 that may be cut anywhere, also where each piece was encoded by itself."""

    _decoded: list[bytes] = field(default_factory=list[bytes])
    _rest: str = ""

    def feed(self, data: str) -> None:
        """One piece; what is not base64 is left out."""
        text = self._rest + data
        # A piece that ends in padding is whole; any other goes on in the next.
        whole = len(text) if text.endswith("=") else len(text) - len(text) % 4
        text, self._rest = text[:whole], text[whole:]
        try:
            self._decoded.append(a2b_base64(text))
        except ValueError:  # no base64, or not even ASCII
            self._rest = ""

    def item(self) -> ContentItem | None:
        """The recording so far; bare samples get the header of a WAV file. `None` where nothing came."""
        raw = b"".join(self._decoded)
        if not raw:
            return None
        kind = next((kind for start, kind in _KINDS.items() if raw.startswith(start)), "")
        if not kind:
            kind, raw = "wav", _wav_header(len(raw)) + raw
        return ContentItem(audio=f"data:audio/{kind};base64,{b64encode(raw).decode('ascii')}")


def _wav_header(size: int) -> bytes:
    layout = pack("<4sI4s4sIHHIIHH", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 1, _RATE, 2 * _RATE, 2, 16)
    return layout + pack("<4sI", b"data", size)
