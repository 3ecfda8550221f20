"""The tags of the formats that models write calls in, and what is looked for at each place."""

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
"""What, inside a call, protects a tag from being taken for one."""

_XML: Final = "<function"
_LONGEST_NAME: Final = 200  # characters between `✿FUNCTION✿` and `✿ARGS✿`
_SPACE: Final = re.compile(r"\s*+")
_BEFORE_ARGUMENTS: Final = re.compile(r"[: \t\r\n]*+")
_FEWEST_HIDDEN: Final = {"<": 5, "✿": 2}
"""A reply may end in `a <` and mean it; from so many characters of a tag on it is half a tag, and never shown."""


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of one format.

    Args:
        opens: What begins a call, and ends the one before it.
        closes: What ends a call.
        invents: What begins a result, which is not the model's to write: after a call, the rest is not read.
        drops: What says nothing by itself and is left out of the text, with a colon after it.
        thoughts: Where a thought may begin: at the start of the reply, or at the start of any line.
    """

    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    invents: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    thoughts: Literal["start", "lines"] = "lines"

    def guard(self, text: str, at: int = 0) -> Guard:
        """What protects tags in a call that begins there; the same for every longer one once it is decided."""
        return _marked_guard(text, at) if FUNCTION in self.opens else _tagged_guard(text, at)


ONLY_THOUGHTS: Final = Tags(thoughts="start")
TAGGED: Final = Tags(("<tool_call>",), ("</tool_call>",))
MARKED: Final = Tags((FUNCTION,), (), (RESULT,), (RETURN,))


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for at one place."""

    pattern: re.Pattern[str]
    starts: tuple[str, ...]
    firsts: str
    longest: int

    @classmethod
    def of(cls, *tags: str, more: str = "", starts: tuple[str, ...] = ()) -> Sought:
        """Tags, and a pattern `more`; `starts` are longer things of which a chunk may end in the beginning."""
        pattern = "|".join([*map(re.escape, tags), *filter(None, [more])])
        starts = (*tags, *starts)
        firsts = "".join(dict.fromkeys(start[0] for start in starts))
        return cls(re.compile(pattern or "(?!)", re.DOTALL), starts, firsts, max(map(len, starts), default=0))

    def open_end(self, text: str) -> int:
        """How many characters at the end of `text` may be the start of something sought."""
        low = max(0, len(text) - self.longest + 1)
        at = max((text.rfind(first, low) for first in self.firsts), default=-1)
        if at < 0:
            return 0
        tail = text[at:]
        return len(tail) if any(start.startswith(tail) for start in self.starts) else 0


class Marks:
    """What is looked for in a reply of one format."""

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
        """What ends the stretch that the scanner is in."""
        if mode == "text":
            return self._text
        return self._thought if mode == "thought" else self._call[guard]

    def is_half_a_tag(self, text: str) -> bool:
        """Whether a text that the reply ends with can be nothing but the beginning of a tag."""
        enough = bool(text) and len(text) >= _FEWEST_HIDDEN.get(text[0], 1)
        return enough and any(tag.startswith(text) for tag in (*self.tags_of_calls, THINK, END_THINK))


@cache
def marks_of(tags: Tags) -> Marks:
    """What is looked for in a reply with these tags."""
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
