"""The first Qwen template: `✿FUNCTION✿`, `✿ARGS✿`, `✿RESULT✿` and `✿RETURN✿` in one running answer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from core.llm.calling.call_text import CallText, arguments_text, may_be_mended, properties_of, unreadable
from core.llm.calling.neutral import neutral, neutral_items, neutral_json
from core.llm.calling.nous import with_system
from core.llm.calling.reply_reader import ReplyReader
from core.llm.calling.tag_scanner import ARGS, FUNCTION, MARKED, RESULT, RETURN
from core.llm.request import is_on, merge_generate, named_choice
from core.messages.content import ContentItem
from core.messages.json_text import compact, read_value
from core.messages.message import ASSISTANT, USER, Message
from core.messages.message import FUNCTION as TOOL_ROLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.languages import Lang
    from core.llm.calling.tag_scanner import Piece
    from core.llm.request import ChatRequest
    from core.messages.events import Event
    from core.messages.message import FunctionCall

ONE_TOOL: Mapping[Lang, str] = {
    "en": """# Tools

## You have access to the following tools:

{tools}

## When you need to call a tool, please insert the following command in your reply, \
which can be called zero or multiple times according to your needs:

✿FUNCTION✿: The tool to use, should be one of [{names}]
✿ARGS✿: The input of the tool
✿RESULT✿: Tool results
✿RETURN✿: Reply based on tool results. Images need to be rendered as ![](url)""",
    "zh": """# 工具

## 你拥有如下工具：

{tools}

## 你可以在回复中插入零次、一次或多次以下命令以调用工具：

✿FUNCTION✿: 工具名称，必须是[{names}]之一。
✿ARGS✿: 工具输入
✿RESULT✿: 工具结果
✿RETURN✿: 根据工具结果进行回复，需将图片用![](url)渲染出来""",
}
TOOLS: Mapping[Lang, str] = {
    "en": """# Tools

## You have access to the following tools:

{tools}

## Insert the following command in your reply when you need to call N tools in parallel:

✿FUNCTION✿: The name of tool 1, should be one of [{names}]
✿ARGS✿: The input of tool 1
✿FUNCTION✿: The name of tool 2
✿ARGS✿: The input of tool 2
...
✿FUNCTION✿: The name of tool N
✿ARGS✿: The input of tool N
✿RESULT✿: The result of tool 1
✿RESULT✿: The result of tool 2
...
✿RESULT✿: The result of tool N
✿RETURN✿: Reply based on tool results. Images need to be rendered as ![](url)""",
    "zh": """# 工具

## 你拥有如下工具：

{tools}

## 你可以在回复中插入以下命令以并行调用N个工具：

