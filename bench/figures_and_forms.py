"""Figures found by their captions, fields of forms, and cells of tables in scans.

    python -m bench.figures_and_forms

Figures: real documents of the folder that `BENCH_DATA` names; which figures are in them was looked up by eye for two,
and is what lines of the raw text begin with for the third. A question for each ("What does figure 3 show?") must find
the passage with its caption, first of all, on the page where it stands. Fields: forms typeset with random labels, kinds
and values, read by both readers; a field is right where its whole line is, at its place. Cells: tables of random words
and numbers, with and without ruling lines, typeset, drawn as pictures and recognised (the extra `ocr`). Time: what
figures and scanned pages add to the reading of three of these documents, each read once with pictures and once without.

The sample is always the same and takes under two minutes of CPU; what is not begun after three is left out and named.
"""

from __future__ import annotations

import io
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure, report
from core.errors import BrokenDocumentError
from core.rag.document import Block
from core.rag.library import Library
from core.rag.parsers import ocr
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "documents"
LOOKED_UP = {
    "zh_langchain_chatchat.pdf": {
        f"{number}": page for number, page in zip(range(1, 9), (4, 4, 4, 5, 5, 6, 6, 6), strict=True)
    },
    "en_redp5110_18p.pdf": {"1-2": 7, "3-1": 10, "3-5": 11, "3-10": 14, "3-11": 14, "4-68": 15, "4-69": 15},
}
BY_LINES = "de_geotopo_117p.pdf"
TIMED = {"en_redp5110_18p.pdf": "figures", "zh_langchain_chatchat.pdf": "figures", "scan_multipage.pdf": "scans"}
MOST_CPU = 180  # seconds of this process and of those that read for it
WORDS = [
    "harbour",
    "rope",
    "tide",
    "lantern",
    "cargo",
    "anchor",
    "pilot",
    "crane",
    "signal",
    "ferry",
    "timber",
    "grain",
]
FORMS, TABLES = 12, 6


def spent() -> float:
    """Seconds of CPU so far, with those of readers that have ended."""
    told = os.times()
    return told.user + told.system + told.children_user + told.children_system


def is_over(what: str) -> bool:
    """Whether the time is up, so that this is left out."""
    if spent() > MOST_CPU:
        print(f"left out, after {MOST_CPU} s of CPU: {what}", file=sys.stderr)
        return True
    return False


def times() -> list[Figure]:
    """What a figure and a scanned page add to the time of reading."""
    import pymupdf

    taken = {"figures": [0.0, 0, 0], "scans": [0.0, 0, 0]}  # seconds, how many, letters recognised
    list(PARSER_REGISTRY["pdf"]().parse(DATA / "zh_scan_ocr_test.pdf", "warm.pdf"))  # loads what recognises
    for name, kind in TIMED.items():
        if is_over(name):
            continue
        seconds, letters, figures = [0.0, 0.0], [0, 0], 0
        for pictures in (False, True):
            began = time.process_time()
            try:
                read = list(PARSER_REGISTRY["pdf"]().parse(DATA / name, name, ParseOptions(pictures=pictures)))
            except BrokenDocumentError:  # of a scan that had to be repaired, nothing is left without its pictures
                if pictures:
                    raise
                read = []
            seconds[pictures] = time.process_time() - began
            blocks = [one for one in read if isinstance(one, Block)]
            letters[pictures] = sum(len(one.text) for one in blocks)
            figures = sum(one.kind == "figure" for one in blocks)
        with pymupdf.open(DATA / name) as document:
            number = figures if kind == "figures" else len(document)
        taken[kind] = [
            a + b for a, b in zip(taken[kind], (seconds[1] - seconds[0], number, letters[1] - letters[0]), strict=True)
        ]
    found: list[Figure] = []
    for kind, (seconds, number, letters) in taken.items():
        if number:
            what = "a figure adds to reading, CPU" if kind == "figures" else "a scanned page takes to be read, CPU"
            peer = f"{number:.0f} of {sum(one == kind for one in TIMED.values())} documents, {letters:.0f} letters"
            found.append(Figure(what, seconds / number, 3.0 if kind == "figures" else 1.5, "s", peer))
    return found


def captions() -> tuple[int, int]:
    """Figures whose question finds their caption first, and all figures."""
    import pymupdf

    wanted = dict(LOOKED_UP)
    lines = re.compile(r"^Abbildung (\d+\.\d+):", re.MULTILINE)
    with pymupdf.open(DATA / BY_LINES) as document:
        texts = [str(page.get_text()) for page in document]
    wanted[BY_LINES] = {found: at for at, text in enumerate(texts, 1) for found in lines.findall(text)}
    right = total = 0
    for name, figures in wanted.items():
        if is_over(name):
            continue
        with tempfile.TemporaryDirectory() as folder, Library.open(folder) as library:
            document = library.add(DATA / name)
            for number, page in figures.items():
                total += 1
                found = library.figures.named(f"What does figure {number} show?", [document.id])
                passages = library.figures.passages(found)
                is_right = bool(passages) and passages[0].page == page and number in passages[0].text.split("\n")[0]
                right += is_right
                if not is_right:
                    print(f"not found: {name} figure {number}, page {page}", file=sys.stderr)
    return right, total


