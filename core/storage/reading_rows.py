"""Rows of documents that are being read, inside a transaction: how a reading begins, is held, and ends."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, delete, func, select, text

from core.errors import LeaseLostError, TooManyRequestsError
from core.storage.base import QUEUED
from core.storage.dialects import clock, notify, upsert
from core.storage.tables import documents, readings

if TYPE_CHECKING:
    from core.storage.base import DocumentRecord


@dataclass(frozen=True, slots=True)
class Hold:
    """How a reading begins.

    Args:
        worker: The process that reads; `QUEUED` where any may.
        lasts: Seconds of its lease.
        due: When its turn is, in Unix seconds: of those that wait, who is due first comes first.
        restores: Whether it is read again because the index had lost it.
        password: Opens it, sealed; "" for none.
        most: How many documents of its owner may be read or wait for it, this one included; 0 for any number.
    """

    worker: str
    lasts: float = 0.0
    due: float = 0.0
    restores: bool = False
    password: str = ""
    most: int = 0


_STATE: Final = ("status", "library_id", "pages", "facts", "error")
"""What reading a document changes of its row."""
_AGAIN: Final = 10
"""Seconds after which some of those that wait may well be read."""


def begin_reading(
    connection: Connection, record: DocumentRecord, hold: Hold, before: DocumentRecord | None = None
) -> int:
    """Note that a document is to be read; the epoch of that.

    Args:
        before: The document as it was, if it is read anew or on.

    Raises:
        TooManyRequestsError: key `reading_full`: so many of its owner wait already.
    """
    if hold.most:
        check_waiting(waiting_of(connection, record.owner_id, but=record.id), 1, hold.most)
    values: dict[str, Any] = {
        "worker": hold.worker,
        "lease_until": None if hold.worker == QUEUED else clock() + hold.lasts,
        "due": hold.due,
        "progress": None,
        "asked": None,
        "before": state_of(before) if before is not None else None,
        "restores": hold.restores,
        "password": hold.password or None,
        "lost": 0,
        "passed": 0,
    }
    adding = upsert(readings).values(document_id=record.id, owner_id=record.owner_id, epoch=first_epoch(), **values)
    # A program that knows nothing of readings may have left a row.
    anew = adding.on_conflict_do_update(
        index_elements=["document_id"], set_={**values, "epoch": readings.c.epoch + 1}
    ).returning(readings.c.epoch)
    epoch = int(connection.execute(anew).scalar_one())
    if hold.worker == QUEUED:
        notify(connection, "document")
    return epoch


def waiting_of(connection: Connection, owner: str, *, but: str = "") -> int:
    """How many documents of an owner are read or wait for it.

    Args:
        but: One that does not count.
    """
    unread = readings.join(documents, documents.c.id == readings.c.document_id)
    mine = (readings.c.owner_id == owner) & (documents.c.status == "reading") & (documents.c.id != but)
    return connection.execute(select(func.count()).select_from(unread).where(mine)).scalar_one()


def check_waiting(waiting: int, more: int, most: int) -> None:
    """Nothing, where so many documents more may wait to be read.

    Args:
        waiting: How many do.
        most: How many may; 0 for any number.

    Raises:
        TooManyRequestsError: key `reading_full`: no more may now; `reading_too_many`: so many at once never may.
    """
    if most and more > most:
        raise TooManyRequestsError(
            f"No more than {most:,} of your documents may wait to be read at once, and here are {more:,}.",
            hint="Send some of them, and the others once those are read.",
            key="reading_too_many",
            more=f"{more:,}",
            limit=f"{most:,}",
        )
    if most and more and waiting + more > most:
        raise TooManyRequestsError(
            f"No more than {most:,} of your documents may wait to be read at once; now waiting: {waiting:,}.",
            hint="Wait until some are read, or stop reading those that you do not need; then try again.",
            key="reading_full",
            retry_after=_AGAIN,
            waiting=f"{waiting:,}",
            limit=f"{most:,}",
        )


def first_epoch() -> int:
    """The epoch in which a reading begins; another one each time, so that a late reader of before is refused."""
    return 1 + secrets.randbelow(2**30)


def check_read_by(connection: Connection, document_id: str, epoch: int) -> None:
    """Nothing, where a reading is in this epoch; nobody else changes it until the transaction ends.

    Raises:
        LeaseLostError: Another process has taken it over, or it is over.
    """
    held = select(readings.c.epoch).where(readings.c.document_id == document_id).with_for_update()
    if connection.execute(held).scalar() != epoch:
        raise LeaseLostError("Another process reads this document, or nobody does any more.", kind="document")


def end_reading(connection: Connection, document_id: str) -> None:
    """Forget who reads a document, and what was kept for that."""
    connection.execute(delete(readings).where(readings.c.document_id == document_id))


def reader_named(worker: str) -> str:
    """What a process calls the connections to PostgreSQL by which it holds documents that it reads."""
    return f"parlour-reader {sha256(worker.encode()).hexdigest()[:20]}"


def shut_out(connection: Connection, worker: str) -> None:
    """End the connections by which a process that left what it read holds it: should it wake, it writes no more."""
    if connection.dialect.name != "sqlite":
        ending = text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND usename = current_user AND application_name = :name"
        )
        connection.execute(ending, {"name": reader_named(worker)})


def state_of(record: DocumentRecord) -> dict[str, Any]:
    """What reading a document may change, to be kept until it is read anew or on."""
    told = asdict(record)
    return {name: told[name] for name in _STATE}
