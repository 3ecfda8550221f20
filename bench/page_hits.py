"""How often the page with the answer is found: questions over typeset PDFs, whose every answer has a known page.

    python -m bench.page_hits

Articles of SQuAD and passages of CMRC (`questions/` in the folder that `BENCH_DATA` names) are typeset into PDFs of
five pages or so; all of them go into one library. The page of an answer is where the typesetter put its line. Search
is asked for passages, and their pages are counted, each once. Search by meaning takes its vectors from
`bench/kept_vectors.py`: the first run makes them, which takes a minute or two.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure, report
from bench.kept_vectors import kept
from bench.typeset import Script, Sheet, Typesetter, set_in_columns
from core.rag.config import RetrievalType
from core.rag.library import Library

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions"
GOALS: dict[RetrievalType, tuple[float, float]] = {"keyword": (0.89, 0.97), "hybrid": (0.92, 0.98)}
FILES, PASSAGES = 12, 18  # of English; each file has so many passages
CHINESE_FILES, CHINESE_PASSAGES = 4, 22
COSTS: dict[RetrievalType, float] = {"keyword": 5, "hybrid": 30}  # milliseconds
_LOOKED_AT = 20
_TIMED = 60
_SPACE = re.compile(r"\s+")

Pages = set[tuple[str, int]]  # the file's name, and the page


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the pages that say its answer, and the answers that are right."""

    question: str
    pages: Pages
    answers: tuple[str, ...] = ()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def articles(name: str, files: int, length: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """The names of files, and the passages of each: of one article, or, where these are short, of several."""
    by_title: dict[str, list[dict[str, Any]]] = {}
    for one in lines(DATA / name / "passages.jsonl"):
        by_title.setdefault(one["title"], []).append(one)
    lot = random.Random(7)
    long = [title for title, passages in by_title.items() if len(passages) >= length]
    if len(long) >= files:
        return [(title, by_title[title][:length]) for title in lot.sample(sorted(long), files)]
    every = [one for passages in by_title.values() for one in passages]
    some = lot.sample(every, files * length)
    return [(f"volume {at + 1}", some[at * length : (at + 1) * length]) for at in range(files)]


def typeset(folder: Path, name: str, files: int, length: int, script: Script) -> list[Asked]:
    """Write the files; the questions about them."""
    where: dict[str, tuple[str, list[tuple[str, int]]]] = {}
    for title, passages in articles(name, files, length):
        setter = Typesetter(script)
        heads = [title.replace("_", " "), *[""] * (len(passages) - 1)]
        if title.startswith("volume"):
            heads = [one["title"] for one in passages]
        set_lines = set_in_columns(
            setter, [(head, one["text"]) for head, one in zip(heads, passages, strict=True)], [Sheet()]
        )
        file = f"{title}.pdf".replace("/", " ")
        setter.save(folder / file)
        for one, printed in zip(passages, set_lines, strict=True):
            where[one["id"]] = (file, [(_SPACE.sub("", line.text), line.page) for line in printed])
    asked: list[Asked] = []
    for one in lines(DATA / name / "questions.jsonl"):
        pages = {
            page
            for gold in one["gold"]
            if gold in where
            for answer in one["answers"]
            for page in ((where[gold][0], found) for found in _pages(where[gold][1], answer))
        }
        if pages:
            asked.append(Asked(one["question"], pages, tuple(one["answers"])))
    return asked


def _pages(printed: list[tuple[str, int]], answer: str) -> set[int]:
    """The pages on which a passage says the answer."""
    answer = _SPACE.sub("", answer)
    text = "".join(line for line, _ in printed)
    page_of = [page for line, page in printed for _ in line]
    return {page_of[found.start()] for found in re.finditer(re.escape(answer), text)} if answer else set()


def hits(library: Library, asked: list[Asked], kind: RetrievalType, *, show: bool = False) -> list[float]:
    """The share of questions whose page is the first one found, one of three, one of five."""
    places: list[int] = []
    for one in asked:
        found = library.find(one.question, _LOOKED_AT, kind)
        order = list(dict.fromkeys((passage.document, passage.page) for passage in found))
        places.append(next((at for at, page in enumerate(order, 1) if page in one.pages), 99))
        if show and places[-1] > 1:
            print(places[-1], one.question, one.pages, order[:2], file=sys.stderr)
    return [sum(place <= k for place in places) / len(places) for k in (1, 3, 5)]


def main() -> None:
    """Both languages, each in a library of its own."""
    if not DATA.is_dir():
        print(f"There are no questions in {DATA}.", file=sys.stderr)
        return
    sets: tuple[tuple[str, str, int, int, Script], ...] = (
        ("English", "squad_dev", FILES, PASSAGES, "tiro"),
        ("Chinese", "cmrc2018", CHINESE_FILES, CHINESE_PASSAGES, "cjk"),
    )
    kinds: list[RetrievalType] = [kind for kind in GOALS if kind in sys.argv[1:] or not sys.argv[1:]]
    for language, name, files, length, script in sets:
        with tempfile.TemporaryDirectory() as place, kept() as models:
            folder = Path(place)
            asked = typeset(folder, name, files, length, script)
            with Library.open(folder / "library", {"retrieval_type": kinds[-1]}) as library:
                added = [library.add(path) for path in sorted(folder.glob("*.pdf"))]
                pages = sum(one.pages or 0 for one in added)
                for kind in kinds:
                    library.find("anything", 1, kind)  # from here on it makes vectors, if it needs them
                    if not library.wait_for_vectors(3600):
                        raise RuntimeError("The vectors were not made.")
                    first, three, five = hits(library, asked, kind, show="show" in sys.argv)
                    of = f"{len(asked):,} questions, {files} PDFs of {pages} pages, {language}; among five {five:.3f}"
                    what = f"the page with the answer, {language}, {kind}"
                    report(
                        [
                            Figure(f"{what}, found first", first, GOALS[kind][0], "", of, at_least=True),
                            Figure(f"{what}, among three", three, GOALS[kind][1], "", "", at_least=True),
                        ]
                    )
                for model in models.values():
                    model.remembers_questions = False
                for kind in kinds:
                    _report_cost(library, asked, kind, f"{language}, {kind}")


def _report_cost(library: Library, asked: list[Asked], kind: RetrievalType, what: str) -> None:
    costs: list[float] = []
    for one in random.Random(2).sample(asked, _TIMED):
        began = time.process_time()
        library.find(one.question, 5, kind)
        costs.append((time.process_time() - began) * 1000)
    middle, slow = statistics.median(costs), statistics.quantiles(costs, n=20)[-1]
    told = f"p95 {slow:.1f} ms; `qwen-agent` 0.0.34: 3,200 ms"
    report([Figure(f"the next question over these PDFs, {what}, p50 CPU", middle, COSTS[kind], "ms", told)])


if __name__ == "__main__":
    main()
