"""What to search for: a follow-up question with those before it, and keywords that a model suggests."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from core.errors import ParlourError
from core.messages.json_text import read_object
from core.messages.message import ASSISTANT, USER, Message
from core.rag.citations import numbered
from core.rag.in_stead import question_in
from core.rag.prose import ideographs
from core.rag.search.terms import terms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.rag.config import Strategy
    from core.rag.document import Passage

_MOST_WORDS = 12
_MOST_IDEOGRAPHS = 24
_MOST_OWN = 2  # content words: a question with more stands on its own
_MOST_OWN_IDEOGRAPHS = 6
_MOST_BACK = 3  # earlier questions at most
_LONGEST = 300  # letters of an earlier question
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|that|this|these|those|ones?|he|him|his|she|hers?|there|former|latter|same"
    r"|others?|another|such|instead|either|neither|both)\b"
    r"|^\W*(?:and|but|so|or|then|else|also|what about|how about|what if|what else|how so|how come|why|more|again)\b"
    r"|[它他她其该此]|这|那|上述|前者|后者|另外|其他|其余"
    r"|^\W*(?:还有|以及|为什么|怎么|具体|继续|如果|要是|再)"
    r"|呢\W*$",
    re.IGNORECASE,
)
# What says how one asks, or which of several is meant, and not what about.
_GENERAL = (
    "first second third fourth fifth last next previous one two three four five number part point item section "
    "page clause paragraph row column line sentence example detail thing way case kind type reason rest else "
    "explain tell say mean describe show give list name elaborate continue know think please much many long often "
    "far big exactly really ok okay yes also too still again instead only another like happen apply go say true "
    "above below former latter other others same different mean means let us get got have make"
)
_GENERAL_ZH = re.compile(
    r"第?[一二三四五六七八九十两\d]+[条个项点部分章节页段句种次行位]?|最后|下一|上一|前一|后一|那么|那|这|它们?|他们?|她们?|其中?|该|此"
    r"|什么|为什么|怎么样?|怎样|如何|多少钱?|多久|多长|哪里?|哪些|几|是不是|有没有|能不能|可以|还有|以及|另外|其他|其余|上述|前者|后者"
    r"|[以之][前后内]|具体|详细|说明|解释|介绍|继续|举例|例子|意思|时候|情况|原因|方面|内容|如果|要是|的话|请问?|告诉|我们?|你们?|您|再|也|都|又|还|就"
    r"|[的了是在和与有呢吗吧啊么个些说讲问要会对不]"
)


def with_earlier_questions(messages: Sequence[Message]) -> list[str]:
    """The last question, preceded by the earlier ones that it follows up; alone if it is no follow-up.

    Args:
        messages: The conversation, the question last.
    """
    told = [question_in(message.get_text_content()).strip() for message in messages if message.role == USER]
    questions = [text for text in told if text]
    if not questions:
        return []
    at = len(questions) - 1
    together = [questions[at]]
    while at > 0 and len(together) <= _MOST_BACK and is_follow_up(questions[at]):
        at -= 1
        together.insert(0, questions[at][:_LONGEST])
    return together


def questions_followed(messages: Sequence[Message]) -> list[str]:
    """The last question and, where it is a follow-up, those that it follows up, the last one first.

    One that brings files of its own is about those, and follows up none.

    Args:
        messages: The conversation, the question last.
    """
    found: list[str] = []
    for message in reversed([one for one in messages if one.role == USER]):
        text = question_in(message.get_text_content()).strip()
        found.append(text)
        brings_files = any(item.type != "text" for item in message.items)
        if brings_files or not is_follow_up(text) or len(found) > _MOST_BACK:
            break
    return found


def earlier_questions(messages: Sequence[Message]) -> list[str]:
    """The questions before the last one, oldest first, each in full.

    Args:
        messages: The conversation, the question last.
    """
    return [text for message in messages if message.role == USER and (text := message.get_text_content().strip())][:-1]


def is_follow_up(question: str) -> bool:
    """Whether the question has too few content words to be searched for alone."""
    if len(question) > _LONGEST:
        return False
    wide = ideographs(question)
    if wide * 3 > sum(map(str.isalnum, question)):
        own = sum(map(str.isalnum, _GENERAL_ZH.sub("", question)))
        fits, most = wide <= _MOST_IDEOGRAPHS, _MOST_OWN_IDEOGRAPHS
    else:
        own = len(content_words(question))
        fits, most = len(question.split()) <= _MOST_WORDS, _MOST_OWN
    return fits and (own == 0 or (own <= most and bool(_POINTS_BACK.search(question))))


def content_words(question: str) -> set[str]:
    """The stems of an English question's content words."""
    return {term for term in terms(question) if not term.isdigit()} - _general()


@cache
def _general() -> frozenset[str]:
    return frozenset(terms(_GENERAL))


def has_content_words(question: str) -> bool:
    """Whether a follow-up has content words."""
    return bool(content_words(_GENERAL_ZH.sub(" ", question)))


