"""What a small model is told of steps: it follows examples, and a step that is begun for it, not rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.llm.calling.json_schema import RESPOND
from core.llm.calling.json_schema_words import EXAMPLES
from core.llm.calling.neutral import neutral
from core.llm.calling.plain_needs import needed
from core.messages.json_text import compact
from core.messages.message import USER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.calling.json_schema_words import Example
    from core.llm.request import ChatRequest, Lang

BEGUN = "Thought:"
"""The beginning of every step."""

_FORM: Mapping[Lang, str] = {
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


def begun(request: ChatRequest) -> str:
    """The beginning of the next step; where a question plainly needs a tool, the thought that says so is written."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != USER:
        return BEGUN
    name = needed(last.get_text_content(), {str(function["name"]) for function in request.functions})
    return f"{BEGUN} {_NEEDS[request.lang].format(name=name)}\nAction:" if name else BEGUN


def small_form(functions: Sequence[Mapping[str, Any]], lang: Lang) -> str:
    """The instructions: each tool in a line, and a step for each example whose tool is there."""
    names = {str(function["name"]) for function in functions}
    shown = [_step(example, lang) for example in EXAMPLES[lang] if example[1] == RESPOND or example[1] in names]
    return _FORM[lang].format(tools="\n".join(map(_tool_line, functions)), examples="\n\n".join(shown))


def _tool_line(function: Mapping[str, Any]) -> str:
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
