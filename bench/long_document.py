"""A PDF of 300 pages: how soon it answers, what the next question costs, and what all of it costs.

    python -m bench.long_document

Processor time of this process and of its readers together. The first answer is measured by calling the reading off when
it came, so that its reader has ended and is counted.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

from bench.figures import Figure, report
from core.errors import DocumentError
from core.rag.document import ReadingProgress
from core.rag.library import Library

PAGES = 300
ROUNDS = 5
QUESTION = "Which river does the fox of chapter 3 jump over?"
WORDS = "The quick brown fox jumps over the lazy dog while the river runs to the sea."


def made(path: Path) -> None:
    """Left and right heads, a number on each page, a chapter every 25 pages, 45 lines of text on each."""
    import pymupdf

    document = pymupdf.open()
    for number in range(1, PAGES + 1):
        page = document.new_page(width=595, height=842)
        head = f"{number} A history of foxes" if number % 2 else f"Collected works {number}"
        page.insert_text((60, 40), head, fontsize=9)
        if number % 25 == 1:
            page.insert_text((60, 90), f"Chapter {number // 25 + 1}: on rivers", fontsize=18)
        page.insert_text((60, 120), [f"{number}.{line} {WORDS}" for line in range(45)], fontsize=10)
        page.insert_text((290, 820), str(number), fontsize=9)
    document.save(path, deflate=True)


def spent() -> float:
    """Seconds of processor time of this process and of its children that ended."""
    return sum(os.times()[:4])


def first_answer(path: Path) -> tuple[float, int]:
    """Seconds of processor time to the first answer, and the pages that could be found then."""
    over = threading.Event()
    seen: list[int] = []

    def look(said: ReadingProgress) -> None:
        if said.chunks and not seen and library.find(QUESTION):
            seen.append(said.pages)
            over.set()

    with tempfile.TemporaryDirectory() as folder, Library.open(folder) as library:
        began = spent()
        try:
            library.add(path, progress=look, cancelled=over)
        except DocumentError as error:
            if error.words_key != "document_cancelled":
                raise
        return spent() - began, seen[0]


def whole(path: Path) -> tuple[float, float]:
    """Seconds of processor time to read all, and milliseconds of a question after the first."""
    with tempfile.TemporaryDirectory() as folder, Library.open(folder) as library:
        began = spent()
        library.add(path)
        read = spent() - began
        library.find(QUESTION)
        costs: list[float] = []
        for number in range(50):
            began = time.process_time()
            library.find(f"{QUESTION} {number}")
            costs.append((time.process_time() - began) * 1000)
        return read, statistics.median(costs)


def main() -> None:
    """The medians of a few rounds, after one that does not count."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.pdf"
        made(path)
        firsts = [first_answer(path) for _ in range(ROUNDS + 1)][1:]
        all_of_it = [whole(path) for _ in range(2)]
    pages = statistics.median(one[1] for one in firsts)
    read = statistics.median(one[0] for one in all_of_it)
    what = f"a PDF of {PAGES} pages"
    said = f"{pages:.0f} pages can be found then; all of them are read after {read:.2f} s; `qwen-agent` 0.0.34: 18 s"
    report(
        [
            Figure(f"{what}, to the first answer, CPU", statistics.median(one[0] for one in firsts), 1.5, "s", said),
            Figure(
                f"{what}, the next question by words, CPU",
                statistics.median(one[1] for one in all_of_it),
                5,
                "ms",
                "`qwen-agent` 0.0.34: 3,200 ms",
            ),
        ]
    )


if __name__ == "__main__":
    main()
