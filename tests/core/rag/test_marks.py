"""A passage is marked where it stands: the typesetter says where that is, never the parser."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from bench.typeset import (
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
from core.rag.chunking import chunks_of
from core.rag.document import Block, PageShape
from core.rag.page_letters import Letters
from core.rag.parsers import ocr
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS

WORDS = [
    *("harbour", "museum", "quickly", "between", "forty", "lanterns", "engineer"),
    *("yellow", "jumps", "apple", "grammar", "whisper", "judge", "voyage"),
]
LETTERS = "春江潮水连海平海上明月共潮生滟随波千万里何处无月明流宛转绕芳甸照花林皆似霰空霜不觉飞汀沙看见"


def texts(count: int, length: int, script: Script) -> list[Text]:
    """Titles and paragraphs of any words."""
    lot = random.Random(1)
    if script == "cjk":
        return [
            ("".join(lot.choices(LETTERS, k=6)), "。".join("".join(lot.choices(LETTERS, k=19)) for _ in range(length)))
            for _ in range(count)
        ]
    said = [[" ".join(lot.choices(WORDS, k=11)).capitalize() for _ in range(length)] for _ in range(count)]
    return [(f"Chapter {at} of the {lot.choice(WORDS)}", ". ".join(one) + ".") for at, one in enumerate(said, 1)]


def pages(sheets: Sequence[Sheet] = (), columns: int = 1, script: Script = "tiro", count: int = 12) -> Typesetter:
    setter = Typesetter(script)
    set_in_columns(setter, texts(count, 9, script), sheets or [Sheet()], columns)
    return setter


def rows() -> Typesetter:
    setter = Typesetter()
    set_table(setter, WORDS, 80)
    return setter


TURNS = (90, 180, 270)
KINDS: dict[str, Callable[[], Typesetter]] = {
    "prose": pages,
    "Chinese": lambda: pages(script="cjk"),
    "turned": lambda: pages([Sheet(turned=turn) for turn in TURNS]),
    "lying on its side": lambda: pages([Sheet(turned=turn, lying=True) for turn in TURNS]),
    "two columns, turned": lambda: pages([Sheet(turned=turn) for turn in TURNS], columns=2, count=16),
    "two columns, on their head": lambda: pages([Sheet(turned=180, lying=True)], columns=2, count=16),
    "two columns on their side, drawn across": lambda: pages(
        [Sheet(turned=turn, lying=True) for turn in TURNS], columns=2, count=24
    ),
    "mixed sizes": lambda: pages([Sheet(), Sheet(420, 595), Sheet(842, 595)]),
    "cropped": lambda: pages([Sheet(crop=(40, 50, 560, 800)), Sheet(crop=(20, 30, 595, 842))]),
    "two columns": lambda: pages(columns=2, count=16),
    "two columns, drawn across": lambda: pages(columns=2, count=16),
    "a table over pages": rows,
}


def read(path: Path, reader: str) -> tuple[list[Block], dict[int, Letters]]:
    found = list(PARSER_REGISTRY[PDF_READERS[reader][0]]().parse(path, path.name, ParseOptions(pictures=True)))
    letters = {one.page: Letters(one.letters or ()) for one in found if isinstance(one, PageShape)}
    return [one for one in found if isinstance(one, Block)], letters


def overlaps(blocks: Sequence[Block], setter: Typesetter) -> list[float]:
    return [
        overlap(chunk.rectangles, [one.place for one in true_lines(chunk, setter.printed)])
        for chunk in chunks_of(iter(blocks))
    ]


@pytest.fixture(scope="module")
def typeset(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Typesetter]]:
    """The document of a kind, set once for all readers, and what was printed."""

    @cache
    def typeset(kind: str) -> tuple[Path, Typesetter]:
        setter = KINDS[kind]()
        path = tmp_path_factory.mktemp("typeset") / "typeset.pdf"
        setter.save(path, across="across" in kind)
        return path, setter

    return typeset


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_marks_of_a_passage_and_of_its_sentences_lie_on_their_words(
    kind: str, reader: str, typeset: Callable[[str], tuple[Path, Typesetter]]
) -> None:
    path, setter = typeset(kind)
    blocks, letters = read(path, reader)
    found = overlaps(blocks, setter)
    assert len(found) > 2
    assert statistics.fmean(found) >= 0.9
    # And each of its sentences, when it is cited, on all of its words and on no others.
    wrong = [
        is_wrong
        for chunk in chunks_of(iter(blocks))
        for here in ([one for one in blocks if one.page == chunk.page],)
        for is_wrong in misplaced(chunk, here, letters[chunk.page or 0], setter.printed)
    ]
    assert len(wrong) > 20
    assert not any(wrong)


@pytest.mark.parametrize("script", ["helv", "cjk"])
def test_the_marks_of_a_scanned_passage_lie_on_its_lines(script: Script, tmp_path: Path) -> None:
    assert ocr.is_here()
    setter = Typesetter(script)
    set_in_columns(setter, texts(1, 6, script), [Sheet(380, 330)])
    setter.save(tmp_path / "typeset.pdf")
    scanned(tmp_path / "typeset.pdf", tmp_path / "scan.pdf")
    found = overlaps(read(tmp_path / "scan.pdf", "pymupdf")[0], setter)
    assert statistics.fmean(found) >= 0.88
