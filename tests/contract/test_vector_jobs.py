"""Vectors of a library in PostgreSQL are made by one process at a time, and whatever ends it, another one goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import psycopg
import pytest

from core.errors import ModelServiceError
from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.grown import makers, making
from core.rag.grown.makers import Maker
from core.rag.grown.making import VectorJobs
from core.rag.grown.shelf import PgShelf, PgShelves
from core.rag.shelf import Derived
from tests.contract.test_shelves import ByLot
from tests.grown_postgres import migrated_postgres, postgres_server

__all__ = ["migrated_postgres", "postgres_server"]

_NUMBERS = count()
PASSAGES = 20  # of which eight make a batch


class KilledError(BaseException):
    """The process ends here: nothing is given back."""


class Model(ByLot):
    """Notes what it made, and does what a test says before that."""

    at_once = 8

    def __init__(self, sign: float = 1.0) -> None:
        super().__init__()
        self._sign = sign
        self.made: list[str] = []
        self.before: Callable[[], None] = lambda: None

    def passages(self, texts: Any) -> Any:
        self.before()
        self.made += texts
        return super().passages(texts) * self._sign


class Held:
    """Holds a model at a batch until a test lets it go on."""

    def __init__(self, model: Model, at: int = 1) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        left = count(1)

        def wait() -> None:
            if next(left) == at:
                self.reached.set()
                assert self.go_on.wait(30)

        model.before = wait

    def wait(self) -> None:
        assert self.reached.wait(30)


class Pause(threading.Event):
    """Whoever waits between two looks waits until a test lets them go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go_on = threading.Event(), threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        self.reached.set()
        assert self.go_on.wait(30)
        return self.is_set()


class Process:
    """A process that has a library open."""

    def __init__(self, address: str, name: str, owner: str, *, makes: bool = True, models: str = "one 1") -> None:
        self.shelves = PgShelves(address, maker=Maker(name, makes, models=models))
        assert self.shelves.jobs is not None
        self.jobs: VectorJobs = self.shelves.jobs
        self.jobs.beat, self.jobs.patience = 3600.0, 0.0  # a test says when
        self.jobs.begin()
        self.owner, self.stop, self.told = owner, threading.Event(), 0
        self.model = Model()
        self.outcome: bool | None = None
        self._thread: threading.Thread | None = None
        self.shelf: PgShelf = self.shelves.of(owner)

    def making(self, owner: str = "") -> Derived:
        shelf = self.shelves.of(owner) if owner else self.shelf
        vectors = shelf.vectors(self.model, most=None, in_parts=False, moved=self._moved)
        assert vectors is not None
        return shelf.making([vectors])[0]

    def _moved(self) -> None:
        self.told += 1

    def fill(self) -> bool:
        return self.making().fill(self.stop)

    def begin(self) -> None:
        def work() -> None:
            try:
                self.outcome = self.fill()
            except KilledError:
                self.outcome = None

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def end(self) -> bool | None:
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.outcome

    def put(self, name: str = "lamp", passages: int = PASSAGES) -> None:
        chunks = [Chunk(f"{name} {number}") for number in range(passages)]
        self.shelf.put(Piece(Document(name, name, "text/plain", None, passages), chunks, []), is_first=True)

    def rows(self, query: str) -> list[Any]:
        return self.shelf._rows(query)  # pyright: ignore[reportPrivateUsage]

    @property
    def kept(self) -> int:
        return self.rows("SELECT count(*) FROM passage_vectors WHERE owner = %(owner)s AND shelf = %(shelf)s")[0][0]

    @property
    def job(self) -> Any:
        return self.jobs.of(self.shelf._shelf)  # pyright: ignore[reportPrivateUsage]

    @property
    def waits(self) -> float:
        """Seconds until its job may be begun."""
        job = "SELECT due - extract(epoch FROM clock_timestamp()) FROM vector_jobs WHERE shelf = %(shelf)s"
        return float(self.rows(job)[0][0])

    @property
    def standing(self) -> str:
        return self.jobs.standing([self.owner])[self.owner]

    def set(self, what: str) -> None:
        """Change the row of its job by hand."""
        self.do(f"UPDATE vector_jobs SET {what} WHERE owner = '{self.owner}'")

    def gone(self) -> None:
        """It has said nothing for long."""
        self.do(f"UPDATE vector_makers SET until = 0 WHERE worker = '{self.jobs.worker}'")

    def do(self, what: str) -> None:
        with self.shelves._server.writing() as db:  # pyright: ignore[reportPrivateUsage]
            db.execute(what.encode())

    def fail(self) -> None:
        """Try, while the service is away."""

        def away() -> None:
            raise ModelServiceError("The service is away.")

        self.set("due = 0")
        self.model.before = away
        assert not self.fill()


