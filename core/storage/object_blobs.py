"""Bytes in an S3 store, with copies of what was looked at on this machine."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from core.errors import NotFoundError, StorageError, extra_for
from core.storage.blobs import SHARES, SIGNED_SECONDS, Blob, check_key, gone, is_key, taken
from core.storage.data_folder import translated
from core.storage.local_copies import LocalCopies
from core.storage.signing import Keys, signed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Generator, Sequence
    from pathlib import Path

_TRIES: Final = 3
_PIECE: Final = 4 * 1024 * 1024
_AT_ONCE: Final = 4  # parts of a large file on their way
_READ_AT_ONCE: Final = 16
_FOUND: Final = frozenset({SHARES})
_NAMES: Final = "n/"
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")
_KEYS_REFUSED: Final = frozenset(
    {"AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"}
)
NOT_PUBLIC: Final = "off"
MARK: Final = "parlour"
"""The name of the object that says whose prefix it is."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Where an S3 store is, and what opens it.

    Args:
        name: The bucket's.
        prefix: What all keys begin with there.
        endpoint: The address of a store that is not Amazon's.
        public: Where browsers reach the store, where that is another address; `off` where they do not.
        region: `us-east-1` where it is left out.
        access_key, secret_key, session_token: Left out, the machine's own role is asked for them, and no addresses are
            signed.
    """

    name: str
    prefix: str = ""
    endpoint: str = ""
    public: str = ""
    region: str = "us-east-1"
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        """As it is written in settings."""
        return f"s3://{self.name}/{self.prefix}".rstrip("/")


def opened_store(bucket: Bucket, timeout: float = 30.0) -> tuple[Any, Any]:
    """The package that speaks with stores, and the store; requests that fail are made again.

    Raises:
        MissingExtraError: The package is not installed.
    """
    with extra_for("Files in an S3 store"):
        import obstore
        from obstore.store import S3Store
    given = {
        "endpoint": bucket.endpoint,
        "access_key_id": bucket.access_key,
        "secret_access_key": bucket.secret_key,
        "session_token": bucket.session_token,
    }
    store = S3Store(
        bucket.name,
        prefix=bucket.prefix or None,
        region=bucket.region,
        client_options=cast(
            "Any",
            {
                "allow_http": bucket.endpoint.startswith("http://"),
                "timeout": timedelta(seconds=max(timeout, 1.0) * 10),
                "read_timeout": timedelta(seconds=timeout),
                "connect_timeout": timedelta(seconds=min(timeout, 5.0)),
            },
        ),
        retry_config=cast(
            "Any",
            {
                "max_retries": _TRIES,
                "retry_timeout": timedelta(seconds=timeout * 2),
                "backoff": {"init_backoff": timedelta(milliseconds=50), "max_backoff": timedelta(seconds=2)},
            },
        ),
        **cast("Any", {name: value for name, value in given.items() if value}),
    )
    return obstore, store


class StoreErrors:
    """What the store's package says, as errors of ours. What the store itself wrote is repeated nowhere.

    Args:
        obs: The package.
        bucket: Where the store is.
    """

    def __init__(self, obs: Any, bucket: Bucket) -> None:
        self._obs, self._bucket = obs, bucket

    @contextmanager
    def told(self) -> Generator[None]:
        """What the store's package says as an error of ours. What the store itself wrote is repeated nowhere."""
        errors = self._obs.exceptions
        try:
            yield
        except errors.AlreadyExistsError as error:
            raise taken() from error
        except (FileNotFoundError, PermissionError, errors.BaseError) as error:
            raise self._meant(error) from None

    def _meant(self, error: Exception) -> StorageError:
        said, place = str(error), self._bucket.address
        code = found[1] if (found := _CODE.search(said)) else ""
        if code == "NoSuchBucket":
            return StorageError(
                f"There is no bucket {self._bucket.name!r} for {place}.",
                hint="Make it, or name another in PARLOUR_FILES.",
                key="files_bucket",
                place=place,
            )
        if isinstance(error, FileNotFoundError):
            return gone()
        no_keys = "latest/api/token" in said or "security-credentials" in said
        if no_keys or code in _KEYS_REFUSED or isinstance(error, self._denied):
            return StorageError(
                f"The keys for {place} are missing or refused.",
                hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
                key="files_keys",
                place=place,
            )
        return self.unreachable()

    @property
    def _denied(self) -> tuple[type[Exception], ...]:
        errors = self._obs.exceptions
        return (PermissionError, errors.PermissionDeniedError, errors.UnauthenticatedError)

    def unreachable(self) -> StorageError:
        """The error of a store that does not answer."""
        return StorageError(
            f"The store of {self._bucket.address} does not answer.",
            hint="Look whether AWS_ENDPOINT_URL names a store that runs; what was stored before is safe.",
            key="files_server",
            place=self._bucket.address,
        )


