"""A recording of hours goes to a service in parts: nothing of it is lost, and it is told how far it is."""

from __future__ import annotations

import io
import wave
from itertools import pairwise
from pathlib import Path

import pytest

from core.errors import ParlourError
from core.llm.backends.openai.transcription import ServiceTranscriber
from core.llm.heard_parts import HeardParts, mark_of
from core.llm.ledger import LedgerCall, recorded_by
from core.llm.sound_parts import parts_of
from core.llm.transcription import Heard, recording_in
from tests.transcription_server import TranscriptionServer

pytestmark = pytest.mark.anyio
FRAME = b"\xff\xf3\x18\xc4" + bytes(32)  # of MPEG 2, layer III: 8 kbit/s, 16 kHz
LASTS = 576 / 16000


def hours_of(path: Path, hours: float, before: bytes = b"") -> Path:
    """An MP3 in which nothing is said; each frame has its number."""
    frames = round(hours * 3600 / LASTS)
    with path.open("wb") as file:
        file.write(before)
        for at in range(frames):
            file.write(FRAME[:4] + at.to_bytes(4, "big") + FRAME[8:])
    return path


def test_four_hours_are_cut_between_frames_and_nothing_is_lost(tmp_path: Path) -> None:
    cover = b"ID3\x04\x00\x00\x00\x00\x08\x00" + b"\xff\xf3\x18\xc4" * 256  # a picture may look like frames
    path = hours_of(tmp_path / "long.mp3", 4, cover)
    parts = parts_of(path, "audio/mpeg")
    assert len(parts) == 25
    assert parts[0].start == 0
    assert parts[-1].end == pytest.approx(4 * 3600, abs=0.1)
    assert all(one.end == other.start and one.end - one.start <= 600 for one, other in pairwise(parts))
    assert b"".join(one.read() for one in parts) == path.read_bytes()[len(cover) :]


def test_samples_are_cut_into_files_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(1000)
        sound.writeframes(bytes(at % 251 for at in range(2_500)))
    parts = parts_of(path, "audio/wav", 1.0)
    assert [(one.start, one.end) for one in parts] == [(0, 1), (1, 2), (2, 2.5)]
    heard = b""
    for one in parts:
        with wave.open(io.BytesIO(one.read())) as sound:
            heard += sound.readframes(10_000)
    assert heard == bytes(at % 251 for at in range(2_500))


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\xff\xfb", b"ID3\x04\x00\x00\x7f\x7f\x7f\x7f", b"RIFF", b"\xff" * 300_000]
)
@pytest.mark.parametrize("kind", ["audio/mpeg", "audio/wav", "audio/ogg"])
def test_what_is_no_such_sound_is_not_cut(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "odd"
    path.write_bytes(data)
    assert parts_of(path, kind) == []


async def test_a_recording_of_four_hours_is_heard_part_by_part(tmp_path: Path) -> None:
    path = hours_of(tmp_path / "long.mp3", 4)
    told: list[tuple[float, float]] = []
    with TranscriptionServer() as server:
        server.answer = {"text": "word", "segments": [{"start": 1.0, "end": 2.0, "text": "word"}]}
        transcriber = ServiceTranscriber(server.base_url, server.key, "whisper-1")
        recording = recording_in(b"", "audio/mpeg", path)
        cues = await transcriber.transcribe_timed(recording, lambda heard, length: told.append((heard, length)))
    assert len(server.sent) == len(cues) == 24 + 1
    assert b"".join(one.sound for one in server.sent) == path.read_bytes()
    assert max(len(one.sound) for one in server.sent) < 25 * 1024 * 1024
    assert [round(cue.start) for cue in cues][:3] == [1, 601, 1201]
    assert told[0][0] == 0
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == pytest.approx(4 * 3600, abs=0.1)


async def test_a_service_that_fails_in_the_middle_is_asked_no_further(tmp_path: Path) -> None:
    path = hours_of(tmp_path / "long.mp3", 1)
    with TranscriptionServer() as server:
        transcriber = ServiceTranscriber(server.base_url, server.key, "whisper-1")

        def moved(heard: float, length: float) -> None:
            server.status = 500 if heard > 1000 else 200

        with pytest.raises(ParlourError):
            await transcriber.transcribe_timed(recording_in(b"", "audio/mpeg", path), moved)
    assert len(server.sent) == 3


async def test_what_was_heard_before_a_failure_is_accounted_for_and_not_paid_twice(tmp_path: Path) -> None:
    path = hours_of(tmp_path / "long.mp3", 0.5)
    lines: list[LedgerCall] = []

    class Account:
        def began(self, call: LedgerCall, spoke: object) -> None: ...

        def reads(self, call: LedgerCall, so_far: object) -> None: ...

        def ended(self, call: LedgerCall) -> None:
            lines.append(call)

    with TranscriptionServer() as server, recorded_by(Account()):
        server.answer = {"text": "word", "usage": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}}
        recording = recording_in(b"", "audio/mpeg", path)

        def moved(heard: float, length: float) -> None:
            server.status = 500 if len(server.sent) == 2 else 200

        with pytest.raises(ParlourError):
            await ServiceTranscriber(server.base_url, server.key, "whisper-1").transcribe_timed(recording, moved)
        server.status = 200
        parts = len(parts_of(path, "audio/mpeg"))
        cues = await ServiceTranscriber(server.base_url, server.key, "whisper-1").transcribe_timed(recording, ignored)
        assert [cue.text for cue in cues] == ["word"] * parts
        assert len(server.sent) == parts + 1  # the one that failed was sent again
        assert [(one.outcome, one.usage and one.usage.prompt_tokens) for one in lines] == [
            ("failed", 14),
            ("finished", 7 * (parts - 2)),
        ]
        # A recording that came to its end is sent whole again.
        await ServiceTranscriber(server.base_url, server.key, "whisper-1").transcribe_timed(recording, ignored)
        assert len(server.sent) == 2 * parts + 1
        server.sent.clear()


def ignored(heard: float, length: float) -> None: ...


def test_parts_that_were_heard_are_kept_within_a_bound_and_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = HeardParts()
    now = [0.0]
    monkeypatch.setattr("core.llm.heard_parts.time.monotonic", lambda: now[0])
    marks = [mark_of(("https://a.example/v1", "key", "m"), bytes([at])) for at in range(5)]
    assert mark_of(("https://a.example/v1", "other", "m"), b"\0") != marks[0]
    for mark in marks:
        kept.put(mark, Heard("x" * 1_000_000))
    assert [kept.get(mark) is not None for mark in marks] == [False, False, True, True, True]
    now[0] = 3601.0
    assert [kept.get(mark) for mark in marks] == [None] * 5
