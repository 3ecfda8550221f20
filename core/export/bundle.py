"""Conversations as one file that can be read without Parlour, and taken in again as they were.

A bundle is a ZIP: `index.html` opens from a disk, `conversations/ID/` holds the rows of each conversation and the logs
of its replies, `files/` what was attached and made, `pages/` the pages that replies cite, and `parlour-bundle.json`
says which version it is and what each of these must be, byte for byte.
"""

from __future__ import annotations

import asyncio
import json
import time
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Any, Final

from core.errors import NotFoundError
from core.export.html_page import MORE, HtmlWriter, page_head
from core.export.markdown import LABELS
from core.export.redaction import cleaned_event, cleaned_parts
from core.export.zip_stream import ZipStream
from core.messages.transcript import Transcript
from core.runs.log import message_events
from core.storage.conversations import dumped
from core.storage.files import suffix_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from pathlib import Path

    from core.export.cited_pages import PageKey, PagePicture
    from core.export.exporting import Exporting
    from core.export.redaction import Redaction
    from core.languages import Lang
    from core.storage.base import EventRow, FileRecord
    from core.storage.stores import OwnerStores
    from core.storage.whole_conversations import Outline, WholeTurn

MANIFEST: Final = "parlour-bundle.json"
FORMAT: Final = "parlour.bundle"
VERSION: Final = 1
_AT_ONCE: Final = 100  # turns that are in memory
_BLOCK: Final = 1 << 20
_PACKED: Final = ("image/", "audio/", "video/", "application/")


async def bundled(
    exporting: Exporting, stores: OwnerStores, ids: Sequence[str], lang: Lang = "en"
) -> AsyncGenerator[bytes, None]:
    """A bundle, made while it is read; a conversation that is deleted meanwhile is left out.

    Args:
        ids: The conversations that are wanted, in their order.
        lang: The language of what is not the conversations' own.

    Raises:
        StorageError: The database failed.
    """
    archive = ZipStream()
    listed: list[dict[str, Any]] = []
    for number, one in enumerate(ids, start=1):
        try:
            outline, redaction = await exporting.opened(one, keeps_files=True)
        except NotFoundError:
            continue
        page = "index.html" if len(ids) == 1 else f"conversation-{number}.html"
        async for piece in _Bundling(archive, exporting, stores, outline, redaction).pieces(page, lang):
            yield piece
        title = redaction.said(outline.conversation.title)
        listed.append({"id": one, "title": title, "messages": len(outline.turns), "page": page})
    if len(ids) != 1:
        yield archive.add("index.html", [_list(listed, lang).encode()])
    yield archive.add(MANIFEST, [manifest(archive, listed)])
    yield archive.end()


def manifest(archive: ZipStream, listed: Sequence[dict[str, Any]]) -> bytes:
    """What says which version a bundle is, and what each of its entries must be.

    Args:
        archive: Has all other entries.
        listed: The conversations, each with `id`, `title`, `messages` and `page`.
    """
    entries = {name: {"size": size, "sha256": digest} for name, (size, digest) in archive.entries.items()}
    about = {"format": FORMAT, "version": VERSION, "made": time.time(), "conversations": listed, "entries": entries}
    return json.dumps(about, ensure_ascii=False, indent=1).encode()


