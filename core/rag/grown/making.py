"""Vectors of libraries in PostgreSQL are a job: noted with the passages, held by one process, gone when all are made.

What is kept of a job is kept batch by batch, so whoever takes it over goes on behind the last. Each batch is stored
under the epoch of its maker: one that was taken for dead, and wakes, stores nothing any more.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from core.errors import StorageError
from core.rag.grown.makers import NOW, Makers
from core.rag.search.turns import InTurns, LeftOffError, Makes
from core.rag.shelf import writable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from core.rag.grown.connections import Connections, Db
    from core.rag.grown.makers import HeldUp, Maker

_log = logging.getLogger(__name__)

MOST: Final = 16
"""Libraries whose vectors one process makes at the same time."""
_AT_ONCE: Final = 2  # that are taken in one go: others want some, too
_SLICE: Final = 30.0  # seconds after which a library lets one of another owner go before, where all places are taken
_LOOKS: Final = 1.0  # seconds between two looks at what another process makes
_GRACE: Final = 1.0  # seconds for which it is left to who has the library open
_TOLD_AFTER: Final = 5.0  # seconds that one waits before it is said that nobody makes it
_AGAIN: Final = 15.0  # seconds until what failed is tried again, twice as long each time
_LONGEST: Final = 300.0
_MOST_LOST: Final = 2  # processes that may die of a library before it has to wait
_AFTER_LOSS: Final = 60.0  # seconds that it waits then, twice as long each time
_LONGEST_AFTER_LOSS: Final = 3600.0
_NOTED: Final = f"""
INSERT INTO vector_jobs (shelf, owner, due) SELECT id, owner, {NOW} FROM shelves WHERE id = %s
ON CONFLICT (shelf) DO UPDATE SET asked = vector_jobs.asked + 1"""  # noqa: S608 - our own names
_COLUMNS: Final = "shelf, owner, asked, kept, worker, epoch, lease_until, tries, lost"
_SEEN: Final = f"SELECT {_COLUMNS}, lease_until < {NOW}, due <= {NOW} FROM vector_jobs"  # noqa: S608 - our own names
_FREE: Final = f"""
SELECT j.shelf FROM vector_jobs j JOIN shelves s ON s.id = j.shelf AND s.library = 'documents'
WHERE j.worker IS NULL AND j.due <= {NOW} - {_GRACE}"""  # noqa: S608 - the same
_ONE: Final = f"SELECT shelf FROM vector_jobs WHERE shelf = %(shelf)s AND worker IS NULL AND due <= {NOW}"  # noqa: S608
_TAKE: Final = f"""
WITH next AS MATERIALIZED ({{which}} LIMIT %(most)s FOR UPDATE {{of}} SKIP LOCKED)
UPDATE vector_jobs v SET worker = %(worker)s, epoch = epoch + 1, lease_until = {NOW} + %(lease)s
FROM next WHERE v.shelf = next.shelf RETURNING v.shelf, v.owner, v.epoch, v.asked"""  # noqa: S608 - the same

_RENEW: Final = f"""
UPDATE vector_jobs
SET lease_until = {NOW} + %(lease)s, kept = kept + %(kept)s,
    tries = CASE WHEN %(kept)s > 0 THEN 0 ELSE tries END, lost = CASE WHEN %(kept)s > 0 THEN 0 ELSE lost END
