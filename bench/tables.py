"""Questions on real tables, asked through the tool: whether the figure is right, and whether it names its rows.

    python -m bench.tables

Workbooks, PDFs and CSV files of `documents/` in the folder that `BENCH_DATA` names, and of Matplotlib's samples
where it is installed, go into one library, some once more as CSV in German notation. Questions are made over them, and
what is right is computed from the files themselves (workbooks straight from their XML), by none of the product's
parsers. A scripted writer of queries knows the columns: what is measured is the layer of tables, not a model.
"""

from __future__ import annotations

import asyncio
import csv
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench.figures import Figure, report
from bench.page_hits import DATA
from bench.xlsx_cells import cells_of
from core.rag.library import Library
from core.rag.tables.query import Named
from core.rag.tables.store import quoted
from core.tools.builtin.ask_tables import AskTables

FOLDER = DATA.parent / "documents"
QUESTIONS = 200
GOAL, PLACES, COST = 0.98, 0.95, 30  # shares, and milliseconds of CPU
Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Gold:
    """A table as it stands in its file.

    Args:
        rows: Numbers of rows, and their cells.
        left: The letter of its first column in a workbook.
    """

    document: str
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[Cell, ...]], ...]
    left: str = ""

    def numbers(self, at: int) -> list[float]:
        """The numbers of a column."""
        return [cell for _, cells in self.rows if isinstance(cell := cells[at], float)]

    def of(self, kind: type) -> list[int]:
        """The columns in which most cells are numbers, or texts."""
        found: list[int] = []
        for at in range(len(self.columns)):
            filled = [cells[at] for _, cells in self.rows if cells[at] is not None]
            if len(filled) > 1 and sum(isinstance(one, kind) for one in filled) > 0.9 * len(filled):
                found.append(at)
        return found


def sheet(name: str, number: int, first: str, last: str, rows: tuple[int, int], head: int = 0) -> Gold:
    """A table of a workbook: its columns, its rows below the header, and which row is the header."""
    cells = cells_of(FOLDER / name, number)
    columns = [chr(at) for at in range(ord(first), ord(last) + 1)]
    header = head or rows[0] - 1
    names = tuple(" ".join(str(cells.get((header, one), "")).split()) or f"column_{one}" for one in columns)
    body = ((row, tuple(cells.get((row, one)) for one in columns)) for row in range(rows[0], rows[1] + 1))
    return Gold(name, names, tuple(body), first)


def markdown(name: str, columns: str) -> Gold:
    """The table of a PDF as the reference in Markdown has it, found by its header."""
    lines = (FOLDER / name).with_suffix(".gt.md").read_text(encoding="utf-8").splitlines()
    at = next(at for at, line in enumerate(lines) if columns in line)
    names = tuple(cell.strip() for cell in lines[at].strip("|").split("|"))
    body: list[tuple[int, tuple[Cell, ...]]] = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        body.append((len(body) + 1, tuple(_cell(cell.strip()) for cell in line.strip("|").split("|"))))
    return Gold(name, names, tuple(body))


def _cell(text: str) -> Cell:
    try:
        return float(text.replace(",", "").lstrip("$+"))
    except ValueError:
        return text or None


def comma_separated(path: Path, skipped: int) -> Gold:
    """A CSV file with `skipped` lines above its header."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    names = tuple(name.strip() for name in rows[skipped])
    body = tuple((at, tuple(_cell(cell) for cell in row)) for at, row in enumerate(rows, 1) if at > skipped + 1)
    return Gold(path.name, names, body)


def in_german(gold: Gold, path: Path) -> Gold:
    """The same table in a CSV file as German spreadsheet programs write it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, delimiter=";")
        out.writerow(gold.columns)
        for _, cells in gold.rows:
            out.writerow([_german(cell) for cell in cells])
    rows = (
        (at, tuple(round(one, 6) if isinstance(one, float) else one for one in cells)) for at, cells in _from_two(gold)
    )
    return Gold(path.name, gold.columns, tuple(rows))


