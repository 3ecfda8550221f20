"""`ReActChat`: thought, action, observation in text, for models without tool calls of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from core.agents.base import Agent
from core.agents.react_parser import Action, Answer, OutputParser, Piece, StepParser, Thought
from core.agents.tool_loop import MOST_MODEL_CALLS, ToolLoop, checked_model_calls
from core.errors import ModelServiceError
from core.llm.calling.call_text import CallText, call_events, without_mark
from core.llm.calling.json_schema import EXAMPLES, RESPOND, needed
from core.llm.calling.neutral import neutral, neutral_items, neutral_json
from core.llm.calling.nous import with_system
from core.llm.calling.reply_reader import UNREADABLE
from core.llm.request import call_ids, merge_generate, named_choice
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, ReasoningDelta, TextDelta
from core.messages.json_text import compact, read_object
from core.messages.message import ASSISTANT, FUNCTION, USER, FunctionCall, Message
from core.tools.arguments import extract_code
from core.tools.base import files_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.agents.tools import GivenTool
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.calling.json_schema import Example
    from core.llm.open_model import GivenModel
    from core.llm.request import ChatRequest, Stream

ParserMaker: TypeAlias = Callable[[Collection[str]], OutputParser]
"""Makes a parser for one reply; it is given the names of the tools."""
STOP = "\nObservation:"
STEP_PREFIX = "Thought:"
"""The first word of every step."""
_BEYOND = 80  # characters after an action; a model that writes more invents the observation
_OWN_KEYS = ("function_choice", "parallel_function_calls", "fncall_prompt_type", "use_raw_api")
_FORM: Mapping[Lang, str] = {
    "en": """Work towards the answer in steps. These tools are there for you:

{tools}

Write a step in exactly this form:

Thought: what you know so far, and what to do next
Action: the name of one tool, one of: {names}
Action Input: what you hand to it, as one JSON object

Stop there. What the tool gives back is told to you as an Observation; then comes the next step. \
Never write an Observation yourself.
As soon as you know the answer, or if no tool is of use, write instead:

Thought: why this is the answer
Final Answer: the answer, in the language of the question""",
    "zh": """请分步骤得出答案。你可以使用以下工具：

{tools}

每一步严格按照下面的格式书写：

Thought: 目前知道什么，接下来做什么
Action: 一个工具的名称，只能是其中之一：{names}
Action Input: 交给它的输入，一个 JSON 对象

写到这里就停下。工具返回的内容会以 Observation 告诉你，然后再写下一步。不要自己书写 Observation。
一旦知道答案，或者不需要任何工具，就改为书写：

Thought: 为什么这就是答案
Final Answer: 答案，使用提问所用的语言""",
}
_FORCED_ACTION: Mapping[Lang, str] = {
    "en": "\n\nThe next Action is {name}, and no other.",
    "zh": "\n\n下一个 Action 必须是 {name}，不能是其他工具。",
}
_SMALL_FORM: Mapping[Lang, str] = {
    "en": """You answer in steps. A tool is used by writing its name after "Action:" and its input after \
"Action Input:". An answer stands after "Final Answer:".
Tools:
{tools}

{examples}""",
    "zh": """你分步骤回答。要使用工具，就在 "Action:" 后写它的名称，在 "Action Input:" 后写它的输入。\
答案写在 "Final Answer:" 之后。
工具：
{tools}

{examples}""",
}
_NEEDS: Mapping[Lang, str] = {"en": "I need {name}.", "zh": "我需要 {name}。"}
_KNOWS: Mapping[Lang, str] = {"en": "I can answer this myself.", "zh": "我可以自己回答。"}
_ASKS: Mapping[Lang, str] = {"en": "Question: {question}", "zh": "问题：{question}"}


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

    def __init__(  # noqa: PLR0913 - Qwen-Agent's five, and two of our own by name
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: GivenModel | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        *,
        max_iteration: int = MOST_MODEL_CALLS,
        output_parser: ParserMaker = StepParser,
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description)
        self.max_iteration = checked_model_calls(max_iteration)
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
        return loop.reply(messages, lang=lang, **self._with_guard(kwargs))


class StepModel:
    """Wraps a model so that it calls tools by writing steps.

    Args:
        model: The model; its own tool calling is not used.
        parser: Makes the parser of a reply.
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
        reading = _StepReader(request, parser, begun=step_prefix(request) if self._model.small else "")
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
                for read in reading.close(cut=True):  # keep the text so far
                    if isinstance(read, TextDelta | ReasoningDelta):
                        yield read
                raise
        if not ended:
            yield MessageFinished("calls")

    def _in_words(self, request: ChatRequest) -> ChatRequest:
        generate = {key: value for key, value in request.generate.items() if key not in _OWN_KEYS}
        choice = named_choice(replace(request, generate={**self.generate_cfg, **request.generate}))
        messages = with_instructions(request, choice, small=self._model.small)
        return replace(
            request, messages=tuple(messages), functions=(), generate=merge_generate(generate, {"stop": [STOP]})
        )


