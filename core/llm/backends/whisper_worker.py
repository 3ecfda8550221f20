"""The process in which Whisper turns one recording into text: `python -P whisper_worker.py FOLDER`.

It reads a sound file from standard input. With a second argument, the processor seconds that a long recording may take,
it tells how far it is, a line for each piece: `{"at", "length"}`. Its last line is `{"text", "seconds", "language",
"cues"}`, or `{"error"}` with the name of what went wrong. It imports nothing of Parlour, has bounds on processor time,
and fetches nothing: weights are read from the folder alone.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable

_PROCESSOR_SECONDS = 3600
_MOST_THREADS = 4


def main() -> None:
    """Answer and end."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    logging.disable(logging.CRITICAL)
    long = sys.argv[2:3]
    bounded(int(long[0]) if long else _PROCESSOR_SECONDS)

    def moved(at: float, length: float) -> None:
        if long:
            answer.write(json.dumps({"at": at, "length": length}) + "\n")
            answer.flush()

    try:
        given = sys.stdin.buffer
        found = heard(sys.argv[1], given if given.seekable() else io.BytesIO(given.read()), moved)
    except Exception as error:  # noqa: BLE001 - told to who waits, by its kind alone: its words may hold a path
        found = {"error": type(error).__name__}
    answer.write(json.dumps(found))
    answer.flush()


def heard(folder: str, sound: BinaryIO, moved: Callable[[float, float], None]) -> dict[str, Any]:
    """The text of a sound file, how long it is in seconds, the language that was spoken, and what was said when.

    Args:
        folder: Holds the weights, in CTranslate2's form.
        moved: Told how many seconds are text already, and how many there are.
    """
    library: Any = import_module("faster_whisper")
    threads = max(1, min(os.cpu_count() or 1, _MOST_THREADS))
    model = library.WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True)
    # Without its filter of voices Whisper hears words in silence.
    segments, about = model.transcribe(sound, vad_filter=True, beam_size=5)
    length, cues = float(about.duration), list[tuple[float, float, str]]()
    moved(0.0, length)
    for one in segments:  # each is made when it is asked for
        cues.append((float(one.start), float(one.end), str(one.text)))
        moved(cues[-1][1], length)
    text = "".join(text for _, _, text in cues)
    return {"text": text.strip(), "seconds": length, "language": str(about.language), "cues": cues}


def bounded(seconds: int) -> None:
    """Bound processor time and stand back behind replies, where the system can."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)


if __name__ == "__main__":
    main()
