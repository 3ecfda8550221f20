"""What must hold after each start, of everything that was ever acknowledged in the folder."""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from core.engine import Engine
from core.errors import NotFoundError, ParlourError
from core.rag.library import Library
from tests.core.talks import talk_of

_SETTLED = 60.0
_TAG = re.compile(r"\[([0-9a-f]{16})\]")
_NONE_OF_THESE = {
    "rows that point nowhere": "PRAGMA foreign_key_check",
    "replies without a run": "SELECT id FROM messages WHERE role = 'assistant' AND run_id NOT IN (SELECT id FROM runs)",
    "replies whose status is not their run's": "SELECT m.id FROM messages m JOIN runs r ON r.id = m.run_id "
    "WHERE m.status <> r.status",
    "messages with two runs": "SELECT message_id FROM runs GROUP BY message_id HAVING count(*) > 1",
    "questions without a reply": "SELECT id FROM messages u WHERE role = 'user' AND NOT EXISTS "
    "(SELECT 1 FROM messages r WHERE r.parent_id = u.id)",
}


class Checking:
    """The checks of one start.

    Args:
        engine: Parlour, just started.
        home: Its data folder.
        known: What was acknowledged, as `Ledger.as_dict`.
        calls: Where the tool wrote what it was called with.
    """

    def __init__(self, engine: Engine, home: Path, known: dict[str, Any], calls: Path) -> None:
        self.engine, self.home, self.known, self.calls = engine, home, known, calls
        self.wrong: list[str] = []
        self.gone = {*known["deleted"], *known["deleting"]}

    async def all(self) -> list[str]:
        """What is wrong, in words."""
        await self._approvals()
        await self._settled()
        self._database()
        self._messages()
        await self._replies()
        await self._files()
        await self._documents()
        self._tools()
        return self.wrong

    def _say(self, what: str) -> None:
        self.wrong.append(what)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "parlour.db", timeout=30)) as db:
            return db.execute(query).fetchall()

    async def _approvals(self) -> None:
        """Questions that waited for an answer wait still, and can be answered."""
        for run_id, (owner, talk, call_id) in self.known["asked"].items():
            try:
                await talk_of(self.engine, owner, talk).decide(call_id, allowed=True)
            except ParlourError as error:
                self._say(f"approval of {run_id} cannot be given: {error}")

    async def _settled(self) -> None:
        """No reply is stuck: what goes on comes to its end, or waits for its user."""
        end = time.monotonic() + _SETTLED
        while True:
            running = {str(row[0]) for row in self._rows("SELECT id FROM runs WHERE status = 'running'")}
            waiting = await self._waiting()
            reading = self._rows("SELECT id FROM documents WHERE status = 'reading'")
            if running <= waiting and not reading:
                return
            if time.monotonic() > end:
                self._say(f"stuck: replies {sorted(running - waiting)}, documents {reading}")
                return
            await asyncio.sleep(0.05)

    async def _waiting(self) -> set[str]:
        """Replies that wait for their user, as the page would show them."""
        query = "SELECT owner_id, id FROM messages WHERE status = 'running'"
        found: set[str] = set()
        for owner, message in self._rows(query):
            stored = await self.engine.stores.of(owner).conversations.message(message)
            if (await self.engine.runs.of(owner).reply(stored)).asking and stored.run_id:
                found.add(stored.run_id)
        return found

    def _database(self) -> None:
        """The file is whole, and its rows agree with each other."""
        if (found := self._rows("PRAGMA integrity_check")) != [("ok",)]:
            self._say(f"integrity_check: {found[:3]}")
        for what, query in _NONE_OF_THESE.items():
            if found := self._rows(query):
                self._say(f"{what}: {found[:3]}")
        talks = {row[0] for row in self._rows("SELECT id FROM conversations")}
        for talk in talks.intersection(self.known["deleted"]):
            self._say(f"deleted conversation {talk} is back")

    def _messages(self) -> None:
        """Every acknowledged question is there once, where it was asked; none is there that was not sent."""
        users = self._rows("SELECT conversation_id, parts FROM messages WHERE role = 'user'")
        tagged = [(tag, talk) for talk, parts in users for tag in _TAG.findall(parts)]
        tags, where = Counter(tag for tag, _ in tagged), dict(tagged)
        for tag, (_, talk) in self.known["messages"].items():
            if talk not in self.gone and (tags[tag] != 1 or where.get(tag) != talk):
                self._say(f"message {tag} is there {tags[tag]} times")
        begun = {*self.known["begun"]}
        for tag, count in tags.items():
            if count > 1 or tag not in begun:
                self._say(f"message {tag} stands {count} times, or was never sent")

    async def _replies(self) -> None:
        here = {row[0] for row in self._rows("SELECT id FROM messages WHERE role = 'assistant'")}
        for message, (owner, talk, text) in self.known["replies"].items():
            if talk in self.gone:
                continue
            if message not in here:
                self._say(f"reply {message} is gone")
                continue
            stored = await self.engine.stores.of(owner).conversations.message(message)
            reply = await self.engine.runs.of(owner).reply(stored)
            last = stored.parts[-1].get_text_content() if stored.parts else ""
            if stored.status != "complete" or reply.text != text or not last or last not in text:
                self._say(f"reply {message} is {stored.status} and not as it was")

    async def _files(self) -> None:
        for file_id, (owner, digest) in self.known["files"].items():
            try:
                data = await self.engine.stores.of(owner).files.read(file_id)
            except NotFoundError as error:
                self._say(f"file {file_id}: {error}")
                continue
            if hashlib.sha256(data).hexdigest() != digest:
                self._say(f"file {file_id} is another one")

    async def _documents(self) -> None:
        rows = self._rows("SELECT id, owner_id, status, library_id FROM documents")
        status = {row[0]: row[2] for row in rows}
        for owner in {row[1] for row in rows} | {of[0] for of in self.known["documents"].values()}:
            async with self.engine.workspaces.index(owner) as library:
                held = {document.id for document in await asyncio.to_thread(library.documents)}
                for document, whose, state, text in rows:
                    if whose == owner and state == "ready" and text not in held:
                        self._say(f"document {document} is ready and not in the index")
                await self._vectors(owner, library, [row[3] for row in rows if row[1] == owner and row[2] == "ready"])
                needed = {row[3] for row in rows if row[1] == owner}
                if held - needed:
                    self._say(f"the index holds texts that no document has: {sorted(held - needed)[:2]}")
                for document, (whose, talk, word) in self.known["documents"].items():
                    if whose == owner and talk not in self.gone and status.get(document) == "ready":
                        found = await library.afind(f"Where does the {word} live?", 3)
                        if not any(word in passage.text for passage in found):
                            self._say(f"document {document} is ready and is not found")
        for document, (_, talk, _) in self.known["documents"].items():
            if talk not in self.gone and status.get(document) != "ready":
                self._say(f"document {document} is {status.get(document, 'gone')}")

    async def _vectors(self, owner: str, library: Library, documents: list[str]) -> None:
        """Where search by meaning is asked for, it comes to know every passage."""
        if not documents:
            return
        await asyncio.to_thread(library.wait_for_vectors, _SETTLED)
        made = await asyncio.to_thread(library.retriever.vector_progress, documents)
        if behind := {one: come for one, come in made.items() if come[0] < come[1]}:
            self._say(f"vectors of {owner} are not made: {behind}")

    def _tools(self) -> None:
        made = Counter(self.calls.read_text("utf-8").split()) if self.calls.exists() else Counter[str]()
        for call, count in made.items():
            if count > 1:
                self._say(f"the call {call} was made {count} times")
