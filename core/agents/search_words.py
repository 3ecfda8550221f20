"""Words to search with, asked of a model: one call more for a question, and never an error.

Where the model fails, is slow or answers something else, the question itself is searched for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from core.agents.search_prompts import KEYWORDS, KNOWN, REWRITE, SPLIT
from core.errors import ParlourError
from core.messages.json_text import read_object
from core.messages.message import ASSISTANT, USER, Message
from core.rag.evidence import numbered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from core.llm.base import BaseChatModel
    from core.llm.request import Lang
    from core.rag.config import Strategy
    from core.rag.document import Passage

_log = logging.getLogger(__name__)

_SECONDS = 20.0
_MOST_WORDS = 16
_LONGEST_WORD = 60
_LONGEST_LINE = 400
_KNOWN_LINE = 120  # letters of each passage that the model is shown
_KEPT = 100  # questions


@dataclass(slots=True)
class SearchWords:
    """Asks a model what to search for, once for each question.

    Args:
        strategy: One of `RAGConfig.rag_keygen_strategy`.
    """

    strategy: Strategy
    _kept: OrderedDict[tuple[Any, ...], str] = field(default_factory=OrderedDict[Any, str])

    async def searched(
        self, question: str, model: BaseChatModel, lang: Lang, known: Callable[[], Awaitable[list[Passage]]]
    ) -> str:
        """What to search for.

        Args:
            question: What was asked.
            model: Whom to ask for words.
            lang: The prompt's language.
            known: Finds passages that show how the documents speak; asked for by the strategies with knowledge.
        """
        if self.strategy == "none":
            return question
        passages = await known() if self.strategy.endswith("_with_knowledge") else []
        key = (question, lang, tuple(passage.chunk_id for passage in passages))
        if key not in self._kept:
            text = await _answer(model, self._prompt(question, lang, passages))
            found = _read(text, question, keeps_question=not self.strategy.startswith("split"))
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


async def rewritten(questions: Sequence[str], model: BaseChatModel, lang: Lang) -> str:
    """The last question as one that stands on its own; "" where the model does not say."""
    listed = "\n".join(f"{number}. {' '.join(one.split())}" for number, one in enumerate(questions, 1))
    lines = (await _answer(model, REWRITE[lang].format(questions=listed))).splitlines()
    return lines[-1].strip().strip('"“”')[:_LONGEST_LINE] if lines else ""


async def _answer(model: BaseChatModel, prompt: str) -> str:
    """The model's text, or "" if it fails."""
    try:
        async with asyncio.timeout(_SECONDS):
            reply = await model.achat([Message(USER, prompt)])
    except (ParlourError, TimeoutError) as error:
        _log.info("The question is searched for as it is: %s", error)
        return ""
    return "".join(message.get_text_content() for message in reply if message.role == ASSISTANT).strip()


def _read(text: str, question: str, *, keeps_question: bool) -> str:
    """The words in a model's answer, after what they are about; "" if there are none."""
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
    return " ".join([first, *dict.fromkeys(fine[:_MOST_WORDS])]).strip() if fine or first != question else ""
