"""`Memory`: an agent that returns passages of its files, without a model that answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.agents.file_library import FileLibrary, conversation_files, read_files
from core.agents.retrieval import Finder, NoModel
from core.agents.search_query import KeywordQuery, earlier_questions, with_earlier_questions
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.rag.config import RAGConfig
from core.tools.run_state import state_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.file_library import Fates
    from core.agents.tools import GivenTool
    from core.languages import Lang
    from core.llm.open_model import GivenModel
    from core.llm.request import Stream
    from core.messages.message import Message
    from core.rag.document import Passage


class Memory(Agent):
    """Finds passages of its files, and of those in the conversation, that bear on the last question.

    Its reply is JSON text: a list of `{"url": where the document is from, "text": [passages]}`, the document with the
    best passage first; an empty list where there are no documents or nothing was found. A model is not needed: with
    one, `rag_keygen_strategy` may ask it for words to search with, and its tokens are counted; whatever it says then
    is only searched for, never shown.

    Args:
        function_list: As of every agent; nothing here calls them.
        llm: A model, for words to search with.
        system_message: As of every agent.
        files: Documents, as paths or addresses on the web; they are read when the first question comes.
        rag_cfg: How documents are cut and searched; `max_ref_token` is how much is given back at most.
        name: Who speaks.
        description: What it is good at.

    Raises:
        SettingsError: `rag_cfg` or the model makes no sense.
    """

    calls_tools = False
    needs_model = "if_named"

    def __init__(  # noqa: PLR0913, PLR0917 - the peer's arguments
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: GivenModel | None = None,
        system_message: str | None = None,
        files: Sequence[str] | None = None,
        rag_cfg: RAGConfig | Mapping[str, Any] | None = None,
        name: str | None = "memory",
        description: str | None = None,
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description)
        self._rag = RAGConfig.of(rag_cfg)
        self._own = FileLibrary(files or (), self._rag)
        self._words = KeywordQuery(self._rag.rag_keygen_strategy)

    async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        yield MessageStarted(self.name)
        state = state_of(kwargs)
        passages = await self._find(messages, lang, {} if state is None else state.files)
        yield TextDelta(json.dumps(self._by_document(passages), ensure_ascii=False))
        yield MessageFinished("stop")

    async def find(self, messages: Sequence[Message], *, lang: Lang = "en") -> list[Passage]:
        """The passages for the last question of `messages`, the best first; `lang` is that of what Parlour says.

        Raises:
            DocumentError: A file cannot be read.
        """
        return await self._find(messages, lang, {})

    async def _find(self, messages: Sequence[Message], lang: Lang, fates: Fates) -> list[Passage]:
        questions = with_earlier_questions(messages)
        library, documents = await read_files(self._own, conversation_files(messages), lang, fates=fates)
        if not questions or not documents:
            return []
        model = self.llm or NoModel()
        earlier = earlier_questions(messages)
        finder = Finder(library, documents, model, self._rag, self._words, lang, questions[-1], earlier=earlier)
        return await finder.find(" ".join(questions), self._rag.top_k)

    def _by_document(self, passages: Sequence[Passage]) -> list[dict[str, Any]]:
        found: dict[str, list[str]] = {}
        for passage in passages:
            address = self._own.address(passage.document_id) or passage.url or passage.document
            found.setdefault(address, []).append(passage.text)
        return [{"url": url, "text": texts} for url, texts in found.items()]
