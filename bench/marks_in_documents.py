"""Whether the marks on pages of real PDFs lie on what they quote, by the letters that PyMuPDF finds within them.

    python -m bench.marks_in_documents [part of a name …]

The PDFs of `documents/` in the folder that `BENCH_DATA` names are read into a library. Each sentence of each passage on
a page is cited, and its mark is held against the page: a mark is wrong if it leaves out a word of its quote, or if one
of its rectangles holds none of its words. The letters come from PyMuPDF alone, one by one, not from what was read into
the library. Where a page has no letters (scans, words in pictures), the marked part is cut out of the page, and what is
recognised in the cut alone is compared: that shows whether the mark lies on those words, but is no second recogniser.
Of a document with more than 20 pages, 20 are taken at equal distances.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import pymupdf

from bench.evidence import READERS
from bench.figures import Figure, report
from core.rag.citations import supporting_spans
from core.rag.library import Library
from core.rag.parsers.ocr import words_of
from core.rag.parsers.pdf_page import Pixels
from core.rag.places import proof_on_page
from core.rag.prose import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.rag.document import Passage, Rectangle

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "documents"
MOST_PAGES = 20
_LEAST = 12  # letters of a sentence that is cited
_WORD = re.compile(r"[^\W_]+")
_SIGNS = re.compile(r"\[(?:Figure|Words in the figure|图|图中文字)\]")
_GROW = 2.0  # points
_SEEN = 0.6  # of the letters of a quote are recognised again
_SLIVER = 4.0  # points: lines that reach into each other are marked once, and of one next to nothing is left
_FEWEST = 4  # letters that were recognised in a picture: of fewer it is chance
_ZOOM = 150 / 72


@dataclass
class Judged:
    """What came of the sentences of a document."""

    right: int = 0
    wrong: list[str] = field(default_factory=list[str])
    seen: int = 0  # of those that are right, in cuts of pages without letters
    fields: int = 0  # and in the fields of a form, whose lines are told, not printed
    none: int = 0  # sentences without a mark
    short: int = 0  # of fewer letters in a picture than can be judged
    wide: list[float] = field(default_factory=list[float])  # how many times its quote a mark holds

    def note(self, is_right: bool, page: _Page, told: str) -> None:
        """Count one."""
        self.right += is_right
        self.wrong += [] if is_right else [f"p. {page.number}: {told}"]


def words(text: str) -> list[str]:
    """The words and figures of a text, in small letters."""
    return _WORD.findall(normalize("NFKC", _SIGNS.sub(" ", text)).casefold())


def letters_of(page: Any) -> list[tuple[str, float, float]]:
    """Each letter of a page as displayed, with the middle of its box."""
    found: list[tuple[str, float, float]] = []
    for block in page.get_text("rawdict", flags=pymupdf.TEXTFLAGS_TEXT & ~pymupdf.TEXT_PRESERVE_LIGATURES)["blocks"]:
        for line in block.get("lines", ()):
            for span in line["spans"]:
                for one in span["chars"]:
                    x0, y0, x1, y1 = one["bbox"]
                    middle = pymupdf.Point((x0 + x1) / 2, (y0 + y1) / 2) * page.rotation_matrix
                    found.append((one["c"], middle.x, middle.y))
            found.append((" ", -1e6, -1e6))
    return found


def under(marks: Sequence[Rectangle], letters: Sequence[tuple[str, float, float]], grow: float = _GROW) -> str:
    """The letters within marks, all of whose edges are moved out by `grow` points."""
    return "".join(
        letter
        for letter, x, y in letters
        if any(a - grow <= x <= c + grow and b - grow <= y <= d + grow for a, b, c, d in marks)
    )


def fields_and_pictures(page: Any) -> tuple[tuple[Rectangle, ...], tuple[Rectangle, ...]]:
    """The places of the fields of a form on a page and of its pictures, as displayed."""
    fields = [one.rect for one in page.widgets() or ()]
    pictures = [pymupdf.Rect(one["bbox"]) for one in page.get_image_info()]
    fields, pictures = ([tuple(one * page.rotation_matrix) for one in some] for some in (fields, pictures))
    return tuple(fields), tuple(pictures)


def missing(said: Sequence[str], inside: str) -> list[str]:
    """The words of a quote that are not within its mark."""
    return [word for word, times in Counter(said).items() for _ in range(times - inside.count(word))]


def recognised(page: Any, mark: Rectangle) -> str:
    """What is recognised in a part of a page that is cut out of it."""
    x0, y0, x1, y1 = mark
    clip = pymupdf.Rect(x0 - 4, y0 - 4, x1 + 4, y1 + 4)
    drawn = page.get_pixmap(matrix=pymupdf.Matrix(_ZOOM, _ZOOM), clip=clip, alpha=False)
    return "".join(words(" ".join(words_of(Pixels(drawn.width, drawn.height, drawn.samples)))))


def share_seen(quote: str, seen: str) -> float:
    """How much of a quote is in what was recognised, in its order."""
    said = "".join(words(quote))
    blocks = SequenceMatcher(None, said, seen, autojunk=False).get_matching_blocks()
    return sum(one.size for one in blocks if one.size > 1) / max(1, len(said))


@dataclass(frozen=True)
class _Page:
    page: Any
    letters: list[tuple[str, float, float]]
    text: str
    fields: tuple[Rectangle, ...]
    pictures: tuple[Rectangle, ...]
    seen: dict[Rectangle, str] = field(default_factory=dict["Rectangle", str])

    @property
    def number(self) -> int:
        return int(self.page.number) + 1

    def seen_in(self, marks: Sequence[Rectangle]) -> str:
        """What is recognised in marks, each cut out of the page and looked at once."""
        for one in marks:
            self.seen[one] = self.seen.get(one) or recognised(self.page, one)
        return "".join(self.seen[one] for one in marks)

    def is_field(self, mark: Rectangle) -> bool:
        return any(max(abs(a - b) for a, b in zip(mark, one, strict=True)) < 1 for one in self.fields)

    def is_pictured(self, mark: Rectangle) -> bool:
        """Whether a picture covers half of a mark."""
        x0, y0, x1, y1 = mark
        shared = (max(0.0, min(x1, c) - max(x0, a)) * max(0.0, min(y1, d) - max(y0, b)) for a, b, c, d in self.pictures)
        return any(one >= 0.5 * (x1 - x0) * (y1 - y0) for one in shared)


def judge(
    judged: Judged, page: _Page, quotes: Sequence[str], marks: Sequence[Rectangle], least: int, *, whole: bool
) -> None:
    """Hold the mark of quotes against their page.

    Args:
        least: Letters of a word that is looked for: of a formula, two libraries read single letters differently.
        whole: Whether a mark is to hold each word; else nine tenths of them, as a passage must.
    """
    quote = " ".join(quotes)
    said = words(quote)
    inside = "".join(words(under(marks, page.letters)))
    # What stands nowhere in the letters of the page was recognised in a picture on it, or is told of a form.
    printed = [word for word in said if word in page.text and len(word) >= least]
    if all(map(page.is_field, marks)):
        judged.right += 1
        judged.fields += 1
    elif not inside and len("".join(said)) >= _FEWEST:
        is_seen = share_seen(quote, page.seen_in(marks)) >= _SEEN
        judged.note(is_seen, page, f"not seen: {quote[:80]!r} in {list(marks)[:4]}")
        judged.seen += is_seen
    elif not inside or not printed:
        judged.short += 1
    else:
        lost = missing(printed, inside)
        bare = list(_bare(quote, marks, page.letters)) if whole else []
        seen = page.seen_in([*filter(page.is_pictured, marks)]) if lost else ""
        if seen and sum(len(word) for word in lost if word in seen) >= _SEEN * sum(map(len, lost)):
            lost, bare = [], []
            judged.seen += 1
        is_right = not bare and sum(map(len, lost)) <= (0.0 if whole else 0.1) * sum(map(len, printed))
        judged.note(is_right, page, f"{quote[:80]!r} lacks {lost[:6]}, bare {bare[:2]}")
        if is_right:
            judged.wide.append(len(inside) / max(1, sum(map(len, said))))


def _bare(quote: str, marks: Sequence[Rectangle], letters: Sequence[tuple[str, float, float]]) -> Iterator[Rectangle]:
    """The rectangles that hold neither a word nor a sign of a quote, but for the first cell of a row that does."""
    said, signs = words(quote), {sign for sign in quote if not sign.isalnum() and not sign.isspace()}
    held = {one: under([one], letters, 0.0) for one in marks}
    good = [one for one, text in held.items() if signs & set(text) or one[3] - one[1] < _SLIVER or _shares(text, said)]
    rows = {(one[1], one[3]) for one in good}
    yield from (one for one in marks if one not in good and (one[1], one[3]) not in rows)


def _shares(held: str, said: Sequence[str]) -> bool:
    """Whether a rectangle has a word of a quote, or the part of one that is parted at the end of a line."""
    bare = "".join(words(held))
    parts = words(held) if len(bare) < _FEWEST else [bare]  # beside a sign that is raised stands one of another line
    return any(word in bare for word in said) or any(part in "".join(said) for part in parts)


def _pages(count: int) -> list[int]:
    """The numbers of the pages that are looked at."""
    step = max(1.0, count / MOST_PAGES)
    return sorted({1 + int(at * step) for at in range(min(count, MOST_PAGES))})


def _cited(passage: Passage) -> Iterator[tuple[str, list[str]]]:
    for start, end in sentence_spans(passage.text):
        said = passage.text[start:end].strip()
        if len(said) >= _LEAST:
            yield said, [passage.text[a:b] for a, b in supporting_spans(said, passage.text)]


def measured(path: Path, reader: str) -> tuple[Judged, Judged]:
    """The marks of the sentences, and those of the passages, of a document."""
    cited, own = Judged(), Judged()
    least = 1 if reader == "pymupdf" else 2
    with (
        tempfile.TemporaryDirectory() as folder,
        Library.open(Path(folder) / "library", {"pdf_reader": reader}) as library,
    ):
        document = library.add(path)
        passages = library.pages.chunks(document.id, 0, document.chunks)
        opened: Any = pymupdf.open(path)
        with opened as file:
            for number in _pages(len(file)):
                letters = letters_of(file[number - 1])
                text = "".join(words("".join(letter for letter, _, _ in letters)))
                page = _Page(file[number - 1], letters, text, *fields_and_pictures(file[number - 1]))
                content = library.pages.content(document.id, number)
                for passage in (one for one in passages if one.page == number):
                    if not passage.rectangles:
                        pass
                    elif content.letters and not content.letters.hold_most(passage.text, passage.rectangles):
                        own.none += 1
                    else:
                        judge(own, page, [passage.text], passage.rectangles, least, whole=False)
                    for said, quotes in _cited(passage):
                        marks = proof_on_page([said], passage.text, content.blocks, content.letters)
                        if marks and quotes:
                            judge(cited, page, quotes, marks, least, whole=True)
                        else:
                            cited.none += bool(quotes)
    return cited, own


def main() -> None:
    """Every PDF, with each reader; a scan with one, as both read the same picture."""
    if not DATA.is_dir():
        print(f"There are no documents in {DATA}.", file=sys.stderr)
        return
    asked = sys.argv[1:]
    sums = {"sentences": Judged(), "passages": Judged()}
    for path in sorted(DATA.glob("*.pdf")):
        if asked and not any(one in path.name for one in asked):
            continue
        for reader in READERS[:1] if "scan" in path.name else READERS:
            for what, one in zip(sums, measured(path, reader), strict=True):
                told = f"{one.right} right ({one.seen} seen), {len(one.wrong)} wrong, {one.none} without a mark"
                print(f"{path.name} {reader} {what}: {told}", *one.wrong, sep="\n    ", file=sys.stderr, flush=True)
                total = sums[what]
                for name in ("right", "seen", "fields", "none", "short"):
                    setattr(total, name, getattr(total, name) + getattr(one, name))
                total.wrong += one.wrong
                total.wide += one.wide
    for what, one in sums.items():
        count = one.right + len(one.wrong)
        wide = sorted(one.wide)[len(one.wide) // 2] if one.wide else 0.0
        beside = (
            f"{count} {what}, {one.seen} of them in scans and pictures, by what is recognised in the cut alone, "
            f"{one.fields} on fields of a form; "
            f"{one.none} more have no mark, {one.short} are too short to be judged; "
            f"in the middle a mark holds {wide:.2f} times the letters of its quote"
        )
        report(
            [Figure(f"real PDFs, {what} whose mark leaves out words or lies elsewhere", len(one.wrong), 0, "", beside)]
        )


if __name__ == "__main__":
    main()
