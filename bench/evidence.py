"""How exactly a found passage is marked on its page: the marks against where the typesetter put the lines.

    python -m bench.evidence [kind …]

Documents of many kinds are typeset from the passages of `questions/` in the folder that `BENCH_DATA` names, and read
into a library. Every chunk is compared with the printed lines that hold its words: the common area of both over the
area of both together (IoU), the mean over all chunks of a kind. Each sentence is cited as well: its mark must hold all
of its words, and no more than two beside them. What a true place is, `bench/typeset.py` says.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import Figure, report
from bench.typeset import (
    Printed,
    Script,
    Sheet,
    Text,
    Typesetter,
    misplaced,
    overlap,
    scanned,
    set_in_columns,
    set_table,
    true_lines,
)
from core.rag.library import Library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.rag.document import Passage

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions"
LEAST = 0.9
READERS = ("pymupdf", "pypdfium2")


def texts(name: str, count: int) -> list[Text]:
    """Passages of a set, drawn by lot."""
    found = [json.loads(line) for line in (DATA / name / "passages.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(one["title"].replace("_", " "), one["text"]) for one in random.Random(3).sample(found, count)]


def _prose(sheets: Sequence[Sheet] = (), columns: int = 1, count: int = 40, script: Script = "tiro") -> Typesetter:
    setter = Typesetter(script)
    set_in_columns(setter, texts("squad_dev", count), sheets or [Sheet()], columns)
    return setter


def _chinese(columns: int = 1, count: int = 24) -> Typesetter:
    setter = Typesetter("cjk", leading=1.6)
    set_in_columns(setter, texts("cmrc2018", count), [Sheet()], columns)
    return setter


def _table() -> Typesetter:
    setter = Typesetter()
    names = [
        word for _, text in texts("squad_dev", 40) for word in text.split() if word.isalpha() and 4 < len(word) < 12
    ]
    set_table(setter, names, 140)
    return setter


_SIZES = [Sheet(), Sheet(420, 595), Sheet(842, 595), Sheet(612, 792)]
_UPRIGHT = [Sheet(turned=90), Sheet(turned=180), Sheet(turned=270)]
_LYING = [Sheet(turned=90, lying=True), Sheet(turned=180, lying=True), Sheet(turned=270, lying=True)]
_ON_THEIR_HEAD = [Sheet(turned=180, lying=True)]
_CROPPED = [Sheet(crop=(40, 50, 560, 800)), Sheet(crop=(20, 30, 595, 842))]

KINDS: dict[str, Callable[[], Typesetter]] = {
    "prose": _prose,
    "Chinese": _chinese,
    "turned pages": lambda: _prose(_UPRIGHT),
    "pages lying on their side": lambda: _prose(_LYING),
    "mixed page sizes": lambda: _prose(_SIZES),
    "crop boxes": lambda: _prose(_CROPPED),
    "two columns": lambda: _prose(columns=2),
    "two columns, drawn across": lambda: _prose(columns=2),
    "two columns, on their head": lambda: _prose(_ON_THEIR_HEAD, columns=2),
    "two columns on their side, drawn across": lambda: _prose(_LYING, columns=2),
    "two columns, Chinese": lambda: _chinese(columns=2),
    "a table over pages": _table,
    "scans, Times": lambda: _prose(count=9),
    "scans, Helvetica": lambda: _prose(count=9, script="helv"),
    "scans, Chinese": lambda: _chinese(count=6),
    "scans, turned": lambda: _prose(_UPRIGHT, count=9),
}


def overlaps(library: Library, printed: Sequence[Printed]) -> Iterator[tuple[Passage, float]]:
    """Every chunk of the only document in a library, with its overlap."""
    (document,) = library.documents()
    for passage in library.find("", document.chunks, "front_page"):
        true = true_lines(passage, printed)
        yield passage, overlap(passage.rectangles, [one.place for one in true])


def measured(kind: str, reader: str, *, show: bool = False) -> tuple[list[float], list[bool]]:
    """The overlaps of all chunks of one kind, and of each sentence whether its mark is misplaced."""
    with tempfile.TemporaryDirectory() as folder:
        setter = KINDS[kind]()
        path, scan = Path(folder) / "typeset.pdf", Path(folder) / "scan.pdf"
        setter.save(path, across="across" in kind)
        if "scan" in kind:
            scanned(path, scan)
            path = scan
        with Library.open(Path(folder) / "library", {"pdf_reader": reader}) as library:
            library.add(path)
            found = list(overlaps(library, setter.printed))
            (document,) = library.documents()
            there = {one.page: library.pages.content(document.id, one.page) for one, _ in found}
            wrong = [
                is_wrong
                for one, _ in found
                for is_wrong in misplaced(one, there[one.page].blocks, there[one.page].letters, setter.printed)
            ]
        if show:
            for passage, value in sorted(found, key=lambda one: one[1])[:4]:
                print(round(value, 3), passage.page, passage.text[:70], passage.rectangles[:3], file=sys.stderr)
                true = true_lines(passage, setter.printed)
                print("     ", len(true), [tuple(round(x, 1) for x in one.place) for one in true][:3], file=sys.stderr)
    return [value for _, value in found], wrong


def main() -> None:
    """Every kind, with each reader."""
    if not DATA.is_dir():
        print(f"There are no passages in {DATA}.", file=sys.stderr)
        return
    asked = sys.argv[1:]
    wrong: dict[str, list[bool]] = {"printed": [], "scanned": []}
    for kind in asked or KINDS:
        both = {reader: measured(kind, reader, show=bool(asked)) for reader in _readers(kind)}
        found = {reader: overlaps for reader, (overlaps, _) in both.items()}
        wrong["scanned" if "scan" in kind else "printed"] += [one for _, judged in both.values() for one in judged]
        beside = "; ".join(
            f"`{reader}` {len(values)} chunks, mean {statistics.fmean(values):.3f}, least {min(values):.2f}"
            for reader, values in found.items()
        )
        mean = statistics.fmean(found[READERS[0]])
        report([Figure(f"marks on the page, {kind}: mean overlap", mean, LEAST, "", beside, at_least=True)])
    for how, judged in wrong.items():
        if judged:
            what = f"cited sentences whose mark leaves out a word or reaches over others, {how}"
            report([Figure(what, sum(judged), 0, "", f"{len(judged)} sentences of all kinds, both readers")])


def _readers(kind: str) -> tuple[str, ...]:
    return READERS[:1] if "scan" in kind else READERS  # in scans both read the same picture


if __name__ == "__main__":
    main()
