"""A backup of a Parlour whose files are in an S3 store has them all, and is restored into a folder or into a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.storage.opening import opened_blobs
from core.storage.sealing import Sealer
from core.storage.shares import Held
from core.storage.stores import Stores
from tests.grown_servers import S3Server, s3
from webui.commands.data_folder import backup, restore

__all__ = ["s3"]


async def kept(home: Path, given: dict[str, Any], *, fresh: bool) -> tuple[bytes, bytes, bool]:
    """The bytes of the one file and the one snapshot, made where they are `fresh`; and whether a folder has any."""
    settings = Settings.load(home=home, secret="key", **given)
    database = await Database.open(settings.database_in(home))
    async with opened_blobs(settings) as blobs:
        every = Stores(database, blobs, Sealer("key"))
        stores = every.of(LOCAL_OWNER)
        if fresh:
            file = await stores.files.put("notes.md", b"950 stamps")
            talk = await stores.conversations.create()
            await stores.documents.add(talk.id, file.id, file.name)
            await stores.shares.add("talk", "Stamps", b"a bundle", ends_at=None, held=Held(1))
        (file_id,) = await database.read(lambda c: c.exec_driver_sql("SELECT id FROM files").scalars().all())
        (share,) = await stores.shares.list()
        token = stores.shares.token_of(share)
        found = await stores.files.read(file_id), (await every.shares.content(token or ""))[1]
    await database.aclose()
    return (*found, any(path.is_file() for path in (home / "files").rglob("*")))


@pytest.mark.parametrize("into", ["a folder", "another store"])
def test_it_is_whole_and_comes_back_into_either(
    into: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret of the store")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
    monkeypatch.setenv("PARLOUR_SECRET", "key")
    first, second = (f"s3://{s3.make_bucket()}/parlour" for _ in range(2))
    whole = (b"950 stamps", b"a bundle", False)
    assert asyncio.run(kept(tmp_path / "one", {"files": first}, fresh=True)) == whole
    monkeypatch.setenv("PARLOUR_FILES", first)
    assert backup([str(tmp_path / "backup.zip"), "--home", str(tmp_path / "one")]) == 0
    if into == "a folder":
        monkeypatch.delenv("PARLOUR_FILES")
    else:
        monkeypatch.setenv("PARLOUR_FILES", second)
    assert restore([str(tmp_path / "backup.zip"), "--home", str(tmp_path / "two")]) == 0
    given, in_folder = ({}, True) if into == "a folder" else ({"files": second}, False)
    assert asyncio.run(kept(tmp_path / "two", given, fresh=False)) == (*whole[:2], in_folder)
    assert "a secret of the store" not in capsys.readouterr().out
