"""Hands a conversation out as a file, a few turns at a time."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import quote

from core.errors import NotFoundError
from core.export.cited_pages import CitedPages
from core.export.html_page import HtmlWriter, inline_picture
from core.export.html_style import PRINTED
from core.export.markdown import MarkdownWriter
from core.export.redaction import KnownSecrets, Redaction
from core.export.schema import ExportedConversation, ExportedDocument, ExportedFile, ExportHead
from core.export.turns import moment, turn_of
from core.rag.grown import shelves_at
from core.rag.grown.makers import Maker
from core.rag.printing import as_pdf
from core.reading.indexing import index_config
from core.reading.libraries import names_of
from core.runs.lease import seems_held
from core.runs.manager import Runs
from core.storage.base import folder_name
from core.storage.database import Database
from core.storage.opening import opened_blobs
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.toolbox.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic import BaseModel

    from core.export.cited_pages import PageKey, PagePicture
    from core.export.html_page import Cited
    from core.export.schema import ExportedTurn
    from core.languages import Lang
    from core.rag.library import Library
    from core.rag.shelf import Shelf
    from core.runs.log import LoggedEvent
    from core.runs.manager import OwnerRuns
    from core.settings import Settings
    from core.storage.base import ConversationRecord, DocumentRecord, FileRecord
    from core.storage.files import FileStore
    from core.storage.stores import OwnerStores
    from core.storage.whole_conversations import Outline, WholeConversations, WholeTurn


_PRINTERS: Final = ThreadPoolExecutor(2, "parlour-print")  # each waits for a process that takes a core
_LONGEST: Final = 80  # characters, without the ending
_MOST_BYTES: Final = 180  # file systems take 255, and programs that download add to it
_NOT_ALLOWED: Final = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]+')
_JOINERS: Final = "\u200c\u200d"  # which scripts and emoji need
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\..*)?", re.IGNORECASE)


def file_name(title: str, ending: str) -> str:
    """The name of a file, such as `My trip.md`; `conversation` where nothing of the title can stay."""
    text = unicodedata.normalize("NFC", title)
    text = _NOT_ALLOWED.sub(" ", "".join(sign for sign in text if _may_stay(sign)))
    text = _shortened(" ".join(text.split()))
    if not text.strip("._ " + _JOINERS):
        text = "conversation"
    if _RESERVED.fullmatch(text):
        text = f"_{text}"
    return f"{text}.{ending}"


def attachment(name: str) -> str:
    """The header `Content-Disposition` that saves a file under this name (RFC 6266 and 5987)."""
    plain = re.sub(r"[^A-Za-z0-9 ._()-]+", "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _may_stay(sign: str) -> bool:
    """Marks that turn text round or hide in it, private signs and halves of pairs may not."""
    return sign in _JOINERS or sign in "\t\n\r" or unicodedata.category(sign) not in {"Cc", "Cf", "Cs", "Co", "Cn"}


def _shortened(text: str) -> str:
    text = text[:_LONGEST]
    while len(text.encode()) > _MOST_BYTES:
        text = text[:-1]
    return text.strip(" .")


Form: TypeAlias = Literal["md", "json", "html"]

MEDIA_TYPES: dict[Form, str] = {
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}
OpenIndex: TypeAlias = "Callable[[], AbstractAsyncContextManager[Library]]"

Placed: TypeAlias = "Callable[[PageKey, PagePicture], str]"
_AT_ONCE = 100  # turns that are in memory


@dataclass(frozen=True, slots=True)
class Exported:
    """A conversation on its way out: what to call the file, what it is, and its text piece by piece."""

    name: str
    media_type: str
    pieces: AsyncGenerator[str, None]


class Exporting:
    """Exports conversations of one owner.

    Args:
        runs: Knows how far a reply has come that is being written.
        secrets: What the owner's keys are, none of which may leave.
        index: Opens the index of the owner's documents, which draws the pages that replies cite; left out, there are
            none in what is exported.
        files: Has the pictures of pages that came along without their documents; left out, those are not exported.
    """

    def __init__(
        self,
        whole: WholeConversations,
        runs: OwnerRuns,
        secrets: Callable[[], Awaitable[Iterable[str]]],
        index: OpenIndex | None = None,
        files: FileStore | None = None,
    ) -> None:
        self.whole = whole
        self._runs = runs
        self._secrets = secrets
        self._index = index
        self._files = files

    async def export(self, conversation_id: str, form: Form, lang: Lang = "en") -> Exported:
        """A conversation as a file: `json` has all of it, `md` and `html` what is in sight, to be read.

        Nothing of it is made before `pieces` are read. A reply that is being written is in it as far as it has come.

        Args:
            lang: The language of what is not the conversation's own, in what is to be read.

        Raises:
            NotFoundError: There is none such of this owner.
            StorageError: The database failed.
        """
        outline, redaction = await self.opened(conversation_id)
        name = file_name(redaction.said(outline.conversation.title), form)
        if form == "html":
            return Exported(name, MEDIA_TYPES[form], self._html(outline, redaction, lang))
        made = self._json(outline, redaction) if form == "json" else self._markdown(outline, redaction, lang)
        return Exported(name, MEDIA_TYPES[form], made)

    async def archive_name(self, title: str) -> str:
        """The name of an archive of a conversation or folder, without keys in its title. Raises StorageError."""
        return file_name(Redaction(await self._secrets()).said(title), "zip")

    async def opened(self, conversation_id: str, *, keeps_files: bool = False) -> tuple[Outline, Redaction]:
        """What is in a conversation, and what takes the keys out of it; `keeps_files` as of `Redaction`.

        Raises:
            NotFoundError: There is none such of this owner.
            StorageError: The database failed.
        """
        outline = await self.whole.outline(conversation_id)
        return outline, Redaction(await self._secrets(), keeps_files=keeps_files)

    async def printed(self, conversation_id: str, lang: Lang = "en") -> tuple[str, bytes]:
        """What is in sight of a conversation as PDF, on numbered pages: the name of the file, and its bytes.

        Raises:
            BrokenDocumentError: key `print_failed`: it cannot be printed.
            NotFoundError: There is none such of this owner.
            StorageError: The database failed.
        """
        outline, redaction = await self.opened(conversation_id)
        pieces = [piece async for piece in self._html(outline, redaction, lang, printed=True)]
        made = await asyncio.get_running_loop().run_in_executor(_PRINTERS, as_pdf, "".join(pieces), PRINTED)
        return file_name(redaction.said(outline.conversation.title), "pdf"), made

    async def _html(
        self, outline: Outline, redaction: Redaction, lang: Lang, *, printed: bool = False
    ) -> AsyncGenerator[str, None]:
        writer = HtmlWriter({}, lang, printed=printed)
        async for piece in self.page(outline, redaction, writer, lambda _, picture: inline_picture(picture.png)):
            yield piece

    async def page(
        self, outline: Outline, redaction: Redaction, writer: HtmlWriter, placed: Placed
    ) -> AsyncGenerator[str, None]:
        """What is in sight of a conversation as a page.

        Args:
            placed: Puts the picture of a page somewhere; returns its address.
        """
        writer.files.update((f"/files/{one.id}", _file(one, redaction)) for one in outline.files)
        yield writer.head(_head(outline, redaction), outline.others)
        async for turns in self._turns(outline, outline.in_sight, redaction):
            writer.files.update((one.id, one) for one in _inside(redaction))
            yield await asyncio.to_thread(writer.turns, turns)
        async with self._cited_pages(outline, needed=bool(writer.cited)) as pages:
            found = writer.pages()
            yield writer.evidence_begins() if found else "</main>\n"
            for key, cited in found.items():
                picture = await pages.picture(key) if isinstance(key, tuple) else None
                yield await asyncio.to_thread(_evidence, writer, pages, key, cited, picture, placed)
            yield "</aside>\n" if found else ""
        yield writer.foot()

    @asynccontextmanager
    async def _cited_pages(self, outline: Outline, *, needed: bool) -> AsyncGenerator[CitedPages, None]:
        """What draws pages, to the end of an `async with` block; where it is not `needed`, nothing is opened."""
        kept: dict[PageKey, tuple[Callable[[], Awaitable[bytes]], tuple[float, float]]] = {}
        records = {one.id: one for one in outline.files}
        for one in outline.pages:
            if self._files is not None and one.file in records:
                kept[one.document_id, one.page] = partial(self._files.read, one.file), (one.width, one.height)
        if self._index is None or not needed:
            yield CitedPages(None, kept)
            return
        async with self._index() as library:
            yield CitedPages(library, kept)

    async def _json(self, outline: Outline, redaction: Redaction) -> AsyncGenerator[str, None]:
        head = _head(outline, redaction).model_dump_json()
        yield f'{head.removesuffix("}")},"turns":['
        apart, running = "\n", False
        second = [outline.beside.second] if outline.beside is not None else []
        ids = [*outline.turns, *(one for one in second if one not in outline.turns)]
        async for turns in self._turns(outline, ids, redaction):
            yield apart + await asyncio.to_thread(_lines, turns)
            apart, running = ",\n", running or any(turn.status == "running" for turn in turns)
        files = [*(_file(one, redaction) for one in outline.files), *_inside(redaction)]
        yield f'\n],"files":[\n{_lines(files)}\n],"running":{"true" if running else "false"}}}\n'

    async def _markdown(self, outline: Outline, redaction: Redaction, lang: Lang) -> AsyncGenerator[str, None]:
        files = {f"/files/{one.id}": _file(one, redaction) for one in outline.files}
        writer = MarkdownWriter(files, lang)
        yield writer.head(_head(outline, redaction), outline.others)
        async for turns in self._turns(outline, outline.in_sight, redaction):
            files.update((one.id, one) for one in _inside(redaction))
            yield await asyncio.to_thread(writer.turns, turns)

    async def _turns(
        self, outline: Outline, ids: Sequence[str], redaction: Redaction
    ) -> AsyncGenerator[list[ExportedTurn], None]:
        path, names = frozenset(outline.path), names_of(outline.documents)
        beside, pair = outline.beside, frozenset[str]()
        if beside is not None and await self._found(outline, [beside.second]):  # it may be deleted meanwhile
            pair = frozenset({beside.first, beside.second})
        for start in range(0, len(ids), _AT_ONCE):
            found = await self._found(outline, ids[start : start + _AT_ONCE])
            so_far = {one.message.id: await self.so_far(one) for one in found if one.message.status == "running"}

            def made(found: list[WholeTurn] = found, so_far: dict[str, Any] = so_far) -> list[ExportedTurn]:
                events = (so_far.get(one.message.id, ()) for one in found)
                pairs = zip(map(_as_it_stands, found), events, strict=True)
                return [
                    turn_of(
                        one,
                        redaction,
                        shown=one.message.id in path,
                        beside=one.message.id in pair,
                        so_far=log,
                        names=names,
                    )
                    for one, log in pairs
                ]

            yield await asyncio.to_thread(made)

    async def _found(self, outline: Outline, ids: Sequence[str]) -> list[WholeTurn]:
        """Some turns; a second reply that is being written is in a place of its own, and moves when it is over."""
        found = await self.whole.turns(outline.conversation.id, ids)
        beside = outline.beside
        if beside is None or beside.second not in ids or beside.second in {one.message.id for one in found}:
            return found
        try:
            for one in await self.whole.turns(beside.place, [beside.second]):
                found.append(replace(one, message=replace(one.message, parent_id=beside.question)))
        except NotFoundError:  # moved just now
            found += await self.whole.turns(outline.conversation.id, [beside.second])
        return sorted(found, key=lambda one: ids.index(one.message.id))

    async def so_far(self, turn: WholeTurn) -> Sequence[LoggedEvent]:
        """What has happened in a reply that is being written: here, or in another process."""
        if turn.run is None:
            return ()
        return await self._runs.events(turn.run.id)


def _evidence(
    writer: HtmlWriter,
    pages: CitedPages,
    key: PageKey | str,
    cited: list[Cited],
    picture: PagePicture | None,
    placed: Placed,
) -> str:
    source = placed(key, picture) if picture is not None and isinstance(key, tuple) else ""
    return writer.evidence(cited, pages, picture, source)


def _as_it_stands(turn: WholeTurn) -> WholeTurn:
    """The turn; of a process that was killed it is interrupted, which nobody has written down yet."""
    if turn.message.status != "running" or turn.run is None or (turn.lease is not None and seems_held(turn.lease)):
        return turn
    run, message = replace(turn.run, status="interrupted"), replace(turn.message, status="interrupted")
    return replace(turn, run=run, message=message)


def _lines(values: Sequence[BaseModel]) -> str:
    return ",\n".join(one.model_dump_json() for one in values)


def _head(outline: Outline, redaction: Redaction) -> ExportHead:
    return ExportHead(
        exported_at=datetime.now(UTC),
        conversation=_conversation(outline.conversation, redaction),
        documents=tuple(_document(one, redaction) for one in outline.documents),
    )


def _conversation(one: ConversationRecord, redaction: Redaction) -> ExportedConversation:
    return ExportedConversation(
        id=one.id,
        title=redaction.said(one.title),
        created_at=moment(one.created_at),
        updated_at=moment(one.updated_at),
        leaf_id=one.leaf_id,
    )


def _document(one: DocumentRecord, redaction: Redaction) -> ExportedDocument:
    name = redaction.said(one.name)
    return ExportedDocument(id=one.id, file_id=one.file_id, name=name, status=one.status, pages=one.pages)


def _file(one: FileRecord, redaction: Redaction) -> ExportedFile:
    return ExportedFile(
        id=one.id,
        name=redaction.said(one.name),
        media_type=one.media_type,
        size=one.size,
        sha256=one.sha256,
        created_at=moment(one.created_at),
    )


def _inside(redaction: Redaction) -> list[ExportedFile]:
    """What stood in the messages themselves, so far."""
    found = redaction.files.items()
    return [
        ExportedFile(id=address, name="", media_type=media_type, size=size, sha256=digest)
        for address, (media_type, size, digest) in found
    ]


@asynccontextmanager
async def conversations_at_rest(settings: Settings, owner: str) -> AsyncGenerator[tuple[OwnerStores, Exporting], None]:
    """What an owner has in a data folder, and what exports them; no model is loaded and no server started.

    Raises:
        NotFoundError: Nothing was ever kept there.
        StorageError: The database is damaged, newer than this program, or cannot be used.
    """
    place = settings.database_in(settings.home)
    if isinstance(place, Path) and not place.is_file():
        raise NotFoundError(f"There is no data in {settings.home}.", hint="Name its folder with --home.")
    database = await Database.open(place)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.aclose)
        sealer = Sealer(settings.signing_secret())
        every = Stores(database, await opened.enter_async_context(opened_blobs(settings)), sealer)
        toolbox = Toolbox(every, sealer, settings)
        opened.push_async_callback(toolbox.aclose)
        runs = Runs(every)
        opened.push_async_callback(runs.aclose)
        stores = every.of(owner)
        secrets = KnownSecrets(settings, stores.model_services, toolbox.of(owner))
        shelves = shelves_at(settings.database_in(settings.home), maker=Maker(makes=False))
        if shelves is not None:
            opened.callback(shelves.close)
        shelf = partial(shelves.of, owner) if shelves is not None else None
        index = _index_at_rest(settings, settings.home / "libraries" / folder_name(owner), shelf)
        yield stores, Exporting(stores.whole, runs.of(owner), secrets, index, stores.files)


def _index_at_rest(settings: Settings, folder: Path, shelf: Callable[[], Shelf] | None) -> OpenIndex | None:
    """What opens an index where nobody else does; `None` where there is none."""
    if not folder.is_dir():
        return None

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Library, None]:
        from core.rag.library import Library  # brings the document readers with it

        passages = await asyncio.to_thread(shelf) if shelf is not None else None
        library = await asyncio.to_thread(Library.open, folder, index_config(settings), shelf=passages)
        try:
            yield library
        finally:
            await asyncio.to_thread(library.close)

    return opened
