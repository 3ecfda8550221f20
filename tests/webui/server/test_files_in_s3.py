"""Files in an S3 store as readers and several Parlours meet them: shown, saved, read, shared, moved and deleted."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.errors import NoSpaceError, NotFoundError, StorageError
from core.storage.base import LOCAL_OWNER, FileRecord
from core.storage.blobs import FILES, beginning_of, key_of
from core.storage.database import Database
from core.storage.files import AllFiles
from core.storage.object_blobs import Bucket, ObjectBlobs
from core.storage.shares import Held
from core.workspace.sweeping import Sweeping
from tests.grown_servers import S3Server, s3
from tests.webui.server.people_app import House, house
from webui.shared_uploads import SharedUploads
from webui.uploads import Uploads

__all__ = ["s3"]
pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n"
_MB = 1024 * 1024
SECRET = "a secret of the store"


def in_s3(server: S3Server, bucket: str = "") -> dict[str, Any]:
    return {
        "files": f"s3://{bucket or server.make_bucket()}/parlour",
        "aws_access_key_id": "AKIDTEST",
        "aws_secret_access_key": SECRET,
        "aws_endpoint_url": server.address,
    }


async def put(here: House, browser: httpx.AsyncClient, name: str, data: bytes) -> FileRecord:
    async with here.engine.workspaces.open(await here.id_of(browser)) as workspace:
        return await workspace.files.put(name, data)


async def in_store(here: House, owner: str = "") -> list[str]:
    blobs = here.engine.stores.blobs
    assert isinstance(blobs, ObjectBlobs)
    return [blob.key async for blob in blobs.list(beginning_of(owner) if owner else "o/")]


async def test_small_and_shown_files_come_from_parlour_and_large_ones_from_the_store(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, **in_s3(s3)) as here:
        reader, other = await here.person("Ada"), await here.person("Bob")
        small = await put(here, reader, "notes.txt", b"0123456789")
        film = await put(here, reader, "film.png", PNG + b"0123456789" * 200_000)
        large = await put(here, reader, 'a "报告".html', b"<html>" + b"x" * 2 * _MB)
        assert not (tmp_path / "files").exists()

        answer = await reader.get(f"/files/{small.id}")
        assert (answer.status_code, answer.content) == (200, b"0123456789")
        assert answer.headers["content-disposition"].startswith("attachment")
        part = await reader.get(f"/files/{small.id}", headers={"range": "bytes=2-4"})
        assert (part.status_code, part.content) == (206, b"234")

        shown = await reader.get(f"/files/{film.id}")
        assert (shown.status_code, shown.headers["content-type"], len(shown.content)) == (200, "image/png", film.size)
        assert shown.headers["content-disposition"].startswith("inline")
        for asked, said in [("bytes=8-17", b"0123456789"), ("bytes=-3", b"789"), (f"bytes={film.size - 2}-", b"89")]:
            part = await reader.get(f"/files/{film.id}", headers={"range": asked})
            assert (part.status_code, part.content) == (206, said)
            assert part.headers["content-range"].endswith(f"/{film.size}")
        with monkeypatch.context() as patched:
            patched.setattr(ObjectBlobs, "open", None)  # nothing is fetched
            head = await reader.head(f"/files/{film.id}")
        assert (head.status_code, head.headers["content-length"], head.content) == (200, str(film.size), b"")
        for odd in ("bytes=9-2", "bytes=x-", "lines=1-2", "bytes=0-1,4-5", "bytes=-"):
            whole = await reader.get(f"/files/{film.id}", headers={"range": odd})
            assert (whole.status_code, len(whole.content)) == (200, film.size), f"{odd} is no range, and passed over"
        past = await reader.get(f"/files/{film.id}", headers={"range": f"bytes={film.size}-"})
        assert (past.status_code, past.headers["content-range"]) == (416, f"bytes */{film.size}")

        for path in (f"/files/{large.id}", f"/files/{film.id}?download=1"):
            led = await reader.get(path)
            assert (led.status_code, led.headers["cache-control"]) == (302, "no-store")
            assert led.headers["location"].startswith(f"{s3.address}/parlour-")
            assert SECRET not in str(led.headers)
            async with httpx.AsyncClient() as browser:
                saved = await browser.get(led.headers["location"])
            assert saved.headers["content-type"] == "application/octet-stream"
            assert saved.headers["content-disposition"].startswith("attachment")
            assert len(saved.content) == (large if "download" not in path else film).size
        for path in (f"/files/{small.id}", f"/files/{large.id}", f"/files/{film.id}"):
            assert (await other.get(path)).status_code == 404


async def test_where_browsers_do_not_reach_the_store_parlour_hands_all_out(s3: S3Server, tmp_path: Path) -> None:
    async with house(tmp_path, **in_s3(s3), files_address="off") as here:
        reader = await here.person("Ada")
        large = await put(here, reader, "a.txt", b"x" * 2 * _MB)
        answer = await reader.get(f"/files/{large.id}")
        assert (answer.status_code, answer.headers["content-length"]) == (200, str(large.size))
        assert answer.content == b"x" * 2 * _MB


async def test_a_row_whose_bytes_are_gone_is_a_sentence_in_the_readers_language(s3: S3Server, tmp_path: Path) -> None:
    async with house(tmp_path, **in_s3(s3)) as here:
        reader = await here.person("Ada")
        files = [await put(here, reader, "a.txt", b"x"), await put(here, reader, "a.png", PNG + b"x" * 2 * _MB)]
        await here.engine.stores.blobs.delete(await in_store(here))
        for file in files:
            told = [await reader.get(f"/files/{file.id}", headers={"accept-language": lang}) for lang in ("en", "zh")]
            assert {answer.status_code for answer in told} == {404}
            assert len({answer.text for answer in told}) == 2


async def test_a_file_that_was_added_at_one_parlour_is_read_shared_and_deleted_at_another(
    s3: S3Server, tmp_path: Path
) -> None:
    settings = in_s3(s3)
    async with AsyncExitStack() as opened:
        one = await opened.enter_async_context(house(tmp_path / "one", **settings))
        two = await opened.enter_async_context(house(tmp_path / "two", **settings))
        file = await one.engine.stores.of("ada").files.put("notes.md", b"950 stamps")
        # The same rows in the other database, as one that both share would have.
        from sqlalchemy import insert

        from core.storage.conversations import insert_owner
        from core.storage.tables import files

        values = {name: getattr(file, name) for name in FileRecord.__slots__}
        await two.engine.stores.database.write(lambda c: insert_owner(c, "ada"))
        await two.engine.stores.database.write(lambda c: c.execute(insert(files).values(values)))
        there = two.engine.stores.of("ada")
        assert await there.files.read(file.id) == b"950 stamps"
        token, share = await one.engine.stores.of("ada").shares.add(
            "talk", "Stamps", b"a bundle", ends_at=None, held=Held(1)
        )
        found, data = await two.engine.stores.shares.content(token)
        assert (found, data) == (share, b"a bundle")
        assert await there.shares.list() == [share]
        await there.shares.remove(share.id)
        await there.files.delete(file.id)
        assert await in_store(one) == []
        with pytest.raises(StorageError):
            await one.engine.stores.shares.content(token)


async def test_what_a_killed_process_left_goes_after_its_time_and_the_mark_of_the_installation_stays(
    s3: S3Server, tmp_path: Path
) -> None:
    async with house(tmp_path, **in_s3(s3)) as here:
        stores = here.engine.stores
        kept = await stores.of(LOCAL_OWNER).files.put("a.txt", b"x")
        await stores.blobs.put(f"{beginning_of(LOCAL_OWNER)}f/lost.txt", b"x")
        assert await stores.files.delete_orphans(time.time() + 60) == 1
        assert await in_store(here) == [stores.of(LOCAL_OWNER).files.key(kept)]


async def test_what_a_start_finds_without_a_row_goes_in_the_background_and_a_store_that_is_away_is_passed_over(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database, blobs = await Database.open(tmp_path / "parlour.db"), opened_store(s3, tmp_path / "copies")
    lost = f"{beginning_of(LOCAL_OWNER)}f/lost.txt"
    await blobs.put(lost, b"x")
    files, swept = AllFiles(database, blobs), asyncio.Event()
    sweep, failing = files.delete_orphans, [StorageError("The store is away.")]

    async def noted(older_than: float) -> int:
        if failing:
            raise failing.pop()
        count = await sweep(older_than)
        swept.set()
        return count

    monkeypatch.setattr(files, "delete_orphans", noted)
    async with Sweeping(files, stays=-60.0, every=0.0):
        await asyncio.wait_for(swept.wait(), 30)
    assert [blob async for blob in blobs.list("o/")] == []
    assert "The store is away." in caplog.text
    await database.aclose()


async def test_a_parlour_with_another_secret_or_without_its_store_does_not_start_and_says_why(
    s3: S3Server, tmp_path: Path
) -> None:
    settings = in_s3(s3)
    async with house(tmp_path / "one", **settings):
        pass
    for wrong, key in [({"secret": "another"}, "files_others"), ({"files": "s3://not-there"}, "files_bucket")]:
        with pytest.raises(StorageError) as told:
            async with house(tmp_path / "two", **{**settings, **wrong}):
                pass
        assert told.value.words_key == key
        assert SECRET not in str(told.value)


async def test_what_was_sent_up_at_one_parlour_is_sent_at_another_by_its_owner_alone(
    s3: S3Server, tmp_path: Path
) -> None:
    blobs = opened_store(s3, tmp_path / "copies")
    one, two = Uploads(tmp_path / "one", _MB), Uploads(tmp_path / "two", _MB)
    one.shared = two.shared = SharedUploads(blobs)

    async def body() -> AsyncIterator[bytes]:
        yield (
            b'--b\r\ncontent-disposition: form-data; name="files"; filename="a \xe6\x8a\xa5.txt"\r\n\r\n'
            b"950 stamps\r\n--b--\r\n"
        )

    (upload,) = await one.receive("ada", "multipart/form-data; boundary=b", body(), shared=True)
    one.close()  # its Parlour was killed
    file = {"path": str(upload.path), "orig_name": "a < 报.txt", "meta": {"_type": "gradio.FileData"}}
    message = {"text": "How many?", "files": [file]}
    hostile = {"path": "/etc/passwd", "meta": {}}
    asked: list[Any] = [message, None, hostile]
    assert not await two.bring("bob", [message])
    with pytest.raises(NotFoundError):
        await two.find("bob", str(upload.path))
    assert await two.bring("ada", asked)
    assert hostile["path"] == "/etc/passwd"
    found = await two.find("ada", asked[0]["files"][0]["path"])
    assert (found.name, found.path.read_bytes(), found.size) == ("a < 报.txt", b"950 stamps", 10)
    assert found.path.is_relative_to(two.folder)
    await two.drop(found)
    assert [blob async for blob in blobs.list("o/")] == []
    with pytest.raises(NotFoundError):
        await two.find("ada", str(upload.path))
    two.close()


async def test_an_upload_that_there_is_no_room_for_is_told_and_nothing_of_it_stays(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = opened_store(s3, tmp_path / "copies")
    shared, place = SharedUploads(blobs), tmp_path / "two"
    place.mkdir()
    upload = tmp_path / ("a" * 32) / "a.txt"
    upload.parent.mkdir()
    upload.write_bytes(b"950 stamps")
    await shared.give("ada", upload)

    def full(_source: Path, target: Path) -> None:
        target.write_bytes(b"950")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("webui.shared_uploads.shutil.copyfile", full)
        with pytest.raises(NoSpaceError):
            await shared.fetch("ada", str(upload), place, "a.txt")
    assert list(place.iterdir()) == []
    assert (await shared.fetch("ada", str(upload), place, "a.txt")).read_bytes() == b"950 stamps"


async def test_a_fault_of_who_reads_a_copy_is_not_one_of_the_copies(s3: S3Server, tmp_path: Path) -> None:
    blobs = opened_store(s3, tmp_path / "copies")
    key = key_of("ada", FILES, "a.txt")
    await blobs.put(key, b"950 stamps")
    with pytest.raises(PermissionError):
        async with blobs.local(key):
            raise PermissionError("elsewhere")


def opened_store(s3: S3Server, folder: Path) -> ObjectBlobs:
    keys = {"access_key": "AKIDTEST", "secret_key": SECRET}
    return ObjectBlobs(Bucket(s3.make_bucket(), "p", s3.address, **keys), folder, _MB)
