"""Words of a large library in PostgreSQL are listed beside all that goes on, and found as if each were looked up."""

from __future__ import annotations

import random
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.grown import listed, words
from core.rag.grown.listed import WordLists
from core.rag.grown.shelf import PgShelf, PgShelves
from core.rag.library import Library
from tests.grown_shelves import shelves

__all__ = ["shelves"]
WORDS = [f"word{number}" for number in range(30)]
ASKED = ["word2", "word7", "word29", "绿", "绿茶"]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LARGE": 40, "_NEW": 5, "_MOST_NEW": 20, "_PLACES": 32, "_AT_ONCE": 10, "_SPARE": 2}.items():
        monkeypatch.setattr(listed, name, value)
    monkeypatch.setattr(listed, "_NEXT_TURN", 0.01)
    monkeypatch.setattr(words, "_EACH", 0)


def put(shelf: PgShelf, name: str, count: int = 30) -> None:
    chance = random.Random(name)
    often = [1 / (number + 1) for number in range(len(WORDS))]  # some stand nearly everywhere, some seldom
    texts = [" ".join(chance.choices(WORDS, often, k=chance.randrange(3, 40))) for _ in range(count)]
    chunks = [Chunk(f"{text} 绿茶" if number % 7 == 3 else text) for number, text in enumerate(texts)]
    shelf.put(Piece(Document(name, "", "text/plain", None, count), chunks, []), is_first=True)


def filled(shelves: PgShelves, owner: str, count: int = 3) -> tuple[PgShelf, WordLists]:
    shelf = shelves.of(owner)
    for number in range(count):
        put(shelf, f"{owner} {number}")
    lists = shelf.quick_words(lambda: None)
    assert lists.fill(threading.Event())
    return shelf, lists


def looked_up(shelf: PgShelf, asked: list[str], k: int) -> list[tuple[int, float]]:
    with shelf._server.reading() as db:  # pyright: ignore[reportPrivateUsage]
        return words.find(db, (shelf._owner, shelf._shelf), asked, k, None)  # pyright: ignore[reportPrivateUsage]


def parts(shelf: PgShelf) -> list[int]:
    rows = shelf._rows("SELECT passages FROM word_parts WHERE shelf = %(shelf)s ORDER BY last")  # pyright: ignore[reportPrivateUsage]
    return [row[0] for row in rows]


def check_the_same(shelf: PgShelf, monkeypatch: pytest.MonkeyPatch, ks: tuple[int, ...] = (1, 7, 500)) -> None:
    """What is found by the lists alone is what is found where each passage is looked up."""
    wanted = {k: looked_up(shelf, ASKED, k) for k in ks}
    with monkeypatch.context() as only_lists:
        only_lists.setattr(words, "_EACH_TERM", "neither")
        only_lists.setattr(words, "_RARE_FIRST", "nor")
        for k in ks:
            found = shelf.words(ASKED, k)
            assert [one for one, _ in found] == [one for one, _ in wanted[k]]
            assert [score for _, score in found] == pytest.approx([score for _, score in wanted[k]])


