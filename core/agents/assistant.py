"""The agent that people talk to: a model with tools and documents."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from core.agents.fn_call import FnCallAgent
from core.agents.follow_up import asked_together
from core.agents.own_library import OwnLibrary, local_path
from core.agents.prompts import CITE, CITE_SMALL, WHO
from core.agents.retrieval import Finder, is_small_talk, stands_alone
from core.agents.search_words import SearchWords, rewritten
from core.agents.tool_loop import Opening, ToolLoop
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.rag.config import RAGConfig
from core.rag.web import is_web_address
from core.tools.base import files_of
from core.tools.builtin.ask_documents import AskDocuments

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.agents.given_tools import GivenTool
    from core.llm.base import BaseChatModel
    from core.llm.request import Lang, Stream
    from core.rag.library import Library
    from core.tools.base import BaseTool


class Assistant(FnCallAgent):
    """Answers with tools and from documents.

    Where there are documents, their passages are searched before the model is asked, which shows as an ordinary call
    of `ask_documents`; the answer carries `[n]` marks that point to them.

    Args:
        function_list: Tools, as of every agent.
        llm: The model.
        system_message: Instead of Parlour's own words about who it is.
        name: Who speaks, where there are several.
        description: What it is good at.
        files: Documents, as paths or addresses on the web; they are read when the first question comes.
        rag_cfg: How documents are cut and searched; `index_path` keeps the index in that folder.
        library: Documents that are in a library already.
        documents: Those of the library that count, by id; all of them by default.

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
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description)
        self._rag = RAGConfig.of(rag_cfg)
        self._library = library
        self._documents = documents
        self._words = SearchWords(self._rag.rag_keygen_strategy)
        self._own = OwnLibrary(files or (), self._rag)
        self._has_files = bool(files)

    def _system_message(self, lang: Lang) -> str:
        return WHO[lang] if self.system_message is None else self.system_message

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        kwargs.setdefault("files", files_of(messages))
        if not self._may_have_documents(messages):
            return self._loop(self.function_map).reply(messages, lang=lang, **kwargs)
        return self._from_documents(messages, lang, kwargs)

    async def _from_documents(self, messages: list[Message], lang: Lang, context: dict[str, Any]) -> Stream:
        library, documents = await self._opened(messages)
        if not documents:
            loop, opening = self._loop(self.function_map), None
        else:
            small = self._model().small
            question = _question(messages)
            finder = Finder(library, documents, self._model(), self._rag, self._words, lang, question)
            ask = AskDocuments(finder.find, {"k": self._rag.top_k, "notice": not small})
            loop = self._loop({**self.function_map, ask.name: ask}, list(self.function_map) if small else None)
            arguments = {"query": await self._query(messages, lang)}
            opening = Opening(ask.name, arguments, quiet=is_small_talk(question), told_if_empty=not small)
            opening = opening if question else None
            messages = _told_to_cite(_without_old_passages(messages), CITE_SMALL[lang] if small else CITE[lang])
        async with aclosing(loop.reply(messages, lang=lang, opening=opening, **context)) as events:
            async for event in events:
                yield event

    async def _query(self, messages: list[Message], lang: Lang) -> str:
        """What to search for: the question, or what it means after those before it."""
        questions = asked_together(messages)
        how = self._rag.follow_up
        if len(questions) < 2 or how == "off" or stands_alone(questions[-1]):
            return questions[-1] if questions else ""
        written = await rewritten(questions, self._model(), lang) if how == "model" else ""
        return written or " ".join(questions)

    def _loop(self, tools: Mapping[str, BaseTool], offered: Sequence[str] | None = None) -> ToolLoop:
        return ToolLoop(self._model(), tools, offered, self.name, self.extra_generate_cfg)

    def _may_have_documents(self, messages: list[Message]) -> bool:
        if self._library is not None:
            return self._documents is None or bool(self._documents)
        return self._has_files or bool(_files_here(messages))

    async def _opened(self, messages: list[Message]) -> tuple[Library, Collection[str]]:
        """The library, and the ids of the documents that count."""
        if self._library is None:
            return await asyncio.to_thread(self._own.with_files, _files_here(messages))
        if self._documents is None:
            return self._library, [document.id for document in await asyncio.to_thread(self._library.documents)]
        return self._library, self._documents


def _files_here(messages: list[Message]) -> list[str]:
    """The files of the conversation that are on this machine or on the web."""
    items = (item for message in messages if message.role == USER for item in message.items)
    files = (item.value for item in items if item.type == "file" and isinstance(item.value, str))
    return [file for file in files if is_web_address(file) or local_path(file).is_file()]


def _question(messages: list[Message]) -> str:
    last = next((message for message in reversed(messages) if message.role == USER), None)
    return last.get_text_content().strip() if last else ""


def _without_old_passages(messages: list[Message]) -> list[Message]:
    """Without the searches of earlier turns: each turn searches anew, and old numbers would collide with new ones."""
    kept: list[Message] = []
    for message in messages:
        call = message.function_call
        asked = message.role == ASSISTANT and call is not None and call.name == AskDocuments.name
        answered = message.role == FUNCTION and message.name == AskDocuments.name
        if not asked and not answered:
            kept.append(message)
    return kept


def _told_to_cite(messages: list[Message], how: str) -> list[Message]:
    """With the rule for passages at the end of the system message."""
    if not messages or messages[0].role != SYSTEM:
        return [Message(SYSTEM, how), *messages]
    said = messages[0].content
    content = f"{said}\n\n{how}" if isinstance(said, str) else [*said, ContentItem(text=f"\n\n{how}")]
    return [messages[0].model_copy(update={"content": content}), *messages[1:]]
