"""Where Parlour is open on a data folder: told to whoever opens it a second time on the same one."""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from core.runs.worker import standing, this_worker

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_log = logging.getLogger(__name__)
_NAME = "address"


@contextmanager
def opened_at(home: Path, address: str) -> Generator[str]:
    """Note that this process is open at `address`, until the end; the first of several has the note.

    Yields:
        Where another process is open on the same folder; empty where there is none.
    """
    note, me = home / _NAME, this_worker()
    other = _read(note)
    there = standing(other.get("worker", "")) == "alive" and other.get("worker") != me
    if not there:
        try:
            _write(note, json.dumps({"worker": me, "url": address}))
        except OSError as error:  # no reason not to open
            _log.debug("The address is not noted: %s", error)
    try:
        yield other.get("url", "") if there else ""
    finally:
        if _read(note).get("worker") == me:
            with suppress(OSError):
                note.unlink()


def _write(note: Path, text: str) -> None:
    """Write what nobody but the owner of the folder may read, whatever mode the folder and an older note have."""
    note.unlink(missing_ok=True)
    with os.fdopen(os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _read(note: Path) -> dict[str, str]:
    """What is noted; nothing where there is no note, or one that nobody here wrote."""
    try:
        found: Any = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    noted = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {name: str(value) for name, value in noted.items()}