class _Bundling:
    """One conversation on its way into an archive."""

    def __init__(
        self, archive: ZipStream, exporting: Exporting, stores: OwnerStores, outline: Outline, redaction: Redaction
    ) -> None:
        self._archive, self._exporting, self._stores = archive, exporting, stores
        self._outline, self._redaction = outline, redaction
        self._folder = f"conversations/{outline.conversation.id}"
        self._names = {one.id: f"files/{one.id}{suffix_for(one.media_type)}" for one in outline.files}
        self._pages: list[dict[str, Any]] = []
        self._made: list[bytes] = []

    async def pieces(self, page: str, lang: Lang) -> AsyncGenerator[bytes, None]:
        """All that belongs to it."""
        async for piece in self._rows():
            yield piece
        for one in self._outline.files:
            if self._names[one.id] not in self._archive.entries:
                yield await self._file(one)
        text = [piece async for piece in self._page(lang)]
        yield b"".join(self._made)  # the pictures of its pages
        yield await asyncio.to_thread(self._archive.add, page, [piece.encode() for piece in text])
        yield self._archive.add(f"{self._folder}/conversation.json", [line(self._about())])

    async def _rows(self) -> AsyncGenerator[bytes, None]:
        talk, lines = self._outline.conversation.id, list[bytes]()
        for start in range(0, len(self._outline.downward), _AT_ONCE):
            for turn in await self._exporting.whole.turns(talk, self._outline.downward[start : start + _AT_ONCE]):
                rows: Sequence[EventRow] = ()
                if turn.run is not None:
                    rows = await self._stores.runs.events(turn.run.id)
                lines.append(line(await self._turn(turn)))
                if turn.run is not None and rows:
                    name = f"{self._folder}/logs/{turn.run.id}.jsonl"
                    yield await asyncio.to_thread(self._archive.add, name, self._log(rows))
        yield await asyncio.to_thread(self._archive.add, f"{self._folder}/messages.jsonl", lines)

    async def _turn(self, turn: WholeTurn) -> dict[str, Any]:
        message, run = turn.message, turn.run
        parts, status = message.parts, message.status
        if status == "running":  # it goes on here, but not where it is taken to
            status = "interrupted"
            events = await self._exporting.so_far(turn)
            parts = tuple(Transcript(message_events(events)).messages()) or parts
        steps = [
            {
                "id": one.id,
                "thought": self._redaction.said(one.thought),
                "tool_name": one.tool_name,
                "tool_input": self._redaction.arguments(one.tool_input) if one.tool_input else one.tool_input,
                "observation": self._redaction.machine(one.observation) if one.observation else one.observation,
                "position": one.position,
                "created_at": one.created_at.timestamp() if one.created_at is not None else message.created_at,
            }
            for one in turn.thoughts
        ]
        return {
            "id": message.id,
            "parent_id": message.parent_id,
            "role": message.role,
            "status": status,
            "created_at": message.created_at,
            "parts": cleaned_parts(dumped(parts), self._redaction),
            "run": None
            if run is None
            else {
                "id": run.id,
                "status": "interrupted" if run.status == "running" else run.status,
                "error": self._redaction.value(run.error) if run.error is not None else None,
                "model": self._redaction.said(run.model),
                "usage": run.usage.model_dump() if run.usage is not None else None,
                "started_at": run.started_at,
                "finished_at": run.finished_at,
            },
            "thoughts": steps,
        }

    def _log(self, rows: Sequence[EventRow]) -> Iterator[bytes]:
        for row in rows:
            payload = cleaned_event(row.kind, row.payload, self._redaction)
            yield line({"seq": row.seq, "at": row.at, "kind": row.kind, "payload": payload})

    async def _file(self, one: FileRecord) -> bytes:
        packed = not one.media_type.startswith(_PACKED)
        try:
            async with self._stores.files.local(one.id) as (_, path):
                return await asyncio.to_thread(self._archive.add, self._names[one.id], _blocks(path), packed=packed)
        except NotFoundError:
            return b""

    async def _page(self, lang: Lang) -> AsyncGenerator[str, None]:
        names = {f"/files/{file_id}": name for file_id, name in self._names.items()}

        def source(address: str) -> str:
            return names.get(address, "")

        def files(one: str) -> str:
            return one if one in self._archive.entries else ""

        writer = HtmlWriter({}, lang, images="'self' file: data:", source=lambda address: files(source(address)))
        async for piece in self._exporting.page(self._outline, self._redaction, writer, self._placed):
            yield piece

    def _placed(self, key: PageKey, picture: PagePicture) -> str:
        """Put the picture of a page into the archive; returns its address there."""
        document, number = key
        name = page_entry(key)
        if name not in self._archive.entries:
            self._made.append(self._archive.add(name, [picture.png], packed=False))
        width, height = picture.size
        self._pages.append({"document_id": document, "page": number, "entry": name, "width": width, "height": height})
        return name

    def _about(self) -> dict[str, Any]:
        one, said = self._outline.conversation, self._redaction.said
        return {
            "conversation": {
                "id": one.id,
                "title": said(one.title),
                "titled_by": one.titled_by,
                "created_at": one.created_at,
                "updated_at": one.updated_at,
                "leaf_id": one.leaf_id,
            },
            "files": [
                {
                    "id": file.id,
                    "name": said(file.name),
                    "media_type": file.media_type,
                    "size": file.size,
                    "sha256": file.sha256,
                    "entry": self._names[file.id],
                }
                for file in self._outline.files
                if self._names[file.id] in self._archive.entries
            ],
            "documents": [{"file_id": one.file_id, "name": said(one.name)} for one in self._outline.documents],
            "pages": self._pages,
        }


def page_entry(key: PageKey) -> str:
    """Where the picture of a page stands in a bundle."""
    document, number = key
    return f"pages/{sha256(document.encode()).hexdigest()[:16]}-{number}.png"


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def line(value: Any) -> bytes:
    """A JSON value on a line of its own."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


def _list(listed: Sequence[dict[str, Any]], lang: Lang) -> str:
    words = {**LABELS[lang], **MORE[lang]}
    said = words["list"].format(n=len(listed))
    rows = "".join(
        f'<li><a href="{escape(one["page"])}">{escape(one["title"] or words["untitled"])}</a></li>' for one in listed
    )
    head = page_head("Parlour", said, lang)
    return f'{head}<ul class="list">{rows}</ul></main><footer>{escape(words["made"])}</footer></body></html>\n'
