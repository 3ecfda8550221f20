"""Pictures and recordings that a model makes become files of the one who asked, as those that people add."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from binascii import a2b_base64
from typing import TYPE_CHECKING, Final

from core.errors import StorageError
from core.messages.content import ContentItem
from core.messages.events import ItemAdded

if TYPE_CHECKING:
    from core.messages.events import Event
    from core.storage.files import FileStore

_LOG = logging.getLogger(__name__)
_LARGEST: Final = 32 * 1024 * 1024
_NAMES: Final = {"image": "picture", "audio": "recording"}


async def kept(event: Event, owner: str, files: FileStore) -> Event:
    """The event; an item that holds the thing itself is stored and names it instead.

    What cannot be stored stays as it is: the text of the reply matters more.

    Args:
        event: Any event of a reply.
        owner: Who asked.
        files: Where it is stored.
    """
    if not isinstance(event, ItemAdded) or not str(event.item.value).startswith("data:"):
        return event
    kind, address = event.item.type, str(event.item.value)
    if kind not in {"image", "audio"} or len(address) > _LARGEST:
        return event
    try:
        name, raw = await asyncio.to_thread(_unpacked, kind, address)
        record = await files.put(owner, name, raw)
    except (ValueError, StorageError) as error:
        _LOG.warning("What the model made cannot be kept (%s).", type(error).__name__)
        return event
    if not record.media_type.startswith(f"{kind}/"):
        _LOG.warning("What the model made is no %s.", _NAMES[kind])
        await files.delete(owner, record.id)
        return event
    return ItemAdded(ContentItem(**{kind: record.address}))


def _unpacked(kind: str, address: str) -> tuple[str, bytes]:
    """A name and the bytes.

    Raises:
        ValueError: They are not in base64.
    """
    head, _, data = address.partition(",")
    if not head.endswith(";base64"):
        raise ValueError("not base64")
    media_type = head.removeprefix("data:").partition(";")[0]
    ending = {"audio/wav": ".wav"}.get(media_type) or mimetypes.guess_extension(media_type) or ""
    return f"{_NAMES[kind]}{ending}", a2b_base64(data)
