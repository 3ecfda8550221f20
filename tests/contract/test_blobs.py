"""What every store of bytes promises: a folder of this machine and an S3 store alike."""

from __future__ import annotations

import asyncio
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from core.errors import ConflictError, NotFoundError, StorageError
from core.storage.base import new_id
from core.storage.blobs import FILES, SHARES, Blobs, FolderBlobs, beginning_of, delete_all, key_of
from core.storage.carrying_files import Carried, carry_files
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.files import AllFiles
from core.storage.moving import move_conversations
from core.storage.object_blobs import Bucket, ObjectBlobs
from core.storage.tables import files as table
from tests.faulty_proxy import Fault, FaultyProxy
from tests.grown_servers import S3Server, s3

__all__ = ["s3"]
pytestmark = pytest.mark.anyio
FORMS = ["folder", "s3"]
KEY = key_of("alice", FILES, "a1.txt")
_MB = 1024 * 1024


def s3_blobs(bucket: str, address: str, folder: Path, most: int = 64 * _MB, timeout: float = 30.0) -> ObjectBlobs:
    keys = {"access_key": "AKIDTEST", "secret_key": "a secret of the store"}
    return ObjectBlobs(Bucket(bucket, "one/parlour", address, **keys), folder, most, timeout=timeout)


@pytest.fixture(params=FORMS)
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Blobs]:
    if request.param == "folder":
        yield FolderBlobs({FILES: tmp_path / "files", SHARES: tmp_path / "shares"})
        return
    server: S3Server = request.getfixturevalue("s3")
    made = s3_blobs(server.make_bucket(), server.address, tmp_path / "copies")
    yield made
    made.close()


async def read(blobs: Blobs, key: str, start: int = 0, length: int | None = None) -> bytes:
    return b"".join([piece async for piece in blobs.open(key, start, length)])


async def keys(blobs: Blobs, prefix: str = "o/") -> dict[str, int]:
    return {blob.key: blob.size async for blob in blobs.list(prefix)}


async def test_what_was_put_is_read_whole_by_range_and_as_a_file(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"0123456789" * 1000)
    await blobs.put(KEY, tmp_path / "source")
    assert await read(blobs, KEY) == b"0123456789" * 1000
    assert await read(blobs, KEY, 3, 4) == b"3456"
    assert await read(blobs, KEY, 9_998) == b"89"
    assert await read(blobs, KEY, 9_998, 50) == b"89"
    async with blobs.local(KEY) as path:
        assert path.read_bytes() == b"0123456789" * 1000
        assert path.suffix == ".txt"
    assert (tmp_path / "source").exists()


async def test_a_draft_is_taken_and_gone(blobs: Blobs) -> None:
    draft = blobs.draft(KEY)
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.write_bytes(b"text")
    await blobs.take(KEY, draft, "digest")
    assert not draft.exists()
    assert await read(blobs, KEY) == b"text"
    async with blobs.local(KEY, "digest") as path:
        assert path.read_bytes() == b"text"


async def test_nothing_at_all_can_be_stored(blobs: Blobs) -> None:
    await blobs.put(KEY, b"")
    assert await read(blobs, KEY) == b""
    async with blobs.local(KEY) as path:
        assert path.read_bytes() == b""
    assert await keys(blobs) == {KEY: 0}


