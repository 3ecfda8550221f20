"""Kills of the whole page: what `parlour` starts, in a process of its own, with tabs that speak HTTP as browsers do."""

from __future__ import annotations

import json
import random
import re
import secrets
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from bench.kills.forked_page import ForkedApp, Origin
from bench.kills.older import OLDER, opened_twice
from core.storage.base import LOCAL_OWNER
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.webui.server.raw_page import RawPage

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

TABS = ("send", "stream", "tools", "approval", "upload", "reading", "delete")
KINDS = (*TABS, "several_tabs", "several_tabs", "starting", "migration")
WITH_VECTORS = ("upload", "reading", "reading", "several_tabs", "starting")
_TAG = re.compile(r"\[([0-9a-f]{16})\]")
_CALL = re.compile(r'p-asks[^>]*data-call=\\*"([^"\\]+)')
_WORDS = {
    "send": "Say something.",
    "stream": "Please count slowly.",
    "tools": "Use the calculator for 17 * 23.",
    "approval": "Use the calculator for 17 * 23.",
    "delete": "Soon gone.",
}
_ANSWERED = ("process_generating", "process_completed")
_SETTLED = 60.0
_LONGEST = 5.0  # seconds between the first question of a life and its end
_GONE = (httpx.HTTPError, OSError, StopIteration, AssertionError, ValueError, KeyError)  # what a tab meets then


