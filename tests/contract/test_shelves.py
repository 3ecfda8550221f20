"""Every shelf keeps the same promises: the embedded one in a file, the grown one in PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np
import pytest

from core.errors import NotFoundError, StorageError
from core.rag.context_builder import ContextBuilder
from core.rag.document import Chunk, Document, Figure, Heading, PageShape
from core.rag.draft import Piece
from core.rag.embedded_shelf import EmbeddedShelf
from core.rag.grown.shelf import PgShelves
from core.rag.index_file import IndexFile
from core.rag.library import Library
from core.rag.search.base import SEARCHER_REGISTRY
from core.rag.search.keyword import KeywordSearcher
from core.rag.search.turns import InTurns, Makes
from core.rag.shelf import Shelf, Vectors
from core.storage.shelf_tables import half_read_statement, shelf_statements
from tests.grown_postgres import PostgresServer, migrated_postgres, postgres_server
from tests.grown_shelves import shelves

__all__ = ["migrated_postgres", "postgres_server", "shelves"]

TEXTS = {
    "lamp": ["The green lamp stands beside the door.", "A lamp needs a bulb."],
    "tea": ["Green tea is brewed at eighty degrees.", "绿茶用八十度的水冲泡。"],
}
_NUMBERS = count()


class ByLot:
    """A vector of length 1 for each text, always the same for the same text."""

    model = "by lot"
    at_once = 4

    def __init__(self, size: int = 16) -> None:
        self._size = size

    def ready(self) -> bool:
        return True

    def passages(self, texts: Any) -> Any:
        made = [np.random.default_rng(crc32(text.encode())).standard_normal(self._size) for text in texts]
        return np.array([one / np.linalg.norm(one) for one in made], np.float16).astype(np.float32)

    questions = passages

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture(params=["embedded", "grown"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Shelf]]:
    """Opens one and the same library, as another process would."""
    made: list[Shelf] = []
    shelves: PgShelves | None = request.getfixturevalue("shelves") if request.param == "grown" else None
    owner = f"owner {next(_NUMBERS)}"

    def open_one() -> Shelf:
        made.append(shelves.of(owner) if shelves else EmbeddedShelf(IndexFile(tmp_path / "library.sqlite")))
        return made[-1]

    yield open_one
    for one in made:
        one.close()


@pytest.fixture
def shelf(opened: Callable[[], Shelf]) -> Shelf:
    return opened()


def put(shelf: Shelf, name: str, *texts: str | Chunk, **more: Any) -> Document:
    chunks = [Chunk(one) if isinstance(one, str) else one for one in texts or TEXTS[name]]
    kept = shelf.put(Piece(Document(name, name, "text/plain", None, len(chunks), **more), chunks, []), is_first=True)
    assert kept is not None
    return kept


def found(shelf: Shelf, question: str, k: int = 9, documents: list[str] | None = None) -> list[str]:
    scored = SEARCHER_REGISTRY["keyword"](shelf).find(question, k, documents)
    return [passage.text for passage in shelf.passages(scored)]


def filled(vectors: Vectors) -> bool:
    """Whether all that are missing are made now."""
    return InTurns([cast("Makes", vectors)]).fill(threading.Event())


def vectors_of(shelf: Shelf, size: int = 16, **more: Any) -> Vectors:
    made = shelf.vectors(ByLot(size), **{"most": None, "in_parts": False, "moved": lambda: None, **more})
    assert made is not None
    return made


def test_an_empty_shelf_says_so(shelf: Shelf) -> None:
    assert shelf.documents() == []
    assert shelf.document("lamp") is None
    assert found(shelf, "lamp") == []
    assert shelf.whole(["lamp"]) == []
    assert shelf.beginnings(5) == []
    assert shelf.letters(["lamp"]) == 0
    assert shelf.last_page("lamp") == 0
    assert shelf.passages([]) == []
    assert shelf.passages([(7, 1.0)]) == []
    assert vectors_of(shelf).like("lamp") is None
    shelf.remove("lamp")


def test_documents_come_back_as_they_were_put_the_oldest_first(shelf: Shelf) -> None:
    put(shelf, "tea", title="Of tea", size=5_000_000_000, seconds=0.25, invisible=3, tables=2, scanned=1)
    put(shelf, "lamp")
    first, second = shelf.documents()
    assert first == Document("tea", "tea", "text/plain", None, 2, "ready", "", "Of tea", 5_000_000_000, 1, 2, 0.25, 3)
    assert second == shelf.document("lamp")


def test_passages_come_back_in_their_order_with_their_places(shelf: Shelf) -> None:
    places = ((1.0, 2.5, 3.0, 4.125), (0.1, 0.2, 0.3, 0.4))
    chunks = [Chunk("one", page=1, rectangles=places, heading="A > B"), Chunk("two", page=1), Chunk("three", page=2)]
    put(shelf, "a", *chunks)
    put(shelf, "b", "four")
    every = shelf.whole(["b", "a", "nobody"])
    assert [(one.text, one.page, one.document_id) for one in every] == [
        ("one", 1, "a"),
        ("two", 1, "a"),
        ("three", 2, "a"),
        ("four", None, "b"),
    ]
    assert (every[0].rectangles, every[0].heading) == (places, "A > B")
    assert [one.text for one in shelf.some("a", 1, 9)] == ["two", "three"]
    ids = [one.chunk_id for one in every]
    assert shelf.first_ids("a", 2) == ids[:2]
    assert [one.score for one in shelf.passages([(ids[2], 0.5), (10**9, 1.0), (ids[0], 0.25)])] == [0.5, 0.25]
    assert shelf.places(ids[:2]) == {ids[0]: (0, 0), ids[1]: (1, 0)}
    assert [shelf.position("a", page=page) for page in (1, 2, 3)] == [0, 2, 3]
    assert shelf.position("a", chunk_id=ids[2]) == 2
    assert shelf.height(every[1]) == 0.5
    assert [one for one, _ in shelf.beginnings(3)] == [ids[0], ids[3], ids[1]]
    assert shelf.letters(["a"]) == len("onetwothree")
    assert shelf.holding("a", 1, "tw") == [(ids[1], "two")]
    assert shelf.headings(["a", "b"]) == {"a": [Heading(1, "A", 1), Heading(2, "B", 1)]}


def test_pages_and_figures_come_back(shelf: Shelf) -> None:
    shapes = [PageShape(1, 400.5, 500.25, (1.0, 2.0, 3.0, 4.0)), PageShape(2, 400.0, 500.0)]
    figures = [
        Figure("a", "a", 2, None, "", "", None, "image2.png"),
        Figure("a", "a", 1, 1, "figure 1", "Figure 1: 一", (1, 2, 3, 4), "place"),
    ]
    shelf.put(Piece(Document("a", "a", "application/pdf", 2, 0), [], shapes, figures), is_first=True)
    assert [shelf.shape("a", page) for page in (1, 2)] == shapes
    assert shelf.last_page("a") == 2
    assert shelf.figures(["a", "b"]) == figures[::-1]
    for wrong in (3, 0, -1, 10**12):
        with pytest.raises(NotFoundError):
            shelf.shape("a", wrong)


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Where is the green lamp?", TEXTS["lamp"][0]),
        ("a bulb for lamps", TEXTS["lamp"][1]),
        ("绿茶怎么冲泡？", TEXTS["tea"][1]),
        ("八十度", TEXTS["tea"][1]),
        ("GREEN TEA", TEXTS["tea"][0]),
    ],
)
def test_words_of_both_languages_are_found(shelf: Shelf, question: str, best: str) -> None:
    for name in TEXTS:
        put(shelf, name)
    assert found(shelf, question)[0] == best
    assert found(shelf, question, k=1) == [best]
    assert found(shelf, question, documents=[]) == found(shelf, question, documents=["nobody"]) == []


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ("green te", [TEXTS["tea"][0]]),
        ("the lamp nee", [TEXTS["lamp"][1]]),
        ("gre", [TEXTS["lamp"][0], TEXTS["tea"][0]]),
        ("lamp green", [TEXTS["lamp"][0]]),
        ("stand", [TEXTS["lamp"][0]]),
        ("八十度", [TEXTS["tea"][1]]),
        ("lamp zebra", []),
        ("zeb", []),
    ],
)
def test_all_words_have_to_be_there_the_last_perhaps_begun(shelf: Shelf, typed: str, texts: list[str]) -> None:
    for name in TEXTS:
        put(shelf, name, title="Of things")
    searcher = KeywordSearcher(shelf)
    assert {one.text for one in shelf.passages(searcher.holding(typed, 9))} == set(texts)
    assert searcher.holding(typed, 9, ["nobody"]) == []
    within = [one.text for one in shelf.passages(searcher.holding(typed, 9, ["tea"]))]
    assert within == [text for text in texts if text in TEXTS["tea"]]


def test_only_what_is_named_is_searched(shelf: Shelf) -> None:
    for name in TEXTS:
        put(shelf, name)
    assert found(shelf, "green", documents=["tea"]) == [TEXTS["tea"][0]]
    assert len(found(shelf, "green lamp tea", k=2**60)) == 4


def test_what_is_removed_is_gone_and_what_stays_is_found_as_if_it_had_never_been(
    opened: Callable[[], Shelf], tmp_path: Path
) -> None:
    shelf, alone = opened(), EmbeddedShelf(IndexFile(tmp_path / "alone.sqlite"))
    for name in TEXTS:
        put(shelf, name)
    assert filled(vectors_of(shelf))
    shelf.remove("lamp")
    put(alone, "tea")
    ranked = [score for _, score in shelf.words(["green", "tea"], 9)]
    assert ranked == pytest.approx([score for _, score in alone.words(["green", "tea"], 9)])
    both = [one.all_words(["tea"], 9, either=["green"], begun="b") for one in (shelf, alone)]
    assert [score for _, score in both[0]] == pytest.approx([score for _, score in both[1]])
    assert found(shelf, "lamp bulb") == []
    assert [one.id for one in shelf.documents()] == ["tea"]
    likeness = vectors_of(shelf).like("anything")
    assert likeness is not None
    assert likeness.ids.tolist() == shelf.first_ids("tea", 9)
    alone.close()


def test_a_document_that_is_read_again_replaces_its_old_text(shelf: Shelf) -> None:
    put(shelf, "lamp")
    before = shelf.first_ids("lamp", 9)
    put(shelf, "lamp", "The lamp is blue now.")
    assert found(shelf, "green bulb") == []
    assert found(shelf, "lamp") == ["The lamp is blue now."]
    assert not set(before) & set(shelf.first_ids("lamp", 9))  # numbers are never given twice
    assert len(shelf.documents()) == 1


def test_a_document_grows_piece_by_piece_and_keeps_its_new_name(shelf: Shelf) -> None:
    document = put(shelf, "lamp", "The first page is of lamps.", status="reading")
    shelf.rename("lamp", "all of lamps")
    whole = replace(document, chunks=2, status="ready")
    kept = shelf.put(Piece(whole, [Chunk("The second is of bulbs.")], []), is_first=False)
    assert kept == replace(whole, name="all of lamps")
    assert found(shelf, "bulbs") == ["The second is of bulbs."]
    assert [position for position, _ in shelf.places(shelf.first_ids("lamp", 9)).values()] == [0, 1]
    shelf.mark_stopped("lamp")
    assert (there := shelf.document("lamp")) is not None
    assert there.status == "stopped"


def test_what_is_taken_out_while_it_is_read_does_not_come_back(shelf: Shelf) -> None:
    document = put(shelf, "lamp")
    shelf.remove("lamp")
    assert shelf.put(Piece(replace(document, chunks=3), [Chunk("more")], []), is_first=False) is None
    assert shelf.documents() == []


def test_what_its_check_forbids_leaves_nothing(shelf: Shelf) -> None:
    put(shelf, "lamp")

    def forbid() -> None:
        raise ZeroDivisionError

    for name, is_first in (("lamp", True), ("lamp", False), ("tea", True)):
        with pytest.raises(ZeroDivisionError):
            shelf.put(
                Piece(Document(name, name, "text/plain", None, 1), [Chunk("x")], []), is_first=is_first, check=forbid
            )
    assert [one.text for one in shelf.whole(["lamp", "tea"])] == TEXTS["lamp"]


def test_letters_are_counted_no_further_than_is_asked_for(shelf: Shelf) -> None:
    names = [f"document {number}" for number in range(20)]
    for name in names:
        put(shelf, name, "ten signs.")
    assert shelf.letters(names) == shelf.letters(names, 200) == 200
    assert 15 < shelf.letters(names, 15) < 200
    assert shelf.letters([], 15) == 0


def test_a_check_tells_what_is_so_when_its_turn_has_come(opened: Callable[[], Shelf]) -> None:
    shelf, other = opened(), opened()
    put(shelf, "lamp")
    waits, over, checked = threading.Event(), threading.Event(), list[bool]()

    def slow() -> None:
        waits.set()
        assert over.wait(20)

    def late() -> None:
        checked.append(over.is_set())

    def write(shelf: Shelf, name: str, check: Callable[[], None]) -> None:
        shelf.put(Piece(Document(name, name, "text/plain", None, 1), [Chunk("x")], []), is_first=True, check=check)

    first = threading.Thread(target=write, args=(shelf, "slow", slow))
    second = threading.Thread(target=write, args=(other, "late", late))
    first.start()
    assert waits.wait(20)
    second.start()
    second.join(0.2)  # it waits for its turn, or has looked too early
    over.set()
    first.join(20)
    second.join(20)
    assert checked == [True]


def test_overlapping_passages_are_joined_without_saying_anything_twice(shelf: Shelf) -> None:
    put(shelf, "a", Chunk("One. Two.", page=1), Chunk("Two. Three.", page=1, overlap=5), Chunk("Four.", page=2))
    texts = [one.text for one in ContextBuilder(shelf).whole(["a"])]
    assert texts == ["One. Two. Three.", "Four."]
    assert [one.text for one in ContextBuilder(shelf).full_text(["a"], 1000) or ()] == texts


def test_two_writers_each_get_their_turn(opened: Callable[[], Shelf]) -> None:
    shelves = [opened(), opened()]
    errors: list[BaseException] = []

    def write(shelf: Shelf, name: str) -> None:
        try:
            for number in range(6):
                put(shelf, f"{name}{number}", f"shared words of {name} {number}", "other shared words")
            shelf.remove(f"{name}0")
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(one, name)) for one, name in zip(shelves, "ab", strict=True)]
    for one in writers:
        one.start()
    for one in writers:
        one.join(60)
    assert not errors
    assert len(shelves[0].documents()) == 10
    assert len(shelves[0].words(["share"], 99)) == 20
    assert len(shelves[1].words(["a"], 99)) + len(shelves[1].words(["b"], 99)) in {0, 5, 10}


def test_a_document_removed_during_a_search_is_left_out(opened: Callable[[], Shelf]) -> None:
    shelf, other = opened(), opened()
    for name in TEXTS:
        put(shelf, name)
    scored = SEARCHER_REGISTRY["keyword"](shelf).find("green", 9)
    placed = shelf.whole(["lamp", "tea"])
    other.remove("lamp")
    assert [one.text for one in shelf.passages(scored)] == [TEXTS["tea"][0]]
    assert [one.document_id for one in ContextBuilder(shelf).merged(placed)] == ["tea"]
    assert shelf.terms_of([chunk_id for chunk_id, _ in scored]).keys() == set(shelf.first_ids("tea", 1))


def test_signs_that_no_database_keeps_end_nothing(shelf: Shelf) -> None:
    put(shelf, "odd", "before\0after \ud800 lamp", Chunk("text", heading="\udc00 head\0ing"))
    first = shelf.whole(["odd"])[0].text
    assert first == "before\ufffdafter \ufffd lamp"
    assert found(shelf, "lamp \ud800\0") == [first]
    assert shelf.first_ids("a\0b", 5) == []
    assert shelf.last_page("a\0b") == 0
    shelf.rename("a\0b", "nobody")
    assert vectors_of(shelf).made(["a\0b"]) == {}
    assert shelf.holding("odd", None, "lamp")
    put(shelf, "tea", *TEXTS["tea"])
    assert len(found(shelf, "绿茶")) == 1


def test_every_chunk_is_compared_once_all_have_vectors(shelf: Shelf) -> None:
    vectors = vectors_of(shelf)
    for name in TEXTS:
        put(shelf, name)
    assert vectors.like("question") is None
    assert vectors.made(["tea", "nobody"]) == {"tea": (0, 2)}
    assert filled(vectors)
    assert vectors.made(["tea"]) == {"tea": (2, 2)}
    likeness = vectors.like("question")
    assert likeness is not None
    every = shelf.whole(list(TEXTS))
    asked = ByLot().questions(["question"])[0]
    told = [f"{one.document_id}\n\n{one.text}" for one in every]
    expected = dict(zip((one.chunk_id for one in every), ByLot().passages(told) @ asked, strict=True))
    assert likeness.ids.tolist() == sorted(expected)
    assert dict(zip(likeness.ids.tolist(), likeness.cosines.tolist(), strict=True)) == pytest.approx(expected, abs=3e-3)
    few = vectors.like("question", ["tea"])
    assert few is not None
    assert few.ids.tolist() == shelf.first_ids("tea", 9)
    assert vectors.like("question", []) is None
    put(shelf, "new", "not compared yet")
    assert vectors.like("question") is None
    assert vectors.like("question", ["tea"]) is not None


def test_the_nearest_are_enough_and_with_them_those_that_are_asked_for(shelf: Shelf) -> None:
    put(shelf, "many", *(f"passage {number}" for number in range(40)))
    vectors = vectors_of(shelf)
    assert filled(vectors)
    every = vectors.like("question")
    assert every is not None
    order = [int(every.ids[at]) for at in np.argsort(-every.cosines)]
    likeness = vectors.like("question", nearest=5, also=[order[-1]])
    assert likeness is not None
    assert {*order[:5], order[-1]} <= set(likeness.ids.tolist())
    searcher = SEARCHER_REGISTRY["vector"](shelf, [vectors])
    assert [one for one, _ in searcher.find("question", 5)] == order[:5]


def test_of_a_chunk_in_parts_the_likest_part_counts(shelf: Shelf) -> None:
    sentences = [f"Sentence number {number} is of its own." for number in range(9)]
    put(shelf, "long", " ".join(sentences), "Short.")
    vectors = vectors_of(shelf, in_parts=True)
    assert filled(vectors)
    likeness = vectors.like("question")
    assert likeness is not None
    assert likeness.in_parts
    assert likeness.cosines.shape == (2,)


def test_vectors_of_another_model_count_for_nothing(shelf: Shelf) -> None:
    class Other(ByLot):
        model = "another"

    put(shelf, "lamp")
    assert filled(vectors_of(shelf))
    other = shelf.vectors(Other(32), most=None, in_parts=False, moved=lambda: None)
    assert other is not None
    assert other.like("question") is None
    assert filled(other)
    assert other.like("question") is not None
    assert vectors_of(shelf).like("question") is not None


def test_notes_are_kept_until_one_of_their_documents_goes(shelf: Shelf) -> None:
    for name in TEXTS:
        put(shelf, name)
    shelf.notes.keep("both", ["lamp", "tea"], "noted 一\0")
    shelf.notes.keep("tea", ["tea"], "first")
    shelf.notes.keep("tea", ["tea"], "second")
    shelf.notes.keep("gone", ["tea", "nobody"], "never")
    assert set(shelf.notes.kept(["both", "tea", "gone"])) == {"both", "tea"}
    assert shelf.notes.kept(["tea"]) == {"tea": "second"}
    shelf.remove("lamp")
    assert set(shelf.notes.kept(["both", "tea"])) == {"tea"}


def test_a_document_is_locked_for_all_that_use_the_library(opened: Callable[[], Shelf]) -> None:
    first, second = opened().lock("lamp"), opened().lock("lamp")
    assert first.acquire()
    assert not second.acquire()
    other = opened().lock("tea")
    assert other.acquire()
    other.release()
    first.release()
    assert second.acquire()
    second.release()


def test_a_closed_shelf_says_so(shelf: Shelf) -> None:
    assert shelf.is_intact()
    shelf.close()
    assert not shelf.is_intact()
    with pytest.raises(StorageError):
        shelf.documents()
    with pytest.raises(StorageError):
        put(shelf, "lamp")


def test_a_library_reads_finds_and_removes_on_it(opened: Callable[[], Shelf], tmp_path: Path) -> None:
    source = tmp_path / "manual.md"
    source.write_text("# Reset\n\nHold the red button for five seconds.\n\n# 清洁\n\n每周清洁一次滤网。\n", "utf-8")
    with Library.open(tmp_path / "library", shelf=opened()) as library:
        document = library.add(source)
        assert library.add(source) == document
        assert "red button" in library.find("How do I reset it?")[0].text
        assert "滤网" in library.find("多久清洁滤网？")[0].text
        assert library.add(source, name="renamed.md").name == "renamed.md"
        assert library.add(source, name="renamed.md", again=True).status == "ready"
        assert [one.text for one in library.headings([document.id])[document.id]] == ["Reset", "清洁"]
    with Library.open(tmp_path / "library", shelf=opened()) as library:
        assert [one.name for one in library.documents()] == ["renamed.md"]
        library.remove(document.id)
        assert library.find("red button") == []


# ---- what holds of the grown one alone


def test_what_another_owner_has_is_never_found(shelves: PgShelves) -> None:
    mine, theirs, other = shelves.of("mine"), shelves.of("theirs"), shelves.of("mine", "another library")
    put(theirs, "lamp")
    put(mine, "tea")
    assert filled(vectors_of(theirs))
    ids = theirs.first_ids("lamp", 9)
    for stranger in (mine, other):
        assert found(stranger, "lamp bulb") == []
        assert stranger.document("lamp") is None
        assert stranger.passages([(one, 1.0) for one in ids]) == []
        assert stranger.texts_of(ids) == []
        assert stranger.terms_of(ids) == {}
        assert stranger.places(ids) == {}
        assert stranger.whole(["lamp"]) == stranger.some("lamp", 0, 9) == []
        assert stranger.beginnings(9, ["lamp"]) == []
        assert stranger.position("lamp", chunk_id=ids[1]) == 0
        stranger.remove("lamp")
        stranger.rename("lamp", "taken")
    assert vectors_of(mine).like("lamp", nearest=9, also=ids) is None
    assert [one.name for one in theirs.documents()] == ["lamp"]


def test_a_library_that_is_deleted_leaves_nothing(shelves: PgShelves) -> None:
    gone, stays = shelves.of("gone"), shelves.of("stays")
    for one in (gone, stays):
        put(one, "lamp")
        assert filled(vectors_of(one))
    gone.delete()
    assert gone.documents() == []
    assert found(gone, "lamp") == []
    with pytest.raises(StorageError, match="was deleted"):
        put(gone, "tea")
    assert len(found(stays, "lamp")) == 2


def test_all_that_an_owner_has_is_forgotten_and_nothing_of_others(shelves: PgShelves) -> None:
    for owner, library in (("leaves", "documents"), ("leaves", "another"), ("remains", "documents")):
        put(shelves.of(owner, library), "lamp")
    shelves.forget("leaves")
    shelves.forget("nobody")
    assert shelves.of("leaves").documents() == shelves.of("leaves", "another").documents() == []
    assert len(found(shelves.of("remains"), "lamp")) == 2


def test_an_address_is_read_as_it_is_for_all_other_tables(postgres_server: PostgresServer) -> None:
    made = PgShelves(postgres_server.address("postgres").replace("postgres@", "postgres:a%2Fb/c@"))
    with made._server.reading() as db:  # pyright: ignore[reportPrivateUsage]
        shown = [db.execute(f"SHOW {name}".encode()).fetchone() for name in ("application_name", "lock_timeout")]
        shown.append(db.execute("SHOW tcp_keepalives_idle").fetchone())
    assert shown == [("parlour-shelf",), ("30s",), ("30",)]
    made.close()


def test_a_server_without_pgvector_is_searched_by_words_and_says_so_once(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    from core.rag.grown import connections

    address = postgres_server.make("without_vectors")
    with psycopg.connect(address) as db:
        for statement in [*shelf_statements(1), half_read_statement()]:
            db.execute(statement.encode())
    monkeypatch.setattr(connections, "EXTENSION", "an extension that nobody has")
    without = PgShelves(address)
    shelf = without.of("owner")
    put(shelf, "lamp")
    for _ in range(2):
        assert shelf.vectors(ByLot(), most=None, in_parts=False, moved=lambda: None) is None
    assert found(shelf, "lamp")
    assert SEARCHER_REGISTRY["hybrid"](shelf).find("lamp", 9)
    assert [one.message for one in caplog.records if "pgvector" in one.message] == [
        "The database has no pgvector, so libraries are searched by words only: install it, and start again."
    ]
    shelf.remove("lamp")
    without.close()


def test_words_that_are_everywhere_bring_nothing_in_where_the_library_is_very_large(
    shelves: PgShelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.rag.grown import words

    shelf = shelves.of("large")
    put(shelf, "many", *(f"common word{number % 7} passage" for number in range(50)), "common rare passage")
    exact = shelf.words(["common", "rare", "word3"], 3)
    monkeypatch.setattr(words, "_MANY", 20)
    monkeypatch.setattr(words, "_ENOUGH", 10)
    assert shelf.words(["common", "rare", "word3"], 3) == exact
    monkeypatch.setattr(words, "_RAREST", 1)
    ((_, alone),) = shelf.words(["common", "rare", "word3"], 3)
    assert alone < exact[0][1], "of very many terms the rarest count"
    assert len(shelf.words(["common"], 99)) == 51
