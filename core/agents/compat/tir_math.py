"""Text-integrated reasoning: a model that writes Python between its words, and reads what it prints."""

from __future__ import annotations

import json
import re
from contextlib import aclosing
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from core.agents.basic import FnCallAgent
from core.errors import SettingsError, ToolError
from core.llm.request import ChatRequest, merge_generate
from core.messages.events import CallDelta, CallStarted, MessageFinished, TextDelta, ToolFinished
from core.messages.message import ASSISTANT, FUNCTION, USER, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.tools import GivenTool
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.open_model import GivenModel
    from core.llm.request import Stream

REASON_WITH_CODE: Mapping[Lang, str] = {
    "en": "Reason step by step. Where something is to be reckoned, write Python in a block that begins with ```python "
    "and ends with ```, and print what you need; then stop and wait: what it prints comes as ```output. Go on from "
    "there. When you are sure, give the final answer in \\boxed{}.",
    "zh": "请逐步推理。需要计算时，在以 ```python 开头、以 ``` 结尾的代码块中编写 Python，并打印所需的结果；"
    "然后停下等待：程序的输出会以 ```output 给出，再据此继续。确定之后，将最终答案写在 \\boxed{} 中。",
}


_ROUNDS = 5
_STOP = "```output"
_FENCE = "```"
_BEGINS = re.compile(r"[ \t]*```[ \t]*(?:python|py)[ \t]*\n", re.IGNORECASE)


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
        llm: GivenModel | None = None,
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
    """Wraps a model so that the Python blocks in its text become tool calls.

    Args:
        model: The model.
        tool: The tool that runs the code.
    """

    def __init__(self, model: BaseChatModel, tool: str) -> None:
        self._below, self._tool = model, tool

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """Its own settings."""
        return self._below.generate_cfg

    def stream(self, request: ChatRequest) -> Stream:
        """The next turn; a block in it becomes a call, except in the last turn."""
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
                        break  # it invents the output
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
    """The streamed text of a turn, with its first code block; reads each chunk once."""

    def __init__(self) -> None:
        self._line: list[str] = []  # the last line, as far as it has come and was not told
        self._lead = ""  # the first signs of it after white space
        self._plain = False  # whether that line was told: it begins no block
        self._begun = False
        self._code: list[str] = []  # the whole lines of the block
        self._ended = False
        self._untold: list[str] = []  # from the block's fence on
        self.goes_on = False
        """Whether words follow the block."""

    def feed(self, text: str) -> str:
        """More text; returns what can be shown."""
        told: list[str] = []
        lines = _lines(text)
        for at, line in enumerate(lines):
            if self._begun:
                self._untold.append("".join(lines[at:]))
                self._in_block(lines[at:])
                break
            told.append(self._before(line))
        return "".join(told)

    def _before(self, line: str) -> str:
        """What can be shown of a line before the block: a line that may be the fence is held to its end."""
        ended = line.endswith("\n")
        if self._plain:
            self._plain = not ended
            return line
        self._hold(line)
        if ended:
            whole = self._taken()
            self._begun = bool(_BEGINS.fullmatch(whole))
            self._untold = [whole] if self._begun else []
            return "" if self._begun else whole
        if not self._lead or self._lead.startswith("`"):
            return ""
        self._plain = True
        return self._taken()

    def _in_block(self, lines: list[str]) -> None:
        if self._ended:
            self.goes_on = self.goes_on or any(line.strip() for line in lines)
            return
        for at, line in enumerate(lines):
            self._hold(line)
            if self._lead == _FENCE:
                self._ended = True
                after = ["".join(self._line).lstrip(" \t")[len(_FENCE) :], *lines[at + 1 :]]
                self.goes_on = any(part.strip() for part in after)
                return
            if line.endswith("\n"):
                self._code.append(self._taken())

    def _hold(self, line: str) -> None:
        self._line.append(line)
        if len(self._lead) < len(_FENCE):
            self._lead = (self._lead + line if self._lead else line.lstrip(" \t"))[: len(_FENCE)]

    def _taken(self) -> str:
        line, self._line, self._lead = "".join(self._line), [], ""
        return line

    def code(self, *, cut: bool) -> str | None:
        """The block's code; None where there is no block, or the reply was cut off within it."""
        if not self._begun or (cut and not self._ended):
            return None
        return "".join(self._code if self._ended else [*self._code, *self._line])

    def rest(self) -> str:
        """The text that was not shown."""
        return "".join(self._untold or self._line)


def _lines(text: str) -> list[str]:
    """The lines with their ends; the last may have none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _fenced(kind: str, text: str) -> str:
    """The text in a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text.rstrip()}\n{fence}"


def _code(arguments: str) -> str:
    try:
        given: Any = json.loads(arguments)
    except ValueError:
        return arguments
    return str(given.get("code", "")) if isinstance(given, dict) else arguments  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - JSON
