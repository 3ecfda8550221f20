"""Documents that a tool searches: read once, and searched as a library is."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core.rag.library import Library
from core.rag.prose import count_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.config import RetrievalType
    from core.rag.document import Passage
    from core.tools.document_text import Source

_MOST_FOUND = 50
_CHUNK = (32, 256)  # tokens, at least and at most
_WORTH_CUTTING = 12  # tokens that are left: the beginning of one more part goes there


@dataclass(frozen=True, slots=True)
class Shelved:
    """A document in the library.

    Args:
        name: What results call it: its address, or `doc_0`, `doc_1` …
        ids: Its parts in the library, in order.
    """

    name: str
    ids: tuple[str, ...]


class Shelf:
    """A library in a temporary folder, or in one that is given, for one tool.

    Args:
        room: Tokens of text that a search may give: chunks are no larger, and not much smaller, for sentences answer.
        cfg: `index_path` is the folder; `embedding_model` and `own_network` are as in `rag_cfg`.
        how: The search.
    """

    def __init__(self, room: int, cfg: Mapping[str, Any], how: RetrievalType) -> None:
        self._how: RetrievalType = how
        self._guard = threading.Lock()
        self._library: Library | None = None
        self._read: dict[tuple[str, int, int], str] = {}
        names = ("embedding_model", "own_network", "pdf_reader")
        size = max(_CHUNK[0], min(_CHUNK[1], room * 4 // 5))
        self._config = {name: cfg[name] for name in names if name in cfg}
        self._config |= {"retrieval_type": how, "chunk_size": size, "chunk_overlap": 0}
        self._folder = str(cfg.get("index_path") or "")

    def files(self, sources: Sequence[Source]) -> list[Shelved]:
        """Files and addresses, each read when it is new or has changed.

        Raises:
            DocumentError: One cannot be read, or not be fetched.
        """
        with self._guard:
            library = self._opened()
            for source in sources:
                if source.stamp not in self._read:
                    self._read[source.stamp] = library.add(source.address).id
            return [Shelved(source.address, (self._read[source.stamp],)) for source in sources]

    def texts(self, docs: Sequence[Any]) -> list[Shelved]:
        """Texts as Qwen-Agent's search tools are given them.

        Args:
            docs: Each a text, a list of texts (its pages), or an object with `url` and `raw`, a list of `content`.
        """
        with self._guard:
            return [self._text(number, doc) for number, doc in enumerate(docs)]

    def found(self, query: str, shelved: Sequence[Shelved], room: int) -> list[dict[str, Any]]:
        """What answers a question best, as `{"url", "text": [...]}` for each document that has something.

        Args:
            query: In any words.
            shelved: Where to search.
            room: Tokens of text that are given at most.
        """
        with self._guard:
            library = self._opened()
        ids = [one for document in shelved for one in document.ids]
        if self._how in {"vector", "hybrid"}:
            library.wait_for_vectors()
        passages = library.find(query, _MOST_FOUND, self._how, documents=ids)
        return _as_records(_fitting(passages, room), shelved)

    def beginnings(self, shelved: Sequence[Shelved], room: int) -> list[dict[str, Any]]:
        """The beginnings of the documents, an equal share of the room each."""
        with self._guard:
            library = self._opened()
        records: list[dict[str, Any]] = []
        for document in shelved:
            chunks = [passage for part in document.ids for passage in library.beginnings(_MOST_FOUND, documents=[part])]
            records += _as_records(_fitting(chunks, room // max(1, len(shelved))), [document])
        return records

    def whole(self, shelved: Sequence[Shelved], room: int) -> list[dict[str, Any]] | None:
        """All of the documents, if they fit."""
        with self._guard:
            library = self._opened()
        ids = [one for document in shelved for one in document.ids]
        passages = library.context.full_text(ids, room)
        if not passages or sum(count_tokens(one.text) for one in passages) > room:
            return None
        return _as_records(passages, shelved)

    def _text(self, number: int, doc: Any) -> Shelved:
        name, pages = f"doc_{number}", _pages(doc)
        name = str(_of(doc, "url") or name)
        library = self._opened()
        texts = [(at, str(page)) for at, page in enumerate(pages, 1) if str(page).strip()]
        # The same words on two pages, or in two documents, are two places to find them.
        ids = [library.add_text(text, name=f"{number}-{at}.txt", page=1000 * number + at).id for at, text in texts]
        return Shelved(name, tuple(ids))

    def _opened(self) -> Library:
        if self._library is None:
            folder = self._folder or tempfile.mkdtemp(prefix="parlour-shelf-")
            self._library = Library.open(Path(folder), self._config)
            if not self._folder:
                weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            weakref.finalize(self, self._library.close)
        return self._library


def _pages(doc: Any) -> list[Any]:
    """The texts that a document is made of."""
    if isinstance(doc, str):
        return [doc]
    parts = cast("list[Any]", doc if isinstance(doc, list) else _of(doc, "raw") or [])
    return [part if isinstance(part, str) else _of(part, "content") for part in parts]


def _of(thing: Any, name: str) -> Any:
    """A field of a dict or of an object; `None` where there is none."""
    return cast("dict[str, Any]", thing).get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _fitting(passages: Sequence[Passage], room: float) -> list[Passage]:
    """As many as there is room for, the best first; the one that is too long for what is left is cut."""
    found: list[Passage] = []
    for passage in passages:
        size = count_tokens(passage.text)
        if size > room:
            if room >= _WORTH_CUTTING or not found:
                found.append(replace(passage, text=_cut(passage.text, room)))
            break
        found.append(passage)
        room -= size
    return found


def _cut(text: str, room: float) -> str:
    """The beginning of a text that has so many tokens."""
    end = int(len(text) * room / max(count_tokens(text), 1e-9))
    while end > 0 and count_tokens(text[:end]) > room:
        end -= 1
    return text[:end]


def _as_records(passages: Sequence[Passage], shelved: Sequence[Shelved]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for document in shelved:
        order = {part: at for at, part in enumerate(document.ids)}
        own = [one for one in passages if one.document_id in order]
        own.sort(key=lambda one: (order[one.document_id], one.chunk_id))
        if own:
            records.append({"url": document.name, "text": [one.text for one in own]})
    return records
