"""Shared snapshots of conversations: for each a bundle and what is known of it, as files in the folder of its owner.

A link holds a token of 256 bits. Its hash finds the snapshot, and the token itself is kept sealed, so that its owner is
shown the link again: who can read the folder alone cannot make a link of it.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import ConflictError, NotFoundError, QuotaError, StorageError
from core.storage.blobs import SHARES, key_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from core.storage.blobs import Blobs
    from core.storage.sealing import Sealer

MOST_SHARES: Final = 200
"""Snapshots of one owner at a time."""
BUNDLE, PAGE = ".zip", ".html"
"""The endings of what is kept of a snapshot; only pages were, at first."""
_ABOUT: Final = ".json"
_DAY: Final = 24 * 3600.0
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
        blobs: Has them.
        sealer: Seals tokens.
        check_room: Raises QuotaError where the owner may not keep so many bytes more.
    """

    def __init__(self, blobs: Blobs, owner: str, sealer: Sealer, check_room: Callable[[int], Awaitable[None]]) -> None:
        self._blobs = blobs
        self._owner = owner
        self._place = (_PLACE, owner)
        self._sealer = sealer
        self._check_room = check_room

    async def list(self) -> list[Share]:
        """Those whose time is not up, the newest first; the others are deleted. Raises StorageError."""
        return (await self._known())[0]

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
        if len(await self.list()) >= MOST_SHARES:
            hint = "Revoke one that is not needed any more."
            raise ConflictError("There are too many shared links.", hint=hint, key="shares_many", most=MOST_SHARES)
        try:
            await self._blobs.put(self._key(share.id, BUNDLE), bundle)
            # What is known of it comes last: without it nothing is shown.
            await self._blobs.put(self._key(share.id, _ABOUT), json.dumps(asdict(share)).encode())
        except StorageError:
            with suppress(StorageError):
                await self._remove([share.id])
            raise
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
        await self._remove([share_id])

    async def remove_of(self, conversation_id: str) -> None:
        """The same for all links of a conversation. Raises StorageError."""
        mine = [one.id for one in await self.list() if one.conversation_id == conversation_id]
        await self._remove(mine)

    async def used(self) -> int:
        """Bytes that they take. Raises StorageError."""
        return (await self._known())[1]

    async def _make_room(self, more: int) -> None:
        await self.list()
        try:
            await self._check_room(more)
        except QuotaError as error:
            hint = "Revoke links, or delete conversations and libraries with files that are no longer needed."
            raise QuotaError(
                "There is no room left for this snapshot.", hint=hint, key="share_no_room", **error.details
            ) from error

    async def _known(self) -> tuple[list[Share], int]:
        """What is kept, what is over deleted; and the bytes that it takes."""
        now = time.time()
        there = [blob async for blob in self._blobs.list(key_of(self._owner, SHARES, ""))]
        sizes = {blob.key: blob.size for blob in there}
        about = [key for key in sizes if key.endswith(_ABOUT)]
        named = {_id_in(key) for key in about}
        left = [one.key for one in there if _id_in(one.key) not in named and one.changed < now - _DAY]
        if left:  # a process ended between the two writes: no link leads there
            await self._blobs.delete(left)
            sizes = {key: size for key, size in sizes.items() if key not in left}
        found = [share for data in await self._blobs.read(about) if (share := _read(data)) is not None]
        over = [one.id for one in found if one.is_over(now)]
        await self._remove(over)
        used = sum(size for key, size in sizes.items() if _id_in(key) not in over)
        return sorted((one for one in found if one.id not in over), key=lambda one: -one.made_at), used

    async def _remove(self, ids: Sequence[str]) -> None:
        await self._blobs.delete([self._key(one, ending) for one in ids for ending in (_ABOUT, BUNDLE, PAGE)])

    def _key(self, share_id: str, ending: str) -> str:
        return key_of(self._owner, SHARES, share_id + ending)


class AllShares:
    """The snapshots of all owners.

    Args:
        blobs: Has them.
        sealer: Seals tokens.
    """

    def __init__(self, blobs: Blobs, sealer: Sealer) -> None:
        self._blobs = blobs
        self._sealer = sealer

    def of(self, owner: str, check_room: Callable[[int], Awaitable[None]]) -> ShareStore:
        """Those of one owner; `check_room` as of `ShareStore`."""
        return ShareStore(self._blobs, owner, self._sealer, check_room)

    async def kept(self, token: str) -> tuple[Share, bool]:
        """What is behind a link: what is known of it, and whether there is its bundle, not only its page.

        Raises:
            NotFoundError: There is none, it was revoked, or its time is up.
            StorageError: It cannot be read.
        """
        share, key = await self._kept(name_of(token))
        return share, key.endswith(BUNDLE)

    @asynccontextmanager
    async def bundle(self, token: str) -> AsyncGenerator[Path]:
        """The file of the same, to the end of an `async with` block. Raises as `kept`."""
        _, key = await self._kept(name_of(token))
        try:
            async with self._blobs.local(key) as path:
                yield path
        except NotFoundError as error:  # revoked this very moment
            raise _gone() from error

    async def content(self, token: str) -> tuple[Share, bytes]:
        """What is behind a link, and its bytes. Raises as `kept`."""
        share, key = await self._kept(name_of(token))
        (data,) = await self._blobs.read([key])
        if data is None:  # revoked this very moment
            raise _gone()
        return share, data

    async def _kept(self, name: str) -> tuple[Share, str]:
        for about in await self._blobs.find(SHARES, f"{name}{_ABOUT}"):
            (data,) = await self._blobs.read([about])
            share = _read(data)
            if share is None or share.is_over(time.time()):
                continue
            stem = about.removesuffix(_ABOUT)
            there = {blob.key async for blob in self._blobs.list(stem)}
            for ending in (BUNDLE, PAGE):
                if stem + ending in there:
                    return share, stem + ending
        raise _gone()


def _gone() -> NotFoundError:
    return NotFoundError("This link leads nowhere any more.", key="share_gone")


def _id_in(key: str) -> str:
    return key.rpartition("/")[2].partition(".")[0]


def name_of(token: str) -> str:
    """What finds a snapshot: SHA-256 of its token, in hexadecimal."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _read(data: bytes | None) -> Share | None:
    """What is known of a snapshot; `None` where that cannot be read."""
    try:
        given = cast("dict[str, Any]", json.loads(data or b""))
        held = given.pop("held", None)
        share = Share(**given, held=_held(held) if held is not None else None)
        texts: tuple[Any, ...] = (share.id, share.conversation_id, share.title, share.sealed)
        times = (share.made_at, 0.0 if share.ends_at is None else share.ends_at, float(share.size))
        return share if all(isinstance(one, str) for one in texts) and all(map(math.isfinite, times)) else None
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError):
        return None


def _held(given: Any) -> Held:
    return Held(int(given["messages"]), int(given["pages"]), tuple(map(str, given["files"])))
