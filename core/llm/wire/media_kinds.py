"""Whether bytes are a recording or a video at all, by how they begin."""

from __future__ import annotations

from typing import Final

_SOUND: Final = (
    b"ID3", b"fLaC", b"OggS", b"#!AMR", b"FORM", b"caff", b"\x30\x26\xb2\x75",
    b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa", b"\xff\xf1", b"\xff\xf9",
)  # fmt: skip
_FILM: Final = (b"FLV\x01", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3", b"\x47\x40", b"OggS", b"\x30\x26\xb2\x75")
_BOTH: Final = (b"\x1a\x45\xdf\xa3",)  # Matroska and WebM
_BOXES: Final = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")  # MP4, QuickTime, M4A, 3GP
_WAVES: Final = {"audio": b"WAVE", "video": b"AVI "}


def looks_like(kind: str, start: bytes) -> bool:
    """Whether a file that begins so may be of that kind.

    Args:
        kind: "audio" or "video".
        start: Its first bytes, 12 at least where it has as many.
    """
    if start[:4] == b"RIFF":
        return start[8:12] == _WAVES[kind]
    return start.startswith(_BOTH + (_SOUND if kind == "audio" else _FILM)) or start[4:8] in _BOXES
