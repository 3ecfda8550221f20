"""The process that cuts the sound of a file, undecoded: `python -P sound_worker.py SECONDS BYTES [START END]`.

It reads a sound or video file from standard input, which it must be able to seek in. It tells where the parts are, none
longer than so many seconds and bytes: `{"kind", "parts": [{"start", "end", "from", "to"}, …]}`, in seconds and in the
file's own units of time; with `START` and `END` of one of them it writes that part as a file of its own, of the media
type `kind`. Of a file that cannot be cut it tells `{}`. It imports nothing of Parlour and has bounds on its time.
"""

from __future__ import annotations

import io
import json
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROCESSOR_SECONDS = 600
_MEMORY = 2 << 30
_MOST_PARTS = 10_000
# By the codec: the container that holds it wherever it was found, as services name its media type.
_KINDS = {
    "aac": ("mp4", "audio/mp4"),
    "alac": ("mp4", "audio/mp4"),
    "flac": ("mp4", "audio/mp4"),
    "mp3": ("mp3", "audio/mpeg"),
    "opus": ("webm", "audio/webm"),
    "pcm_s16le": ("wav", "audio/wav"),
    "pcm_s24le": ("wav", "audio/wav"),
    "vorbis": ("webm", "audio/webm"),
}


def main() -> None:
    """Answer and end."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints goes elsewhere
    bounded()
    longest, most, *asked = sys.argv[1:]
    try:
        if asked:
            answer.write(part(int(asked[0]), int(asked[1])))
        else:
            answer.write(json.dumps(parts(float(longest), int(most))).encode())
    except Exception:  # noqa: BLE001 - a file that cannot be cut goes whole; the library's words may hold a path
        answer.write(b"" if asked else b"{}")
    answer.flush()


def parts(longest: float, most: int) -> dict[str, Any]:
    """Where the parts begin and end, cut between packets.

    Args:
        longest: Seconds of a part.
        most: Bytes of a part.
    """
    found: list[dict[str, float]] = []
    with _opened() as source:
        stream = source.streams.audio[0]
        unit, kind = float(stream.time_base), _KINDS[stream.codec_context.name][1]
        begin, end, size = None, 0, 0
        first = 0
        for at, packet in _packets(source, stream):
            if begin is None:
                begin = first = at
            after = at + (packet.duration or 0)
            if (after - begin) * unit > longest or size + packet.size > most:
                found.append(_told(begin, at, first, unit))
                begin, size = at, 0
            if len(found) > _MOST_PARTS:
                return {}
            end, size = max(after, at + 1), size + packet.size
        if begin is None:
            return {}
        found.append(_told(begin, end, first, unit))
    return {"kind": kind, "parts": found}


def part(begin: int, end: int) -> bytes:
    """A part as a file of its own.

    Args:
        begin, end: In the stream's unit of time: packets from `begin` on, without those from `end` on.
    """
    made = io.BytesIO()
    library: Any = import_module("av")
    with _opened() as source:
        stream = source.streams.audio[0]
        # The same part has the same bytes each time: by them it is known whether it was heard already.
        steady = {"fflags": "bitexact"}
        with library.open(made, "w", format=_KINDS[stream.codec_context.name][0], options=steady) as target:
            out = target.add_stream_from_template(stream)
            source.seek(begin, stream=stream, backward=True)
            for at, packet in _packets(source, stream):
                if at >= end:
                    break
                if at < begin:
                    continue
                packet.pts = packet.dts = at - begin
                packet.stream = out
                target.mux(packet)
    return made.getvalue()


def _told(begin: int, end: int, first: int, unit: float) -> dict[str, float]:
    return {"start": (begin - first) * unit, "end": (end - first) * unit, "from": begin, "to": end}


def _packets(source: Any, stream: Any) -> Iterator[tuple[int, Any]]:
    """The packets with their times, each later than the one before.

    Raises:
        ValueError: One has no time, or goes back.
    """
    last = None
    for packet in source.demux(stream):
        if not packet.size:  # the end
            continue
        at = packet.pts
        if at is None or (last is not None and at <= last):
            raise ValueError("Times are missing.")
        last = at
        yield at, packet


def _opened() -> Any:
    library: Any = import_module("av")
    return library.open(os.fdopen(os.dup(0), "rb"), "r", metadata_errors="ignore")


def bounded() -> None:
    """Bound processor time and memory, and stand back behind replies, where the system can."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_SECONDS, _PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    os.nice(5)


if __name__ == "__main__":
    main()
