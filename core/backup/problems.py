"""What can be wrong with a backup or with where it goes: sentences by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "backup_no_data": ("There is no database in {home}.", "Name the data folder with --home."),
    "backup_exists": ("{file} is there already.", "Choose another name, or move it away."),
    "backup_no_write": ("The backup {file} cannot be written: {why}.", ""),
    "backup_no_read": ("The file {file} cannot be read: {why}.", "Let this user read it, then make the backup."),
    "backup_no_file": ("There is no file {file}.", ""),
    "backup_folder": ("{file} is a folder.", "Name a backup in it."),
    "backup_not_one": ("{file} is no backup of Parlour, or was cut short.", "Use another backup."),
    "backup_damaged": ("The backup {file} is damaged at {name}.", "Use another backup; nothing was changed."),
    "backup_unsafe": (
        "The backup {file} names a place that no backup of Parlour has: {name}.",
        "Do not use it; nothing was changed.",
    ),
    "backup_newer": (
        "The backup {file} was made by a newer Parlour.",
        "Update Parlour, then restore it; nothing was changed.",
    ),
    "restore_not_empty": (
        "The data folder {home} is not empty.",
        "Name an empty one with --home, or add --replace: what is there is then kept beside the new.",
    ),
    "restore_space": (
        "The backup needs {needed} MB of free space, and there are {free}.",
        "Make room, then try again.",
    ),
    "restore_half": (
        "A backup was half restored into {home} when it was cut short.",
        "Start Parlour on it: it finishes that first.",
    ),
    "restore_failed": ("The backup cannot be put into {home}: {why}.", "Mend that, then try again."),
}


def problem(key: str, **blanks: Any) -> StorageError:
    """The error that says it."""
    text, hint = SENTENCES[key]
    return StorageError(text.format(**blanks), hint=hint.format(**blanks), key=key, **blanks)
