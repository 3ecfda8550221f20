"""Bytes in a folder whose file system has no hard links, and what a process leaves that ends between two writes."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConflictError, NoSpaceError, NotFoundError
from core.storage.blobs import FILES, SHARES, UPLOADS, FolderBlobs, key_of
from core.storage.sealing import Sealer
from core.storage.shares import AllShares, Held
from webui.shared_uploads import SharedUploads
from webui.uploads import Uploads

pytestmark = pytest.mark.anyio
ONE, TWO = key_of("ada", FILES, "one.txt"), key_of("ada", FILES, "two.txt")


@pytest.fixture
def blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderBlobs:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "This file system has no links.")

    monkeypatch.setattr(os, "link", refused)
    return FolderBlobs({FILES: tmp_path / "files", SHARES: tmp_path / "shares", UPLOADS: tmp_path / "uploads"})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def test_a_name_is_given_once_without_links_too(blobs: FolderBlobs, tmp_path: Path) -> None:
    await blobs.put(ONE, b"first", only_new=True)
    with pytest.raises(ConflictError):
        await blobs.put(ONE, b"second", only_new=True)
    assert await blobs.read([ONE]) == [b"first"]
    assert names(tmp_path / "files") == ["one.txt"]


async def test_a_name_whose_bytes_could_not_be_put_there_is_free_again(
    blobs: FolderBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left.")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(NoSpaceError):
            await blobs.put(ONE, b"first", only_new=True)
    assert names(tmp_path / "files") == []
    await blobs.put(ONE, b"second", only_new=True)
    assert await blobs.read([ONE]) == [b"second"]


async def test_a_copy_has_its_name_only_once_it_is_whole(
    blobs: FolderBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blobs.put(ONE, b"all of it")

    def half(_: Path, target: Path) -> None:
        target.write_bytes(b"all")
        raise OSError(errno.ENOSPC, "No space left.")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy2", half)
        with pytest.raises(NoSpaceError):
            await blobs.copy(ONE, TWO)
    assert names(tmp_path / "files") == ["one.txt"]
    await blobs.copy(ONE, TWO)
    assert await blobs.read([TWO]) == [b"all of it"]
    with pytest.raises(NotFoundError):
        await blobs.copy(key_of("ada", FILES, "none.txt"), key_of("ada", FILES, "three.txt"))


async def test_the_bytes_of_a_share_that_nothing_is_known_of_go_after_a_day(blobs: FolderBlobs) -> None:
    async def room(_: int) -> None:
        return None

    shares = AllShares(blobs, Sealer("a secret")).of("ada", room)
    await shares.add("c1", "Kept", b"bundle", ends_at=None, held=Held())
    lost, young = (key_of("ada", SHARES, name) for name in ("0" * 64 + ".zip", "1" * 64 + ".zip"))
    for key in (lost, young):
        await blobs.put(key, b"x" * 1000)
    os.utime(blobs.path(lost), (0, 0))
    assert [one.title for one in await shares.list()] == ["Kept"]
    assert await blobs.read([lost, young]) == [None, b"x" * 1000], "one that is being made just now stays"


async def test_an_upload_of_another_parlour_is_fetched_once(blobs: FolderBlobs, tmp_path: Path) -> None:
    there = tmp_path / "there" / ("a" * 16) / "notes.txt"
    there.parent.mkdir(parents=True)
    there.write_text("kept there")
    shared = SharedUploads(blobs)
    await shared.give("ada", there)
    uploads = Uploads(tmp_path / "here", 1_000_000)
    uploads.shared = shared
    first = await uploads.find("ada", str(there))
    assert (await uploads.find("ada", str(there))) is first
    assert uploads.size_held("ada") == len("kept there")
    with pytest.raises(NotFoundError):
        await uploads.find("bob", str(there))
