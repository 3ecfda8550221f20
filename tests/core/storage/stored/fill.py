"""Makes the stored database of a schema: `PYTHONPATH=. python tests/core/storage/stored/fill.py` in a checkout.

It runs with the code of the checkout that it is run in, that of an older release too (copy it there), and writes
`<schema>.db.gz` and `<schema>.json`, what was put in, beside itself or into the folder it is given. A new migration
needs one: run it once when the migration is ready to be released, and never again for the same schema.
"""

from __future__ import annotations

import asyncio
import gzip
import inspect
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

OWNER, SECRET = "local", "the secret of the stored databases"
TEXT = "Der Leuchtturmwärter sammelt 950 Briefmarken. 灯塔看守人收集邮票。"
BYTES = TEXT.encode() * 20


BOUND = {
    "ConversationStore": "conversations",
    "FolderStore": "folders",
    "QueuedMessages": "queued",
    "RunStore": "runs",
    "FileStore": "files",
    "DocumentStore": "documents",
    "LibraryStore": "libraries",
    "IngestedStore": "ingested",
    "OwnerSettings": "settings",
    "Allowances": "allowances",
    "SummaryStore": "summaries",
    "McpServerStore": "mcp_servers",
    "ModelServiceStore": "model_services",
}


class Bound:
    """A store that is bound to its owner, used like those of older releases, whose methods take an owner first."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        @wraps(method)
        def called(*arguments: Any, **named: Any) -> Any:
            return method(*(arguments if name == "append" else arguments[1:]), **named)

        return called


def has(module: str) -> bool:
    is_bound = module in BOUND.values() and has("stores")
    return is_bound or find_spec(f"core.storage.{module}") is not None


def store(module: str, name: str, *arguments: Any) -> Any:
    if name in BOUND and has("stores"):
        database, *more = arguments
        folder = next((one for one in more if isinstance(one, Path)), Path())
        sealer = import_module("core.storage.sealing").Sealer(SECRET)
        stores = import_module("core.storage.stores").Stores(database, folder, sealer)
        return Bound(getattr(stores.of(OWNER), BOUND[name]))
    return getattr(import_module(f"core.storage.{module}"), name)(*arguments)


def said(role: str, text: Any, **more: Any) -> Any:
    return import_module("core.messages.message").Message(role, text, **more)


def row(seq: int, kind: str, **payload: Any) -> Any:
    return import_module("core.storage.base").EventRow(seq, seq / 10, kind, payload)


async def branches(database: Any) -> dict[str, Any]:
    """Two versions of a question, two of a reply, and the older one is shown."""
    talks = store("conversations", "ConversationStore", database)
    talk = await talks.create(OWNER, "Branches 🌿")
    question = await talks.add_message(OWNER, talk.id, "user", [said("user", "Which way?")], None)
    left = await talks.add_message(OWNER, talk.id, "assistant", [said("assistant", "**Left**")], question.id)
    await talks.add_message(OWNER, talk.id, "assistant", [said("assistant", "Right \ud83d, perhaps")], question.id)
    other = await talks.add_message(OWNER, talk.id, "user", [said("user", "Which way now?")], None)
    await talks.add_message(OWNER, talk.id, "assistant", [said("assistant", "Straight on")], other.id)
    await talks.set_leaf(OWNER, talk.id, left.id)
    return {"id": talk.id}


async def replies(database: Any) -> dict[str, Any]:
    """A reply with a thought, a call, its result and a citation; one that failed, one that was killed in the middle."""
    talks = store("conversations", "ConversationStore", database)
    runs = store("runs", "RunStore", database)
    message = import_module("core.messages.message")
    talk = await talks.create(OWNER, "Replies")
    work, place = await runs.create(
        OWNER, talk.id, user=[said("user", "What is 17 * 23?")], parent_id=None, model="scripted", worker="1@1.00"
    )
    call = message.FunctionCall("calculator", '{"expression": "17 * 23"}')
    parts = [
        said("assistant", "", reasoning_content="Let me count.", function_call=call),
        said("function", "391", name="calculator"),
        said("assistant", "It is 391 [1].", extra={"citations": [1]}),
    ]
    rows = [
        row(1, "message_started", name=""),
        row(2, "reasoning_delta", text="Let me count."),
        row(3, "call_started", call_id="c1", name="calculator"),
        row(4, "call_delta", call_id="c1", arguments='{"expression": "17 * 23"}'),
        row(5, "tool_started", call_id="c1"),
        row(6, "text_delta", text="It is 391 [1]."),
    ]
    more: dict[str, Any] = {}
    if "thoughts" in inspect.signature(runs.finish).parameters:
        thought = import_module("core.storage.base").AgentThought
        more["thoughts"] = [thought("t1", place.id, "Let me count.", "calculator", '{"a": 1}', "391", 1)]
    held: dict[str, Any] = {"epoch": 1} if "epoch" in inspect.signature(runs.finish).parameters else {}
    usage = message.Usage(prompt_tokens=12, completion_tokens=5)
    await runs.finish(OWNER, work.id, "complete", parts=parts, usage=usage, rows=rows, **more, **held)
    failed, _ = await runs.create(OWNER, talk.id, user=[said("user", "And?")], parent_id=place.id, worker="1@1.00")
    error = {"key": "model_unavailable", "message": "It was not there.", "hint": "", "details": {}}
    await runs.finish(OWNER, failed.id, "error", parts=[said("assistant", "Well")], error=error, **held)
    cut = await talks.create(OWNER, "Killed while it was answered")
    live, _ = await runs.create(OWNER, cut.id, user=[said("user", "Tell me all.")], parent_id=None, worker="1@1.00")
    await runs.append(live.id, [row(1, "message_started", name=""), row(2, "text_delta", text="Once upon a")], **held)
    asked = await talks.create(OWNER, "Waits for its owner")
    waits, _ = await runs.create(OWNER, asked.id, user=[said("user", "Write it.")], parent_id=None, worker="1@1.00")
    rows = [row(1, "message_started", name="")]
    if has("allowances"):  # which came with approvals
        question = {"call_id": "c2", "name": "write_file", "arguments": {"path": "a.txt"}, "within": []}
        more = {"reason": "writes", "wants": {"en": "write", "zh": "写"}, "addresses": [], "until": 4e9}
        rows += [
            row(2, "call_started", call_id="c2", name="write_file"),
            row(3, "call_delta", call_id="c2", arguments='{"path": "a.txt"}'),
            row(4, "approval_asked", **question, **more),
        ]
    await runs.append(waits.id, rows, durable=True, **held)
    return {"id": talk.id}


async def documents(database: Any, folder: Path) -> dict[str, Any]:
    """A file in a message, a document of a conversation, and a library that the conversation uses."""
    talks = store("conversations", "ConversationStore", database)
    files = store("files", "FileStore", database, folder)
    kept = store("documents", "DocumentStore", database)
    item = import_module("core.messages.content").ContentItem
    talk = await talks.create(OWNER, "Documents")
    file = await files.put(OWNER, "Leuchtturm – 灯塔.md", BYTES)
    address = f"/files/{file.id}"
    await talks.add_message(OWNER, talk.id, "user", [said("user", [item(text="Read it."), item(file=address)])], None)
    document = await kept.add(OWNER, talk.id, file.id, "Leuchtturm – 灯塔.md")
    await kept.update(OWNER, document.id, "ready", library_id=file.sha256, pages=1)
    told: dict[str, Any] = {"file": file.id, "name": file.name, "size": file.size, "document": document.id}
    if has("libraries"):
        libraries = store("libraries", "LibraryStore", database)
        library = await libraries.create(OWNER, "Reise / 旅行")
        shelved = await kept.add(OWNER, None, file.id, "shelved.md", collection_id=library.id)
        facts = {"pages": 1, "chunks": 3, "seconds": 0.5}
        await kept.update(OWNER, shelved.id, "ready", library_id=file.sha256, pages=1, facts=facts)
        await libraries.use(OWNER, talk.id, library.id, on=True)
        if has("ingested"):
            ledger = store("ingested", "IngestedStore", database)
            await ledger.note(OWNER, library.id, "/papers/shelved.md", "1234 5678", document_id=shelved.id)
            await ledger.note(OWNER, library.id, "/papers/灯塔.exe", "2 3", error={"key": "document_unsupported"})
        told |= {"library": library.id, "library_name": library.name, "shelved": shelved.id}
    return {"id": talk.id, **told}


async def choices(database: Any, talk: str) -> dict[str, Any]:
    """What owners chose, allowed and typed in, keys among it."""
    told: dict[str, Any] = {}
    if has("model_services"):
        sealer = store("sealing", "Sealer", SECRET)
        services = store("model_services", "ModelServiceStore", database, sealer)
        await services.save(OWNER, "deepseek", address="", model="deepseek-chat", key="sk-0123456789abcdef", use=True)
        told["service_key"] = "sk-0123456789abcdef"
    if has("allowances"):
        await store("allowances", "Allowances", database).add(OWNER, talk, "write_file")
        chosen = store("owner_settings", "OwnerSettings", database)
        value = {"mode": "ask", "deny": ["run_code"]}
        if hasattr(chosen, "set"):
            await chosen.set(OWNER, "approval", value)
        else:
            await chosen.change(OWNER, "approval", lambda _: value)
        told |= {"allowed": ["write_file"], "approval": value}
    if has("mcp_servers"):
        servers = store("mcp_servers", "McpServerStore", database, store("sealing", "Sealer", SECRET))
        settings = {"command": "uvx", "args": ["notes"], "env": {"TOKEN": "t-secret"}}
        (server,) = await servers.add(OWNER, {"notes": settings})
        told |= {"server": server.id, "server_settings": settings}
    if has("owner_notes"):
        await import_module("core.storage.owner_notes").NoteStore(database, OWNER).put("trips/plan", TEXT)
        told["note"] = TEXT
    if has("summaries"):
        talks = store("conversations", "ConversationStore", database)
        first = (await talks.thread(OWNER, talk))[0]
        await store("summaries", "SummaryStore", database).keep(OWNER, talk, first.id, "It began with a file.")
        told["summary"] = {first.id: "It began with a file."}
    return told


async def kept(database: Any, talk: str) -> dict[str, Any]:
    """A conversation in a folder, pinned, with a choice of its own, and a message that waits in it."""
    if not has("folders"):
        return {}
    folders = store("folders", "FolderStore", database)
    talks = store("conversations", "ConversationStore", database)
    folder = await folders.create(OWNER, "Leuchttürme 灯塔")
    await folders.configure(OWNER, folder.id, lambda _: {"instructions": "Answer briefly."})
    await folders.put(OWNER, [talk], folder.id)
    await talks.pin(OWNER, [talk])
    await talks.configure(OWNER, talk, lambda _: {"instructions": "Count twice."})
    waiting = await store("queued_messages", "QueuedMessages", database).add(OWNER, talk, "And then?")
    return {"folder": folder.id, "folder_name": folder.name, "waiting": waiting.text}


async def people(database: Any) -> dict[str, Any]:
    """Somebody with an account, signed in by one browser, who invited somebody else."""
    if not has("people"):
        return {}
    kept = import_module("core.storage.people")
    everybody = kept.PeopleStore(database)
    jan = await everybody.add(
        kept.Person("p-jan", "Jan 扬", "jan 扬", "owner", "$argon2id$", {}, 1.0, None), "terminal"
    )
    await everybody.open_session(kept.Session("0" * 64, jan.id, "Firefox, Linux", 1.0, 4e9))
    await everybody.invite(kept.Invitation("1" * 64, "member", None, jan.name, 1.0, 4e9))
    return {"id": jan.id, "name": jan.name, "role": jan.role}


def conversations_of(path: Path) -> dict[str, Any]:
    """Every conversation as the tables hold it, with its turns and the events of its replies."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row

        def all_of(query: str, *values: str) -> list[dict[str, Any]]:
            return [dict(one) for one in connection.execute(query, values)]

        found: dict[str, Any] = {}
        for talk in all_of("SELECT id, title, leaf_id FROM conversations ORDER BY created_at, id"):
            columns = "id, parent_id, role, status, run_id, parts"
            turns = all_of(
                f"SELECT {columns} FROM messages WHERE conversation_id = ? ORDER BY created_at, id", talk["id"]
            )
            for turn in turns:
                turn["parts"] = json.loads(turn["parts"])
                events = all_of(
                    "SELECT seq, kind, payload FROM run_events WHERE run_id = ? ORDER BY seq", turn["run_id"]
                )
                turn["events"] = [[one["seq"], one["kind"], json.loads(one["payload"])] for one in events]
            found[talk["id"]] = {"title": talk["title"], "leaf": talk["leaf_id"], "turns": turns}
        return found


async def fill(path: Path) -> dict[str, Any]:
    database = await import_module("core.storage.database").Database.open(path)
    try:
        await store("conversations", "ConversationStore", database).ensure_owner(OWNER)
        told = {"branches": await branches(database), "replies": await replies(database)}
        told["documents"] = await documents(database, path.parent / "files")
        told["choices"] = await choices(database, told["documents"]["id"])
        told["kept"] = await kept(database, told["replies"]["id"])
        told["people"] = await people(database)
    finally:
        await database.aclose()
    return {"told": told, "conversations": conversations_of(path)}


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parlour.db"
        told = asyncio.run(fill(path))
        with closing(sqlite3.connect(path)) as connection:
            (schema,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (target / f"{schema}.db.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    text = json.dumps(told, ensure_ascii=True, indent=1, sort_keys=True) + "\n"
    (target / f"{schema}.json").write_text(text, encoding="utf-8")
    print(schema)


if __name__ == "__main__":
    main()
