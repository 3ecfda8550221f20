"""The tags of each call format, and the patterns to search for in each state of the scanner."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
