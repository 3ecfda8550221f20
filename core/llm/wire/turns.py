"""A conversation as the turns that services with calls of their own want: every call with its result, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from core.llm.wire.notes import note
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from core.llm.request import Lang
    from core.messages.message import Message

Takes: TypeAlias = "Callable[[ContentItem], bool]"
"""Whether the model takes an item as it is; any other becomes a note."""

_WORDS: Final = {
    "en": {
        "unanswered": "No result.",
        "orphan": 'The tool "{name}" returned:\n',
        "brought": 'From the tool "{name}":',
        "go_on": "Go on exactly where you stopped, without repeating anything.",
    },
    "zh": {
        "unanswered": "没有结果。",
        "orphan": "工具“{name}”返回了：\n",
        "brought": "工具“{name}”给出的内容：",
        "go_on": "请从中断的地方接着说，不要重复。",
    },
}


class Call(NamedTuple):
    """A call of the model's; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Turn:
    """One message of the conversation as a service counts them.

    Args:
        role: Who speaks; `tool` is a result, with the `call_id` and `name` of its call.
        items: Text and what the model takes beside it; neighbouring texts are one.
        calls: What the assistant calls in this turn.
    """

    role: Literal["system", "user", "assistant", "tool"]
    items: list[ContentItem]
    calls: list[Call] = field(default_factory=list[Call])
    call_id: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """All text of the turn."""
        return "".join(item.text or "" for item in self.items)


def turns(messages: Iterable[Message], takes: Takes, lang: Lang = "en") -> list[Turn]:
    """The messages as turns.

    Text and calls of the assistant that follow one another are one turn; reasoning is left out. Every call is followed
    by its result, under its own id: one that says so where there is none. A result without a call becomes a user's
    text. What a result brings beside text comes in a user's turn after it. Instructions are one turn, the first.
    """
    writer = _Writer(takes, lang)
    for message in messages:
        writer.add(message)
    writer.settle()
    systems = [turn for turn in writer.written if turn.role == "system"]
    if not systems or systems == writer.written[:1]:
        return writer.written
    whole = "\n\n".join(filter(None, (turn.text for turn in systems)))
    others = [turn for turn in writer.written if turn.role != "system"]
    return [Turn("system", [ContentItem(text=whole)]), *others]


def is_partial(told: list[Turn]) -> bool:
    """Whether the conversation ends with the assistant's text, which is to be continued."""
    return bool(told) and told[-1].role == "assistant" and not told[-1].calls


def continued(told: list[Turn], lang: Lang = "en") -> list[Turn]:
    """The turns; where the last is to be continued, they ask for that in a form every service takes."""
    if not is_partial(told):
        return told
    partial = told[-1].text
    if len(told) == 1:
        return [Turn("user", [ContentItem(text=partial)])]
    before = told[-2]
    if before.role != "user":
        return [*told, Turn("user", [ContentItem(text=_WORDS[lang]["go_on"])])]
    return [*told[:-2], Turn("user", [*before.items, ContentItem(text=f"\n\n{partial}")])]


@dataclass(slots=True)
class _Writer:
    takes: Takes
    lang: Lang
    written: list[Turn] = field(default_factory=list[Turn])
    _waiting: dict[str, str] = field(default_factory=dict[str, str])  # calls without a result yet: id to name
    _brought: list[Turn] = field(default_factory=list[Turn])

    def add(self, message: Message) -> None:
        if message.role == FUNCTION:
            self._result(message)
        elif message.role == ASSISTANT:
            self._assistant(message)
        else:
            self.settle()
            if message.role == SYSTEM:
                self.written.append(Turn("system", self._readable(message, nothing)))
            else:
                self.written.append(Turn("user", self._readable(message)))

    def settle(self) -> None:
        """End a turn of calls: what has no result gets one that says so, and what results brought follows."""
        for call_id, name in self._waiting.items():
            self._tool(call_id, name, self._words("unanswered"))
        self._waiting.clear()
        self.written.extend(self._brought)
        self._brought.clear()

    def _assistant(self, message: Message) -> None:
        # What it drew or spoke is told by its text; it would only learn to write notes in place of pictures.
        text = "".join(item.text or "" for item in message.items) or self._readable(message, nothing)[0].text
        call = message.function_call
        if not text and not call:
            return  # nothing but reasoning, which services do not want back
        if not self.written or self.written[-1].role != "assistant":
            self.settle()
            self.written.append(Turn("assistant", [ContentItem(text="")]))
        turn = self.written[-1]
        if text:
            before = turn.text
            turn.items = [ContentItem(text=f"{before}\n{text}" if before and before[-1] != "\n" else before + text)]
        if call:
            said = str((message.extra or {}).get("function_id") or "")
            call_id = said if said and said not in self._waiting else f"call_{token_hex(8)}"
            turn.calls.append(Call(call_id, call.name, call.arguments))
            self._waiting[call_id] = call.name

    def _result(self, message: Message) -> None:
        name = str(message.name)
        call_id = self._answered(str((message.extra or {}).get("function_id") or ""), name)
        items = self._readable(message)
        text = "".join(item.text or "" for item in items)
        if call_id is None:
            self.settle()
            self.written.append(Turn("user", [ContentItem(text=self._words("orphan", name) + text)]))
        else:
            self._tool(call_id, name, text)
        more = [item for item in items if item.type != "text"]
        if more:
            self._brought.append(Turn("user", [ContentItem(text=self._words("brought", name)), *more]))

    def _answered(self, call_id: str, name: str) -> str | None:
        """The call that a result belongs to: by the result's own id, else the first open call of that name."""
        same_name = (key for key, called in self._waiting.items() if called == name)
        key = call_id if call_id in self._waiting else next(same_name, None)
        if key is not None:
            del self._waiting[key]
        return key

    def _tool(self, call_id: str, name: str, text: str) -> None:
        self.written.append(Turn("tool", [ContentItem(text=text)], call_id=call_id, name=name))

    def _readable(self, message: Message, takes: Takes | None = None) -> list[ContentItem]:
        takes = takes or self.takes
        items: list[ContentItem] = []
        for item in message.items:
            if item.type != "text" and takes(item):
                items.append(item)
                continue
            text = item.text if item.type == "text" else f"{note(item, self.lang)}\n"
            last = items.pop().text or "" if items and items[-1].type == "text" else ""
            gap = "\n" if item.type != "text" and last and last[-1] != "\n" else ""
            items.append(ContentItem(text=f"{last}{gap}{text or ''}"))
        return items or [ContentItem(text="")]

    def _words(self, key: str, name: str = "") -> str:
        return _WORDS[self.lang][key].format(name=name)


def nothing(item: ContentItem) -> bool:
    """What a model of text alone takes."""
    del item
    return False
