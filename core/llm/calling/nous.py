"""The Nous template (Hermes, Qwen 2.5 and later): `<tool_call>` and `<tool_response>` tags around JSON.

Source of the format: https://github.com/NousResearch/Hermes-Function-Calling
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from core.llm.calling.call_text import call_events, could_be_call, read_calls, untagged_call
from core.llm.calling.neutral import neutral, without_tokens
from core.llm.calling.tag_scanner import Piece, TagScanner
from core.llm.request import call_ids
from core.messages.content import ContentItem
from core.messages.events import Event, ReasoningDelta, TextDelta
from core.messages.json_text import compact
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from core.llm.request import ChatRequest

# The models were trained on exactly these words.
_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""

_ONLY = {
    "en": "\n\nCall the function {name} now, and no other.",
    "zh": "\n\n现在请调用函数 {name}，不要调用其他函数。",
}


class NousTemplate:
    """Tools in the system message, calls and results as tagged text."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request with everything about tools as text."""
        messages = [*_merged(request.messages)]
        tools = tools_text(request.functions)
        choice = str(request.generate.get("function_choice") or "auto")
        if choice not in {"auto", "none"}:
            tools += _ONLY[request.lang].format(name=choice)
        return replace(request, messages=tuple(with_system(messages, tools)), functions=())

    def reader(self, request: ChatRequest) -> NousReader:
        """Reads tagged calls, and a call that is the whole reply without its tag."""
        return NousReader([str(f.get("name")) for f in request.functions], call_ids(request.messages))


class NousReader:
    """Turns the text of one reply into events.

    Args:
        names: The tools on offer.
        taken: Call ids that the conversation already holds.
    """

    def __init__(self, names: Collection[str], taken: Collection[str]) -> None:
        self.calls = 0
        self._names = names
        self._ids = (str(number) for number in count(1) if str(number) not in taken)
        self._scanner = TagScanner()
        self._start: str | None = ""  # the reply so far, while all of it may be one untagged call

    def feed(self, text: str) -> list[Event]:
        """What is certain after more text."""
        if self._start is not None:
            self._start += text
            if could_be_call(self._start, self._names):
                return []
            text, self._start = self._start, None
        return self._events(self._scanner.feed(text))

    def close(self, *, cut: bool = False) -> list[Event]:
        """The rest, when no more text comes."""
        pieces: list[Piece] = []
        if self._start is not None:
            call = untagged_call(self._start, self._names, cut=cut)
            if call is not None:
                self.calls += 1
                return call_events([call], self._ids)
            pieces, self._start = self._scanner.feed(self._start), None
        return self._events([*pieces, *self._scanner.close()])

    def _events(self, pieces: list[Piece]) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            if piece.mode == "text":
                events.append(TextDelta(piece.text))
            elif piece.mode == "thought":
                events.append(ReasoningDelta(piece.text))
            else:
                events += self._call_events(piece)
        return events

    def _call_events(self, piece: Piece) -> list[Event]:
        calls = read_calls(piece.text, cut=piece.cut)
        if not calls:
            closing = "" if piece.cut else "</tool_call>"
            return [TextDelta(f"<tool_call>{piece.text}{closing}")] if piece.text.strip() else []
        self.calls += len(calls)
        return call_events(calls, self._ids)


def tools_text(functions: Sequence[dict[str, object]]) -> str:
    """The block of the system message that describes the tools."""
    lines = (compact({"type": "function", "function": function}) for function in functions)
    return _TOOLS.format(tools="\n".join(lines))


def with_system(messages: list[Message], text: str) -> list[Message]:
    """`text` at the end of the system message, which is made where there is none."""
    if messages and messages[0].role == SYSTEM:
        items = [*messages[0].items, ContentItem(text="\n\n" + text)]
        return [Message(SYSTEM, items), *messages[1:]]
    return [Message(SYSTEM, [ContentItem(text=text)]), *messages]


def _merged(messages: Sequence[Message]) -> Iterator[Message]:
    """Calls become assistant text, results user text; neighbours of one speaker become one message."""
    open_message: Message | None = None
    for message in messages:
        fresh = _as_text(message)
        if open_message is not None and _joins(open_message, fresh, message):
            open_message = _joined(open_message, fresh)
            continue
        if open_message is not None:
            yield open_message
        open_message = fresh
    if open_message is not None:
        yield open_message


def _as_text(message: Message) -> Message:
    if message.role == FUNCTION:
        return Message(
            USER, [ContentItem(text="<tool_response>\n"), *_data(message), ContentItem(text="\n</tool_response>")]
        )
    if message.role == USER:
        return Message(USER, [_harmless(item) for item in message.items], name=message.name)
    if message.role != ASSISTANT or message.function_call is None:
        return message
    call = message.function_call
    name, arguments = compact(call.name), call.arguments.strip() or "{}"
    text = f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'
    items = message.items
    gap = "\n" if items and items[-1].text and not items[-1].text.endswith("\n") else ""
    if gap:
        items = [*items, ContentItem(text=gap)]
    return Message(ASSISTANT, [*items, ContentItem(text=text)], reasoning_content=message.reasoning_content)


def _joins(before: Message, fresh: Message, original: Message) -> bool:
    both_assistant = before.role == fresh.role == ASSISTANT
    return both_assistant or (original.role == FUNCTION and _ends_with_result(before))


def _ends_with_result(message: Message) -> bool:
    last = message.items[-1].text if message.role == USER and message.items else None
    return last == "\n</tool_response>"


def _joined(before: Message, fresh: Message) -> Message:
    items = before.items
    if items and not (items[-1].text or "").endswith("\n"):
        items = [*items, ContentItem(text="\n")]
    thoughts = [m.reasoning_content for m in (before, fresh) if isinstance(m.reasoning_content, str)]
    return Message(before.role, [*items, *fresh.items], reasoning_content="\n".join(thoughts) or None)


def _data(message: Message) -> list[ContentItem]:
    return [ContentItem(text=neutral(item.text or "")) if item.type == "text" else item for item in message.items]


def _harmless(item: ContentItem) -> ContentItem:
    return ContentItem(text=without_tokens(item.text or "")) if item.type == "text" else item
