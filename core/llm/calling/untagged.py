"""Calls without tags: only where the whole reply is such objects, bare or in a fence, each for a declared tool."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from core.llm.calling.call_text import CallText, may_be_mended, read_calls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FENCE: Final = re.compile(r"```(?:json|xml|tool_call)?[ \t]*\n", re.IGNORECASE)
_HALF_FENCE: Final = re.compile(r"`{1,2}|```\w*[ \t]*", re.IGNORECASE)
_KEYS: Final = ("name:", "arguments:", "parameters:", "function:", "type:function")
_CALL: Final = "<tool_call>"
_XML: Final = "<function="
_END_XML: Final = "</function>"
_END_CALL: Final = "</tool_call>"
_MARK: Final = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_SPACE: Final = re.compile(r"\s*+")
_CLOSING: Final = re.compile(r"[}\]), \t\r\n]*+")
_ENDS: Final = "`}]), \t\r\n"
_LONGEST_START: Final = 2_000  # characters that may stand before it is known what a call is; longer ones are none


@dataclass(slots=True)
class Untagged:
    """Holds a reply back while all of it may be calls.

    Args:
        functions: The tools on offer.
        tagged: Whether calls may stand in tags after all, which nobody else looks for.
    """

    functions: Sequence[Mapping[str, Any]]
    tagged: bool = False
    _place: Literal["start", "object", "xml", "after", "no"] = "start"
    _pieces: list[str] = field(default_factory=list[str])
    _body: list[str] = field(default_factory=list[str])
    _depth: int = 0
    _string: bool = False
    _carried: str = ""  # of the text before, what must be looked at again
    _earlier: list[str] = field(default_factory=list[str])  # the calls before the last one

    def feed(self, text: str) -> str | None:
        """`None` while the reply may still be a call; else all that was held back, which is to be read as text."""
        if self._place == "no":  # what was held was given back
            self._pieces = []
        self._pieces.append(text)
        text, at = self._carried + text, 0
        self._carried = ""
        while at < len(text) and self._place != "no":
            if self._place == "start":
                at = self._begin(text, at)
            elif self._place == "object":
                at = self._follow(text, at)
            elif self._place == "xml":
                at = self._follow_xml(text, at)
            else:
                at = self._end(text, at)
        return self.held() if self._place == "no" else None

    def held(self) -> str:
        """All that was held back."""
        return "".join(self._pieces)

    def calls(self, *, cut: bool) -> list[CallText]:
        """The calls, now that the reply is over; the last of a reply that was `cut` off is not mended."""
        last = "".join([*self._body, self._carried] if self._place in {"object", "xml"} else self._body)
        found = [read_calls(body, self.functions) for body in self._earlier]
        found.append(read_calls(last, self.functions, mend=not cut and may_be_mended(last)))
        names = {f.get("name") for f in self.functions}
        calls = [call for each in found for call in each]
        one_each = all(len(each) == 1 for each in found)
        return calls if one_each and all(call.name in names for call in calls) else []

    def _begin(self, text: str, at: int) -> int:
        """Tell from the first characters whether this may be a call; where it begins, or the end of the text."""
        at = begins = _after(_SPACE, text, at)
        if self.tagged:
            if text.startswith(_CALL, at):
                at = _after(_SPACE, text, at + len(_CALL))
            if at < len(text) and _CALL.startswith(text[at : at + len(_CALL) + 1]):
                return self._wait(text, begins)
        most = at + _LONGEST_START
        if _HALF_FENCE.fullmatch(text, at, most):
            return self._wait(text, begins)
        fence = _FENCE.match(text, at, most)
        at = _after(_SPACE, text, fence.end()) if fence else at
        self._place = self._kind(text[at : at + _LONGEST_START])
        return self._wait(text, begins) if self._place == "start" else at

    def _wait(self, text: str, at: int) -> int:
        """Look at it again with more text."""
        self._carried = text[at:]
        if len(self._carried) > _LONGEST_START:
            self._place = "no"
        return len(text)

    def _kind(self, body: str) -> Literal["start", "object", "xml", "no"]:
        if _XML.startswith(body[: len(_XML)]):
            if len(body) <= len(_XML):
                return "start"
            return self._named(body[len(_XML) :], ">", "xml")
        bare = re.sub(r"[\s\"']", "", body)
        if not bare.startswith("{"):
            return "no"
        if not any(key.startswith(bare[1 : 1 + len(key)]) for key in _KEYS):
            return "no"
        if bare.startswith("{name:"):
            return self._named(bare[len("{name:") :], ",}", "object")
        return "object" if any(bare.startswith("{" + key) for key in _KEYS) else "start"

    def _named(self, text: str, ends: str, kind: Literal["object", "xml"]) -> Literal["start", "object", "xml", "no"]:
        """Whether `text` goes on with the name of a declared tool, up to one of `ends`."""
        names = {re.sub(r"[\s\"']", "", str(f.get("name"))) for f in self.functions}
        end = min((at for at in map(text.find, ends) if at >= 0), default=-1)
        if end >= 0:
            return kind if text[:end].strip() in names else "no"
        return "start" if any(name.startswith(text.strip()) for name in names) else "no"

    def _follow(self, text: str, at: int) -> int:
        """Count brackets outside of strings until the object ends."""
        begins = at
        for found in _MARK.finditer(text, at):
            at, mark = found.end(), found.group()
            if mark == '"':
                self._string = not self._string
            elif not self._string and len(mark) == 1:
                self._depth += 1 if mark in "{[" else -1
                if self._depth <= 0:
                    return self._finish(text, begins, at)
        at = len(text) - 1 if text.endswith("\\") and at < len(text) else len(text)
        return self._go_on(text, begins, at)

    def _follow_xml(self, text: str, at: int) -> int:
        end = text.find(_END_XML, at)
        if end >= 0:
            return self._finish(text, at, end + len(_END_XML))
        return self._go_on(text, at, max(at, len(text) - len(_END_XML)))

    def _go_on(self, text: str, begins: int, at: int) -> int:
        self._body.append(text[begins:at])
        self._carried = text[at:]
        return len(text)

    def _finish(self, text: str, begins: int, at: int) -> int:
        self._body.append(text[begins:at])
        self._place = "after"
        return at

    def _end(self, text: str, at: int) -> int:
        """After a call only the next, the end of a fence, a stray bracket or a stray closing tag may follow."""
        following = _after(_CLOSING, text, at)
        if self.tagged and text.startswith(_END_CALL, following):
            following = _after(_SPACE, text, following + len(_END_CALL))
        if text.startswith("{", following) or (self.tagged and text.startswith(_CALL, following)):
            self._earlier.append("".join(self._body))
            self._body, self._depth, self._place = [], 0, "start"
            return following
        rest = text[at:]
        if (self.tagged and _CALL.startswith(text[following:])) or _END_CALL.startswith(rest.strip(_ENDS)):
            self._carried = _shortened(rest)
        else:
            self._place = "no"
        return len(text)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _shortened(tail: str) -> str:
    """What follows a call, without what more of says nothing new: any number of brackets and line ends may."""
    tail = tail[_after(_CLOSING, tail, 0) :]
    said = tail.rstrip(_ENDS)
    beyond = tail[len(said) :]
    return said + (beyond.strip()[:1] or beyond[:1])
