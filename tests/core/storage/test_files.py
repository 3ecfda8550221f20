"""Stored files: names that mean harm, kinds found in content, a full disk."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import stat
import threading
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from core.errors import ConflictError, NoSpaceError, NotFoundError, QuotaError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.storage import data_folder as synced
from core.storage import files as files_module
from core.storage.base import LOCAL_OWNER, FileRecord
from core.storage.blobs import FILES, FolderBlobs, key_of
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.files import AllFiles, media_type_of, shown_name, suffix_for
from tests.stored_files import stored

pytestmark = pytest.mark.anyio


def place(owner: str, file: FileRecord, home: Path) -> Path:
    return FolderBlobs({FILES: home / "files"}).path(key_of(owner, FILES, file.id + suffix_for(file.media_type)))


def archive(name: str) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w") as made:
        made.writestr(name, "x")
    return kept.getvalue()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a\0b\n.txt", "ab.txt"),
        ("报告（终稿）.pdf", "报告（终稿）.pdf"),
        ("🐈.md", "🐈.md"),
        (".env.txt", ".env.txt"),
        ("home/.gitignore", ".gitignore"),
        (" . . / .. env. ", ".env"),
        ("..", "file"),
        ("...", "file"),
        ("", "file"),
        ("x" * 300 + ".pdf", "x" * 115 + "….pdf"),
    ],
)
def test_a_name_is_shown_without_harm(name: str, shown: str) -> None:
    assert shown_name(name) == shown


@given(st.text(max_size=400))
def test_any_name_can_be_shown_and_stored(name: str) -> None:
    shown = shown_name(name)
    assert 0 < len(shown) <= 120
    assert shown.isprintable()
    assert "/" not in shown
    assert "\\" not in shown
    assert not shown.startswith("..")
    assert shown != "."
    assert shown.encode()


@pytest.mark.parametrize(
    ("content", "name", "media_type"),
    [
        (b"%PDF-1.7 ...", "a.pdf", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n....", "a.pdf", "image/png"),
        (b"\xff\xd8\xff\xe0", "a", "image/jpeg"),
        (b"RIFF\0\0\0\0WAVEfmt ", "a.wav", "audio/wav"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "a", "image/webp"),
        (b"\x1aE\xdf\xa3 ... A_OPUS", "audio.webm", "audio/webm"),
        (b"\x1aE\xdf\xa3 ... V_VP9 A_OPUS", "clip.webm", "video/webm"),
        (b"BM is how this text begins", "a.txt", "text/plain"),
        (b"a,b\n1,2", "a.CSV", "text/csv"),
        ("# 标题".encode("gb18030"), "a.md", "text/markdown"),
        (b"\xff\xfeh\0i\0", "a.txt", "text/plain"),
        (b" <!DOCTYPE html><p>", "a.txt", "text/html"),
        (b"<svg onload=alert(1)>", "a.png", "text/plain"),
        (b"\0\1\2", "a.txt", "application/octet-stream"),
        (b"", "a.txt", "application/octet-stream"),
        (archive("word/document.xml"), "a", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (archive("other"), "a.docx", "application/zip"),
        (b"PK\x03\x04 broken", "a.docx", "application/zip"),
    ],
)
def test_the_content_says_what_kind_it_is(tmp_path: Path, content: bytes, name: str, media_type: str) -> None:
    (tmp_path / "x").write_bytes(content)
    assert media_type_of(tmp_path / "x", name) == media_type


async def test_a_file_is_stored_under_a_name_that_cannot_be_guessed(database: Database, tmp_path: Path) -> None:
    store = AllFiles(database, tmp_path / "files").of
    (tmp_path / "source").write_bytes(b"hello")
    one = await store("alice").put("../greeting.txt", tmp_path / "source")
    two = await store("alice").put("greeting.txt", b"hello")
    assert one.id != two.id
    assert (one.name, one.size, one.sha256) == ("greeting.txt", 5, two.sha256)
    record, path = await stored(store("alice"), one.id)
    assert record == one
    assert path.read_bytes() == b"hello"
    assert path == tmp_path / "files" / "alice" / f"{one.id}.txt"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_an_owner_whose_name_means_harm_gets_a_plain_folder(database: Database, tmp_path: Path) -> None:
    store = AllFiles(database, tmp_path / "files").of
    record = await store("../bob").put("a.txt", b"hello")
    assert (tmp_path / "files") in place("../bob", record, tmp_path).parents
    assert place("../bob", record, tmp_path).resolve().is_relative_to((tmp_path / "files").resolve())


async def test_a_full_disk_leaves_no_half_file(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, draft: Path, name: str) -> None:
        draft.parent.mkdir(parents=True)
        draft.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    store = AllFiles(database, tmp_path / "files").of
    with monkeypatch.context() as broken, pytest.raises(NoSpaceError):
        broken.setattr(files_module, "_take_in", full)
        await store("alice").put("a.txt", b"whole")
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []
    await store("alice").put("a.txt", b"whole")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_file_whose_row_cannot_be_stored_is_not_left_behind(database: Database, tmp_path: Path) -> None:
    store = AllFiles(database, tmp_path / "files").of
    pages = await database.read(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar_one())
    await database.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar())
    with pytest.raises(NoSpaceError):
        for number in range(1000):
            await store("alice").put(f"{'n' * 100}{number}.txt", b"x")
    stored = await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM files").scalar_one())
    assert len([path for path in (tmp_path / "files").rglob("*") if path.is_file()]) == stored


@pytest.mark.parametrize("whose", ["alice", "bob"])
async def test_an_id_that_something_else_got_first_is_refused_and_that_stays_as_it_was(
    database: Database, tmp_path: Path, whose: str
) -> None:
    store = AllFiles(database, tmp_path / "files").of
    first = await store("alice").put("a.txt", b"hello")
    with pytest.raises(ConflictError):
        await store(whose).put("a.txt", b"hello", wanted=first.id)
    assert await store("alice").record(first.id) == first
    assert await store("alice").read(first.id) == b"hello"
    assert len([path for path in (tmp_path / "files").rglob("*") if path.is_file()]) == 1


async def test_deleting_takes_the_bytes_along(database: Database, tmp_path: Path) -> None:
    store = AllFiles(database, tmp_path / "files").of
    record = await store("alice").put("a.txt", b"hello")
    await store("alice").delete(record.id)
    assert not place("alice", record, tmp_path).exists()
    with pytest.raises(NotFoundError):
        await stored(store("alice"), record.id)


async def test_uploads_that_were_never_sent_go_after_a_while(database: Database, tmp_path: Path) -> None:
    store, talks = AllFiles(database, tmp_path / "files").of, partial(ConversationStore, database)
    sent, unsent = await store("alice").put("a.txt", b"a"), await store("alice").put("b.txt", b"b")
    talk = await talks("alice").create()
    await talks("alice").add_message(talk.id, "user", [Message("user", [ContentItem(file=sent.address)])], None)
    assert await AllFiles(database, tmp_path / "files").delete_unused(time.time() - 3600) == 0
    assert await AllFiles(database, tmp_path / "files").delete_unused(time.time() + 1) == 1
    assert (await stored(store("alice"), sent.id))[0] == sent
    assert not place("alice", unsent, tmp_path).exists()


async def test_a_message_that_names_the_file_of_somebody_else_does_not_keep_it(
    database: Database, tmp_path: Path
) -> None:
    store, talks = AllFiles(database, tmp_path / "files").of, partial(ConversationStore, database)
    theirs = await store("bob").put("a.txt", b"a")
    talk = await talks("alice").create()
    await talks("alice").add_message(talk.id, "user", [Message("user", [ContentItem(file=theirs.address)])], None)
    assert await AllFiles(database, tmp_path / "files").delete_unused(time.time() + 1) == 1


@pytest.mark.parametrize("at", ["copying", "noting"])
async def test_a_file_whose_sender_left_is_not_left_behind(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    store = AllFiles(database, tmp_path / "files").of
    loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def held() -> None:
        loop.call_soon_threadsafe(reached.set)
        go_on.wait(60)

    steps: dict[str, Any] = dict(vars(files_module))
    copied, known = steps["_take_in"], steps["insert_owner"]

    def copying(source: Path | bytes, draft: Path, name: str) -> tuple[int, str, str]:
        held()
        return copied(source, draft, name)

    def noting(connection: Connection, owner: str) -> None:
        held()
        known(connection, owner)

    step = ("_take_in", copying) if at == "copying" else ("insert_owner", noting)
    monkeypatch.setattr(files_module, *step)
    putting = asyncio.create_task(store("alice").put("a.txt", b"text"))
    await reached.wait()
    putting.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []
    assert await database.read(lambda c: c.execute(select(files_module.files)).all()) == []


async def test_other_bytes_in_a_file_keep_its_id_and_leave_nothing_of_the_old_ones(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AllFiles(database, tmp_path / "files").of
    link = await store("alice").put("a · b", b"https://a.example/b", media_type="text/uri-list")
    assert (await stored(store("alice"), link.id))[0].media_type == "text/uri-list"
    fresh = await store("alice").replace_content(link.id, "x/Title.html", b"<html><p>Herons</p></html>")
    found, path = await stored(store("alice"), link.id)
    assert found == fresh
    assert (found.id, found.name, found.media_type) == (link.id, "Title.html", "text/html")
    assert [path] == list(path.parent.iterdir())
    assert path.read_bytes() == b"<html><p>Herons</p></html>"
    with pytest.raises(NotFoundError):
        await store("bob").replace_content(link.id, "x", b"x")

    def full(*_: object) -> tuple[int, str, str]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files_module, "_take_in", full)
    with pytest.raises(NoSpaceError):
        await store("alice").replace_content(link.id, "y", b"y")
    assert (await stored(store("alice"), link.id)) == (fresh, path)


async def test_a_link_that_is_deleted_while_its_page_is_stored_leaves_no_bytes(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AllFiles(database, tmp_path / "files").of
    link = await store("alice").put("a · b", b"https://a.example/b", media_type="text/uri-list")
    loop, take_in = asyncio.get_running_loop(), files_module._take_in  # pyright: ignore[reportPrivateUsage]

    def deleted_meanwhile(*of: Any) -> tuple[int, str, str]:
        asyncio.run_coroutine_threadsafe(store("alice").delete(link.id), loop).result(10)
        return take_in(*of)

    monkeypatch.setattr(files_module, "_take_in", deleted_meanwhile)
    with pytest.raises(NotFoundError):
        await store("alice").replace_content(link.id, "Title.html", b"<html><p>Herons</p></html>")
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []


class Disk:
    """Notes what is written to the disk, in order: files and folders by `fsync`, and each durable transaction."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[str] = []
        sync, write = os.fsync, database.write

        def fsync(handle: int) -> None:
            sync(handle)
            self.written.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "bytes")

        async def noted(work: Any, **how: Any) -> Any:
            result = await write(work, **how)
            self.written.append("row" if how.get("durable", True) else "row, perhaps")
            return result

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(database, "write", noted)


