"""Speech as text on this machine: Whisper, in a process of its own that ends with its work.

A recording comes from a microphone or from a file that somebody made: what reads it holds no key, has bounds on its
time, and takes its memory with it when it is done. Nothing is ever downloaded: weights are a folder that somebody put
there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from core.child_process import environment
from core.errors import ModelMisbehavedError, ModelUnavailableError, SettingsError, need_packages
from core.llm.service import Service
from core.llm.transcription import Heard, Transcriber, cues_of

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from core.llm.ledger import LedgerCall
    from core.llm.transcription import Moved, Recording

PACKAGE: Final = "faster_whisper"
EXAMPLE: Final = "Systran/faster-whisper-base"
"""Weights to begin with: 145 MB, many languages, Chinese among them."""
_WORKER: Final = Path(__file__).with_name("whisper_worker.py")
_NEEDED: Final = ("model.bin", "config.json", "tokenizer.json")
_SECONDS: Final = 60.0
_SECONDS_PER_SECOND: Final = 8.0
_LONGEST: Final = 1024 * 1024  # bytes of an answer
_LONGEST_TIMED: Final = 32 * 1024 * 1024  # of one that may be of many hours
_SILENCE: Final = 900.0  # seconds without any news of a long recording
_LONG: Final = "43200"  # processor seconds of a long recording


class Whisper:
    """What there is of Whisper on this machine; one recording at a time, the others wait.

    Args:
        folder: Holds the weights, or a folder for each of several models, of which the first by name is taken.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._turn = asyncio.Semaphore(1)

    @property
    def is_installed(self) -> bool:
        """Whether the extra is there."""
        return find_spec(PACKAGE) is not None

    @property
    def is_ready(self) -> bool:
        """Whether there are weights, too."""
        try:
            return bool(self.weights())
        except SettingsError:
            return False

    def weights(self) -> Path:
        """The folder of the weights that are used.

        Raises:
            MissingExtraError: The extra `voice` is not installed.
            SettingsError: key `whisper_weights`: there are no weights.
        """
        need_packages("Dictation on this machine", [PACKAGE])
        for place in _places(self.folder):
            if all((place / name).is_file() for name in _NEEDED):
                return place
        hint = f"Put the files of a model there, such as {EXAMPLE}: {', '.join(_NEEDED)} and its vocabulary."
        raise SettingsError(
            f"There are no weights of Whisper in {self.folder}.",
            hint=hint,
            key="whisper_weights",
            folder=str(self.folder),
            model=EXAMPLE,
        )

    async def heard(self, recording: Recording, weights: Path, moved: Moved | None = None) -> Heard:
        """The text of a recording.

        Args:
            weights: What `weights` found.
            moved: Told how far it is. Where it is given, the recording may have any length.

        Raises:
            ModelUnavailableError: key `whisper_slow`: it took too long.
            ModelMisbehavedError: key `whisper_failed`: the weights or the recording cannot be read.
        """
        async with self._turn:
            said = await _answer(recording, weights, moved)
        text, seconds = said.get("text"), said.get("seconds")
        if not isinstance(text, str):
            raise _failed(str(said.get("error") or ""))
        length = float(seconds) if isinstance(seconds, int | float) else None
        return Heard(text.strip(), seconds=length, cues=cues_of(said.get("cues")))


class LocalTranscriber(Transcriber):
    """Whisper as what turns recordings into text.

    Args:
        whisper: What there is of it.

    Raises:
        MissingExtraError: The extra is not installed.
        SettingsError: key `whisper_weights`: there are no weights.
    """

    def __init__(self, whisper: Whisper) -> None:
        self._whisper = whisper
        self._weights = whisper.weights()
        own = self._weights.name if self._weights != whisper.folder else "whisper"
        self.model, self.label = own, f"{own}, built in"
        self.cfg: dict[str, Any] = {}
        self.service = Service("whisper", "whisper", here=True)

    async def _heard(self, recording: Recording, line: LedgerCall, moved: Moved | None) -> Heard:
        del line  # nothing goes over a wire
        return await self._whisper.heard(recording, self._weights, moved)


def _places(folder: Path) -> list[Path]:
    try:
        return [folder, *sorted(place for place in folder.iterdir() if place.is_dir())]
    except OSError:
        return []


async def _answer(recording: Recording, weights: Path, moved: Moved | None) -> dict[str, Any]:
    given = asyncio.subprocess.PIPE if recording.path is None else recording.path.open("rb")
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(_WORKER), str(weights), *((_LONG,) if moved is not None else ())),
            stdin=given,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_TIMED,
            env=environment() | {"HF_HUB_OFFLINE": "1"},  # nothing is to be fetched
        )
    finally:
        if not isinstance(given, int):
            given.close()
    try:
        if moved is not None:
            return await _followed(process, recording, moved)
        async with asyncio.timeout(_SECONDS + _SECONDS_PER_SECOND * recording.seconds):
            said, _ = await process.communicate(recording.data if recording.path is None else None)
    except TimeoutError:
        hint = "Take a smaller model, or dictate in shorter pieces."
        raise ModelUnavailableError(message="Whisper took too long.", hint=hint, key="whisper_slow") from None
    except (OSError, ValueError) as error:  # the line of an answer without end is a ValueError
        raise _failed(str(error)) from error
    finally:
        await _ended(process)
    return _read(said.splitlines()[-1]) if said and len(said) <= _LONGEST else {}


async def _followed(process: Process, recording: Recording, moved: Moved) -> dict[str, Any]:
    """The answer of a process that tells how far it is, for as long as it does."""
    if process.stdin is not None:
        process.stdin.write(recording.data)
        process.stdin.close()
    said: dict[str, Any] = {}
    async with asyncio.timeout(_SILENCE) as patience:
        while process.stdout is not None and (line := await process.stdout.readline()):
            patience.reschedule(asyncio.get_running_loop().time() + _SILENCE)
            said = _read(line)
            at, length = said.get("at"), said.get("length")
            if isinstance(at, int | float) and isinstance(length, int | float):
                moved(float(at), float(length))
    return said


def _read(line: bytes) -> dict[str, Any]:
    try:
        read: Any = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


async def _ended(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


def _failed(why: str) -> ModelMisbehavedError:
    hint = "Check that the weights are whole, and record again."
    return ModelMisbehavedError(message=f"Whisper failed. {why[:500]}".strip(), hint=hint, key="whisper_failed")
