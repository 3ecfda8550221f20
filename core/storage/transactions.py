"""What every form of the database does: whole transactions, one at a time or as if they were."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from sqlalchemy import Connection


T = TypeVar("T")

LINE: Final = "line"
"""By what the way to the server is found in `Connection.info`, where it takes several statements at a time."""
DURATION: Final = "parlour.database.duration"
READ: Final = {"operation": "read"}
WRITE: Final = {"operation": "write"}


class Transactions(ABC):
    """A database in one of its forms, for one event loop.

    A transaction is a plain function of a connection, a `work`: it reads and changes rows by statements that hold for
    every database (`upsert` among them), and has no effect but that, for it may run more than once. Callers wait
    without blocking their loop. A work runs whole even where its caller is cancelled.

    Attributes:
        name: What it is called in a sentence: the path of the file, or the place of the server.
        place: What `Database.open` opened.
    """

    name: str
    place: Path | str

    @abstractmethod
    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on a snapshot of the database.

        Raises:
            StorageError: The database failed.
        """

    @abstractmethod
    def read_here(self, work: Callable[[Connection], T]) -> T:
        """`read` in this thread, which it blocks: for what works in threads and must know what is so at this moment.

        Raises:
            StorageError: The database failed.
        """

    @abstractmethod
    async def write(self, work: Callable[[Connection], T], *, durable: bool = True, holds: bool = False) -> T:
        """Run `work` as one transaction, as if no other ran at the same time: all of it is stored, or nothing.

        Args:
            work: What to do, with the connection; it may run no other transaction.
            durable: Whether it must survive a power failure. Checkpoints of a stream need not: they survive the
                death of the process, and cost a sixtieth.
            holds: Whether `work` itself holds each row that its outcome depends on before it reads what follows from it
                (`with_for_update`), or leaves it to a unique index: it then waits for another that changes the same,
                and is never refused because of one that changes something else.

        Raises:
            NoSpaceError: The disk is full.
            ConflictError: A rule of the tables forbids it, or the database is busy (key `storage_busy`).
            StorageError: The database failed otherwise; key `storage_unsure` where it is not known whether it did.
        """

    async def notices(self) -> AsyncGenerator[str, None]:
        """What processes say that have stored something to be taken up (`dialects.notify`), for ever.

        Where processes do not speak to each other, or cannot at present, nothing comes.
        """
        await asyncio.Event().wait()
        yield ""

    @abstractmethod
    def others(self) -> int:
        """A number that is another one than before where other processes may have changed something since.

        It is as of the last `look_for_others`.
        """

    @abstractmethod
    async def look_for_others(self) -> None:
        """Let `others` know what other processes changed. Raises StorageError."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections; nothing can be read or written any more."""

    @abstractmethod
    def counted(self, connection: Connection) -> int:
        """How often it was opened, as `count` has noted it, inside a transaction."""

    @abstractmethod
    def count(self, connection: Connection, number: int) -> None:
        """Note how often it was opened, inside a transaction."""
