"""The agent that people talk to: a model with tools and documents."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from core.agents.citing import without_old_numbers
from core.agents.fn_call import FnCallAgent
from core.agents.follow_up import asked_together
from core.agents.knowledge import Knowledge, told_knowledge
from core.agents.own_library import OwnLibrary, files_here
from core.agents.pending import this_turn
from core.agents.prompts import CITE, CITE_SMALL, WHO
from core.agents.retrieval import Finder, is_small_talk, stands_alone
from core.agents.search_words import SearchWords, rewritten
from core.agents.telling import also_told
from core.agents.tool_loop import MOST_MODEL_CALLS, Opening, ToolLoop
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.rag.attached import listed
from core.rag.config import RAGConfig
from core.tools.base import files_of
from core.tools.builtin.ask_documents import AskDocuments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from core.agents.given_tools import GivenTool
    from core.llm.base import BaseChatModel
    from core.llm.request import Lang, Stream
    from core.rag.attached import Attached
    from core.rag.library import Library
    from core.tools.base import BaseTool


class Assistant(FnCallAgent):
    """Answers with tools and from documents.

    Where there are documents, their passages are searched before the model is asked, which shows as an ordinary call
    of `ask_documents`; the answer carries `[n]` marks that point to them. `run(messages, knowledge="…")` brings its own
    material instead: the model reads that, and no document is searched.

    Args:
        function_list: Tools, as of every agent.
        llm: The model.
        system_message: Instead of Parlour's own words about who it is.
        name: Who speaks, where there are several.
        description: What it is good at.
        files: Documents, as paths or addresses on the web; they are read when the first question comes.
        rag_cfg: How documents are cut and searched; `index_path` keeps the index in that folder.
        library: Documents that are in a library already.
        documents: Those of the library that count, by id; all of them by default. An empty list needs no library.
        attached: Tells which files there are, also those that no search finds: the model is told of them. Left out,
            it hears of files by their passages alone.
        max_iteration: The most model calls of one reply, 1 to 99.

    Raises:
        SettingsError: A tool, the model or `rag_cfg` cannot be made of what was given.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the seed's arguments, and two of our own by name
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: BaseChatModel | Mapping[str, Any] | str | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        files: Sequence[str] | None = None,
        rag_cfg: RAGConfig | Mapping[str, Any] | None = None,
        *,
        library: Library | None = None,
        documents: Collection[str] | None = None,
        attached: Callable[[], Awaitable[Sequence[Attached]]] | None = None,
        max_iteration: int = MOST_MODEL_CALLS,
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, max_iteration=max_iteration)
        self._rag = RAGConfig.of(rag_cfg)
        self._library = library
        self._documents = documents
        self._attached = attached
        self._words = SearchWords(self._rag.rag_keygen_strategy)
        self._own = OwnLibrary(files or (), self._rag)
        self._has_files = bool(files)

    @property
    def has_library(self) -> bool:
        """Whether it answers from a library that somebody else fills, or would if there were documents in it."""
        return self._library is not None or self._documents is not None

    def over(
        self,
        library: Library | None,
        documents: Collection[str],
        attached: Callable[[], Awaitable[Sequence[Attached]]] | None = None,
    ) -> Self:
        """The same assistant over `documents`, ids in `library`; itself where it has files or a library of its own.

        Args:
            library: `None` where there are no documents: the library need not be opened then.
            documents: All that counts; none means that it answers without documents.
            attached: Tells which files there are.
        """
        if self._has_files or self.has_library:
            return self
        own = copy(self)
        own._library, own._documents, own._attached = library, documents, attached  # noqa: SLF001 - its own copy
        return own

    def _system_message(self, lang: Lang) -> str:
        return WHO[lang] if self.system_message is None else self.system_message

    def _stream_reply(self, messages: list[Message], *, lang: Lang, knowledge: Knowledge = "", **kwargs: Any) -> Stream:
        kwargs = self._asking({"files": files_of(messages), **kwargs})
        messages = without_old_numbers(messages)
        told = told_knowledge(knowledge, lang)
        if told:  # what may be private: whoever decides about a call must know
            messages = also_told(messages, told, extra={"files": [""]})
            return self._loop(self.function_map).reply(messages, lang=lang, **kwargs)
        if self._attached is not None:
            return self._told_of_files(messages, lang, kwargs)
        return self._answered(messages, lang, kwargs)

    def _answered(self, messages: list[Message], lang: Lang, context: dict[str, Any]) -> Stream:
        if not self._may_have_documents(messages):
            return self._loop(self.function_map).reply(messages, lang=lang, **context)
        return self._from_documents(messages, lang, context)

    async def _told_of_files(self, messages: list[Message], lang: Lang, context: dict[str, Any]) -> Stream:
        """The reply of a model that knows which files there are, whether a search finds them or not."""
        files = await self._attached() if self._attached is not None else ()
        told = listed(files, lang, brief=self._model().small)
        events = self._answered(also_told(messages, told) if told else messages, lang, context)
        async with aclosing(events) as reply:
            async for event in reply:
                yield event

    async def _from_documents(self, messages: list[Message], lang: Lang, context: dict[str, Any]) -> Stream:
        library, documents = await self._opened(messages)
        if documents:
            events = await self._over_documents(messages, library, documents, lang, context)
        else:
            events = self._loop(self.function_map).reply(messages, lang=lang, **context)
        async with aclosing(events) as reply:
            async for event in reply:
                yield event

    async def _over_documents(
        self,
        messages: list[Message],
        library: Library,
        documents: Collection[str],
        lang: Lang,
        context: dict[str, Any],
    ) -> Stream:
        """The reply where there are documents."""
        small = self._model().small
        ask = self._search(messages, library, documents, lang)
        loop = self._loop({**self.function_map, ask.name: ask}, list(self.function_map) if small else None)
        opening = None if goes_on(context) else await self._opening(ask.name, messages, lang)
        told = self._citing(messages, documents, lang, found=found_already(messages, context))
        return loop.reply(told, lang=lang, opening=opening, **context)

    def _search(
        self, messages: list[Message], library: Library, documents: Collection[str], lang: Lang
    ) -> AskDocuments:
        """The tool that finds passages for this reply."""
        model, question = self._model(), question_of(messages)
        finder = Finder(library, documents, model, self._rag, self._words, lang, question, self._attached)
        options = {"k": self._rag.top_k, "notice": not model.small}
        return AskDocuments(finder.find, options, unsearched=finder.unsearched, read=lambda: finder.read)

    def _citing(
        self, messages: list[Message], documents: Collection[str], lang: Lang, *, found: int = 0
    ) -> list[Message]:
        """The conversation as the model reads it with passages of this turn; the last `found` messages stay.

        What the model has said may come from the documents also where no search is left: whoever decides about a call
        must know.
        """
        kept = _without_old_passages(messages, found)
        return also_told(kept, self._how_to_cite(lang), extra={"files": list(documents)})

    def _how_to_cite(self, lang: Lang) -> str:
        """What the model is told of the passages."""
        return CITE_SMALL[lang] if self._model().small else CITE[lang]

    async def _opening(self, name: str, messages: list[Message], lang: Lang) -> Opening | None:
        """The search that comes before the model is asked."""
        question = question_of(messages)
        if not question:
            return None
        arguments = {"query": await self._query(messages, lang)}
        return Opening(name, arguments, quiet=is_small_talk(question), told_if_empty=not self._model().small)

    async def _query(self, messages: list[Message], lang: Lang) -> str:
        """What to search for: the question, or what it means after those before it."""
        questions = asked_together(messages)
        how = self._rag.follow_up
        if len(questions) < 2 or how == "off" or stands_alone(questions[-1]):
            return questions[-1] if questions else ""
        written = await rewritten(questions, self._model(), lang) if how == "model" else ""
        return written or " ".join(questions)

    def _loop(self, tools: Mapping[str, BaseTool], offered: Sequence[str] | None = None) -> ToolLoop:
        most = self.max_iteration
        return ToolLoop(self._model(), tools, offered, self.name, self.extra_generate_cfg, most)

    def _may_have_documents(self, messages: list[Message]) -> bool:
        if self.has_library:
            return self._documents is None or bool(self._documents)
        return self._has_files or bool(files_here(messages))

    async def _opened(self, messages: list[Message]) -> tuple[Library, Collection[str]]:
        """The library, and the ids of the documents that count."""
        if self._library is None:
            return await asyncio.to_thread(self._own.with_files, files_here(messages))
        if self._documents is None:
            return self._library, [document.id for document in await asyncio.to_thread(self._library.documents)]
        return self._library, self._documents


def goes_on(context: Mapping[str, Any]) -> bool:
    """Whether the reply is in the middle of its calls: it has searched already."""
    return context.get("begun") is not None


def found_already(messages: list[Message], context: Mapping[str, Any]) -> int:
    """How many messages there are of a reply that goes on."""
    return len(this_turn(messages)) if goes_on(context) else 0


def question_of(messages: list[Message]) -> str:
    """What the user asked last."""
    last = next((message for message in reversed(messages) if message.role == USER), None)
    return last.get_text_content().strip() if last else ""


def _without_old_passages(messages: list[Message], found: int) -> list[Message]:
    """Without the searches of earlier turns: each turn searches anew, and old numbers would collide with new ones.

    Args:
        messages: The conversation.
        found: How many of the last messages stay as they are: those of a reply that goes on.
    """
    kept: list[Message] = []
    for message in messages[: len(messages) - found]:
        call = message.function_call
        asked = message.role == ASSISTANT and call is not None and call.name == AskDocuments.name
        answered = message.role == FUNCTION and message.name == AskDocuments.name
        if not asked and not answered:
            kept.append(message)
    return [*kept, *messages[len(messages) - found :]]
