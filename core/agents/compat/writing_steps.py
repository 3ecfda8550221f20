"""Agents for one step of writing each: the outline of a text, one of its chapters, or its continuation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.assistant import ONLY_INFORMATION
from core.agents.base import Agent
from core.agents.tool_loop import ToolLoop
from core.messages.content import ContentItem
from core.messages.message import USER, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang
    from core.llm.request import Stream

MOST_CHAPTERS = 12
OUTLINE: Mapping[Lang, str] = {
    "en": "Plan the text that is asked for below. The first line is its title, as “# Title”. Then come its chapters, "
    "three to six unless something else is asked for, {most} at most, each on a line of its own, as “1. Chapter”; "
    "lines with a dash under a chapter may say what belongs into it. Write in the language of the request, and "
    "nothing but the plan.{knowledge}\n\nWhat is asked for:\n{request}",
    "zh": "请为下面所要求的文章拟定提纲。第一行写标题，格式为“# 标题”。随后是各章，除非另有要求，一般三至六章，"
    "最多 {most} 章，每章单独一行，格式为“1. 章名”；章名下可以用短横线列出该章的要点。"
    "使用要求所用的语言，只写提纲，不要写别的。{knowledge}\n\n写作要求：\n{request}",
}
CHAPTER: Mapping[Lang, str] = {
    "en": "Write chapter {index} of {chapters}, “{chapter}”, of the text that is planned below. Write that chapter "
    "alone, without its heading, and leave to the other chapters what belongs to them.{written}{knowledge}\n\n"
    "The plan:\n{outline}\n\nWhat is asked for:\n{request}",
    "zh": "请按照下面的提纲撰写文章的第 {index} 章（共 {chapters} 章）“{chapter}”。只写这一章，不要写章名，"
    "属于其他章的内容留给其他章。{written}{knowledge}\n\n提纲：\n{outline}\n\n写作要求：\n{request}",
}
WHOLE: Mapping[Lang, str] = {
    "en": "Write the text that is asked for below, as a whole and in the language of the request. Write nothing but "
    "the text.{knowledge}\n\nThe plan:\n{outline}\n\nWhat is asked for:\n{request}",
    "zh": "请用要求所用的语言完整地写出下面所要求的文章，除正文外不要写别的。{knowledge}\n\n提纲：\n{outline}\n\n"
    "写作要求：\n{request}",
}
CONTINUE: Mapping[Lang, str] = {
    "en": "Go on with the text below from where it ends, in its language and its manner. Write nothing but what comes "
    "next, and say nothing again that stands there.{knowledge}\n\nThe text:\n{request}",
    "zh": "请从下面文字结束的地方接着写，语言和文风保持一致。只写后续内容，不要重复已有的文字。"
    "{knowledge}\n\n文字：\n{request}",
}
WRITTEN: Mapping[Lang, str] = {
    "en": " The chapters before it end so:\n…{text}\n",
    "zh": "前面的章节结尾如下：\n……{text}\n",
}
MATERIAL: Mapping[Lang, str] = {
    "en": "\n\nMaterial for it:\n{text}",
    "zh": "\n\n写作材料：\n{text}",
}
CITE_IN_TEXT: Mapping[Lang, str] = {
    "en": "Passages of the user's documents come as material, with numbers. Take from them what the text needs, and "
    "put the number after each statement that comes from one, like this [1]. " + ONLY_INFORMATION["en"],
    "zh": "用户文档的段落会作为写作材料给出，并带有编号。请从中选取文章需要的内容，"
    "并在每个取自段落的论断后标注编号，如 [1]。" + ONLY_INFORMATION["zh"],
}


_ENDS = 1000  # letters of what was written before a chapter


class WritingStep(Agent):
    """Asks its model once, with a task in the place of the last user's message."""

    calls_tools = False

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
