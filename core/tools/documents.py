"""Documents as tools read and search them: any file or address that may be read, in pages, chunks and passages."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core.errors import BadArgumentsError, BrokenDocumentError
from core.llm.local_files import path_of, user_path
from core.rag.chunking import chunks_of
from core.rag.library import Library
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.parsers.process import Limits, parse
from core.rag.prose import count_tokens
from core.rag.sources import file_here, is_web_address
from core.tools.base import files_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message
    from core.rag.config import RetrievalType
    from core.rag.document import Block, Passage


_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Source:
    """A document that may be read.

    Args:
        address: A path of this machine, or an address on the web.
        own_network: Whether it may be on this machine's network.
    """

    address: str
    own_network: bool = False

    @property
    def is_web(self) -> bool:
        """Whether it is fetched."""
        return is_web_address(self.address)

    @property
    def stamp(self) -> tuple[str, int, int]:
        """What changes when the file does; an address is the same for as long as the tool lives."""
        if self.is_web:
            return self.address, 0, 0
        found = path_of(self.address).stat()
        return self.address, found.st_size, found.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Text:
    """What a document says."""

    name: str
    title: str
    blocks: tuple[Block, ...]


def source_of(address: str, cfg: Mapping[str, Any], messages: Sequence[Message] | None) -> Source:
    """The document that a call names, if it may be read.

    A program may name any file. A model may name those of the conversation, those below the folders in
    `cfg["folders"]`, and addresses on the web: a document cannot talk it into reading the machine's other files.

    Args:
        address: As the call has it.
        cfg: The tool's options; `folders` is a list, and `own_network=True` allows addresses of this machine.
        messages: The conversation; `None` where a program calls.

    Raises:
        BadArgumentsError: It may not be read, or there is no such file.
    """
    address = address.strip()
    if is_web_address(address):
        return Source(address, bool(cfg.get("own_network")))
    path = path_of(str(user_path(address)))
    if messages is not None and not _may(path, address, cfg, messages):
        raise BadArgumentsError(
            f"The file {path.name!r} is not part of this conversation.", hint="Name one that is, or an address."
        )
    try:
        is_here = path.is_file()
    except (OSError, ValueError):
        is_here = False
    if not is_here:
        raise BadArgumentsError(f"There is no file {path.name[:200]!r}.")
    return Source(str(path))


def _may(path: Path, address: str, cfg: Mapping[str, Any], messages: Sequence[Message]) -> bool:
    try:
        real = path.resolve()
        named = {
            path_of(one).resolve() for one in files_of(list(messages)) if "://" not in one or one.startswith("file:")
        }
        folders = [user_path(one).resolve() for one in cfg.get("folders") or ()]
    except (OSError, ValueError):
        return False
    return address in files_of(list(messages)) or real in named or any(real.is_relative_to(one) for one in folders)


def read(source: Source) -> Text:
    """Read a document, in a process of its own. Blocks.

    Raises:
        DocumentError: It cannot be read, or not be fetched.
    """
    with file_here(source.address, None, _LIMITS, own_network=source.own_network, stopped=bool) as (path, name):
        if path.stat().st_size > _LIMITS.file_bytes:
            raise BrokenDocumentError("The file is too large to be read.", key="document_too_large")
        with path.open("rb") as file:
            head = file.read(HEAD)
        parsed = parse(path, name, parser_for(name, head)[0], _LIMITS)
    return Text(name, parsed.about.title, tuple(parsed.blocks))


def tokens_of(text: str) -> int:
    """Tokens of a text, by estimate."""
    return math.ceil(count_tokens(text))


def pages_of(text: Text) -> list[dict[str, Any]]:
    """Its pages as Qwen-Agent has them: `page_num`, and `content`, a list of `text` or `table` with `token`."""
    pages: dict[int, list[dict[str, Any]]] = {}
    for block in text.blocks:
        said = {"table": table_text(block)} if block.kind == "table" and block.cells else {"text": block_text(block)}
        page = pages.setdefault(block.page or 1, [])
        page.append({**said, "token": tokens_of(next(iter(said.values())))})
    title = {"title": text.title} if text.title else {}
    return [{"page_num": number, "content": content, **title} for number, content in pages.items()]


def plain(text: Text) -> str:
    """All of it, a blank line between blocks."""
    return "\n\n".join(
        table_text(block) if block.kind == "table" and block.cells else block_text(block) for block in text.blocks
    )


def block_text(block: Block) -> str:
    """A heading with its marks, whatever else as it is."""
    return f"{'#' * block.level} {block.text}" if block.kind == "heading" and block.level else block.text


def table_text(block: Block) -> str:
    """A table as Markdown has it."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in block.cells]
    width = max(map(len, rows))
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def chunks_as_records(text: Text, address: str, most: int, size: int) -> list[dict[str, Any]]:
    """Its chunks as Qwen-Agent's `doc_parser` has them: `content`, `metadata`, `token`.

    Args:
        most: Tokens up to which all of it is one chunk.
        size: Tokens in a chunk otherwise.
    """
    whole = plain(text)
    if tokens_of(whole) <= most:
        return [_record(whole, text, address, 0)] if whole else []
    return [
        _record(f"[page: {chunk.page}]\n{chunk.text}" if chunk.page else chunk.text, text, address, number)
        for number, chunk in enumerate(chunks_of(text.blocks, size))
    ]


