"""What an action in text says: which tool, with which input. Names and inputs are mended, never made up."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from core.messages.json_text import compact, read_value

if TYPE_CHECKING:
    from collections.abc import Collection

NONE: Final = "(none)"
FINAL: Final = "(final answer)"

_DECORATION: Final = " \t\r\n*_`\"'“”「」[]()<>.:。：,，"
_NONE_WORDS: Final = frozenset({"none", "n/a", "na", "null", "nothing", "no action", "no tool", "无", "没有", "不需要"})
_FINAL_WORDS: Final = frozenset({"final answer", "final_answer", "finish", "最终答案", "最终回答", "完成"})
_NAME_KEYS: Final = ("action", "tool", "name", "tool_name", "action_name")
_INPUT_KEYS: Final = ("action_input", "input", "arguments", "parameters", "args", "tool_input")
_INLINE: Final = re.compile(
    r"(?:(?:action|tool)[ _]?input|(?:行动|动作|工具)(?:输入|参数))[*_`]*[ \t]*[:：]", re.IGNORECASE
)
_CALLED: Final = re.compile(r"[*_`\s]*+([\w.-]++)[ \t]*+(?:\((.*)\)|\[(.*)\])[*_`;.\s]*", re.DOTALL)
_FENCE: Final = re.compile(r"```[\w-]*+[ \t]*+\n")
_JSON_BEGINS: Final = re.compile(r"\s*(?:```(?:json)?[ \t]*\n\s*)?\{")


class Said(NamedTuple):
    """A tool's name, or `NONE` or `FINAL`, and the input."""

    name: str
    input: str


def read_action(action: str, given: str | None, tools: Collection[str]) -> Said | None:
    """What the text after `Action:` and the text after `Action Input:`, where there is one, ask for.

    Args:
        action: A name, `name(input)`, a JSON object with both, or words around a name.
        given: The input.
        tools: The names there are; empty where they are not known.

    Returns:
        `None` where no tool can be told, or where an action without input is none that is known.
    """
    if given is None:
        if (inline := _INLINE.search(action)) is not None:
            return read_action(action[: inline.start()].rstrip(" \t*_`"), action[inline.end() :], tools)
        return _from_json(action, tools) or _from_call(action, tools) or _bare(action, tools)
    name = _name(action, tools)
    return Said(name, given.strip()) if name else None


def read_untagged(reply: str, tools: Collection[str]) -> Said | None:
    """The call that a reply without labels is, if it is one JSON object that names a tool there is."""
    found = _from_json(reply, tools) if may_be_untagged(reply) else None
    return found if found and found.name in tools else None


def may_be_untagged(reply: str) -> bool:
    """Whether a reply begins as a JSON object does, bare or in a fence."""
    return _JSON_BEGINS.match(reply) is not None


def _bare(action: str, tools: Collection[str]) -> Said | None:
    name = _name(action, tools)
    return Said(name, "{}") if name == NONE or name in tools else None


def _name(text: str, tools: Collection[str]) -> str:
    """The tool that is meant; a name of none is left as it is, so that whoever runs it can offer the near ones."""
    name = text.strip(_DECORATION)
    if name in tools:
        return name
    folded = name.casefold()
    if folded in _NONE_WORDS:
        return NONE
    if folded in _FINAL_WORDS:
        return FINAL
    same = [tool for tool in tools if tool.casefold() == folded]
    mentioned = [tool for tool in tools if re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", text)]
    for found in (same, mentioned):
        if len(found) == 1:
            return found[0]
    return name.partition("\n")[0].strip(_DECORATION)


def _from_json(text: str, tools: Collection[str]) -> Said | None:
    """`{"action": ..., "action_input": ...}`, bare, in a fence or before the end of a tag."""
    text = text.rstrip().removesuffix("</tool_call>")
    text = _out_of_fence(text.strip())
    if not text.startswith(("{", "[")):
        return None
    try:
        found: Any = read_value(text)
    except ValueError:
        return None
    if isinstance(found, list):
        found = cast("list[Any]", found)[0] if found else None
    if not isinstance(found, dict):
        return None
    said = cast("dict[str, Any]", found)
    name = next((said[key] for key in _NAME_KEYS if isinstance(said.get(key), str)), "")
    given = next((said[key] for key in _INPUT_KEYS if key in said), None)
    name = _name(name, tools)
    return Said(name, _as_text(given)) if name else None


def _out_of_fence(text: str) -> str:
    opening = _FENCE.match(text)
    if opening is None or not text.endswith("```", opening.end()):
        return text
    return text[opening.end() : -3].strip()


def _as_text(value: Any) -> str:
    if value is None:
        return "{}"
    return value if isinstance(value, str) else compact(value)


def _from_call(text: str, tools: Collection[str]) -> Said | None:
    """`name(input)` and `name[input]`."""
    found = _CALLED.fullmatch(text)
    if found is None:
        return None
    name = _name(found.group(1), tools)
    given = (found.group(2) if found.group(2) is not None else found.group(3)).strip()
    known = not tools or name in tools or name == FINAL
    return Said(name, given or "{}") if known else None


def is_object(text: str) -> bool:
    """Whether the text is a JSON object and nothing else."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


class JsonEnd:
    """Finds the last brace of an object that a growing text begins with; each character is looked at once."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._escaped = self._over = False

    def feed(self, text: str) -> int | None:
        """How much of the new text belongs to the object, when it ends there."""
        for at, character in enumerate(text):
            if self._over:
                return None
            self._step(character)
            if self._depth == 0:
                self._over = True
                return at + 1 if character == "}" else None
        return None

    def _step(self, character: str) -> None:
        if self._quoted:
            self._quoted = self._escaped or character != '"'
            self._escaped = character == "\\" and not self._escaped
        elif character == '"':
            self._quoted = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