def _from_two(gold: Gold) -> Iterator[tuple[int, tuple[Cell, ...]]]:
    return ((at, cells) for at, (_, cells) in enumerate(gold.rows, 2))


def _german(cell: Cell) -> str:
    if not isinstance(cell, float):
        return " ".join(str(cell or "").split())
    whole, _, rest = f"{cell:,.6f}".partition(".")
    return whole.replace(",", ".") + (f",{rest.rstrip('0')}" if rest.strip("0") else ",0")


def tables(folder: Path) -> Iterator[tuple[Path, Gold]]:
    """All tables, with the files that hold them."""
    found = [
        sheet("en_test.xlsx", 1, "A", "D", (2, 24)),
        sheet("en_test.xlsx", 2, "A", "D", (2, 5)),
        sheet("en_xlsx01.xlsx", 1, "A", "C", (2, 7)),
        sheet("en_xlsx01.xlsx", 2, "A", "D", (2, 9)),
        sheet("en_xlsx01.xlsx", 2, "G", "I", (6, 9)),
        sheet("en_xlsx01.xlsx", 2, "C", "E", (15, 18)),
        sheet("en_xlsx01.xlsx", 3, "A", "C", (3, 7), 2),
        sheet("en_xlsx01.xlsx", 3, "E", "G", (9, 13), 8),
        sheet("zh_chatglm_open.xlsx", 1, "A", "F", (2, 324)),
        markdown("en_borderless_table.pdf", "Unit Cost"),
        markdown("en_borderless_table.pdf", "Variance"),
    ]
    yield from ((FOLDER / one.document, one) for one in found)
    stocks: list[Gold] = []
    if (spec := find_spec("matplotlib")) and spec.origin:
        samples = Path(spec.origin).parent / "mpl-data" / "sample_data"
        for path, skipped in ((samples / "msft.csv", 0), (samples / "Stocks.csv", 1)):
            if path.is_file():
                stocks.append(comma_separated(path, skipped))
                yield path, stocks[-1]
    for number, one in enumerate([found[0], *stocks], 1):
        path = folder / f"deutsch_{number}.csv"
        yield path, in_german(one, path)


@dataclass(frozen=True, slots=True)
class Question:
    """A query with what is right: a figure, or a text, and the rows that it rests on."""

    gold: Gold
    query: str
    right: Cell
    rows: tuple[int, ...]


Column = Callable[[int], str]


def questions(gold: Gold, named: Named, lot: random.Random) -> Iterator[Question]:
    """Questions over a table without end."""
    width = len(gold.columns)
    letters = {column.letter: column.name for column in named.table.columns if column.letter}
    by_name = {column.name.rpartition(" / ")[2]: column.name for column in named.table.columns}
    first = min(letters, default="A")

    def column(at: int) -> str:
        name = letters.get(chr(ord(first) + at)) if letters and not gold.document.endswith("csv") else None
        return quoted(name or by_name.get(gold.columns[at], gold.columns[at]))

    dates = {column.name for column in named.table.columns if column.kind == "date"}  # asked for as in ISO 8601
    numbers, texts = gold.of(float), [at for at in gold.of(str) if gold.columns[at] not in dates]
    while True:
        at = lot.choice(numbers)
        filled = [(row, cells[at]) for row, cells in gold.rows if isinstance(cells[at], float)]
        every = tuple(row for row, _ in gold.rows)
        values = gold.numbers(at)
        name, source = column(at), f"FROM {named.name}"
        limit = lot.choice(values)
        above = tuple(row for row, value in filled if isinstance(value, float) and value > limit)
        kinds = [
            Question(gold, f"SELECT sum({name}) {source}", sum(values), every),
            Question(gold, f"SELECT avg({name}) {source}", statistics.mean(values), every),
            Question(gold, f"SELECT median({name}) {source}", statistics.median(values), every),
            Question(gold, f"SELECT count(*) {source} WHERE {name} > {limit!r}", float(len(above)), above),
            Question(
                gold,
                f"SELECT total({name}) {source} WHERE {name} > {limit!r}",
                sum(value for value in values if value > limit),
                above,
            ),
            Question(gold, f"SELECT max({name}) - min({name}) {source}", max(values) - min(values), every),
            Question(gold, f"SELECT count(DISTINCT {name}) {source}", float(len(set(values))), every),
        ]
        if texts and width > 1:
            text = lot.choice(texts)
            said = lot.choice([cells[text] for _, cells in gold.rows if isinstance(cells[text], str)])
            if isinstance(said, str) and len(said) < 60 and "\n" not in said:
                rows = [(row, cells) for row, cells in gold.rows if cells[text] == said]
                where = "'" + " ".join(said.split()).replace("'", "''") + "'"
                kinds.append(
                    Question(
                        gold,
                        f"SELECT total({name}) {source} WHERE {column(text)} = {where}",
                        sum(cell for _, cells in rows if isinstance(cell := cells[at], float)),
                        tuple(row for row, _ in rows),
                    )
                )
        yield lot.choice(kinds)


