"""How often it is seen what a question needs of documents: a passage, a part, the whole, or only their names.

    python -m bench.scopes

The lists have questions, English and Chinese, each with what it needs. `scopes_fresh.txt` was asked once, when rules
and weights were ready. To all others the weights are fitted (`python -m bench.scope_weights`), so what is measured on
them says only how well. The rules alone were asked `scopes_once.txt` once, and were developed on `scopes_plain.txt` and
on one half of `scopes.txt`: which half a question belongs to follows from its own letters.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import process_time

from bench.figures import Figure, report
from core.rag.scope import by_rules, looked_at, scope_of, understood

QUESTIONS = Path(__file__).with_name("scopes.txt")
PLAIN = Path(__file__).with_name("scopes_plain.txt")
PRACTICE = Path(__file__).with_name("scopes_practice.txt")
FRESH = Path(__file__).with_name("scopes_fresh.txt")
ONCE = Path(__file__).with_name("scopes_once.txt")
LEAST = 0.92
MOST_READ = 0.06
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
    if FRESH.exists():
        fresh = listed(FRESH)
        what = f"what a question needs of documents, {len(fresh)} questions asked once"
        yield Figure(what, accuracy(fresh), LEAST, "", _wrong(fresh), at_least=True)
        few = [row for row in fresh if row[0] == "passage"]
        costly = sum(scope_of(asked).need == "whole" for _, asked in few) / len(few)
        yield Figure("the same, passages taken for the whole", costly, MOST_READ, "", f"of {len(few)}")
    held_out, once = questions(1), listed(ONCE)
    what, rows = "what a question needs of documents, {} questions that weights are fitted to", listed(PRACTICE)
    yield Figure(what.format(len(rows)), accuracy(rows), LEAST, "", _wrong(rows), at_least=True)
    older = [*once, *listed(PLAIN), *listed(QUESTIONS)]
    alone = sum(by_rules(looked_at(asked)).need == need for need, asked in once) / len(once)
    beside = f"{_wrong(older)}; by rules alone, {len(once)} of them that were asked once: {alone:.3f}"
    yield Figure(f"the same, {len(older)} older ones", accuracy(older), LEAST, "", beside, at_least=True)
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
