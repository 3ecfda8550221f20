"""Splits a growing reply into text, thought and calls, wherever chunks were cut: one scanner for every format."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from core.llm.calling.tags import THINK, Guard, Marks, Tags, marks_of

_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^\n]*)\Z")

_TICKS = re.compile("`+")
_FEWEST = 3  # characters of a fence


@dataclass(slots=True)
class Quotation:
    """Tracks code fences and inline code in growing Markdown; text is parsed only when asked about."""

    _new: list[str] = field(default_factory=list[str])  # not parsed yet
    _line: list[str] = field(default_factory=list[str])  # the last line so far
    _lead: str = ""  # its first characters after white space
    _runs: int = 0  # of backticks in it
    _in_run: bool = False  # whether it ends with one
    _fence: str = ""

    def add(self, text: str) -> None:
        """Append text."""
        self._new.append(text)

    def new_line(self) -> None:
        """Start a new line, after something that is not text."""
        self._new.append("\n")

    def holds(self) -> bool:
        """Whether the next character is inside code."""
        self._catch_up()
        return bool(self._fence) or self._runs % 2 == 1 or self._lead in {"```", "~~~"}

    def at_line_start(self) -> bool:
        """Whether only white space precedes on the current line."""
        self._catch_up()
        return not self._lead

    def _catch_up(self) -> None:
        text, self._new = "".join(self._new), []
        first, *others = text.split("\n")
        self._go_on(first)
        for each in others:
            self._read("".join(self._line))
            self._line, self._lead, self._runs, self._in_run = [], "", 0, False
            self._go_on(each)

    def _go_on(self, part: str) -> None:
        """Append to the current line."""
        if not part:
            return
        self._line.append(part)
        self._runs += len(_TICKS.findall(part)) - (self._in_run and part[0] == "`")
        self._in_run = part[-1] == "`"
        if len(self._lead) < _FEWEST:
            self._lead = (self._lead + part if self._lead else part.lstrip())[:_FEWEST]

    def _read(self, line: str) -> None:
        found = _FENCE.match(line)
        if found is None:
            return
        marks, said = found.groups()
        if not self._fence:
            self._fence = "" if marks[0] in said else marks
        elif marks.startswith(self._fence) and not said.strip():
            self._fence = ""


Mode: TypeAlias = Literal["text", "thought", "call"]
_GUARDED: dict[Guard, dict[str, Guard]] = {
    "json": {'"': "string"},
    "string": {'"': "json"},
    "xml": {"<parameter=": "value"},
    "value": {"</parameter>": "xml"},
}
"""Inside a call: what begins or ends a stretch without tags."""
_SOON = 1_000  # characters of a call of undecided form that are rescanned with each chunk
_MOST_AGAIN = 20  # rescans of a reply after calls with unterminated strings


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the reply; calls are complete, text and thoughts may continue in the next piece."""

    mode: Mode
    text: str
    closed: bool = True
    """Whether the call was closed; an unclosed one is the last piece."""