class _StepReader:
    """Turns one streamed reply into events.

    Args:
        request: The request.
        parser: Parses the reply.
        begun: The reply's first words, if the prompt ends with them.
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
        self._first = parser.feed(f"{begun}\n" if begun == STEP_PREFIX else begun) if begun else []

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

    Text that is no JSON object becomes the value of the tool's only text parameter; `code` is taken out of its fence.
    Otherwise it stays as it is, and the tool's runner reports the error.
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


def with_instructions(request: ChatRequest, choice: str = "", *, small: bool = False) -> list[Message]:
    """The messages as steps in text, with the tools and the step format at the end of the system message.

    Args:
        request: The conversation with calls and results, and the tools.
        choice: The one tool that must be called.
        small: Whether the model follows examples better than rules; then its step is begun for it.
    """
    if small:
        text = small_instructions(request.functions, request.lang)
    else:
        names = ", ".join(str(function["name"]) for function in request.functions)
        text = _FORM[request.lang].format(tools="\n".join(map(_tool_line, request.functions)), names=names)
    if choice:
        text += _FORCED_ACTION[request.lang].format(name=choice)
    return with_system(as_steps(request.messages), text) + ([Message(ASSISTANT, step_prefix(request))] if small else [])


def as_steps(messages: Iterable[Message]) -> list[Message]:
    """The messages without calls and results: an assistant's steps as its text, observations as answers to it."""
    made: list[Message] = []
    step: list[str] = []
    thought = ""
    for message in messages:
        call = message.function_call
        if message.role != ASSISTANT:
            _add_step(made, step)
            thought = ""
            made.append(_observation(message) if message.role == FUNCTION else message)
        elif call is not None:
            step += [f"Thought: {thought}"] if thought else []
            step.append(_action(call))
            thought = ""
        elif not message.items and message.reasoning_content:
            thought = _plain(message.reasoning_content)
        elif any(item.type != "text" for item in message.items):
            _add_step(made, step)
            made.append(message)
        else:
            thought = ""
            step.append(message.get_text_content())
    _add_step(made, step)
    return made


def _tool_line(function: Mapping[str, Any]) -> str:
    schema = neutral_json(compact(function.get("parameters") or {}))
    return f"- {function['name']}: {function.get('description') or ''} Its input: {schema}"


def _add_step(made: list[Message], step: list[str]) -> None:
    if step:
        made.append(Message(ASSISTANT, "\n".join(step)))
        step.clear()


def _action(call: FunctionCall) -> str:
    if call.name != UNREADABLE:
        return f"Action: {call.name}\nAction Input: {call.arguments}"
    written = json.loads(call.arguments)
    return without_mark(written) if isinstance(written, str) else call.arguments


def _observation(result: Message) -> Message:
    """A result as a user message, with the model's special tokens neutralised."""
    return Message(USER, _as_content([ContentItem(text="Observation: "), *neutral_items(result.items)]))


def _as_content(items: list[ContentItem]) -> str | list[ContentItem]:
    texts = [item.text for item in items if item.text is not None]
    return "".join(texts) if len(texts) == len(items) else items


def _plain(content: str | list[ContentItem]) -> str:
    return content if isinstance(content, str) else "".join(item.text or "" for item in content)


def step_prefix(request: ChatRequest) -> str:
    """The prefix of the next step; where the question clearly needs a tool, with the thought that says so."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != USER:
        return STEP_PREFIX
    name = needed(last.get_text_content(), {str(function["name"]) for function in request.functions})
    return f"{STEP_PREFIX} {_NEEDS[request.lang].format(name=name)}\nAction:" if name else STEP_PREFIX


def small_instructions(functions: Sequence[Mapping[str, Any]], lang: Lang) -> str:
    """The instructions: each tool in a line, and a step for each example whose tool is there."""
    names = {str(function["name"]) for function in functions}
    shown = [_step(example, lang) for example in EXAMPLES[lang] if example[1] == RESPOND or example[1] in names]
    return _SMALL_FORM[lang].format(tools="\n".join(map(_small_tool_line, functions)), examples="\n\n".join(shown))


def _small_tool_line(function: Mapping[str, Any]) -> str:
    schema: Mapping[str, Any] = function.get("parameters") or {}
    fields: Mapping[str, Any] = schema.get("properties") or {}
    given = {name: field.get("description") or field.get("type", "") for name, field in fields.items()}
    return neutral(f"- {function['name']}: {function.get('description', '')} {compact(given)}")


def _step(example: Example, lang: Lang) -> str:
    question, name, arguments = example
    asked = _ASKS[lang].format(question=question)
    if name == RESPOND:
        return f"{asked}\nThought: {_KNOWS[lang]}\nFinal Answer: {arguments['text']}"
    return f"{asked}\nThought: {_NEEDS[lang].format(name=name)}\nAction: {name}\nAction Input: {compact(arguments)}"
