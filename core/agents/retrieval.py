"""Retrieval for one reply: which passages are found, and how many of them fit the model."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from math import isqrt
from typing import TYPE_CHECKING

from core.agents.excerpts import excerpt
from core.agents.search_query import KeywordQuery, has_content_words
from core.errors import DocumentError, NoSpaceError, StorageError
from core.llm.calling.json_schema import needed
from core.llm.picture_tokens import picture_tokens
from core.llm.tokens import estimate_tokens
from core.rag.attached import in_library, with_meaning
from core.rag.citations import numbered
from core.rag.counted import Count, counted, may_be_counted
from core.rag.coverage import covered, searched
from core.rag.document import numbered_as
from core.rag.scope import exceeds_passages, is_of_topic, scope_of
from core.rag.search.terms import terms
from core.rag.unread_parts import chunks_of_text
from core.tools.builtin.ask_documents import ReadPart

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.rag.attached import Attached
    from core.rag.config import RAGConfig
    from core.rag.coverage import Coverage
    from core.rag.document import Passage
    from core.rag.library import Library
    from core.rag.scope_part import Part

_SMALL_MODEL_TOKENS = 600  # of passages: its context and its attention are short
# Of passages that answer a question: so many tokens with their headings, but for a longer first one and a second; each
# after the first has fewer. The answer is among them as often as among 600 tokens of whole passages, and is read in
# half of the time.
_SMALL_MODEL_ANSWER = 240
_SMALL_MODEL_OTHERS = 60
_SHARE = 0.4  # of the question's words that the passages must speak of before a small model is given them
_BEGINNINGS = 12  # documents of which the beginning is read at least
_END = 80  # letters by which a chunk is known within a passage
_MOST_NAMED = 4  # figures that a question names
_KNOWN = 6  # passages that show a model how the documents speak
_SMALL_TALK = re.compile(
    r"\s*((hi|hello|hey|thanks?|good (morning|evening|night)|bye|goodbye|ok(ay)?|great|how are you|who are you)\b"
    r"|你好|您好|嗨|谢谢|早上好|晚上好|晚安|再见|好的|你是谁)[\s\w,，.!！?？。~～]{0,20}$",
    re.IGNORECASE,
)
_OF_FILES = re.compile(
    r"\b(files?|docs?|documents?|pdfs?|papers?|pages?|slides?|(spread)?sheets?|images?|pictures?|photos?|recordings?"
    r"|sources?|attach\w*|upload\w*)\b|\bi('ve| have)? (just )?(sen[dt]|gave|given?|shared?|add(ed)?)\b|\bin here\b"
    r"|\bwhat('s| is| are) (this|that|these|those|it|here|there)\W*$|\bwhat (do you have|can you see)\W*$"
    r"|文件|文档|资料|材料|附件|上传|页|幻灯片|表格|工作表|PDF|图片|照片|录音|来源"
    r"|[发给传]了?[你什哪]|[这里]里?面?[有是](什么|哪些|啥)|你有(什么|哪些|啥)",
    re.IGNORECASE,
)
_OVERVIEW = re.compile(
    r"\bsummar(y|i[sz]e)|\boverview\b|\btl;?dr\b|\bmain (points?|ideas?|topics?)\b|\bkey (points?|takeaways?)\b"
    r"|\b(what|tell me)\b.{0,30}\b(documents?|files?|pdfs?|papers?|texts?|reports?)\b.{0,12}\babout"
    r"(?=\W*$|[?.!,;:]| (in (short|general|brief|a few words)|overall|altogether|exactly|roughly|please)\b)"
    r"|\bwhat('s| is| does).{0,20}\b(this|the|that|my|these|those) "
    r"(document|file|pdf|paper|text|report)s?\b\W*(say)?\W*$"
    r"|\A[^?？]{0,40}https?://\S+\s*\Z"  # nothing but a page to read
    r"|总结|概括|摘要|概述|归纳|大意|主要内容|讲了什么|讲什么|说了什么|关于什么|要点",
    re.IGNORECASE,
)
_FOR_TOOLS = ("calculator", "current_time")
_LONGEST_SUM = 200  # letters
# A request and a sum, and nothing else: what is asked of documents has other words.
_SUM = re.compile(
    r"\W*(?:(?:please|ok(?:ay)?|so|and|now|hi|hello)\W+)*(?:(?:can|could) you )?(?:please )?"
    r"(?:what(?:'s|’s| is| does)|how much is|calculate|compute|work out|evaluate|tell me(?: what)?)?(?: the result of)?"
    r"(?:请问|请|帮我|计算|算一?算|算|一下|[，,：:])*"
    r"(?P<sum>(?:[\d\s.,()（）+*/×÷·^%％²³√!=−–-]|plus|minus|times|multiplied by|divided by|percent|of|the|square root"
    r"|squared|cubed|to the power of|is|乘以?|除以|加上?|减去?|的|平方|立方|次方|百分之)+)"
    r"(?:equals?|make|得|等于|是|多少|几|结果|呢)*\W*",
    re.IGNORECASE,
)
_NO_SUM = re.compile(r"\d[/–-]\d")  # may be a date, a part number, or pages


def is_small_talk(question: str) -> bool:
    """Whether it is a greeting or thanks, which needs no search."""
    return bool(_SMALL_TALK.match(question))


def is_of_files(question: str) -> bool:
    """Whether it may ask which files there are, and of what kind and length."""
    return bool(_OF_FILES.search(question))


def is_sum(question: str) -> bool:
    """Whether it is a sum and nothing else, such as "What is 17 * 23?": no document has its answer."""
    if len(question) > _LONGEST_SUM or needed(question, _FOR_TOOLS) != "calculator":
        return False
    found = _SUM.fullmatch(question)
    return found is not None and bool(needed(_NO_SUM.sub(" ", found["sum"]), ("calculator",)))


def stands_alone(question: str) -> bool:
    """Whether it is clear without earlier questions though it has few content words: a greeting, a summary, a sum."""
    return is_small_talk(question) or _is_overview(question) or bool(needed(question, _FOR_TOOLS))


def _is_overview(question: str) -> bool:
    return bool(_OVERVIEW.search(question)) or is_of_topic(question)


class NoModel:
    """Takes the place of a model where there is none: no keywords are generated, and tokens are estimated."""

    small = False
    support_multimodal_input = False
    model = ""

    def count_tokens(self, text: str) -> int:
        """The estimated number of tokens."""
        return estimate_tokens(text)


@dataclass(frozen=True, slots=True)
class Material:
    """What the next question is given of documents, by estimate.

    Args:
        whole: Tokens of all of it, where that fits and the model would get it; else 0.
        passages: Tokens of what a search gives.
        names: The documents.

    For a model that sees, both count the pictures of figures and pages that may go along.
    """

    whole: int = 0
    passages: int = 0
    names: tuple[str, ...] = ()


async def material(
    library: Library, documents: Collection[str], model: BaseChatModel | NoModel, config: RAGConfig
) -> Material:
    """What a question is given of these documents, whole and as passages. Raises StorageError."""
    most = config.max_ref_token

    def measured() -> Material:
        there = [one for one in library.documents() if one.id in set(documents)]
        chunks = sum(one.chunks for one in there)
        names = tuple(one.name for one in there)
        tokens = sum(model.count_tokens(one.text) for one in _whole_of(library, documents, model, most))
        seen = _pictures_of(library, documents, model, config)
        if not tokens:
            return Material(0, min(_room(model, most), config.chunk_size * min(config.top_k, chunks)) + seen, names)
        return Material(tokens + seen, round(tokens * min(1.0, config.top_k / max(chunks, 1))) + seen, names)

    return await asyncio.to_thread(measured)


def _whole_of(library: Library, documents: Collection[str], model: BaseChatModel | NoModel, most: int) -> list[Passage]:
    """All of the documents, if they fit into `most` tokens; a small model is better off with the best of them first."""
    whole = None if model.small else library.context.full_text(documents, most)
    return whole if whole and sum(model.count_tokens(one.text) for one in whole) <= most else []


def _pictures_of(
    library: Library, documents: Collection[str], model: BaseChatModel | NoModel, config: RAGConfig
) -> int:
    """The tokens of the pictures that may go with a search, about: those of squares of the most pixels."""
    if not model.support_multimodal_input or not config.max_pictures:
        return 0
    count = min(config.max_pictures, len(library.figures.of(documents)))
    side = isqrt(config.max_picture_pixels)
    return min(count * picture_tokens((side, side), model.model), config.max_picture_tokens)


def _room(model: BaseChatModel | NoModel, most: int) -> int:
    """Tokens that passages may take."""
    return min(_SMALL_MODEL_TOKENS, most) if model.small else most


@dataclass(slots=True)
class Finder:
    """Finds passages for one reply of a model.

    Args:
        documents: The ids of the documents to search.
        model: Reads the passages; its size decides how many it is given.
        config: The token limit of the passages, and how the question becomes a query.
        words: Asks the model for keywords, if the config says so.
        lang: The language of that prompt.
        question: The user's last question, unchanged; "" where it is unknown.
        earlier: The questions before it, oldest first: "and in the West?" asks what the one before it asked.
        attached: Returns the conversation's files, with those that are not in the library yet.
        fits: Tokens of documents that the model surely sees whole: so many are given where the question is about all.
        read: After a search that returned only the beginnings of documents: which parts they are.
        coverage: After a search that returned all that the question is about, or passages for one that counts or lists:
            how much that was.
        whole: Whether the last search gave all of the documents.
        only: The names of the documents, where the question names them and nothing else is searched.
    """

    library: Library
    documents: Collection[str]
    model: BaseChatModel | NoModel
    config: RAGConfig
    words: KeywordQuery = field(default_factory=lambda: KeywordQuery("none"))
    lang: Lang = "en"
    question: str = ""
    attached: Callable[[], Awaitable[Sequence[Attached]]] | None = None
    fits: int = 0
    read: Sequence[ReadPart] = ()
    coverage: Coverage | None = None
    whole: bool = False
    only: Sequence[str] = ()
    earlier: Sequence[str] = ()
    _searches: int = 0
    _count: Count | None = None
    _given: Sequence[Passage] = ()

    @property
    def is_brief(self) -> bool:
        """Whether the model is told no pages: a small one says wrong ones, and marks lead to the right ones."""
        return self.model.small and not is_of_files(self.question)

    @property
    def is_about_all(self) -> bool:
        """Whether the question is about all of the documents."""
        return scope_of(self.question).need == "whole"

    async def find(self, question: str, k: int) -> list[Passage]:
        """The passages that answer a question best; for "summarise this" the documents' beginnings.

        Documents that fit as a whole are given whole, the first time; of longer ones the part that the question names,
        such as "chapter 3" or "pages 10 to 12", as far as it fits. Where a small model asks in other words than the
        documents use, their beginnings come after what was found. What the question counts without a condition, such as
        rows or pages, is counted by program and comes first; a small model is given nothing else where that is all.
        """
        self._searches += 1
        self.read, self.coverage, self.whole = (), None, False
        is_first = self._searches == 1
        if is_first and await self.counts():
            count = await self._counted()
            told = list(count.passages)
            if self.model.small and count.alone:
                return told
            return [*told, *await self._fitting(await self._found(question, k, is_first=is_first), question)]
        whole = await self._whole(question) if is_first else []
        self.whole = bool(whole)
        if whole:
            return whole
        if is_first and (part := await self._part()):
            return part
        if _is_overview(question):
            return await self._beginnings(k)
        found = await self._found(question, k, is_first=is_first)
        if named := await asyncio.to_thread(self._named, question):
            known = {(one.document_id, one.chunk_id) for one in named}
            found = [*named, *(one for one in found if (one.document_id, one.chunk_id) not in known)]
        if self.only and not found:  # that it is not there is what the question is answered with
            return []
        if self.model.small and not _cover(question, found):
            if needed(question, _FOR_TOOLS):  # a small model given passages would not reckon, but read
                return []
            known = {(passage.document_id, passage.chunk_id) for passage in found}
            beginnings = await self.library.abeginnings(k, documents=self.documents)
            found += [one for one in beginnings if (one.document_id, one.chunk_id) not in known]
        return await self._best(found, question)

    async def _best(self, found: list[Passage], question: str) -> list[Passage]:
        """As many of them as fit; how much that is stands in `coverage`, where the question may need more."""
        fitting = await self._fitting(found, question)
        if fitting and exceeds_passages(self.question) and not await self.counts():
            self.coverage = await asyncio.to_thread(_searched, self.library, self.documents, self._given)
        return fitting

    async def is_for_tables(self) -> bool:
        """Whether it counts or lists, and all of the documents are sheets: a query over them is exact, and quicker."""
        if not scope_of(self.question).lists:
            return False
        try:
            there = await asyncio.to_thread(self.library.documents)
        except StorageError:  # the search says what is wrong
            return False
        asked = [one for one in there if one.id in self.documents]
        return bool(asked) and all(one.tables and numbered_as(one.name) == "sheet" for one in asked)

    async def counts(self) -> bool:
        """Whether the question asks how many rows or pages there are, and a program knows: then nothing is read."""
        return bool((await self._counted()).passages)

    async def _counted(self) -> Count:
        """How many rows or pages there are, where the question asks for that; it is found out once."""
        if self._count is None:
            may = may_be_counted(self.question, self.earlier)
            self._count = await self._counted_now() if may else Count()
        return self._count

    async def _counted_now(self) -> Count:
        gone = threading.Event()
        try:
            told = partial(counted, self.library, self.documents, self.question, self.lang, gone.is_set, self.earlier)
            return await asyncio.to_thread(told)
        except (DocumentError, NoSpaceError, StorageError):  # what words find is an answer, or says what is wrong
            return Count()
        finally:
            gone.set()  # a long sheet is read no further where the reply is stopped

    async def unsearched(self) -> list[Attached]:
        """The files that are not fully searchable: not read, not to the end, or without vectors for all of it yet."""
        if self.attached is not None:
            files = await asyncio.to_thread(with_meaning, await self.attached(), self.library)
        else:
            files = await asyncio.to_thread(in_library, self.library, self.documents)
        return [one for one in files if not one.is_whole]

    async def _beginnings(self, k: int) -> list[Passage]:
        """The beginnings of all documents, or of the first of many."""
        most = max(k, min(len(self.documents), _BEGINNINGS))
        found = await self.library.abeginnings(most, documents=self.documents)
        fitting = await self._fitting(found)
        self.read = await asyncio.to_thread(_read_of, self.library, self.documents, found, fitting)
        return fitting

    async def _part(self) -> list[Passage]:
        """The part of the documents that the question is about; nothing where it names none, or there is none such."""
        part = scope_of(self.question).part
        if part is None:
            return []
        found = await asyncio.to_thread(self.library.context.part, self.documents, part)
        fitting = await self._fitting(found, most=self.fits)
        if len({one.document_id for one in found}) == 1:
            read = [one for one in found if any(one.text[-_END:] in it.text for it in fitting)]
            self.read = _beginning_of(part, found, read)
        return fitting

    def _named(self, question: str) -> list[Passage]:
        """The passages with the captions of figures that the question names: they come before what words find."""
        figures = self.library.figures
        asked = [*figures.named(self.question, self.documents), *figures.named(question, self.documents)]
        return figures.passages(asked[:_MOST_NAMED]) if asked else []

    async def _whole(self, question: str) -> list[Passage]:
        """All of the documents, if they fit and the question is about anything."""
        if not self.config.whole_documents or is_small_talk(question):
            return []
        is_about_all = self.is_about_all
        most = max(self.config.max_ref_token, self.fits if is_about_all else 0)
        found = await asyncio.to_thread(_whole_of, self.library, self.documents, self.model, most)
        # What may be shortened on its way to the model is not said to be read.
        if is_about_all and found and sum(self.model.count_tokens(one.text) for one in found) <= self.fits:
            files = await self.attached() if self.attached is not None else ()
            self.coverage = await asyncio.to_thread(_covered, self.library, self.documents, found, files)
        return found

    async def _found(self, question: str, k: int, *, is_first: bool) -> list[Passage]:
        """The passages for the query; for a follow-up also those for the question alone."""
        searched = [question]
        if is_first and not stands_alone(question):
            known = partial(self.library.afind, question, _KNOWN, documents=self.documents)
            if not isinstance(self.model, NoModel):
                searched = [await self.words.searched(question, self.model, self.lang, known)]
            if self.question and self.question != question and has_content_words(self.question):
                searched.insert(0, self.question)
        found = [await self.library.afind(one, k, documents=self.documents) for one in searched]
        return found[0] if len(found) == 1 else _interleaved(found, k)

    async def _fitting(self, found: list[Passage], question: str = "", *, most: int = 0) -> list[Passage]:
        """As many of the best passages as fit, neighbours joined; the first is cut if it is too long.

        They are chosen before they are joined: a neighbour that stands before the best one must not push it out.
        """
        chosen: list[Passage] = []
        if question and self.model.small:
            chosen = self._few(found, question)
        else:
            room = _room(self.model, max(most, self.config.max_ref_token))
            for one in found:
                tokens = self.model.count_tokens(one.text)
                if tokens > room and not chosen:
                    chosen.append(self._cut(one, question, room))
                if tokens > room:
                    break
                room -= tokens
                chosen.append(one)
        uncut = {id(one) for one in found}
        self._given = [one for one in chosen if id(one) in uncut]
        return await asyncio.to_thread(self.library.context.merged, chosen)

    def _few(self, found: list[Passage], question: str) -> list[Passage]:
        """What a small model answers from: the best passage, and of some others the sentences that fit the question."""
        most = _room(self.model, self.config.max_ref_token)
        chosen = [self._cut(one, question, most) for one in found[:1]]
        for one in found[1:]:
            passages = [*chosen, self._cut(one, question, _SMALL_MODEL_OTHERS)]
            tokens = self.model.count_tokens(numbered(passages, self.lang, notice=False, brief=self.is_brief))
            if tokens > (most if len(chosen) == 1 else _SMALL_MODEL_ANSWER):
                break
            chosen = passages
        return chosen

    def _cut(self, passage: Passage, question: str, most: int) -> Passage:
        """The passage, or what fits the question best of one that has more than `most` tokens."""
        tokens = self.model.count_tokens(passage.text)
        if tokens <= most:
            return passage
        return replace(passage, text=excerpt(passage.text, question, len(passage.text) * most // tokens))


def _beginning_of(part: Part, found: Sequence[Passage], read: Sequence[Passage]) -> list[ReadPart]:
    """What was read of a part of which not all fitted."""
    if len(read) >= len(found):
        return []
    pages, last = [one.page for one in read if one.page is not None], found[-1].page
    if part.unit == "chapter" or not pages or last is None:
        return [ReadPart(found[0].document, "passage", 1, len(read), len(found))]
    return [ReadPart(found[0].document, numbered_as(found[0].document), min(pages), max(pages), last)]


def _read_of(
    library: Library, documents: Collection[str], found: Sequence[Passage], fitting: Sequence[Passage]
) -> list[ReadPart]:
    """Which parts were read of the documents that are longer than these, and of which nothing was.

    Args:
        library: Says how much there is.
        documents: The ids of those that are asked about.
        fitting: As the model is given them: several in one passage, the last ones cut or left out.
    """
    parts: list[ReadPart] = []
    for document in library.documents():
        given = [one.text for one in fitting if one.document_id == document.id]
        read = [one for one in found if one.document_id == document.id and any(one.text[-_END:] in it for it in given)]
        pages = [one.page for one in read if one.page is not None]
        if document.id not in documents or len(read) >= (chunks := chunks_of_text(library, document)):
            continue
        if not given:
            parts.append(ReadPart(document.name, "passage", 0, 0, chunks))
        elif not read:
            continue
        elif pages and document.pages and max(pages) < document.pages:
            parts.append(ReadPart(document.name, numbered_as(document.name), min(pages), max(pages), document.pages))
        else:
            parts.append(ReadPart(document.name, "passage", 1, len(read), chunks))
    return parts


def _covered(
    library: Library, documents: Collection[str], sent: Sequence[Passage], files: Sequence[Attached]
) -> Coverage:
    there = [one for one in library.documents() if one.id in set(documents)]
    return covered(sent, library.context.whole(documents), there, files=files)


def _searched(library: Library, documents: Collection[str], given: Sequence[Passage]) -> Coverage:
    return searched(given, [one for one in library.documents() if one.id in set(documents)])


def _interleaved(found: Sequence[Sequence[Passage]], k: int) -> list[Passage]:
    """The best passage of each search, then the second of each, and so on; without duplicates."""
    mixed = {(one.document_id, one.chunk_id): one for rank in zip_longest(*found) for one in rank if one is not None}
    return list(mixed.values())[:k]


def _cover(question: str, passages: list[Passage]) -> bool:
    """Whether the passages have enough of the question's words: a small model trusts whatever it is given."""
    asked = {term for term in terms(question) if len(term) > (2 if term.isdigit() else 1)}
    there = {term for passage in passages for term in terms(f"{passage.document}\n{passage.heading}\n{passage.text}")}
    return len(asked & there) >= _SHARE * len(asked) if asked else bool(passages)
