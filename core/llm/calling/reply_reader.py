"""Parsing the replies of models that write calls as text: with tags, without, or beside native calls."""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from core.errors import ModelServiceError
from core.llm.calling.call_text import CallText, call_events, may_be_mended, read_calls, unreadable
from core.llm.calling.neutral import Restored, has_calls, restored
from core.llm.calling.tag_scanner import Piece, TagScanner
from core.llm.request import call_ids, is_off
from core.messages.events import CallDelta, CallStarted, Event, ItemAdded, MessageFinished, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.calling.tag_scanner import Tags
    from core.llm.request import ChatRequest, Source, Stream

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
_UNSAID: Final = r"""[\s"']"""  # what a model may leave out, or write anew, in the beginning of a call
_SAYS_NOTHING: Final = re.compile(rf"{_UNSAID}*+")
_OTHER_KEY: Final = re.compile(
    rf"{_UNSAID}*+{{{_UNSAID}*+(?:" + "|".join(rf"{_UNSAID}*+".join(key) for key in _KEYS if key != "name:") + ")"
)
_FIRST_VALUE: Final = re.compile(r"[^,}]*+[,}]?")
_LONGEST_START: Final = 2_000  # characters within which a call must be recognizable


@dataclass(slots=True)
class Untagged:
    """Holds back a reply while all of it may be calls without tags, bare or in a code fence, each of a declared tool.

    Args:
        tagged: Whether to accept `<tool_call>` tags too, which nobody else looks for.
    """

    functions: Sequence[Mapping[str, Any]]
    tagged: bool = False
    _place: Literal["start", "object", "xml", "after", "no"] = "start"
    _pieces: list[str] = field(default_factory=list[str])
    _body: list[str] = field(default_factory=list[str])
    _depth: int = 0
    _string: bool = False
    _carried: str = ""  # the end of earlier text, to be scanned again
    _earlier: list[str] = field(default_factory=list[str])  # the calls before the last one
    _names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._names = {_bare(str(f.get("name"))) for f in self.functions}

    def feed(self, text: str) -> str | None:
        """`None` while the reply may still be calls; else all text held back."""
        if self._place == "no":  # already released
            self._pieces = []
        self._pieces.append(text)
        if self._place == "start" and self._carried.startswith("{") and _SAYS_NOTHING.fullmatch(text):
            self._wait(self._carried + text, 0)
            return self._released()
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
        return self._released()

    def _released(self) -> str | None:
        return self.held() if self._place == "no" else None

    def held(self) -> str:
        """All text held back."""
        return "".join(self._pieces)

    def calls(self, *, cut: bool) -> list[CallText]:
        """The calls of the finished reply; the last of one that was `cut` off is not repaired."""
        last = "".join([*self._body, self._carried] if self._place in {"object", "xml"} else self._body)
        found = [read_calls(body, self.functions) for body in self._earlier]
        found.append(read_calls(last, self.functions, mend=not cut and may_be_mended(last)))
        names = {f.get("name") for f in self.functions}
        calls = [call for each in found for call in each]
        one_each = all(len(each) == 1 for each in found)
        return calls if one_each and all(call.name in names for call in calls) else []

    def _begin(self, text: str, at: int) -> int:
        """Decide by the first characters whether this may be a call; returns where it begins, or the text's end."""
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
        """Rescan from `at` with more text."""
        self._carried = text[at:]
        if len(self._carried) > _LONGEST_START:
            self._place = "no"
        return len(text)

    def _kind(self, body: str) -> Literal["start", "object", "xml", "no"]:
        if _XML.startswith(body[: len(_XML)]):
            if len(body) <= len(_XML):
                return "start"
            return self._named(body[len(_XML) :], ">", "xml")
        if _OTHER_KEY.match(body):
            return "object"
        bare = _bare(body[: _after(_FIRST_VALUE, body, 0)])
        if not bare.startswith("{"):
            return "no"
        if not any(key.startswith(bare[1 : 1 + len(key)]) for key in _KEYS):
            return "no"
        if bare.startswith("{name:"):
            return self._named(bare[len("{name:") :], ",}", "object")
        return "object" if any(bare.startswith("{" + key) for key in _KEYS) else "start"

    def _named(self, text: str, ends: str, kind: Literal["object", "xml"]) -> Literal["start", "object", "xml", "no"]:
        """Whether `text` goes on with the name of a declared tool, up to one of `ends`."""
        names = self._names
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


