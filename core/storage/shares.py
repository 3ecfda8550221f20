"""Shared snapshots of conversations: for each a page and what is known of it, as files in the folder of its owner.

A link holds a token of 256 bits. Only its hash is kept: who can read the folder cannot make a link of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import ConflictError, NotFoundError
from core.storage.base import folder_name
from core.storage.data_folder import translated

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST_SHARES: Final = 200
"""Snapshots of one owner at a time."""


@dataclass(frozen=True, slots=True)
class Share:
    """A shared snapshot.

    Args:
        id: The hash of its token.
        conversation_id: What it was made of.
        title: As it was then.
        made_at: In Unix seconds.
        ends_at: From when on the link leads nowhere; `None` for never.
    """

    id: str
    conversation_id: str
    title: str
    made_at: float
    ends_at: float | None

    def is_over(self, now: float) -> bool:
        """Whether its time is up."""
        return self.ends_at is not None and now >= self.ends_at


class ShareStore:
    """The snapshots of one owner."""

    def __init__(self, folder: Path, owner: str) -> None:
        self._folder = folder / folder_name(owner)

    async def list(self) -> list[Share]:
        """Those whose time is not up, the newest first; the others are deleted. Raises StorageError."""
        return await asyncio.to_thread(self._list)

    async def add(self, conversation_id: str, title: str, page: bytes, *, ends_at: float | None) -> tuple[str, Share]:
        """Keep a page; returns the token of its link, which nobody knows afterwards, and what is kept.

        Raises:
            ConflictError: key `shares_many`: there are `MOST_SHARES` already.
            NoSpaceError: The disk is full; nothing was kept.
            StorageError: The folder cannot be written.
        """
        token = secrets.token_urlsafe(32)
        share = Share(name_of(token), conversation_id, title, time.time(), ends_at)
        await asyncio.to_thread(self._add, share, page)
        return token, share

    async def remove(self, share_id: str) -> None:
        """Let a link lead nowhere from now on. Raises NotFoundError, StorageError."""
        known = {one.id for one in await self.list()}
        if share_id not in known:
            raise NotFoundError("There is no such link.", kind="share")
        await asyncio.to_thread(self._remove, [share_id])

    async def remove_of(self, conversation_id: str) -> None:
        """The same for all links of a conversation. Raises StorageError."""
        mine = [one.id for one in await self.list() if one.conversation_id == conversation_id]
        await asyncio.to_thread(self._remove, mine)

    def _list(self) -> list[Share]:
        now = time.time()
        try:
            found = [share for path in self._folder.glob("*.json") if (share := _read(path)) is not None]
            self._remove(one.id for one in found if one.is_over(now))
        except OSError as error:
            raise translated(error, self._folder) from error
        return sorted((one for one in found if not one.is_over(now)), key=lambda one: -one.made_at)

    def _add(self, share: Share, page: bytes) -> None:
        if len(self._list()) >= MOST_SHARES:
            hint = "Revoke one that is not needed any more."
            raise ConflictError("There are too many shared links.", hint=hint, key="shares_many", most=MOST_SHARES)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(self._folder / f"{share.id}.html", page)
            # What is known of it comes last: without it the page is not shown.
            _write(self._folder / f"{share.id}.json", json.dumps(asdict(share)).encode())
        except OSError as error:
            self._remove([share.id])
            raise translated(error, self._folder) from error

    def _remove(self, ids: Iterable[str]) -> None:
        try:
            for one in ids:
                for ending in ("json", "html"):
                    (self._folder / f"{one}.{ending}").unlink(missing_ok=True)
        except OSError as error:
            raise translated(error, self._folder) from error


class AllShares:
    """The snapshots of all owners.

    Args:
        folder: Has a folder for each owner; made when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, owner: str) -> ShareStore:
        """Those of one owner."""
        return ShareStore(self._folder, owner)

    async def page(self, token: str) -> bytes:
        """The page behind a link.

        Raises:
            NotFoundError: There is none, it was revoked, or its time is up.
            StorageError: It cannot be read.
        """
        return await asyncio.to_thread(self._page, name_of(token))

    def _page(self, name: str) -> bytes:
        try:
            for about in self._folder.glob(f"*/{name}.json"):
                share = _read(about)
                if share is not None and not share.is_over(time.time()):
                    return about.with_suffix(".html").read_bytes()
        except FileNotFoundError:  # revoked this very moment
            pass
        except OSError as error:
            raise translated(error, self._folder) from error
        raise NotFoundError("This link leads nowhere any more.", kind="share")


def name_of(token: str) -> str:
    """What is kept of a token: SHA-256, in hexadecimal."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _read(path: Path) -> Share | None:
    """What is known of a snapshot; `None` where that cannot be read."""
    try:
        kept: Any = json.loads(path.read_bytes())
        return Share(**cast("dict[str, Any]", kept))
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, whole or not at all."""
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)