def form(path: Path, dice: random.Random) -> list[tuple[str, tuple[float, float, float, float]]]:
    """A form with random fields; the lines that they should be, with their places."""
    import pymupdf

    document = pymupdf.open()
    page = document.new_page(width=500, height=700)
    told: list[tuple[str, tuple[float, float, float, float]]] = []
    for at in range(16):
        label = " ".join(dice.sample(WORDS, 2)).capitalize()
        y, kind = 40 + 40 * at, dice.choice(["text", "empty", "check", "choice", "told"])
        widget: Any = pymupdf.Widget()
        widget.field_name = f"topmostSubform[0].Page1[0].f1_{at:02}[0]"
        place = (50.0, y, 62.0, y + 12) if kind == "check" else (200.0, y, 380.0, y + 16)
        value = " ".join(dice.sample(WORDS, 2))
        widget.rect, widget.field_type, widget.field_value = pymupdf.Rect(place), 7, value
        if kind == "check":
            widget.field_type, ticked = 2, dice.random() < 0.5
            widget.field_value, value = ticked, "checked" if ticked else "not checked"
        elif kind == "choice":
            widget.field_type, widget.choice_values, widget.field_value = 3, WORDS[:3], WORDS[1]
            value = f"{WORDS[1]} (options: {', '.join(WORDS[:3])})"
        elif kind == "empty":
            widget.field_value, value = "", "(empty)"
        if kind == "told":
            widget.field_label = label
        else:
            page.insert_text((70 if kind == "check" else 50, y + 11), label, fontsize=10)
        page.add_widget(widget)
        told.append((f"{label}: {value}", place))
    document.save(path)
    return told


def fields(folder: Path) -> tuple[int, int]:
    """Fields that are right, and all of them; by both readers."""
    dice, right, total = random.Random(7), 0, 0
    for at in range(FORMS):
        path = folder / f"form-{at}.pdf"
        wanted = form(path, dice)
        for parser, _ in PDF_READERS.values():
            blocks = list(PARSER_REGISTRY[parser]().parse(path, path.name, ParseOptions(pictures=False)))
            read = {
                line: place
                for one in blocks
                if isinstance(one, Block) and len(one.lines) == one.text.count("\n") + 1
                for line, (_, place) in zip(one.text.split("\n"), one.lines, strict=True)
            }
            total += len(wanted)
            right += sum(
                line in read and all(abs(a - b) < 2 for a, b in zip(read[line], place, strict=True))
                for line, place in wanted
            )
    return right, total


def scan(path: Path, rows: list[tuple[str, ...]], *, ruled: bool) -> None:
    """A PDF whose page is a picture of a table."""
    import pymupdf

    page = pymupdf.open().new_page(width=500, height=60 + 30 * len(rows))
    page.insert_text((50, 30), "Cargo of the harbour by month", fontsize=12)
    for at, row in enumerate(rows):
        for column, cell in enumerate(row):
            page.insert_text((60 + 130 * column, 62 + 28 * at), cell, fontsize=11)
    for at in range(len(rows) + 1) if ruled else ():
        page.draw_line((50, 44 + 28 * at), (440, 44 + 28 * at))
    for column in range(4) if ruled else ():
        page.draw_line((50 + 130 * column, 44), (50 + 130 * column, 44 + 28 * len(rows)))
    drawn = page.get_pixmap(dpi=150, alpha=False)
    document = pymupdf.open()
    document.new_page(width=page.rect.width, height=page.rect.height).insert_image(
        page.rect, stream=io.BytesIO(drawn.tobytes("png"))
    )
    document.save(path)


def cells(folder: Path, *, ruled: bool) -> tuple[int, int]:
    """Cells of scanned tables that are right, and all of them."""
    dice, right, total = random.Random(11), 0, 0
    for at in range(TABLES):
        rows: list[tuple[str, ...]] = [("Cargo", "Month", "Tons")]
        rows += [
            (dice.choice(WORDS).capitalize(), dice.choice(["May", "June", "July"]), f"{dice.randrange(10, 9999)}")
            for _ in range(dice.randrange(4, 9))
        ]
        path = folder / f"scan-{ruled}-{at}.pdf"
        scan(path, rows, ruled=ruled)
        found: list[Any] = [
            one for one in PARSER_REGISTRY["pdf"]().parse(path, path.name) if isinstance(one, Block) and one.cells
        ]
        read = found[0].cells if found else ()
        total += sum(map(len, rows))
        for wanted, got in zip(rows, read, strict=False):
            right += sum(a == b for a, b in zip(wanted, got, strict=False))
    return right, total


def main() -> None:
    """All of them."""
    if (DATA / BY_LINES).is_file():
        right, total = captions()
        what = "figures of three real documents, the question that names one finds its caption"
        peer = f"`figures_and_forms`: {right} of {total}; English and German, by PyMuPDF"
        report([Figure(what, right / total, 0.95, "", peer, at_least=True)])
    else:
        print(f"There are no documents in {DATA}.", file=sys.stderr)
    with tempfile.TemporaryDirectory() as made:
        right, total = fields(Path(made))
        what, peer = "fields of typeset forms: label, value and place right", f"{right} of {total}, both readers of PDF"
        report([Figure(what, right / total, 0.95, "", peer, at_least=True)])
        for ruled in (True, False) if ocr.is_here() else ():
            if is_over("tables in scans"):
                break
            right, total = cells(Path(made), ruled=ruled)
            how = "with ruling lines" if ruled else "by alignment alone"
            what, peer = f"cells of typeset tables in scans, {how}", f"{right} of {total}"
            report([Figure(what, right / total, 0.9, "", peer, at_least=True)])
    if ocr.is_here() and all((DATA / name).is_file() for name in TIMED):
        report(times())
    print(f"{spent():.0f} s of CPU in all", file=sys.stderr)


if __name__ == "__main__":
    main()
