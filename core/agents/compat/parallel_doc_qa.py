"""An assistant that reads all of its documents for each question, part by part and at the same time."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from core.agents.arguments import checked_int
from core.agents.assistant import ONLY_INFORMATION, Assistant
from core.agents.limits import Budget
from core.agents.retrieval import is_small_talk
from core.agents.tool_loop import OpeningCall, ToolLoop
from core.errors import ParlourError
from core.languages import spoken
from core.llm.concurrency import in_order
from core.llm.request import ChatRequest
from core.messages.message import SYSTEM, USER, Message
from core.messages.transcript import Transcript
from core.rag.attached import in_library, unfinished, without_text
from core.rag.citations import numbered
from core.rag.prose import count_tokens
from core.tools.base import ToolResult
from core.tools.builtin.ask_documents import AskDocuments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.request import Stream
    from core.messages.message import Usage
    from core.rag.attached import Attached
    from core.rag.document import Passage

NOTHING: Mapping[Lang, str] = {"en": "NOTHING", "zh": "无"}
READ_PART: Mapping[Lang, str] = {
    "en": "You are given numbered passages: one part of the user's documents. Write down what they say to the "
    "question, short and whole, with the number of the passage after each statement, like this [1]. Other parts are "
    "read by others; do not guess what stands there. "
    + ONLY_INFORMATION["en"]
    + " If these passages say nothing to the question, answer with the one word {nothing}.",
    "zh": "以下编号段落是用户文档的一部分。请简明而完整地写出其中与问题有关的内容，并在每个论断后标注段落编号，如 [1]。"
    "其余部分由他人阅读，不要猜测其中的内容。"
    + ONLY_INFORMATION["zh"]
    + "如果这些段落与问题无关，只回答一个字：{nothing}",
}
FOUND_IN_PARTS: Mapping[Lang, str] = {
    "en": "All parts of the documents were read for the question. This is what they say to it; the numbers are those "
    "of the passages below.",
    "zh": "已针对该问题阅读文档的所有部分。以下是其中的相关内容，编号对应下方的段落。",
}
NOTHING_IN_PARTS: Mapping[Lang, str] = {
    "en": "All parts of the documents were read, and none says anything to the question. Say that the documents do not "
    "contain it.",
    "zh": "已阅读文档的所有部分，没有与问题有关的内容。请说明文档中没有相关内容。",
}
NOTHING_IN_SOME_PARTS: Mapping[Lang, str] = {
    "en": "What could be read of the documents says nothing to the question. Do not say that the documents do not "
    "contain it.",
    "zh": "能够读取的部分中没有与问题有关的内容。请不要说文档中没有相关内容。",
}
PARTS_FAILED: Mapping[Lang, str] = {
    "en": "{failed} of the {parts} parts could not be read: say that the answer may be incomplete.",
    "zh": "{parts} 个部分中有 {failed} 个未能读取：请说明答案可能不完整。",
}


_MOST_TOKENS = 400_000  # of documents: beyond, a question would cost hundreds of model calls
_PART = (200, 100_000)
_MARK = re.compile(r"\[(\d{1,6})\]")


class ParallelDocQA(Assistant):
    """Reads everything its documents say to a question, where a search would find only some of it.

    The documents are cut into parts; for each the model is asked what it says to the question, several at the same
    time, and what was found goes to the model once more, with the passages that it cites. That shows as one call of
    `ask_documents`. A part of which the model says that there is nothing in it is dropped. A part that fails costs that
    part alone, and the model is told how many could not be read; where all fail, the reply goes on with that error as
    the call's result. What is cited by a number that no passage has is kept without the number. Parts
    beyond the price that a reply may have are such as could not be read.

    A greeting, a conversation without a question or without documents, and documents of more than 400,000 tokens (by
    estimate) are answered as an `Assistant` does.

    Args:
        part_tokens: How much of the documents is read in one call, 200 to 100,000, by estimate.
        at_once: How many calls are made at the same time, 1 to 64.
        arguments: As of `Assistant`.

    Raises:
        SettingsError: A number is out of range, or as of `Assistant`.
    """

    def __init__(self, *arguments: Any, part_tokens: int = 2000, at_once: int = 4, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._part = checked_int("part_tokens", part_tokens, *_PART)
        self._at_once = checked_int("at_once", at_once, 1, 64)

    async def _from_documents(self, messages: list[Message], lang: Lang, context: dict[str, Any]) -> Stream:
        library, documents = await self._open_library(messages, lang, context)
        question = await self._query(messages, lang)
        passages: list[Passage] | None = None
        unread = list[str]()
        if documents and question and not is_small_talk(question) and context.get("may_have_run") is None:
            passages = await asyncio.to_thread(library.context.full_text, documents, _MOST_TOKENS)
            unread = without_text(await asyncio.to_thread(in_library, library, documents), lang)
        if not passages:
            events = super()._from_documents(messages, lang, context)
        else:
            read = ReadInParts(
                self._model(),
                _parts(passages, self._part),
                self._at_once,
                self.extra_generate_cfg,
                context.get("budget"),
                attached=self._attached,
                unread=unread,
            )
            events = self._from_all(messages, question, read, documents, lang, context)
        async with aclosing(events) as reply:
            async for event in reply:
                yield event

    def _from_all(
        self,
        messages: list[Message],
        question: str,
        read: ReadInParts,
        documents: Collection[str],
        lang: Lang,
        context: dict[str, Any],
    ) -> Stream:
        loop = ToolLoop(
            self._model(),
            {**self.function_map, read.name: read},
            list(self.function_map),  # all was read: the model has nothing more to look for
            self.name,
            self.extra_generate_cfg,
            self.max_iteration,
        )
        opening = OpeningCall(read.name, {"query": question})
        return loop.reply(self._citing(messages, documents, lang), lang=lang, opening=opening, **context)


@dataclass(slots=True)
class _Read:
    """The combined answers of the parts."""

    found: list[str] = field(default_factory=list[str])
    cited: list[Passage] = field(default_factory=list[Any])
    failed: int = 0
    usage: Usage | None = None


class ReadInParts(AskDocuments):
    """Asks a model what each part of the documents says about a question.

    Args:
        model: The model.
        parts: The passages of each part.
        at_once: How many parts are read at the same time.
        generate: Overrides the model's `generate_cfg`.
        budget: The reply's; a part beyond it counts as failed.
        attached: Returns the conversation's files; those that were not read are in no part.
        unread: As of `AskDocuments`.
    """

    timeout = 3600.0

    def __init__(  # noqa: PLR0913 - by name what is told of files
        self,
        model: BaseChatModel,
        parts: Sequence[Sequence[Passage]],
        at_once: int,
        generate: Mapping[str, Any],
        budget: Budget | None = None,
        *,
        attached: Callable[[], Awaitable[Sequence[Attached]]] | None = None,
        unread: Sequence[str] = (),
    ) -> None:
        super().__init__(_no_search, unread=unread if attached is None else ())
        self._attached = attached
        self._model, self._parts, self._at_once, self._generate = model, parts, at_once, generate
        self._budget = budget or Budget()

    async def call(
        self,
        params: str | dict[str, Any],
        *,
        evidence: list[Passage] | None = None,
        lang: str = "en",
        progress: Callable[..., None] | None = None,
        **kwargs: Any,
    ) -> ToolResult:
        """Read all parts.

        Args:
            params: `{"query": ...}`.
            evidence: What was found earlier in the same reply; what is cited now is added to it.
            lang: The language of what Parlour says.
            progress: Told how many parts are read.
            kwargs: Not used.

        Raises:
            ParlourError: No part could be read; the first one's error.
        """
        del kwargs
        question = str(self._verify_json_format_args(params)["query"])
        language = spoken(lang)
        done, cost = 0, 0.0

        async def one(part: Sequence[Passage]) -> Transcript:
            nonlocal done, cost
            self._budget.check_cost(besides=cost)
            reply = await self._asked(question, part, language)
            done += 1
            cost += (reply.usage.cost or 0.0) if reply.usage is not None else 0.0
            if progress is not None:
                progress(f"{done} / {len(self._parts)}", done, len(self._parts))
            return reply

        replies = await in_order(one, self._parts, self._at_once, keep_errors=True)
        earlier = evidence if evidence is not None else []
        read = _put_together(replies, self._parts, len(earlier) + 1, language)
        if read.failed == len(self._parts):
            raise next(reply for reply in replies if isinstance(reply, ParlourError))
        files = [one for one in await self._attached() if one.status != "ready"] if self._attached else []
        result = _result(read, earlier, len(self._parts), language, files)
        return replace(result, extra={**result.extra, **self._unread})

    async def _asked(self, question: str, part: Sequence[Passage], lang: Lang) -> Transcript:
        text = f"{numbered(part, lang)}\n\n{question}"
        asked = (Message(SYSTEM, READ_PART[lang].format(nothing=NOTHING[lang])), Message(USER, text))
        reply = Transcript()
        async with aclosing(self._model.stream(ChatRequest(asked, (), self._generate, lang))) as events:
            async for event in events:
                reply.apply(event)
        return reply


async def _no_search(question: str, k: int) -> list[Passage]:
    del question, k
    return []


def _parts(passages: Sequence[Passage], most: int) -> list[list[Passage]]:
    """The passages in order, as many in each part as fit; none is split."""
    parts: list[list[Passage]] = []
    room = 0.0
    for passage in passages:
        size = count_tokens(passage.text)
        if not parts or size > room:
            parts.append([])
            room = float(most)
        parts[-1].append(passage)
        room -= size
    return parts


def _put_together(
    replies: Sequence[Transcript | ParlourError], parts: Sequence[Sequence[Passage]], first: int, lang: Lang
) -> _Read:
    """The answers of the parts, with their citations renumbered."""
    read = _Read()
    for reply, part in zip(replies, parts, strict=True):
        if isinstance(reply, ParlourError):
            read.failed += 1
            continue
        if reply.usage is not None:
            read.usage = reply.usage if read.usage is None else read.usage + reply.usage
        text = "\n".join(message.get_text_content() for message in reply.messages()).strip()
        if not text or text.strip(" .。!！*\"'“”").casefold() == NOTHING[lang].casefold():
            continue
        numbers = list(dict.fromkeys(int(one) for one in _MARK.findall(text) if 1 <= int(one) <= len(part)))
        numbers = numbers or list(range(1, len(part) + 1))  # it cites nothing: any of them may support it
        new = {old: first + len(read.cited) + at for at, old in enumerate(numbers)}
        read.cited += [part[old - 1] for old in numbers]
        read.found.append(_MARK.sub(lambda mark, new=new: _renumbered(mark[1], new), text))
    return read


def _renumbered(number: str, new: Mapping[int, int]) -> str:
    return f"[{new[int(number)]}]" if int(number) in new else ""


def _result(read: _Read, earlier: list[Passage], parts: int, lang: Lang, files: Sequence[Attached] = ()) -> ToolResult:
    first = len(earlier) + 1
    extra: dict[str, Any] = {} if read.usage is None else {"spent": read.usage.model_dump()}
    failed = [PARTS_FAILED[lang].format(failed=read.failed, parts=parts)] if read.failed else []
    if not read.found:
        nothing = (NOTHING_IN_SOME_PARTS if failed or files else NOTHING_IN_PARTS)[lang]
        unread = {"unsearched": [one.as_dict() for one in files]} if files else {}
        told = [nothing, *failed, *([unfinished(files, lang)] if files else [])]
        return ToolResult("\n\n".join(told), extra={**extra, "nothing_found": True, **unread})
    earlier.extend(read.cited)
    rows = tuple({**passage.as_dict(), "number": number} for number, passage in enumerate(read.cited, first))
    shown = numbered(read.cited, lang, first=first)
    text = "\n\n".join([FOUND_IN_PARTS[lang], *read.found, *failed, shown])
    return ToolResult(text, passages=rows, extra=extra)
