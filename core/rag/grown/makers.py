"""Which processes make vectors of libraries in PostgreSQL, and whether they do so by the same models.

Vectors of different models cannot be compared, so only those make any that have the models of the one that came last:
while an update goes from machine to machine the older ones leave off, and in the end all have the same.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.rag.grown.connections import Connections

_log = logging.getLogger(__name__)

_EVERY: Final = 5.0  # seconds between two times that a process says it is there, and looks for the others
_THERE: Final = 20.0  # seconds after which one that said nothing is not there any more
_FORGOTTEN: Final = 86_400.0
NOW: Final = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
"""The clock of the database, in seconds."""
_SAY: Final = f"""
INSERT INTO vector_makers (worker, models, makes, began, until)
VALUES (%(worker)s, %(models)s, %(makes)s, coalesce(%(began)s, {NOW}), {NOW} + %(lasts)s)
ON CONFLICT (worker) DO UPDATE SET until = excluded.until RETURNING began"""  # noqa: S608 - our own names
_OTHERS: Final = f"SELECT worker, models, makes, began FROM vector_makers WHERE until > {NOW} AND worker <> %s"  # noqa: S608
# A Parlour of an older version says nothing, but holds what it makes.
_AT_WORK: Final = f"SELECT EXISTS (SELECT 1 FROM vector_jobs WHERE lease_until > {NOW})"  # noqa: S608 - our own names

HeldUp: TypeAlias = Literal["", "failed", "nobody", "differs"]
"""Why vectors are not being made: it failed and is tried again, no process is there that makes any, or this process
makes them by other models than the one that came last."""


def _unknown(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Maker:
    """The part that a process has in making vectors.

    Args:
        worker: What it is called.
        makes: Whether it makes any; one that serves pages alone leaves that to others.
        is_dead: Whether another process is proved to be gone.
        models: By which models, in words; "" where that is not known, and nobody has to have the same.
    """

    worker: str = field(default_factory=lambda: f"process {os.getpid()}")
    makes: bool = True
    is_dead: Callable[[str], bool] = _unknown
    models: str = ""


class Makers:
    """Those on one database, in the eyes of one of them.

    Args:
        server: Where the libraries are.
        maker: This process.

    Attributes:
        differs: Whether the one that makes vectors and came last has other models, so that this one makes none.
        others: What other processes have in place of the models of this one.
        are_there: Whether any process makes vectors; true before the first look.
    """

    def __init__(self, server: Connections, maker: Maker) -> None:
        self._server, self._maker = server, maker
        self._guard = threading.Lock()
        self._is_there = False
        self._began: float | None = None
        self._looked: float | None = None
        self.differs, self.are_there = False, True
        self.others: tuple[str, ...] = ()

    def begin(self) -> None:
        """Be there from now on; one that does not begin, such as a command that ends soon, has no say.

        Raises:
            StorageError: The database cannot be reached.
        """
        self._looked, self._is_there = None, True
        self.look()

    def look(self) -> None:
        """Say that this process is there, and see who else is, as often as needed. Raises StorageError."""
        with self._guard:
            if self._looked is not None and time.monotonic() - self._looked < _EVERY:
                return
            mine = self._maker
            given = {"worker": mine.worker, "models": mine.models, "makes": mine.makes, "lasts": _THERE}
            with self._server.writing() as db:
                if self._is_there:
                    row = db.execute(_SAY.encode(), {**given, "began": self._began}).fetchone()
                    self._began = row[0] if row else None
                    db.execute(f"DELETE FROM vector_makers WHERE until < {NOW} - {_FORGOTTEN}".encode())  # noqa: S608
                others = db.execute(_OTHERS.encode(), [mine.worker]).fetchall()
                at_work = db.execute(_AT_WORK.encode()).fetchone()
            self._looked = time.monotonic()
            self._know([one for one in others if not mine.is_dead(one[0])], at_work=bool(at_work and at_work[0]))

    def _know(self, others: list[tuple[Any, ...]], *, at_work: bool) -> None:
        mine, before = self._maker, self.differs
        me = (mine.worker, mine.models, mine.makes, self._began or 0.0)
        makers = [one for one in (me, *others) if one[2]]
        self.are_there = bool(makers) or at_work
        named = [one for one in makers if one[1]]
        last = max(named, key=lambda one: (one[3], one[0]))[1] if named else ""
        self.differs = bool(mine.models) and last not in {"", mine.models}
        self.others = tuple(sorted({one[1] for one in others} - {"", mine.models})) if mine.models else ()
        if self.differs and not before:
            _log.warning(
                "This Parlour would make vectors by %s, and one that was started later makes them by %s. Until "
                "PARLOUR_EMBEDDING_MODEL and PARLOUR_EMBEDDING_BASE_URL are the same for both, this one makes none.",
                mine.models,
                last,
            )
        elif before and not self.differs:
            _log.info("All that make vectors do so by %s again.", mine.models)
