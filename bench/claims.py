"""How many false sentences the rules find, and how many true ones they call false: beside likeness alone.

    python -m bench.claims [sentences.jsonl]

Sentences about passages of `questions/` in the folder that `BENCH_DATA` names are put in other words, and made false in
one place (`bench/false_sentences.py`). A file in the form of WiCE (`claim`, `evidence`, `label`) is measured besides.
Then how many conditions are noticed that answers leave out (`bench/omissions.py`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.false_sentences import Kind, Sentence, sentences
from bench.figures import Figure, report
from bench.omissions import Answer, answers
from core.rag.claims.check import check_claims
from core.rag.claims.omission import left_out
from core.rag.claims.weighing import claims_of
from core.rag.document import Passage

PASSAGES = 150
TOGETHER = 8  # sentences of an article in a passage
LEAST, MOST = 0.62, 0.05
ANSWERED = 600  # passages that answers are made from
NOTICED = 0.5


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


def noticed(said: Iterable[Answer]) -> dict[str, tuple[float, int]]:
    """By the kind of answer, the share of which something is told that it leaves out, and how many there are."""
    told: dict[str, list[bool]] = {}
    for one in said:
        passages = [Passage(text, 1.0, "", "", None) for text in one.passages]
        told.setdefault(one.kind, []).append(bool(left_out(one.text, passages)))
    return {kind: (sum(found) / len(found), len(found)) for kind, found in told.items()}


def measured_omissions(name: str, said: list[Answer]) -> Iterable[Figure]:
    """Conditions that are noticed, and what is told of answers that leave none out."""
    found = noticed(said)
    for kind, what in {"clause": "in the sentence", "beside": "in one beside it"}.items():
        share, count = found[kind]
        yield Figure(f"conditions {what} that are noticed, {name}", share, NOTICED, "", f"of {count}", at_least=True)
    for kind, what in {"told": "that tell the condition", "plain": "with nothing put beside them"}.items():
        share, count = found[kind]
        yield Figure(f"false alarms at answers {what}, {name}", share, MOST, "", f"of {count}")


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
    report(measured_omissions("English", answers("en", ANSWERED, seed=11)))
    report(measured_omissions("Chinese", answers("zh", ANSWERED, seed=11)))
    for path in map(Path, sys.argv[1:]):
        report(measured(path.stem, labelled(path)))


if __name__ == "__main__":
    main()
