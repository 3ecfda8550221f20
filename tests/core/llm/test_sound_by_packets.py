"""Sounds other than MP3 and WAV are cut into parts too, and of a video its sound alone goes to a service."""

from __future__ import annotations

import io
import math
from array import array
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import pytest

from core.errors import UnsupportedFormatError
from core.llm import sound_parts
from core.llm.backends.openai.transcription import ServiceTranscriber
from core.llm.sound_parts import parts_of
from core.llm.transcription import recording_in
from tests.transcription_server import TranscriptionServer

pytestmark = pytest.mark.anyio
SECONDS = 3
RATE = 16_000
FORMS = [
    ("audio/mp4", "ipod", "aac", "audio/mp4"),
    ("audio/webm", "webm", "libopus", "audio/webm"),
    ("audio/ogg", "ogg", "libopus", "audio/webm"),
    ("audio/flac", "flac", "flac", "audio/mp4"),
    ("video/mp4", "mp4", "aac", "audio/mp4"),
]


def sound(path: Path, container: str, codec: str, *, pictures: bool = False) -> Path:
    """A tone of some seconds; with `pictures` a black video too."""
    target: Any
    with av.open(str(path), "w", format=container) as target:
        stream = target.add_stream(codec, rate=RATE, layout="mono")
        video = target.add_stream("mpeg4", rate=1) if pictures else None
        if video is not None:
            video.width = video.height = 16
            video.pix_fmt = "yuv420p"
        to_codec = av.AudioResampler(format=stream.codec_context.format.name, layout="mono", rate=RATE)
        for second in range(SECONDS):
            frame = av.AudioFrame(format="s16", layout="mono", samples=RATE)
            tone = (round(8000 * math.sin(at * (second + 1) / 10)) for at in range(RATE))
            frame.planes[0].update(array("h", tone).tobytes())
            frame.sample_rate, frame.pts, frame.time_base = RATE, second * RATE, Fraction(1, RATE)
            for one in to_codec.resample(frame):
                target.mux(stream.encode(one))
            if video is not None:
                target.mux(video.encode(av.VideoFrame(16, 16, "yuv420p")))
        target.mux(stream.encode(None))
        if video is not None:
            target.mux(video.encode(None))
    return path


def length_of(data: bytes) -> float:
    """The seconds of sound in a file, decoded."""
    source: Any
    with av.open(io.BytesIO(data)) as source:
        assert not source.streams.video
        return sum(frame.samples / frame.sample_rate for frame in source.decode(source.streams.audio[0]))


@pytest.mark.parametrize(("kind", "container", "codec", "of_part"), FORMS)
def test_it_is_cut_into_files_that_can_be_heard_and_nothing_is_lost(
    tmp_path: Path, kind: str, container: str, codec: str, of_part: str
) -> None:
    path = sound(tmp_path / "sound", container, codec, pictures=kind.startswith("video"))
    parts = parts_of(path, kind, 2.0)
    assert [one.media_type for one in parts] == [of_part] * 2
    assert parts[0].start == 0
    assert parts[-1].end == pytest.approx(SECONDS, abs=0.15)
    assert all(one.end == other.start for one, other in pairwise(parts))
    assert all(length_of(one.read()) == pytest.approx(one.end - one.start, abs=0.05) for one in parts)


def test_the_same_part_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    """By its bytes it is known whether a part was heard, and paid, already."""
    (part,) = parts_of(sound(tmp_path / "sound", "webm", "libopus"), "audio/webm")
    assert part.read() == part.read() != b""


async def test_of_a_video_its_sound_alone_is_sent(tmp_path: Path) -> None:
    path = sound(tmp_path / "video", "mp4", "aac", pictures=True)
    with TranscriptionServer() as server:
        server.answer = {"text": "word", "segments": [{"start": 1.0, "end": 2.0, "text": "word"}]}
        transcriber = ServiceTranscriber(server.base_url, server.key, "whisper-1")
        cues = await transcriber.transcribe_timed(recording_in(b"", "video/mp4", path), lambda heard, length: None)
    assert [cue.text for cue in cues] == ["word"]
    (sent,) = server.sent
    assert length_of(sent.sound) == pytest.approx(SECONDS, abs=0.15)


async def test_a_file_that_goes_while_it_is_heard_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sound(tmp_path / "video", "mp4", "aac", pictures=True)
    whole = parts_of(path, "video/mp4")
    path.write_bytes(b"something else")
    monkeypatch.setattr("core.llm.backends.openai.transcription.parts_of", lambda *_: whole)
    with TranscriptionServer() as server, pytest.raises(UnsupportedFormatError, match="no recording that can be read"):
        transcriber = ServiceTranscriber(server.base_url, server.key, "whisper-1")
        await transcriber.transcribe_timed(recording_in(b"", "video/mp4", path), lambda heard, length: None)
    assert not server.sent


def test_without_the_extra_it_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_parts, "find_spec", lambda name: None)
    assert parts_of(sound(tmp_path / "sound", "ipod", "aac"), "audio/mp4") == []