def _bare(text: str) -> str:
    return re.sub(_UNSAID, "", text)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _shortened(tail: str) -> str:
    """What follows a call, without what more of says nothing new: any number of brackets and line ends may."""
    tail = tail[_after(_CLOSING, tail, 0) :]
    said = tail.rstrip(_ENDS)
    beyond = tail[len(said) :]
    return said + (beyond.strip()[:1] or beyond[:1])


UNREADABLE = "unreadable_call"
"""The name of a call without a readable one, if the caller answers every call."""


class Body(Protocol):
    """How a format writes a call."""

    def read(self, piece: Piece, request: ChatRequest, *, cut: bool) -> tuple[list[CallText], str]:
        """The calls in a piece, and text after them."""
        ...

    def with_tags(self, piece: Piece) -> str:
        """The piece with its tags."""
        ...


class ReplyReader:
    """Parses one reply with tagged calls into events; the messages do not depend on where chunks are cut.

    An unreadable call stays text, unless `request.answers_calls`: then it is a call whose arguments are what the model
    wrote. An empty call counts as unreadable if the reply has nothing else, and is dropped otherwise.

    Args:
        request: As it was before the template prepared it.
        after_tag: Whether the prompt ended with a tag: a leading colon belongs to it.
    """

    def __init__(self, request: ChatRequest, tags: Tags, body: Body, *, after_tag: bool = False) -> None:
        self.calls = 0
        self._request = request
        self._body = body
        taken = call_ids(request.messages)
        self._ids = (str(number) for number in count(1) if str(number) not in taken)
        self._scanner = TagScanner(tags, after_tag=after_tag)
        self._untagged: Untagged | None = Untagged(request.functions)
        self._only_one = is_off(request.generate.get("parallel_function_calls"))
        self._restored = Restored()
        self._said = False  # whether the last event is text
        self._apart = False  # whether the next text begins a new line
        self._spoke = False  # whether the reply has any words
        self._empty = ""  # an empty call, as written

    def feed(self, text: str) -> list[Event]:
        """The events that more text makes certain."""
        if self._untagged is not None:
            held = self._untagged.feed(text)
            if held is None:
                return []
            text, self._untagged = held, None
        return self._events(self._scanner.feed(text), cut=False)

    def close(self, *, cut: bool = False) -> list[Event]:
        """The remaining events."""
        events: list[Event] = []
        if self._untagged is not None:
            calls = self._untagged.calls(cut=cut)
            if calls and (self._request.answers_calls or all(call.readable for call in calls)):
                return self._called(calls)
            events, self._untagged = self._events(self._scanner.feed(self._untagged.held()), cut=False), None
        events += self._events(self._scanner.close(cut=cut), cut=cut)
        if self._empty and not (self._spoke or self.calls or cut):
            events += self._called([unreadable("")]) if self._request.answers_calls else [self._say(self._empty)]
        return events

    def _events(self, pieces: list[Piece], *, cut: bool) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            if piece.mode == "text":
                if text := self._restored.feed(piece.text):
                    events.append(self._say(text))
            elif piece.mode == "thought":
                self._said = self._apart = False
                events.append(ReasoningDelta(piece.text))
            else:
                events += self._call(piece, cut=cut)
        return events

    def _call(self, piece: Piece, *, cut: bool) -> list[Event]:
        calls, after = self._body.read(piece, self._request, cut=cut)
        if not calls and not after.strip():
            self._empty = self._body.with_tags(piece)
        readable = all(call.readable for call in calls)
        if not readable and not self._request.answers_calls:
            self._apart = True
            events: list[Event] = [self._say(self._body.with_tags(piece))]
            self._apart = True
            return events
        events = self._called(calls)
        if after:
            self._apart = self._said
            events.append(self._say(after))
        self._apart = self._said
        return events

    def _called(self, calls: list[CallText]) -> list[Event]:
        """The calls as events; only the very first without parallel calls."""
        if self._only_one:
            calls = calls[: 0 if self.calls else 1]
        if not calls:
            return []
        self.calls += len(calls)
        self._said = self._apart = False
        named = [CallText(call.name or UNREADABLE, restored(call.arguments), call.readable) for call in calls]
        return call_events(named, self._ids)

    def _say(self, text: str) -> TextDelta:
        if self._apart and self._said:
            text = "\n" + text
        self._said, self._apart = True, False
        self._spoke = self._spoke or not text.isspace()
        return TextDelta(text)


