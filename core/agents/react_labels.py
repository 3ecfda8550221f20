"""Finds the labels at the beginning of lines (`Action:` and its kin) in a text that grows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

LabelName: TypeAlias = Literal["thought", "action", "action_input", "input", "observation", "final", "answer"]

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


@dataclass(frozen=True, slots=True)
class Label:
    """A label; `closing` is decoration that may follow its colon, as in `**Action:** f`."""

    name: LabelName
    written: str
    closing: str


class LabelScanner:
    """Cuts a growing text into labels and what stands between them; any split gives the same.

    Understood: capitals or not, numbers (`Thought 1:`), lists, headings and bold type of Markdown, Chinese. The tag
    that many models call tools with counts as an action's label.
    """

    def __init__(self) -> None:
        self._line = ""  # the beginning of a line that may become a label
        self._inside = False  # whether the line has begun and is no label

    def feed(self, text: str) -> list[Label | str]:
        """What is certain after more text."""
        found: list[Label | str] = []
        for line in _lines(text):
            self._feed_line(line, found)
        return found

    def close(self) -> list[Label | str]:
        """What was held back."""
        held, self._line = self._line, ""
        return [held] if held else []

    def _feed_line(self, text: str, found: list[Label | str]) -> None:
        """Part of one line, its end included if it has come."""
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


def _lines(text: str) -> list[str]:
    """The text cut after each line feed; nothing else ends a line."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _label(match: Any) -> Label:
    if match.group("tag"):
        return Label("action", match.group(), "")
    name: LabelName = next(name for name in _WORDS if match.group(name))
    opening = match.group("opening")
    return Label(name, match.group(), "" if match.group("shut") else opening[::-1])


@cache
def _pattern() -> Any:
    """Compiled when the first text is read: the package that knows partial matches is not needed before."""
    regex: Any = import_module("regex")
    words = "|".join(f"(?P<{name}>{words})" for name, words in _WORDS.items())
    before = r"[ \t]*(?:(?:#{1,6}|[-*+>]|\d{1,2}[.)])[ \t]+)?(?P<opening>[*_`]{0,3})"
    label = rf"{before}(?:{words})(?:[ \t]?\d{{1,3}})?(?P<shut>[*_`]{{0,3}})[ \t]*[:：]"
    return regex.compile(rf"{label}|[ \t]*(?P<tag><tool_call>)", regex.IGNORECASE)