async def test_several_parts_come_and_go_whole(blobs: Blobs, tmp_path: Path) -> None:
    data = bytes(range(256)) * (19 * _MB // 256)
    (tmp_path / "large").write_bytes(data)
    await blobs.put(KEY, tmp_path / "large")
    assert await read(blobs, KEY) == data
    assert await read(blobs, KEY, 17 * _MB - 3, 7) == data[17 * _MB - 3 : 17 * _MB + 4]


async def test_of_several_that_want_a_new_key_one_gets_it(blobs: Blobs) -> None:
    wanted = [b"%d" % number for number in range(6)]
    done = await asyncio.gather(*(blobs.put(KEY, one, only_new=True) for one in wanted), return_exceptions=True)
    assert done.count(None) == 1
    assert all(isinstance(one, ConflictError) and one.words_key == "blob_taken" for one in done if one is not None)
    assert await read(blobs, KEY) == wanted[done.index(None)]


async def test_of_several_that_put_the_same_key_one_is_there_whole(blobs: Blobs) -> None:
    wanted = [bytes([number]) * 100_000 for number in range(6)]
    await asyncio.gather(*(blobs.put(KEY, one) for one in wanted))
    assert await read(blobs, KEY) in wanted
    assert await keys(blobs) == {KEY: 100_000}


async def test_what_is_deleted_while_it_is_read_is_read_to_the_end_and_then_gone(blobs: Blobs) -> None:
    await blobs.put(KEY, b"text")
    async with blobs.local(KEY) as path:
        with path.open("rb") as file:
            await blobs.delete([KEY])
            assert file.read() == b"text"
    assert await keys(blobs) == {}
    with pytest.raises(NotFoundError) as told:
        await read(blobs, KEY)
    assert str(told.value) == "The file is gone from the store."
    await blobs.delete([KEY, key_of("alice", FILES, "never")])


@pytest.mark.parametrize(
    "key", ["", "o/alice/f/", "o/alice/f/../x", "o/alice/f/.x", "o/../f/x", "x/a/f/b", "o/a/f/b/c"]
)
async def test_what_is_no_key_has_nothing_under_it(blobs: Blobs, key: str) -> None:
    with pytest.raises(NotFoundError):
        await read(blobs, key)
    with pytest.raises(NotFoundError):
        await blobs.put(key, b"x")
    with pytest.raises(NotFoundError):
        async with blobs.local(key):
            pass


async def test_a_list_has_those_of_one_owner_and_kind_with_their_sizes_and_times(blobs: Blobs) -> None:
    theirs = key_of("../bob", FILES, "b.txt")
    for key in (KEY, key_of("alice", FILES, "a2"), key_of("alice", SHARES, "s.zip"), theirs):
        await blobs.put(key, b"12345")
    assert await keys(blobs, f"{beginning_of('alice')}f/") == {KEY: 5, key_of("alice", FILES, "a2"): 5}
    assert set(await keys(blobs, beginning_of("alice"))) == set(await keys(blobs)) - {theirs}
    assert all([abs(one.changed - time.time()) < 600 async for one in blobs.list("o/")])


async def test_a_copy_has_the_same_bytes_and_a_life_of_its_own(blobs: Blobs) -> None:
    other = key_of("bob", FILES, "a1.txt")
    await blobs.put(KEY, b"text")
    await blobs.copy(KEY, other)
    await blobs.delete([KEY])
    assert await read(blobs, other) == b"text"
    with pytest.raises(NotFoundError):
        await blobs.copy(KEY, key_of("bob", FILES, "a2.txt"))


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> Database:
    return await Database.open(tmp_path / "parlour.db")


async def test_a_file_is_its_owners_whatever_the_store(blobs: Blobs, database: Database) -> None:
    every = AllFiles(database, blobs)
    kept = await every.of("alice").put("报告 (终稿)🐈.txt", "什么都有".encode())
    assert (await every.of("alice").read(kept.id)).decode() == "什么都有"
    assert await keys(blobs) == {f"o/alice/f/{kept.id}.txt": kept.size}
    for theirs in (every.of("bob").read(kept.id), every.of("bob").delete(kept.id)):
        with pytest.raises(NotFoundError):
            await theirs
    with pytest.raises(NotFoundError):
        every.of("bob").open(kept)
    fresh = await every.of("alice").replace_content(kept.id, "page.html", b"<html>other")
    assert await every.of("alice").read(kept.id) == b"<html>other"
    assert list(await keys(blobs)) == [f"o/alice/f/{fresh.id}.html"]
    await every.of("alice").delete(kept.id)
    assert await keys(blobs) == {}
    await database.aclose()


async def test_other_bytes_of_the_same_kind_are_read_at_once(blobs: Blobs, database: Database) -> None:
    files = AllFiles(database, blobs).of("alice")
    kept = await files.put("a.txt", b"one")
    assert await files.read(kept.id) == b"one"
    await files.replace_content(kept.id, "a.txt", b"two")
    assert await files.read(kept.id) == b"two"
    await database.aclose()


async def test_a_row_of_five_gigabytes_without_its_bytes_is_known_and_said_to_be_gone(
    blobs: Blobs, database: Database
) -> None:
    every = AllFiles(database, blobs)
    small = await every.of("alice").put("film.mp4", b"....ftyp")
    await database.write(lambda c: c.execute(table.update().values(size=5 * 1024 * _MB)))
    await blobs.delete([every.of("alice").key(small)])
    record = await every.of("alice").record(small.id)
    assert record.size == 5 * 1024 * _MB
    with pytest.raises(NotFoundError, match=r"The file is gone from the store\."):
        await every.of("alice").read(small.id)
    await every.of("alice").delete(small.id)
    await database.aclose()


async def test_bytes_without_a_row_are_swept_when_they_are_old(blobs: Blobs, database: Database) -> None:
    every = AllFiles(database, blobs)
    kept = await every.of("alice").put("a.txt", b"kept")
    lost, share = key_of("alice", FILES, f"{new_id()}.txt"), key_of("alice", SHARES, "s.zip")
    for key in (lost, share):
        await blobs.put(key, b"x")
    assert await every.delete_orphans(time.time() - 600) == 0
    assert await every.delete_orphans(time.time() + 600) == 1
    assert set(await keys(blobs)) == {every.of("alice").key(kept), share}
    await database.aclose()


async def test_what_somebody_else_has_put_there_is_passed_over_and_stays(
    blobs: Blobs, database: Database, tmp_path: Path
) -> None:
    every = AllFiles(database, blobs)
    await blobs.put(key_of("alice", FILES, f"{new_id()}.txt"), b"x")
    odd = (".keep", "alice/f/no name.txt", "alice/f/more/a.txt")
    for one in odd:
        if isinstance(blobs, ObjectBlobs):
            await blobs._obs.put_async(blobs._store, f"o/{one}", b"theirs", use_multipart=False)  # pyright: ignore[reportPrivateUsage]
        else:
            there = tmp_path / "files" / one.replace("/f/", "/")
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(b"theirs")
    assert await every.delete_orphans(time.time() + 600) == 1
    assert await keys(blobs) == {}
    await delete_all(blobs, beginning_of("alice"))
    if isinstance(blobs, ObjectBlobs):
        kept = [one async for some in blobs._obs.list(blobs._store, "o") for one in some]  # pyright: ignore[reportPrivateUsage]
    else:
        kept = [one for one in (tmp_path / "files").rglob("*") if one.is_file()]
    assert len(kept) == len(odd)
    await database.aclose()


async def test_what_a_guest_had_is_another_owners_and_nothing_stays_behind(blobs: Blobs, database: Database) -> None:
    every = AllFiles(database, blobs)
    await ConversationStore(database, "guest").create()
    kept = await every.of("guest").put("a.txt", b"950 stamps")
    assert await move_conversations(database, blobs, "guest", "ada") == 1
    assert await every.of("ada").read(kept.id) == b"950 stamps"
    assert await keys(blobs, beginning_of("guest")) == {}
    await delete_all(blobs, beginning_of("ada"))
    assert await keys(blobs) == {}
    await database.aclose()


async def test_when_the_row_cannot_be_stored_the_bytes_do_not_stay(
    blobs: Blobs, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(work: object, **how: object) -> None:
        raise StorageError("The database failed.")

    monkeypatch.setattr(database, "write", failing)
    with pytest.raises(StorageError):
        await AllFiles(database, blobs).of("alice").put("a.txt", b"x")
    assert await keys(blobs) == {}
    await database.aclose()


# ---- what is the S3 store's alone


@pytest.fixture
def faulty(s3: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3.port) as proxy:
        yield proxy


async def test_an_answer_of_500_is_asked_for_again(s3: S3Server, faulty: FaultyProxy, tmp_path: Path) -> None:
    blobs = s3_blobs(s3.make_bucket(), faulty.address, tmp_path)
    faulty.faults.extend(["500", "500", "", "500"])
    await blobs.put(KEY, b"text")
    assert await read(blobs, KEY) == b"text"
    assert [fault for _, fault in faulty.seen] == ["500", "500", "", "500", ""]


async def test_a_body_that_is_cut_goes_on_where_it_was_cut(s3: S3Server, faulty: FaultyProxy, tmp_path: Path) -> None:
    blobs = s3_blobs(s3.make_bucket(), faulty.address, tmp_path)
    data = bytes(range(256)) * 4000 * 12  # so much that pieces come before the cut
    await blobs.put(KEY, data)
    often: list[Fault] = ["cut"] * 6  # more than the package that speaks with stores goes on from by itself
    faulty.faults.extend(often)
    assert await read(blobs, KEY) == data
    faulty.faults.extend(["cut"])
    async with blobs.local(KEY) as path:
        assert path.read_bytes() == data


async def test_a_store_that_says_nothing_is_asked_again_and_then_named(
    s3: S3Server, faulty: FaultyProxy, tmp_path: Path
) -> None:
    blobs = s3_blobs(s3.make_bucket(), faulty.address, tmp_path, timeout=0.2)
    await blobs.put(KEY, b"text")
    faulty.faults.extend(["silent"])
    assert await read(blobs, KEY) == b"text"
    always: list[Fault] = ["silent"] * 40
    faulty.faults.extend(always)
    with pytest.raises(StorageError) as told:
        await read(blobs, KEY)
    assert told.value.words_key == "files_server"


async def test_what_is_looked_at_often_is_fetched_once(s3: S3Server, faulty: FaultyProxy, tmp_path: Path) -> None:
    blobs = s3_blobs(s3.make_bucket(), faulty.address, tmp_path)
    await blobs.put(KEY, b"text")
    faulty.seen.clear()

    async def look() -> bytes:
        async with blobs.local(KEY) as path:
            return path.read_bytes()

    assert set(await asyncio.gather(*(look() for _ in range(20)))) == {b"text"}
    assert len(faulty.seen) == 1
    blobs.close()
    again = s3_blobs("none", faulty.address, tmp_path)  # the next process has the copies of the one before
    async with again.local(KEY) as path:
        assert path.read_bytes() == b"text"
    assert len(faulty.seen) == 1


async def test_copies_take_so_much_room_the_oldest_go_and_none_that_is_in_use(s3: S3Server, tmp_path: Path) -> None:
    blobs = s3_blobs(s3.make_bucket(), s3.address, tmp_path / "copies", most=2500)
    for name in "abcd":
        await blobs.put(key_of("alice", FILES, name), name.encode() * 1000)

    def here() -> set[str]:
        return {path.name for path in (tmp_path / "copies").rglob("*") if path.is_file() and path.suffix != ".lock"}

    async with blobs.local(key_of("alice", FILES, "a")) as held:
        for name in "bcd":
            async with blobs.local(key_of("alice", FILES, name)):
                pass
        assert held.read_bytes() == b"a" * 1000
        assert here() == {"a", "d"}
        assert stat.S_IMODE(held.parent.stat().st_mode) == 0o700
    async with blobs.local(key_of("alice", FILES, "b")):
        assert here() == {"b", "d"}
    blobs.close()


async def test_two_processes_on_one_folder_have_copies_of_their_own(s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.make_bucket()
    one, two = (s3_blobs(bucket, s3.address, tmp_path, most=10) for _ in range(2))
    await one.put(KEY, b"x" * 100)
    async with one.local(KEY) as first:
        async with two.local(KEY) as second:
            assert first != second
        assert first.read_bytes() == b"x" * 100


async def test_a_signed_address_saves_under_the_name_by_range_and_for_a_while(s3: S3Server, tmp_path: Path) -> None:
    blobs = s3_blobs(s3.make_bucket(), s3.address, tmp_path)
    await blobs.put(KEY, b"<script>alert(1)</script>")
    address = await blobs.sign(KEY, 'a "报告".html')
    assert "a+secret" not in address
    assert "a%20secret" not in address
    asked = parse_qs(urlsplit(address).query)
    assert asked["X-Amz-Expires"] == ["60"]
    async with httpx.AsyncClient() as browser:
        whole = await browser.get(address)
        assert whole.content == b"<script>alert(1)</script>"
        assert whole.headers["content-type"] == "application/octet-stream"
        assert whole.headers["content-disposition"].startswith("attachment; filename*=UTF-8''a%20%22%E6%8A%A5")
        part = await browser.get(address, headers={"range": "bytes=1-6"})
        assert (part.status_code, part.content) == (206, b"script")


async def test_no_address_is_signed_without_keys_and_where_browsers_do_not_reach_the_store(tmp_path: Path) -> None:
    for number, bucket in enumerate([Bucket("one", "", "http://127.0.0.1:9"), Bucket("one", public="off")]):
        assert await ObjectBlobs(bucket, tmp_path / str(number), _MB).sign(KEY, "a") == ""
    public = Bucket("one", "p", "http://s3:9000", "https://files.example", access_key="k", secret_key="s")
    address = await ObjectBlobs(public, tmp_path / "2", _MB).sign(KEY, "a")
    assert address.startswith("https://files.example/one/p/o/alice/f/a1.txt?")


def bucket_that(is_wrong: str, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    good = {"access_key": "AKID", "secret_key": "the secret"}
    if is_wrong == "bucket":
        return Bucket("no-such-bucket", "x", server.address, **good)
    if is_wrong == "server":
        return Bucket("some-bucket", "x", "http://127.0.0.1:9", **good)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    return Bucket(server.make_bucket(), "x", server.address)


@pytest.mark.parametrize(
    ("is_wrong", "said"),
    [
        ("bucket", "There is no bucket 'no-such-bucket' for s3://no-such-bucket/x. Make it, or name another"),
        ("server", "The store of s3://some-bucket/x does not answer. Look whether AWS_ENDPOINT_URL names"),
        ("keys", "are missing or refused. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."),
    ],
)
async def test_what_is_wrong_with_the_store_is_one_sentence_without_secrets(
    is_wrong: str, said: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = 30.0 if is_wrong == "bucket" else 1.0  # the store is there, and answers as soon as the machine lets it
    blobs = ObjectBlobs(bucket_that(is_wrong, s3, monkeypatch), tmp_path, _MB, timeout=patience)
    with pytest.raises(StorageError) as told:
        await blobs.check("mine")
    assert told.value.words_key == f"files_{is_wrong}"
    assert said in str(told.value)
    assert "the secret" not in repr(told.value) + str(told.value.__cause__)


async def test_two_installations_do_not_share_a_prefix(s3: S3Server, tmp_path: Path) -> None:
    blobs = s3_blobs(s3.make_bucket(), s3.address, tmp_path)
    await blobs.check("mine")
    await blobs.check("mine")
    with pytest.raises(StorageError) as told:
        await blobs.check("another's")
    assert told.value.words_key == "files_others"
    assert await keys(blobs) == {}


# ---- from one store into another


async def test_everything_is_carried_once_goes_on_where_it_was_and_is_the_same(s3: S3Server, tmp_path: Path) -> None:
    here = FolderBlobs({FILES: tmp_path / "files", SHARES: tmp_path / "shares"})
    there = s3_blobs(s3.make_bucket(), s3.address, tmp_path / "copies")
    share = key_of("alice", SHARES, "s.zip")
    for number in range(5):
        await here.put(key_of("alice", FILES, f"{number}.txt"), b"%d" % number)
    await here.put(share, b"a bundle")
    await there.put(key_of("alice", FILES, "0.txt"), b"0")  # carried before it was cut short
    await there.put(key_of("alice", FILES, "1.txt"), b"?")  # as long, and not the same
    assert await carry_files(here, there) == Carried(6, 13, 1)
    assert await keys(there) == await keys(here)
    assert await read(there, key_of("alice", FILES, "1.txt")) == b"1"
    assert await there.find(SHARES, "s.zip") == [share]
    assert await carry_files(here, there) == Carried(6, 13, 6)
    back = FolderBlobs({FILES: tmp_path / "back" / "files", SHARES: tmp_path / "back" / "shares"})
    assert await carry_files(there, back) == Carried(6, 13, 0)
    assert await keys(back) == await keys(here)


async def test_a_snapshot_whose_carrying_was_cut_short_before_its_note_is_found_by_its_link(
    s3: S3Server, tmp_path: Path
) -> None:
    here = FolderBlobs({SHARES: tmp_path / "shares"})
    there = s3_blobs(s3.make_bucket(), s3.address, tmp_path / "copies")
    share = key_of("alice", SHARES, "s.zip")
    await here.put(share, b"a bundle")
    await there.take(share, _draft_of(there, share, b"a bundle"))  # the bytes alone
    assert await there.find(SHARES, "s.zip") == []
    assert await carry_files(here, there) == Carried(1, 8, 0)
    assert await there.find(SHARES, "s.zip") == [share]


def _draft_of(blobs: ObjectBlobs, key: str, data: bytes) -> Path:
    draft = blobs.draft(key)
    draft.parent.mkdir(exist_ok=True)
    draft.write_bytes(data)
    return draft


async def test_what_arrives_as_something_else_is_named_and_stays_where_it_was(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = FolderBlobs({FILES: tmp_path / "files"})
    there = s3_blobs(s3.make_bucket(), s3.address, tmp_path / "copies")
    await here.put(KEY, b"text")
    put = there.put

    async def damaged(key: str, source: Path | bytes, *, only_new: bool = False) -> None:
        await put(key, b"test", only_new=only_new)

    monkeypatch.setattr(there, "put", damaged)
    with pytest.raises(StorageError) as told:
        await carry_files(here, there)
    assert (told.value.words_key, told.value.details["name"]) == ("files_differ", KEY)
    assert await read(here, KEY) == b"text"
