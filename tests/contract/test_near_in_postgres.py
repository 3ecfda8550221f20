"""A large library in PostgreSQL has an index of its vectors, made beside all that goes on, and gone with it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.grown import near
from core.rag.grown import vectors as compared
from core.rag.grown.near import PgGraph
from core.rag.grown.shelf import PgShelf, PgShelves
from core.rag.grown.vectors import PgVectors
from core.rag.records import searched_text
from core.rag.search.turns import InTurns
from tests.contract.test_shelves import ByLot
from tests.grown_shelves import shelves

__all__ = ["shelves"]
MANY = 60


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "LEAST", MANY)
    monkeypatch.setattr(compared, "LEAST", MANY)
    monkeypatch.setattr(near, "_NEXT_TURN", 0.01)


def filled(
    shelves: PgShelves, owner: str, count: int = MANY, library: str = "documents"
) -> tuple[PgShelf, PgVectors, PgGraph]:
    shelf = shelves.of(owner, library)
    for at in range(0, count, 30):
        chunks = [Chunk(f"passage {at + number}") for number in range(30)]
        shelf.put(Piece(Document(f"{at}", "", "text/plain", None, 30), chunks, []), is_first=True)
    vectors = shelf.vectors(ByLot(), most=None, in_parts=False, moved=lambda: None)
    assert vectors is not None
    assert InTurns([vectors]).fill(threading.Event())
    assert vectors.graph is not None
    return shelf, vectors, vectors.graph


def rows(shelf: PgShelf, query: str) -> list[Any]:
    return [row[0] for row in shelf._rows(query)]  # pyright: ignore[reportPrivateUsage]


def indexes(shelf: PgShelf, graph: PgGraph) -> list[bool]:
    asked = f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('libraries.{graph.name}')"
    return rows(shelf, asked)


def test_a_large_library_finds_the_nearest_by_its_index_as_it_would_without(shelves: PgShelves) -> None:
    shelf, vectors, graph = filled(shelves, "near, large")
    question, some = searched_text("", "", "passage 41"), ["0", "30"]
    without = vectors.like(question, nearest=5)
    assert graph.is_wanted()
    assert not graph.is_there()
    assert graph.fill(threading.Event())
    assert graph.is_there()
    assert indexes(shelf, graph) == [True]
    for documents in (None, some, ["30"]):
        found = vectors.like(question, documents, nearest=5, also=shelf.first_ids("30", 1))
        assert without is not None
        assert found is not None
        best = int(found.ids[np.argmax(found.cosines)])
        assert best == int(without.ids[np.argmax(without.cosines)])
        assert set(shelf.first_ids("30", 1)) <= set(found.ids.tolist())


def test_vectors_that_come_later_go_into_the_index(shelves: PgShelves) -> None:
    shelf, vectors, graph = filled(shelves, "near, growing")
    assert graph.fill(threading.Event())
    shelf.put(Piece(Document("new", "", "text/plain", None, 1), [Chunk("a lamp")], []), is_first=True)
    assert InTurns([vectors]).fill(threading.Event())
    found = vectors.like(searched_text("", "", "a lamp"), nearest=3)
    assert found is not None
    assert int(found.ids[np.argmax(found.cosines)]) == shelf.first_ids("new", 1)[0]
    assert indexes(shelf, graph) == [True]


def test_a_small_library_has_none_and_one_that_became_small_has_none_any_more(shelves: PgShelves) -> None:
    shelf, _, graph = filled(shelves, "near, small", 30)
    assert not graph.is_wanted()
    assert graph.fill(threading.Event())
    assert indexes(shelf, graph) == []
    shelf, _, graph = filled(shelves, "near, smaller")
    assert graph.fill(threading.Event())
    shelf.remove("0")
    shelf.put(Piece(Document("few", "", "text/plain", None, 1), [Chunk("one more")], []), is_first=True)
    shelf.remove("30")
    assert graph.is_wanted()
    assert graph.fill(threading.Event())
    assert indexes(shelf, graph) == []


def test_what_a_killed_process_has_left_half_made_is_not_used_and_is_made_anew(shelves: PgShelves) -> None:
    shelf, vectors, graph = filled(shelves, "near, killed")
    assert graph.fill(threading.Event())
    rows(
        shelf,
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'libraries.{graph.name}'::regclass RETURNING 1",
    )
    assert PgGraph(*shelf_of(vectors)).is_there() is False
    assert graph.fill(threading.Event())
    assert indexes(shelf, graph) == [True]


def shelf_of(vectors: PgVectors) -> tuple[Any, Any]:
    return vectors._server, vectors._given  # pyright: ignore[reportPrivateUsage]


def test_who_makes_one_waits_for_its_turn_unless_its_process_ends(shelves: PgShelves) -> None:
    shelf, vectors, graph = filled(shelves, "near, turn")
    server, _ = shelf_of(vectors)
    ended = threading.Event()
    ended.set()
    held = server.lock(near._ONE_AT_A_TIME)  # pyright: ignore[reportPrivateUsage]
    try:
        assert not graph.fill(ended)
    finally:
        server.unlock(held, near._ONE_AT_A_TIME)  # pyright: ignore[reportPrivateUsage]
    assert indexes(shelf, graph) == []


def test_two_libraries_get_their_indexes_at_the_same_time(shelves: PgShelves) -> None:
    both = [filled(shelves, "near, both", library=library) for library in ("one", "other")]
    server, _ = shelf_of(both[0][1])
    over: list[bool] = []
    with server.writing() as db:  # whoever makes one waits for this, and has the table
        db.execute("LOCK TABLE passage_vectors IN ROW EXCLUSIVE MODE")
        making = [threading.Thread(target=lambda one=one: over.append(one.fill(threading.Event()))) for *_, one in both]
        for thread in making:
            thread.start()
        made = "SELECT count(*) FROM pg_stat_activity WHERE starts_with(query, 'CREATE INDEX CONCURRENTLY near')"
        while not rows(both[0][0], made)[0]:
            assert making[0].is_alive() or making[1].is_alive()
    for thread in making:
        thread.join(20)
    assert over == [True, True]
    assert [indexes(shelf, graph) for shelf, _, graph in both] == [[True], [True]]


def test_a_library_goes_while_the_index_of_another_is_made_and_its_own_goes_after_that(shelves: PgShelves) -> None:
    shelf, vectors, graph = filled(shelves, "near, going")
    assert graph.fill(threading.Event())
    server, _ = shelf_of(vectors)
    held = server.lock(near._ONE_AT_A_TIME)  # pyright: ignore[reportPrivateUsage]
    try:
        shelf.delete()
    finally:
        server.unlock(held, near._ONE_AT_A_TIME)  # pyright: ignore[reportPrivateUsage]
    assert indexes(shelf, graph) == [True]
    *_, other = filled(shelves, "near, staying")
    assert other.fill(threading.Event())
    assert indexes(shelf, graph) == []


def test_it_goes_with_its_library(shelves: PgShelves) -> None:
    shelf, _, graph = filled(shelves, "near, gone")
    assert graph.fill(threading.Event())
    shelf.delete()
    assert indexes(shelf, graph) == []


def test_a_process_that_ends_does_not_wait_until_it_is_made(shelves: PgShelves) -> None:
    shelf, vectors, graph = filled(shelves, "near, ended")
    server, _ = shelf_of(vectors)
    stop, over = threading.Event(), list[bool]()
    with server.writing() as db:  # a transaction that has looked at the table is waited for
        db.execute("LOCK TABLE passage_vectors IN ROW EXCLUSIVE MODE")
        making = threading.Thread(target=lambda: over.append(graph.fill(stop)))
        making.start()
        stop.set()
        making.join(10)
        assert over == [False]
    assert indexes(shelf, graph) in ([], [False])
    assert graph.fill(threading.Event())
    assert indexes(shelf, graph) == [True]
