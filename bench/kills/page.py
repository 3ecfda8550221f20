"""Kills of the whole page: `python -m webui` in a process of its own, with tabs that speak HTTP as browsers do."""

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
from pathlib import Path
from typing import Any

import httpx

from core.storage.base import LOCAL_OWNER
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage

KINDS = ("send", "stream", "tools", "upload", "two_tabs", "delete", "starting")
_TAG = re.compile(r"\[([0-9a-f]{16})\]")
_WORDS = {
    "send": "Say something.",
    "stream": "Please count slowly.",
    "tools": "Use the calculator for 17 * 23.",
    "two_tabs": "Think about it.",
    "delete": "Soon gone.",
}
_SETTLED = 60.0


class PagePart:
    """Some kills of the page, one after the other, on one data folder.

    Args:
        folder: Where the data folder is made.
        seed: Decides what is done, and when it is killed.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.begun: set[str] = set()
        self.messages: set[str] = set()
        self.documents: set[str] = set()
        self.maybe_gone: set[str] = set()
        self.deleted: set[str] = set()
        self.model = ModelServer(behave).start()
        settings = {"RETRIEVAL": "keyword", "CHECK_CLAIMS": "0"}
        self.app = AppProcess(folder / "page", self.model, settings)

    @property
    def acknowledged(self) -> int:
        """How many things were acknowledged."""
        return len(self.messages) + len(self.documents) + len(self.deleted)

    def one(self) -> None:
        """Start, check everything so far, work, kill."""
        kind = self.chance.choice(KINDS)
        if kind == "starting":
            self._killed_at_start()
        else:
            self._start_and_check()
            tabs = [
                threading.Thread(target=self._work, args=(kind, self.chance.randrange(1 << 30)), daemon=True)
                for _ in range(3 if kind == "two_tabs" else 1)
            ]
            for tab in tabs:
                tab.start()
            time.sleep(0.05 + self.chance.random() * 3)
            self.app.kill()
            for tab in tabs:
                tab.join()
        self.kills[kind] += 1

    def check(self) -> None:
        """Start once more, check, and end in peace."""
        self._start_and_check()
        self.app.stop()
        self.model.stop()

    def _killed_at_start(self) -> None:
        starting = threading.Thread(target=self._try_start, daemon=True)
        starting.start()
        time.sleep(0.2 + self.chance.random() * 4)
        if self.app.process is not None:
            self.app.process.kill()
        starting.join()
        self.app.kill()

    def _try_start(self) -> None:
        try:
            self.app.start()
        except (RuntimeError, OSError, httpx.HTTPError):
            return  # it was killed

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
        except (httpx.HTTPError, OSError, StopIteration, AssertionError, ValueError, KeyError):
            return  # the server is gone

    def _once(self, kind: str, client: httpx.Client, chance: random.Random) -> None:
        page = RawPage(self.app.address, client=client).open()
        tag = secrets.token_hex(8)
        paths: list[str] = []
        if kind == "upload":
            word = f"zebra{tag}"
            paths = [page.upload(f"{tag}.md", f"# Part\n\nThe {word} lives here.\n".encode() * chance.randrange(1, 60))]
        self.begun.add(tag)
        words = f"Where does the zebra{tag} live?" if kind == "upload" else _WORDS[kind]
        page.send(f"[{tag}] {words}", *paths)  # answered when the question is stored
        if not self._is_stored(tag):
            return  # refused: two replies of an owner at a time
        self.messages.add(tag)
        if kind == "upload":
            self.documents.add(tag)
        if kind == "delete":
            talk = self._talk_of(tag)
            self.maybe_gone.add(tag)
            page.act(do="delete", id=talk)
            if not self._is_stored(tag):
                self.deleted.add(tag)
        elif chance.random() < 0.5:
            page.paint(page.number("composer", "submit"))

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.app.home / "parlour.db", timeout=30)) as db:
            return db.execute(query, values).fetchall()

    def _is_stored(self, tag: str) -> bool:
        return bool(self._rows("SELECT 1 FROM messages WHERE instr(parts, ?)", tag))

    def _talk_of(self, tag: str) -> str:
        return str(self._rows("SELECT conversation_id FROM messages WHERE instr(parts, ?)", tag)[0][0])

    def _check(self) -> None:
        """Everything that was acknowledged is there, once; nothing is stuck; the file is whole."""
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
        index = self.app.home / "libraries" / LOCAL_OWNER / "library.sqlite"
        if self.documents and index.is_file():
            with closing(sqlite3.connect(index, timeout=30)) as db:
                for tag in self.documents:
                    if not db.execute("SELECT 1 FROM chunks WHERE instr(text, ?)", (f"zebra{tag}",)).fetchone():
                        self.wrong.append(f"document {tag} is not in the index")

    def _settled(self) -> None:
        end = time.monotonic() + _SETTLED
        while True:
            stuck = self._rows("SELECT id FROM runs WHERE status = 'running'")
            reading = self._rows("SELECT id FROM documents WHERE status = 'reading'")
            if not stuck and not reading:
                return
            if time.monotonic() > end:
                self.wrong.append(f"stuck: {json.dumps([stuck, reading])}")
                return
            time.sleep(0.1)
