"""A short document does not wait for its vectors behind a long one, in either form of a library, and none starves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from core.errors import ModelServiceError
from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.retriever import BackgroundIndexer
from core.rag.search.turns import Makes
from core.rag.shelf import Shelf
from tests.contract.test_shelves import ByLot, opened, shelf
from tests.grown_postgres import migrated_postgres, postgres_server
from tests.grown_shelves import shelves

__all__ = ["migrated_postgres", "opened", "postgres_server", "shelf", "shelves"]

LONG = 60  # passages of a long document; eight make a batch


class Log(list[tuple[str, list[str]]]):
    """The batches of all models in their order: the model, and the first two words of each passage."""

    def of(self, model: str) -> list[list[str]]:
        return [batch for name, batch in self if name == model]

    def made(self, document: str, model: str = "quick") -> int:
        """How many passages of a document were made."""
        return sum(text.startswith(f"{document} ") for batch in self.of(model) for text in batch)

    def is_without_repeats(self) -> bool:
        made = [(name, text) for name, batch in self for text in batch]
        return len(set(made)) == len(made)


class Noting(ByLot):
    """Notes each batch, and does what a test says before it."""

    def __init__(self, log: Log, model: str = "quick", at_once: int = 8) -> None:
        super().__init__()
        self.log, self.model, self.at_once = log, model, at_once
        self.before: Callable[[int], None] = lambda number: None

    def passages(self, texts: Any) -> Any:
        self.before(len(self.log))
        rows = super().passages(texts)
        self.log.append((self.model, [" ".join(text.split()[1:3]) for text in texts]))
        return rows


def put(shelf: Shelf, name: str, passages: int, *, of: int = 0) -> None:
    """Put a document, or `passages` more of one that has `of` then."""
    chunks = [Chunk(f"{name} {number}") for number in range(of - passages if of else 0, of or passages)]
    status = "reading" if of else "ready"
    document = Document(name, name, "text/plain", None, of or passages, status)
    shelf.put(Piece(document, chunks, []), is_first=of in {0, passages})


def making(shelf: Shelf, models: Sequence[Noting]) -> Any:
    made = [shelf.vectors(one, most=None, in_parts=one.model == "slow", moved=lambda: None) for one in models]
    return shelf.making([one for one in made if one is not None])


def shelf_made(shelf: Shelf, model: Noting, document: str) -> tuple[int, int]:
    vectors = shelf.vectors(model, most=None, in_parts=False, moved=lambda: None)
    assert vectors is not None
    return (vectors.made([document]) or {})[document]


def fill(shelf: Shelf, *models: Noting, seconds: float = 60) -> bool:
    """As an open library does in the background, to its end."""
    indexer = BackgroundIndexer(making(shelf, models))
    try:
        return indexer.wait(seconds)
    finally:
        indexer.close()


def once(number: int, do: Callable[[], None]) -> Callable[[int], None]:
    """Do something before the batch with a number."""
    return lambda at: do() if at == number else None


def test_a_page_that_comes_while_a_long_document_is_made_is_in_the_next_batch(shelf: Shelf) -> None:
    model = Noting(Log())
    put(shelf, "long", LONG)
    model.before = once(1, lambda: put(shelf, "page", 1))
    assert fill(shelf, model)
    assert "page 0" in model.log[2][1]
    assert model.log.made("long") == LONG
    assert model.log.is_without_repeats()


def test_a_page_that_comes_while_the_slow_model_is_at_work_is_next_with_both_models(shelf: Shelf) -> None:
    log = Log()
    quick, slow = Noting(log), Noting(log, "slow", 1)
    put(shelf, "long", LONG)

    def come(_: int) -> None:
        slow.before = lambda _: None
        put(shelf, "page", 1)

    slow.before = come
    assert fill(shelf, quick, slow)
    after = [(name, batch) for name, batch in log if log.index((name, batch)) > log.index(("slow", ["long 0"]))]
    others = [(name, batch) for name, batch in after if (name, batch[0].split()[0]) != ("slow", "long")]
    assert others == [("quick", ["page 0"]), ("slow", ["page 0"])]
    assert log.index(("slow", ["page 0"])) < log.index(("slow", ["long 7"])), (
        "the long one is not made to its end first"
    )
    assert (log.made("long"), log.made("long", "slow")) == (LONG, LONG)
    assert log.is_without_repeats()


def test_what_was_left_by_an_earlier_process_begins_with_the_shortest(opened: Callable[[], Shelf]) -> None:
    model = Noting(Log())
    first = opened()
    put(first, "long", LONG)
    stop = threading.Event()
    model.before = once(1, stop.set)
    (only,) = making(first, [model])
    assert not only.fill(stop)
    for name, passages in (("letter", 10), ("page", 1)):
        put(first, name, passages)
    first.close()
    then = len(model.log)
    assert fill(opened(), model)
    assert model.log[then][1] == ["page 0", *(f"letter {number}" for number in range(7))]
    assert model.log[then + 1][1][:3] == ["letter 7", "letter 8", "letter 9"]
    assert model.log.made("long") == LONG
    assert model.log.is_without_repeats()


def test_many_short_ones_share_a_batch(shelf: Shelf) -> None:
    model = Noting(Log())
    for number in range(20):
        put(shelf, f"page{number}", 1)
    assert fill(shelf, model)
    assert [len(batch) for _, batch in model.log] == [8, 8, 4]


def test_a_long_one_has_every_fourth_batch_while_short_ones_come_without_end(shelf: Shelf) -> None:
    model = Noting(Log())
    put(shelf, "long", LONG)

    def come(number: int) -> None:
        if number < 40:
            put(shelf, f"short{number}", 8)

    model.before = come
    assert fill(shelf, model)
    began = [batch[0].split()[0] for _, batch in model.log]
    assert [at for at, name in enumerate(began) if name == "long"] == [0, *range(3, 31, 4)]
    assert model.log.is_without_repeats()


def test_a_scan_that_is_read_piece_by_piece_comes_behind_a_shorter_one(shelf: Shelf) -> None:
    model = Noting(Log())
    put(shelf, "scan", 20, of=20)
    assert fill(shelf, model)
    put(shelf, "scan", 4, of=24)
    put(shelf, "letter", 8)
    then = len(model.log)
    assert fill(shelf, model)
    assert [batch[0] for _, batch in model.log[then:]] == ["letter 0", "scan 20"]


def test_one_that_grows_while_it_waits_comes_behind_what_is_shorter_by_now(shelf: Shelf) -> None:
    model = Noting(Log())
    put(shelf, "long", LONG)

    def come(number: int) -> None:
        if number == 1:
            put(shelf, "page", 8)
            put(shelf, "scan", 10, of=10)
        elif number == 2:
            put(shelf, "scan", 10, of=20)
            put(shelf, "letter", 15)

    model.before = come
    assert fill(shelf, model)
    began = [batch[0] for _, batch in model.log]
    assert began[:7] == ["long 0", "long 8", "page 0", "long 16", "letter 0", "letter 8", "scan 1"]


def test_a_long_one_that_goes_in_the_middle_leaves_the_others_theirs(shelf: Shelf) -> None:
    model = Noting(Log())
    put(shelf, "long", LONG)
    put(shelf, "other", LONG)

    def go(_: int) -> None:
        if model.log.made("long") >= 8:
            model.before = lambda _: None
            shelf.remove("long")

    model.before = go
    assert fill(shelf, model)
    assert model.log.made("long") < LONG
    assert model.log.made("other") == LONG
    assert model.log.is_without_repeats()


def test_a_long_one_that_is_read_anew_in_the_middle_has_all_of_its_vectors(shelf: Shelf) -> None:
    model = Noting(Log())
    put(shelf, "long", LONG)
    model.before = once(3, lambda: put(shelf, "long", LONG))
    assert fill(shelf, model)
    assert shelf_made(shelf, model, "long") == (LONG, LONG)


def test_a_long_one_of_which_a_batch_fails_keeps_no_short_one_from_its_vectors(shelf: Shelf) -> None:
    log = Log()

    class Failing(Noting):
        def passages(self, texts: Any) -> Any:
            if any("long 20" in text for text in texts):
                raise ModelServiceError("The service refuses this text.")
            return super().passages(texts)

    put(shelf, "long", LONG)
    indexer = BackgroundIndexer(making(shelf, [Failing(log)]))
    assert not indexer.wait(60)
    for number in range(3):
        put(shelf, f"page{number}", 1)
        indexer.wake()
        assert not indexer.wait(60)
        assert log.made(f"page{number}") == 1
    indexer.close()
    put(shelf, "page3", 1)
    restarted = BackgroundIndexer(making(shelf, [Failing(log)]))
    assert not restarted.wait(60)
    restarted.wake()
    assert not restarted.wait(60)
    restarted.close()
    assert log.made("page3") == 1, "when the batch that it shared is tried again, if not before"
    assert fill(shelf, Noting(log))
    assert log.made("long") == LONG
    assert log.is_without_repeats()


def test_a_short_one_of_which_a_batch_fails_keeps_no_longer_one_from_its_vectors(shelf: Shelf) -> None:
    log = Log()

    class Failing(Noting):
        def passages(self, texts: Any) -> Any:
            if any("page 0" in text for text in texts):
                raise ModelServiceError("The service refuses this text.")
            return super().passages(texts)

    put(shelf, "page", 1)
    put(shelf, "letter", 10)
    indexer = BackgroundIndexer(making(shelf, [Failing(log)]))
    assert not indexer.wait(60)
    for _ in range(2):  # the letter shared a batch with the page: it is tried again by itself, behind the page
        indexer.wake()
        assert not indexer.wait(60)
    indexer.close()
    assert log.made("letter") == 10


class Refusing(Noting):
    """Fails at one document."""

    def passages(self, texts: Any) -> Any:
        if any("page 0" in text for text in texts):
            raise ModelServiceError("The service refuses this text.")
        return super().passages(texts)


def test_one_that_failed_comes_behind_all_that_did_not_however_long_it_waits(shelf: Shelf) -> None:
    model = Refusing(Log())
    put(shelf, "page", 1)
    indexer = BackgroundIndexer(making(shelf, [model]))
    assert not indexer.wait(60)
    put(shelf, "letter0", 8)

    def come() -> None:
        for number in range(1, 7):
            put(shelf, f"letter{number}", 8)

    model.before = once(0, come)
    indexer.wake()
    assert not indexer.wait(60)
    indexer.close()
    assert [model.log.made(f"letter{number}") for number in range(7)] == [8] * 7


def test_of_documents_that_are_gone_it_is_not_kept_that_they_failed(shelf: Shelf) -> None:
    model = Refusing(Log())
    vectors = shelf.vectors(model, most=None, in_parts=False, moved=lambda: None)
    assert vectors is not None
    (only,) = shelf.making([vectors])
    failed = cast("Makes", vectors).failed
    for more in (("letter", 1), None):
        put(shelf, "page", 1)
        assert not only.fill(threading.Event())
        assert list(failed) == ["page"]
        shelf.remove("page")
        if more is not None:
            put(shelf, *more)
        assert only.fill(threading.Event())
        assert failed == {}
        shelf.remove("letter")


@pytest.mark.parametrize("fails", ["quick", "slow"])
def test_a_model_that_fails_keeps_no_other_from_its_work(shelf: Shelf, fails: str) -> None:
    log = Log()
    models = [Noting(log), Noting(log, "slow", 1)]

    def broken(_: int) -> None:
        raise ValueError("It gave no numbers.")

    next(one for one in models if one.model == fails).before = broken
    put(shelf, "long", LONG)
    assert not fill(shelf, *models)
    works = "slow" if fails == "quick" else "quick"
    assert (log.made("long", works), log.made("long", fails)) == (LONG, 0)


def test_what_another_process_puts_is_taken_up_without_being_told(opened: Callable[[], Shelf]) -> None:
    here, there = opened(), opened()
    model = Noting(Log())
    put(here, "long", LONG)
    model.before = once(1, lambda: put(there, "page", 1))
    assert fill(here, model)
    assert "page 0" in model.log[2][1]


def test_what_another_process_made_meanwhile_is_not_made_again(opened: Callable[[], Shelf]) -> None:
    here, there = opened(), opened()
    log = Log()
    model = Noting(log)
    put(here, "long", LONG)

    def made_there(_: int) -> None:
        model.before = lambda _: None
        assert fill(there, Noting(log))

    model.before = made_there
    assert fill(here, model)
    assert log.made("long") == LONG + 8, "but for the batch that both had in hand"
