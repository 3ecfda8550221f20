"""The searches of Qwen-Agent under their names, on Parlour's own index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, cast

from core.messages.json_text import read_object
from core.rag.search.terms import terms
from core.rag.sources import is_web_address
from core.tools.base import BaseTool, files_of, int_option
from core.tools.documents import ScratchDocument, ScratchLibrary, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message
    from core.rag.config import RetrievalType

_ROOM = 20_000  # tokens
_FILES = {
    "type": "array",
    "items": {"type": "string"},
    "description": "The documents: files of this conversation, or addresses.",
}
_QUERY: Mapping[str, Any] = {"type": "string", "description": "What to look for, as a question or in words."}
_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {"query": _QUERY}, "required": ["query"]}

_WITH_FILES: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": _QUERY, "files": _FILES},
    "required": ["query", "files"],
}


class _DocumentSearch(BaseTool):
    """Finds what answers a question in texts that are handed over, or in the files of the conversation.

    For programs that were written for Qwen-Agent; on the page `ask_documents` does it, with citations.

    Args:
        cfg: Options. `max_ref_token` of text are given at most, 20000 by default. `embedding_model`, `index_path` and
            `own_network` as in `rag_cfg`; `folders` as for `simple_doc_parser`.
    """

    parameters = _PARAMETERS
    wishes: ClassVar[Mapping[str, str]] = {"en": "search in documents", "zh": "在文档中检索"}
    deduplicate = True
    of_documents = True
    reaches_out = True  # where a file of the conversation is an address, or a service makes the vectors
    timeout = 300.0
    how: ClassVar[RetrievalType] = "keyword"

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self.max_ref_token = int_option(self.cfg, "max_ref_token", _ROOM, 1, 10_000_000)
        self._shelves: dict[int, ScratchLibrary] = {}

    def addresses(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Those among the files that the call names; a question reaches nothing."""
        named = _listed(arguments.get("files") or [])
        return tuple(one for one in named if isinstance(one, str) and is_web_address(one))

    def call(
        self,
        params: str | dict[str, Any],
        docs: Sequence[Any] | None = None,
        *,
        messages: Sequence[Message] | None = None,
        **kwargs: Any,
    ) -> Any:
        """`[{"url", "text": [...]}]`: of each document what answers the question; all of it where everything fits.

        Args:
            params: `{"query": ...}`; the query may be JSON with keywords, as Qwen-Agent's agents write it.
            docs: Texts, lists of texts, or what `doc_parser` gives; by default the files of the conversation.
            messages: The conversation, where a model calls.
            kwargs: `max_ref_token` counts over the option.

        Raises:
            BadArgumentsError: A file may not be read.
            DocumentError: A file cannot be read.
        """
        query = _asked(str(self._verify_json_format_args(params)["query"]))
        room = int(kwargs.get("max_ref_token", self.max_ref_token))
        shelf = self._shelf(room)
        if docs:
            shelved = shelf.texts(docs)
        else:
            sources = [source_of(one, self.cfg, messages) for one in files_of(list(messages or ()))]
            shelved = shelf.files(sources)
        found = self._found(shelf, query, shelved, room) if shelved else []
        return found if messages is None else json.dumps(found, ensure_ascii=False)

    def _found(
        self, shelf: ScratchLibrary, query: str, shelved: Sequence[ScratchDocument], room: int
    ) -> list[dict[str, Any]]:
        if (whole := shelf.whole(shelved, room)) is not None:
            return whole
        if not terms(query):  # nothing to look for: the documents begin with what they are about
            return shelf.first_passages(shelved, room)
        return shelf.found(query, shelved, room)

    def _shelf(self, room: int) -> ScratchLibrary:
        if room not in self._shelves:
            self._shelves[room] = ScratchLibrary(room, self.cfg, self.how)
        return self._shelves[room]


