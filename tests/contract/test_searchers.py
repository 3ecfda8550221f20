"""Every way of searching keeps the same promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.rag import records
from core.rag.document import Chunk, Document
from core.rag.index_file import IndexFile
from core.rag.search import word_index
from core.rag.search.base import SEARCHER_REGISTRY, SEARCHERS, Searcher
from core.rag.search.keyword import KeywordSearcher
from core.rag.search.word_index import WordIndex

TEXTS = {
    "lamp": ["The green lamp stands beside the door.", "A lamp needs a bulb."],
    "tea": ["Green tea is brewed at eighty degrees.", "绿茶用八十度的水冲泡。"],
}


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IndexFile]:
    opened = IndexFile(tmp_path / "library.sqlite")
    yield opened
    opened.close()


QUICK = "keyword, with the quick index"


# `front_page` looks at no question: it has promises of its own.
@pytest.fixture(params=[*(name for name in SEARCHERS if name != "front_page"), QUICK])
def searcher(request: pytest.FixtureRequest, file: IndexFile, monkeypatch: pytest.MonkeyPatch) -> Searcher:
    if request.param != QUICK:
        made = SEARCHER_REGISTRY[request.param](file)
        for name in TEXTS:
            put(file, made, name)
        return made
    monkeypatch.setattr(word_index, "LARGE", 1)
    quick = WordIndex(file, lambda: None)
    made = KeywordSearcher(file, quick=quick)
    for name in TEXTS:
        put(file, made, name)
    assert quick.fill(threading.Event())
    return made


def put(file: IndexFile, searcher: Searcher, name: str) -> list[int]:
    chunks = [Chunk(text) for text in TEXTS[name]]
    with file.writing() as db:
        ids = records.insert(db, Document(name, name, "text/plain", None, len(chunks)), chunks, [])
        searcher.add(db, ids, searcher.prepare(TEXTS[name]))
    return ids


def ids_of(file: IndexFile, name: str) -> list[int]:
    with file.reading() as db:
        return records.chunk_ids(db, name)


def test_the_best_comes_first_and_no_more_than_asked(file: IndexFile, searcher: Searcher) -> None:
    found = searcher.find("Where is the green lamp?", 3)
    assert found[0][0] == ids_of(file, "lamp")[0]
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert len(found) <= 3
    assert len(searcher.find("green", 1)) == 1
    assert searcher.find("green", 0) == []


def test_any_number_may_be_asked_for(file: IndexFile, searcher: Searcher) -> None:
    found = {chunk_id for chunk_id, _ in searcher.find("green lamp tea", 2**60)}
    assert found >= {*ids_of(file, "lamp"), ids_of(file, "tea")[0]}
    assert {chunk_id for chunk_id, _ in searcher.find("green lamp tea", 2**60, list(TEXTS))} == found


def test_with_nothing_left_nothing_is_found(file: IndexFile, searcher: Searcher) -> None:
    with file.writing() as db:
        for name in TEXTS:
            searcher.remove(db, records.chunk_ids(db, name))
        db.execute("DELETE FROM documents")
    quick = getattr(searcher, "_quick", None)
    assert quick is None or quick.fill(threading.Event())
    assert searcher.find("green lamp", 9) == []
    assert searcher.find("green lamp", 9, ["lamp"]) == []


def test_chinese_is_found(file: IndexFile, searcher: Searcher) -> None:
    assert searcher.find("绿茶怎么冲泡？", 1)[0][0] == ids_of(file, "tea")[1]


def test_only_the_named_documents_are_searched(file: IndexFile, searcher: Searcher) -> None:
    assert {chunk_id for chunk_id, _ in searcher.find("green", 9, ["tea"])} <= set(ids_of(file, "tea"))
    assert searcher.find("green", 9, ["nobody"]) == []
    assert searcher.find("green", 9, []) == []


@pytest.mark.parametrize(
    "question", ["", " ", "?", '"', "lamp AND (", "NEAR(lamp", "lamp*", "terms:lamp", "'; DROP TABLE chunks"]
)
def test_no_question_breaks_it(searcher: Searcher, question: str) -> None:
    searcher.find(question, 3)


def test_a_pasted_book_is_a_question_too(searcher: Searcher) -> None:
    assert searcher.find("lamp " + " ".join(f"word{n}" for n in range(50_000)), 3)


def test_what_is_removed_is_not_found(file: IndexFile, searcher: Searcher) -> None:
    gone = ids_of(file, "lamp")
    with file.writing() as db:
        searcher.remove(db, gone)
        db.execute("DELETE FROM documents WHERE id = 'lamp'")
    assert not {chunk_id for chunk_id, _ in searcher.find("lamp", 9)} & set(gone)


def test_a_change_that_is_undone_leaves_nothing(file: IndexFile, searcher: Searcher) -> None:
    before = searcher.find("green", 9)
    with pytest.raises(ZeroDivisionError), file.writing() as db:
        searcher.add(db, [999], searcher.prepare(["green green green"]))
        raise ZeroDivisionError
    assert searcher.find("green", 9) == before


def test_built_anew_it_finds_the_same(file: IndexFile, searcher: Searcher) -> None:
    before = searcher.find("green lamp 绿茶", 9)
    texts = [(chunk_id, text) for name in TEXTS for chunk_id, text in zip(ids_of(file, name), TEXTS[name], strict=True)]
    with file.writing() as db:
        searcher.rebuild(db, texts)
    assert searcher.find("green lamp 绿茶", 9) == before
