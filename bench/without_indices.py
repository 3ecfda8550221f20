"""What a question by words and meaning costs among 100,000 passages without the quick indices.

    python -m bench.without_indices

SQLite's own index finds the words, and NumPy compares the question's vector with all of them: what `tantivy` and
`usearch` are there to save. The vectors are compared in half precision, as they are stored, and in full precision,
which takes twice the memory. It is made of steps of `bench.large_library` and `bench.near_vectors`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time

from bench import large_library, near_vectors
from bench.figures import Figure, report

WORTH_IT = 50  # ms of CPU: above it the quick indices stay
QUESTIONS, ROWS_AT_ONCE = 100, 4096


def compare_halves() -> dict[str, float]:
    """CPU milliseconds of comparing a question with a matrix in half precision, a block of rows at a time."""
    import numpy as np

    rows = near_vectors.vectors(near_vectors.COUNT, 0).astype(np.float16)
    costs: list[float] = []
    for number in range(QUESTIONS):
        asked = near_vectors.vectors(1, 10_000 + number)[0]
        began = time.process_time()
        for at in range(0, len(rows), ROWS_AT_ONCE):
            np.dot(rows[at : at + ROWS_AT_ONCE].astype(np.float32), asked)
        costs.append((time.process_time() - began) * 1000)
    return {"p50": statistics.median(costs), "p95": statistics.quantiles(costs, n=20)[-1]}


def main() -> None:
    """Ask both; making the question's vector is not counted."""
    if not large_library.DATA.is_dir():
        print(f"There are no passages in {large_library.DATA}.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as words, tempfile.TemporaryDirectory() as vectors:
        large_library.alone("fill", words)
        by_words = large_library.alone("sqlite", words)
        near_vectors.alone("fill", vectors)
        full = near_vectors.alone("all", vectors)
    command = [sys.executable, "-m", "bench.without_indices", "halves"]
    halves = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    told = "; ".join(
        f"{name} p50 {one['p50']:.1f}, p95 {one['p95']:.1f} ms"
        for name, one in (("SQLite", by_words), ("NumPy in half precision", halves), ("in full", full))
    )
    what = "100,000 passages, a question by words and meaning without quick indices, p95 CPU of both"
    said = f"{told}, with {full['memory']:.0f} MB; both in full {by_words['p95'] + full['p95']:.1f} ms"
    report([Figure(what, by_words["p95"] + halves["p95"], WORTH_IT, "ms", said, at_least=True)])


if __name__ == "__main__":
    if sys.argv[1:] == ["halves"]:
        json.dump(compare_halves(), sys.stdout)
    else:
        main()
