"""The bench of kills: it finds nothing where nothing was lost, and finds what was."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench.kills.checking import Checking
from bench.kills.kinds import Doing
from bench.kills.ledger import Ledger
from bench.kills.life import answer
from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]

Harm = Callable[[Ledger, sqlite3.Connection], object]


def run_sql(statement: str) -> Harm:
    return lambda _, db: db.execute(statement)


def claim(what: str, one: str, of: Any = None) -> Harm:
    return lambda ledger, _: ledger.note({"ack": what, "id": one, "of": of})


def test_some_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "bench.kills",
        "--kills",
        "8",
        "--seed",
        "4",
        "--results",
        str(tmp_path / "k.json"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (part,) = json.loads((tmp_path / "k.json").read_text("utf-8"))
    assert (sum(part["kinds"].values()), part["wrong"]) == (8, [])


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (run_sql("DELETE FROM messages"), "is there 0 times"),
        (claim("messages", "f" * 16, ["owner", "nowhere"]), "is there 0 times"),
        (run_sql("UPDATE messages SET parts = '[]' WHERE role = 'assistant'"), "not as it was"),
        (
            run_sql(
                "INSERT INTO messages SELECT id || 'x', owner_id, conversation_id, parent_id, role, parts, run_id, "
                "status, created_at FROM messages WHERE role = 'user'"
            ),
            "stands 2 times",
        ),
        (
            run_sql("UPDATE runs SET status = 'running', worker = 'other@1' WHERE id = (SELECT min(id) FROM runs)"),
            "stuck",
        ),
        (run_sql("UPDATE runs SET status = 'stopped'"), "status is not their run's"),
        (run_sql("UPDATE documents SET library_id = 'another'"), "ready and not in the index"),
        (run_sql("DELETE FROM documents"), "the index holds texts that no document has"),
        (claim("documents", "gone", ["o", "t", "zebra"]), "document gone is gone"),
        (claim("files", "gone", ["o", "0"]), "file gone"),
        (lambda ledger, db: ledger.deleted.append(db.execute("SELECT id FROM conversations").fetchone()[0]), "is back"),
    ],
)
async def test_what_is_lost_doubled_or_stuck_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Harm, said: str
) -> None:
    ledger = Ledger()
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", check_claims=False)
    async with Engine(settings, model=ScriptedModel(answer)) as engine:
        doing = Doing(engine, lambda what, one, of=None: ledger.note({"ack": what, "id": one, "of": of}), 1)
        await doing.send()
        await doing.reading()
        assert await Checking(engine, tmp_path / "home", ledger.as_dict(), tmp_path / "calls").all() == []
        monkeypatch.setattr("bench.kills.checking._SETTLED", 0.2)
        with closing(sqlite3.connect(tmp_path / "home" / "parlour.db", timeout=30)) as db:
            harm(ledger, db)
            db.commit()
            engine.runs.table.past.clear()  # what a restart would forget
        wrong = await Checking(engine, tmp_path / "home", ledger.as_dict(), tmp_path / "calls").all()
    assert any(said in one for one in wrong), wrong
