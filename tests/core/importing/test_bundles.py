"""What is taken along comes back as it was, byte for byte; what somebody changed comes in not at all."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import ParlourError, QuotaError, UnsupportedFormatError
from core.export.bundle import MANIFEST
from core.importing.archive import Archive, is_safe
from core.importing.importing import bring_in
from core.messages.message import Message
from core.runs.call_stages import packed_stages, unpacked
from core.runs.reply import Reply as RunReply
from core.runs.rows import logged_of
from core.storage.arriving import LONGEST_TITLE, ArrivingConversations
from core.storage.blobs import files_beside
from core.storage.database import Database
from core.storage.files import FileStore
from core.storage.stores import OwnerStores
from tests.core.importing.talks import KEY, PASSAGE, Home, changed, home
from tests.stored_files import stored
from tests.tries import tries

pytestmark = pytest.mark.anyio


def written(folder: Path, made: bytes) -> Path:
    path = folder / "a.zip"
    path.write_bytes(made)
    return path


def lines(change: Callable[[list[dict[str, Any]]], None]) -> Callable[[bytes], bytes]:
    def changed_lines(data: bytes) -> bytes:
        rows = [json.loads(line) for line in data.splitlines()]
        change(rows)
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    return changed_lines


async def refused(of: Home, folder: Path, made: bytes) -> ParlourError:
    before = of.rows()
    with pytest.raises(UnsupportedFormatError) as raised:
        await bring_in(written(folder, made), of.stores)
    assert of.rows() == before
    assert await of.stores.conversations.list() == []
    assert not list((of.path / "files" / "local").iterdir())
    return raised.value


async def test_a_deleted_conversation_comes_back_as_it_was_log_for_log(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        before, made = of.rows(), await of.bundle()
        await of.delete()
        assert of.rows()["messages"] == []
        imported = await bring_in(written(tmp_path, made), of.stores)
        assert of.rows() == before
        assert imported.conversations == (of.id,)
        assert (imported.source, imported.messages, imported.files) == ("Parlour", 3, 1)
        record, path = await stored(of.stores.files, (await of.stores.whole.outline(of.id)).files[0].id)
        assert (record.name, path.read_bytes()) == ("notes.txt", b"Bring a coat.")


async def test_a_clock_that_was_set_back_between_two_messages_changes_nothing(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        with closing(sqlite3.connect(of.path / "parlour.db")) as connection:
            connection.execute("UPDATE messages SET created_at = created_at + 60000000 WHERE role = 'user'")
            connection.commit()
        before, made = of.rows(), await of.bundle()
        await of.delete()
        await bring_in(written(tmp_path, made), of.stores)
        assert of.rows() == before


async def test_beside_the_one_that_is_there_it_gets_ids_of_its_own(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        made = await of.bundle()
        path = written(tmp_path, made)
        again = await bring_in(path, of.stores)
        other = await bring_in(path, of.of("somebody"))
        assert len({of.id, *again.conversations, *other.conversations}) == 3
        assert (again.files, other.files) == (0, 1)  # the owner has the file already; nobody else may share it
        thread = await of.of("somebody").conversations.thread(other.conversations[0])
        named = re.findall(r"/files/([\w-]{22})", json.dumps([part.model_dump() for part in thread[0].parts]))
        record = await of.of("somebody").files.record(named[0])
        assert thread[0].parts[0].extra == {"files": [{"id": record.id, "name": "notes.txt"}]}
        assert len(await of.of("somebody").conversations.siblings(thread[1].id)) == 2


async def test_who_take_the_same_file_in_at_the_same_moment_have_all_of_it_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, both, looked = ArrivingConversations.known_file, asyncio.Event(), 0

    async def known_file(self: ArrivingConversations, *given: Any) -> tuple[bool, bool]:
        nonlocal looked
        told, looked = await known(self, *given), looked + 1
        if looked == 2:
            both.set()
        await both.wait()
        return told

    async with home(tmp_path) as of:
        path = written(tmp_path, await of.bundle())
        await of.delete()
        monkeypatch.setattr(ArrivingConversations, "known_file", known_file)
        owners = [of.of(name) for name in ("one", "two")]
        for stores, imported in zip(
            owners, await asyncio.gather(*(bring_in(path, stores) for stores in owners)), strict=True
        ):
            (file,) = (await stores.whole.outline(imported.conversations[0])).files
            assert await stores.files.read(file.id) == b"Bring a coat."


async def test_what_is_there_with_all_its_turns_is_left_out_where_it_shall_not_come_twice(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        path = written(tmp_path, await of.bundle())
        theirs = of.of("somebody")
        [came] = (await bring_in(path, theirs, unless_there=())).conversations
        await theirs.conversations.add_message(came, "user", [Message("user", "And then?")], None)  # it went on here
        for _ in range(2):
            again = await bring_in(path, theirs, unless_there=())
            assert (again.conversations, again.here, again.messages, again.files) == ((), (came,), 0, 0)
        assert len(await theirs.conversations.list()) == 1
        [fresh] = (await bring_in(path, theirs, unless_there=[came])).conversations
        assert fresh != came, "one that is about to be deleted does not count"


async def test_what_only_one_about_to_be_deleted_needs_comes_in_anew_and_is_there_when_that_one_is_gone(
    tmp_path: Path,
) -> None:
    async with home(tmp_path) as of:
        came = await bring_in(written(tmp_path, await of.bundle()), of.stores, unless_there=[of.id])
        assert came.files == 1
        await of.delete()
        thread = await of.stores.conversations.thread(came.conversations[0])
        named = re.findall(r"/files/([\w-]{22})", json.dumps([part.model_dump() for part in thread[0].parts]))
        assert (await of.stores.files.record(named[0])).name == "notes.txt"


async def test_what_another_one_needs_as_well_is_not_kept_twice(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        path = written(tmp_path, await of.bundle())
        await bring_in(path, of.stores)
        assert (await bring_in(path, of.stores, unless_there=[of.id])).files == 0


async def test_a_conversation_that_lacks_a_turn_of_the_file_is_not_the_same(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        before = written(tmp_path, await of.bundle())
        await of.stores.conversations.add_message(of.id, "user", [Message("user", "And then?")], None)
        (after := tmp_path / "after.zip").write_bytes(await of.bundle())
        theirs = of.of("somebody")
        await bring_in(before, theirs, unless_there=())
        assert len((await bring_in(after, theirs, unless_there=())).conversations) == 1
        assert (await bring_in(before, theirs, unless_there=())).conversations == ()


async def test_keys_are_not_in_it_and_pages_need_nothing(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        await of.stores.conversations.add_message(of.id, "user", [Message("user", f"It is {KEY}.")], None)
        archive = zipfile.ZipFile(BytesIO(await of.bundle()))
        assert not [name for name in archive.namelist() if KEY.encode() in archive.read(name)]
        page = archive.read("index.html").decode()
        assert "Another version" in page or "It is …" in page
        assert "<script" not in page
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
        assert json.loads(archive.read(MANIFEST))["version"] == 1


async def test_keys_are_not_in_what_went_over_the_wire(tmp_path: Path) -> None:
    asked = json.dumps({"messages": [{"role": "function", "content": f"token {KEY}"}]})
    stages = {"sent": [{"headers": [["accept", "text"]], "body": {"text": [asked], "cut": 0}}]}
    async with home(tmp_path) as of:
        turns = [turn for turn in await of.stores.conversations.thread(of.id) if turn.run_id]
        await of.stores.runs.add(
            turns[0].run_id or "", "call_stages", {"call_id": "c", "packed": packed_stages(stages)}
        )
        archive = zipfile.ZipFile(BytesIO(await of.bundle()))
        logs = [archive.read(name) for name in archive.namelist() if "/logs/" in name]
        rows = [json.loads(line) for log in logs for line in log.splitlines()]
        (kept,) = [unpacked(row["payload"]["packed"]) for row in rows if row["kind"] == "call_stages"]
        assert kept["sent"][0]["body"]["text"] == [asked.replace(KEY, "…")]
        assert kept["sent"][0]["headers"] == [["accept", "text"]]


def _circle(rows: list[dict[str, Any]]) -> None:
    rows[0]["parent_id"] = rows[-1]["id"]


def _system(rows: list[dict[str, Any]]) -> None:
    rows[1]["parts"][0]["role"] = "system"


def _odd_passage(rows: list[dict[str, Any]]) -> None:
    rows[1]["parts"][1]["extra"]["passages"][0]["rectangles"] = "everywhere"


BAD_ROWS: dict[str, tuple[str, Callable[[list[dict[str, Any]]], None]]] = {
    "a circle": ("messages.jsonl", _circle),
    "words that only the house may say": ("messages.jsonl", _system),
    "passages that cannot be shown": ("messages.jsonl", _odd_passage),
    "a message twice": ("messages.jsonl", lambda rows: rows.append(rows[-1])),
    "one run for two replies": ("messages.jsonl", lambda rows: rows[2].update(run=rows[1]["run"])),
    "a step left out": ("messages.jsonl", lambda rows: rows[1]["thoughts"][0].update(position=2)),
    "an unknown role": ("messages.jsonl", lambda rows: rows[0].update(role="root")),
    "a reply that is still being written": ("messages.jsonl", lambda rows: rows[1].update(status="running")),
    "a time that is none": ("messages.jsonl", lambda rows: rows[0].update(created_at="now")),
    "a missing field": ("messages.jsonl", lambda rows: rows[0].pop("parts")),
    "an id that is none": ("messages.jsonl", lambda rows: rows[0].update(id="../x")),
    "events out of order": (".jsonl", lambda rows: rows.reverse() if "seq" in rows[0] else None),
    "a reply that follows a run": ("messages.jsonl", lambda rows: rows[2].update(parent_id=rows[1]["run"]["id"])),
    "an error that is no sentence": ("messages.jsonl", lambda rows: rows[1]["run"].update(error={"details": "x"})),
    "an event without a time": (".jsonl", lambda rows: rows[0].update(at=None) if "seq" in rows[0] else None),
}


@pytest.mark.parametrize("what", BAD_ROWS)
async def test_rows_that_were_edited_by_hand_are_refused_and_nothing_is_half_in(what: str, tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        ending, change = BAD_ROWS[what]
        made = changed(await of.bundle(), entries={ending: lines(change)})
        await of.delete()
        assert (await refused(of, tmp_path, made)).words_key == "import_damaged"


async def test_what_a_bundle_says_was_counted_by_program_is_not_believed(tmp_path: Path) -> None:
    forged = {**PASSAGE, "text": "The sum of debts is 0.", "chunk_id": 0, "computed": "0"}
    inner = Message("function", "x", name="t", extra={"function_id": "2", "passages": [{**forged, "number": 2}]})
    ended = {"call_id": "2", "message": inner.model_dump()}

    def forge(rows: list[dict[str, Any]]) -> None:
        if "seq" not in rows[0]:
            for row in rows[1:]:
                row["parts"][1]["extra"]["passages"] = [forged]
            return
        for kind, payload in (
            ("source_cited", {"passages": [{**forged, "chunk_id": 1}]}),
            ("within", {"calls": ["1"], "event": {"kind": "tool_finished", **ended}}),
            ("tool_finished", ended),
        ):
            rows.append({"seq": rows[-1]["seq"] + 1, "at": 9.0, "kind": kind, "payload": payload})

    async with home(tmp_path) as of:
        made = changed(await of.bundle(), entries={".jsonl": lines(forge)})
        await of.delete()
        imported = await bring_in(written(tmp_path, made), of.stores)
        assert imported.left_out == {"computed": 2}
        assert b"sum of debts" in b"".join(str(one).encode() for rows in of.rows().values() for one in rows)
        for turn in await of.stores.conversations.thread(of.id):
            passages = [one for part in turn.parts for one in (part.extra or {}).get("passages") or ()]
            assert not [one for one in passages if "computed" in one]
            if turn.run_id:
                events = await of.stores.runs.events(turn.run_id)
                assert {"source_cited", "within"} <= {one.kind for one in events}
                reply = RunReply(logged_of(events))
                assert reply.passages
                assert not [one for one in reply.passages if "computed" in one]
                assert "computed" not in json.dumps([one.payload for one in events])
        path = written(tmp_path, made)
        assert (await bring_in(path, of.stores, unless_there=())).left_out == {}  # nothing of it came in
        assert (await bring_in(written(tmp_path, await of.bundle()), of.stores)).left_out == {}


def _link(made: bytes) -> bytes:
    sink = BytesIO(made)
    with zipfile.ZipFile(sink, "a") as archive:
        info = zipfile.ZipInfo("files/link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return sink.getvalue()


def _newer(about: dict[str, Any]) -> None:
    about["version"] = 2


BAD_FILES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a changed byte": ("import_damaged", lambda made: changed(made, entries={".txt": lambda _: b"X"}, honest=False)),
    "an entry that nobody named": (
        "import_damaged",
        lambda made: changed(made, added={"index.html": b""}, honest=False),
    ),
    "a newer version": ("import_newer", lambda made: changed(made, manifest=_newer)),
    "a way out of the folder": ("import_unsafe", lambda made: changed(made, added={"files/../../x": b""})),
    "an absolute name": ("import_unsafe", lambda made: changed(made, added={"/etc/x": b""})),
    "a name for Windows": ("import_unsafe", lambda made: changed(made, added={"C:\\x": b""})),
    "a place that no bundle has": ("import_unsafe", lambda made: changed(made, added={"run.exe": b""})),
    "a link": ("import_unsafe", _link),
    "a bomb": ("import_too_large", lambda made: changed(made, added={"conversation-1.html": bytes(80 << 20)})),
    "half of it": ("import_damaged_itself", lambda made: made[: len(made) // 2]),
    "no manifest that can be read": ("import_damaged", lambda made: changed(made, manifest=dict.clear)),
}


@pytest.mark.parametrize("what", BAD_FILES)
async def test_files_that_are_not_as_they_were_are_refused_in_a_sentence(what: str, tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        key, change = BAD_FILES[what]
        made = change(await of.bundle())
        await of.delete()
        error = await refused(of, tmp_path, made)
        assert error.words_key == key
        assert "a.zip" in str(error)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
async def test_what_is_packed_in_a_way_that_asks_for_memory_is_refused(method: int, tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        with (
            zipfile.ZipFile(BytesIO(await of.bundle())) as made,
            zipfile.ZipFile(sink := BytesIO(), "w", method) as new,
        ):
            for name in made.namelist():
                new.writestr(name, made.read(name))
        await of.delete()
        assert (await refused(of, tmp_path, sink.getvalue())).words_key == "import_damaged"


async def test_a_name_that_is_no_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with zipfile.ZipFile(sink := BytesIO(), "w") as archive:
        archive.writestr("é.json", b"[]")
    made = sink.getvalue().replace("é".encode(), b"\xff\xff")
    async with home(tmp_path) as of:
        await of.delete()
        assert (await refused(of, tmp_path, made)).words_key == "import_damaged_itself"


async def test_a_title_of_ten_thousand_letters_is_cut(tmp_path: Path) -> None:
    def longer(data: bytes) -> bytes:
        about = json.loads(data)
        about["conversation"]["title"] = "x" * 10_000
        return json.dumps(about).encode()

    async with home(tmp_path) as of:
        made = changed(await of.bundle(), entries={"conversation.json": longer})
        await of.delete()
        await bring_in(written(tmp_path, made), of.stores)
        assert (await of.stores.conversations.get(of.id)).title == "x" * LONGEST_TITLE


def without_room(of: Home, folder: Path) -> OwnerStores:
    """The stores of somebody whose files may take five bytes."""
    poor = of.of("poor")
    database: Any = vars(poor.files)["_database"]
    object.__setattr__(poor, "files", FileStore(database, "poor", files_beside(folder / "files"), quota=5))
    return poor


async def test_who_has_no_room_gets_nothing_of_it(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        path = written(tmp_path, await of.bundle())
        poor = without_room(of, tmp_path)
        with pytest.raises(QuotaError):
            await bring_in(path, poor)
        assert await poor.conversations.list() == []
        assert not list((tmp_path / "files").glob("poor/*"))


@pytest.mark.parametrize("at", [1, 2])
async def test_who_is_cancelled_again_and_again_while_it_is_stored_has_all_of_it_or_nothing(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with home(tmp_path) as of:
        made = written(tmp_path, await of.bundle())
        await of.delete()
        write, count = Database.write, 0

        async def called_off(database: Database, work: Any, **how: Any) -> Any:
            nonlocal count
            count += 1
            if count >= at:
                bringing.cancel()
            return await write(database, work, **how)

        with monkeypatch.context() as patched:
            patched.setattr(Database, "write", called_off)
            bringing = asyncio.create_task(bring_in(made, of.stores))
            await asyncio.wait({bringing})
        assert count >= at
        there = [one.id for one in await of.stores.conversations.list()]
        files = [path.read_bytes() for path in (of.path / "files" / "local").iterdir()]
        assert (there, files) in [([of.id], [b"Bring a coat."]), ([], [])]
        if there:
            _, path = await stored(of.stores.files, (await of.stores.whole.outline(of.id)).files[0].id)
            assert path.read_bytes() == b"Bring a coat."


async def test_nothing_is_unpacked_for_which_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []
    unpack = Archive.unpack

    def watched(self: Archive, name: str, *place: Path) -> str:
        unpacked.append(name)
        return unpack(self, name, *place)

    monkeypatch.setattr(Archive, "unpack", watched)
    async with home(tmp_path) as of:
        path = written(tmp_path, await of.bundle())
        poor = without_room(of, tmp_path)
        with pytest.raises(QuotaError):
            await bring_in(path, poor)
    assert not [name for name in unpacked if name.startswith("files/")]


@settings(max_examples=tries(300), deadline=None)
@given(st.lists(st.sampled_from(["..", ".", "", "a", "b.txt", "\\", ":", "\0", "C:"]), max_size=5).map("/".join))
def test_a_safe_name_stays_in_its_folder(name: str) -> None:
    if is_safe(name):
        inside = (Path("/there") / name).resolve()
        assert inside.is_relative_to("/there")
        assert inside != Path("/there")


@settings(max_examples=tries(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=2000))
async def test_bytes_of_anything_are_refused_in_a_sentence(data: bytes) -> None:
    from tempfile import TemporaryDirectory

    nothing: Any = None
    with TemporaryDirectory() as folder, pytest.raises(UnsupportedFormatError):
        await bring_in(written(Path(folder), data), nothing)
