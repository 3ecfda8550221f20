"""How often the right passage is found: recall at 1, 5 and 10, and the time of a question.

    python -m bench.retrieval [--data ../shared/data] [--questions 1000] [--hybrid] [--keep]

`--keep` writes the table to `bench/RETRIEVAL.md`. The data folder holds `questions/<set>/passages.jsonl` and
`questions.jsonl`. Every set is measured twice: with each passage as one chunk, which is what published figures do, and
cut as a library cuts by default. `--hybrid` adds search by words and meaning, with each passage as one chunk: its
vectors take a fifth of a second for each passage, beside the build time that is shown.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from core.rag.library import Library

SETS = {"squad_dev": "SQuAD dev", "cmrc2018": "CMRC 2018"}
RESULTS = Path(__file__).with_name("RETRIEVAL.md")
TOLD = (
    "`python -m bench.retrieval --hybrid --keep`: search through `Library`, 30 chunks a question. "
    "Beside it stand Qwen-Agent's keyword search with its index kept, 1,000 questions: "
    "SQuAD .788 / .938 / .957 / .850, CMRC .957 / .982 / .985 / .969."
)
CUTS: dict[str, dict[str, Any]] = {"whole": {"chunk_size": 4096}, "chunks": {}}
HYBRID: dict[str, dict[str, Any]] = {"whole, hybrid": {"chunk_size": 4096, "retrieval_type": "hybrid"}}
LONGEST_WAIT = 3600.0  # seconds


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def filled(library: Library, passages: list[dict[str, Any]]) -> dict[str, str]:
    """Document id to passage id."""
    return {library.add_text(one["text"], name=one["title"] or "text").id: one["id"] for one in passages}


def ranks(library: Library, ids: dict[str, str], questions: list[dict[str, Any]]) -> tuple[list[int], list[float]]:
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


def measured(folder: Path, cut: dict[str, Any], sample: int) -> str:
    questions = lines(folder / "questions.jsonl")
    if sample < len(questions):
        questions = random.Random(0).sample(questions, sample)
    with tempfile.TemporaryDirectory() as place, Library.open(place, cut) as library:
        start = time.process_time()
        ids = filled(library, lines(folder / "passages.jsonl"))
        built = time.process_time() - start
        if not library.wait_for_vectors(LONGEST_WAIT):
            raise RuntimeError("The vectors were not made.")
        places, costs = ranks(library, ids, questions)
    recall = [sum(0 < place <= k for place in places) / len(places) for k in (1, 5, 10)]
    mean = statistics.fmean(1 / place if place else 0.0 for place in places)
    slow = statistics.quantiles(costs, n=20)[-1]
    figures = " | ".join(f"{one:.3f}" for one in (*recall, mean))
    return f"{figures} | {statistics.median(costs):.2f} / {slow:.2f} | {built:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--questions", type=int, default=1000, help="how many of each set, chosen at random")
    parser.add_argument("--hybrid", action="store_true", help="search by meaning too")
    parser.add_argument("--keep", action="store_true", help="write the table to bench/RETRIEVAL.md")
    options = parser.parse_args()
    table = [
        "| set | cut | R@1 | R@5 | R@10 | MRR | question CPU ms p50 / p95 | build CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, title in SETS.items():
        for label, cut in (CUTS | HYBRID if options.hybrid else CUTS).items():
            figures = measured(options.data / "questions" / name, cut, options.questions)
            table.append(f"| {title} | {label} | {figures} |")
            print(table[-1], flush=True)
    if options.keep:
        asked = "all questions" if options.questions > 20_000 else f"{options.questions:,} questions of each set"
        RESULTS.write_text("\n".join(["# Retrieval", "", f"{TOLD} Asked: {asked}.", "", *table, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
