"""Makes the means of questions that `core/rag/embedding/across.py` takes off, with the models of packages.

    BENCH_DATA=… [BENCH_XQUAD=…] python -m bench.question_means

The questions are drawn from SQuAD's and CMRC 2018's development parts, without those that XQuAD measures with.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from bench.retrieval import DATA, lines, xquad
from core.rag.embedding.across import MEANS, Script
from core.rag.embedding.local import LocalEmbedder
from core.rag.embedding.packaged import PACKAGES

QUESTIONS = 400
SETS: dict[Script, str] = {"Chinese": "cmrc2018", "other": "squad_dev"}


def main() -> None:
    """Write them to their file."""
    folder = os.environ.get("BENCH_XQUAD")
    measured = {one["id"] for one in xquad(Path(folder), "en")[1]} if folder else set[str]()
    drawn = random.Random(0)
    found: dict[str, dict[str, list[float]]] = {}
    for script, name in SETS.items():
        asked = [one["question"] for one in lines(DATA / name / "questions.jsonl") if one["id"] not in measured]
        asked = drawn.sample(asked, QUESTIONS)
        for package in PACKAGES:
            embedder = LocalEmbedder(package)
            mean = embedder.questions(asked).mean(axis=0)
            found.setdefault(embedder.model, {})[script] = [round(float(value), 4) for value in mean]
    rows = [f" {json.dumps(model)}: {json.dumps(means)}" for model, means in found.items()]
    MEANS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