class PagePart:
    """Some kills of the page, one after the other, on one data folder.

    Args:
        folder: Where the data folder is made.
        seed: Decides what is done, and when it is killed.
        vectors: Whether documents are made into vectors; then only what has to do with them is done.
    """

    def __init__(self, folder: Path, seed: int, *, vectors: bool = False) -> None:
        self.chance = random.Random(seed)
        self.vectors = vectors
        self.kills: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.begun: set[str] = set()
        self.messages: set[str] = set()
        self.documents: set[str] = set()
        self.maybe_gone: set[str] = set()
        self.deleted: set[str] = set()
        self.at_work = threading.Event()
        self.asked: dict[str, str] = {}
        self.decided = 0
        self.model = ModelServer(behave).start()
        self.origin = Origin()
        self.folder = folder
        self.app = self._app("page")

    @property
    def acknowledged(self) -> int:
        """How many things were acknowledged."""
        return len(self.messages) + len(self.documents) + len(self.deleted) + self.decided

    def one(self) -> None:
        """Start, check everything so far, work, kill."""
        kind = self.chance.choice(WITH_VECTORS if self.vectors else KINDS)
        if kind == "starting":
            self._killed_at_start(self.app, 4)
        elif kind == "migration":
            home = self.folder / f"old{sum(self.kills.values())}"
            self.wrong += opened_twice(home, self.chance.choice(OLDER), self._once_killed, self._once_whole)
        else:
            self._start_and_check()
            self._killed_at_work(self.chance.sample(TABS, 3) if kind == "several_tabs" else [kind])
        self.kills[kind] += 1

    def check(self) -> None:
        """Start once more, check, and end in peace."""
        self._start_and_check()
        self.app.stop()
        self.model.stop()
        self.origin.close()

    def _app(self, name: str) -> ForkedApp:
        settings = {"RETRIEVAL": "hybrid" if self.vectors else "keyword", "CHECK_CLAIMS": "0"}
        return ForkedApp(self.folder / name, self.model, settings, origin=self.origin)

    def _killed_at_work(self, kinds: list[str]) -> None:
        with closing(self.app.client()) as client:
            mode = "always" if "approval" in kinds else "writes"
            client.post("/tools/mode", json={"mode": mode}).raise_for_status()
        tabs = [
            threading.Thread(target=self._work, args=(one, self.chance.randrange(1 << 30)), daemon=True)
            for one in kinds
        ]
        self.at_work.clear()
        for tab in tabs:
            tab.start()
        self.at_work.wait(_SETTLED)  # a browser first loads the page, which takes long on a busy machine
        time.sleep(self.chance.random() * _LONGEST)
        self.app.kill()
        for tab in tabs:
            tab.join()

    def _killed_at_start(self, app: ForkedApp, longest: float) -> None:
        starting = threading.Thread(target=self._try_start, args=(app,), daemon=True)
        starting.start()
        time.sleep(0.2 + self.chance.random() * longest)
        if app.process is not None:
            app.process.kill()
        starting.join()
        app.kill()

    def _try_start(self, app: ForkedApp) -> None:
        try:
            app.start()
        except (RuntimeError, OSError, httpx.HTTPError):
            return  # it was killed

    def _once_killed(self, home: Path) -> None:
        self._killed_at_start(self._app(home.name), 4)

    def _once_whole(self, home: Path) -> None:
        app = self._app(home.name).start()
        app.stop()

    def _start_and_check(self) -> None:
        try:
            self.app.start()
        except RuntimeError as error:
            self.wrong.append(f"does not start: {error}")
            raise
        self._check()

    def _work(self, kind: str, seed: int) -> None:
        """What a tab does until the server is gone."""
        chance = random.Random(seed)
        try:
            with closing(self.app.client()) as client:
                while True:
                    self._once(kind, client, chance)
        except _GONE:
            return

    def _once(self, kind: str, client: httpx.Client, chance: random.Random) -> None:
        page = RawPage(self.app.address, client=client).open()
        tag = secrets.token_hex(8)
        files: list[str] = []
        if kind in {"upload", "reading"}:
            parts = chance.randrange(1, 60 if kind == "upload" else 900)
            files = [page.upload(f"{tag}.md", _document(tag, parts))]
        self.begun.add(tag)
        self.at_work.set()
        words = f"Where does the zebra{tag} live?" if files else _WORDS[kind]
        with closing(page.sending(f"[{tag}] {words}", *files)) as told:
            # What the composer shall show then is said when the question is stored.
            next((event for event in told if event["msg"] in _ANSWERED), None)
            if self._is_stored(tag):  # else it was refused
                self._go_on(kind, page, tag, told, chance)

    def _go_on(
        self, kind: str, page: RawPage, tag: str, told: Generator[dict[str, Any]], chance: random.Random
    ) -> None:
        """What a tab does after its question was stored; `told` is what it hears of the reply."""
        files = kind in {"upload", "reading"}
        self.messages.add(tag)
        if files:
            self.documents.add(tag)
        if kind == "delete":
            told.close()
            self._delete(page, tag)
        elif kind == "approval":
            self._approve(page, tag, told, chance)
        elif chance.random() < 0.5:
            for _ in told:
                pass

    def _delete(self, page: RawPage, tag: str) -> None:
        talk = self._talk_of(tag)
        self.maybe_gone.add(tag)
        page.act(do="delete", id=talk)
        if not self._is_stored(tag):
            self.deleted.add(tag)

    def _approve(self, page: RawPage, tag: str, told: Generator[dict[str, Any]], chance: random.Random) -> None:
        """Wait until the card is shown, think it over, and allow the call."""
        call = _shown_call(told)
        if not call:
            return
        self.asked[tag] = call
        time.sleep(chance.random() * 0.4)
        del self.asked[tag]  # from here on nobody knows whether the answer came
        page.join(page.number("bus-go", "click"), json.dumps({"do": "allow", "call": call}))
        self.decided += 1

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.app.home / "parlour.db", timeout=30)) as db:
            return db.execute(query, values).fetchall()

    def _is_stored(self, tag: str) -> bool:
        return bool(self._rows("SELECT 1 FROM messages WHERE instr(parts, ?)", tag))

    def _talk_of(self, tag: str) -> str:
        return str(self._rows("SELECT conversation_id FROM messages WHERE instr(parts, ?)", tag)[0][0])

    def _check(self) -> None:
        """Everything that was acknowledged is there, once; nothing is stuck; the file is whole."""
        for tag, call in self.asked.items():
            if self._allowed(self._talk_of(tag)) != call:
                self.wrong.append(f"the question of {tag} waits no longer")
        self.asked.clear()
        self._settled()
        for query, good in (("PRAGMA integrity_check", [("ok",)]), ("PRAGMA foreign_key_check", [])):
            if (found := self._rows(query)) != good:
                self.wrong.append(f"{query}: {found[:3]}")
        parts = [str(row[0]) for row in self._rows("SELECT parts FROM messages WHERE role = 'user'")]
        tags = Counter(tag for one in parts for tag in _TAG.findall(one))
        self.wrong += [
            f"message {tag} is there {tags[tag]} times" for tag in self.messages - self.maybe_gone if tags[tag] != 1
        ]
        self.wrong += [f"message {tag} stands {n} times" for tag, n in tags.items() if n > 1 or tag not in self.begun]
        self.wrong += [f"deleted {tag} is back" for tag in self.deleted if tags[tag]]
        ready = {
            str(name).removesuffix(".md") for (name,) in self._rows("SELECT name FROM documents WHERE status = 'ready'")
        }
        self.wrong += [f"document {tag} is not ready" for tag in self.documents - ready]
        if self.documents:
            self._index()

    def _index(self) -> None:
        """Every document that is ready is found by its word and, where that is asked for, known by its meaning."""
        index = self.app.home / "libraries" / LOCAL_OWNER / "library.sqlite"
        end = time.monotonic() + _SETTLED
        with closing(sqlite3.connect(index, timeout=30)) as db:
            for tag in self.documents:
                if not db.execute("SELECT 1 FROM chunks WHERE instr(text, ?)", (f"zebra{tag}",)).fetchone():
                    self.wrong.append(f"document {tag} is not in the index")
            unmade = "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk_id FROM vectors)"
            while self.vectors and (behind := db.execute(unmade).fetchone()[0]):
                if time.monotonic() > end:
                    self.wrong.append(f"{behind} vectors are not made")
                    return
                time.sleep(0.2)

    def _settled(self) -> None:
        """No reply is stuck and no document unread; who waits for an answer can be given it."""
        end = time.monotonic() + _SETTLED
        while True:
            stuck = self._rows("SELECT id, conversation_id FROM runs WHERE status = 'running'")
            reading = self._rows("SELECT id FROM documents WHERE status = 'reading'")
            if not stuck and not reading:
                return
            if time.monotonic() > end:
                self.wrong.append(f"stuck: {json.dumps([stuck, reading])}")
                return
            for _, talk in stuck:
                self._allowed(str(talk))
            time.sleep(0.1)

    def _allowed(self, talk: str) -> str:
        """Open a conversation and allow what waits there; the call's id, empty where none waits."""
        with closing(self.app.client()) as client:
            page = RawPage(self.app.address, talk, client).open()
            with closing(page.telling(page.loading())) as told:
                call = _shown_call(told)
            if call:
                page.join(page.number("bus-go", "click"), json.dumps({"do": "allow", "call": call}))
            return call


def _document(tag: str, parts: int) -> bytes:
    others = "".join(f"## Part {n}\n\nThis part tells of {n} lighthouses and more.\n\n" for n in range(parts))
    return f"# Part\n\nThe zebra{tag} lives here.\n\n{others}".encode()


def _shown_call(told: Iterable[dict[str, Any]]) -> str:
    """The call whose card the tab comes to show; empty where the reply ends without, or it takes too long."""
    end = time.monotonic() + _SETTLED / 3
    for event in told:  # a sign of life comes every few seconds
        if found := _CALL.search(json.dumps(event)):
            return unescape(found[1])
        if time.monotonic() > end:
            break
    return ""
