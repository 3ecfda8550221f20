"""Documents as tools read them: any file or address that may be read, its pages as text and tables, and its chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import BadArgumentsError, BrokenDocumentError
from core.llm.local_files import path_of, user_path
from core.rag.chunking import chunks_of
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.parsers.process import Limits, parse
from core.rag.prose import count_tokens
from core.rag.sources import file_here, is_web_address
from core.tools.base import files_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from core.messages.message import Message
    from core.rag.document import Block

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
        text: The document.
        address: Where it is from.
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
