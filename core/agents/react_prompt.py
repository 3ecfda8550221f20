"""What a model that thinks in text is told, and how it sees what was done so far."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.agents.react_small import begun, small_form
from core.llm.calling.call_text import without_mark
from core.llm.calling.neutral import neutral_items, neutral_json
from core.llm.calling.nous import with_system
from core.llm.calling.reply_reader import UNREADABLE
from core.messages.content import ContentItem
from core.messages.json_text import compact
from core.messages.message import ASSISTANT, FUNCTION, USER, FunctionCall, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.llm.request import ChatRequest, Lang

STOP = "\nObservation:"

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
_BEGIN: Mapping[Lang, str] = {
    "en": "\n\nThe next Action is {name}, and no other.",
    "zh": "\n\n下一个 Action 必须是 {name}，不能是其他工具。",
}


def instructed(request: ChatRequest, choice: str = "", *, small: bool = False) -> list[Message]:
    """The messages as steps in text, with the tools and the form of a step at the end of the system message.

    Args:
        request: The conversation with calls and results, and the tools.
        choice: The one tool that must be called.
        small: Whether the model is one that follows examples; then its step is begun for it.
    """
    if small:
        text = small_form(request.functions, request.lang)
    else:
        names = ", ".join(str(function["name"]) for function in request.functions)
        text = _FORM[request.lang].format(tools="\n".join(map(_tool_line, request.functions)), names=names)
    if choice:
        text += _BEGIN[request.lang].format(name=choice)
    return with_system(as_steps(request.messages), text) + ([Message(ASSISTANT, begun(request))] if small else [])


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
    """A result as the next message to the model; what stands in it forges no token of a model."""
    return Message(USER, _as_content([ContentItem(text="Observation: "), *neutral_items(result.items)]))


def _as_content(items: list[ContentItem]) -> str | list[ContentItem]:
    texts = [item.text for item in items if item.text is not None]
    return "".join(texts) if len(texts) == len(items) else items


def _plain(content: str | list[ContentItem]) -> str:
    return content if isinstance(content, str) else "".join(item.text or "" for item in content)
