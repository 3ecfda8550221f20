"""A conversation behind a link: a bundle of what is in sight of it now, and what that holds, before it is made.

The bundle has the page that the link shows, and the same turns as rows, so that whoever reads the page may go on in a
copy of their own. Both are made of the same values: what the page does not show is in neither. Of documents that is
what replies cite; what a search found beside it stays with the owner, whose own exports have it.
"""

from __future__ import annotations

import asyncio
import base64
import re
import time
import zipfile
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError, StorageError
from core.export.bundle import MANIFEST, line, manifest, page_entry
from core.export.cited_results import only_cited, shows_documents
from core.export.html_page import WHEN, HtmlWriter
from core.export.shared_turns import SharedTurns
from core.export.zip_stream import ZipStream
from core.storage.base import new_id
from core.storage.shares import Held

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.export.cited_pages import PageKey, PagePicture
    from core.export.exporting import Exporting
    from core.export.schema import ExportedTurn, ExportHead
    from core.languages import Lang

LARGEST: Final = 50 * 1024 * 1024
"""Bytes of a snapshot; what is larger is passed on as a bundle."""
_PAGE: Final = "index.html"
_PICTURE: Final = re.compile(rb'(?<=<img src=")pages/[0-9a-f]{16}-\d{1,6}\.png(?=")')
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError, NotImplementedError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What can be shared of a conversation.

    Args:
        title: Of the conversation.
        bundle: The page that the link shows, and the same turns to be taken over.
        held: What is in it, in numbers.
        rated: Whether the page tells what its owner thinks of a reply.
    """

    title: str
    bundle: bytes
    held: Held
    rated: bool = False


async def snapshot(exporting: Exporting, conversation_id: str, lang: Lang) -> Snapshot:
    """What is in sight of a conversation now.

    Args:
        lang: The language of what is not the conversation's own.

    Raises:
        NotFoundError: There is none such of this owner.
        StorageError: The database failed.
        ParlourError: key `share_large`: it would be larger than `LARGEST`.
    """
    outline, redaction = await exporting.opened(conversation_id)
    made = _Making(lang)
    pieces: list[bytes] = []
    async for piece in exporting.page(outline, redaction, made, made.place):
        pieces.append(piece.encode())
        made.count(len(pieces[-1]))
    title = redaction.said(outline.conversation.title)
    bundle = await asyncio.to_thread(made.bundle, title, pieces)
    return Snapshot(title, bundle, Held(len(outline.in_sight), len(made.pages()), made.names()), made.rated)


def page_of(bundle: bytes) -> bytes:
    """The page of a snapshot: HTML that runs nothing and fetches nothing.

    Args:
        bundle: What was kept of it; of one that is only a page, that page.

    Raises:
        StorageError: key `share_damaged`.
    """
    if not bundle.startswith(b"PK"):
        return bundle
    try:
        with zipfile.ZipFile(BytesIO(bundle)) as archive:
            page = archive.read(_PAGE)

            def inline(found: re.Match[bytes]) -> bytes:
                return b"data:image/png;base64," + base64.b64encode(archive.read(found[0].decode()))

            return _PICTURE.sub(inline, page)
    except _BROKEN as error:
        hint = "Whoever shared it can make a new link."
        raise StorageError("The snapshot is damaged.", hint=hint, key="share_damaged") from error


class _Making(HtmlWriter):
    """Writes the page, and keeps what stands on it."""

    def __init__(self, lang: Lang) -> None:
        super().__init__({}, lang, source=self._note)
        self._named: dict[str, None] = {}
        self._shown: list[ExportedTurn] = []
        self._pictures: dict[str, bytes] = {}
        self._places: list[dict[str, Any]] = []
        self._size = 0
        self._read_documents = False
        self.rated = False

    def turns(self, turns: Iterable[ExportedTurn]) -> str:
        """Some turns, one after the other, with nothing of documents that they do not cite."""
        listed: list[ExportedTurn] = []
        for one in turns:  # in the order of the conversation, whose beginning a model is given each time
            self._read_documents = self._read_documents or shows_documents(one)
            listed.append(only_cited(one, self._lang, thoughts=not self._read_documents))
        self._shown += listed
        self.rated = self.rated or any(one.rating is not None for one in listed)
        return super().turns(listed)

    def _origin(self, head: ExportHead, others: int) -> str:
        """That it is shared, and when. What else its owner has is told to nobody else: `others` are not counted."""
        del others
        return self._words["shared"].format(when=head.exported_at.strftime(WHEN))

    def place(self, key: PageKey, picture: PagePicture) -> str:
        """Keep the picture of a page; returns its address."""
        (document, number), (width, height), name = key, picture.size, page_entry(key)
        self._pictures[name] = picture.png
        self._places.append({"document_id": document, "page": number, "entry": name, "width": width, "height": height})
        self.count(len(picture.png))
        return name

    def count(self, more: int) -> None:
        """Note that so many bytes were made. Raises ParlourError where there are too many."""
        self._size += more
        if self._size > LARGEST:
            hint = "Export it as a bundle, and pass that on."
            raise ParlourError("The snapshot would be too large.", hint=hint, key="share_large", limit=LARGEST)

    def names(self) -> tuple[str, ...]:
        """The names of the files that the page names."""
        known = (self.files.get(one) for one in self._named)
        return tuple(dict.fromkeys(one.name for one in known if one is not None and one.name))

    def bundle(self, title: str, page: Iterable[bytes]) -> bytes:
        """All of it as the bytes of a bundle."""
        archive, talk = ZipStream(), new_id()
        folder, turns = f"conversations/{talk}", SharedTurns(self._shown, self.file_name)
        made = [archive.add(_PAGE, page)]
        made += [archive.add(name, [png], packed=False) for name, png in self._pictures.items()]
        for run_id, rows in turns.logs.items():
            made.append(archive.add(f"{folder}/logs/{run_id}.jsonl", map(line, rows)))
        made.append(archive.add(f"{folder}/messages.jsonl", map(line, turns.rows)))
        now = time.time()
        about = {
            "conversation": {
                "id": talk,
                "title": title,
                "titled_by": "person",
                "created_at": now,
                "updated_at": now,
                "leaf_id": turns.leaf,
            },
            "files": [],
            "documents": [],
            "pages": self._places,
        }
        made.append(archive.add(f"{folder}/conversation.json", [line(about)]))
        listed = [{"id": talk, "title": title, "messages": len(turns.rows), "page": _PAGE}]
        made.append(archive.add(MANIFEST, [manifest(archive, listed)]))
        return b"".join([*made, archive.end()])

    def _note(self, address: str) -> str:
        self._named[address] = None
        return ""
