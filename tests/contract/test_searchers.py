"""Every way of searching keeps the same promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.rag import records
from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.embedded_shelf import EmbeddedShelf
from core.rag.index_file import IndexFile
from core.rag.search import word_index
from core.rag.search.base import SEARCHER_REGISTRY, SEARCHERS, Searcher

TEXTS = {
    "lamp": ["The green lamp stands beside the door.", "A lamp needs a bulb."],
    "tea": ["Green tea is brewed at eighty degrees.", "绿茶用八十度的水冲泡。"],
}


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[EmbeddedShelf]:
    opened = EmbeddedShelf(IndexFile(tmp_path / "library.sqlite"))
    for name in TEXTS:
        put(opened, name)
    yield opened
    opened.close()


QUICK = "keyword, with the quick index"


# `front_page` looks at no question: it has promises of its own.
@pytest.fixture(params=[*(name for name in SEARCHERS if name != "front_page"), QUICK])
def searcher(request: pytest.FixtureRequest, shelf: EmbeddedShelf, monkeypatch: pytest.MonkeyPatch) -> Searcher:
    if request.param != QUICK:
        return SEARCHER_REGISTRY[request.param](shelf)
    monkeypatch.setattr(word_index, "LARGE", 1)
    assert shelf.quick_words(lambda: None).fill(threading.Event())
    return SEARCHER_REGISTRY["keyword"](shelf)


def put(shelf: EmbeddedShelf, name: str) -> None:
    chunks = [Chunk(text) for text in TEXTS[name]]
    shelf.put(Piece(Document(name, name, "text/plain", None, len(chunks)), chunks, []), is_first=True)


def ids_of(shelf: EmbeddedShelf, name: str) -> list[int]:
    return shelf.first_ids(name, 9)


def test_the_best_comes_first_and_no_more_than_asked(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    found = searcher.find("Where is the green lamp?", 3)
    assert found[0][0] == ids_of(shelf, "lamp")[0]
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert len(found) <= 3
    assert len(searcher.find("green", 1)) == 1
    assert searcher.find("green", 0) == []


def test_any_number_may_be_asked_for(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    found = {chunk_id for chunk_id, _ in searcher.find("green lamp tea", 2**60)}
    assert found >= {*ids_of(shelf, "lamp"), ids_of(shelf, "tea")[0]}
    assert {chunk_id for chunk_id, _ in searcher.find("green lamp tea", 2**60, list(TEXTS))} == found


def test_with_nothing_left_nothing_is_found(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    for name in TEXTS:
        shelf.remove(name)
    assert shelf.table.quick is None or shelf.table.quick.fill(threading.Event())
    assert searcher.find("green lamp", 9) == []
    assert searcher.find("green lamp", 9, ["lamp"]) == []


def test_chinese_is_found(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    assert searcher.find("绿茶怎么冲泡？", 1)[0][0] == ids_of(shelf, "tea")[1]


def test_only_the_named_documents_are_searched(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    assert {chunk_id for chunk_id, _ in searcher.find("green", 9, ["tea"])} <= set(ids_of(shelf, "tea"))
    assert searcher.find("green", 9, ["nobody"]) == []
    assert searcher.find("green", 9, []) == []


@pytest.mark.parametrize(
    "question", ["", " ", "?", '"', "lamp AND (", "NEAR(lamp", "lamp*", "terms:lamp", "'; DROP TABLE chunks"]
)
def test_no_question_breaks_it(searcher: Searcher, question: str) -> None:
    searcher.find(question, 3)


def test_a_pasted_book_is_a_question_too(searcher: Searcher) -> None:
    assert searcher.find("lamp " + " ".join(f"word{n}" for n in range(50_000)), 3)


def test_what_is_removed_is_not_found(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    gone = ids_of(shelf, "lamp")
    shelf.remove("lamp")
    assert not {chunk_id for chunk_id, _ in searcher.find("lamp", 9)} & set(gone)


def test_a_change_that_is_undone_leaves_nothing(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    before = searcher.find("green", 9)
    with pytest.raises(ZeroDivisionError), shelf.file.writing() as db:
        shelf.table.add(db, [999], shelf.table.prepare(["green green green"]))
        raise ZeroDivisionError
    assert searcher.find("green", 9) == before


def test_built_anew_it_finds_the_same(shelf: EmbeddedShelf, searcher: Searcher) -> None:
    before = searcher.find("green lamp 绿茶", 9)
    with shelf.file.writing() as db:
        shelf.table.rebuild(db, records.chunk_texts(db))
    assert searcher.find("green lamp 绿茶", 9) == before