✿FUNCTION✿: 工具1的名称，必须是[{names}]之一
✿ARGS✿: 工具1的输入
✿FUNCTION✿: 工具2的名称
✿ARGS✿: 工具2的输入
...
✿FUNCTION✿: 工具N的名称
✿ARGS✿: 工具N的输入
✿RESULT✿: 工具1的结果
✿RESULT✿: 工具2的结果
...
✿RESULT✿: 工具N的结果
✿RETURN✿: 根据工具结果进行回复，需将图片用![](url)渲染出来""",
}
TOOL: Mapping[Lang, str] = {
    "en": "### {human}\n\n{name}: {description} Parameters: {parameters} {args_format}",
    "zh": "### {human}\n\n{name}: {description} 输入参数：{parameters} {args_format}",
}
ARGS_FORMAT: Mapping[Lang, str] = {"en": "Format the arguments as a JSON object.", "zh": "此工具的输入应为JSON对象。"}
CODE_FORMAT: Mapping[Lang, str] = {
    "en": "Enclose the code within triple backticks (`) at the beginning and end of the code.",
    "zh": "此工具的输入应为Markdown代码块。",
}


CODE_TOOL: Final = "code_interpreter"
_ANSWER: Final = f"\n{RETURN}: "


@dataclass(slots=True)
class QwenHistory:
    """Rewrites a conversation so that calls, results and answer are one text of the assistant's."""

    written: list[Message] = field(default_factory=list[Message])
    _answer: list[ContentItem] | None = None  # items of the open assistant message
    _thoughts: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, messages: Iterable[Message], called: str = "") -> list[Message]:
        """The rewritten messages; with `called`, the beginning of a call of that tool is appended."""
        history = cls()
        for message in messages:
            history.add(message)
        if called:
            history.say(f"{FUNCTION}: {called}")
        elif history.awaits_answer():  # a colon would merge into one token with the next word
            history.replace_last(f"\n{RETURN}")
        history.settle()
        return history.written

    def add(self, message: Message) -> None:
        """Add a message."""
        if message.role == TOOL_ROLE:
            self._add_result(message)
        elif message.role == ASSISTANT:
            self._add_answer(message)
        else:
            self.settle()
            items = neutral_items(message.items) if message.role == USER else None
            self.written.append(message if items is None else Message(USER, items, name=message.name))

    def awaits_answer(self) -> bool:
        """Whether a result is last."""
        return bool(self._answer) and self._answer[-1].text == _ANSWER

    def replace_last(self, text: str) -> None:
        """Replace the last item."""
        if self._answer:
            self._answer[-1] = ContentItem(text=text)

    def say(self, text: str) -> None:
        """Add text on a new line."""
        before = self._answer[-1].text if self._answer else None
        apart = "\n" if self._answer and not (before or "").endswith("\n") else ""
        self._items().append(ContentItem(text=apart + text))

    def settle(self) -> None:
        """Close the open assistant message."""
        if self._answer:
            thought = "\n".join(self._thoughts) or None
            self.written.append(Message(ASSISTANT, self._answer, reasoning_content=thought))
        self._answer, self._thoughts = None, []

    def _items(self) -> list[ContentItem]:
        if self._answer is None:
            self._answer = []
        return self._answer

    def _add_result(self, message: Message) -> None:
        if self.awaits_answer():  # another result of the same turn
            self._items().pop()
        self.say(f"{RESULT}: ")
        self._items().extend([*neutral_items(message.items), ContentItem(text=_ANSWER)])

    def _add_answer(self, message: Message) -> None:
        if isinstance(message.reasoning_content, str) and message.reasoning_content:
            self._thoughts.append(message.reasoning_content)
        if message.items:
            if self._answer and not self.awaits_answer() and not (self._answer[-1].text or "").endswith("\n"):
                self._answer.append(ContentItem(text="\n"))
            self._items().extend(neutral_items(message.items))
        if message.function_call is not None:
            self.say(f"{FUNCTION}: {message.function_call.name}\n{ARGS}: {_arguments_text(message.function_call)}")


def _arguments_text(call: FunctionCall) -> str:
    """The arguments in the form that the prompt asks for: code in a fence, all else as JSON."""
    if call.name == CODE_TOOL:
        arguments: object = json.loads(call.arguments)
        if isinstance(arguments, dict) and list(cast("dict[str, Any]", arguments)) == ["code"]:
            return f"\n```py\n{cast('dict[str, Any]', arguments)['code']}\n```"
    return neutral_json(call.arguments.strip() or "{}")


_CALL: Final = re.compile(rf"\s*:?[ \t]*([^\n✿]*)\s*(?:{ARGS}\s*:?\s*)?(.*)", re.DOTALL)
_FENCE: Final = re.compile(r"```([\w+-]*+)[ \t]*+\n?(.*)```(.*)", re.DOTALL)
# An unterminated comment is matched whole and kept, else each `<!--` would be searched to the end again.
_COMMENT: Final = re.compile(r"<!--(?:.*?-->|(.*+))", re.DOTALL)


class QwenTemplate:
    """Tools in the system message; calls, results and the answer are one text of the assistant's."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request with tools, calls and results as text; it may end with the beginning of the answer."""
        parallel = is_on(request.generate.get("parallel_function_calls"))
        tools = tools_text(request.functions, request.lang, parallel=parallel)
        messages = with_system(QwenHistory.of(request.messages, named_choice(request)), tools)
        generate = merge_generate(request.generate, {"stop": [RESULT, RETURN]})
        return replace(request, messages=tuple(messages), functions=(), generate=generate)

    def reader(self, request: ChatRequest) -> ReplyReader:
        """Parses marked calls, and a reply that is only a call without its marks."""
        return MarkedReader(request)


