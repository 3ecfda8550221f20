"""What a PostgreSQL database keeps of the installation as a whole: its secret's print, how often it was opened."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from core.errors import ConflictError

if TYPE_CHECKING:
    from sqlalchemy import Connection

_NOTE: Final = text("SELECT value FROM installation WHERE name = :name")
_KEEP: Final = text(
    "INSERT INTO installation (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = :value"
)
_FORGET: Final = text("DELETE FROM installation WHERE name LIKE :beginning || '%'")
SECRET: Final = "secret"  # noqa: S105 - the name of a note
"""The note with the print of the installation's secret."""
FILES: Final = "files"
"""The note with the id of the folder that holds the files, where no store does."""
GENERATION: Final = "generation"
"""The note of how often the database was opened."""
MOVE: Final = "move"
"""The note that rows are being carried here from a data folder, and the beginning of those of single tables."""


def note_of(connection: Connection, name: str) -> str | None:
    """What is kept under a name, inside a transaction."""
    return connection.execute(_NOTE, {"name": name}).scalar()


def keep_note(connection: Connection, name: str, value: str) -> None:
    """Keep something under a name, inside a transaction."""
    connection.execute(_KEEP, {"name": name, "value": value})


def forget_notes(connection: Connection, beginning: str) -> None:
    """Forget all whose names begin so, inside a transaction."""
    connection.execute(_FORGET, {"beginning": beginning})


def unfinished(name: str) -> ConflictError:
    """Not all that is carried into a database has arrived."""
    hint = "Run `parlour move` again; it goes on where it was."
    sentence = f"What a data folder holds is being moved into {name}, and is not there yet."
    return ConflictError(sentence, hint=hint, key="move_unfinished", place=name)


def print_of(secret: str) -> str:
    """By what a secret is known again, and cannot be found."""
    return hmac.digest(secret.encode(), b"parlour.installation", "sha256").hex()
