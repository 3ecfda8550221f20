"""The first Qwen template: `✿FUNCTION✿`, `✿ARGS✿`, `✿RESULT✿` and `✿RETURN✿` in one running answer."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from core.llm.calling.call_text import CallText, arguments_text, may_be_mended, unreadable
from core.llm.calling.neutral import neutral, neutral_json
from core.llm.calling.nous import with_system
from core.llm.calling.qwen_history import CODE_TOOL, QwenHistory
from core.llm.calling.qwen_words import ARGS_FORMAT, CODE_FORMAT, ONE_TOOL, TOOL, TOOLS
from core.llm.calling.reply_reader import ReplyReader
from core.llm.calling.tags import ARGS, FUNCTION, MARKED, RESULT, RETURN
from core.llm.calling.xml_calls import properties_of
from core.llm.request import is_on, merge_generate, named_choice
from core.messages.json_text import compact, read_value
from core.messages.message import FUNCTION as TOOL_ROLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.calling.tag_scanner import Piece
    from core.llm.request import ChatRequest, Lang
    from core.messages.events import Event

_CALL: Final = re.compile(rf"\s*:?[ \t]*([^\n✿]*)\s*(?:{ARGS}\s*:?\s*)?(.*)", re.DOTALL)
_FENCE: Final = re.compile(r"```([\w+-]*+)[ \t]*+\n?(.*)```(.*)", re.DOTALL)
# One that never ends is taken whole, and stays: else the end is looked for again from each beginning.
_COMMENT: Final = re.compile(r"<!--(?:.*?-->|(.*+))", re.DOTALL)


class QwenTemplate:
    """Tools in the system message; calls, results and the answer are one text of the assistant's."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request with everything about tools as text. It may end with the beginning of the answer."""
        parallel = is_on(request.generate.get("parallel_function_calls"))
        tools = tools_text(request.functions, request.lang, parallel=parallel)
        messages = with_system(QwenHistory.of(request.messages, named_choice(request)), tools)
        generate = merge_generate(request.generate, {"stop": [RESULT, RETURN]})
        return replace(request, messages=tuple(messages), functions=(), generate=generate)

    def reader(self, request: ChatRequest) -> ReplyReader:
        """Reads marked calls, and a call that is the whole reply without its marks."""
        return MarkedReader(request)


class MarkedReader(ReplyReader):
    """Reads an answer that goes on where the prepared messages ended."""

    def __init__(self, request: ChatRequest) -> None:
        choice = named_choice(request)
        answers_result = bool(request.messages) and request.messages[-1].role == TOOL_ROLE and not choice
        super().__init__(request, MARKED, MarkedBody(), after_tag=answers_result)
        self._begun = f"{FUNCTION}: {choice}\n" if choice else ""
        self._start = ""

    def feed(self, text: str) -> list[Event]:
        """What is certain after more text."""
        if self._begun:  # the prompt ends with the tool's name: only its arguments may come
            self._start += text
            start = self._start.lstrip()
            if start != ARGS and ARGS.startswith(start):
                return []
            text, self._begun = (self._begun if start.startswith(ARGS) else "") + self._start, ""
        return super().feed(text)

    def close(self, *, cut: bool = False) -> list[Event]:
        """The rest, when no more text comes."""
        held = super().feed(self._start) if self._begun and self._start else []
        return held + super().close(cut=cut)


class MarkedBody:
    """A call from `✿FUNCTION✿` to the next mark or the end."""

    def read(self, piece: Piece, request: ChatRequest, *, cut: bool) -> tuple[list[CallText], str]:
        """The call, and the text that follows its arguments."""
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

    def written(self, piece: Piece) -> str:
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
    """The arguments as JSON text, and what follows them.

    Raises:
        ValueError: They cannot be read.
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
