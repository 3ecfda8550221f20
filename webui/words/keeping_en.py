"""English for keeping data safe: updates of the database, backups; part of `commands_en.py`."""

from __future__ import annotations

KEEPING: dict[str, str] = {
    "error.storage_in_use": "The database {path} is open in another Parlour",
    "error.storage_in_use.do": "End that one, then try again; nothing was changed.",
    "error.storage_update_space": "The update of the database needs {needed} MB of free space, and there are {free}",
    "error.storage_update_space.do": "Make room, then start again; nothing was changed.",
    "error.storage_update_lost": "The database cannot be updated without a loss ({what}), so it was left as it is",
    "error.storage_update_lost.do": "Go on with the Parlour that you had, and report this.",
}
