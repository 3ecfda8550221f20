"""Shared snapshots of conversations: for each a bundle and what is known of it, as files in the folder of its owner.

A link holds a token of 256 bits. Its hash finds the snapshot, and the token itself is kept sealed, so that its owner is
shown the link again: who can read the folder alone cannot make a link of it.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import time
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import ConflictError, NotFoundError, QuotaError, StorageError
from core.storage.base import folder_name
from core.storage.data_folder import size_of, translated

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from core.storage.sealing import Sealer

MOST_SHARES: Final = 200
"""Snapshots of one owner at a time."""
BUNDLE, PAGE = ".zip", ".html"
"""The endings of what is kept of a snapshot; only pages were, at first."""
_PLACE: Final = "share"


@dataclass(frozen=True, slots=True)
class Held:
    """What a snapshot holds, in numbers.

    Args:
        messages: How many turns it shows.
        pages: How many pages of documents it shows, as pictures or by their passages.
        files: The names of the files that it names; what is in them is not in it.
    """

    messages: int = 0
    pages: int = 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """A shared snapshot.

    Args:
        id: The hash of its token.
        conversation_id: What it was made of.
        title: As it was then.
        made_at: In Unix seconds.
        ends_at: From when on the link leads nowhere; `None` for never.
        sealed: Its token, sealed; "" of one that was made before tokens were kept.
        size: Bytes that it takes; 0 of one that was made before they were counted.
        held: What is in it; `None` of such a one.
    """

    id: str
    conversation_id: str
    title: str
    made_at: float
    ends_at: float | None
    sealed: str = field(default="", repr=False)
    size: int = 0
    held: Held | None = None

    def is_over(self, now: float) -> bool:
        """Whether its time is up."""
        return self.ends_at is not None and now >= self.ends_at


class ShareStore:
    """The snapshots of one owner.

    Args:
        folder: Has a folder for each owner.
        sealer: Seals tokens.
        check_room: Raises QuotaError where the owner may not keep so many bytes more.
    """

    def __init__(self, folder: Path, owner: str, sealer: Sealer, check_room: Callable[[int], Awaitable[None]]) -> None:
        self._folder = folder / folder_name(owner)
        self._place = (_PLACE, owner)
        self._sealer = sealer
        self._check_room = check_room

    async def list(self) -> list[Share]:
        """Those whose time is not up, the newest first; the others are deleted. Raises StorageError."""
        return await asyncio.to_thread(self._list)

    async def add(
        self, conversation_id: str, title: str, bundle: bytes, *, ends_at: float | None, held: Held
    ) -> tuple[str, Share]:
        """Keep a snapshot; returns the token of its link, and what is kept.

        Raises:
            ConflictError: key `shares_many`: there are `MOST_SHARES` already.
            NoSpaceError: The disk is full; nothing was kept.
            QuotaError: key `share_no_room`: the owner's files and snapshots would take too much room with it.
            StorageError: The folder cannot be written.
        """
        await self._make_room(len(bundle))
        token = secrets.token_urlsafe(32)
        sealed = self._sealer.seal(token, *self._place)
        share = Share(
            name_of(token), conversation_id, title, time.time(), ends_at, sealed=sealed, size=len(bundle), held=held
        )
        await asyncio.to_thread(self._add, share, bundle)
        return token, share

    def token_of(self, share: Share) -> str | None:
        """The token of its link; `None` where it was not kept, or cannot be opened any more."""
        try:
            return self._sealer.open(share.sealed, *self._place) if share.sealed else None
        except StorageError:  # the installation has another secret now
            return None

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

    async def used(self) -> int:
        """Bytes that they take. Raises StorageError."""
        await self.list()  # what is over takes none
        return await asyncio.to_thread(size_of, self._folder)

    async def _make_room(self, more: int) -> None:
        await self.list()
        try:
            await self._check_room(more)
        except QuotaError as error:
            hint = "Revoke links, or delete conversations and libraries with files that are no longer needed."
            raise QuotaError(
                "There is no room left for this snapshot.", hint=hint, key="share_no_room", **error.details
            ) from error

    def _list(self) -> list[Share]:
        now = time.time()
        try:
            found = [share for path in self._folder.glob("*.json") if (share := _read(path)) is not None]
            self._remove(one.id for one in found if one.is_over(now))
        except OSError as error:
            raise translated(error, self._folder) from error
        return sorted((one for one in found if not one.is_over(now)), key=lambda one: -one.made_at)

    def _add(self, share: Share, bundle: bytes) -> None:
        if len(self._list()) >= MOST_SHARES:
            hint = "Revoke one that is not needed any more."
            raise ConflictError("There are too many shared links.", hint=hint, key="shares_many", most=MOST_SHARES)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(self._folder / f"{share.id}{BUNDLE}", bundle)
            # What is known of it comes last: without it nothing is shown.
            _write(self._folder / f"{share.id}.json", json.dumps(asdict(share)).encode())
        except OSError as error:
            self._remove([share.id])
            raise translated(error, self._folder) from error

    def _remove(self, ids: Iterable[str]) -> None:
        try:
            for one in ids:
                for ending in (".json", BUNDLE, PAGE):
                    (self._folder / f"{one}{ending}").unlink(missing_ok=True)
        except OSError as error:
            raise translated(error, self._folder) from error


class AllShares:
    """The snapshots of all owners.

    Args:
        folder: Has a folder for each owner; made when it is needed.
        sealer: Seals tokens.
    """

    def __init__(self, folder: Path, sealer: Sealer) -> None:
        self._folder = folder
        self._sealer = sealer

    def of(self, owner: str, check_room: Callable[[int], Awaitable[None]]) -> ShareStore:
        """Those of one owner; `check_room` as of `ShareStore`."""
        return ShareStore(self._folder, owner, self._sealer, check_room)

    async def kept(self, token: str) -> tuple[Share, Path]:
        """What is behind a link: what is known of it, and the file, which ends in `BUNDLE` or `PAGE`.

        Raises:
            NotFoundError: There is none, it was revoked, or its time is up.
            StorageError: It cannot be read.
        """
        return await asyncio.to_thread(self._kept, name_of(token))

    async def content(self, token: str) -> tuple[Share, bytes]:
        """The same with the bytes of the file. Raises as `kept`."""
        return await asyncio.to_thread(self._content, name_of(token))

    def _kept(self, name: str) -> tuple[Share, Path]:
        try:
            for about in self._folder.glob(f"*/{name}.json"):
                share = _read(about)
                if share is None or share.is_over(time.time()):
                    continue
                path = next((one for one in map(about.with_suffix, (BUNDLE, PAGE)) if one.is_file()), None)
                if path is not None:
                    return share, path
        except OSError as error:
            raise translated(error, self._folder) from error
        raise NotFoundError("This link leads nowhere any more.", key="share_gone")

    def _content(self, name: str) -> tuple[Share, bytes]:
        share, path = self._kept(name)
        try:
            return share, path.read_bytes()
        except FileNotFoundError as error:  # revoked this very moment
            raise NotFoundError("This link leads nowhere any more.", key="share_gone") from error
        except OSError as error:
            raise translated(error, self._folder) from error


def name_of(token: str) -> str:
    """What finds a snapshot: SHA-256 of its token, in hexadecimal."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _read(path: Path) -> Share | None:
    """What is known of a snapshot; `None` where that cannot be read."""
    try:
        given = cast("dict[str, Any]", json.loads(path.read_bytes()))
        held = given.pop("held", None)
        share = Share(**given, held=_held(held) if held is not None else None)
        texts: tuple[Any, ...] = (share.id, share.conversation_id, share.title, share.sealed)
        times = (share.made_at, 0.0 if share.ends_at is None else share.ends_at, float(share.size))
        return share if all(isinstance(one, str) for one in texts) and all(map(math.isfinite, times)) else None
    except (OSError, ValueError, TypeError, AttributeError, KeyError, OverflowError):
        return None


def _held(given: Any) -> Held:
    return Held(int(given["messages"]), int(given["pages"]), tuple(map(str, given["files"])))


def _write(path: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, whole or not at all."""
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)
