"""Questions in words on real tables, under a condition: how many a program tells, and whether it tells them right.

    python -m bench.tables_in_words

The tables are those of `bench.tables`, each in a conversation of its own; the questions are in English and Chinese:
counts, sums and averages under one condition, and which row has the highest or lowest value. What is right is computed
from the files themselves. A question that a program does not tell is left to a model, which is not asked here.
Those of `bench.tables_asked_on` come after them: questions that go on from another one, that ask for each month, for
values by their sums, for two things in one sentence, and in German.
"""

from __future__ import annotations

import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, report
from bench.tables import FOLDER, QUESTIONS, Gold, found_table, tables
from bench.tables_asked_on import EACH, KINDS, further, is_told_right
from core.rag.counted import counted
from core.rag.library import Library
from core.rag.tables.query import Named

TOLD, RIGHT = 0.5, 0.99  # shares


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is right: a figure, or the numbers of rows."""

    gold: Gold
    text: str
    lang: str
    right: float | frozenset[int]


def questions(gold: Gold, named: Named, lot: random.Random) -> Iterator[Question]:
    """Questions over a table without end."""
    called = {column.name.rpartition(" / ")[2] for column in named.table.columns}
    numbers = [at for at in gold.of(float) if gold.columns[at] in called]
    texts = [at for at in gold.of(str) if gold.columns[at] in called]
    while numbers:
        at = lot.choice(numbers)
        name = gold.columns[at]
        values = gold.numbers(at)
        limit = lot.choice(values)
        above = [value for value in values if value > limit]
        said = f"{limit:,}".removesuffix(".0")
        highest = frozenset(row for row, cells in gold.rows if cells[at] == max(values))
        kinds = [
            (f"How many rows have {name} over {said}?", f"{name}大于{said}的有多少行？", float(len(above))),
            (f"Which row has the highest {name}?", f"哪一行的{name}最高？", highest),
        ]
        if above:
            kinds.append(
                (
                    f"What is the sum of {name} where {name} is over {said}?",
                    f"{name}大于{said}的{name}总和是多少？",
                    sum(above),
                )
            )
        if texts:
            of = lot.choice(texts)
            cell = str(lot.choice([cells[of] for _, cells in gold.rows if isinstance(cells[of], str)]))
            if len(cell) < 40 and not re.search(r"[\"\n]", cell):
                mine = [cells for _, cells in gold.rows if cells[of] == cell]
                held = [value for cells in mine if isinstance(value := cells[at], float)]
                column = gold.columns[of]
                kinds.append(
                    (f'How many rows have {column} "{cell}"?', f"{column}为“{cell}”的有几行？", float(len(mine)))
                )
                if held:
                    kinds += [
                        (
                            f"What is the sum of {name} where {column} is {cell}?",
                            f"{column}是{cell}的{name}总和是多少？",
                            sum(held),
                        ),
                        (
                            f"What is the average {name} for {cell}?",
                            f"{cell}的平均{name}是多少？",
                            statistics.mean(held),
                        ),
                    ]
        english, chinese, right = lot.choice(kinds)
        lang = lot.choice(("en", "zh"))
        yield Question(gold, english if lang == "en" else chinese, lang, right)


_FIGURE = re.compile(
    r"(?:is|是) (-?[\d,]+(?:\.\d+)?)[^(（]* ?[(（]|(?:: )([\d,]+) of|中有 ([\d,]+) 行满足|^\S.*?: ([\d,]+) of"
)


def is_right(text: str, rows: str, right: float | frozenset[int]) -> bool:
    """Whether a sentence tells the figure, or the rows."""
    if isinstance(right, frozenset):
        found: set[int] = set()
        for span in rows.split(","):
            first, _, last = span.strip().partition("–")
            found |= set(range(int(first or 0), int(last or first or 0) + 1))
        return found == right
    match = _FIGURE.search(text)
    if match is None:
        return False
    said = float(next(one for one in match.groups() if one).replace(",", ""))
    return abs(said - right) <= 1e-4 * max(1.0, abs(right))


def main() -> None:
    """Ask, and count."""
    lot = random.Random(17)
    told = right = 0
    costs: list[float] = []
    with (
        tempfile.TemporaryDirectory() as place,
        Library.open(Path(place) / "l", {"retrieval_type": "keyword"}) as library,
    ):
        golds = list(tables(Path(place)))
        ids = {path.name: library.add(path).id for path, _ in golds}
        known = library.tables.of(list(ids.values()))
        each = [
            questions(gold, named, lot)
            for _, gold in golds
            if (named := found_table(known, gold)) is not None
            and any(
                gold.columns[at] in {one.name.rpartition(" / ")[2] for one in named.table.columns}
                for at in gold.of(float)
            )
        ]
        for number in range(QUESTIONS):
            question = next(each[number % len(each)])
            began = time.process_time()
            found = counted(library, [ids[question.gold.document]], question.text, question.lang).passages  # type: ignore[arg-type]
            costs.append((time.process_time() - began) * 1000)
            good = any(is_right(one.text, one.rows, question.right) for one in found)
            told, right = told + bool(found), right + good
            if "show" in sys.argv and not good:
                print(
                    question.gold.document, question.text, question.right, [one.text for one in found], file=sys.stderr
                )
        more = _asked_on(library, golds, known, ids)
    how = f"{told} of {QUESTIONS} over {len(each)} tables, English and Chinese; the others are left to the model"
    slow = f"p95 {statistics.quantiles(costs, n=20)[-1]:.1f} ms of CPU"
    report(
        [
            Figure(
                "questions in words under a condition, told by program", told / QUESTIONS, TOLD, "", how, at_least=True
            ),
            Figure("of those told, right", right / max(1, told), RIGHT, "", f"{right} of {told}", at_least=True),
            Figure("the same, CPU a question, p50", statistics.median(costs), 30, "ms", slow),
            *more,
        ]
    )


def _asked_on(
    library: Library, golds: list[tuple[Path, Gold]], known: list[Named], ids: dict[str, str]
) -> list[Figure]:
    """Ask the further questions, and count."""
    lot = random.Random(23)
    each: dict[str, tuple[int, int]] = {}
    for kind in KINDS:
        over = [
            asked
            for _, gold in golds
            if (named := found_table(known, gold))
            for asked in [further(kind, gold, named, lot)]
        ]
        asked = [question for _ in range(EACH) for one in over if (question := next(one, None)) is not None][:EACH]
        told = right = 0
        for one in asked:
            found = counted(library, [ids[one.gold.document]], one.text, earlier=one.earlier).passages
            good = bool(found) and is_told_right([str(passage.computed) for passage in found], one.right)
            told, right = told + bool(found), right + good
            if "show" in sys.argv and not good:
                print(
                    kind,
                    one.gold.document,
                    one.earlier,
                    one.text,
                    one.right,
                    [each.text for each in found],
                    file=sys.stderr,
                )
        each[kind] = told, right
    all_told, all_right = (sum(one[at] for one in each.values()) for at in (0, 1))
    how = "; ".join(f"{kind} {told}" for kind, (told, _) in each.items())
    return [
        Figure("further questions on them, told by program", all_told / (EACH * len(KINDS)), 0.4, "",
               f"{all_told} of {EACH * len(KINDS)}, {EACH} of each kind: {how}", at_least=True),
        Figure("of these told, right", all_right / max(1, all_told), RIGHT, "",
               f"{all_right} of {all_told}", at_least=True),
    ]  # fmt: skip


if __name__ == "__main__":
    if FOLDER.is_dir():
        main()
    else:
        print(f"There are no documents in {FOLDER}.", file=sys.stderr)
