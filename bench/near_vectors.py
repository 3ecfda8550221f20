"""A library of 100,000 vectors, asked by meaning: through its graph, and by comparing all of them.

    python -m bench.near_vectors

The vectors are made, not of texts: 2,000 topics, and what each passage says besides, 512 numbers each as those of the
smaller model. What a question costs to be made into a vector is not counted. Every figure comes from a process of its
own.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure, report

COUNT, SIZE, TOPICS, QUESTIONS = 100_000, 512, 2_000, 300
MODEL = "made"


class Made:
    """Gives the vector of a question that is a number."""

    model = MODEL
    at_once = 1

    def ready(self) -> bool:
        """It always is."""
        return True

    def questions(self, texts: Any) -> Any:
        """The vector of the question."""
        return vectors(len(texts), 10_000 + int(texts[0]))

    passages = questions

    def close(self) -> None:
        """Nothing is held."""


def vectors(count: int, seed: int) -> Any:
    """Vectors of length 1: of a topic and of what is said."""
    import numpy as np

    topics = np.random.default_rng(7).standard_normal((TOPICS, SIZE), np.float32)
    lot = np.random.default_rng(seed)
    rows = topics[lot.integers(0, TOPICS, count)] + 1.2 * lot.standard_normal((count, SIZE), np.float32)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)


def opened(folder: str, *, graph: bool) -> Any:
    """The vectors of the library in a folder."""
    from core.rag.index_file import IndexFile
    from core.rag.search.near_index import NearIndex
    from core.rag.search.stored_vectors import Vectors

    file = IndexFile(Path(folder) / "library.sqlite")
    return Vectors(file, Made(), graph=NearIndex(file, MODEL) if graph else None)


def fill(folder: str) -> dict[str, float]:
    """Put the vectors into a library."""
    import numpy as np

    from core.rag import records
    from core.rag.document import Chunk, Document
    from core.rag.search.word_table import WordTable

    file = opened(folder, graph=False).file
    WordTable(file)
    for at in range(0, COUNT, 10_000):
        rows = vectors(10_000, at).astype(np.float16)
        with file.writing() as db:
            chunks = [Chunk(f"passage {at + number}") for number in range(len(rows))]
            records.insert(db, Document(str(at), f"volume {at}", "text/plain", None, len(rows)), chunks, [])
            db.executemany(
                "INSERT INTO vectors (model, chunk_id, vector) VALUES (?, ?, ?)",
                ((MODEL, at + number + 1, row.tobytes()) for number, row in enumerate(rows)),
            )
    file.close()
    return {"vectors": COUNT}


def build(folder: str) -> dict[str, float]:
    """Make the graph."""
    vectors_here = opened(folder, graph=True)
    began = time.process_time()
    vectors_here.graph.fill(threading.Event())
    size = sum(path.stat().st_size for path in Path(folder).glob("library.near-*"))
    return {"seconds": time.process_time() - began, "file": size / 2**20}


def ask(folder: str, *, graph: bool) -> dict[str, Any]:
    """CPU milliseconds of a question after the first, what is found, and the most memory."""
    from core.rag.search.vector import VectorSearcher
    from core.rag.search.word_table import WordTable

    here = opened(folder, graph=graph)
    searcher = VectorSearcher(WordTable(here.file), [here])
    began = time.process_time()
    searcher.find("0", 10)
    first = time.process_time() - began
    costs: list[float] = []
    found: list[list[int]] = []
    for number in range(1, QUESTIONS + 1):
        asked = Made().questions([str(number)])
        here.embedder.questions = lambda _, asked=asked: asked
        began = time.process_time()
        found.append([chunk for chunk, _ in searcher.find(str(number), 10)])
        costs.append((time.process_time() - began) * 1000)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    p95 = statistics.quantiles(costs, n=20)[-1]
    return {"first": first, "p50": statistics.median(costs), "p95": p95, "memory": memory, "found": found}


STEPS = {
    "fill": fill,
    "build": build,
    "all": lambda folder: ask(folder, graph=False),
    "graph": lambda folder: ask(folder, graph=True),
}


def alone(step: str, folder: str) -> dict[str, Any]:
    """One step, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.near_vectors", step, folder], stdout=subprocess.PIPE, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout)
    told = ", ".join(f"{name} {value:.3g}" for name, value in said.items() if name != "found")
    print(f"   {step}: {told}", file=sys.stderr, flush=True)
    return said


def main() -> None:
    """Compare all first, then make the graph and ask through it."""
    with tempfile.TemporaryDirectory() as folder:
        alone("fill", folder)
        exact = alone("all", folder)
        made = alone("build", folder)
        near = alone("graph", folder)
    pairs = list(zip(exact["found"], near["found"], strict=True))
    recall = sum(len({*one} & {*other}) for one, other in pairs) / (10 * len(pairs))
    what = f"{COUNT:,} vectors of {SIZE} numbers, a question by meaning"
    told = (
        f"p50 {near['p50']:.2f} ms; NumPy compares all in {exact['p50']:.1f} / {exact['p95']:.1f} ms; "
        f"the graph is made in {made['seconds']:.0f} s of CPU, {made['file']:.0f} MB on disk"
    )
    memory = f"NumPy {exact['memory']:.0f} MB; the first question {near['first']:.2f} s, NumPy {exact['first']:.2f} s"
    report(
        [
            Figure(f"{what}, p95 CPU", near["p95"], 10, "ms", told),
            Figure(f"{what}, memory", near["memory"], 300, "MB", memory),
            Figure(f"{what}, of the ten best of comparing all", recall, 0.99, "", "", at_least=True),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        json.dump(STEPS[sys.argv[1]](sys.argv[2]), sys.stdout)
    else:
        main()
