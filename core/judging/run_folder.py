"""The folder of a suite's runs: the one under way, those that are over, and the replies that models gave."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from core.judging.result import Row, SuiteRun
from core.storage.data_folder import draft_of, put_new

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


_log = logging.getLogger(__name__)


class Runs:
    """Runs of a suite in a folder, which is made where there is none; other suites may have theirs there too.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder
        self._suite = suite
        self._over = folder / "runs"
        self._over.mkdir(parents=True, exist_ok=True)

    @property
    def cache(self) -> Path:
        """Where replies of models are kept."""
        return self.folder / "replies"

    def unfinished(self, tag: str | None) -> Path:
        """The rows of the run that is not over yet: of all tasks, or of those with a tag."""
        own = json.dumps([self._suite, tag])
        return self.folder / f"unfinished-{sha256(own.encode()).hexdigest()[:8]}.jsonl"

    def rows(self, asked: Sequence[Row], tag: str | None) -> list[Row]:
        """The rows of these tasks that are written down, in the order of the tasks.

        Args:
            asked: As they were before they were answered.
            tag: As of `unfinished`.
        """
        found = {row.id: row for row in _written(self.unfinished(tag))}
        there = [one for one in asked if one.id in found and found[one.id].mark == one.mark]
        return [replace(found[one.id], tags=one.tags) for one in there]

    def finished(self, run: SuiteRun, tag: str | None) -> SuiteRun:
        """The run together with the one before it. One of all tasks is kept; rows are not unfinished any more.

        Raises:
            OSError: It cannot be written.
        """
        if tag is None:
            made = run.after(self._last())
            self._keep(run)
        else:
            made = self.compared(run)
        self.unfinished(tag).unlink(missing_ok=True)
        return made

    def compared(self, run: SuiteRun) -> SuiteRun:
        """A run of some tasks together with what the last one of all came to in these; of none it is alone."""
        before = self._last() if run.rows else None
        if before is not None:
            same = {row.id for row in run.rows}
            before = replace(before, rows=tuple(row for row in before.rows if row.id in same))
        return run.after(before)

    def _last(self) -> SuiteRun | None:
        for path in sorted(self._over.glob("*.json"), key=_place, reverse=True):
            try:
                run = SuiteRun.from_dict(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                _log.warning("The file %r holds no run of a suite.", path.name)
                continue
            if run.suite == self._suite:
                return run
        return None

    def _keep(self, run: SuiteRun) -> None:
        """Write a run down; of several that began in one second each gets a file, also of two programs at once."""
        stem = "".join(sign for sign in run.began.partition("+")[0] if sign.isdigit())
        draft = draft_of(self._over / stem)
        try:
            draft.write_text(json.dumps(run.as_dict(), ensure_ascii=False, indent=1), encoding="utf-8")
            places = (self._over / f"{stem}{f'-{n}' if n > 1 else ''}.json" for n in count(1))
            next(place for place in places if _has_name(draft, place))
        finally:
            draft.unlink(missing_ok=True)


def _has_name(draft: Path, place: Path) -> bool:
    """Give a file a name, unless another has that; whether it got it."""
    try:
        put_new(draft, place)
    except FileExistsError:
        return False
    return True


def _place(path: Path) -> tuple[str, int]:
    """Where a run stands among the others: when it began, and its number among those of that second."""
    began, _, number = path.stem.partition("-")
    return began, int(number) if number.isdecimal() else 0


def _written(path: Path) -> Iterator[Row]:
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():  # an answer may hold what ends a line of text
        try:
            row: Any = json.loads(line)
            if isinstance(row, Mapping):
                yield Row.from_dict(cast("Mapping[str, Any]", row))
        except (ValueError, KeyError, TypeError):
            continue
