"""The peer's search beside ours, in the same run: which passage comes first, and what a question costs.

    BENCH_PEER_PYTHON=… python -m bench.peer_retrieval [--questions 1000]

The peer `qwen-agent` searches by words and builds its index anew for each question, so it is asked two ways: its own
`sort_by_scores` for the time of a question, and, for many questions, the same functions with their index kept, which
gives the same scores. Both sides get the same passages, whole, and the same questions, drawn by lot. Then both read a
PDF of 300 pages and answer two questions on it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.long_document import QUESTION, first_answer, made, whole
from bench.retrieval import CUTS, DATA, SETS, lines, ranks
from core.rag.library import Library

_PROGRAM = """
import json, os, sys, time
asked = json.load(open(sys.argv[1], encoding="utf-8"))
os.chdir(asked["folder"])

from qwen_agent.tools.doc_parser import Chunk, Record
from qwen_agent.tools.search_tools import keyword_search as peer

def passages():
    from rank_bm25 import BM25Okapi
    ids = [one["id"] for one in asked["passages"]]
    chunks = [Chunk(content=one["text"], metadata={"source": one["id"], "chunk_id": 0}, token=1)
              for one in asked["passages"]]
    docs = [Record(url=chunk.metadata["source"], raw=[chunk], title="") for chunk in chunks]
    search = peer.KeywordSearch()
    costs = []
    for one in asked["questions"][:asked["timed"]]:
        began = time.process_time()
        search.sort_by_scores(one["question"], docs)
        costs.append(time.process_time() - began)
    index = BM25Okapi([peer.split_text_into_keywords(one["text"]) for one in asked["passages"]])
    places = []
    for one in asked["questions"]:
        words = peer.parse_keyword(one["question"])
        scores = index.get_scores(words) if words else [0.0] * len(ids)
        order = sorted(range(len(ids)), key=lambda at: -scores[at])[:10]
        right = [at for at, number in enumerate(order, 1) if ids[number] in one["gold"]]
        places.append(right[0] if right else 0)
    return {"places": places, "costs": costs}

def document():
    from qwen_agent.tools.retrieval import Retrieval
    tool, costs = Retrieval({"max_ref_token": 4000}), []
    for number in range(asked["timed"]):
        began = time.process_time()
        tool.call({"query": f"{asked['question']} {number}", "files": [asked["path"]]})
        costs.append(time.process_time() - began)
    return {"costs": costs}

print("SAID " + json.dumps({"passages": passages, "document": document}[asked["case"]]()))
"""


def peer(case: str, **asked: Any) -> dict[str, Any] | None:
    """What the peer says to a case; `None` where it is not there, or fails."""
    python = os.environ.get("BENCH_PEER_PYTHON")
    if not python:
        print("BENCH_PEER_PYTHON names no Python: only our side is measured.", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "asked.json"
        given.write_text(json.dumps({"case": case, "folder": folder, **asked}), encoding="utf-8")
        done = subprocess.run([python, "-c", _PROGRAM, str(given)], capture_output=True, text=True, check=False)
    said = [line[5:] for line in done.stdout.splitlines() if line.startswith("SAID ")]
    if not said:
        print(f"The peer failed: {done.stderr[-500:]}", file=sys.stderr)
        return None
    return json.loads(said[-1])


def row(title: str, who: str, places: list[int], costs: list[float]) -> str:
    """A row of the table; costs in milliseconds."""
    recall = [sum(0 < place <= k for place in places) / len(places) for k in (1, 5, 10)]
    figures = " | ".join(f"{value:.3f}" for value in recall)
    return f"| {title} | {who} | {len(places):,} | {figures} | {sorted(costs)[len(costs) // 2]:,.1f} |"


def compared(name: str, title: str, sample: int, timed: int) -> list[str]:
    """Both sides on one set."""
    passages = lines(DATA / name / "passages.jsonl")
    questions = random.Random(0).sample(lines(DATA / name / "questions.jsonl"), sample)
    with tempfile.TemporaryDirectory() as place, Library.open(place, CUTS["whole"]) as library:
        ids = {library.add_text(one["text"], name=one["title"] or "text").id: one["id"] for one in passages}
        places, costs = ranks(library, ids, questions)
    rows = [row(title, "Parlour, by words", places, costs)]
    asked = [{name: one[name] for name in ("question", "gold")} for one in questions]
    told = [{name: one[name] for name in ("id", "text")} for one in passages]
    theirs = peer("passages", passages=told, questions=asked, timed=timed)
    if theirs is not None:
        rows.append(row(title, "`qwen-agent`", theirs["places"], [cost * 1000 for cost in theirs["costs"]]))
    return rows


def long_document() -> None:
    """Both sides on a PDF of 300 pages: CPU to the first answer, and of the second."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.pdf"
        made(path)
        first, pages = first_answer(path)
        _, second = whole(path)
        theirs = peer("document", path=str(path), question=QUESTION, timed=2)
    print(f"300 pages, Parlour: first answer {first:.2f} s ({pages} pages), the next {second:.1f} ms", flush=True)
    if theirs is not None:
        print(f"300 pages, `qwen-agent`: {theirs['costs'][0]:.1f} s, the next {theirs['costs'][1] * 1000:,.0f} ms")


def main() -> None:
    """The sets, then the PDF."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1000, help="how many of each set, chosen at random")
    parser.add_argument("--timed", type=int, default=3, help="questions for which the peer builds its index anew")
    options = parser.parse_args()
    began = time.monotonic()
    print("| set | who | questions | R@1 | R@5 | R@10 | a question, CPU ms, median |\n|---|---|---|---|---|---|---|")
    for name, title in SETS.items():
        for one in compared(name, title, options.questions, options.timed):
            print(one, flush=True)
    long_document()
    print(f"({time.monotonic() - began:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