async def test_the_bytes_and_the_name_of_a_file_are_on_the_disk_before_anything_refers_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(tmp_path / "a.db")
    store = AllFiles(database, tmp_path / "files").of
    disk = Disk(database, monkeypatch)
    first = await store("alice").put("a.txt", b"one")
    assert disk.written == ["folder", "folder", "bytes", "folder", "row"]  # its two new folders as well
    disk.written.clear()
    await store("alice").put("b.txt", b"two")
    assert disk.written == ["bytes", "folder", "row"]
    disk.written.clear()
    await store("alice").replace_content(first.id, "a.txt", b"three")
    assert disk.written == ["bytes", "folder", "row"]
    await database.aclose()


async def test_a_file_whose_name_cannot_be_made_to_last_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(tmp_path / "a.db")
    store = AllFiles(database, tmp_path / "files").of
    await store("alice").put("a.txt", b"one")

    def fails(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(synced, "sync_folder", fails)
    with pytest.raises(NoSpaceError):
        await store("alice").put("b.txt", b"two")
    assert len(list((tmp_path / "files" / "alice").iterdir())) == 1


async def test_the_files_of_an_owner_have_so_much_room_and_the_local_owners_all_there_is(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "parlour.db")
    store = AllFiles(database, tmp_path / "files", quota=1000).of
    first = await store("alice").put("a.txt", b"a" * 600)
    with pytest.raises(QuotaError) as refused:
        await store("alice").put("b.txt", b"b" * 401)
    assert "Delete" in refused.value.hint
    assert [path.name for path in (tmp_path / "files" / "alice").iterdir()] == [place("alice", first, tmp_path).name]
    await store("alice").put("b.txt", b"b" * 400)
    with pytest.raises(QuotaError):
        await store("alice").replace_content(first.id, "a.txt", b"a" * 601)
    assert (await store("alice").record(first.id)).size == 600
    await store("bob").put("a.txt", b"a" * 1000)
    await store(LOCAL_OWNER).put("a.txt", b"a" * 5000)
    await store("alice").delete(first.id)
    await store("alice").put("c.txt", b"c" * 600)
    await database.aclose()


async def test_of_files_that_come_at_once_no_more_are_kept_than_there_is_room_for(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "parlour.db")
    store = AllFiles(database, tmp_path / "files", quota=1000).of
    put = (store("alice").put(f"{number}.txt", b"a" * 300) for number in range(8))
    done = await asyncio.gather(*put, return_exceptions=True)
    assert sum(isinstance(one, QuotaError) for one in done) == 5
    assert len(list((tmp_path / "files" / "alice").iterdir())) == 3
    await database.aclose()


async def test_more_unused_files_than_fit_into_one_statement_are_all_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "_BATCH", 3)
    database = await Database.open(tmp_path / "a.db")
    store = AllFiles(database, tmp_path / "files").of
    for number in range(7):
        await store("alice").put(f"{number}.txt", b"x")
    assert await AllFiles(database, tmp_path / "files").delete_unused(time.time() + 1) == 7
    assert list((tmp_path / "files" / "alice").iterdir()) == []
    await database.aclose()


async def test_a_file_that_comes_to_be_needed_while_unused_ones_are_deleted_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(tmp_path / "a.db")
    store, talks = AllFiles(database, tmp_path / "files").of, partial(ConversationStore, database)
    talk, file = await talks("alice").create(), await store("alice").put("a.txt", b"x")
    question = Message("user", [ContentItem(file=file.address)])
    write = database.write

    async def later(work: Any, **how: Any) -> Any:
        monkeypatch.setattr(database, "write", write)  # between what was found out and the deletion
        await talks("alice").add_message(talk.id, "user", [question], None)
        return await write(work, **how)

    monkeypatch.setattr(database, "write", later)
    assert await AllFiles(database, tmp_path / "files").delete_unused(time.time() + 1) == 0
    assert (await stored(store("alice"), file.id))[1].read_bytes() == b"x"
    await database.aclose()
