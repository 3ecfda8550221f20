"""What the failures of a PostgreSQL database mean for a person, and after which of them a work may run again."""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.errors import ConflictError, NoSpaceError, ParlourError, SettingsError, StorageError

_CONFLICTS: Final = {"40001", "40P01"}  # serialization failure, deadlock
_DUPLICATE: Final = "23505"
_SHUT_DOWN: Final = "57P01"  # told before the end of a transaction, so that nothing of it was stored
_GONE: Final = {_SHUT_DOWN, "57P02", "57P03"}
_CROWDED: Final = "53300"
_READ_ONLY: Final = "25006"
_WAITED: Final = "55P03"
_FORBIDDEN: Final = "42501"
# What a server says to who is not let in comes without a code.
_NOT_NOW: Final = re.compile(r"database system is (?:starting up|shutting down|in recovery|not (?:yet )?accepting)")
_TOO_MANY: Final = re.compile(r"too many (?:clients|connections)|remaining connection slots")
_PASSWORD: Final = re.compile(r"password authentication failed|no password supplied|role \"[^\"]*\" does not exist")
_MISSING: Final = re.compile(r"database \"[^\"]*\" does not exist")
_CLOSED: Final = re.compile(r"no pg_hba\.conf entry|is not permitted to log in|permission denied for database")


def sqlstate(error: BaseException) -> str:
    """PostgreSQL's code of a failure; "" where it has none, such as that of a connection."""
    original = getattr(error, "orig", None) or error
    return getattr(original, "sqlstate", None) or ""


def is_conflict(error: BaseException) -> bool:
    """Whether another transaction came between: the work may run again at once."""
    return sqlstate(error) in _CONFLICTS


def is_duplicate(error: BaseException) -> bool:
    """Whether there is such a row already: run again, the work sees it."""
    return sqlstate(error) == _DUPLICATE


def is_passing(error: BaseException) -> bool:
    """Whether the server is away, being restarted, crowded or read-only, which may be over in a moment."""
    state, said = sqlstate(error), str(getattr(error, "orig", None) or error)
    if state:
        return state[:2] == "08" or state in {*_GONE, _CROWDED, _READ_ONLY}
    if isinstance(error, PoolTimeoutError):
        return False
    return is_lost(error) and not any(one.search(said) for one in (_PASSWORD, _MISSING, _CLOSED))


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke, or none could be made."""
    original = getattr(error, "orig", None) or error
    return isinstance(original, psycopg.OperationalError | psycopg.InterfaceError) and not sqlstate(error)


def is_undone(error: BaseException) -> bool:
    """Of a failure at the end of a transaction: whether it is known that nothing of it was stored."""
    state = sqlstate(error)
    return bool(state) and state[:2] != "08" and state != "57P02"


def unsure(name: str) -> StorageError:
    """The connection broke at the very end of a transaction."""
    text = f"The connection to {name} was lost while something was stored, so it is not known whether it was."
    return StorageError(text, hint="Look whether it is there before you try again.", key="storage_unsure", place=name)


def translated(error: BaseException, name: str) -> ParlourError:
    """The error of ours that says what a failure of the database means.

    Args:
        error: SQLAlchemy's or the driver's.
        name: What the database is called in a sentence.
    """
    original: Any = getattr(error, "orig", None) or error
    state, said = sqlstate(error), _first_line(original)
    if state in {"53100", "58030"}:
        hint = "Free some space there; what was stored before is safe."
        return NoSpaceError(f"There is no space left for {name}.", hint=hint, path=name)
    if state[:2] == "23" or state == "P0001":
        return ConflictError(f"Something else was stored first: {said}.")
    if state in _CONFLICTS or state == _WAITED or isinstance(error, PoolTimeoutError):
        return ConflictError("The database is busy.", hint="Try again in a moment.", key="storage_busy")
    if state == _CROWDED or _TOO_MANY.search(said):
        hint = "Try again in a moment, or let it take more connections (max_connections)."
        text = f"{name[:1].upper()}{name[1:]} takes no more connections."
        return ConflictError(text, hint=hint, key="storage_crowded", place=name)
    if state == _READ_ONLY:
        hint = "Name the server that takes changes in PARLOUR_DATABASE."
        text = f"{name[:1].upper()}{name[1:]} takes no changes: it is read-only."
        return StorageError(text, hint=hint, key="storage_read_only", place=name)
    if state == _FORBIDDEN or _CLOSED.search(said) or _PASSWORD.search(said) or _MISSING.search(said):
        return _not_let_in(name, said)
    if state[:2] == "08" or state in _GONE or is_lost(error):
        hint = "Start it, or correct PARLOUR_DATABASE; what was stored before is safe."
        return StorageError(f"{name[:1].upper()}{name[1:]} cannot be reached: {said}.", hint=hint, key="storage_gone")
    return StorageError(f"{name[:1].upper()}{name[1:]} failed: {said}.", place=name)


def met_at_work(error: BaseException, name: str) -> StorageError:
    """The same of a database that was opened before: whatever comes between, what works with it waits or tries again.

    Args:
        error: As of `translated`.
        name: Likewise.
    """
    told = translated(error, name)
    if isinstance(told, StorageError):
        return told
    return StorageError(str(told.args[0]), hint=told.hint, key=told.words_key, **told.details)


def _not_let_in(name: str, said: str) -> SettingsError:
    if _MISSING.search(said):
        hint = "Make it with CREATE DATABASE, or correct PARLOUR_DATABASE."
        return SettingsError(f"There is no such database: {name}.", hint=hint, key="storage_missing", place=name)
    if _PASSWORD.search(said):
        hint = "Correct the name and password in PARLOUR_DATABASE."
        text = f"The name or password for {name} is wrong."
        return SettingsError(text, hint=hint, key="storage_password", place=name)
    hint = "Give that name the right to use the database and to make tables in it."
    text = f"The name in PARLOUR_DATABASE may not do that with {name}: {said}."
    return SettingsError(text, hint=hint, key="storage_forbidden", place=name)


def _first_line(error: BaseException) -> str:
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return said.removeprefix("connection failed: ").rstrip(".")
