"""Whisper on this machine: what is missing is told, and the work is done in a process that has nothing of this one.

The package is not among those that tests need; a module of its name and its face stands in for it here.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from core.errors import MissingExtraError, ModelMisbehavedError, ModelUnavailableError, SettingsError
from core.llm.backends import whisper
from core.llm.backends.whisper import LocalTranscriber, Whisper
from core.llm.ledger import LedgerCall, recorded_by
from core.llm.transcription import Cue, Recording

pytestmark = pytest.mark.anyio

SOUND = Recording(b"\x1aE\xdf\xa3 hello", "audio/webm", 2.0)
PACKAGE = """
import os
from types import SimpleNamespace
class WhisperModel:
    def __init__(self, folder, *, device, compute_type, cpu_threads, local_files_only):
        assert local_files_only and os.environ["HF_HUB_OFFLINE"] == "1"
        self.folder = folder
    def transcribe(self, sound, *, vad_filter, beam_size):
        data = sound.read()
        if b"broken" in data:
            raise ValueError("no sound at " + self.folder)
        if b"endless" in data:
            while True: pass
        if b"environment" in data:
            said = SimpleNamespace(start=0.0, end=1.0, text=" ".join(sorted(os.environ)))
            return [said], SimpleNamespace(duration=1.0, language="en")
        print("what a library prints is no answer")
        words = [
            SimpleNamespace(start=0.0, end=1.5, text=" Hello"),
            SimpleNamespace(start=1.5, end=2.5, text=" 世界."),
        ]
        return words, SimpleNamespace(duration=2.5, language="en")
"""


class Account:
    """Collects lines."""

    def __init__(self) -> None:
        self.calls: list[LedgerCall] = []

    def began(self, call: LedgerCall, spoke: object) -> None:
        return

    def reads(self, call: LedgerCall, so_far: object) -> None:
        return

    def ended(self, call: LedgerCall) -> None:
        self.calls.append(call)


def with_weights(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (folder / name).write_bytes(b"{}")
    return folder


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str) -> Whisper:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "faster_whisper.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    return Whisper(tmp_path / "weights")


async def test_without_the_extra_the_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    monkeypatch.setattr("core.errors.find_spec", lambda name: None)
    found = Whisper(with_weights(tmp_path / "weights"))
    with pytest.raises(MissingExtraError, match=r"needs the extra 'voice'.*\[voice\]"):
        found.weights()
    assert not found.is_ready


async def test_without_weights_it_is_told_what_to_put_where(installed: Whisper) -> None:
    with pytest.raises(SettingsError) as raised:
        LocalTranscriber(installed)
    assert raised.value.words_key == "whisper_weights"
    assert raised.value.details["folder"] == str(installed.folder)
    (with_weights(installed.folder / "half") / "model.bin").unlink()
    assert not installed.is_ready


async def test_weights_lie_in_the_folder_or_in_one_of_their_name(installed: Whisper) -> None:
    with_weights(installed.folder / "small")
    with_weights(installed.folder / "base")
    assert LocalTranscriber(installed).label == "base, built in"
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (installed.folder / name).write_bytes(b"{}")
    assert LocalTranscriber(installed).label == "whisper, built in"


async def test_a_recording_becomes_text_in_a_process_and_has_its_line(installed: Whisper) -> None:
    with_weights(installed.folder / "base")
    account = Account()
    with recorded_by(account):
        assert await LocalTranscriber(installed).transcribe(SOUND) == "Hello 世界."
    (line,) = account.calls
    assert (line.given.purpose, line.here, line.outcome, line.wire.exchanges) == ("transcription", True, "finished", [])
    assert line.usage is not None
    assert (line.usage.cost, line.usage.estimated) == (0.0, False)


async def test_the_process_has_no_key_of_this_one(installed: Whisper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    weights = with_weights(installed.folder / "base")
    heard = await installed.heard(Recording(b"OggS environment", "audio/ogg", 1.0), weights)
    assert "OPENAI_API_KEY" in os.environ
    assert "HF_HUB_OFFLINE" in heard.text
    assert "OPENAI" not in heard.text
    assert "HOME" not in heard.text.split()


async def test_what_cannot_be_read_is_told_without_a_path(installed: Whisper) -> None:
    weights = with_weights(installed.folder / "base")
    with pytest.raises(ModelMisbehavedError) as raised:
        await installed.heard(Recording(b"OggS broken", "audio/ogg", 1.0), weights)
    assert raised.value.words_key == "whisper_failed"
    assert str(weights) not in str(raised.value)


async def test_what_takes_too_long_is_ended_with_its_process(
    installed: Whisper, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = with_weights(installed.folder / "base")
    monkeypatch.setattr(whisper, "_SECONDS", 1.0)
    monkeypatch.setattr(whisper, "_SECONDS_PER_SECOND", 0.0)
    with pytest.raises(ModelUnavailableError) as raised:
        await installed.heard(Recording(b"OggS endless", "audio/ogg", 1.0), weights)
    assert raised.value.words_key == "whisper_slow"


async def test_one_that_nobody_waits_for_any_more_lets_the_next_one_begin(installed: Whisper) -> None:
    weights = with_weights(installed.folder / "base")
    first = asyncio.create_task(installed.heard(Recording(b"OggS endless", "audio/ogg", 1.0), weights))
    second = asyncio.create_task(installed.heard(SOUND, weights))
    while first.done() or not asyncio.all_tasks() >= {first, second}:
        await asyncio.sleep(0)
    first.cancel()
    assert (await second).text == "Hello 世界."


async def test_a_long_recording_is_told_how_far_it_is_and_when_what_is_said(installed: Whisper, tmp_path: Path) -> None:
    with_weights(installed.folder / "base")
    (tmp_path / "talk.ogg").write_bytes(b"OggS")
    told: list[tuple[float, float]] = []
    recording = Recording(b"", "audio/ogg", 0.0, tmp_path / "talk.ogg")
    cues = await LocalTranscriber(installed).transcribe_timed(recording, lambda at, length: told.append((at, length)))
    assert cues == (Cue(0.0, 1.5, "Hello"), Cue(1.5, 2.5, "世界."))
    assert told == [(0.0, 2.5), (1.5, 2.5), (2.5, 2.5)]


async def test_a_long_recording_of_which_there_is_no_news_is_given_up(
    installed: Whisper, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = with_weights(installed.folder / "base")
    monkeypatch.setattr(whisper, "_SILENCE", 1.0)
    with pytest.raises(ModelUnavailableError) as raised:
        await installed.heard(Recording(b"OggS endless", "audio/ogg", 0.0), weights, lambda at, length: None)
    assert raised.value.words_key == "whisper_slow"
