"""An agent that thinks in text: for models that know no tool calls, and for who wants to read each step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from core.agents.base import Agent
from core.agents.react_parser import Action, Answer, OutputParser, Piece, StepParser, Thought
from core.agents.react_prompt import STOP, instructed
from core.agents.react_small import BEGUN, begun
from core.agents.tool_loop import MOST_MODEL_CALLS, ToolLoop, most_model_calls
from core.errors import ModelServiceError
from core.llm.calling.call_text import CallText, call_events
from core.llm.calling.reply_reader import UNREADABLE
from core.llm.request import call_ids, merge_generate, named_choice
from core.messages.events import Event, MessageFinished, ReasoningDelta, TextDelta
from core.messages.json_text import compact, read_object
from core.tools.base import files_of
from core.tools.code_text import extract_code

if TYPE_CHECKING:
    from core.agents.given_tools import GivenTool
    from core.llm.base import BaseChatModel
    from core.llm.request import ChatRequest, Lang, Stream
    from core.messages.message import Message

ParserMaker: TypeAlias = Callable[[Collection[str]], OutputParser]
"""Makes a parser for one reply; it is given the names of the tools."""

_BEYOND = 80  # characters after an action that may be its end; a model that writes more makes up what comes next
_OWN_KEYS = ("function_choice", "parallel_function_calls", "fncall_prompt_type", "use_raw_api")


class ReActChat(Agent):
    """Thinks, acts, observes, until it answers. Thoughts are reasoning, actions are calls like those of any agent.

    Args:
        function_list: Tools, as of every agent.
        llm: Any model; its own tool calling is not used.
        system_message: What it is told first.
        name: Who speaks.
        description: What it is good at.
        max_iteration: The most model calls of one reply, 1 to 99.
        output_parser: What reads a reply; made anew for each.

    Raises:
        SettingsError: A tool or a model cannot be made of what was given, or the limit makes no sense.
    """

    def __init__(  # noqa: PLR0913 - the seed's five, and two of our own by name
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: BaseChatModel | Mapping[str, Any] | str | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        *,
        max_iteration: int = MOST_MODEL_CALLS,
        output_parser: ParserMaker = StepParser,
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description)
        self.max_iteration = most_model_calls(max_iteration)
        self.output_parser = output_parser

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        loop = ToolLoop(
            StepModel(self._model(), self.output_parser),
            self.function_map,
            speaker=self.name,
            generate=self.extra_generate_cfg,
            most_calls=self.max_iteration,
        )
        kwargs.setdefault("files", files_of(messages))
        return loop.reply(messages, lang=lang, **self._asking(kwargs))


class StepModel:
    """A model that calls tools by writing steps.

    Args:
        model: Who writes; it is told of no tools but in words.
        parser: Makes what reads a reply.
    """

    def __init__(self, model: BaseChatModel, parser: ParserMaker = StepParser) -> None:
        self._model = model
        self._parser = parser

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """The model's own."""
        return self._model.generate_cfg

    def stream(self, request: ChatRequest) -> Stream:
        """The next step as events: thoughts as reasoning, and a call or the answer.

        Without tools the model is asked as any other.

        Raises:
            ModelServiceError: The model failed.
        """
        return self._steps(request) if request.functions else self._model.stream(request)

    async def _steps(self, request: ChatRequest) -> Stream:
        parser = self._parser([str(function["name"]) for function in request.functions])
        reading = _Reading(request, parser, begun=begun(request) if self._model.small else "")
        ended = False
        async with aclosing(self._model.stream(self._in_words(request))) as events:
            try:
                async for event in events:
                    if isinstance(event, MessageFinished):
                        for read in reading.close(cut=event.reason != "stop"):
                            yield read
                        yield replace(event, reason="calls") if reading.acted else event
                        ended = True
                        continue
                    for read in reading.feed(event.text) if isinstance(event, TextDelta) else (event,):
                        yield read
                    if reading.beyond > _BEYOND:
                        break
            except ModelServiceError:
                for read in reading.close(cut=True):  # what had come is kept
                    if isinstance(read, TextDelta | ReasoningDelta):
                        yield read
                raise
        if not ended:
            yield MessageFinished("calls")

    def _in_words(self, request: ChatRequest) -> ChatRequest:
        generate = {key: value for key, value in request.generate.items() if key not in _OWN_KEYS}
        choice = named_choice(replace(request, generate={**self.generate_cfg, **request.generate}))
        messages = instructed(request, choice, small=self._model.small)
        return replace(
            request, messages=tuple(messages), functions=(), generate=merge_generate(generate, {"stop": [STOP]})
        )


class _Reading:
    """One reply on its way from text to events.

    Args:
        request: What was asked.
        parser: What reads it.
        begun: Its first words, where they stand in the prompt.
    """

    def __init__(self, request: ChatRequest, parser: OutputParser, *, begun: str) -> None:
        self.acted = False
        self.beyond = 0  # characters that came after the action
        self._parser = parser
        self._schemas: dict[str, Mapping[str, Any]] = {
            str(function["name"]): function.get("parameters") or {} for function in request.functions
        }
        taken = call_ids(request.messages)
        self._ids = (str(number) for number in count(1) if str(number) not in taken)
        # "Thought:" stands on a line of its own: a model that repeats it is understood, too.
        self._first = parser.feed(f"{begun}\n" if begun == BEGUN else begun) if begun else []

    def feed(self, text: str) -> list[Event]:
        """The events of more text."""
        if self.acted:
            self.beyond += len(text.strip())
            return []
        first, self._first = self._first, []
        return self._events([*first, *self._parser.feed(text)])

    def close(self, *, cut: bool) -> list[Event]:
        """The rest."""
        return [] if self.acted else self._events([*self._first, *self._parser.close(cut=cut)])

    def _events(self, pieces: Sequence[Piece]) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            if isinstance(piece, Thought):
                events.append(ReasoningDelta(piece.text))
            elif isinstance(piece, Answer):
                events.append(TextDelta(piece.text))
            elif not self.acted:
                self.acted = True
                events += call_events([self._call(piece)], self._ids)
        return events

    def _call(self, piece: Piece) -> CallText:
        if isinstance(piece, Action):
            return CallText(piece.name, arguments_of(piece.input, self._schemas.get(piece.name, {})))
        return CallText(UNREADABLE, piece.text, readable=False)


def arguments_of(text: str, schema: Mapping[str, Any]) -> str:
    """The arguments of a call as JSON text.

    A text that is no JSON object is the value of the one text a tool takes, if it takes one; `code` is taken out of
    its fence. Else it stays as it is, and the tool's runner says what is wrong with it.
    """
    try:
        return compact(read_object(text))
    except ValueError:
        pass
    if not text.strip():
        return "{}"
    fields: Mapping[str, Any] = schema.get("properties") or {}
    needed = [name for name in fields if name in (schema.get("required") or ())]
    name = needed[0] if len(needed) == 1 else next(iter(fields), "") if len(fields) == 1 else ""
    if not name or fields[name].get("type", "string") != "string" or text.lstrip().startswith(("{", "[")):
        return text
    value = extract_code(text) if name == "code" else _unquoted(text.strip())
    return compact({name: value})


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text
