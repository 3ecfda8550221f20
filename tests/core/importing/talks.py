"""An owner's conversation with all that belongs to it, and its rows as the database has them."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from core.export.bundle import MANIFEST, bundled
from core.export.exporting import Exporting
from core.messages.message import Message, Usage
from core.runs.log import LoggedEvent
from core.runs.manager import Runs
from core.runs.rows import events_of, rows_of
from core.storage.base import AgentThought
from core.storage.database import Database
from core.storage.stores import OwnerStores
from tests.core.stores import stores_over

NOW = datetime(2026, 5, 4, 3, 2, tzinfo=UTC)
KEY = "correct-horse-battery"
PASSAGE: dict[str, Any] = {
    "text": "Damage by water is covered.",
    "score": 1.0,
    "document": "policy.pdf",
    "document_id": "d1",
    "page": 4,
    "rectangles": [[10, 20, 110, 40.5]],
    "heading": "Cover",
    "chunk_id": 7,
}
TABLES = ("conversations", "messages", "run_events", "message_agent_thoughts", "file_uses")


@dataclass
class Home:
    """A data folder with one conversation of `local` in it."""

    path: Path
    stores: OwnerStores
    of: Callable[[str], OwnerStores]
    exporting: Exporting
    id: str

    async def bundle(self) -> bytes:
        return b"".join([piece async for piece in bundled(self.exporting, self.stores, [self.id])])

    async def delete(self) -> None:
        freed, _ = await self.stores.conversations.delete(self.id)
        await self.stores.files.discard(freed)

    def rows(self) -> dict[str, list[Any]]:
        """What the tables hold, as it is stored."""
        with closing(sqlite3.connect(self.path / "parlour.db")) as connection:
            return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in TABLES}


@asynccontextmanager
async def home(path: Path) -> AsyncGenerator[Home]:
    database = await Database.open(path / "parlour.db")
    every = stores_over(database)
    stores, runs = every.of("local"), Runs(every)

    async def secrets() -> list[str]:
        return [KEY]

    talk = await stores.conversations.create("A trip 旅行")
    file = await stores.files.put("notes.txt", b"Bring a coat.")
    about = {"id": file.id, "name": file.name}
    asked = Message("user", [{"text": "Where to?\n  * north"}, {"file": file.address}], extra={"files": [about]})
    question = await stores.conversations.add_message(talk.id, "user", [asked], None)
    await _answered(stores, talk.id, question.id, "Yes, it is covered [1]. 😀")
    await _answered(stores, talk.id, question.id, "Another version [1].")
    yield Home(path, stores, every.of, Exporting(stores.whole, runs.of("local"), secrets), talk.id)
    await runs.aclose()
    await database.aclose()


async def _answered(stores: OwnerStores, talk: str, question: str, text: str) -> None:
    run, _ = await stores.runs.create(talk, user=None, parent_id=question, model="M")
    call: Any = {"name": "ask", "arguments": '{"a": 1,  "b":"\\u00e9é"}'}
    parts = [
        Message("assistant", "", reasoning_content="hm", function_call=call, extra={"function_id": "1"}),
        Message("function", "found", name="ask", extra={"function_id": "1", "passages": [PASSAGE]}),
        Message("assistant", text),
    ]
    rows = rows_of(LoggedEvent(number, number / 7, event) for number, event in enumerate(events_of(parts), start=1))
    step = AgentThought(run.id, run.message_id, "hm", "ask", call["arguments"], "found", 1, NOW)
    await stores.runs.finish(
        run.id,
        "complete",
        epoch=run.epoch,
        parts=parts,
        usage=Usage(prompt_tokens=3),
        rows=rows,
        thoughts=[step],
    )


def changed(
    made: bytes,
    *,
    entries: Mapping[str, Callable[[bytes], bytes]] | None = None,
    manifest: Callable[[dict[str, Any]], None] = lambda _: None,
    added: Mapping[str, bytes] | None = None,
    honest: bool = True,
) -> bytes:
    """A bundle made by hand of another.

    Args:
        entries: What becomes of those whose names end so.
        added: More entries.
        honest: Whether the manifest says what is there now.
    """
    with zipfile.ZipFile(BytesIO(made)) as archive:
        there = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(there.pop(MANIFEST))
    for ending, change in (entries or {}).items():
        for name in [one for one in there if one.endswith(ending)]:
            there[name] = change(there[name])
    there |= added or {}
    if honest:
        about["entries"] = {
            name: {"size": len(data), "sha256": sha256(data).hexdigest()} for name, data in there.items()
        }
    manifest(about)
    sink = BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**there, MANIFEST: json.dumps(about).encode()}.items():
            archive.writestr(name, data)
    return sink.getvalue()
