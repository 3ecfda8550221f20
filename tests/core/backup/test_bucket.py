"""A data folder outlives its machine in a mounted bucket."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.backup.bucket import FOLDER, Bucket, keeping, mounted_bucket
from core.errors import StorageError
from core.messages.message import Message
from core.storage.database import Database
from tests.core.stores import stores_over
from tests.stored_files import stored

pytestmark = pytest.mark.anyio

MOUNTS = """overlay / overlay rw 0 0
proc /proc proc rw 0 0
fusectl /sys/fs/fuse/connections fusectl rw 0 0
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", None),
        ("hf-mount /data fuse.hf-mount rw 0 0", "/data"),
        ("mount /data fuse rw 0 0", "/data"),
        ("hf://buckets/a/b /mnt/my\\040bucket fuse rw 0 0", "/mnt/my bucket"),
        ("/dev/sda1 /data ext4 rw 0 0", None),
        ("portal /run/user/1000/doc fuse.portal rw 0 0", None),
        ("hf-mount /models/qwen fuse.hf ro,nosuid 0 0", None),  # a model's repository
        ("hf-mount /models/qwen fuse.hf ro 0 0\nhf-mount /kept fuse.hf rw 0 0", "/kept"),
        ("hf-mount /other fuse.hf rw 0 0\nhf-mount /data fuse.hf rw 0 0", "/data"),  # the usual place before others
    ],
)
async def test_a_mounted_bucket_is_known_by_its_kind(tmp_path: Path, line: str, found: str | None) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"{MOUNTS}{line}\n")
    assert mounted_bucket(table) == (Path(found) if found else None)
    assert mounted_bucket(tmp_path / "none") is None


async def test_what_was_said_and_sent_comes_back_on_a_fresh_disk_and_what_was_deleted_does_not(tmp_path: Path) -> None:
    home, place = tmp_path / "home", tmp_path / "bucket"
    home.mkdir()
    place.mkdir()
    bucket = Bucket(home, place)
    assert not bucket.put(), "there is nothing yet"
    database = await Database.open(home / "parlour.db")
    stores = stores_over(database).of("ann")
    (home / "secret").write_text("a secret")
    talk = await stores.conversations.create("A trip")
    await stores.conversations.add_message(talk.id, "user", [Message("user", "Where to?")], None)
    kept, gone = await stores.files.put("kept.txt", b"A coat."), await stores.files.put("gone.txt", b"A hat.")
    assert bucket.put(), "while it is open"
    assert not bucket.put(), "nothing is new"
    await stores.files.delete(gone.id)
    async with keeping(bucket, every=60):
        await stores.conversations.create("Another")
    await database.aclose()

    shutil.rmtree(home)
    home.mkdir()
    again = Bucket(home, place)
    assert again.bring_back()
    assert not again.bring_back(), "what is there is not overwritten"
    assert (home / "secret").read_text() == "a secret"
    database = await Database.open(home / "parlour.db")
    stores = stores_over(database).of("ann")
    assert sorted(one.title for one in await stores.conversations.list()) == ["A trip", "Another"]
    assert (await stored(stores.files, kept.id))[1].read_bytes() == b"A coat."
    assert len(list((place / FOLDER / "files").rglob("*.txt"))) == 1
    await database.aclose()


async def test_a_bucket_that_cannot_be_written_costs_nothing_but_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    await (await Database.open(home / "parlour.db")).aclose()
    (tmp_path / "bucket").write_text("no folder")
    bucket = Bucket(home, tmp_path / "bucket")
    with pytest.raises(StorageError):
        bucket.put()
    async with keeping(bucket):
        pass
    assert "The bucket does not have what is new" in caplog.text