@pytest.fixture
def processes(migrated_postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Process]]:
    """Opens one and the same library in processes by their names; what tests before left waits for nobody."""
    monkeypatch.setattr(making, "_LOOKS", 0.01)
    monkeypatch.setattr(makers, "_EVERY", 0.0)
    with psycopg.connect(migrated_postgres) as db:
        db.execute("DELETE FROM libraries.vector_jobs")
        db.execute("DELETE FROM libraries.vector_makers")
    owner, opened = f"makes vectors {next(_NUMBERS)}", list[Process]()

    def open_one(name: str, **more: Any) -> Process:
        opened.append(Process(migrated_postgres, name, **{"owner": owner, **more}))
        return opened[-1]

    yield open_one
    for one in opened:
        one.stop.set()
        one.shelves.close()


def test_passages_and_the_note_that_they_lack_vectors_are_stored_together(processes: Any) -> None:
    one = processes("one")

    def refuse() -> None:
        raise KilledError

    piece = Piece(Document("a", "a", "text/plain", None, 1), [Chunk("a")], [])
    with pytest.raises(KilledError):
        one.shelf.put(piece, is_first=True, check=refuse)
    assert one.rows("SELECT 1 FROM vector_jobs WHERE shelf = %(shelf)s") == []
    one.put()
    assert (one.job.owner, one.job.worker, one.job.tries) == (one.owner, None, 0)
    assert one.fill()
    assert one.kept == PASSAGES
    assert one.job is None


def test_what_one_process_makes_another_does_not_and_sees_how_far_it_is(processes: Any) -> None:
    one, other, web = processes("one"), processes("other"), processes("web", makes=False)
    one.put()
    held = Held(one.model, at=2)
    one.begin()
    held.wait()
    other.begin()
    web.stop = looked = Pause()
    web.begin()
    assert other.jobs.take_waiting() == []
    assert web.jobs.take_waiting() == []
    assert looked.reached.wait(30)
    looked.go_on.set()
    held.go_on.set()
    assert [each.end() for each in (one, other, web)] == [True, True, True]
    assert (len(one.model.made), other.model.made, web.model.made) == (PASSAGES, [], [])
    assert (other.kept, other.job) == (PASSAGES, None)
    assert web.told


