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
    _start: str = ""
    _depth: int = 0
    _string: bool = False
    _rest: str = ""  # of the text before, what must be looked at again
    _tail: str = ""
    _earlier: list[str] = field(default_factory=list[str])  # the calls before the last one

    def feed(self, text: str) -> str | None:
        """`None` while the reply may still be a call; else all that was held back, which is to be read as text."""
        self._pieces.append(text)
        if self._place == "start":
            self._begin(text)
        elif self._place == "object":
            self._follow(text)
        elif self._place == "xml":
            self._follow_xml(text)
        elif self._place == "after":
            self._end(text)
        return self.held() if self._place == "no" else None

    def held(self) -> str:
        """All that was held back."""
        return "".join(self._pieces)

    def calls(self, *, cut: bool) -> list[CallText]:
        """The calls, now that the reply is over; the last of a reply that was `cut` off is not mended."""
        last = "".join([*self._body, self._rest])
        found = [read_calls(body, self.functions) for body in self._earlier]
        found.append(read_calls(last, self.functions, mend=not cut and may_be_mended(last)))
        names = {f.get("name") for f in self.functions}
        calls = [call for each in found for call in each]
        one_each = all(len(each) == 1 for each in found)
        return calls if one_each and all(call.name in names for call in calls) else []

    def _begin(self, text: str) -> None:
        """Tell from the first characters whether this may be a call."""
        self._start += text
        start = self._start.lstrip()
        if self.tagged:
            start = start.removeprefix(_CALL).lstrip()
            if start and _CALL.startswith(start):
                return
        if _HALF_FENCE.fullmatch(start):
            return
        fence = _FENCE.match(start)
        body = (start[fence.end() :] if fence else start).lstrip()
        self._place = self._kind(body)
        if self._place == "object":
            self._follow(body)
        elif self._place == "xml":
            self._follow_xml(body)

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

    def _follow(self, text: str) -> None:
        """Count brackets outside of strings until the object ends."""
        text, at = self._rest + text, 0
        for found in _MARK.finditer(text):
            at, mark = found.end(), found.group()
            if mark == '"':
                self._string = not self._string
            elif not self._string and len(mark) == 1:
                self._depth += 1 if mark in "{[" else -1
                if self._depth <= 0:
                    self._finish(text, at)
                    return
        at = len(text) - 1 if text.endswith("\\") and at < len(text) else len(text)
        self._body.append(text[:at])
        self._rest = text[at:]

    def _follow_xml(self, text: str) -> None:
        text = self._rest + text
        at = text.find(_END_XML)
        if at >= 0:
            self._finish(text, at + len(_END_XML))
            return
        at = max(0, len(text) - len(_END_XML))
        self._body.append(text[:at])
        self._rest = text[at:]

    def _finish(self, text: str, at: int) -> None:
        self._body.append(text[:at])
        self._place, self._rest = "after", ""
        self._end(text[at:])

    def _end(self, text: str) -> None:
        """After a call only the next, the end of a fence, a stray bracket or a stray closing tag may follow."""
        self._tail += text
        following = self._tail.lstrip("}]), \t\r\n")
        if self.tagged:
            following = following.removeprefix(_END_CALL).lstrip()
        if following.startswith("{") or (self.tagged and following.startswith(_CALL)):
            self._earlier.append("".join(self._body))
            self._body, self._start, self._tail, self._depth = [], "", "", 0
            self._place = "start"
            self._begin(following)
        elif not (self.tagged and _CALL.startswith(following)) and not _END_CALL.startswith(
            self._tail.strip("`}]), \t\r\n")
        ):
            self._place = "no"
