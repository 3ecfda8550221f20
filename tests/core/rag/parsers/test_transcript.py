"""Transcripts with times: WebVTT and SRT, and those that Parlour writes itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.transcription import Cue, cues_of, webvtt
from core.rag.document import Block, seconds_in
from core.rag.parsers.catalog import parser_for
from core.rag.parsers.transcript import TranscriptParser, told_time

VTT = """WEBVTT - a talk

NOTE nobody reads this

intro
00:00:01.000 --> 00:00:04.000 align:start
<v Anna>Welcome to
the <i>house</i> &amp; garden.

01:05.400 --> 01:10.000
The deductible is 150 euros.
"""
SRT = "1\n00:00:01,000 --> 00:00:04,000\nWelcome.\n\n2\n01:00:00,500 --> 01:00:02,000\nGoodbye.\n"


def text_in(path: Path, name: str, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return "\n".join(one.text for one in TranscriptParser().parse(path, name) if isinstance(one, Block))


def test_each_line_begins_with_the_time_at_which_it_is_said(tmp_path: Path) -> None:
    said = text_in(tmp_path / "a.vtt", "a.vtt", VTT)
    assert said == "0:00:01 Welcome to the house & garden.\n0:01:05 The deductible is 150 euros."
    assert seconds_in(said) == (1, 65)
    assert seconds_in(said, said.index("150")) == (1, 65)
    assert seconds_in(said, 3) == (1, 1)
    assert seconds_in("No time at all, or 0:00:01 within.") is None


def test_subtitles_of_films_are_read_alike(tmp_path: Path) -> None:
    assert text_in(tmp_path / "a.srt", "a.srt", SRT) == "0:00:01 Welcome.\n1:00:00 Goodbye."


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.vtt", VTT, ("transcript", "text/vtt")),
        ("talk.mp3", VTT, ("transcript", "text/vtt")),
        ("a.srt", SRT, ("transcript", "application/x-subrip")),
        ("a.txt", "WEBVTTs are files.", ("plain", "text/plain")),
        ("a.srt", "Nothing but words.", ("plain", "text/plain")),
    ],
)
def test_a_transcript_is_known_by_what_is_in_it(name: str, text: str, kind: tuple[str, str]) -> None:
    assert parser_for(name, text.encode()) == kind


@given(st.lists(st.tuples(st.integers(0, 50_000), st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))))
def test_what_was_heard_is_read_back_with_its_seconds(
    tmp_path_factory: pytest.TempPathFactory, heard: list[tuple[int, str]]
) -> None:
    cues = [Cue(float(start), start + 1.0, text) for start, text in heard]
    path = tmp_path_factory.mktemp("said") / "a.vtt"
    said = text_in(path, "a.mp3", webvtt(cues))
    times = [line.split(" ")[0] for line in said.split("\n") if line]
    assert times == [told_time(start) for start, _ in heard]


def test_of_what_a_service_tells_only_what_makes_sense_is_taken() -> None:
    told = [{"start": 1, "end": 2.5, "text": " a "}, {"start": "1", "end": 2, "text": "b"}, 7, [3, 4, "c"], [5, 6, " "]]
    assert cues_of(told) == (Cue(1.0, 2.5, "a"), Cue(3.0, 4.0, "c"))
    assert cues_of("x") == ()


@pytest.mark.parametrize("end", ["1e999", "NaN", "-1", "1" + "0" * 400, "-1e999"])
def test_a_time_at_which_nothing_can_end_is_that_of_the_beginning(end: str) -> None:
    (cue,) = cues_of(json.loads(f'[{{"start": 2, "end": {end}, "text": "a"}}]'))
    assert (cue.start, cue.end) == (2.0, 2.0)
    assert "00:00:02.000 --> 00:00:02.000" in webvtt([cue])
