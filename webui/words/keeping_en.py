"""English for keeping data safe: updates of the database, backups; part of `commands_en.py`."""

from __future__ import annotations

from core.backup.problems import SENTENCES

KEEPING: dict[str, str] = {
    **{f"error.{key}": happened for key, (happened, _) in SENTENCES.items()},
    **{f"error.{key}.do": remedy for key, (_, remedy) in SENTENCES.items() if remedy},
    "error.restore_running": "A backup is being restored into {home}",
    "error.restore_running.do": "Wait until that is done.",
    "ready.behind": "The database is older than its data folder, with {conversations} conversations in it: it was "
    "copied without its -wal file, or is an older copy. Put the newer one back, or restore a backup. If it is meant to "
    "be so, delete {note}.",
    "backup.made": "{file} ({size} MB): {conversations} conversations, {messages} messages, {files} files.",
    "backup.with_secret": "The secret is in it: whoever has the file can read the keys that are kept. Guard it well.",
    "backup.without_secret": "The secret is not in it. In another folder the kept keys of model services and tool "
    "servers must be typed in again, and browsers that had conversations through a cookie do not find them; "
    "--with-secret takes it in.",
    "backup.secret_elsewhere": "The secret is not in it, for this folder has none: it is the one of PARLOUR_SECRET. "
    "Keep that yourself.",
    "restore.done": "{home}: {conversations} conversations, {messages} messages, {files} files, as of {made}.",
    "restore.aside": "What was there before is in {folder}.",
    "restore.without_secret": "The backup has no secret: kept keys of model services and tool servers must be typed in "
    "again, and browsers that had conversations through a cookie do not find them.",
    "error.storage_in_use": "The database {path} is open in another Parlour",
    "error.storage_in_use.do": "End that one, then try again; nothing was changed.",
    "error.storage_update_space": "The update of the database needs {needed} MB of free space, and there are {free}",
    "error.storage_update_space.do": "Make room, then start again; nothing was changed.",
    "error.storage_update_lost": "The database cannot be updated without a loss ({what}), so it was left as it is",
    "error.storage_update_lost.do": "Go on with the Parlour that you had, and report this.",
}