def test_listed_words_are_found_and_scored_as_if_each_were_looked_up(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, _ = filled(shelves, "listed, same")
    assert parts(shelf) == [32, 32, 26]
    check_the_same(shelf, monkeypatch)
    assert shelf.words(["nowhere"], 9) == []
    monkeypatch.setattr(listed, "_MOST_ADDED", 30)
    check_the_same(shelf, monkeypatch, (7,))


def test_what_came_later_is_found_and_what_went_is_not(shelves: PgShelves, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, lists = filled(shelves, "listed, changing", 4)
    put(shelf, "new", 4)
    shelf.remove("listed, changing 1")
    check_the_same(shelf, monkeypatch)
    assert lists.fill(threading.Event())
    check_the_same(shelf, monkeypatch)


def test_where_the_best_are_gone_the_next_ones_are_found(shelves: PgShelves, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, lists = filled(shelves, "listed, best", 3)
    best = " ".join(ASKED)
    shelf.put(Piece(Document("best", "", "text/plain", None, 20), [Chunk(best)] * 20, []), is_first=True)
    assert lists.fill(threading.Event())
    shelf.remove("best")
    check_the_same(shelf, monkeypatch, (3,))


def test_a_small_library_is_not_listed_and_one_that_became_small_is_no_more(shelves: PgShelves) -> None:
    shelf, lists = filled(shelves, "listed, small", 1)
    assert not lists.is_wanted()
    assert parts(shelf) == []
    put(shelf, "more")
    assert lists.is_wanted()
    assert lists.fill(threading.Event())
    assert sum(parts(shelf)) == 60
    shelf.remove("more")
    shelf.remove("listed, small 0")
    put(shelf, "few", 3)
    assert lists.is_wanted()
    assert lists.fill(threading.Event())
    assert parts(shelf) == []
    assert not lists.is_wanted()


def test_what_comes_piece_by_piece_is_put_together_and_what_is_mostly_gone_is_listed_anew(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed, "_PLACES", 1000)
    shelf, lists = filled(shelves, "listed, pieces", 3)
    for number in range(8):
        put(shelf, f"piece {number}", 6)
        assert lists.fill(threading.Event())
    assert len(parts(shelf)) <= 4, parts(shelf)
    assert sum(parts(shelf)) == 138
    check_the_same(shelf, monkeypatch, (7,))
    for number in range(2):
        shelf.remove(f"listed, pieces {number}")
    assert lists.fill(threading.Event())
    assert parts(shelf) == [78]
    left = "SELECT count(*) FROM word_lists WHERE part NOT IN (SELECT id FROM word_parts)"
    assert shelf._rows(left) == [(0,)]  # pyright: ignore[reportPrivateUsage]


def test_who_asks_a_library_that_is_not_listed_or_not_far_enough_has_it_listed(shelves: PgShelves) -> None:
    shelf = shelves.of("listed, old")
    put(shelf, "a")
    put(shelf, "b")
    told: list[int] = []
    lists = shelf.quick_words(lambda: told.append(1))
    wanted = looked_up(shelf, ASKED, 7)
    assert shelf.words(ASKED, 7) == wanted
    assert len(told) == 1
    assert lists.fill(threading.Event())
    shelf.words(ASKED, 7)
    assert len(told) == 1
    put(shelf, "c")
    assert shelf.words(ASKED, 7) == looked_up(shelf, ASKED, 7)
    assert len(told) == 2


def test_a_search_holds_no_connection_while_it_says_that_lists_are_missing(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = shelves.of("listed, held")
    put(shelf, "a", 50)
    server, held, told = shelf._server, list[int](), list[int]()  # pyright: ignore[reportPrivateUsage]
    reading = server.reading

    @contextmanager
    def counted() -> Generator[Any]:
        with reading() as db:
            held.append(1)
            yield db
            held.pop()

    monkeypatch.setattr(server, "reading", counted)
    shelf.quick_words(lambda: told.append(len(held)))
    assert shelf.words(ASKED, 7)
    assert told == [0]


def test_a_search_in_a_small_library_asks_for_no_lists(shelves: PgShelves, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    for count in (10, 30):  # the other one may have been a large one, and may have lists
        shelf = shelves.of(f"listed, {count}")
        put(shelf, "a", count)
        shelf.quick_words(lambda: told.append(1))
        wanted = looked_up(shelf, ASKED, 7)
        with monkeypatch.context() as none_there:
            if count < listed.LARGE // 2:
                none_there.setattr(listed, "_LISTS", "neither")
            assert shelf.words(ASKED, 7) == wanted
    assert told == []


def test_a_few_chosen_documents_are_searched_whole_in_a_very_large_library(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, _ = filled(shelves, "listed, chosen")
    chosen = ["listed, chosen 1"]
    wanted = shelf.words(ASKED, 9, chosen)
    monkeypatch.setattr(words, "_MANY", 1)
    monkeypatch.setattr(words, "_ENOUGH", 30)
    found = shelf.words(ASKED, 9, chosen)
    assert [one for one, _ in found] == [one for one, _ in wanted]
    assert shelf.words(["word0"], 99, chosen), "a word that is everywhere is in them too"


def test_lists_go_with_their_library_and_none_are_made_of_one_that_goes(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, _ = filled(shelves, "listed, gone")
    other = shelves.of("listed, going")
    put(other, "a", 50)
    lists, write = other.quick_words(lambda: None), listed._write  # pyright: ignore[reportPrivateUsage]

    def deleted_first(*given: Any) -> None:
        other.delete()
        write(*given)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(listed, "_write", deleted_first)
        assert not lists.fill(threading.Event())
    shelf.delete()
    stays = shelves.of("listed, stays")
    count = "SELECT (SELECT count(*) FROM word_parts WHERE shelf NOT IN (SELECT id FROM shelves)), "
    count += "(SELECT count(*) FROM word_lists WHERE part NOT IN (SELECT id FROM word_parts))"
    assert stays._rows(count) == [(0, 0)]  # pyright: ignore[reportPrivateUsage]


def test_a_library_is_deleted_while_its_lists_are_put_together(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed, "_PLACES", 1000)
    shelf, lists = filled(shelves, "listed, both", 2)
    put(shelf, "new", 31)
    drop, deleting, failed = listed._drop, list[threading.Thread](), list[Exception]()  # pyright: ignore[reportPrivateUsage]

    def delete() -> None:
        try:
            shelf.delete()
        except Exception as error:
            failed.append(error)

    def waits() -> bool:
        return bool(shelf._rows("SELECT FROM pg_locks WHERE NOT granted"))  # pyright: ignore[reportPrivateUsage]

    def meanwhile(db: Any, parts: Any) -> None:
        drop(db, parts)
        if not deleting:
            deleting.append(threading.Thread(target=delete))
            deleting[0].start()
            while deleting[0].is_alive() and not waits():
                pass

    monkeypatch.setattr(listed, "_drop", meanwhile)
    assert lists.fill(threading.Event())
    deleting[0].join(20)
    assert failed == []
    assert shelf._rows("SELECT FROM word_parts WHERE shelf = %(shelf)s") == []  # pyright: ignore[reportPrivateUsage]


def test_lists_that_an_older_parlour_left_behind_go_when_others_are_made(shelves: PgShelves) -> None:
    shelf, _ = filled(shelves, "listed, left", 2)
    with shelf._server.writing() as db:  # pyright: ignore[reportPrivateUsage]
        db.execute("DELETE FROM passages WHERE owner = 'listed, left'")
        db.execute("DELETE FROM shelves WHERE owner = 'listed, left'")
    left = "SELECT count(*) FROM word_lists WHERE part NOT IN (SELECT id FROM word_parts)"
    assert shelf._rows(left) != [(0,)]  # pyright: ignore[reportPrivateUsage]
    other, _ = filled(shelves, "listed, after", 2)
    assert parts(other) == [32, 28]
    assert shelf._rows(left) == [(0,)]  # pyright: ignore[reportPrivateUsage]


def test_one_process_lists_at_a_time_and_one_that_ends_waits_for_nothing(shelves: PgShelves) -> None:
    shelf = shelves.of("listed, turn")
    put(shelf, "a", 50)
    lists, stop, over = shelf.quick_words(lambda: None), threading.Event(), list[bool]()
    server, key = shelf._server, listed._ONE_AT_A_TIME  # pyright: ignore[reportPrivateUsage]
    held = server.lock(key)
    assert held is not None
    making = threading.Thread(target=lambda: over.append(lists.fill(stop)))
    making.start()
    stop.set()
    making.join(10)
    server.unlock(held, key)
    assert over == [False]
    assert parts(shelf) == []
    assert lists.fill(threading.Event())
    assert parts(shelf) == [32, 18]


def test_an_open_library_has_itself_listed_and_what_is_added_too(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shelf = shelves.of("listed, open")
    put(shelf, "a", 50)
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}, shelf=shelf) as library:
        assert library.retriever.wait_for_words(20)
        assert sum(parts(shelf)) == 50
        put(shelf, "b", 9)
        library.retriever.changed()
        assert library.retriever.wait_for_words(20)
        assert sum(parts(shelf)) == 59
        check_the_same(shelf, monkeypatch, (7,))
