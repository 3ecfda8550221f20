"""A conversation as the turns of services with tool calling: each call followed by its result, other media as notes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from posixpath import basename
from secrets import token_hex
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, PROOF, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from core.languages import Lang
    from core.messages.message import Message

Takes: TypeAlias = "Callable[[ContentItem], bool]"
"""Whether the model takes an item as it is; others become notes."""

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
    """A tool call; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


class Thought(NamedTuple):
    """What the assistant thought, with the proof of it; without text that of the answer before it."""

    text: str
    proof: str


class Made(NamedTuple):
    """A call, with what its service wants back with it; empty where that is nothing."""

    call: Call
    proof: str


Said: TypeAlias = str | Thought | Made
"""A piece of the assistant's turn: text, a thought or a call."""


@dataclass(slots=True)
class Turn:
    """One message as services count them.

    Args:
        role: `tool` is a result, with the `call_id` and `name` of its call.
        items: Text and what the model takes beside it; neighbouring texts are joined.
        calls: The assistant's calls in this turn.
        said: The assistant's texts, proven thoughts and calls, in the order in which they came.
        failed: Whether the result is that of a call that failed.
    """

    role: Literal["system", "user", "assistant", "tool"]
    items: list[ContentItem]
    calls: list[Call] = field(default_factory=list[Call])
    call_id: str = ""
    name: str = ""
    said: list[Said] = field(default_factory=list[Said])
    failed: bool = False

    @property
    def text(self) -> str:
        """All text of the turn."""
        return "".join(item.text or "" for item in self.items)


def turns(
    messages: Iterable[Message],
    takes: Takes,
    lang: Lang = "en",
    *,
    proven: Callable[[str], bool] | None = None,
    within_results: Takes | None = None,
) -> list[Turn]:
    """The messages as turns.

    Consecutive text and calls of the assistant are one turn; reasoning is dropped. Every call is followed by its
    result, under its id; a missing result is filled in. A result without a call becomes a user's text. Media in a
    result follow it in a user's turn. System messages are joined into one turn, the first.

    Args:
        messages: The conversation.
        takes: Whether the model takes an item as it is.
        lang: Of the words in place of what it does not take.
        proven: Whether a proof is one that the service wants back: its thought and call then keep it in `said`.
        within_results: Which media stay in the result itself.
    """
    writer = _Writer(takes, lang, proven or _unproven, within_results or text_only)
    for message in messages:
        writer.add(message)
    writer.close_calls()
    systems = [turn for turn in writer.written if turn.role == "system"]
    if not systems or systems == writer.written[:1]:
        return writer.written
    whole = "\n\n".join(filter(None, (turn.text for turn in systems)))
    others = [turn for turn in writer.written if turn.role != "system"]
    return [Turn("system", [ContentItem(text=whole)]), *others]


def is_partial(conversation: list[Turn]) -> bool:
    """Whether the conversation ends with the assistant's text, which is to be continued."""
    return bool(conversation) and conversation[-1].role == "assistant" and not conversation[-1].calls


def continued(conversation: list[Turn], lang: Lang = "en") -> list[Turn]:
    """The turns; if the last is to be continued, in a form that every service takes."""
    if not is_partial(conversation):
        return conversation
    partial = conversation[-1].text
    if len(conversation) == 1:
        return [Turn("user", [ContentItem(text=partial)])]
    before = conversation[-2]
    if before.role != "user":
        return [*conversation, Turn("user", [ContentItem(text=_WORDS[lang]["go_on"])])]
    return [*conversation[:-2], Turn("user", [*before.items, ContentItem(text=f"\n\n{partial}")])]


