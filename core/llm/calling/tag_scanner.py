"""Splits a growing reply into text, thought and calls, wherever it was cut: one scanner for the tags of all formats."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, TypeAlias

THINK: Final = "<think>"
END_THINK: Final = "</think>"

FUNCTION: Final = "✿FUNCTION✿"
ARGS: Final = "✿ARGS✿"
RESULT: Final = "✿RESULT✿"
RETURN: Final = "✿RETURN✿"

Guard: TypeAlias = Literal["undecided", "none", "json", "string", "xml", "value"]
"""What protects text inside a call from being taken for a tag."""

_XML: Final = "<function"
_LONGEST_NAME: Final = 200  # characters between `✿FUNCTION✿` and `✿ARGS✿`
_SPACE: Final = re.compile(r"\s*+")
_BEFORE_ARGUMENTS: Final = re.compile(r"[: \t\r\n]*+")
_FEWEST_HIDDEN: Final = {"<": 5, "✿": 2}
"""A reply may end in `a <`; from this many characters on, the start of a tag at the end is hidden."""


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of one format.

    Args:
        opens: Begin a call, and end the one before it.
        closes: End a call.
        invents: Begin a result, which the model must not write: after a call, the rest is ignored.
        drops: Dropped from the text, with a colon after them.
        thoughts: Where a thought may begin: at the start of the reply, or of any line.
    """

    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    invents: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    thoughts: Literal["start", "lines"] = "lines"

    def guard(self, text: str, at: int = 0) -> Guard:
        """The guard for a call whose body begins at `at`; final once it is not `undecided`."""
        return _marked_guard(text, at) if FUNCTION in self.opens else _tagged_guard(text, at)


ONLY_THOUGHTS: Final = Tags(thoughts="start")
TAGGED: Final = Tags(("<tool_call>",), ("</tool_call>",))
MARKED: Final = Tags((FUNCTION,), (), (RESULT,), (RETURN,))


@dataclass(frozen=True, slots=True)
class Sought:
    """The pattern to search for in one state."""

    pattern: re.Pattern[str]
    starts: tuple[str, ...]
    firsts: str
    longest: int

    @classmethod
    def of(cls, *tags: str, more: str = "", starts: tuple[str, ...] = ()) -> Sought:
        """Tags and a pattern `more`; `starts`: further strings whose beginning may end a chunk."""
        pattern = "|".join([*map(re.escape, tags), *filter(None, [more])])
        starts = (*tags, *starts)
        firsts = "".join(dict.fromkeys(start[0] for start in starts))
        return cls(re.compile(pattern or "(?!)", re.DOTALL), starts, firsts, max(map(len, starts), default=0))

    def open_end(self, text: str) -> int:
        """The number of characters at the end of `text` that may begin a match."""
        low = max(0, len(text) - self.longest + 1)
        at = max((text.rfind(first, low) for first in self.firsts), default=-1)
        if at < 0:
            return 0
        tail = text[at:]
        return len(tail) if any(start.startswith(tail) for start in self.starts) else 0


class Marks:
    """The patterns for replies of one format."""

    def __init__(self, tags: Tags) -> None:
        self.tags_of_calls = frozenset([*tags.closes, *tags.opens, *tags.invents, *tags.drops])
        ordered = sorted(self.tags_of_calls)
        self.plain = Sought.of(*ordered)
        self._text = Sought.of(THINK, *(tag for tag in ordered if tag not in tags.closes))
        self._thought = Sought.of(END_THINK, THINK)
        self._call: dict[Guard, Sought] = {
            "none": self.plain,
            "json": Sought.of(*ordered, more='"'),
            "string": Sought.of(more=r'\\.|"', starts=("\\.",)),
            "xml": Sought.of(*ordered, "<parameter="),
            "value": Sought.of("</parameter>"),
        }

    def sought(self, mode: Literal["text", "thought", "call"], guard: Guard) -> Sought:
        """The pattern that ends the current stretch."""
        if mode == "text":
            return self._text
        return self._thought if mode == "thought" else self._call[guard]

    def is_half_a_tag(self, text: str) -> bool:
        """Whether the end of a reply is the beginning of a tag."""
        enough = bool(text) and len(text) >= _FEWEST_HIDDEN.get(text[0], 1)
        return enough and any(tag.startswith(text) for tag in (*self.tags_of_calls, THINK, END_THINK))


@cache
def marks_of(tags: Tags) -> Marks:
    """The patterns for these tags, compiled once."""
    return Marks(tags)


def _tagged_guard(text: str, at: int) -> Guard:
    at = _after(_SPACE, text, at)
    if text.startswith(_XML, at):
        return "xml"
    return "undecided" if _XML.startswith(text[at : at + len(_XML)]) else "json"


def _marked_guard(text: str, begins: int) -> Guard:
    at = text.find(ARGS[0], begins, begins + _LONGEST_NAME)
    if at < 0:
        return "undecided" if len(text) - begins < _LONGEST_NAME else "none"
    tail = text[at : at + len(ARGS)]
    if tail != ARGS:
        return "undecided" if ARGS.startswith(tail) else "none"
    at = _after(_BEFORE_ARGUMENTS, text, at + len(ARGS))
    if at == len(text):
        return "undecided"
    return "json" if text[at] in "{[" else "none"


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


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