class MarkedReader(ReplyReader):
    """Parses an answer that continues the prepared messages."""

    def __init__(self, request: ChatRequest) -> None:
        choice = named_choice(request)
        answers_result = bool(request.messages) and request.messages[-1].role == TOOL_ROLE and not choice
        super().__init__(request, MARKED, MarkedBody(), after_tag=answers_result)
        self._begun = f"{FUNCTION}: {choice}\n" if choice else ""
        self._start = ""

    def feed(self, text: str) -> list[Event]:
        """The events that more text makes certain."""
        if self._begun:  # the prompt ends with the tool's name: arguments must follow
            self._start += text
            start = self._start.lstrip()
            if start != ARGS and ARGS.startswith(start):
                return []
            text, self._begun = (self._begun if start.startswith(ARGS) else "") + self._start, ""
        return super().feed(text)

    def close(self, *, cut: bool = False) -> list[Event]:
        """The remaining events."""
        held = super().feed(self._start) if self._begun and self._start else []
        return held + super().close(cut=cut)


class MarkedBody:
    """Calls from `✿FUNCTION✿` to the next mark or the end."""

    def read(self, piece: Piece, request: ChatRequest, *, cut: bool) -> tuple[list[CallText], str]:
        """The call, and the text after its arguments."""
        found = _CALL.fullmatch(piece.text)
        name, text = (found.group(1).strip().strip("\"'`"), found.group(2).strip()) if found else ("", piece.text)
        if not name:
            return ([unreadable(piece.text)] if piece.text.strip(": \n") else []), ""
        mend = piece.closed or (not cut and may_be_mended(_without_comments(text)))
        try:
            arguments, after = _arguments(text, list(properties_of(name, request.functions)), mend=mend)
        except (ValueError, RecursionError):
            return [CallText(name, text, readable=False)], ""
        return [CallText(name, arguments)], _without_comments(after).lstrip("}]) \n").rstrip()

    def with_tags(self, piece: Piece) -> str:
        """The piece with its mark."""
        return f"{FUNCTION}{piece.text}".rstrip()


def tools_text(functions: Sequence[Mapping[str, Any]], lang: Lang, *, parallel: bool = False) -> str:
    """The block of the system message that describes the tools."""
    names = ",".join(map(_name, functions))
    tools = "\n\n".join(_described(function, lang) for function in functions)
    return (TOOLS if parallel else ONE_TOOL)[lang].format(tools=tools, names=names)


def _name(function: Mapping[str, Any]) -> str:
    return str(function.get("name_for_model") or function.get("name"))


def _described(function: Mapping[str, Any], lang: Lang) -> str:
    name = _name(function)
    args_format = str(function.get("args_format") or (CODE_FORMAT if name == CODE_TOOL else ARGS_FORMAT)[lang])
    text = TOOL[lang].format(
        human=neutral(str(function.get("name_for_human") or name)),
        name=name,
        description=neutral(str(function.get("description", ""))),
        parameters=neutral_json(compact(function.get("parameters") or {})),
        args_format=neutral(args_format),
    )
    return text.rstrip()


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: "" if found[1] is None else found[0], text)


def _arguments(text: str, properties: Sequence[str], *, mend: bool) -> tuple[str, str]:
    """The arguments as JSON text, and the text after them.

    Raises:
        ValueError: They cannot be parsed.
    """
    if not text:
        return "{}", ""
    fence = _FENCE.fullmatch(text)
    if fence is not None:
        kind, code, after = fence.groups()
        if kind.lower() not in {"", "json"} or not code.lstrip().startswith("{"):
            field = properties[0] if len(properties) == 1 else "code"
            return compact({field: code.removesuffix("\n")}), after
        text = f"{code.strip()}{after}"
    try:
        end = json.JSONDecoder(strict=False).raw_decode(text)[1]
    except json.JSONDecodeError:
        if not mend:
            raise
        end = max(text.rfind("}"), text.rfind("]")) + 1 or len(text)
    return arguments_text(read_value(text[:end])), text[end:]
