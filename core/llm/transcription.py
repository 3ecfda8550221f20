"""Speech as text: a recording, what turns it into text, and the line that each such call has in an account."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from secrets import token_hex
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.errors import ParlourError, UnsupportedFormatError
from core.llm.ledger import LedgerCall, ledger_now
from core.llm.request import ChatRequest
from core.llm.usage import cost_of_sound
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, Message, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from core.languages import Lang
    from core.llm.service import Service
    from core.messages.events import Event

LONGEST_SECONDS: Final = 300
"""Of one recording: five minutes."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Of one recording. Five minutes of speech take one or two, as browsers record them; some take no wish about it."""

_ENDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "audio/webm": "webm",
        "audio/ogg": "ogg",
        "audio/mp4": "m4a",
        "audio/mpeg": "mp3",
        "audio/wav": "wav",
        "audio/flac": "flac",
        "video/mp4": "mp4",
        "video/webm": "webm",
    }
)
_BOXES: Final = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free"})
_BEGINNINGS: Final = (
    (0, b"\x1aE\xdf\xa3", "audio/webm"),
    (0, b"OggS", "audio/ogg"),
    (4, b"ftyp", "audio/mp4"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/wav"),
)


@dataclass(frozen=True, slots=True)
class Recording:
    """Speech as it was recorded.

    Args:
        data: The bytes of a sound file.
        media_type: One of those that `recording_of` knows.
        seconds: How long it is, as whoever recorded it says; 0 where nobody does.
        path: The file, where it is one; `data` may be empty then, and is read from it.
    """

    data: bytes = field(repr=False)
    media_type: str
    seconds: float
    path: Path | None = None

    @property
    def name(self) -> str:
        """A name for it as a file, with the ending by which services know its kind."""
        return f"recording.{_ENDINGS[self.media_type]}"


def recording_of(data: bytes, seconds: float) -> Recording:
    """A recording, checked; its first bytes say of which kind it is.

    Raises:
        UnsupportedFormatError: key `recording_unknown`: it is no sound that services take.
        ParlourError: key `recording_empty` or `recording_too_long`.
    """
    if not data:
        hint = "Check that the microphone is on, and record again."
        raise ParlourError("The recording is empty.", hint=hint, key="recording_empty")
    if len(data) > MOST_BYTES or seconds > LONGEST_SECONDS + 10:  # browsers stop some moments late
        raise too_long()
    kind = next((kind for at, begin, kind in _BEGINNINGS if data.startswith(begin, at)), "")
    if not kind:
        hint = "Record again, or try another browser."
        raise UnsupportedFormatError("This is no recording that can be read.", hint=hint, key="recording_unknown")
    return Recording(data, kind, max(seconds, 0.0))


def kind_of_file(head: bytes, *, is_video: bool = False) -> str:
    """The media type of a sound or video file, by its first bytes; "" for one that cannot be turned into text.

    Args:
        is_video: Whether it is one, where both look alike. The container of QuickTime (MOV) is that of MP4.
    """
    if head[4:8] in _BOXES and head[:1] == b"\0":
        return "video/mp4" if is_video and not head.startswith(b"M4A", 8) else "audio/mp4"
    kind = next((kind for at, begin, kind in _BEGINNINGS if head.startswith(begin, at)), "")
    return "video/webm" if is_video and kind == "audio/webm" else kind


def too_long() -> ParlourError:
    """The error for a recording that is too long."""
    hint = "Dictate in shorter pieces."
    return ParlourError(
        "The recording is too long.", hint=hint, key="recording_too_long", minutes=LONGEST_SECONDS // 60
    )


def recording_in(data: bytes, media_type: str, path: Path | None = None) -> Recording:
    """A recording that somebody has as a file: of any length, and of a video its sound.

    Args:
        data: Its bytes, or none of them where it is read from `path`.
        media_type: Of the file, such as `video/mp4`.

    Raises:
        UnsupportedFormatError: key `recording_unknown`: it is no sound that can be turned into text.
    """
    kind = media_type if media_type in _ENDINGS else ""
    if not kind:
        raise unreadable()
    return Recording(data, kind, 0.0, path)


def unreadable() -> UnsupportedFormatError:
    """The error for a file that is no sound that can be turned into text."""
    hint = "Save it as MP3, M4A, WAV, OGG, FLAC, WebM or MP4."
    return UnsupportedFormatError("This is no recording that can be read.", hint=hint, key="recording_unknown")


@dataclass(frozen=True, slots=True)
class Cue:
    """Something that was said, with the seconds at which it begins and ends."""

    start: float
    end: float
    text: str


def cues_of(given: object) -> tuple[Cue, ...]:
    """What was said when, as `[[start, end, text], …]` or a service's `[{"start", "end", "text"}, …]` tells it.

    Whatever is something else there is left out.
    """
    found: list[Cue] = []
    for one in cast("list[object]", given) if isinstance(given, list) else ():
        match one:
            case [int() | float() as start, int() | float() as end, str() as text] | {
                "start": int() | float() as start,
                "end": int() | float() as end,
                "text": str() as text,
            } if 0 <= start < 1e6 and text.strip():
                found.append(Cue(float(start), float(end if start <= end < 1e6 else start), text.strip()))
            case _:
                pass
    return tuple(found)


def webvtt(cues: Sequence[Cue]) -> str:
    """What was said as WebVTT, a form that players and Parlour read."""
    parts = ["WEBVTT"]
    for cue in cues:
        said = " ".join(cue.text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("-->", "→")
        if said:
            parts.append(f"{_stamp(cue.start)} --> {_stamp(max(cue.start, cue.end))}\n{said}")
    return "\n\n".join(parts) + "\n"


def _stamp(seconds: float) -> str:
    thousandths = max(0, round(seconds * 1000))
    whole = thousandths // 1000
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{thousandths % 1000:03}"


Moved: TypeAlias = "Callable[[float, float], None]"
"""Told how many seconds of a recording are text already, and how many it has (0 where that is not known)."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What was made of a recording.

    Args:
        usage: The tokens that the service counted, where it counts those.
        seconds: How long the recording is, where the service says; of one in parts, how much of it was sent now.
        cues: What was said when, where that is known.
    """

    text: str
    usage: Usage | None = None
    seconds: float | None = None
    cues: tuple[Cue, ...] = ()


class Transcriber(ABC):
    """Turns recordings into text. Whoever keeps an account (`core.llm.ledger`) is told of each.

    Attributes:
        model: The model's name.
        label: The model with its place, as an account calls it.
        cfg: Its settings, in which a key may stand that an account leaves out.
        service: Where it is.
    """

    model: str
    label: str
    cfg: dict[str, Any]
    service: Service

    async def transcribe(self, recording: Recording, lang: Lang = "en") -> str:
        """The text of a recording.

        Args:
            lang: The language of the page; which one is spoken, the model finds out.

        Raises:
            ParlourError: It does not work; the key is `recording_silent` where nothing was said.
        """
        return (await self._told(recording, None, lang)).text

    async def transcribe_timed(self, recording: Recording, moved: Moved, lang: Lang = "en") -> tuple[Cue, ...]:
        """What is said in a recording of any length, and when; without times it is one cue from its beginning on.

        Args:
            moved: Told how far it is, where that is known.

        Raises:
            ParlourError: It does not work; the key is `recording_silent` where nothing was said.
        """
        heard = await self._told(recording, moved, lang)
        return heard.cues or (Cue(0.0, heard.seconds or 0.0, heard.text),)

    async def _told(self, recording: Recording, moved: Moved | None, lang: Lang) -> Heard:
        said = f"{recording.name}: {recording.seconds:.1f} s, {len(recording.data):,} bytes of {recording.media_type}"
        given = ChatRequest((Message(USER, said),), lang=lang, purpose="transcription")
        line = LedgerCall(token_hex(8), self, self.service.here, given)
        ledger, began = ledger_now(), time.perf_counter()
        if ledger is not None:
            ledger.began(line, lambda: False)
        try:
            heard = await self._heard(recording, line, moved)
            line.usage = await self._usage(heard, recording)
            line.events = _events(heard.text, line.usage)
            if not self.service.address:
                line.sent, line.raw = given, line.events
            line.outcome = "finished"
        except Exception as error:
            line.outcome, line.error = "failed", error
            raise
        finally:
            line.seconds = time.perf_counter() - began
            if ledger is not None:
                ledger.ended(line)
        if not heard.text:
            hint = "Speak a little louder, or choose another microphone."
            raise ParlourError("Nothing was heard in the recording.", hint=hint, key="recording_silent")
        return heard

    def count_tokens(self, text: str) -> int:
        """None: speech is not counted in tokens here."""
        del text
        return 0

    async def _usage(self, heard: Heard, recording: Recording) -> Usage:
        counted = heard.usage or Usage(estimated=heard.seconds is None and not self.service.here)
        seconds = recording.seconds if heard.seconds is None else heard.seconds
        cost = await cost_of_sound(seconds, heard.usage, self.model, self.service)
        return counted.model_copy(update={"cost": 0.0 if self.service.here else cost})

    @abstractmethod
    async def _heard(self, recording: Recording, line: LedgerCall, moved: Moved | None) -> Heard:
        """The text, and what the service says of the call.

        Args:
            line: Its `wire` takes down what goes to a service and comes back.
            moved: Told how far it is; where it is given, times are wanted, too.
        """


def _events(text: str, usage: Usage) -> list[Event]:
    said: list[Event] = [TextDelta(text)] if text else []
    return [MessageStarted(), *said, MessageFinished("stop", usage)]
