"""Outlines of texts: their chapters, and how far an interrupted text has followed its outline."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from core.agents.conversation import this_turn
from core.messages.events import MessageFinished, TextDelta
from core.messages.message import ASSISTANT, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.events import Event
    from core.messages.message import Message

_NUMBER = (
    r"\d{1,2}[.)、．](?!\d)|[IVXⅠ-Ⅻ]{1,5}[.、．]|[一二三四五六七八九十]{1,3}、"
    r"|第[一二三四五六七八九十\d]{1,3}章[：:、]?|(?i:chapter)[ ]\d{1,2}[.:)]"
)
CHAPTER = re.compile(rf"^ ?(?:#{{2,3}}[ \t]+)?\**(?:{_NUMBER})\**[ \t]*(\S.*)$", re.MULTILINE)
_SECTION = re.compile(r"^##[ \t]+(\S.*)$", re.MULTILINE)
AROUND = ' \t#*_:：。.、“”"'
"""Signs that stand around a name and are no part of it."""
_HEADING = re.compile(r"^##[ \t]+(.*)$", re.MULTILINE)
_MARK = re.compile(r"[\[【][^\]】\n]{0,40}[\]】]")


@dataclass(frozen=True, slots=True)
class SoFar:
    """An interrupted text.

    Args:
        asked: The conversation, up to the question.
    """

    asked: list[Message]
    outline: str
    text: str

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Self | None:
        """The interrupted text at the end of a conversation; None for a new reply, and where only an outline came."""
        said = this_turn(messages)
        asked = list(messages[: len(messages) - len(said)])
        if not asked or asked[-1].role != USER:
            return None
        spoken = [one for one in said if one.role == ASSISTANT and one.function_call is None]
        thoughts = [one.reasoning_content for one in spoken if isinstance(one.reasoning_content, str)]
        plans = [thought for thought in thoughts if thought.strip()]
        text = "".join(one.get_text_content() for one in spoken)
        return cls(asked, plans[-1].strip(), text) if plans and text.strip() else None


def chapters_of(outline: str) -> list[str]:
    """The chapters of an outline: its numbered lines, else its headings; empty where it has neither."""
    return [one[1].strip(AROUND) for one in _found(outline)]


def up_to(most: int, outline: str) -> str:
    """The outline, cut after `most` chapters."""
    found = _found(outline)
    return outline[: found[most].start()] if len(found) > most else outline


class ShownPlan:
    """The part of a streamed outline that can be shown: complete lines, of at most `most` chapters."""

    def __init__(self, most: int) -> None:
        self._most, self._text, self._shown = most, "", 0

    def after(self, event: Event) -> str:
        """The further text that can be shown after an event."""
        if isinstance(event, TextDelta):
            self._text += event.text
        is_over = isinstance(event, MessageFinished)
        shown = up_to(self._most, self._text if is_over else self._text[: self._text.rfind("\n") + 1])
        more, self._shown = shown[self._shown :], len(shown)
        return more


def _found(outline: str) -> list[re.Match[str]]:
    lines = list(CHAPTER.finditer(outline)) or list(_SECTION.finditer(outline))
    return [line for line in lines if line[1].strip(AROUND)]


def heading_of(chapter: str) -> str:
    """A chapter's heading line; "" for a text without chapters."""
    return f"## {chapter}\n\n" if chapter else ""


def place_in(text: str, chapters: Sequence[str]) -> tuple[int, str]:
    """The number of the chapter that the text ends in, from 1, and its text so far; 0 where none has begun."""
    number, at = 0, 0
    for line in _HEADING.finditer(text):
        if number < len(chapters) and _plain(line[1]) == _plain(chapters[number]):
            number, at = number + 1, line.end()
    there = text[at:].lstrip("\n") if number else ""
    return number, there if there.strip() else ""


def how_far(outline: str, text: str) -> tuple[int, int]:
    """The number of the outline's chapter that the text ends in, 0 for none, and how many chapters there are."""
    if "\n## " not in f"\n{text}":  # most texts, and quickly seen
        return 0, 0
    chapters = chapters_of(outline)
    return place_in(text, chapters)[0], len(chapters)


def _plain(name: str) -> str:
    """The name without white space and citation marks."""
    return "".join(_MARK.sub("", name).split())
