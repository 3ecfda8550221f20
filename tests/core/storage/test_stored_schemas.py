"""Databases of every released schema, made by the code of their time, and opened by today's."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.storage.base import LOCAL_OWNER
from core.storage.blobs import files_beside
from core.storage.conversations import Allowances, ConversationStore, dumped
from core.storage.database import Database
from core.storage.documents import DocumentStore
from core.storage.files import FileStore
from core.storage.folders import FolderStore
from core.storage.libraries import LibraryStore
from core.storage.mcp_servers import McpServerStore
from core.storage.migrations import steps
from core.storage.model_services import ModelServiceStore
from core.storage.owner_notes import NoteStore
from core.storage.owner_settings import OwnerSettings
from core.storage.people import PeopleStore
from core.storage.queued_messages import QueuedMessages
from core.storage.runs import AllRuns
from core.storage.sealing import Sealer
from core.storage.search import SearchStore
from core.storage.summaries import SummaryStore
from core.storage.thoughts import ThoughtStore
from core.storage.whole_conversations import WholeConversations

pytestmark = pytest.mark.anyio

STORED = Path(__file__).parent / "stored"
SCHEMAS = sorted(path.name.removesuffix(".db.gz") for path in STORED.glob("*.db.gz"))
OLDER = [schema for schema in SCHEMAS if schema != steps.HEAD]
NEVER_RELEASED = {"0004", "0005", "0006", "0007"}  # came together with 0008
SECRET = "the secret of the stored databases"


def unpacked(schema: str, folder: Path) -> Path:
    path = folder / "parlour.db"
    path.write_bytes(gzip.decompress((STORED / f"{schema}.db.gz").read_bytes()))
    return path


def put_in(schema: str) -> dict[str, Any]:
    return json.loads((STORED / f"{schema}.json").read_text(encoding="utf-8"))


def test_every_migration_comes_with_the_stored_database_of_its_schema() -> None:
    versions = Path(steps.__file__).parent / "versions"
    made = {path.name.split("_")[0] for path in versions.glob("[0-9]*.py")}
    missing = made - NEVER_RELEASED - set(SCHEMAS)
    assert not missing, f"Run {STORED.name}/fill.py for {sorted(missing)}; it says how."
    assert {path.stem for path in STORED.glob("*.json")} == set(SCHEMAS)


async def turns_now(database: Database, talk: str) -> dict[str, Any]:
    """A conversation as today's stores give it, in the form of `fill.conversations_of`."""
    whole, runs = partial(WholeConversations, database), AllRuns(database).of
    outline = await whole(LOCAL_OWNER).outline(talk)
    turns: list[dict[str, Any]] = []
    for turn in await whole(LOCAL_OWNER).turns(talk, outline.turns):
        message = turn.message
        events = await runs(LOCAL_OWNER).events(message.run_id) if message.run_id else []
        turns.append(
            {
                "id": message.id,
                "parent_id": message.parent_id,
                "role": message.role,
                "status": message.status,
                "run_id": message.run_id,
                "parts": dumped(message.parts),
                "events": [[one.seq, one.kind, one.payload] for one in events],
            }
        )
    return {"title": outline.conversation.title, "leaf": outline.conversation.leaf_id, "turns": turns}


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_conversations_of_every_released_schema_are_the_same_today(schema: str, tmp_path: Path) -> None:
    expected: dict[str, Any] = put_in(schema)["conversations"]
    database = await Database.open(unpacked(schema, tmp_path))
    listed = await ConversationStore(database, LOCAL_OWNER).list()
    assert {talk.id for talk in listed} == set(expected)
    for talk, was in expected.items():
        assert await turns_now(database, talk) == was
    await database.aclose()


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_files_documents_and_libraries_of_every_released_schema_are_the_same_today(
    schema: str, tmp_path: Path
) -> None:
    told: dict[str, Any] = put_in(schema)["told"]["documents"]
    database = await Database.open(unpacked(schema, tmp_path))
    documents = partial(DocumentStore, database)
    file = await FileStore(database, LOCAL_OWNER, files_beside(tmp_path / "files")).record(told["file"])
    assert (file.name, file.size) == (told["name"], told["size"])
    document = await documents(LOCAL_OWNER).get(told["document"])
    assert (document.status, document.library_id, document.file_id) == ("ready", file.sha256, file.id)
    assert await documents(LOCAL_OWNER).within_reach(told["id"]) == [file.sha256]
    used = await LibraryStore(database, LOCAL_OWNER).used_by(told["id"])
    assert [(one.id, one.name) for one in used] == [
        (told[name], told["library_name"]) for name in ("library",) if name in told
    ]
    if "shelved" in told:
        assert ((await documents(LOCAL_OWNER).get(told["shelved"])).facts or {})["chunks"] == 3
    await database.aclose()


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_choices_keys_and_steps_of_every_released_schema_are_the_same_today(schema: str, tmp_path: Path) -> None:
    told: dict[str, Any] = put_in(schema)["told"]
    talk, chosen = told["documents"]["id"], told["choices"]
    database = await Database.open(unpacked(schema, tmp_path))
    sealer = Sealer(SECRET)
    (*kept,) = await ModelServiceStore(database, sealer, LOCAL_OWNER).list()
    keys = [sealer.open(one.key or "", LOCAL_OWNER, one.service) for one in kept]
    assert keys == [chosen[name] for name in ("service_key",) if name in chosen]
    assert await Allowances(database, LOCAL_OWNER).list(talk) == chosen.get("allowed", [])
    assert await OwnerSettings(database, LOCAL_OWNER).get("approval") == chosen.get("approval")
    assert await SummaryStore(database, LOCAL_OWNER).list(talk) == chosen.get("summary", {})
    assert await NoteStore(database, LOCAL_OWNER).get("trips/plan") == chosen.get("note")
    servers = McpServerStore(database, sealer, LOCAL_OWNER)
    found = {one.id: servers.settings_of(one) for one in await servers.list()}
    assert found == {chosen[name]: chosen["server_settings"] for name in ("server",) if name in chosen}
    thoughts = await ThoughtStore(database, LOCAL_OWNER).of_conversation(told["replies"]["id"])
    assert [[one.tool_name for one in steps] for steps in thoughts.values()] == (
        [["calculator"]] if schema >= "0006" else []
    )
    await database.aclose()


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_folders_pins_and_waiting_messages_of_every_released_schema_are_the_same_today(
    schema: str, tmp_path: Path
) -> None:
    told: dict[str, Any] = put_in(schema)["told"]
    kept, talk = told.get("kept") or {}, told["replies"]["id"]
    database = await Database.open(unpacked(schema, tmp_path))
    talks = ConversationStore(database, LOCAL_OWNER)
    record = await talks.get(talk)
    assert record.folder_id == kept.get("folder")
    assert (record.pinned_at is not None, record.archived_at) == (bool(kept), None)
    assert await talks.settings(talk) == ({"instructions": "Count twice."} if kept else {})
    assert [(one.id, one.name, dict(one.settings)) for one in await FolderStore(database, LOCAL_OWNER).list()] == [
        (kept[name], kept["folder_name"], {"instructions": "Answer briefly."}) for name in ("folder",) if name in kept
    ]
    people = PeopleStore(database)
    person = told.get("people") or {}
    assert [(one.id, one.name, one.role) for one in await people.list()] == [tuple(person.values())] * bool(person)
    if person:
        assert [one.browser for one in await people.sessions_of(person["id"])] == ["Firefox, Linux"]
        assert [one.made_by for one in await people.invitations()] == [person["name"]]
    waiting = await QueuedMessages(database, LOCAL_OWNER).list(talk)
    assert [one.text for one in waiting] == [kept[name] for name in ("waiting",) if name in kept]
    await database.aclose()


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_messages_and_titles_of_every_released_schema_are_found_today(schema: str, tmp_path: Path) -> None:
    told: dict[str, Any] = put_in(schema)["told"]
    database = await Database.open(unpacked(schema, tmp_path))
    search = SearchStore(database, LOCAL_OWNER)
    for asked, talk, hits in (("straight", "branches", 1), ("17 23", "replies", 1), ("391", "replies", 1)):
        (found,) = (await search.find(asked)).conversations
        assert (found.conversation.id, len(found.hits)) == (told[talk]["id"], hits)
    assert [one.conversation.title for one in (await search.find("branch")).conversations] == ["Branches 🌿"]
    assert [one.name for one in (await search.find("leuchtturm 灯塔")).documents] == ["Leuchtturm – 灯塔.md"]
    await database.aclose()


SOME = 5  # in the gate, one of so many moments


def kill_at_every_moment(schema: str, folder: Path, stride: int = 1) -> dict[str, Any]:
    program = Path(__file__).with_name("killed_updates.py")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, str(program), str(unpacked(schema, folder)), str(stride)],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": "", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_an_update_that_is_killed_at_any_statement_leaves_the_old_database_or_the_new_and_the_next_start_completes_it(
    tmp_path: Path,
) -> None:
    told = kill_at_every_moment(SCHEMAS[0], tmp_path, SOME)
    assert told["wrong"] == []
    assert told["steps"] >= 20  # statements of the migrations themselves were among the moments
    assert set(told["ends"]) == {SCHEMAS[0], steps.HEAD}


@pytest.mark.slow
@pytest.mark.parametrize("schema", OLDER)
def test_an_update_of_any_released_schema_may_be_killed_at_any_statement(schema: str, tmp_path: Path) -> None:
    assert kill_at_every_moment(schema, tmp_path)["wrong"] == []
