"""How often the answer stands in the passages that fit before a model: 2,000 characters of them.

    python -m bench.budget

The articles of SQuAD (`questions/squad_dev` in the folder that `BENCH_DATA` names) are put together from their
paragraphs and cut as a library cuts. Of what a question finds, by words, the first passages are taken until there are
so many characters, the last one cut off where they end; they must hold the answer, and in the right article.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.figures import Figure, report
from core.rag.library import Library

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions" / "squad_dev"
GOALS = {2_000: 0.875, 4_000: 0.938, 8_000: 0.96}
QUESTIONS = 2_000
_LOOKED_AT = 30


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines() if line]


def found_in(library: Library, question: dict[str, Any], articles: set[str]) -> list[bool]:
    """Whether the answer stands in the first characters, for each budget."""
    passages = library.find(question["question"], _LOOKED_AT)
    said: list[bool] = []
    for budget in GOALS:
        left, is_there = budget, False
        for passage in passages:
            text = passage.text[:left]
            left -= len(text)
            is_there = is_there or (
                passage.document in articles and any(answer and answer in text for answer in question["answers"])
            )
        said.append(is_there)
    return said


def main() -> None:
    """All articles in one library."""
    if not DATA.is_dir():
        print(f"There are no questions in {DATA}.", file=sys.stderr)
        return
    passages = lines("passages.jsonl")
    title_of = {one["id"]: one["title"] for one in passages}
    articles: dict[str, list[str]] = {}
    for one in passages:
        articles.setdefault(one["title"], []).append(one["text"].replace("\n", " "))
    asked = random.Random(0).sample(lines("questions.jsonl"), QUESTIONS)
    with tempfile.TemporaryDirectory() as folder, Library.open(folder) as library:
        for title, paragraphs in articles.items():
            library.add_text("\n\n".join(paragraphs), name=title)
        said = [found_in(library, one, {title_of[gold] for gold in one["gold"]}) for one in asked]
    told = f"{len(articles)} articles, {QUESTIONS:,} questions, by words"
    report(
        Figure(
            f"the answer stands in {budget:,} characters",
            sum(one[at] for one in said) / len(said),
            goal,
            "",
            told,
            at_least=True,
        )
        for at, (budget, goal) in enumerate(GOALS.items())
    )


if __name__ == "__main__":
    main()
