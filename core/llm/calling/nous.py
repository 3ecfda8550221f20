"""The Nous template (Hermes, Qwen 2.5 and later): `<tool_call>` and `<tool_response>` tags around JSON.

Source of the format: https://github.com/NousResearch/Hermes-Function-Calling
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from core.llm.calling.call_text import CallText, may_be_mended, read_calls
from core.llm.calling.neutral import neutral_items, neutral_json
from core.llm.calling.reply_reader import ReplyReader
from core.llm.calling.tag_scanner import TAGGED
from core.llm.request import is_off, named_choice
from core.messages.content import ContentItem
from core.messages.json_text import compact
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.llm.calling.tag_scanner import Piece
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
_ONE = {
    "en": "\n\nCall one function at a time, and wait for its result.",
    "zh": "\n\n每次只调用一个函数，并等待其结果。",
}


class NousTemplate:
    """Tools in the system message, calls and results as tagged text."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request with tools, calls and results as text."""
        messages = [*_merged(request.messages)]
        tools = tools_text(request.functions)
        if choice := named_choice(request):
            tools += _ONLY[request.lang].format(name=choice)
        elif is_off(request.generate.get("parallel_function_calls")):
            tools += _ONE[request.lang]
        return replace(request, messages=tuple(with_system(messages, tools)), functions=())

    def reader(self, request: ChatRequest) -> ReplyReader:
        """Parses tagged calls, and a reply that is only a call without its tag."""
        return ReplyReader(request, TAGGED, TaggedBody())


class TaggedBody:
    """Calls between `<tool_call>` and `</tool_call>`."""

    def read(self, piece: Piece, request: ChatRequest, *, cut: bool) -> tuple[list[CallText], str]:
        """The calls; there is no text after them."""
        mend = piece.closed or (not cut and may_be_mended(piece.text))
        return read_calls(piece.text, request.functions, mend=mend), ""

    def with_tags(self, piece: Piece) -> str:
        """The piece with its tags."""
        return f"<tool_call>{piece.text}{'</tool_call>' if piece.closed else ''}"


def tools_text(functions: Sequence[dict[str, object]]) -> str:
    """The block of the system message that describes the tools."""
    lines = (neutral_json(compact({"type": "function", "function": function})) for function in functions)
    return _TOOLS.format(tools="\n".join(lines))


def with_system(messages: list[Message], text: str) -> list[Message]:
    """The messages with `text` at the end of the system message, which is added if there is none."""
    if messages and messages[0].role == SYSTEM:
        items = [*messages[0].items, ContentItem(text="\n\n" + text)]
        return [Message(SYSTEM, items), *messages[1:]]
    return [Message(SYSTEM, [ContentItem(text=text)]), *messages]


def _merged(messages: Sequence[Message]) -> Iterator[Message]:
    """Calls as assistant text, results as user text; neighbours of one role are joined."""
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
            USER,
            [
                ContentItem(text="<tool_response>\n"),
                *neutral_items(message.items),
                ContentItem(text="\n</tool_response>"),
            ],
        )
    if message.role == USER:
        return Message(USER, neutral_items(message.items), name=message.name)
    if message.role != ASSISTANT:
        return message
    given = message.items
    items = neutral_items(given)
    call = message.function_call
    if call is None:
        changed = any(new is not old for new, old in zip(items, given, strict=True))
        return message.model_copy(update={"content": items}) if changed else message
    name, arguments = compact(call.name), neutral_json(call.arguments.strip() or "{}")
    text = f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'
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
