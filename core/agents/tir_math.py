"""Text-integrated reasoning: a model that writes Python between its words, and reads what it prints."""

from __future__ import annotations

import json
import re
from contextlib import aclosing
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from core.agents.document_prompts import REASON_WITH_CODE
from core.agents.fn_call import FnCallAgent
from core.errors import SettingsError, ToolError
from core.llm.request import ChatRequest, merge_generate
from core.messages.events import CallDelta, CallStarted, MessageFinished, TextDelta, ToolFinished
from core.messages.message import ASSISTANT, FUNCTION, USER, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.given_tools import GivenTool
    from core.llm.base import BaseChatModel
    from core.llm.request import Lang, Stream

_ROUNDS = 5
_STOP = "```output"
_BEGINS = re.compile(r"^[ \t]*```[ \t]*(?:python|py)[ \t]*\n", re.MULTILINE | re.IGNORECASE)
_ENDS = re.compile(r"^[ \t]*```", re.MULTILINE)


class TIRMathAgent(FnCallAgent):
    """Solves by reasoning in words and running the Python that stands between them.

    The first ```python block of what the model writes is run in the sandbox as a call of `code_interpreter`, about
    which the guard decides as about any; the output goes back as ```output, and the model goes on. What it writes after
    the block, before it has read the output, is left out: it would be a guess. A block that is not closed is run where
    the model has ended by itself, and stays text where it was cut off. The last round is asked for an answer without
    code; blocks in it stay text. A reply without a block is the answer.

    Args:
        function_list: What runs the code, where it is not `code_interpreter`: one tool that runs code.
        llm: The model.
        system_message: Instead of the words that ask for code and a boxed answer.
        name: Who speaks.
        description: What it is good at.
        max_iteration: Model calls of one reply, 1 to 99.

    Raises:
        SettingsError: There is more than one tool, or it does not run code.
        ToolError: There is no sandbox on this machine (key `sandbox_off`); it comes while the reply is read.
    """

    def __init__(
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: BaseChatModel | Mapping[str, Any] | str | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        *,
        max_iteration: int = _ROUNDS,
    ) -> None:
        tools = function_list or ["code_interpreter"]
        super().__init__(tools, llm, system_message, name, description, max_iteration=max_iteration)
        if [tool.runs_code for tool in self.function_map.values()] != [True]:
            raise SettingsError(
                "TIRMathAgent takes one tool, which runs code.", hint="Leave out function_list for `code_interpreter`."
            )

    def _system_message(self, lang: Lang) -> str:
        return REASON_WITH_CODE[lang] if self.system_message is None else self.system_message

    async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        async with aclosing(super()._stream_reply(messages, lang=lang, **kwargs)) as events:
            async for event in events:
                yield event
                if isinstance(event, ToolFinished) and (event.message.extra or {}).get("failed") == "sandbox_off":
                    raise ToolError(event.message.get_text_content(), key="sandbox_off", tool=self._tool)

    def _asked_model(self) -> CodeInText:
        return CodeInText(self._model(), self._tool)

    @property
    def _tool(self) -> str:
        (tool,) = self.function_map
        return tool


class CodeInText:
    """A model as the loop knows it, whose calls are blocks of Python in its text.

    Args:
        model: It.
        tool: What the blocks are calls of.
    """

    def __init__(self, model: BaseChatModel, tool: str) -> None:
        self._below, self._tool = model, tool

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """Its own settings."""
        return self._below.generate_cfg

    def stream(self, request: ChatRequest) -> Stream:
        """Its next turn; the block it writes is a call, its last turn is text alone."""
        generate = {name: value for name, value in request.generate.items() if name != "function_choice"}
        last = request.generate.get("function_choice") == "none"
        if not last:
            generate = merge_generate(generate, {"stop": [_STOP]})
        asked = replace(request, messages=tuple(self._in_text(request.messages)), functions=(), generate=generate)
        events = self._below.stream(asked)
        return events if last else self._with_call(events)

    def _in_text(self, messages: Sequence[Message]) -> list[Message]:
        """The conversation with calls as blocks of the model's text, and results as outputs."""
        told: list[Message] = []
        for message in messages:
            text = message.get_text_content()
            if message.role == FUNCTION:
                told.append(Message(USER, _fenced("output", text)))
                continue
            if message.function_call is not None:
                text = _fenced("python", _code(message.function_call.arguments))
                if told and told[-1].role == ASSISTANT:
                    text = f"{told.pop().get_text_content()}\n{text}"
                told.append(Message(ASSISTANT, text))
                continue
            told.append(message)
        return told

    async def _with_call(self, events: Stream) -> Stream:
        written = _Written()
        finish: MessageFinished | None = None
        async with aclosing(events) as source:
            async for event in source:
                if isinstance(event, TextDelta):
                    if text := written.feed(event.text):
                        yield TextDelta(text)
                    if written.goes_on:
                        break  # as if it knew the output
                elif isinstance(event, MessageFinished):
                    finish = event
                else:
                    yield event
        code = written.code(cut=finish is not None and finish.reason == "length")
        if code is None:
            if rest := written.rest():
                yield TextDelta(rest)
            yield finish or MessageFinished("stop")
            return
        new_id = f"call_{token_hex(8)}"
        yield CallStarted(new_id, self._tool)
        yield CallDelta(new_id, json.dumps({"code": code}, ensure_ascii=False))
        yield MessageFinished("calls", finish.usage if finish is not None else None)


class _Written:
    """The text of a turn so far, with its first block."""

    def __init__(self) -> None:
        self._text, self._told = "", 0
        self._begins: int | None = None  # where the code does
        self._ends: re.Match[str] | None = None

    def feed(self, text: str) -> str:
        """More of it; what can be told."""
        self._text += text
        if self._begins is None:
            found = _BEGINS.search(self._text)
            safe = found.start() if found else _safe(self._text)
            self._begins = found.end() if found else None
        else:
            safe = self._told
        if self._begins is not None and self._ends is None:
            self._ends = _ENDS.search(self._text, self._begins)
        safe = max(safe, self._told)
        told, self._told = self._text[self._told : safe], safe
        return told

    @property
    def goes_on(self) -> bool:
        """Whether words follow the block."""
        return self._ends is not None and bool(self._text[self._ends.end() :].strip())

    def code(self, *, cut: bool) -> str | None:
        """What stands in the block; None where there is none, or the reply was cut off within it."""
        if self._begins is None or (cut and self._ends is None):
            return None
        return self._text[self._begins : self._ends.start() if self._ends is not None else None]

    def rest(self) -> str:
        """What was not told."""
        return self._text[self._told :]


def _safe(text: str) -> int:
    """Up to where nothing can be the beginning of a block: a last line that may become its fence waits."""
    line = text.rfind("\n") + 1
    start = text[line:].lstrip(" \t")
    return line if not start or start.startswith("`") or "```".startswith(start) else len(text)


def _fenced(kind: str, text: str) -> str:
    """In a fence that nothing in the text ends."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text.rstrip()}\n{fence}"


def _code(arguments: str) -> str:
    try:
        given: Any = json.loads(arguments)
    except ValueError:
        return arguments
    return str(given.get("code", "")) if isinstance(given, dict) else arguments  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - JSON