class KeywordSearch(_DocumentSearch):
    """By words. For programs that were written for Qwen-Agent."""

    name = "keyword_search"
    description = "Finds the parts of documents that share words with a question."
    labels: ClassVar[Mapping[str, str]] = {"en": "Search by words", "zh": "关键词检索"}


class VectorSearch(_DocumentSearch):
    """By meaning, on this machine unless `embedding_model` names a service."""

    name = "vector_search"
    description = "Finds the parts of documents whose meaning is nearest to a question."
    labels: ClassVar[Mapping[str, str]] = {"en": "Search by meaning", "zh": "语义检索"}
    how = "vector"


class HybridSearch(_DocumentSearch):
    """By words and by meaning, the two ranks put together."""

    name = "hybrid_search"
    description = "Finds the parts of documents that answer a question, by words and by meaning."
    labels: ClassVar[Mapping[str, str]] = {"en": "Search by words and meaning", "zh": "混合检索"}
    how = "hybrid"


class FrontPageSearch(_DocumentSearch):
    """The beginnings of the documents, whatever is asked."""

    name = "front_page_search"
    description = "Gives the beginnings of documents, where they say what they are about."
    labels: ClassVar[Mapping[str, str]] = {"en": "Read the beginnings", "zh": "读取开头部分"}

    def _found(
        self, shelf: ScratchLibrary, query: str, shelved: Sequence[ScratchDocument], room: int
    ) -> list[dict[str, Any]]:
        del query
        whole = shelf.whole(shelved, room)
        return shelf.first_passages(shelved, room) if whole is None else whole


class Retrieval(_DocumentSearch):
    """In files that are named: those are read, and searched by words and by meaning.

    For programs; on the page `ask_documents` does it, with citations.
    """

    name = "retrieval"
    description = "Reads documents, and returns the parts of them that answer a question."
    parameters = _WITH_FILES
    labels: ClassVar[Mapping[str, str]] = {"en": "Search in files", "zh": "检索文件"}
    how = "hybrid"

    def verify(self, arguments: dict[str, Any]) -> None:
        """Check arguments; `files` may be a list in JSON text, as some models write it.

        Raises:
            BadArgumentsError: One sentence that names the field.
        """
        super().verify({**arguments, "files": _listed(arguments["files"])} if "files" in arguments else arguments)

    def call(
        self,
        params: str | dict[str, Any],
        docs: Sequence[Any] | None = None,
        *,
        messages: Sequence[Message] | None = None,
        **kwargs: Any,
    ) -> Any:
        """As the other searches, in `files`.

        Args:
            params: `{"query": ..., "files": [...]}`.
            docs: Not used.
            messages: The conversation, where a model calls: it may search the files in it.
            kwargs: `max_ref_token` counts over the option.

        Raises:
            BadArgumentsError: There is no such file, or it may not be read.
            DocumentError: A file cannot be read, or not be fetched.
        """
        del docs
        arguments = self._verify_json_format_args(params)
        room = int(kwargs.get("max_ref_token", self.max_ref_token))
        shelf = self._shelf(room)
        sources = [source_of(str(one), self.cfg, messages) for one in _listed(arguments["files"])]
        shelved = shelf.files(sources)
        found = self._found(shelf, _asked(str(arguments["query"])), shelved, room) if shelved else []
        return found if messages is None else json.dumps(found, ensure_ascii=False)


def _asked(query: str) -> str:
    """The words of a query; of one in JSON its keywords and its text."""
    if not query.lstrip().startswith("{"):
        return query
    try:
        given = read_object(query)
    except ValueError:
        return query
    words: list[str] = []
    for value in given.values():
        words += [str(one) for one in cast("list[Any]", value)] if isinstance(value, list) else [str(value)]
    return " ".join(words)


def _listed(files: Any) -> Any:
    if not isinstance(files, str):
        return files
    try:
        found: Any = json.loads(files)
    except ValueError:
        return [files]
    return cast("list[Any]", found) if isinstance(found, list) else [files]
