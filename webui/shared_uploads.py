"""Files on their way in, where several Parlours share a store: what was sent up at one may be used at another."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from core.errors import NotFoundError, StorageError
from core.storage.blobs import UPLOADS, key_of
from core.storage.data_folder import translated

if TYPE_CHECKING:
    from pathlib import Path

    from core.storage.blobs import Blobs

_LOG = logging.getLogger(__name__)
_NAME: Final = re.compile(r"[\w-]{8,64}", re.ASCII)


class SharedUploads:
    """Copies of uploads in the store, each under the random name of its folder, for its owner alone.

    Args:
        blobs: The store.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def give(self, owner: str, path: Path) -> None:
        """Let others have an upload. A store that cannot be used is logged: then it is known here alone."""
        key = _key(owner, str(path))
        try:
            if key is not None:
                await self._blobs.put(key, path)
        except StorageError as error:
            _LOG.warning("An upload can be used by this Parlour alone: %s", error)

    async def fetch(self, owner: str, path: str, folder: Path, name: str) -> Path:
        """An upload that another Parlour took in, as a file of this one.

        Args:
            path: Where it is there.
            folder: Where it gets a folder of its own.
            name: What the file is called.

        Raises:
            NotFoundError: There is none of this owner.
            StorageError: The store cannot be used.
        """
        key = _key(owner, path)
        if key is None:
            raise NotFoundError("There is no such upload.", key="upload_gone")
        target = folder / secrets.token_hex(16) / name
        try:
            async with self._blobs.local(key) as here:
                await asyncio.to_thread(_copy, here, target)
        except NotFoundError as error:
            raise NotFoundError("There is no such upload.", key="upload_gone") from error
        except OSError as error:
            await asyncio.to_thread(shutil.rmtree, target.parent, ignore_errors=True)
            raise translated(error, folder) from error
        return target

    async def forget(self, owner: str, path: str) -> None:
        """Delete what was given; what cannot be deleted is swept after a day."""
        key = _key(owner, path)
        if key is not None:
            with suppress(StorageError):
                await self._blobs.delete([key])


def _key(owner: str, path: str) -> str | None:
    name = PurePath(path).parent.name
    return key_of(owner, UPLOADS, name) if _NAME.fullmatch(name) else None


def _copy(here: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700)
    shutil.copyfile(here, target)