def is_right(said: object, right: Cell) -> bool:
    """Whether two figures are the same but for the last places."""
    if isinstance(right, float) and isinstance(said, int | float):
        return abs(said - right) <= 1e-9 * max(1.0, abs(right))
    return said == right


def found_table(tables_: list[Named], gold: Gold) -> Named | None:
    """The table of the library that this is: of its document, with most of its columns."""

    def alike(one: Named) -> tuple[int, int]:
        names = {column.name.rpartition(" / ")[2] for column in one.table.columns}
        return len(names & set(gold.columns)), -abs(one.table.rows - len(gold.rows))

    there = [one for one in tables_ if one.document == gold.document]
    there = [one for one in there if not gold.left or one.table.columns[0].letter == gold.left]
    return max(there, key=alike) if there else None


def main() -> None:
    """Ask, and count."""
    if not FOLDER.is_dir():
        print(f"There are no documents in {FOLDER}.", file=sys.stderr)
        return
    lot = random.Random(13)
    right = placed = 0
    costs: list[float] = []
    by_words = {"retrieval_type": "keyword"}
    with tempfile.TemporaryDirectory() as place, Library.open(Path(place) / "l", by_words) as library:
        golds = list(tables(Path(place)))
        ids = list(dict.fromkeys(library.add(path).id for path, _ in golds))
        began = time.process_time()
        known = library.tables.of(ids)
        reading = time.process_time() - began
        each = _askers(golds, known, lot)
        tool = AskTables(known, lambda query: library.tables.ask(ids, query))
        for number in range(QUESTIONS):
            question = next(each[number % len(each)])
            began = time.process_time()
            asyncio.run(tool.call({"query": question.query}, evidence=[]))
            costs.append((time.process_time() - began) * 1000)
            answer = library.tables.ask(ids, question.query)
            good = bool(answer.rows) and is_right(answer.rows[0][0], question.right)
            runs = [run for sources in answer.sources for one in sources for run in one.runs]
            stands = good and {row for first, last in runs for row in range(first, last + 1)} == set(question.rows)
            right, placed = right + good, placed + stands
            if "show" in sys.argv and not stands:
                print(question.gold.document, question.query, question.right, answer.rows, file=sys.stderr)
    told = f"{QUESTIONS} over {len(golds)} tables, scripted queries, no model; {reading:.2f} s of CPU to take them in"
    slow = f"p95 {statistics.quantiles(costs, n=20)[-1]:.1f} ms"
    report(
        [
            Figure("questions on real tables, the figure is right", right / QUESTIONS, GOAL, "", told, at_least=True),
            Figure("the same, and exactly its rows are named", placed / QUESTIONS, PLACES, "", "", at_least=True),
            Figure("the same, CPU a question, p50", statistics.median(costs), COST, "ms", slow),
        ]
    )


def _askers(golds: list[tuple[Path, Gold]], known: list[Named], lot: random.Random) -> list[Iterator[Question]]:
    found: list[Iterator[Question]] = []
    for _, gold in golds:
        named = found_table(known, gold)
        if named is None:
            raise RuntimeError(f"A table of {gold.document} was not found.")
        found.append(questions(gold, named, lot))
    return found


if __name__ == "__main__":
    main()
