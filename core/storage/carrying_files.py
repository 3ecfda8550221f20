"""Carries files and snapshots from one store of bytes into another, and compares what arrived."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.errors import NotFoundError, StorageError
from core.storage.blobs import SHARES, check_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.storage.blobs import Blobs

_AT_ONCE: Final = 8
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Carried:
    """What was carried.

    Args:
        files: How many things are in the other store now, each the same byte for byte.
        size: Their bytes.
        before: How many of them were there already.
    """

    files: int = 0
    size: int = 0
    before: int = 0


async def carry_files(source: Blobs, target: Blobs, told: Callable[[Carried], None] | None = None) -> Carried:
    """Copy everything into another store. Cut short, it goes on when it is called again: what is there is compared.

    Args:
        told: Called now and then with how far it is.

    Raises:
        StorageError: key `files_differ`: what arrived is not what was sent, after a second try. Or one of the stores
            cannot be used. Nothing is taken away from the first.
    """
    there = {blob.key: blob.size async for blob in target.list("o/")}
    done, batch = Carried(), list[str]()
    async for blob in source.list("o/"):
        batch.append(blob.key)
        if len(batch) == _BATCH:
            done, batch = await _carried(source, target, batch, there, done), []
            if told is not None:
                told(done)
    return await _carried(source, target, batch, there, done)


async def _carried(source: Blobs, target: Blobs, keys: list[str], there: dict[str, int], done: Carried) -> Carried:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(key: str) -> tuple[int, bool] | None:
        async with turns:
            try:
                return await _carry(source, target, key, there.get(key))
            except NotFoundError:  # deleted meanwhile
                return None

    found = [one for one in await asyncio.gather(*map(one, keys)) if one is not None]
    size, before = sum(size for size, _ in found), sum(was_there for _, was_there in found)
    return Carried(done.files + len(found), done.size + size, done.before + before)


async def _carry(source: Blobs, target: Blobs, key: str, size: int | None) -> tuple[int, bool]:
    """Copy one thing, where it is not there already: its size, and whether it was."""
    async with source.local(key) as path:
        own = await digest_of(source, key)
        if size == own[0] and await digest_of(target, key) == own and await _is_found(target, key):
            return own[0], True
        for _ in range(2):
            await target.put(key, path)
            if await digest_of(target, key) == own:
                return own[0], False
    raise StorageError(
        "What arrived in the store is not what was sent.",
        hint="Try again; nothing was taken away from where it is.",
        key="files_differ",
        name=key,
    )


async def _is_found(target: Blobs, key: str) -> bool:
    """Whether a snapshot is found by its link, which is stored after its bytes."""
    parts = check_key(key)
    return parts["kind"] != SHARES or key in await target.find(SHARES, parts["name"])


async def digest_of(blobs: Blobs, key: str) -> tuple[int, str]:
    """How many bytes there are, and their SHA-256. Raises NotFoundError, StorageError."""
    digest, size = hashlib.sha256(), 0
    async for piece in blobs.open(key):
        digest.update(piece)
        size += len(piece)
    return size, digest.hexdigest()
