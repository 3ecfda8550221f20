"""What an assistant looks up before it asks its model, and how much of it the model is given."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.rag.search.terms import terms

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.llm.base import BaseChatModel
    from core.rag.document import Passage
    from core.rag.library import Library

_SMALL_MODEL_TOKENS = 600  # of passages: its context and its attention are short
_SHARE = 0.4  # of the question's words that the passages must speak of before a small model is given them
_SMALL_TALK = re.compile(
    r"\s*((hi|hello|hey|thanks?|good (morning|evening|night)|bye|goodbye|ok(ay)?|great|how are you|who are you)\b"
    r"|你好|您好|嗨|谢谢|早上好|晚上好|晚安|再见|好的|你是谁)[\s\w,，.!！?？。~～]{0,20}$",
    re.IGNORECASE,
)
_OVERVIEW = re.compile(
    r"\bsummar(y|i[sz]e)|\boverview\b|\btl;?dr\b|\bmain (points?|ideas?|topics?)\b|\bkey (points?|takeaways?)\b"
    r"|\b(what|tell me)\b.{0,30}\b(documents?|files?|pdfs?|papers?|texts?|reports?)\b.{0,12}\babout\b"
    r"|\bwhat('s| is| does).{0,20}\b(this|the|that|my) (document|file|pdf|paper|text|report)\b\W*(say)?\W*$"
    r"|总结|概括|摘要|概述|归纳|大意|主要内容|讲了什么|讲什么|说了什么|关于什么|要点",
    re.IGNORECASE,
)
_FOR_TOOLS = re.compile(
    r"\d\s*[-+*/×÷^]\s*\d|\d\s*[%％]\s*(of|的|off)|\d.*\b(plus|minus|times|divided by)\b.*\d|\d.*[加减乘除].*\d"
    r"|\bwhat time\b|\btime is it\b|\bwhat (day|date) (is|was)\b|\btoday's date\b|几点|几号|星期几|周几",
    re.IGNORECASE,
)


def is_small_talk(question: str) -> bool:
    """Whether it is a greeting or thanks, for which nobody looks anything up."""
    return bool(_SMALL_TALK.match(question))


@dataclass(frozen=True, slots=True)
class Finder:
    """Searches for a model.

    Args:
        library: Where to.
        documents: The ids of the documents that count.
        model: Whose share of passages it is.
        most_tokens: That share; a small model gets 600 at most.
    """

    library: Library
    documents: Collection[str]
    model: BaseChatModel
    most_tokens: int

    async def find(self, question: str, k: int) -> list[Passage]:
        """The passages that answer a question best; for "summarise this" the documents' beginnings.

        Where a small model asks in other words than the documents use, their beginnings come after what was found.
        """
        if _OVERVIEW.search(question):
            return self._fitting(await self.library.abeginnings(k, documents=self.documents))
        found = await self.library.afind(question, k, documents=self.documents)
        if self.model.small and not _speak_of(question, found):
            if _FOR_TOOLS.search(question):  # a small model given passages would not reckon, but read
                return []
            known = {(passage.document_id, passage.chunk_id) for passage in found}
            beginnings = await self.library.abeginnings(k, documents=self.documents)
            found += [one for one in beginnings if (one.document_id, one.chunk_id) not in known]
        return self._fitting(found)

    def _fitting(self, found: list[Passage]) -> list[Passage]:
        """As many as there is room for; a first one that is too long is cut."""
        room = min(_SMALL_MODEL_TOKENS, self.most_tokens) if self.model.small else self.most_tokens
        fitting: list[Passage] = []
        for passage in found:
            tokens = self.model.count_tokens(passage.text)
            if tokens > room and not fitting:
                fitting.append(replace(passage, text=passage.text[: len(passage.text) * room // tokens]))
            if tokens > room:
                break
            room -= tokens
            fitting.append(passage)
        return fitting


def _speak_of(question: str, passages: list[Passage]) -> bool:
    """Whether the passages hold enough of the question's words: a small model believes whatever it is given."""
    asked = {term for term in terms(question) if len(term) > (2 if term.isdigit() else 1)}
    there = {term for passage in passages for term in terms(f"{passage.document}\n{passage.heading}\n{passage.text}")}
    return len(asked & there) >= _SHARE * len(asked) if asked else bool(passages)
