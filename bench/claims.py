"""How many false sentences the rules find, and how many true ones they call false: beside likeness alone.

    python -m bench.claims [sentences.jsonl]

Sentences about passages of `questions/` in the folder that `BENCH_DATA` names are put in other words, and made false in
one place (`bench/false_sentences.py`). A file in the form of WiCE (`claim`, `evidence`, `label`) is measured besides.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.false_sentences import Kind, Sentence, sentences
from bench.figures import Figure, report
from core.rag.claims.check import check_claims
from core.rag.claims.weighing import claims_of
from core.rag.document import Passage

PASSAGES = 150
TOGETHER = 8  # sentences of an article in a passage
LEAST, MOST = 0.62, 0.05


def flagged(one: Sentence, *, by_rules: bool) -> bool:
    """Whether a sentence is called unsupported."""
    if by_rules:
        return any(claim.verdict == "unsupported" for claim in check_claims(one.text, one.passages))
    passages = [Passage(text, 1.0, "", "") for text in one.passages]
    return any(claim.verdict == "unsupported" for claim in claims_of(one.text, passages, by_rules=False))


def shares(said: Iterable[Sentence], *, by_rules: bool) -> tuple[float, float]:
    """The shares of false sentences that are found, and of true ones that are called false."""
    found: list[bool] = []
    alarms: list[bool] = []
    for one in said:
        (alarms if one.kind == "true" else found).append(flagged(one, by_rules=by_rules))
    return sum(found) / len(found), sum(alarms) / len(alarms)


def measured(name: str, said: list[Sentence]) -> Iterable[Figure]:
    """Balanced accuracy and false alarms of both ways."""
    found, alarms = shares(said, by_rules=True)
    alike, alike_alarms = shares(said, by_rules=False)
    peer = f"likeness alone {(alike + 1 - alike_alarms) / 2:.3f}, false alarms {alike_alarms:.3f}"
    what = f"false sentences told from true ones, {name}"
    yield Figure(f"{what}: balanced accuracy", (found + 1 - alarms) / 2, LEAST, "", peer, at_least=True)
    yield Figure(f"{what}: false alarms", alarms, MOST, "", f"found {found:.3f} of the false ones")


def labelled(path: Path) -> list[Sentence]:
    """Sentences that people judged, with the articles they rest on."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    made: list[Sentence] = []
    for row in rows:
        lines: list[str] = row["evidence"]
        parts = tuple("\n".join(lines[at : at + TOGETHER]) for at in range(0, len(lines), TOGETHER))
        kind: Kind = "true" if row["label"] == "supported" else "name"
        made.append(Sentence(row["claim"], parts, kind))
    return made


def main() -> None:
    """Measure and print."""
    report(measured("English", sentences("en", PASSAGES, seed=5)))
    report(measured("Chinese", sentences("zh", PASSAGES, seed=5)))
    for path in map(Path, sys.argv[1:]):
        report(measured(path.stem, labelled(path)))


if __name__ == "__main__":
    main()
