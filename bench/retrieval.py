"""How often the right passage is found: recall at 1, 5 and 10, and the time of a question.

    python -m bench.retrieval [--questions 1000] [--hybrid] [--keep] [set …]

`--keep` puts the rows that were measured into the table of `bench/RETRIEVAL.md`, and leaves all else there. The folder
that `BENCH_DATA` names (`../shared/data` by default) has `questions/<set>/passages.jsonl` and `questions.jsonl`. Every
set is measured twice: with each passage as one chunk, which is what published figures do, and cut as a library cuts by
default. `--hybrid` adds search by words and meaning, with each passage as one chunk; its vectors, a third of a second
for each passage, are kept by `bench/kept_vectors.py`.
Where `BENCH_XQUAD` names a folder with `xquad.en.json` and `xquad.zh.json`, questions in one language over passages in
the other are asked as well.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.kept_vectors import kept
from core.rag.library import Library

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions"
SETS = {"squad_dev": "SQuAD dev", "cmrc2018": "CMRC 2018"}
RESULTS = Path(__file__).with_name("RETRIEVAL.md")
HEAD = "| set | cut | questions | R@1 | R@5 | R@10 | MRR | question CPU ms p50 / p95 | build CPU s |"
CUTS: dict[str, dict[str, Any]] = {"whole": {"chunk_size": 4096}, "chunks": {}}
HYBRID: dict[str, dict[str, Any]] = {"whole, hybrid": {"chunk_size": 4096, "retrieval_type": "hybrid"}}
LONGEST_WAIT = 7200.0  # seconds

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Set:
    """Passages, questions about them, and what to call them."""

    title: str
    passages: Rows
    questions: Rows
    cuts: dict[str, dict[str, Any]]


def lines(path: Path) -> Rows:
    """The values of a file with one on each line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def xquad(folder: Path, language: str) -> tuple[Rows, Rows]:
    """Passages and questions in one language; the same ids in all of them."""
    passages: Rows = []
    questions: Rows = []
    articles = json.loads((folder / f"xquad.{language}.json").read_text(encoding="utf-8"))["data"]
    for paragraph in (one for article in articles for one in article["paragraphs"]):
        number = str(len(passages))
        passages.append({"id": number, "title": "", "text": paragraph["context"]})
        questions += [{"id": one["id"], "question": one["question"], "gold": [number]} for one in paragraph["qas"]]
    return passages, questions


def sets(*, hybrid: bool) -> list[Set]:
    """All sets that are here."""
    here = CUTS | HYBRID if hybrid else CUTS
    found = [
        Set(title, lines(DATA / name / "passages.jsonl"), lines(DATA / name / "questions.jsonl"), here)
        for name, title in SETS.items()
    ]
    folder = os.environ.get("BENCH_XQUAD")
    if folder and hybrid:
        english, chinese = (xquad(Path(folder), language) for language in ("en", "zh"))
        found += [
            Set("XQuAD, English questions, Chinese passages", chinese[0], english[1], HYBRID),
            Set("XQuAD, Chinese questions, English passages", english[0], chinese[1], HYBRID),
            Set("XQuAD, English", *english, CUTS | HYBRID),
            Set("XQuAD, Chinese", *chinese, CUTS | HYBRID),
        ]
    return found


def ranks(library: Library, ids: dict[str, str], questions: Rows) -> tuple[list[int], list[float]]:
    """For each question the place of the first right passage (0 where it is not among ten), and its milliseconds."""
    places: list[int] = []
    costs: list[float] = []
    for question in questions:
        start = time.process_time()
        found = library.find(question["question"], 30)
        costs.append((time.process_time() - start) * 1000)
        order = list(dict.fromkeys(ids[passage.document_id] for passage in found))[:10]
        places.append(next((place for place, one in enumerate(order, 1) if one in question["gold"]), 0))
    return places, costs


def measured(one: Set, cut: dict[str, Any], sample: int) -> str:
    """The figures of a set, cut like this."""
    questions = one.questions if sample >= len(one.questions) else random.Random(0).sample(one.questions, sample)
    with kept(), tempfile.TemporaryDirectory() as place, Library.open(place, cut) as library:
        start = time.process_time()
        ids = {library.add_text(text["text"], name=text["title"] or "text").id: text["id"] for text in one.passages}
        built = time.process_time() - start
        if not library.wait_for_vectors(LONGEST_WAIT):
            raise RuntimeError("The vectors were not made.")
        places, costs = ranks(library, ids, questions)
    recall = [sum(0 < place <= k for place in places) / len(places) for k in (1, 5, 10)]
    mean = statistics.fmean(1 / place if place else 0.0 for place in places)
    figures = " | ".join(f"{value:.3f}" for value in (*recall, mean))
    slow = statistics.quantiles(costs, n=20)[-1]
    return f"{len(questions):,} | {figures} | {statistics.median(costs):.2f} / {slow:.2f} | {built:.1f}"


def with_rows(text: str, rows: list[str]) -> str:
    """The same text, the table under `HEAD` with these rows in the place of those of the same sets and cuts."""
    before, _, after = text.partition(f"{HEAD}\n")
    there, _, rest = after.partition("\n\n")
    rule, *old = there.splitlines()
    known = {_named(row): row for row in [*old, *rows]}
    return f"{before}{HEAD}\n" + "\n".join([rule, *known.values()]) + f"\n\n{rest}"


def _named(row: str) -> tuple[str, ...]:
    return tuple(field.strip() for field in row.split("|")[1:3])


def main() -> None:
    """All sets, or those whose titles hold one of the words that were given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1000, help="how many of each set, chosen at random")
    parser.add_argument("--hybrid", action="store_true", help="search by meaning too")
    parser.add_argument("--keep", action="store_true", help="write the table to bench/RETRIEVAL.md")
    parser.add_argument("names", nargs="*", help="words of the titles of sets; all by default")
    options = parser.parse_args()
    rows: list[str] = []
    print(HEAD)
    for one in sets(hybrid=options.hybrid):
        if options.names and not any(name in one.title for name in options.names):
            continue
        for label, cut in one.cuts.items():
            rows.append(f"| {one.title} | {label} | {measured(one, cut, options.questions)} |")
            print(rows[-1], flush=True)
    if options.keep:
        RESULTS.write_text(with_rows(RESULTS.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