def _record(content: str, text: Text, address: str, number: int) -> dict[str, Any]:
    about = {"source": address, "title": text.title or text.name, "chunk_id": number}
    return {"content": content, "metadata": about, "token": tokens_of(content)}


_MOST_FOUND = 50
_CHUNK = (32, 256)  # tokens, at least and at most
_WORTH_CUTTING = 12  # tokens that are left: the beginning of one more part goes there


@dataclass(frozen=True, slots=True)
class ScratchDocument:
    """A document in the library.

    Args:
        name: What results call it: its address, or `doc_0`, `doc_1` …
        ids: Its parts in the library, in order.
    """

    name: str
    ids: tuple[str, ...]


class ScratchLibrary:
    """A library in a temporary folder, or in one that is given, for one tool.

    Args:
        room: Tokens of text that a search may give: chunks are no larger, and not much smaller, for sentences answer.
        cfg: `index_path` is the folder; `embedding_model` and `own_network` are as in `rag_cfg`.
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

    def files(self, sources: Sequence[Source]) -> list[ScratchDocument]:
        """Files and addresses, each read when it is new or has changed.

        Raises:
            DocumentError: One cannot be read, or not be fetched.
        """
        with self._guard:
            library = self._opened()
            for source in sources:
                if source.stamp not in self._read:
                    self._read[source.stamp] = library.add(source.address).id
            return [ScratchDocument(source.address, (self._read[source.stamp],)) for source in sources]

    def texts(self, docs: Sequence[Any]) -> list[ScratchDocument]:
        """Texts as Qwen-Agent's search tools are given them.

        Args:
            docs: Each a text, a list of texts (its pages), or an object with `url` and `raw`, a list of `content`.
        """
        with self._guard:
            return [self._text(number, doc) for number, doc in enumerate(docs)]

    def found(self, query: str, shelved: Sequence[ScratchDocument], room: int) -> list[dict[str, Any]]:
        """What answers a question best, as `{"url", "text": [...]}` for each document that has something.

        Args:
            room: Tokens of text that are given at most.
        """
        with self._guard:
            library = self._opened()
        ids = [one for document in shelved for one in document.ids]
        if self._how in {"vector", "hybrid"}:
            library.wait_for_vectors()
        passages = library.find(query, _MOST_FOUND, self._how, documents=ids)
        return _as_records(_fitting(passages, room), shelved)

    def first_passages(self, shelved: Sequence[ScratchDocument], room: int) -> list[dict[str, Any]]:
        """The beginnings of the documents, an equal share of the room each."""
        with self._guard:
            library = self._opened()
        records: list[dict[str, Any]] = []
        for document in shelved:
            chunks = [
                passage for part in document.ids for passage in library.first_passages(_MOST_FOUND, documents=[part])
            ]
            records += _as_records(_fitting(chunks, room // max(1, len(shelved))), [document])
        return records

    def whole(self, shelved: Sequence[ScratchDocument], room: int) -> list[dict[str, Any]] | None:
        """All of the documents, if they fit."""
        with self._guard:
            library = self._opened()
        ids = [one for document in shelved for one in document.ids]
        passages = library.context.full_text(ids, room)
        if not passages or sum(count_tokens(one.text) for one in passages) > room:
            return None
        return _as_records(passages, shelved)

    def _text(self, number: int, doc: Any) -> ScratchDocument:
        name, pages = f"doc_{number}", _pages(doc)
        name = str(_of(doc, "url") or name)
        library = self._opened()
        texts = [(at, str(page)) for at, page in enumerate(pages, 1) if str(page).strip()]
        # The same words on two pages, or in two documents, are two places to find them.
        ids = [library.add_text(text, name=f"{number}-{at}.txt", page=1000 * number + at).id for at, text in texts]
        return ScratchDocument(name, tuple(ids))

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


def _as_records(passages: Sequence[Passage], shelved: Sequence[ScratchDocument]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for document in shelved:
        order = {part: at for at, part in enumerate(document.ids)}
        own = [one for one in passages if one.document_id in order]
        own.sort(key=lambda one: (order[one.document_id], one.chunk_id))
        if own:
            records.append({"url": document.name, "text": [one.text for one in own]})
    return records