def test_a_page_that_another_process_takes_in_is_made_between_two_batches_of_a_long_document(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()
    held = Held(one.model)
    one.begin()
    held.wait()
    other.put("page", 1)
    other.begin()
    held.go_on.set()
    assert [one.end(), other.end()] == [True, True]
    assert [text.split()[1] for text in one.model.made[7:10]] == ["lamp", "page", "lamp"]
    assert (len(one.model.made), other.model.made) == (PASSAGES + 1, [])
    assert (other.kept, other.job) == (PASSAGES + 1, None)


def test_one_that_serves_pages_alone_waits_for_one_that_makes_vectors(processes: Any) -> None:
    web, worker = processes("web", makes=False), processes("worker")
    web.put()
    web.begin()
    worker.set("due = 0")
    (taken,) = worker.jobs.take_waiting()
    assert taken.owner == web.owner
    assert worker.fill()
    assert web.end()
    assert (len(worker.model.made), web.model.made) == (PASSAGES, [])


def test_whoever_takes_over_goes_on_behind_the_last_batch(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()
    batches = count(1)

    def killed() -> None:
        if next(batches) == 3:
            raise KilledError

    one.model.before = killed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making.HeldJob, "give_up", lambda *_, **__: None)
        with pytest.raises(KilledError):
            one.fill()
    assert one.kept == 16
    other.jobs.free_left()
    assert other.job.worker == "one", "its lease is not over"
    one.set("lease_until = 0")
    other.jobs.free_left()
    assert other.job.worker == "one", "it is over at one look: the database may have been away"
    other.jobs.free_left()
    assert other.job.worker is None
    assert other.fill()
    assert len(other.model.made) == PASSAGES - 16
    assert (other.kept, other.job) == (PASSAGES, None)


def test_one_that_wakes_late_stores_nothing(processes: Any) -> None:
    late, other = processes("late"), processes("other")
    late.model._sign = -1.0
    late.put()
    held = Held(late.model)
    late.begin()
    held.wait()
    other.set("lease_until = 0")
    other.jobs.free_left()
    other.jobs.free_left()
    its_first = Held(other.model)
    other.begin()
    its_first.wait()
    gone = threading.Event()
    late.jobs.room = gone.set
    held.go_on.set()
    assert gone.wait(30)
    assert (other.kept, late.jobs.held) == (0, {}), "what it made while it slept"
    its_first.go_on.set()
    assert other.end()
    assert late.end(), "all are there, made by the other one"
    assert (len(late.model.made), len(other.model.made)) == (8, PASSAGES)


def test_a_busy_maker_keeps_its_lease(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()
    held = Held(one.model)
    one.begin()
    held.wait()
    for _ in range(2):
        other.set("lease_until = 0")
        other.jobs.free_left()
        one.jobs.renew()
        other.jobs.free_left()
    assert (other.job.worker, other.job.over) == ("one", False)
    held.go_on.set()
    assert one.end()
    assert len(one.model.made) == PASSAGES


def test_what_comes_while_the_last_batch_is_made_is_not_forgotten(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()
    finish = making.HeldJob.finish
    late = iter(["tea", "bread"])

    def with_more(held: making.HeldJob) -> bool:
        if (name := next(late, None)) is not None:
            other.put(name)
        return finish(held)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making.HeldJob, "finish", with_more)
        assert one.fill()
    assert (one.kept, one.job) == (3 * PASSAGES, None)
    assert len(set(one.model.made)) == len(one.model.made) == 3 * PASSAGES


def test_what_fails_is_tried_again_later_by_whoever_comes(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()

    one.fail()
    assert (one.job.worker, one.job.tries, one.job.due) == (None, 1, False)
    assert not other.fill(), "it is not its time yet"
    assert other.jobs.take_waiting() == []
    assert other.model.made == []
    other.set("due = 0")
    assert [held.owner for held in other.jobs.take_waiting()] == [one.owner]
    assert other.fill()
    assert (other.kept, other.job) == (PASSAGES, None)


def test_what_fails_waits_twice_as_long_each_time_and_never_more_than_five_minutes(processes: Any) -> None:
    one = processes("one")
    one.put()
    waited: list[float] = []
    for _ in range(7):
        one.fail()
        waited.append(one.waits)
    assert waited == pytest.approx([15, 30, 60, 120, 240, 300, 300], abs=10)


def test_what_failed_is_tried_at_once_when_its_owner_asks_for_it_or_a_process_begins(processes: Any) -> None:
    one = processes("one")
    one.put()
    one.fail()
    one.jobs.try_again("somebody else")
    assert not one.job.due
    one.jobs.try_again(one.owner)
    assert (one.job.due, one.job.tries) == (True, 0)
    one.fail()
    processes("web", makes=False)
    assert not one.job.due, "it makes none"
    processes("started")
    assert (one.job.due, one.job.tries) == (True, 0)
    one.set("lost = 3, due = due + 3600")
    processes("started after those that died of it")
    assert not one.job.due, "it would end them one after another"
    one.jobs.try_again(one.owner)
    assert one.job.due


def test_what_holds_up_vectors_is_told(processes: Any) -> None:
    web = processes("web", makes=False)
    assert web.standing == "", "there is nothing to be made"
    web.put()
    assert web.standing == "", "somebody may come"
    web.set("due = due - 10")
    assert web.standing == "nobody"
    assert not web.fill(), "nobody is waited for in vain"
    one = processes("one")
    assert web.standing == ""
    one.fail()
    assert (web.standing, one.standing) == ("failed", "failed")
    one.jobs.try_again(one.owner)
    assert web.standing == ""
    one.gone()
    web.set("due = due - 10")
    assert web.standing == "nobody"
    older = f"worker = 'one of an older version', lease_until = {makers.NOW} + 8"
    web.set(older)
    assert web.standing == "", "which says nothing of itself"
    assert not web.jobs.is_held_up, "and what else waits is waited for"


def test_where_models_differ_those_of_the_maker_that_came_last_are_used(
    processes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    old, web = processes("old"), processes("web", makes=False)
    old.put()
    held = Held(old.model)
    old.begin()
    held.wait()
    new = processes("new", models="another 2")
    old.jobs.makers.look()
    held.go_on.set()
    assert not old.end(), "it leaves off after its batch"
    assert len(old.model.made) == 8
    assert "makes them by another 2" in caplog.text
    assert (old.standing, web.standing, new.standing) == ("differs", "differs", "")
    assert (new.jobs.makers.others, web.jobs.makers.others) == (("one 1",), ("another 2",))
    assert not old.jobs.take_waiting()
    new.model.model = "another"
    assert new.fill()
    assert len(new.model.made) == PASSAGES
    assert new.job is None
    assert not old.fill()
    assert new.job is None, "what one has made is not asked for again by the other"
    for process in (old, web):
        process.gone()
    updated = processes("old one, updated", models="another 2")
    new.jobs.makers.look()
    assert (updated.standing, updated.jobs.makers.others, new.jobs.makers.others) == ("", (), ())


def test_makers_go_on_when_the_one_with_other_models_is_gone(processes: Any) -> None:
    one = processes("one")
    one.put()
    stray = processes("stray", models="another 2")
    web = processes("web of another version", makes=False, models="yet another 3")
    assert not one.fill()
    stray.gone()
    assert one.fill()
    assert web.standing == "differs", "it has no say, for it makes none"


def test_a_library_of_which_processes_die_waits_before_the_next_one_tries(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()
    for times in (1, 2, 3):
        assert one.jobs.take(one.shelf._shelf) is not None
        one.jobs.held.clear()  # it is gone
        one.set("lease_until = 0")
        other.jobs.free_left()
        other.jobs.free_left()
        assert (other.job.worker, other.job.lost, other.job.due) == (None, times, times < 3)


def test_where_all_places_are_taken_a_long_one_lets_others_go_before(
    processes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "MOST", 1)
    monkeypatch.setattr(making, "_SLICE", 0.0)
    worker, small = processes("worker"), processes("page", owner="has little", makes=False)
    worker.put()
    held = Held(worker.model)
    waits = Pause()
    worker.stop = waits
    has_room = threading.Event()
    worker.jobs.room = has_room.set
    worker.begin()
    held.wait()
    small.put("small", 1)
    small.set("due = 1")
    assert worker.jobs.take_waiting() == [], "there is no room"
    held.go_on.set()
    assert has_room.wait(30)
    assert waits.reached.wait(30), "it comes back for its place before the other one has had a look"
    taken = [one.owner for one in worker.jobs.take_waiting()]
    waits.go_on.set()
    assert (taken, worker.kept) == (["has little"], 8)
    assert worker.making("has little").fill(threading.Event())
    assert small.job is None
    assert worker.end()
    assert (worker.kept, worker.job) == (PASSAGES, None)
    assert len(set(worker.model.made)) == len(worker.model.made) == PASSAGES + 1
    small.shelves.forget("has little")


def test_a_library_that_is_deleted_while_its_vectors_are_made_leaves_nothing(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()
    held = Held(one.model)
    one.begin()
    held.wait()
    other.shelf.delete()
    held.go_on.set()
    assert one.end()
    assert (one.kept, one.job, one.jobs.held) == (0, None, {})


def test_what_a_process_holds_that_is_closed_another_takes_at_once(processes: Any) -> None:
    one, other = processes("one"), processes("other")
    one.put()
    held = Held(one.model)
    one.begin()
    held.wait()
    one.jobs.close()
    one.stop.set()
    assert other.job.worker == "one", "it stores its batch first"
    held.go_on.set()
    assert not one.end()
    assert one.jobs.take(one.shelf._shelf) is None, "it takes nothing any more"
    assert other.fill()
    assert (len(one.model.made), len(other.model.made)) == (8, PASSAGES - 8)


def test_vectors_of_another_model_are_noted_when_the_library_is_opened(processes: Any) -> None:
    one, web = processes("one"), processes("web", makes=False)
    one.put()
    assert one.fill()
    for process in (one, web):
        process.model.model = "another"
    wanted, want = threading.Event(), web.jobs.want

    def noted(*given: Any) -> None:
        want(*given)
        wanted.set()

    web.jobs.want = noted
    web.begin()
    assert wanted.wait(30)
    one.set("due = 0")
    assert len(one.jobs.take_waiting()) == 1
    assert one.fill()
    assert web.end()
    assert one.kept == 2 * PASSAGES
    assert not np.any([one.jobs.held, web.jobs.held])