class ObjectBlobs:
    """Bytes in a bucket.

    Args:
        bucket: Where it is.
        folder: For copies of this machine, which may be deleted at any time.
        most: Bytes that the copies may take; one that is in use stays above that.
        timeout: Seconds that the store may say nothing.

    Raises:
        MissingExtraError: The package that speaks with such stores is not installed.
    """

    is_remote = True

    def __init__(self, bucket: Bucket, folder: Path, most: int, *, timeout: float = 30.0) -> None:
        self._obs, self._store = opened_store(bucket, timeout)
        self._bucket = bucket
        self._copies = LocalCopies(folder, most)
        self._errors = StoreErrors(self._obs, bucket)
        self._told = self._errors.told

    async def check(self, installation: str) -> None:
        """Look whether the bucket can be used, and whether it is this installation's.

        Args:
            installation: What tells this one from others, and tells nothing else.

        Raises:
            StorageError: key `files_bucket`, `files_keys`, `files_server` or `files_others`: it cannot, or is not.
        """
        with self._told():
            try:
                await self._obs.put_async(self._store, MARK, installation.encode(), mode="create", use_multipart=False)
            except self._obs.exceptions.AlreadyExistsError:
                found = bytes(await (await self._obs.get_async(self._store, MARK)).bytes_async())
                if found.strip() != installation.encode():
                    raise StorageError(
                        f"The files in {self._bucket.address} belong to another Parlour.",
                        hint="Give each Parlour a prefix of its own, and all processes of one the same PARLOUR_SECRET.",
                        key="files_others",
                        place=self._bucket.address,
                    ) from None

    def close(self) -> None:
        """Let go of the folder of copies; they stay for the next start."""
        self._copies.close()

    def draft(self, key: str) -> Path:
        """As of `Blobs`."""
        check_key(key)
        return self._copies.draft()

    async def take(self, key: str, draft: Path, digest: str = "") -> None:
        """As of `Blobs`: the draft is this machine's copy from then on."""
        name = check_key(key)["name"]
        with self._told():
            await self._obs.put_async(self._store, key, draft, chunk_size=2 * _PIECE, max_concurrency=_AT_ONCE)
        await self._copies.adopt(key, digest, name, draft)

    async def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> None:
        """As of `Blobs`."""
        parts = check_key(key)
        how: dict[str, Any] = {"chunk_size": 2 * _PIECE, "max_concurrency": _AT_ONCE}
        if only_new:
            how = {"mode": "create", "use_multipart": False}
        with self._told():
            await self._obs.put_async(self._store, key, source, **how)
            if parts["kind"] in _FOUND:
                await self._obs.put_async(self._store, _note(key), key.encode(), use_multipart=False)

    async def open(self, key: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """As of `Blobs`: what is cut off goes on from there."""
        check_key(key)
        end = None if length is None else start + length
        for left in reversed(range(_TRIES)):
            try:
                async for piece in self._pieces(key, start, end):
                    start += len(piece)
                    yield piece
            except StorageError as error:
                if not left or error.words_key != "files_server":
                    raise
            else:
                return

    @asynccontextmanager
    async def local(self, key: str, digest: str = "") -> AsyncGenerator[Path]:
        """As of `Blobs`: a copy, which is made by whoever wants it first."""
        name = check_key(key)["name"]

        async def fill(draft: Path) -> None:
            file = await asyncio.to_thread(draft.open, "wb")
            try:
                async for piece in self.open(key):
                    await asyncio.to_thread(file.write, piece)
            finally:
                await asyncio.to_thread(file.close)

        async with AsyncExitStack() as held:
            try:
                path = await held.enter_async_context(self._copies.held(key, digest, name, fill))
            except OSError as error:
                raise translated(error, self._copies.folder) from error
            yield path

    async def sign(self, key: str, name: str, seconds: float = SIGNED_SECONDS) -> str:
        """As of `Blobs`: it saves, and never shows, whatever the store thinks the bytes are."""
        check_key(key)
        one = self._bucket
        if one.public == NOT_PUBLIC or not (one.access_key and one.secret_key):
            return ""
        keys = Keys(one.access_key, one.secret_key, one.session_token)
        path = "/".join(part for part in (one.prefix, key) if part)
        said = {
            "response-content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
            "response-content-type": "application/octet-stream",
        }
        endpoint = one.public or one.endpoint or f"https://s3.{one.region}.amazonaws.com"
        return signed(f"{endpoint.rstrip('/')}/{one.name}/{path}", keys, one.region, seconds, datetime.now(UTC), said)

    async def delete(self, keys: Collection[str]) -> None:
        """As of `Blobs`."""
        notes = [_note(key) for key in keys if check_key(key)["kind"] in _FOUND]
        if keys:
            with self._told(), suppress(FileNotFoundError):
                await self._obs.delete_async(self._store, [*keys, *notes])
        for key in keys:
            await self._copies.forget(key)

    async def copy(self, key: str, to: str) -> None:
        """As of `Blobs`: within the store."""
        check_key(key)
        check_key(to)
        with self._told(), suppress(self._obs.exceptions.AlreadyExistsError):
            await self._obs.copy_async(self._store, key, to)

    async def read(self, keys: Sequence[str]) -> list[bytes | None]:
        """As of `Blobs`: by copies of this machine, some at a time."""
        turns = asyncio.Semaphore(_READ_AT_ONCE)

        async def one(key: str) -> bytes | None:
            try:
                async with turns, self.local(key) as path:
                    return await asyncio.to_thread(path.read_bytes)
            except NotFoundError:
                return None

        return list(await asyncio.gather(*map(one, keys)))

    async def find(self, kind: str, name: str) -> Sequence[str]:
        """As of `Blobs`: by a note beside the bytes, for a list of all would take too long."""
        check_key(f"o/x/{kind}/{name}")
        try:
            found = b"".join([piece async for piece in self._pieces(f"{_NAMES}{kind}/{name}", 0, None)]).decode()
            check_key(found)
        except NotFoundError:
            return []
        return [found]

    async def list(self, prefix: str) -> AsyncGenerator[Blob]:
        """As of `Blobs`."""
        folder = prefix.rpartition("/")[0]
        with self._told():
            async for some in self._obs.list(self._store, folder or None, chunk_size=500):
                for one in some:
                    if one["path"].startswith(prefix) and is_key(one["path"]):
                        yield Blob(one["path"], one["size"], one["last_modified"].timestamp())

    async def _pieces(self, key: str, start: int, end: int | None) -> AsyncGenerator[bytes]:
        with self._told():
            asked: dict[str, Any] = {}
            if end is not None:
                if start >= end:
                    return
                asked = {"range": (start, end)}
            elif start:
                asked = {"range": {"offset": start}}
            answer = await self._obs.get_async(self._store, key, options=asked)
            left = answer.range[1] - answer.range[0]
            async for piece in answer.stream(min_chunk_size=_PIECE):
                left -= len(piece)
                yield bytes(piece)
            if left > 0:
                raise self._errors.unreachable()


def _note(key: str) -> str:
    """Where stands which key a name has."""
    parts = check_key(key)
    return f"{_NAMES}{parts['kind']}/{parts['name']}"