KEYWORDS: Mapping[Lang, str] = {
    "en": "Somebody will look for the answer to a question in documents, by single words. Write the words to look for: "
    "names, terms, figures and likely synonyms as they may stand in the documents, four to ten, in English and in "
    'Chinese. Answer with JSON alone: {{"words": ["…", "…"]}}\n{known}\nQuestion: {question}',
    "zh": "有人要在文档中按词查找某个问题的答案。请写出应当查找的词：名称、术语、数字，以及文档中可能出现的近义词，"
    '四到十个，中文和英文都要。只回答 JSON：{{"words": ["…", "…"]}}\n{known}\n问题：{question}',
}
SPLIT: Mapping[Lang, str] = {
    "en": "A message to an assistant often says two things: what to look up in the user's documents, and what to do "
    'with it (to write a table, to be brief, to translate). Under "about" repeat only what is to be looked up, in the '
    'message\'s own words; under "words" write four to ten words to look for, in English and in Chinese. Answer with '
    'JSON alone: {{"about": "…", "words": ["…", "…"]}}\n{known}\nMessage: {question}',
    "zh": "给助手的一条消息往往包含两件事：要在用户文档里查什么，以及查到之后怎么做（列成表格、写得简短、翻译等）。"
    "“about” 只写要查的内容，用消息原来的词语；“words” 写四到十个应当查找的词，中文和英文都要。"
    '只回答 JSON：{{"about": "…", "words": ["…", "…"]}}\n{known}\n消息：{question}',
}
KNOWN: Mapping[Lang, str] = {
    "en": "So that you know how the documents put things, here are some lines of them.\n{lines}\n",
    "zh": "为了解文档的用词，下面是其中的几行。\n{lines}\n",
}
REWRITE: Mapping[Lang, str] = {
    "en": "Put the last question so that it can be understood without the ones before it, in its own language, in one "
    "line and without an answer.\n{questions}",
    "zh": "请改写最后一个问题，使人不看前面的问题也能明白。用它原来的语言，只写一行，不要回答。\n{questions}",
}
_log = logging.getLogger(__name__)
_SECONDS = 20.0
_MOST_KEYWORDS = 16
_LONGEST_WORD = 60
_LONGEST_LINE = 400
_KNOWN_LINE = 120  # characters of each sample passage
_KEPT = 100  # questions


@dataclass(slots=True)
class KeywordQuery:
    """Asks a model for keywords, once for each question.

    Args:
        strategy: One of `RAGConfig.rag_keygen_strategy`.
    """

    strategy: Strategy
    _kept: OrderedDict[tuple[Any, ...], str] = field(default_factory=OrderedDict[Any, str])

    async def searched(
        self, question: str, model: BaseChatModel, lang: Lang, known: Callable[[], Awaitable[list[Passage]]]
    ) -> str:
        """The search query.

        Args:
            model: Generates the keywords.
            known: Finds sample passages, which show the documents' vocabulary; for the strategies with knowledge.
        """
        if self.strategy == "none":
            return question
        passages = await known() if self.strategy.endswith("_with_knowledge") else []
        key = (question, lang, tuple(passage.chunk_id for passage in passages))
        if key not in self._kept:
            text = await _model_text(model, self._prompt(question, lang, passages))
            found = _keywords_in(text, question, keeps_question=not self.strategy.startswith("split"))
            if not found:
                return question
            self._kept[key] = found
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return self._kept[key]

    def _prompt(self, question: str, lang: Lang, passages: Sequence[Passage]) -> str:
        lines = numbered([replace(one, text=" ".join(one.text.split())[:_KNOWN_LINE]) for one in passages], lang)
        known = KNOWN[lang].format(lines=lines) if lines else ""
        wanted = SPLIT if self.strategy.startswith("split") else KEYWORDS
        return wanted[lang].format(known=known, question=question)


async def standalone_question(questions: Sequence[str], model: BaseChatModel, lang: Lang) -> str:
    """The last question, rewritten to be understood alone; "" if the model fails."""
    listed = "\n".join(f"{number}. {' '.join(one.split())}" for number, one in enumerate(questions, 1))
    lines = (await _model_text(model, REWRITE[lang].format(questions=listed))).splitlines()
    return lines[-1].strip().strip('"“”')[:_LONGEST_LINE] if lines else ""


async def _model_text(model: BaseChatModel, prompt: str) -> str:
    """The model's text, or "" if it fails."""
    try:
        async with asyncio.timeout(_SECONDS):
            reply = await model.achat([Message(USER, prompt)], purpose="search")
    except (ParlourError, TimeoutError) as error:
        _log.info("The question is searched for as it is: %s", error)
        return ""
    return "".join(message.get_text_content() for message in reply if message.role == ASSISTANT).strip()


def _keywords_in(text: str, question: str, *, keeps_question: bool) -> str:
    """The query in a model's answer: what it is about, then the keywords; "" if there is none."""
    start, end = text.find("{"), text.rfind("}")
    try:
        said = read_object(text[start : end + 1]) if 0 <= start < end else {}
    except ValueError:
        return ""
    listed: Any = said.get("words")
    words = cast("list[Any]", listed) if isinstance(listed, list) else []
    fine = [" ".join(word.split()) for word in words if isinstance(word, str) and 0 < len(word) <= _LONGEST_WORD]
    about = said.get("about")
    first = question if keeps_question or not isinstance(about, str) else about.strip()[:_LONGEST_LINE]
    return " ".join([first, *dict.fromkeys(fine[:_MOST_KEYWORDS])]).strip() if fine or first != question else ""
