"""What models and tools make, pictures, recordings, files, becomes files of the one who asked, as those people add."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from binascii import a2b_base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from core.errors import QuotaError, StorageError
from core.messages.content import ContentItem
from core.messages.events import ItemAdded, TextDelta, ToolFinished

if TYPE_CHECKING:
    from core.messages.events import Event
    from core.messages.message import Message
    from core.storage.base import FileRecord
    from core.storage.files import FileStore

_LOG = logging.getLogger(__name__)
_LARGEST: Final = 48 * 1024 * 1024  # letters of a `data:` address
_NAMES: Final = {"image": "picture", "audio": "recording", "video": "video", "file": "file"}


async def store_generated(event: Event, files: FileStore) -> Event:
    """The event; an item that holds the thing itself is stored and names it instead.

    What cannot be stored stays as it is: the text of the reply matters more. For what the owner has no room, a sentence
    stands in its place.

    Args:
        event: Any event of a reply.
    """
    if isinstance(event, ToolFinished):
        message = await _result(event.message, files)
        return event if message is event.message else replace(event, message=message)
    if not isinstance(event, ItemAdded) or not _is_whole(event.item) or event.item.type not in {"image", "audio"}:
        return event
    kind = event.item.type
    try:
        record = await _stored(event.item, files)
    except QuotaError:
        return TextDelta(_no_room(event.item))
    if record is None:
        return event
    if not record.media_type.startswith(f"{kind}/"):
        _LOG.warning("What the model made is no %s.", _NAMES[kind])
        await files.delete(record.id)
        return event
    return ItemAdded(ContentItem(**{kind: record.address}))


async def _result(message: Message, files: FileStore) -> Message:
    """A tool's result with its things stored; `extra["files"]` has what the page shows of them.

    What calls itself a picture, recording or video and is none becomes a file. `extra["whole"]` names the file with a
    long result's whole text.
    """
    if not any(_is_whole(item) for item in message.items):
        return message
    extra = dict(message.extra or {})
    items: list[ContentItem] = []
    about: list[dict[str, Any]] = []
    last = message.items[-1]
    for item in message.items:
        whole = str(extra.get("whole") or "") if item is last else ""
        try:
            record = await _stored(item, files, whole) if _is_whole(item) else None
        except QuotaError:
            items.append(ContentItem(text=_no_room(item)))
            continue
        if record is None:
            items.append(item)
            continue
        is_one = item.type == "file" or record.media_type.startswith(f"{item.type}/")
        items.append(ContentItem(**{item.type if is_one else "file": record.address}))
        about.append({"id": record.id, "name": record.name, "media_type": record.media_type, "size": record.size})
        if whole:
            extra["whole"] = record.address
    return message.model_copy(update={"content": items, "extra": {**extra, "files": about} if about else extra})


def _is_whole(item: ContentItem) -> bool:
    """Whether it holds the thing itself."""
    return item.type != "text" and isinstance(item.value, str) and item.value.startswith("data:")


def _no_room(item: ContentItem) -> str:
    return f"[A {_NAMES[item.type]} was made and is not kept: there is no room left for the user's files.]"


async def _stored(item: ContentItem, files: FileStore, name: str = "") -> FileRecord | None:
    """The thing as a file; `None` where it cannot be one. Raises QuotaError."""
    address = str(item.value)
    if len(address) > _LARGEST:
        return None
    try:
        named, raw = await asyncio.to_thread(_unpacked, item.type, address)
        return await files.put(name or named, raw)
    except QuotaError:
        raise
    except (ValueError, StorageError) as error:
        _LOG.warning("What was made cannot be kept (%s).", type(error).__name__)
        return None


def _unpacked(kind: str, address: str) -> tuple[str, bytes]:
    """A name and the bytes; the address may have the name in it (`data:text/csv;name=table.csv;base64,…`).

    Raises:
        ValueError: They are not in base64.
    """
    head, _, data = address.partition(",")
    if not head.endswith(";base64"):
        raise ValueError("not base64")
    media_type = head.removeprefix("data:").partition(";")[0]
    given = [part.removeprefix("name=") for part in head.split(";") if part.startswith("name=")]
    if given:
        return unquote(given[0]), a2b_base64(data)
    ending = {"audio/wav": ".wav"}.get(media_type) or mimetypes.guess_extension(media_type) or ""
    return f"{_NAMES[kind]}{ending}", a2b_base64(data)
