"""Transcripts with times (WebVTT, SRT): what was said, each line with the second at which it begins."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

from core.rag.document import About, Block
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean, ending
from core.rag.parsers.text import decode, looks_like_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

VTT, SRT = "text/vtt", "application/x-subrip"
_AT = r"(?:\d{1,4}:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = re.compile(rf"^[ \t]*({_AT})[ \t]+-->[ \t]+{_AT}")
_TAG = re.compile(r"<[^<>\n]{0,200}>")
_LETTERS = 480  # of a paragraph, about


class TranscriptParser:
    """Reads subtitles, and the transcripts that Parlour makes of recordings."""

    def accepts(self, name: str, head: bytes) -> str:
        """WebVTT begins with its name; SRT is known by its ending and its first times."""
        start = head.removeprefix(b"\xef\xbb\xbf")
        if start.startswith(b"WEBVTT") and start[6:7] in {b"", b"\n", b"\r", b" ", b"\t"}:
            return VTT
        return SRT if ending(name) == ".srt" and b" --> " in head and looks_like_text(head) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Paragraphs of lines, each of which begins with its time (`0:01:05 …`)."""
        yield About()
        lines: list[str] = []
        for line in _spoken(clean(decode(path.read_bytes())).split("\n")):
            if lines and sum(map(len, lines)) + len(line) > _LETTERS:
                yield Block("paragraph", "\n".join(lines))
                lines = []
            lines.append(line)
        if lines:
            yield Block("paragraph", "\n".join(lines))


def _spoken(lines: Sequence[str]) -> Iterator[str]:
    """The line of each cue: its time, and what is said in it; notes and styles are of no interest."""
    time, words = "", list[str]()
    for line in [*lines, ""]:
        if found := _TIMES.match(line):
            time, words = told_time(_seconds(found[1])), []
        elif line.strip() and time:
            words.append(unescape(_TAG.sub("", line)).strip())
        elif time:
            if said := " ".join(word for word in words if word):
                yield f"{time} {' '.join(said.split())}"
            time = ""


def _seconds(stamp: str) -> float:
    parts = stamp.replace(",", ".").split(":")
    return sum(float(part) * 60**at for at, part in enumerate(reversed(parts)))


def told_time(seconds: float) -> str:
    """A time as transcripts have it: `0:01:05`."""
    whole = max(0, int(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
