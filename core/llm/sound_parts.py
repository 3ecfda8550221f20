"""A long recording in parts that a service takes, undecoded: MP3 is cut between frames, WAV between samples.

Others are cut between packets by FFmpeg's libraries, which come with the extra `voice`, in a process of their own: what
reads a file that somebody made holds no key and has bounds on its time and memory.
"""

from __future__ import annotations

import io
import json
import mmap
import subprocess
import sys
import wave
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.child_process import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_PART: Final = 600.0
"""Seconds of a part."""
_MOST_BYTES: Final = 20 * 1024 * 1024  # of a part
_MOST_JUNK: Final = 256 * 1024  # bytes of an MP3 that belong to no frame, such as pictures between them
_FRAME_HEAD: Final = 4
_MPEG1, _LAYER3 = 3, 1
_RATES: Final = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}  # by MPEG's version
_BITS: Final = (
    (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),  # of versions 2 and 2.5
    (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
)
_PACKAGE: Final = "av"
_WORKER: Final = Path(__file__).with_name("sound_worker.py")
_WORKER_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True)
class SoundPart:
    """A part of a recording, as a sound file of its own.

    Args:
        start, end: Seconds of the recording.
        read: Gives its bytes; blocks.
        media_type: Of these bytes; of a video they are its sound alone.
    """

    start: float
    end: float
    read: Callable[[], bytes]
    media_type: str


def parts_of(path: Path, media_type: str, longest: float = LONGEST_PART) -> list[SoundPart]:
    """The parts of a recording, in order; none where it cannot be cut. Blocks.

    Args:
        longest: Seconds of a part.

    Raises:
        OSError: It cannot be read.
    """
    match media_type:
        case "audio/mpeg":
            return _of_mp3(path, longest)
        case "audio/wav":
            return _of_wav(path, longest)
        case _:
            return _by_packets(path, longest) if find_spec(_PACKAGE) is not None else []


def _by_packets(path: Path, longest: float) -> list[SoundPart]:
    told: dict[str, Any] = {}
    bounds = str(longest), str(_MOST_BYTES)
    with suppress(ValueError):  # it ended before it had told all
        told = json.loads(_cut(path, *bounds))
    return [
        SoundPart(
            one["start"], one["end"], partial(_cut, path, *bounds, str(one["from"]), str(one["to"])), told["kind"]
        )
        for one in told.get("parts", ())
    ]


def _cut(path: Path, *asked: str) -> bytes:
    """What the process that cuts says; nothing where it took too long."""
    with path.open("rb") as file:
        try:
            return subprocess.run(  # noqa: S603 - a program of our own
                [sys.executable, "-P", str(_WORKER), *asked],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                timeout=_WORKER_SECONDS,
                check=False,
            ).stdout
        except subprocess.TimeoutExpired:
            return b""


def _of_wav(path: Path, longest: float) -> list[SoundPart]:
    try:
        with wave.open(str(path), "rb") as sound:
            rate, size = sound.getframerate(), sound.getsampwidth() * sound.getnchannels()
            samples = min(sound.getnframes(), path.stat().st_size // max(size, 1))
    except (wave.Error, EOFError):  # not plain samples
        return []
    step = int(min(longest * rate, _MOST_BYTES // size)) if rate and size else 0
    if step <= 0:
        return []
    return [
        SoundPart(at / rate, min(at + step, samples) / rate, partial(_wav_part, path, at, step), "audio/wav")
        for at in range(0, samples, step)
    ]


def _wav_part(path: Path, at: int, samples: int) -> bytes:
    made = io.BytesIO()
    with wave.open(str(path), "rb") as sound, wave.open(made, "wb") as part:
        part.setnchannels(sound.getnchannels())
        part.setsampwidth(sound.getsampwidth())
        part.setframerate(sound.getframerate())
        sound.setpos(at)
        part.writeframes(sound.readframes(samples))
    return made.getvalue()


def _of_mp3(path: Path, longest: float) -> list[SoundPart]:
    if not path.stat().st_size:
        return []
    parts: list[SoundPart] = []
    start = seconds = 0.0
    begin = end = -1
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for at, length, lasts in _frames(data):
            if begin >= 0 and (seconds + lasts - start > longest or at + length - begin > _MOST_BYTES):
                parts.append(SoundPart(start, seconds, partial(_bytes_of, path, begin, at), "audio/mpeg"))
                start, begin = seconds, at
            begin = at if begin < 0 else begin
            seconds, end = seconds + lasts, at + length
    if end < 0:
        return []
    return [*parts, SoundPart(start, seconds, partial(_bytes_of, path, begin, end), "audio/mpeg")]


def _bytes_of(path: Path, begin: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(end - begin)


def _frames(data: mmap.mmap) -> Iterator[tuple[int, int, float]]:
    """Where each frame of an MP3 begins, how many bytes it has, and how many seconds it lasts."""
    at, size, junk = _after_tag(data), len(data), 0
    while at + _FRAME_HEAD <= size:
        found = _frame(data[at : at + _FRAME_HEAD])
        if found is not None and at + found[0] <= size:
            yield at, *found
            at += found[0]
            continue
        following = data.find(b"\xff", at + 1)
        junk += (following if following >= 0 else size) - at
        if following < 0 or junk > _MOST_JUNK:
            return
        at = following


def _after_tag(data: mmap.mmap) -> int:
    """Behind the title and the cover, which stand before the sound."""
    if data[:3] != b"ID3" or len(data) < 10:
        return 0
    size = 0
    for byte in data[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size + (10 if data[5] & 0x10 else 0)


def _frame(head: bytes) -> tuple[int, float] | None:
    """Bytes and seconds of a frame, by its first four bytes; `None` where no frame begins."""
    if head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bits, rate, padding = head[2] >> 4, head[2] >> 2 & 3, head[2] >> 1 & 1
    if version not in _RATES or layer != _LAYER3 or not 0 < bits < 15 or rate == 3:
        return None
    is_first = version == _MPEG1
    samples, hertz = 1152 if is_first else 576, _RATES[version][rate]
    return samples // 8 * _BITS[is_first][bits - 1] * 1000 // hertz + padding, samples / hertz
