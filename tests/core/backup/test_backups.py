"""A backup of a running Parlour, and the data folder that is made of it."""

from __future__ import annotations

import asyncio
import errno
import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import zipfile
from collections import namedtuple
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backup import writing
from core.backup.contents import LAST, NAME, is_safe
from core.backup.restoring import restore_backup
from core.backup.writing import last_backup, write_backup
from core.errors import ConflictError, StorageError
from core.messages.message import Message
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from tests.core.backup.lived_in import KEY, TEXT, add_document, fill, found_in, opened
from tests.core.storage.test_stored_schemas import SCHEMAS, STORED
from tests.stored_files import stored

pytestmark = pytest.mark.anyio

FILLED = {
    "titles": {"A trip": ["Where to?", "North."]},
    "file": ("keeper.txt", TEXT),
    "passages": [TEXT],
    "notes": ["Windy."],
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was filled and closed, with a backup beside it, one with the secret and one without."""
    folder = tmp_path_factory.mktemp("filled")

    async def make() -> None:
        async with opened(folder / "home") as engine:
            await fill(engine)
            for name, with_secret in (("secret", True), ("plain", False)):
                write_backup(folder / "home", folder / f"{name}.zip", with_secret=with_secret)

    asyncio.run(make())
    return folder


@pytest.fixture
def backed_up(filled: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copies that folder into the test's own; gives the backup of it."""

    def copied(*, with_secret: bool = False) -> Path:
        shutil.copytree(filled / "home", tmp_path / "home")
        return shutil.copyfile(filled / ("secret.zip" if with_secret else "plain.zip"), tmp_path / "backup.zip")

    return copied


def test_when_the_newest_was_made_is_known_and_belongs_to_no_backup(filled: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(filled / "home", home)
    (home / LAST).unlink()
    assert last_backup(home) is None
    write_backup(home, tmp_path / "first.zip")
    _, second = write_backup(home, tmp_path / "second.zip")
    assert last_backup(home) == second.made
    assert LAST not in second.entries
    (home / LAST).write_text("yesterday")
    assert last_backup(home) is None


def contents(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def rewritten(backup: Path, name: str, data: bytes | None = None, *, mode: int = 0o600, honest: bool = False) -> Path:
    """The backup with another content of one name; `honest` also changes what the manifest says of it."""
    changed = backup.with_name("changed.zip")
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(changed, "w") as new:
        entries = {info.filename: old.read(info) for info in old.infolist()}
        manifest = json.loads(entries.pop(NAME))
        if data is None:
            entries.pop(name)
        else:
            entries[name] = data
            if honest:
                manifest["entries"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for one, value in entries.items():
            info = zipfile.ZipInfo(one)
            info.external_attr = (mode if one == name else 0o600) << 16
            new.writestr(info, value)
        new.writestr(NAME, json.dumps(manifest))
    return changed


# ---- making one


async def test_a_backup_of_a_running_parlour_holds_all_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as engine:
        await fill(engine)
        assert (tmp_path / "home" / "parlour.db-wal").stat().st_size  # where the newest stands
        file, manifest = write_backup(tmp_path / "home", tmp_path / "backup.zip", with_secret=True)
    assert manifest.counts == {"conversations": 1, "messages": 2, "files": 1, "documents": 1}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    restore_backup(file, tmp_path / "elsewhere")
    assert await found_in(tmp_path / "elsewhere") == {**FILLED, "key": KEY}
    assert await found_in(tmp_path / "home") == {**FILLED, "key": KEY}


async def test_without_the_secret_all_but_kept_keys_is_there(tmp_path: Path, backed_up: Callable[..., Path]) -> None:
    backup = backed_up()
    with zipfile.ZipFile(backup) as archive:
        assert "secret" not in archive.namelist()
    done = restore_backup(backup, tmp_path / "elsewhere")
    assert not done.has_secret
    assert await found_in(tmp_path / "elsewhere") == {**FILLED, "key": "key_unreadable"}


async def test_a_lost_index_is_made_again_from_the_originals_of_a_backup(
    tmp_path: Path, backed_up: Callable[..., Path]
) -> None:
    backup = backed_up()
    with zipfile.ZipFile(backup) as archive:
        (index,) = [name for name in archive.namelist() if name.endswith("library.sqlite")]
    without = rewritten(backup, index)
    with zipfile.ZipFile(without) as old:
        manifest = json.loads(old.read(NAME))
    del manifest["entries"][index]
    with zipfile.ZipFile(without) as old, zipfile.ZipFile(tmp_path / "no index.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, json.dumps(manifest) if name == NAME else old.read(name))
    restore_backup(tmp_path / "no index.zip", tmp_path / "elsewhere")
    assert (await found_in(tmp_path / "elsewhere"))["passages"] == [TEXT]


async def test_what_is_deleted_while_the_backup_is_made_leaves_no_hole_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "home") as engine:
        await fill(engine)
        other = await engine.stores.of(LOCAL_OWNER).conversations.create("Goes")
        file = await engine.stores.of(LOCAL_OWNER).files.put("goes.txt", b"gone")
        message = [Message("user", [{"file": file.address}])]
        await engine.stores.of(LOCAL_OWNER).conversations.add_message(other.id, "user", message, None)
        _, place = await stored(engine.stores.of(file.owner_id).files, file.id)
        real, copies = writing.copy_database, []

        def deleting(source: Path, target: Path) -> None:
            real(source, target)
            if source.name == "parlour.db":
                copies.append(source)
                if len(copies) == 1:  # between the copy of the database and those of the files
                    with closing(sqlite3.connect(source)) as db:
                        db.execute("DELETE FROM files WHERE id = ?", (file.id,))
                        db.commit()
                    place.unlink()

        monkeypatch.setattr(writing, "copy_database", deleting)
        _, manifest = write_backup(tmp_path / "home", tmp_path / "backup.zip")
    assert len(copies) == 2
    assert manifest.counts["files"] == 1


async def test_what_of_a_folder_can_be_made_again_stays_out(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(home) as engine:
        await fill(engine)
        for name in ("tmp/uploads/x", "backups/old.db", "address", "before-restore-1/parlour.db", ".hidden"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("no", "utf-8")
        (home / "files" / "link").symlink_to("/etc/hostname")
        _, manifest = write_backup(home, tmp_path / "backup.zip")
    tops = {name.split("/")[0] for name in manifest.entries}
    assert tops == {"files", "libraries", "parlour.db"}
    assert "files/link" not in manifest.entries
    kinds = {tuple(name.split("/")[2:3]) for name in manifest.entries if name.startswith("libraries")}
    assert kinds == {("originals",), ("library.sqlite",)}


async def test_names_that_no_backup_may_have_are_left_out_and_all_else_can_be_restored(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(home) as engine:
        await fill(engine)
        for name in (b"a: b.txt", b"Icon\r", b"caf\xe9.txt", b"end.", b"n" * 200 + b"/" + b"m" * 201):
            strange = Path(os.fsdecode(os.fsencode(home) + b"/" + name))
            strange.parent.mkdir(exist_ok=True)
            strange.write_text("mine", "utf-8")
        write_backup(home, tmp_path / "backup.zip")
    restore_backup(tmp_path / "backup.zip", tmp_path / "new")
    assert await found_in(tmp_path / "new") == {**FILLED, "key": "key_unreadable"}


async def test_a_damaged_index_holds_up_no_backup_and_is_made_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as engine:
        await fill(engine)
    index = next((tmp_path / "home").glob("libraries/*/library.sqlite"))
    with closing(sqlite3.connect(index)) as connection:  # what SQLite finds only when it looks through all of it
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET rootpage = 1 WHERE name = 'chunks_of_document'")
        connection.commit()
    _, manifest = write_backup(tmp_path / "home", tmp_path / "backup.zip")
    assert not any(entry.endswith("library.sqlite") for entry in manifest.entries)
    restore_backup(tmp_path / "backup.zip", tmp_path / "new")
    assert await found_in(tmp_path / "new") == {**FILLED, "key": "key_unreadable"}


async def test_a_file_that_cannot_be_read_is_named_and_not_the_backup(
    tmp_path: Path, backed_up: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    backed_up()
    opened_by = Path.open

    def refusing(self: Path, *args: Any, **options: Any) -> Any:
        if self.parent.parent.name == "files":
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened_by(self, *args, **options)

    monkeypatch.setattr(Path, "open", refusing)
    with pytest.raises(StorageError, match=r"The file \S*/files/\S* cannot be read: Permission denied.") as caught:
        write_backup(tmp_path / "home", tmp_path / "second.zip")
    assert caught.value.words_key == "backup_no_read"
    assert [path.name for path in tmp_path.iterdir() if "second" in path.name] == []


async def test_two_backups_to_one_name_share_no_draft(
    tmp_path: Path, backed_up: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    backed_up()
    begun: list[list[str]] = []
    put = writing.put_in_place

    def meanwhile(draft: Path, target: Path) -> None:
        if not begun:
            begun.append([draft.name])
            write_backup(tmp_path / "home", target)
            target.rename(target.with_name("first.zip"))
        put(draft, target)

    monkeypatch.setattr(writing, "put_in_place", meanwhile)
    write_backup(tmp_path / "home", tmp_path / "b.zip")
    for name in ("first.zip", "b.zip"):
        assert zipfile.ZipFile(tmp_path / name).testzip() is None


async def test_a_backup_never_takes_the_place_of_a_file_and_leaves_no_half_one(
    tmp_path: Path, backed_up: Callable[..., Path]
) -> None:
    backup = backed_up()
    before = backup.read_bytes()
    with pytest.raises(StorageError) as caught:
        write_backup(tmp_path / "home", backup)
    assert caught.value.words_key == "backup_exists"
    assert backup.read_bytes() == before
    with pytest.raises(StorageError) as caught:
        write_backup(tmp_path / "home", tmp_path / "no folder" / "b.zip")
    assert caught.value.words_key == "backup_no_write"
    folder = tmp_path / "folder"
    folder.mkdir()
    file, _ = write_backup(tmp_path / "home", folder)
    assert [one.name for one in folder.iterdir()] == [file.name]


async def test_a_folder_without_data_has_no_backup(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        write_backup(tmp_path, tmp_path / "b.zip")
    assert caught.value.words_key == "backup_no_data"


# ---- restoring one


async def test_a_folder_that_is_not_empty_is_left_as_it_is_unless_it_is_to_be_replaced(
    tmp_path: Path, backed_up: Callable[..., Path]
) -> None:
    backup = backed_up(with_secret=True)
    home = tmp_path / "elsewhere"
    async with opened(home) as engine:
        await engine.stores.of(LOCAL_OWNER).conversations.create("Of the other folder")
    before = contents(home)
    with pytest.raises(StorageError) as caught:
        restore_backup(backup, home)
    assert caught.value.words_key == "restore_not_empty"
    assert contents(home) == {**before, ".restore.lock": b""}
    done = restore_backup(backup, home, replace=True)
    assert done.aside is not None
    assert contents(done.aside)["secret"] == before["secret"]
    assert await found_in(home) == {**FILLED, "key": KEY}
    database = await Database.open(done.aside / "parlour.db")
    assert await database.read(lambda c: c.exec_driver_sql("SELECT title FROM conversations").scalar_one()) == (
        "Of the other folder"
    )
    await database.aclose()


async def test_a_secret_stays_where_the_backup_has_none(tmp_path: Path, backed_up: Callable[..., Path]) -> None:
    backup = backed_up()
    done = restore_backup(backup, tmp_path / "home", replace=True)
    assert done.has_secret
    assert await found_in(tmp_path / "home") == {**FILLED, "key": KEY}


async def test_nothing_is_restored_under_a_parlour_that_runs(
    tmp_path: Path, backed_up: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.backup.restoring._PATIENCE", 0.1)
    backup = backed_up()
    async with opened(tmp_path / "home") as engine:
        await engine.stores.of(LOCAL_OWNER).conversations.list()
        with pytest.raises(ConflictError) as caught:
            restore_backup(backup, tmp_path / "home", replace=True)
        assert caught.value.words_key == "storage_in_use"
    assert not list((tmp_path / "home").glob("before-restore-*"))
    assert not list((tmp_path / "home").glob(".restore-*"))
    assert (await found_in(tmp_path / "home"))["titles"] == FILLED["titles"]


async def test_a_damaged_database_is_kept_aside_when_a_backup_takes_its_place(
    tmp_path: Path, backed_up: Callable[..., Path]
) -> None:
    backup = backed_up()
    (tmp_path / "home" / "parlour.db").write_bytes(b"no database" * 999)
    done = restore_backup(backup, tmp_path / "home", replace=True)
    assert done.aside is not None
    assert (done.aside / "parlour.db").read_bytes().startswith(b"no database")
    assert (await found_in(tmp_path / "home"))["titles"] == FILLED["titles"]


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_a_backup_of_any_released_schema_is_restored_updated_and_opened(tmp_path: Path, schema: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "parlour.db").write_bytes(gzip.decompress((STORED / f"{schema}.db.gz").read_bytes()))
    backup, manifest = write_backup(home, tmp_path / "old.zip")
    assert manifest.schema == schema
    restore_backup(backup, tmp_path / "elsewhere")
    async with opened(tmp_path / "elsewhere") as engine:
        assert len(await engine.stores.of(LOCAL_OWNER).conversations.list()) == manifest.counts["conversations"]


@pytest.mark.parametrize("moved", range(12))
async def test_a_restore_that_is_cut_short_at_any_name_is_finished_by_the_next_opening(
    tmp_path: Path, backed_up: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    backup = backed_up(with_secret=True)
    home = tmp_path / "elsewhere"
    async with opened(home) as engine:
        await engine.stores.of(LOCAL_OWNER).conversations.create("Of the other folder")
    real, count = Path.rename, iter(range(99))

    def cut_short(path: Path, target: Path) -> Path:
        if next(count) == moved:
            raise KeyboardInterrupt
        return real(path, target)

    monkeypatch.setattr(Path, "rename", cut_short)
    try:
        restore_backup(backup, home, replace=True)
        ended = True
    except KeyboardInterrupt:
        ended = False
    monkeypatch.undo()
    assert ended or (home / ".restoring.json").exists()
    assert await found_in(home) == {**FILLED, "key": KEY}
    (aside,) = home.glob("before-restore-*")
    assert (aside / "parlour.db").is_file()
    assert not list(home.glob(".restor*.json*"))


# ---- what is no good


@pytest.mark.parametrize("cut", [0, 1, 20, 1000, -1, -23])
async def test_a_backup_that_was_cut_short_is_told_in_a_sentence_and_changes_nothing(
    tmp_path: Path, backed_up: Callable[..., Path], cut: int
) -> None:
    backup = backed_up()
    short = tmp_path / "short.zip"
    short.write_bytes(backup.read_bytes()[:cut])
    with pytest.raises(StorageError) as caught:
        restore_backup(short, tmp_path / "elsewhere")
    assert caught.value.words_key == "backup_not_one"
    assert not (tmp_path / "elsewhere").exists()


async def test_other_files_are_no_backups(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    (tmp_path / "text.zip").write_text("hello", "utf-8")
    for name in ("other.zip", "text.zip"):
        with pytest.raises(StorageError) as caught:
            restore_backup(tmp_path / name, tmp_path / "elsewhere")
        assert caught.value.words_key == "backup_not_one"
        assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(StorageError) as caught:
        restore_backup(tmp_path / "none.zip", tmp_path / "elsewhere")
    assert caught.value.words_key == "backup_no_file"


async def test_a_flipped_bit_in_any_file_of_a_backup_is_found_and_named(
    tmp_path: Path, backed_up: Callable[..., Path]
) -> None:
    backup = backed_up()
    with zipfile.ZipFile(backup) as archive:
        names = [name for name in archive.namelist() if name != NAME]
        data = {name: archive.read(name) for name in names}
    for name in names:
        flipped = bytes([data[name][0] ^ 1]) + data[name][1:]
        with pytest.raises(StorageError) as caught:
            restore_backup(rewritten(backup, name, flipped), tmp_path / "elsewhere")
        assert (caught.value.words_key, caught.value.details["name"]) == ("backup_damaged", name)
    assert not [one for one in (tmp_path / "elsewhere").iterdir() if one.name != ".restore.lock"]


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "files/../../evil",
        "C:/evil",
        "files\\..\\evil",
        "files//x",
        "tmp/x",
        ".bashrc",
        "files/. ",
    ],
)
async def test_a_backup_that_names_a_place_outside_is_refused_whole(
    tmp_path: Path, backed_up: Callable[..., Path], name: str
) -> None:
    backup = backed_up()
    with pytest.raises(StorageError) as caught:
        restore_backup(rewritten(backup, name, b"evil", honest=True), tmp_path / "deep" / "elsewhere")
    assert caught.value.words_key == "backup_unsafe"
    assert not list(tmp_path.rglob("*evil*"))


async def test_a_link_in_a_backup_is_refused(tmp_path: Path, backed_up: Callable[..., Path]) -> None:
    backup = backed_up()
    linked = rewritten(backup, "files/local/link", b"/etc/passwd", mode=stat.S_IFLNK | 0o777, honest=True)
    with pytest.raises(StorageError) as caught:
        restore_backup(linked, tmp_path / "elsewhere")
    assert caught.value.words_key == "backup_unsafe"


@pytest.mark.filterwarnings("ignore:Duplicate name")
async def test_a_name_that_stands_twice_in_a_backup_is_refused(tmp_path: Path, backed_up: Callable[..., Path]) -> None:
    backup = backed_up()
    with zipfile.ZipFile(backup, "a") as archive:
        archive.writestr("parlour.db", b"another")
    with pytest.raises(StorageError) as caught:
        restore_backup(backup, tmp_path / "elsewhere")
    assert caught.value.words_key == "backup_unsafe"


async def test_a_file_that_unpacks_to_more_than_it_says_is_not_written_further(
    tmp_path: Path, backed_up: Callable[..., Path]
) -> None:
    backup = backed_up()
    bomb = rewritten(backup, "files/local/bomb", b"\0" * 3_000_000, honest=True)
    with zipfile.ZipFile(bomb) as archive:
        manifest = json.loads(archive.read(NAME))
        kept = {name: archive.read(name) for name in archive.namelist() if name != NAME}
    manifest["entries"]["files/local/bomb"]["size"] = 10
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in kept.items():
            archive.writestr(name, data)
        archive.writestr(NAME, json.dumps(manifest))
    with pytest.raises(StorageError) as caught:
        restore_backup(tmp_path / "bomb.zip", tmp_path / "elsewhere")
    assert caught.value.words_key == "backup_damaged"


@pytest.mark.parametrize("newer", [{"form": 2}, {"schema": "9999"}])
async def test_a_backup_of_a_newer_parlour_gets_a_sentence(
    tmp_path: Path, backed_up: Callable[..., Path], newer: dict[str, object]
) -> None:
    backup = backed_up()
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(tmp_path / "newer.zip", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, json.dumps({**json.loads(data), **newer}) if name == NAME else data)
    with pytest.raises(StorageError) as caught:
        restore_backup(tmp_path / "newer.zip", tmp_path / "elsewhere")
    assert caught.value.words_key == "backup_newer"


async def test_a_backup_that_does_not_fit_is_not_begun(
    tmp_path: Path, backed_up: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = backed_up()
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("core.backup.restoring.shutil.disk_usage", lambda _: usage(10**9, 10**9, 5))
    with pytest.raises(StorageError) as caught:
        restore_backup(backup, tmp_path / "elsewhere")
    assert caught.value.words_key == "restore_space"


@given(
    st.lists(st.sampled_from(["..", ".", "", "files", "a", "\\", "C:", "\0", "x.db-wal", "é", "…", " "]), max_size=6)
)
def test_whatever_a_safe_name_is_it_stays_within_the_folder(parts: list[str]) -> None:
    name = "/".join(parts)
    if is_safe(name):
        assert Path("/home/data", name).resolve().is_relative_to("/home/data")
        assert not name.startswith("/")
        assert ".." not in name.split("/")


async def test_a_second_document_added_after_the_backup_is_not_in_the_restored_folder(
    tmp_path: Path, backed_up: Callable[..., Path]
) -> None:
    backup = backed_up()
    async with opened(tmp_path / "home") as engine:
        (talk,) = await engine.stores.of(LOCAL_OWNER).conversations.list()
        file = await engine.stores.of(LOCAL_OWNER).files.put("later.txt", b"Something that came later.")
        await add_document(engine, talk.id, file.id)
    restore_backup(backup, tmp_path / "elsewhere")
    assert (await found_in(tmp_path / "elsewhere"))["passages"] == [TEXT]
