"""Agents for one step of writing each: the plan of a text, one of its chapters, or how it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.agents.tool_loop import ToolLoop
from core.agents.writing_prompts import CHAPTER, CONTINUE, MATERIAL, MOST_CHAPTERS, OUTLINE, WHOLE, WRITTEN
from core.messages.content import ContentItem
from core.messages.message import USER, Message

if TYPE_CHECKING:
    from core.llm.request import Lang, Stream

_ENDS = 1000  # letters of what was written before a chapter


class WritingStep(Agent):
    """Asks its model once, with a task in the place of the last user's message."""

    def _written(self, messages: list[Message], how: str, lang: Lang, knowledge: str, **values: Any) -> Stream:
        """What the model writes.

        Args:
            messages: The conversation.
            how: The task, with blanks for the message, the material and the values.
            lang: Its language.
            knowledge: The material.
            values: For further blanks.
        """
        material = MATERIAL[lang].format(text=knowledge) if knowledge.strip() else ""
        asked = [at for at, message in enumerate(messages) if message.role == USER]
        at = asked[-1] if asked else len(messages)
        last = messages[at] if asked else Message(USER, "")
        text = how.format(request=last.get_text_content().strip(), knowledge=material, **values)
        others = [item for item in last.items if item.type != "text"]
        task = last.model_copy(update={"content": [ContentItem(text=text), *others] if others else text})
        loop = ToolLoop(self._model(), {}, speaker=self.name, generate=self.extra_generate_cfg)
        return loop.reply([*messages[:at], task, *messages[at + 1 :]], lang=lang)


class OutlineWriting(WritingStep):
    """Plans a text: a title, and its chapters.

    `run(messages, knowledge="")`: the last user's message says what is to be written, `knowledge` is material for it.
    """

    def _stream_reply(
        self, messages: list[Message], *, lang: Lang, knowledge: str = "", most: int = MOST_CHAPTERS, **kwargs: Any
    ) -> Stream:
        del kwargs
        return self._written(messages, OUTLINE[lang], lang, knowledge, most=most)


class ExpandWriting(WritingStep):
    """Writes one chapter of a text that is planned, or all of it.

    `run(messages, outline=…, chapter=…, index=1, chapters=1, written="", knowledge="")`: which chapter of the outline,
    its number, and how many there are; `written` is what comes before it, of which the model reads the end. Without a
    chapter the whole text is written.
    """

    def _stream_reply(  # noqa: PLR0913 - the place of a chapter, each by name
        self,
        messages: list[Message],
        *,
        lang: Lang,
        outline: str = "",
        chapter: str = "",
        index: int = 1,
        chapters: int = 1,
        written: str = "",
        knowledge: str = "",
        **kwargs: Any,
    ) -> Stream:
        del kwargs
        before = WRITTEN[lang].format(text=written[-_ENDS:]) if written.strip() else ""
        place: dict[str, Any] = {"chapter": chapter, "index": index, "chapters": chapters, "written": before}
        how = (CHAPTER if chapter else WHOLE)[lang]
        return self._written(messages, how, lang, knowledge, outline=outline or "–", **place)


class ContinueWriting(WritingStep):
    """Goes on with a text where it ends: the last user's message is the text.

    `run(messages, knowledge="")`: `knowledge` is material for it.
    """

    def _stream_reply(self, messages: list[Message], *, lang: Lang, knowledge: str = "", **kwargs: Any) -> Stream:
        del kwargs
        return self._written(messages, CONTINUE[lang], lang, knowledge)