async def with_written_call(request: ChatRequest, below: Source) -> Stream:
    """The reply of a service with tool calling; a reply that is only a call written as text becomes that call.

    Small models write such calls. A reply that begins like one is held back until that is decided.
    """
    reader = _WrittenCallReader(request)
    async with aclosing(below(request)) as events:
        try:
            async for event in events:
                for found in reader.feed(event):
                    yield found
        except ModelServiceError:
            for found in reader.release():  # text so far is kept
                yield found
            raise


class _WrittenCallReader:
    """Holds back text while all of it may be one call.

    A native call without a name becomes text, unless the caller answers every call.
    """

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._breaks: dict[str, Restored] = {}
        self._has_results = has_calls(request.messages)
        self._nameless: set[str] = set()
        self._calls = 0
        self._held: Untagged | None = Untagged(request.functions, tagged=True)

    def feed(self, event: Event) -> list[Event]:
        """The events that one more event makes certain."""
        if self._has_results:
            event = self._restored(event)
        if not self._request.answers_calls:
            if isinstance(event, CallStarted) and not event.name.strip():
                self._nameless.add(event.call_id)
                return []
            if isinstance(event, CallDelta) and event.call_id in self._nameless:
                event = TextDelta(event.arguments)
        self._calls += isinstance(event, CallStarted)
        if isinstance(event, MessageFinished) and self._nameless and not self._calls and event.reason == "calls":
            event = MessageFinished("stop", event.usage)
        if self._held is None:
            return [event]
        if isinstance(event, TextDelta):
            text = self._held.feed(event.text)
            return [] if text is None else self.release()
        if isinstance(event, MessageFinished):
            return self._end(self._held, event)
        if isinstance(event, CallStarted | ItemAdded):
            return [*self.release(), event]
        return [event]

    def _restored(self, event: Event) -> Event:
        """The event without break characters, which the model repeats from results."""
        if isinstance(event, TextDelta):
            return TextDelta(self._breaks.setdefault("", Restored()).feed(event.text))
        if isinstance(event, CallDelta):
            arguments = self._breaks.setdefault(event.call_id, Restored()).feed(event.arguments)
            return CallDelta(event.call_id, arguments)
        return event

    def release(self) -> list[Event]:
        """The text held back, which is no call."""
        text = self._held.held() if self._held is not None else ""
        self._held = None
        return [TextDelta(text)] if text else []

    def _end(self, held: Untagged, end: MessageFinished) -> list[Event]:
        calls = held.calls(cut=end.reason == "length")
        if not calls or not (calls[0].readable or self._request.answers_calls):
            return [*self.release(), end]
        taken = call_ids(self._request.messages)
        ids = (str(number) for number in count(1) if str(number) not in taken)
        return [*call_events(calls, ids), MessageFinished("calls", end.usage)]