WHERE shelf = %(shelf)s AND epoch = %(epoch)s AND worker = %(worker)s"""  # noqa: S608 - the same
_AT_ONCE_AGAIN: Final = f"UPDATE vector_jobs SET tries = 0, due = {NOW} WHERE worker IS NULL AND due > {NOW}"  # noqa: S608


class TurnOverError(LeftOffError):
    """Another library waits for longer: its owner goes before."""


class JobLostError(LeftOffError):
    """Another process makes these vectors by now, or nobody has to any more."""


@dataclass(frozen=True, slots=True)
class Job:
    """A library that lacks vectors, as it was when somebody looked.

    Args:
        shelf: The number of the library.
        asked: Counts pieces of documents that came.
        kept: Counts batches that are stored.
        worker: Who makes them; `None` where nobody does.
        tries: How often they failed since the last batch.
        lost: How many processes died of it since then.
        over: Whether the lease is over, by the clock of the database.
        due: Whether it may be begun.
    """

    shelf: int
    owner: str
    asked: int
    kept: int
    worker: str | None
    epoch: int
    lease_until: float | None
    tries: int
    lost: int
    over: bool | None
    due: bool


class VectorJobs:
    """What is to be made of vectors, in the eyes of one process.

    Args:
        server: Where the libraries are.
        maker: This process.

    Attributes:
        worker: This process.
        models: By which models it makes vectors.
        makes: Whether it makes vectors.
        makers: All that do.
        lease: Seconds for which a process holds a library that it does not renew.
        beat: Seconds between two renewals.
        patience: Seconds between two looks whether the maker of a library is gone.
        held: What is made here, by the numbers of libraries.
        room: Called when there is room for one more, in any thread.
    """

    def __init__(self, server: Connections, maker: Maker) -> None:
        self._server, self._is_dead = server, maker.is_dead
        self.worker, self.makes, self.models = maker.worker, maker.makes, maker.models
        self.makers = Makers(server, maker)
        self.lease, self.beat, self.patience = 8.0, 2.0, 2.0
        self.held: dict[int, HeldJob] = {}
        self.room: Callable[[], None] = lambda: None
        self._guard = threading.Lock()
        self._others_wait = False
        self._looking = threading.Lock()
        self._looked = 0.0
        self._seen: dict[int, tuple[int, float | None, float]] = {}
        self._closed, self._pause = threading.Event(), threading.Event()
        self._renewing: threading.Thread | None = None

    # ---- what is to be made

    def note(self, db: Db, shelf: int) -> None:
        """Note within a change of a library that it lacks vectors."""
        db.execute(_NOTED.encode(), [shelf])

    def want(self, shelf: int) -> None:
        """Note that a library lacks vectors, of which nobody has noted it. Raises StorageError."""
        with self._server.writing() as db:
            if db.execute("SELECT 1 FROM shelves WHERE id = %s FOR KEY SHARE", [shelf]).fetchone() is not None:
                self.note(db, shelf)

    def of(self, shelf: int) -> Job | None:
        """The job of a library; `None` where none is noted. Raises StorageError."""
        with self._server.reading() as db:
            row = db.execute(f"{_SEEN} WHERE shelf = %s".encode(), [shelf]).fetchone()
        return Job(*row) if row else None

    def begin(self) -> None:
        """Be there from now on, and try at once what failed before: it may be set up otherwise now.

        Raises:
            StorageError: The database cannot be reached.
        """
        self.makers.begin()
        if self.makes:
            with self._server.writing() as db:
                db.execute(f"{_AT_ONCE_AGAIN} AND lost <= {_MOST_LOST}".encode())

    def try_again(self, owner: str) -> None:
        """Try at once what failed of an owner, who asks for it. Raises StorageError."""
        with self._server.writing() as db:
            db.execute(f"{_AT_ONCE_AGAIN} AND owner = %s".encode(), [writable(owner)])

    def lacking(self, owners: Collection[str]) -> list[str]:
        """Those of these owners whose libraries lack vectors, whoever makes them. Raises StorageError."""
        query = """
            SELECT s.owner FROM vector_jobs j JOIN shelves s ON s.id = j.shelf
            WHERE s.library = 'documents' AND s.owner = ANY(%s)"""
        with self._server.reading() as db:
            found = {row[0] for row in db.execute(query.encode(), [[writable(one) for one in owners]]).fetchall()}
        return [one for one in owners if writable(one) in found]

    def standing(self, owners: Collection[str]) -> dict[str, HeldUp]:
        """What holds up the vectors of each of these owners; "" where nothing does. Raises StorageError."""
        self.makers.look()
        if self.makers.differs:
            return dict.fromkeys(owners, "differs")
        query = f"""
            SELECT j.owner, due > {NOW}, due < {NOW} - {_TOLD_AFTER} FROM vector_jobs j JOIN shelves s ON s.id = j.shelf
            WHERE s.library = 'documents' AND j.worker IS NULL AND j.owner = ANY(%s)"""  # noqa: S608 - our own names
        with self._server.reading() as db:
            rows = db.execute(query.encode(), [[writable(one) for one in owners]]).fetchall()
        found = {owner: (later, long_due) for owner, later, long_due in rows}
        return {one: self._held_up(*found.get(writable(one), (False, False))) for one in owners}

    def _held_up(self, later: bool, long_due: bool) -> HeldUp:  # noqa: FBT001 - two columns
        if (later or long_due) and not self.makers.are_there:
            return "nobody"
        return "failed" if later else ""

    @property
    def is_held_up(self) -> bool:
        """Whether, as of the last look, it is in vain to wait here for vectors."""
        return self.makers.differs or not self.makers.are_there

    # ---- who makes it

    def take(self, shelf: int) -> HeldJob | None:
        """Make the vectors of a library from now on; `None` where somebody else does, or there is no room.

        Raises:
            StorageError: The database cannot be reached.
        """
        with self._guard:
            mine = self.held.get(shelf)
            if mine is not None:
                is_free, mine.is_begun = not mine.is_begun, True
                return mine if is_free else None
        for one in self._taken(_TAKE.format(which=_ONE, of=""), 1, shelf=shelf):
            one.is_begun = True
            return one
        return None

    def take_waiting(self) -> list[HeldJob]:
        """Take up what waits longest, as far as there is room; what dead processes left waits again.

        Raises:
            StorageError: The database cannot be reached.
        """
        self.free_left()
        taken = self._taken(_TAKE.format(which=f"{_FREE} ORDER BY j.due", of="OF j"), _AT_ONCE)
        if not taken and len(self.held) >= MOST:
            with self._server.reading() as db:
                self._others_wait = db.execute(f"{_FREE} LIMIT 1".encode()).fetchone() is not None
        else:
            self._others_wait = False
        return taken

    def _taken(self, taking: str, most: int, **given: Any) -> list[HeldJob]:
        with self._guard:  # so that no more are taken than there is room for
            most = min(most, MOST - len(self.held))
            if not self.makes or self.makers.differs or most <= 0 or self._closed.is_set():
                return []
            values = {**given, "worker": self.worker, "lease": self.lease, "most": most}
            with self._server.writing() as db:
                rows = db.execute(taking.encode(), values).fetchall()
            taken = [HeldJob(self, self._server, *row) for row in rows]
            self.held.update({one.shelf: one for one in taken})
            if taken and self._renewing is None:
                self._renewing = threading.Thread(target=self._renew_on, name="library-vector-leases", daemon=True)
                self._renewing.start()
        return taken

    def free_left(self) -> None:
        """Let those libraries wait again whose makers are gone. Raises StorageError.

        A lease has to be over at two looks: where the database was away, its holder gets a moment to renew it.
        """
        with self._looking:
            if not self.makes or time.monotonic() - self._looked < self.patience:
                return
            with self._server.reading() as db:
                rows = db.execute(f"{_SEEN} WHERE worker IS NOT NULL".encode()).fetchall()
            self._looked = time.monotonic()
            before, self._seen = self._seen, {}
            for job in [one for one in (Job(*row) for row in rows) if self._is_left(one, before)]:
                self._free(job)

    def _free(self, job: Job) -> None:
        lost = job.lost + 1
        waits = _wait(lost) if lost > _MOST_LOST else 0.0  # one that ends its makers does not end all of them
        freeing = (
            f"UPDATE vector_jobs SET worker = NULL, epoch = epoch + 1, lease_until = NULL, lost = %s, "  # noqa: S608
            f"due = {NOW} + %s WHERE shelf = %s AND epoch = %s AND lease_until IS NOT DISTINCT FROM %s"
        )
        with self._server.writing() as db:
            db.execute(freeing.encode(), [lost, waits, job.shelf, job.epoch, job.lease_until])

    def _is_left(self, job: Job, before: dict[int, tuple[int, float | None, float]]) -> bool:
        mine = self.held.get(job.shelf)
        if job.worker is None or (mine is not None and mine.epoch == job.epoch):
            return False
        if self._is_dead(job.worker):
            return True
        if not job.over:
            return False
        now = time.monotonic()
        epoch, until, since = before.get(job.shelf, (0, None, now))
        if (epoch, until) != (job.epoch, job.lease_until):
            since = now
        self._seen[job.shelf] = (job.epoch, job.lease_until, since)
        return now > since

    # ---- leases

    def renew(self) -> None:
        """Renew the leases of all that is made here. Raises StorageError."""
        for one in list(self.held.values()):
            with self._server.writing() as db:
                is_ours = one.renewed(db)
            if not is_ours:
                self.drop(one)

    def _renew_on(self) -> None:
        while True:
            self._pause.wait(self.beat)
            with self._guard:
                if not self.held:
                    self._renewing = None
                    return
            try:
                self.renew()
            except StorageError as error:  # nobody can take over what cannot be written either
                _log.warning("Leases of vectors could not be renewed: %s", error)
            except Exception:  # noqa: BLE001 - logged below, and the next time may do better
                _log.exception("Leases of vectors could not be renewed.")

    def drop(self, one: HeldJob) -> None:
        """It is not held here any more."""
        with self._guard:
            if self.held.get(one.shelf) is one:
                del self.held[one.shelf]
        self.room()

    def is_turn_over(self, since: float) -> bool:
        """Whether one that is made since then lets another one go before, or whoever has the models of now."""
        is_long = self._others_wait and len(self.held) >= MOST and time.monotonic() - since >= _SLICE
        return is_long or self.makers.differs

    def close(self) -> None:
        """Take nothing any more. What a library makes is given up when that is closed, after the batch at hand."""
        self._closed.set()
        with self._guard:  # what is being taken at this moment is held then
            held = [one for one in self.held.values() if not one.is_begun]
        for one in held:
            with suppress(StorageError):
                one.give_up()


class HeldJob:
    """The vectors of a library that this process makes.

    Args:
        asked: What had come when it was taken.

    Attributes:
        is_begun: Whether an open library makes them.
    """

    def __init__(self, jobs: VectorJobs, server: Connections, shelf: int, owner: str, epoch: int, asked: int) -> None:
        self._jobs, self._server = jobs, server
        self.shelf, self.owner, self.epoch, self.asked = shelf, owner, epoch, asked
        self.is_begun = False
        self._since = time.monotonic()

    @property
    def is_held(self) -> bool:
        """Whether it is still ours, as far as is known here."""
        return self._jobs.held.get(self.shelf) is self

    def renewed(self, db: Db, *, kept: int = 0) -> bool:
        """Renew it; whether it is still ours. Nobody takes it over before the transaction ends.

        Args:
            kept: Batches that the transaction stores.
        """
        values = {"lease": self._jobs.lease, "kept": kept, "worker": self._jobs.worker}
        return bool(db.execute(_RENEW.encode(), {**values, "shelf": self.shelf, "epoch": self.epoch}).rowcount)

    def check(self, db: Db) -> None:
        """Nothing, within a change that stores a batch, while it is ours.

        Raises:
            JobLostError: Another process has taken it over, or it was given up.
        """
        if not self.renewed(db, kept=1):
            raise JobLostError

    def check_turn(self) -> None:
        """Nothing, between two batches, while nobody has to go before. Raises TurnOverError."""
        if self._jobs.is_turn_over(self._since):
            raise TurnOverError

    def finish(self) -> bool:
        """All are made; false where something came meanwhile, so that it waits on. Raises StorageError."""
        done = "DELETE FROM vector_jobs WHERE shelf = %s AND epoch = %s AND asked = %s"
        with self._server.writing() as db:
            is_done = bool(db.execute(done, [self.shelf, self.epoch, self.asked]).rowcount)
        if is_done:
            self._jobs.drop(self)
        else:
            self.give_up()
        return is_done

    def give_up(self, *, failed: bool = False) -> None:
        """Let others go on with it; where it failed, after a while. Raises StorageError."""
        freeing = (
            f"UPDATE vector_jobs SET worker = NULL, lease_until = NULL, tries = tries + %s, "  # noqa: S608
            f"due = {NOW} + CASE WHEN %s THEN least({_LONGEST}, {_AGAIN} * power(2, least(tries, 10))) ELSE 0 END "
            "WHERE shelf = %s AND epoch = %s AND worker = %s"
        )
        try:
            with self._server.writing() as db:
                values = [int(failed), failed, self.shelf, self.epoch, self._jobs.worker]
                db.execute(freeing.encode(), values)
        finally:
            self._jobs.drop(self)


class Made(Makes, Protocol):
    """The vectors of one model in a library: `PgVectors`."""

    held: HeldJob | None

    def tell(self) -> None:
        """As of `PgVectors`."""
        ...

    def is_whole(self) -> bool:
        """As of `PgVectors`."""
        ...


class Making:
    """Makes the vectors that a library lacks, of all its models; or waits for the process that does.

    Args:
        shelf: The number of the library.
        vectors: Of each model, in the order in which they are made.
    """

    def __init__(self, jobs: VectorJobs, shelf: int, vectors: Sequence[Made]) -> None:
        self._jobs, self._shelf, self._vectors = jobs, shelf, vectors

    def fill(self, stop: threading.Event) -> bool:
        """As of `Derived`. Where another process makes them, this one only looks how far they are.

        Raises:
            StorageError: The library cannot be read.
        """
        if self._has_nothing_left():
            return True
        seen = -1
        while not stop.is_set():
            self._jobs.makers.look()
            if self._jobs.makers.differs:  # whoever has the models of now makes theirs, and none for this process
                return self._is_whole()
            held = self._jobs.take(self._shelf)
            if held is not None:
                if (done := self._made(held, stop)) is not None:
                    return done
                stop.wait(_LOOKS)  # whoever waits for its place comes first
                continue
            job = self._jobs.of(self._shelf)
            if job is None:
                if self._is_whole():
                    return True
                self._jobs.want(self._shelf)
                continue
            # They cannot be made now, and are tried again later.
            if job.worker is None and (not job.due or self._jobs.is_held_up):
                return False
            if job.kept != seen:
                seen = job.kept
                self._tell()
            stop.wait(_LOOKS)
            self._jobs.free_left()
        return False

    def _has_nothing_left(self) -> bool:
        """Whether all are made, and nobody wants any: then no document counts as one in which a model failed."""
        if not self._is_whole() or self._jobs.of(self._shelf) is not None:
            return False
        for one in self._vectors:
            one.failed.clear()
        return True

    def _is_whole(self) -> bool:
        return all(one.is_whole() for one in self._vectors)

    def _tell(self) -> None:
        for one in self._vectors[:1]:
            one.tell()

    def _made(self, held: HeldJob, stop: threading.Event) -> bool | None:
        """Make them under a lease: whether all are; `None` where it is somebody else's turn, or more has come."""
        try:
            is_whole = self._filled(held, stop)
        except TurnOverError:
            held.give_up()
            return None
        except JobLostError:
            self._jobs.drop(held)
            return None
        except BaseException:
            held.give_up(failed=True)
            raise
        if stop.is_set() or not is_whole:
            held.give_up(failed=not stop.is_set())
            return False
        return True if held.finish() else None

    def _filled(self, held: HeldJob, stop: threading.Event) -> bool:
        for vectors in self._vectors:
            vectors.held = held
        try:
            return InTurns(self._vectors).fill(stop)
        finally:
            for vectors in self._vectors:
                vectors.held = None


def _wait(lost: int) -> float:
    """Seconds for which a library of which so many processes died waits for the next one."""
    return min(_LONGEST_AFTER_LOSS, _AFTER_LOSS * 2.0 ** min(lost, 10))
