"""Splits a growing reply into text, thought and tagged calls, wherever the chunks were cut."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

_THINK, _END_THINK = "<think>", "</think>"
_CALL, _END_CALL = "<tool_call>", "</tool_call>"
_OPENING = re.compile(f"{_THINK}|{_CALL}")

Mode: TypeAlias = Literal["text", "thought", "call"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the reply; that of a call is whole, the others may go on in the next piece."""

    mode: Mode
    text: str
    cut: bool = False
    """Whether the reply ended inside this call."""


@dataclass(slots=True)
class TagScanner:
    """Feed it text; it tells what is certain and holds back what may be the start of a tag.

    A call inside a code fence, inline code or a thought is quotation, and stays text. The closing tag of a call
    counts only outside its JSON strings. White space beside a call or a thought is dropped.
    """

    _mode: Mode = "text"
    _held: str = ""
    _space: str = ""
    _line: str = ""
    _fenced: bool = False
    _begun: bool = False
    _after_tag: bool = False
    _body: list[str] = field(default_factory=list[str])
    _string: bool = False
    _escaped: bool = False

    def feed(self, text: str) -> list[Piece]:
        """What is certain after more text."""
        self._held += text
        pieces: list[Piece] = []
        while self._step(pieces):
            pass
        return pieces

    def close(self) -> list[Piece]:
        """The rest: an open call counts as closed, a tag that never ended is text."""
        pieces: list[Piece] = []
        held, self._held = self._held, ""
        if self._mode == "call":
            self._end_call(pieces, "".join(self._body) + held, cut=True)
        elif self._mode == "thought":
            _add(pieces, "thought", held)
        else:
            self._say(pieces, held)
            _add(pieces, "text", self._space if self._begun or not self._after_tag else "")
            self._space = ""
        return pieces

    def _step(self, pieces: list[Piece]) -> bool:
        if not self._held:
            return False
        match self._mode:
            case "text":
                return self._text_step(pieces)
            case "thought":
                return self._thought_step(pieces)
            case "call":
                return self._call_step(pieces)

    def _text_step(self, pieces: list[Piece]) -> bool:
        found = _OPENING.search(self._held)
        if found is None:
            keep = _open_end(self._held, (_THINK, _CALL))
            self._say(pieces, self._held[: len(self._held) - keep])
            self._held = self._held[len(self._held) - keep :]
            return False
        self._say(pieces, self._held[: found.start()])
        self._held = self._held[found.end() :]
        if self._fenced or self._line.endswith("`"):
            self._say(pieces, found.group())
            return True
        self._start_text()
        self._mode = "thought" if found.group() == _THINK else "call"
        return True

    def _thought_step(self, pieces: list[Piece]) -> bool:
        before, closed, after = self._held.partition(_END_THINK)
        if closed:
            _add(pieces, "thought", before)
            self._held = after
            self._start_text()
            return True
        keep = _open_end(self._held, (_END_THINK,))
        _add(pieces, "thought", self._held[: len(self._held) - keep])
        self._held = self._held[len(self._held) - keep :]
        return False

    def _call_step(self, pieces: list[Piece]) -> bool:
        """Take the body character by character: a tag inside a string is part of the string."""
        at = 0
        while at < len(self._held):
            if self._held[at] == "<" and not self._string:
                rest = self._held[at:]
                if rest.startswith(_END_CALL):
                    self._take(at)
                    self._held = self._held[len(_END_CALL) :]
                    self._end_call(pieces, "".join(self._body))
                    return True
                if rest.startswith(_CALL):  # the closing tag was forgotten: the next call begins
                    self._take(at)
                    self._held = self._held[len(_CALL) :]
                    self._end_call(pieces, "".join(self._body), then="call")
                    return True
                if _END_CALL.startswith(rest) or _CALL.startswith(rest):
                    break
            self._read(self._held[at])
            at += 1
        self._take(at)
        return False

    def _take(self, count: int) -> None:
        self._body.append(self._held[:count])
        self._held = self._held[count:]

    def _read(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = self._string
        elif character == '"':
            self._string = not self._string

    def _end_call(self, pieces: list[Piece], body: str, *, then: Mode = "text", cut: bool = False) -> None:
        rest = ""
        if cut and _END_CALL in body:  # a quote was never closed: the tag closes all the same
            body, _, rest = body.partition(_END_CALL)
            cut = False
        pieces.append(Piece("call", body, cut))
        self._body, self._string, self._escaped = [], False, False
        self._start_text()
        self._mode = then
        if rest:
            pieces.extend(self.feed(rest))
            pieces.extend(self.close())

    def _start_text(self) -> None:
        self._mode, self._space, self._line = "text", "", ""
        self._begun, self._after_tag = False, True

    def _say(self, pieces: list[Piece], text: str) -> None:
        """Pass text on, but hold back white space that may turn out to stand beside a call."""
        if not text:
            return
        self._follow_fences(text)
        body = self._space + text
        if self._after_tag and not self._begun:
            body = body.lstrip()
        said = body.rstrip()
        self._space = body[len(said) :]
        if said:
            self._begun = True
            _add(pieces, "text", said)

    def _follow_fences(self, text: str) -> None:
        lines = text.split("\n")
        for index, line in enumerate(lines):
            if index:
                self._end_line()
            self._line += line
        # Only the beginning of a line tells a fence, only its end tells inline code.
        if len(self._line) > 80:
            self._line = self._line[:40] + self._line[-8:]

    def _end_line(self) -> None:
        if self._line.lstrip(" ").startswith("```") and len(self._line) - len(self._line.lstrip(" ")) <= 3:
            self._fenced = not self._fenced
        self._line = ""


def _add(pieces: list[Piece], mode: Mode, text: str) -> None:
    if text:
        pieces.append(Piece(mode, text))


def _open_end(text: str, tags: tuple[str, ...]) -> int:
    """How many characters at the end of `text` may be the start of a tag."""
    at = text.rfind("<", max(0, len(text) - max(map(len, tags)) + 1))
    if at < 0:
        return 0
    tail = text[at:]
    return len(tail) if any(tag.startswith(tail) for tag in tags) else 0
