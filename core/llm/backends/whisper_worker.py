"""The process in which Whisper turns one recording into text: `python -P whisper_worker.py FOLDER`.

It reads a sound file from standard input and answers with one JSON object: `{"text", "seconds", "language"}`, or
`{"error"}` with the name of what went wrong. It imports nothing of Parlour, has bounds on processor time, and fetches
nothing: weights are read from the folder alone.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from importlib import import_module
from typing import Any

_PROCESSOR_SECONDS = 3600
_MOST_THREADS = 4


def main() -> None:
    """Answer and end."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    logging.disable(logging.CRITICAL)
    bounded()
    try:
        found = heard(sys.argv[1], sys.stdin.buffer.read())
    except Exception as error:  # noqa: BLE001 - told to who waits, by its kind alone: its words may hold a path
        found = {"error": type(error).__name__}
    answer.write(json.dumps(found))
    answer.flush()


def heard(folder: str, sound: bytes) -> dict[str, Any]:
    """The text of a sound file, how long it is in seconds, and the language that was spoken.

    Args:
        folder: Holds the weights, in CTranslate2's form.
    """
    library: Any = import_module("faster_whisper")
    threads = max(1, min(os.cpu_count() or 1, _MOST_THREADS))
    model = library.WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True)
    # Without its filter of voices Whisper hears words in silence.
    segments, about = model.transcribe(io.BytesIO(sound), vad_filter=True, beam_size=5)
    text = "".join(one.text for one in segments)
    return {"text": text.strip(), "seconds": float(about.duration), "language": str(about.language)}


def bounded() -> None:
    """Bound processor time and stand back behind replies, where the system can."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_SECONDS, _PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)


if __name__ == "__main__":
    main()
