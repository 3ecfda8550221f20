"""Opens what settings say: where the bytes of files are."""

from __future__ import annotations

from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from core.storage.blobs import files_beside
from core.storage.object_blobs import Bucket, ObjectBlobs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from pydantic import SecretStr

    from core.settings import Settings
    from core.storage.blobs import Blobs

_MIB: Final = 1024 * 1024
COPIES: Final = "copies"
"""Where in the data folder copies of files are that are elsewhere."""


def bucket_of(settings: Settings) -> Bucket | None:
    """The bucket that settings name; `None` where files are in the data folder."""
    return store_of(settings, *settings.store) if settings.store is not None else None


def store_of(settings: Settings, name: str = "", prefix: str = "") -> Bucket:
    """A bucket that the keys of the settings open, whether files are in it or not."""
    return Bucket(
        name,
        prefix,
        settings.aws_endpoint_url,
        settings.files_address,
        settings.aws_region,
        _plain(settings.aws_access_key_id),
        _plain(settings.aws_secret_access_key),
        _plain(settings.aws_session_token),
    )


@asynccontextmanager
async def opened_blobs(settings: Settings) -> AsyncGenerator[Blobs]:
    """Where the bytes of files are, to the end of an `async with` block.

    Raises:
        MissingExtraError: They are in an S3 store, and what speaks with one is not installed.
        StorageError: key `files_bucket`, `files_keys`, `files_server` or `files_others`: the store cannot be used.
    """
    bucket = bucket_of(settings)
    if bucket is None:
        yield files_beside(settings.home / "files")
        return
    blobs = ObjectBlobs(bucket, copies_in(settings.home), settings.files_cache_mb * _MIB)
    try:
        await blobs.check(sha256(f"parlour.files {settings.signing_secret()}".encode()).hexdigest())
        yield blobs
    finally:
        blobs.close()


def copies_in(home: Path) -> Path:
    """The folder of copies in a data folder."""
    return home / COPIES


def _plain(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
