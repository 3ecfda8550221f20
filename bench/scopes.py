"""How often the rules see what a question needs of documents: a passage, a part, the whole, or only their names.

    python -m bench.scopes

Three lists have the questions, English and Chinese, each with what it needs. `scopes_once.txt` was asked once, when the
rules were ready. `scopes_plain.txt` has those that the rules were developed on. Of `scopes.txt`, which half a question
belongs to follows from its own letters: the first rules were developed on one half; what they missed in the other was
looked at when those for plain questions were written.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import process_time

from bench.figures import Figure, report
from core.rag.scope import scope_of, understood

QUESTIONS = Path(__file__).with_name("scopes.txt")
PLAIN = Path(__file__).with_name("scopes_plain.txt")
ONCE = Path(__file__).with_name("scopes_once.txt")
LEAST = 0.92
ROUNDS = 20


def questions(half: int) -> list[tuple[str, str]]:
    """What is needed and the question, of one half of `scopes.txt`: 0 to develop on, 1 to count."""
    return [(need, asked) for need, asked in listed(QUESTIONS) if zlib.crc32(asked.encode()) % 2 == half]


def listed(file: Path) -> list[tuple[str, str]]:
    """What is needed and the question, of a list."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return [(need, asked) for need, asked in (line.split(" ", 1) for line in lines)]


def accuracy(rows: Sequence[tuple[str, str]]) -> float:
    """The share of questions that are understood."""
    return sum(scope_of(asked).need == need for need, asked in rows) / len(rows)


def measured() -> Iterable[Figure]:
    """The accuracy of all lists, and what a question takes."""
    developed, held_out, plain, once = questions(0), questions(1), listed(PLAIN), listed(ONCE)
    what = f"what a question needs of documents, {len(once)} plain questions asked once"
    yield Figure(what, accuracy(once), LEAST, "", _wrong(once), at_least=True)
    what = f"the same, {len(plain)} plain questions developed on"
    yield Figure(what, accuracy(plain), LEAST, "", _wrong(plain), at_least=True)
    what = f"the same, {len(held_out)} questions of which only what was missed was looked at"
    beside = f"{_wrong(held_out)}; the half developed on, {len(developed)}: {accuracy(developed):.3f}"
    yield Figure(what, accuracy(held_out), LEAST, "", beside, at_least=True)
    began = process_time()
    for _ in range(ROUNDS):
        understood.cache_clear()
        for _, asked in held_out:
            scope_of(asked)
    each = (process_time() - began) / ROUNDS / len(held_out) * 1000
    yield Figure("the same, CPU a question", each, 5, "ms", "mean")


def _wrong(rows: Sequence[tuple[str, str]]) -> str:
    wrong = Counter((need, scope_of(asked).need) for need, asked in rows if scope_of(asked).need != need)
    told = ", ".join(f"{count} of {need} as {guess}" for (need, guess), count in wrong.most_common())
    return f"wrong: {told}" if told else "none wrong"


if __name__ == "__main__":
    report(measured())