class TagScanner:
    """An incremental scanner: returns what is certain and holds back what may begin a tag.

    Tags in code fences, inline code and thoughts are literal. The end of a call counts only outside its strings. White
    space around calls and thoughts is dropped.

    Args:
        tags: The format.
        mode: `thought` for a reply that begins inside a thought.
        after_tag: Whether the prompt ended with a tag: white space and a colon at the start belong to it.
    """

    def __init__(self, tags: Tags, mode: Mode = "text", *, after_tag: bool = False) -> None:
        self.tags = tags
        self.mode: Mode = mode
        self._marks: Marks = marks_of(tags)
        self._quotation = Quotation()
        self._held = ""
        self._waiting: list[str] = []  # chunks after that, until there are enough to rescan
        self._enough = 0
        self._space: list[str] = []
        self._body: list[str] = []
        self._guard: Guard = "undecided"
        self._calls = 0
        self._over = False
        self._said = False  # whether there was text since the last tag
        self._tagged = False  # whether there was a tag
        self._fresh = True  # whether a thought has just begun: leading line breaks are dropped
        # What was dropped just before: a colon and white space go with it.
        self._after: Literal["", "mark", "colon"] = "mark" if after_tag else ""

    @property
    def settled(self) -> bool:
        """Whether only text can still come."""
        return self._over_thinking and self.mode == "text" and not self._held and not self._space

    @property
    def _over_thinking(self) -> bool:
        return self.tags.thoughts == "start" and not self.tags.opens and self._said

    def feed(self, text: str) -> list[Piece]:
        """The pieces that more text makes certain."""
        pieces: list[Piece] = []
        if self._over:
            return pieces
        self._waiting.append(text)
        self._enough -= len(text)
        if self._enough <= 0:
            self._read(pieces)
        return pieces

    def close(self, *, cut: bool = False) -> list[Piece]:
        """The remaining pieces.

        Args:
            cut: Whether the reply was cut off: an unterminated call is then not rescanned.
        """
        pieces: list[Piece] = []
        if not self._over:
            self._read(pieces)
        for _ in range(_MOST_AGAIN):
            if self._over or self.mode != "call" or not self._ends_early(pieces, cut=cut):
                break
        if self._over:
            return pieces
        held, self._held = self._held, ""
        if self.mode == "call":
            if self._guard not in {"string", "value"} and self._marks.is_half_a_tag(held):
                held = ""
            body = "".join(self._body) + held
            self._begin("text")
            pieces.append(Piece("call", body, closed=False))
        elif self.mode == "thought":
            self._think(pieces, "" if self._marks.is_half_a_tag(held) else held)
        else:
            if self._is_half_a_tag(held):
                return pieces
            self._say(pieces, held)
            if self._said or not self._tagged:
                _add(pieces, "text", "".join(self._space))
            self._space = []
        return pieces

    # -- one step: up to the next mark ------------------------------------------------------------------------------

    def _read(self, pieces: list[Piece]) -> None:
        text = "".join([self._held, *self._waiting])
        self._held, self._waiting, self._enough = "", [], 0
        at: int | None = 0
        while at is not None:
            at = self._step(pieces, text, at)

    def _step(self, pieces: list[Piece], text: str, at: int) -> int | None:
        """Consume up to the next mark and the mark; returns where it ends, `None` if there is no more."""
        if self.mode == "call" and self._guard == "undecided":
            self._guard = self.tags.guard(text, at)
            if self._guard == "undecided":
                self._held = text[at:]
                self._enough = len(self._held) // 8 if len(self._held) > _SOON else 0
                return None
        sought = self._marks.sought(self.mode, self._guard)
        found = sought.pattern.search(text, at)
        if found is None:
            end = max(at, len(text) - sought.open_end(text))
            self._take(pieces, text[at:end])
            self._held = text[end:]
            return None
        self._take(pieces, text[at : found.start()])
        self._mark(pieces, found)
        if self._over:
            self._held = text[found.end() :]
            return None
        return found.end()

    def _take(self, pieces: list[Piece], text: str) -> None:
        if self.mode == "call":
            self._body.append(text)
        elif self.mode == "thought":
            self._think(pieces, text)
        else:
            self._say(pieces, text)

    def _mark(self, pieces: list[Piece], found: re.Match[str]) -> None:
        mark = found.group()
        if self.mode == "thought":
            self._mark_in_thought(pieces, mark)
        elif self.mode == "text":
            self._mark_in_text(pieces, mark)
        elif mark in self._marks.tags_of_calls:
            self._end_call(pieces, "".join(self._body), mark)
        else:
            self._body.append(mark)
            self._guard = _GUARDED[self._guard].get(mark, self._guard)

    def _mark_in_thought(self, pieces: list[Piece], mark: str) -> None:
        if mark != THINK:
            self._begin("text")
        elif not self._fresh:  # at the very start it repeats the tag of the open thought
            self._think(pieces, mark)

    def _mark_in_text(self, pieces: list[Piece], mark: str) -> None:
        if self._quotation.holds() or (mark == THINK and not self._may_think()):
            self._say(pieces, mark)
        elif mark == THINK:
            self._begin("thought")
        else:
            self._meet(mark)

    def _may_think(self) -> bool:
        return self._quotation.at_line_start() and (self.tags.thoughts == "lines" or not (self._said or self._tagged))

    def _meet(self, mark: str) -> None:
        """Handle a tag outside of a call."""
        if mark in self.tags.opens:
            self._begin("call")
        elif mark in self.tags.invents and self._calls:
            self._over = True
        elif mark in self.tags.closes:
            self._begin("text")
        else:  # one of `drops`
            if self.mode == "text" and self._said:
                self._space = self._space or ["\n"]
            else:
                self._begin("text")
            self._after = "mark"

    def _is_half_a_tag(self, held: str) -> bool:
        if not self._marks.is_half_a_tag(held) or self._quotation.holds():
            return False
        return any(tag.startswith(held) for tag in self._marks.tags_of_calls) or self._may_think()

    def _begin(self, mode: Mode) -> None:
        self.mode, self._guard, self._body = mode, "undecided", []
        self._space, self._said, self._tagged, self._after, self._fresh = [], False, True, "", True
        self._quotation.new_line()

    # -- calls ------------------------------------------------------------------------------------------------------

    def _end_call(self, pieces: list[Piece], body: str, mark: str) -> None:
        pieces.append(Piece("call", body))
        self._calls += 1
        self._meet(mark)

    def _ends_early(self, pieces: list[Piece], *, cut: bool) -> bool:
        """At the end inside an unterminated string, end the call at its first tag; whether there was one."""
        if cut or self._guard not in {"string", "value"}:
            return False
        body = "".join(self._body) + self._held
        found = self._marks.plain.pattern.search(body)
        if found is None:
            return False
        self._held = ""
        self._end_call(pieces, body[: found.start()], found.group())
        if not self._over:
            self._waiting = [body[found.end() :]]
            self._read(pieces)
        return True

    # -- what is shown ----------------------------------------------------------------------------------------------

    def _think(self, pieces: list[Piece], text: str) -> None:
        if self._fresh:
            text = text.lstrip("\n")
            self._fresh = not text
        _add(pieces, "thought", text)

    def _say(self, pieces: list[Piece], text: str) -> None:
        """Pass on text, holding back white space that may turn out to precede a call."""
        if not text:
            return
        self._quotation.add(text)
        if self._after:
            text = self._without_colon(text)
        if self._tagged and not self._said:
            text, self._space = text.lstrip(), []
        said = text.rstrip()
        if not self.tags.opens and (said or self._said):
            said = text  # there are no calls in this format
        elif not said:
            self._space += [text] if text else []
            return
        said, self._space = "".join([*self._space, said]), [text[len(said) :]] if len(said) < len(text) else []
        if said:
            self._said = True
            _add(pieces, "text", said)

    def _without_colon(self, text: str) -> str:
        text = text.lstrip()
        if self._after == "mark" and text.startswith(":"):
            text, self._after = text[1:].lstrip(), "colon"
        if text:
            self._after = ""
        return text


def _add(pieces: list[Piece], mode: Mode, text: str) -> None:
    if text:
        pieces.append(Piece(mode, text))
