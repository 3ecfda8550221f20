"""Real documents beside reference Markdown that another good parser made of them.

    python -m bench.real_documents [name …]
    python -m bench.real_documents --tables

From `documents/` in the folder that `BENCH_DATA` names: every file is read or says why not; of those with a reference
beside them (`<name>.gt.md`) it is measured how much of its words come in the same order (the longest common
subsequence over the words of the reference), and how many rows of its tables are found as one line with their fields
in order. `--tables` compares our table finder with PyMuPDF's own on those of them that are PDFs with tables.
"""

from __future__ import annotations

import difflib
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.figures import Figure, report
from core.errors import DocumentError
from core.rag.document import Block
from core.rag.library import Library
from core.rag.parsers.catalog import HEAD, PARSER_REGISTRY, parser_for

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "documents"
_WORD = re.compile(r"[^\W_]+")
_MARKUP = re.compile(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|&\w+;")
_ORDER, _ROWS = 0.92, 0.6


def words(text: str) -> list[str]:
    """The words, without markup; Chinese characters one by one."""
    return [
        word for found in _WORD.findall(text.casefold()) for word in (found if "一" <= found[0] <= "鿿" else [found])
    ]


def common(first: list[str], second: list[str]) -> int:
    """The length of the longest common subsequence, by rows of bits (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for at, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << at
    full = (1 << len(first)) - 1
    row = full
    for word in second:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & full
    return len(first) - row.bit_count()


def rows_of(markdown: str) -> list[list[str]]:
    """The rows of tables, each as its words."""
    found = [line for line in markdown.splitlines() if line.count("|") > 1 and line.strip().startswith("|")]
    rows = [words(line) for line in found if not re.fullmatch(r"[|\s:-]+", line.strip())]
    return [row for row in rows if row]


def blocks_of(path: Path) -> list[Block]:
    """What its parser gives, in reading order."""
    with path.open("rb") as stream:
        parser, _ = parser_for(path.name, stream.read(HEAD), "pymupdf")
    return [one for one in PARSER_REGISTRY[parser]().parse(path, path.name) if isinstance(one, Block)]


def compared(path: Path, *, show: bool = False) -> tuple[float, float | None, int]:
    """The share of the reference's words in the same order, of its tables' rows found, and how many these are."""
    reference = path.with_name(f"{path.stem}.gt.md").read_text(encoding="utf-8")
    blocks = blocks_of(path)
    true = words(_MARKUP.sub(" ", reference))
    ours = words("\n".join(block.text for block in blocks))
    lines = {" ".join(words(line)) for block in blocks for line in block.text.splitlines()}
    rows = rows_of(_MARKUP.sub(" ", reference))
    found = [any(" ".join(row) in line for line in lines) for row in rows]
    if show:
        for line in difflib.unified_diff(true, ours, lineterm="", n=1):
            print(line, file=sys.stderr)
        for row, is_found in zip(rows, found, strict=True):
            print("" if is_found else "MISSED", row, file=sys.stderr)
    return common(true, ours) / max(1, len(true)), statistics.fmean(found) if found else None, len(found)


def lines_of_pymupdf(path: Path, strategy: str) -> set[str]:
    """The rows of all tables that PyMuPDF's `find_tables` gives, each as its words."""
    import pymupdf

    with pymupdf.open(path) as document:
        finders = [page.find_tables(strategy=strategy) for page in document]
        rows = [row for finder in finders if finder for table in finder.tables for row in table.extract()]
    return {" ".join(words(" ".join(cell or "" for cell in row))) for row in rows}


def lines_of_ours(path: Path) -> set[str]:
    """The lines of the text that our parser gives."""
    return {" ".join(words(line)) for block in blocks_of(path) for line in block.text.splitlines()}


FINDERS: dict[str, Callable[[Path], set[str]]] = {
    "ours, the whole parser": lines_of_ours,
    "PyMuPDF's by ruling lines": lambda path: lines_of_pymupdf(path, "lines"),
    "PyMuPDF's by text": lambda path: lines_of_pymupdf(path, "text"),
}


def compare_tables() -> None:
    """Print how many rows each finder gives whole, and its CPU (the least of three)."""
    for reference in sorted(DATA.glob("*.gt.md")):
        path = reference.with_name(f"{reference.name.removesuffix('.gt.md')}.pdf")
        rows = [" ".join(row) for row in rows_of(_MARKUP.sub(" ", reference.read_text(encoding="utf-8")))]
        if not rows or not path.is_file():
            continue
        for name, finder in FINDERS.items():
            costs: list[float] = []
            lines: set[str] = set()
            for _ in range(3):
                began = time.process_time()
                lines = finder(path)
                costs.append(time.process_time() - began)
            found = sum(any(row in line for line in lines) for row in rows)
            print(f"{path.name}, {name}: {found} of {len(rows)} rows, {min(costs):.2f} s of CPU", flush=True)


def refusals() -> tuple[int, list[str]]:
    """How many files there are, and what was said of those that could not be read."""
    said: list[str] = []
    files = sorted(path for path in DATA.iterdir() if not path.name.endswith(".gt.md"))
    with tempfile.TemporaryDirectory() as folder, Library.open(folder) as library:
        for path in files:
            began = time.perf_counter()
            try:
                document = library.add(path)
                print(
                    f"   {path.name}: {document.chunks} chunks {document.note} {time.perf_counter() - began:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
            except DocumentError as error:
                said.append(f"{path.name}: {error}")
    return len(files), said


def main() -> None:
    """Every document that has a reference; then all of them."""
    if not DATA.is_dir():
        print(f"There are no documents in {DATA}.", file=sys.stderr)
        return
    chosen = sys.argv[1:]
    if chosen == ["--tables"]:
        compare_tables()
        return
    orders: dict[str, float] = {}
    rows: dict[str, float] = {}
    for reference in sorted(DATA.glob("*.gt.md")):
        stem = reference.name.removesuffix(".gt.md")
        path = next(one for one in DATA.glob(f"{stem}.*") if one != reference)
        if chosen and not any(name in stem for name in chosen):
            continue
        order, share, count = compared(path, show=bool(chosen))
        orders[path.name] = order
        if share is not None and path.suffix == ".pdf":  # the others have no ruling lines
            rows[path.name] = share
        told = f"{share:.2f} of {count} rows" if share is not None else "no tables"
        print(f"   {path.name}: order {order:.3f}, {told}", file=sys.stderr, flush=True)
    if chosen:
        return
    count, said = refusals()
    beside = "; ".join(said) or "`qwen-agent` .873 in order, .41 of the rows, over these and others"
    report(
        [
            Figure(
                "real documents, words in order, mean", statistics.fmean(orders.values()), _ORDER, "", at_least=True
            ),
            Figure("real documents, words in order, worst", *_worst(orders), at_least=True),
            Figure("real PDFs, table rows found, worst", *_worst(rows, _ROWS), at_least=True),
            Figure(f"real documents, not read of {count}", len(said), 0, "", beside),
        ]
    )


def _worst(found: dict[str, float], goal: float = _ORDER) -> tuple[float, float, str, str]:
    name = min(found, key=lambda one: found[one])
    return (found[name], goal, "", f"`{name}`, one of {len(found)}")


if __name__ == "__main__":
    main()
