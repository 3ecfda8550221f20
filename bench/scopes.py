"""How often the rules see what a question needs of documents: a passage, a part, the whole, or only their names.

    python -m bench.scopes

`scopes.txt` has the questions, English and Chinese, each with what it needs. Which half one belongs to follows from its
own letters: the rules were developed on one half, and the other is only counted.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import process_time

from bench.figures import Figure, report
from core.rag.scope import scope_of

QUESTIONS = Path(__file__).with_name("scopes.txt")
LEAST = 0.92
ROUNDS = 20


def questions(half: int) -> list[tuple[str, str]]:
    """What is needed and the question, of one half: 0 to develop on, 1 to count."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    rows = [tuple(line.split(" ", 1)) for line in lines if line and not line.startswith("#")]
    return [(need, asked) for need, asked in rows if zlib.crc32(asked.encode()) % 2 == half]


def accuracy(rows: Sequence[tuple[str, str]]) -> float:
    """The share of questions that are understood."""
    return sum(scope_of(asked).need == need for need, asked in rows) / len(rows)


def measured() -> Iterable[Figure]:
    """The accuracy of both halves, and what a question takes."""
    developed, held_out = questions(0), questions(1)
    wrong = Counter((need, scope_of(asked).need) for need, asked in held_out if scope_of(asked).need != need)
    told = ", ".join(f"{count} of {need} as {guess}" for (need, guess), count in wrong.most_common())
    beside = f"the half developed on, {len(developed)}: {accuracy(developed):.3f}; wrong: {told}"
    what = f"what a question needs of documents, {len(held_out)} questions held out"
    yield Figure(what, accuracy(held_out), LEAST, "", beside, at_least=True)
    began = process_time()
    for _ in range(ROUNDS):
        for _, asked in held_out:
            scope_of(asked)
    each = (process_time() - began) / ROUNDS / len(held_out) * 1000
    yield Figure("the same, CPU a question", each, 5, "ms", "mean")


if __name__ == "__main__":
    report(measured())