@dataclass(slots=True)
class _Writer:
    takes: Takes
    lang: Lang
    proven: Callable[[str], bool]
    within_results: Takes
    written: list[Turn] = field(default_factory=list[Turn])
    _waiting: dict[str, str] = field(default_factory=dict[str, str])  # open calls: id to name
    _media: list[Turn] = field(default_factory=list[Turn])

    def add(self, message: Message) -> None:
        if message.role == FUNCTION:
            self._result(message)
        elif message.role == ASSISTANT:
            self._assistant(message)
        else:
            self.close_calls()
            if message.role == SYSTEM:
                self.written.append(Turn("system", self._readable(message, text_only)))
            else:
                self.written.append(Turn("user", self._readable(message)))

    def close_calls(self) -> None:
        """End a turn of calls: open calls get an empty result, and media of results follow."""
        for call_id, name in self._waiting.items():
            self._tool(call_id, name, self._words("unanswered"))
        self._waiting.clear()
        self.written.extend(self._media)
        self._media.clear()

    def _assistant(self, message: Message) -> None:
        # What it drew or spoke is left out: it would only learn to write notes in place of pictures.
        text = "".join(item.text or "" for item in message.items) or self._readable(message, text_only)[0].text
        call, proof = message.function_call, str((message.extra or {}).get(PROOF) or "")
        thought = message.reasoning_content
        is_proven = isinstance(thought, str) and not call and bool(proof) and self.proven(proof)
        if not text and not call and not is_proven:
            return  # only reasoning that no service wants back
        if not self.written or self.written[-1].role != "assistant":
            self.close_calls()
            self.written.append(Turn("assistant", [ContentItem(text="")]))
        turn = self.written[-1]
        if is_proven:
            turn.said.append(Thought(str(thought), proof))
        if text:
            turn.said.append(text)
            if proof and not call and not is_proven and self.proven(proof):
                turn.said.append(Thought("", proof))
            before = turn.text
            turn.items = [ContentItem(text=f"{before}\n{text}" if before and before[-1] != "\n" else before + text)]
        if call:
            said = str((message.extra or {}).get("function_id") or "")
            call_id = said if said and said not in self._waiting else f"call_{token_hex(8)}"
            turn.calls.append(Call(call_id, call.name, call.arguments))
            turn.said.append(Made(turn.calls[-1], proof if proof and self.proven(proof) else ""))
            self._waiting[call_id] = call.name

    def _result(self, message: Message) -> None:
        name = str(message.name)
        call_id = self._answered(str((message.extra or {}).get("function_id") or ""), name)
        items = self._readable(message)
        text = "".join(item.text or "" for item in items)
        if call_id is None:
            self.close_calls()
            self.written.append(Turn("user", [ContentItem(text=self._words("orphan", name) + text)]))
        else:
            inside = [item for item in items if item.type != "text" and self.within_results(item)]
            self._tool(call_id, name, text, inside, failed=bool((message.extra or {}).get("failed")))
            items = [item for item in items if item not in inside]
        more = [item for item in items if item.type != "text"]
        if more:
            self._media.append(Turn("user", [ContentItem(text=self._words("brought", name)), *more]))

    def _answered(self, call_id: str, name: str) -> str | None:
        """The call that a result belongs to: by id, else the first open call of that name."""
        same_name = (key for key, called in self._waiting.items() if called == name)
        key = call_id if call_id in self._waiting else next(same_name, None)
        if key is not None:
            del self._waiting[key]
        return key

    def _tool(
        self, call_id: str, name: str, text: str, media: Sequence[ContentItem] = (), *, failed: bool = False
    ) -> None:
        self.written.append(Turn("tool", [ContentItem(text=text), *media], call_id=call_id, name=name, failed=failed))

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


def _unproven(proof: str) -> bool:
    del proof
    return False


def text_only(item: ContentItem) -> bool:
    """What a text model takes beside text: nothing."""
    del item
    return False


_NAME = re.compile(r"data:[^,]{0,400}?;name=([^;,]+)")
_KINDS: dict[str, dict[str, str]] = {
    "en": {"image": "picture", "audio": "recording", "video": "video", "file": "file"},
    "zh": {"image": "图片", "audio": "录音", "video": "视频", "file": "文件"},
}


def note(item: ContentItem, lang: Lang = "en") -> str:
    """The text in place of an item that a model cannot take: `[picture sky.png]`; text stays text."""
    if item.type == "text":
        return item.text or ""
    word = _KINDS[lang][item.type]
    name = item_name(item)
    return f"[{word} {name}]" if name else f"[{word}]"


def item_name(item: ContentItem) -> str:
    """The decoded file name in an item's address, else its host; empty without either."""
    address = item.value
    if not isinstance(address, str):
        return ""
    if address.startswith("data:"):
        given = _NAME.match(address)
        return basename(unquote(given[1])) if given else ""
    if "://" not in address:
        return unquote(basename(address.replace("\\", "/").rstrip("/")))
    parts = urlsplit(address)
    return unquote(basename(parts.path.rstrip("/"))) or parts.hostname or ""
