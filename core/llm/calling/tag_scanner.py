"""Splits a growing reply into text, thought and calls, wherever the chunks were cut: one scanner for every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.llm.calling.quotation import Quotation
from core.llm.calling.tags import THINK, Guard, Marks, Tags, marks_of

if TYPE_CHECKING:
    import re

Mode: TypeAlias = Literal["text", "thought", "call"]
_GUARDED: dict[Guard, dict[str, Guard]] = {
    "json": {'"': "string"},
    "string": {'"': "json"},
    "xml": {"<parameter=": "value"},
    "value": {"</parameter>": "xml"},
}
"""Inside a call: what begins or ends a stretch in which a tag is but text."""
_SOON = 1_000  # characters of a call of unknown form that are looked at anew with each more
_MOST_AGAIN = 20  # calls with a string that never ends, in one reply, of which the rest is read once more


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the reply; that of a call is whole, the others may go on in the next piece."""

    mode: Mode
    text: str
    closed: bool = True
    """Whether the call ended; one that did not is the last thing of the reply."""


class TagScanner:
    """Feed it text; it tells what is certain and holds back what may be the start of a tag.

    A tag in a code fence, in inline code or in a thought is quotation, and stays what it is. The end of a call counts
    only outside its strings. White space beside a call or a thought is dropped.

    Args:
        tags: The format.
        mode: `thought` for a reply that begins inside a thought.
        after_tag: Whether a tag stood just before the reply: white space and a colon at its start belong to that.
    """

    def __init__(self, tags: Tags, mode: Mode = "text", *, after_tag: bool = False) -> None:
        self.tags = tags
        self.mode: Mode = mode
        self._marks: Marks = marks_of(tags)
        self._quotation = Quotation()
        self._held = ""
        self._waiting: list[str] = []  # what came after that, while there is too little more of it
        self._enough = 0
        self._space: list[str] = []
        self._body: list[str] = []
        self._guard: Guard = "undecided"
        self._calls = 0
        self._over = False
        self._said = False  # whether there was text since the last tag
        self._tagged = False  # whether there was a tag
        self._fresh = True  # whether a thought has just begun: line breaks at its start are no part of it
        # What was left out just before: a colon and white space go with it.
        self._after: Literal["", "mark", "colon"] = "mark" if after_tag else ""

    @property
    def settled(self) -> bool:
        """Whether all that may still come is text."""
        return self._over_thinking and self.mode == "text" and not self._held and not self._space

    @property
    def _over_thinking(self) -> bool:
        return self.tags.thoughts == "start" and not self.tags.opens and self._said

    def feed(self, text: str) -> list[Piece]:
        """What is certain after more text."""
        pieces: list[Piece] = []
        if self._over:
            return pieces
        self._waiting.append(text)
        self._enough -= len(text)
        if self._enough <= 0:
            self._read(pieces)
        return pieces

    def close(self, *, cut: bool = False) -> list[Piece]:
        """The rest, when no more text comes.

        Args:
            cut: Whether the reply was cut off: what stands in the last call is then not taken apart any more.
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
        """Take what comes before the next mark, and the mark; where it ends, if there may be another."""
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
        elif not self._fresh:  # at the very start it opens the thought that was open already
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
        """A tag of a call, outside of one."""
        if mark in self.tags.opens:
            self._begin("call")
        elif mark in self.tags.invents and self._calls:
            self._over = True
        elif mark in self.tags.closes:
            self._begin("text")
        else:  # it says nothing by itself
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
        """The reply is over within a call. Where a string never ended, the first tag ends the call all the same."""
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
        """Pass text on, but hold back white space that may turn out to stand beside a call."""
        if not text:
            return
        self._quotation.add(text)
        if self._after:
            text = self._without_colon(text)
        if self._tagged and not self._said:
            text, self._space = text.lstrip(), []
        said = text.rstrip()
        if not self.tags.opens and (said or self._said):
            said = text  # no call can stand beside it
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
