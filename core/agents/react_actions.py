"""The parts of a ReAct step in text: labels at the beginning of lines, and the action between them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from core.messages.json_text import compact, read_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LabelName: TypeAlias = Literal["thought", "action", "action_input", "input", "observation", "final", "answer"]
NONE: Final = "(none)"
FINAL: Final = "(final answer)"
_WORDS: Mapping[LabelName, str] = {
    "thought": r"thoughts?|思考|想法",
    "action": r"action|行动|动作",
    "action_input": r"(?:action|tool)[ _]?input|(?:行动|动作|工具)(?:的)?(?:输入|参数)",
    "input": r"input|arguments|输入|参数",
    "observation": r"observations?|观察(?:结果)?",
    "final": r"final[ _]?answer|最终(?:答案|回答|答复)",
    "answer": r"answer|答案",
}
_LONGEST: Final = 40  # characters from the beginning of a line to the colon
_BEFORE: Final = r"[ \t]*(?:(?:#{1,6}|[-*+>]|\d{1,2}[.)])[ \t]+)?(?P<opening>[*_`]{0,3})"
# All whole lines are looked through for it at once: most texts have many lines, and none that is a label.
_BEGINS_A_LABEL: Final = re.compile(
    rf"^(?:{_BEFORE}(?:{'|'.join(_WORDS.values())})|[ \t]*<tool_call>)", re.MULTILINE | re.IGNORECASE
)
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


@dataclass(frozen=True, slots=True)
class Label:
    """A label; `closing` is Markdown that may follow its colon, as in `**Action:** f`."""

    name: LabelName
    written: str
    closing: str


class LabelScanner:
    """Splits streamed text into labels and the text between them, independently of chunk borders.

    Labels may be in any case, numbered (`Thought 1:`), in Chinese, or in Markdown lists, headings and bold. The tag
    `<tool_call>` counts as an action's label.
    """

    def __init__(self) -> None:
        self._line = ""  # the beginning of a line that may become a label
        self._inside = False  # whether the line has begun and is no label

    def feed(self, text: str) -> list[Label | str]:
        """The labels and text that are certain after more text."""
        found: list[Label | str] = []
        at = 0
        if self._line or self._inside:
            at = text.find("\n") + 1 or len(text)
            self._feed_line(text[:at], found)
        last = max(at, text.rfind("\n") + 1)  # where a line begins that has not ended yet
        for line in _BEGINS_A_LABEL.finditer(text, at, last):
            end = text.index("\n", line.end()) + 1
            if at < line.start():  # lines that are no labels are one text
                found.append(text[at : line.start()])
            self._feed_line(text[line.start() : end], found)
            at = end
        if at < last:
            found.append(text[at:last])
        self._feed_line(text[last:], found)
        return found

    def close(self) -> list[Label | str]:
        """What was held back."""
        held, self._line = self._line, ""
        return [held] if held else []

    def _feed_line(self, text: str, found: list[Label | str]) -> None:
        """Take in part of a line, with its line feed if that has come."""
        ends = text.endswith("\n")
        if not self._inside:
            self._line += text
            head = self._line[:_LONGEST]
            match = _pattern().match(head, partial=True)
            if match is not None and match.partial and not ends and len(self._line) < _LONGEST:
                return
            if match is not None and not match.partial:
                found.append(_label(match))
                text = self._line[match.end() :]
            else:
                text = self._line
            self._line, self._inside = "", True
        if text:
            found.append(text)
        if ends:
            self._inside = False


def _label(match: Any) -> Label:
    if match.group("tag"):
        return Label("action", match.group(), "")
    name: LabelName = next(name for name in _WORDS if match.group(name))
    opening = match.group("opening")
    return Label(name, match.group(), "" if match.group("shut") else opening[::-1])


@cache
def _pattern() -> Any:
    """Compiled on first use, as `regex` (for partial matches) is imported only then."""
    regex: Any = import_module("regex")
    words = "|".join(f"(?P<{name}>{words})" for name, words in _WORDS.items())
    label = rf"{_BEFORE}(?:{words})(?:[ \t]?\d{{1,3}})?(?P<shut>[*_`]{{0,3}})[ \t]*[:：]"
    return regex.compile(rf"{label}|[ \t]*(?P<tag><tool_call>)", regex.IGNORECASE)


class ToolUse(NamedTuple):
    """A tool's name, or `NONE` or `FINAL`, and the input."""

    name: str
    input: str


def read_action(action: str, given: str | None, tools: Collection[str]) -> ToolUse | None:
    """The tool call in the text after `Action:` and, if any, the text after `Action Input:`.

    Args:
        action: A name, `name(input)`, a JSON object with both, or words around a name.
        tools: The names there are; empty where they are not known.

    Returns:
        `None` where no tool is named, or where an action without input names no known tool.
    """
    if given is None:
        if (inline := _INLINE.search(action)) is not None:
            return read_action(action[: inline.start()].rstrip(" \t*_`"), action[inline.end() :], tools)
        return _from_json(action, tools) or _from_call(action, tools) or _bare(action, tools)
    name = _name(action, tools)
    return ToolUse(name, given.strip()) if name else None


def read_untagged(reply: str, tools: Collection[str]) -> ToolUse | None:
    """The tool call in a reply without labels: a JSON object that names a known tool."""
    found = _from_json(reply, tools) if may_be_untagged(reply) else None
    return found if found and found.name in tools else None


def may_be_untagged(reply: str) -> bool:
    """Whether a reply begins like a JSON object, bare or in a fence."""
    return _JSON_BEGINS.match(reply) is not None


def _bare(action: str, tools: Collection[str]) -> ToolUse | None:
    name = _name(action, tools)
    return ToolUse(name, "{}") if name == NONE or name in tools else None


def _name(text: str, tools: Collection[str]) -> str:
    """The tool that is meant; an unknown name stays as it is, so that the runner can suggest similar ones."""
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


def _from_json(text: str, tools: Collection[str]) -> ToolUse | None:
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
    return ToolUse(name, _as_text(given)) if name else None


def _out_of_fence(text: str) -> str:
    opening = _FENCE.match(text)
    if opening is None or not text.endswith("```", opening.end()):
        return text
    return text[opening.end() : -3].strip()


def _as_text(value: Any) -> str:
    if value is None:
        return "{}"
    return value if isinstance(value, str) else compact(value)


def _from_call(text: str, tools: Collection[str]) -> ToolUse | None:
    """`name(input)` and `name[input]`."""
    found = _CALLED.fullmatch(text)
    if found is None:
        return None
    name = _name(found.group(1), tools)
    given = (found.group(2) if found.group(2) is not None else found.group(3)).strip()
    known = not tools or name in tools or name == FINAL
    return ToolUse(name, given or "{}") if known else None


def is_object(text: str) -> bool:
    """Whether the text is exactly one JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


class JsonEnd:
    """Finds the end of the JSON object at the beginning of streamed text; reads each character once."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._escaped = self._over = False

    def feed(self, text: str) -> int | None:
        """The length of the part of the new text that ends the object; None if it does not end there."""
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
