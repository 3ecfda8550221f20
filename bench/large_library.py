"""A library of 100,000 chunks, asked by words: with its quick index and with SQLite's own.

    python -m bench.large_library

The chunks, of 110 tokens or so, are made of the sentences of SQuAD's passages, mixed by lot. They come from
`questions/squad_dev` in the folder that `BENCH_DATA` names (`../shared/data` by default); without it nothing is
measured.
Every figure comes from a process of its own.
"""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, report
from core.rag.library import Library
from core.rag.prose import sentence_spans
from core.rag.search import word_index

CHUNKS = 100_000
CONFIG = {"chunk_size": 128}
QUESTIONS = 500
DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions" / "squad_dev"
NEVER = 1 << 60


def lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines() if line]


def fill(folder: str) -> dict[str, float]:
    """Put documents into the library until it has enough chunks."""
    word_index.LARGE = NEVER
    lot = random.Random(0)
    sentences = [
        one["text"][start:end] for one in lines("passages.jsonl") for start, end in sentence_spans(one["text"])
    ]
    began, chunks, number = time.process_time(), 0, 0
    with Library.open(folder, CONFIG) as library:
        while chunks < CHUNKS:
            paragraphs = (" ".join(lot.choices(sentences, k=4)) for _ in range(1_000))
            chunks += library.add_text("\n\n".join(paragraphs), name=f"Volume {number}").chunks
            number += 1
    return {"chunks": chunks, "documents": number, "build": time.process_time() - began}


def ask(folder: str, *, quick: bool) -> dict[str, float]:
    """CPU milliseconds of a question, after those of getting ready."""
    word_index.LARGE = word_index.LARGE if quick else NEVER
    asked = [one["question"] for one in random.Random(0).sample(lines("questions.jsonl"), QUESTIONS)]
    costs: list[float] = []
    began = time.process_time()
    with Library.open(folder, CONFIG) as library:
        if not library.retriever.wait_for_words(600) and quick:
            raise RuntimeError("The quick index was not made.")
        ready = time.process_time() - began
        for question in asked:
            began = time.process_time()
            library.find(question, 5)
            costs.append((time.process_time() - began) * 1000)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    p95 = statistics.quantiles(costs, n=20)[-1]
    return {"ready": ready, "p50": statistics.median(costs), "p95": p95, "memory": most}


STEPS = {
    "fill": fill,
    "sqlite": lambda folder: ask(folder, quick=False),
    "quick": lambda folder: ask(folder, quick=True),
}


def alone(step: str, folder: str) -> dict[str, float]:
    """One step, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.large_library", step, folder], stdout=subprocess.PIPE, check=True
    )
    said: dict[str, float] = json.loads(done.stdout)
    print(f"   {step}: {', '.join(f'{name} {value:.3g}' for name, value in said.items())}", file=sys.stderr, flush=True)
    return said


def main() -> None:
    """Fill one library, and ask it three times: without the quick index, while that is made, and when it is there."""
    if not DATA.is_dir():
        print(f"There are no passages in {DATA}.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        made = alone("fill", folder)
        slow, building, quick = alone("sqlite", folder), alone("quick", folder), alone("quick", folder)
    what = f"{made['chunks']:,.0f} chunks, a question by words"
    both = (
        f"p50 {quick['p50']:.2f} ms; SQLite's index {slow['p50']:.1f} / {slow['p95']:.1f} ms; "
        f"the quick one is made in {building['ready']:.1f} s"
    )
    asking = f"asking {quick['memory']:.0f} MB, with SQLite's index {slow['memory']:.0f} MB"
    report(
        [
            Figure(f"{what}, p95 CPU", quick["p95"], 2, "ms", both),
            Figure(f"{what}, memory while the index is made", building["memory"], 300, "MB", asking),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        json.dump(STEPS[sys.argv[1]](sys.argv[2]), sys.stdout)
    else:
        main()
