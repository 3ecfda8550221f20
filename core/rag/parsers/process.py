"""The parent's side of the worker process: starts it, enforces its deadline, reads its answers."""

from __future__ import annotations

import base64
import json
import logging
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import errors
from core.child_process import environment
from core.rag.document import About, Block, PageShape, block_from, shape_from
from core.rag.parsers.base import PLAIN, AtRow, Invisible, ParseOptions, Part, Scanned

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from core.rag.document import Figure, Rectangle
    from core.rag.parsers.base import Found

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may cost.

    Args:
        file_bytes: The size of the file.
        memory: Bytes of address space of the worker.
        memory_for_scans: More of it for OCR.
        seconds: Processor time. By the clock a reader that does nothing has twice as much; one that works, and gets
            little of a busy machine, has what it takes.
        seconds_per_page: More of it for each page.
        seconds_per_scan: More of it for each page read by OCR.
        answer_bytes: Of the text, places and tables that come out of it; of the letters of its pages as many more.
    """

    file_bytes: int = 200 * 1024 * 1024
    memory: int = 1536 * 1024 * 1024
    memory_for_scans: int = 2048 * 1024 * 1024
    seconds: float = 30.0
    seconds_per_page: float = 0.25
    seconds_per_scan: float = 15.0
    answer_bytes: int = 64 * 1024 * 1024


@dataclass(slots=True)
class Parsed:
    """Everything a parser gave."""

    about: About = field(default_factory=About)
    shapes: list[PageShape] = field(default_factory=list[PageShape])
    blocks: list[Block] = field(default_factory=list[Block])
    scanned: list[int] = field(default_factory=list[int])
    invisible: int = 0


_POLL = 0.2  # seconds between two checks of the deadline and of `stopped`
_WORKS = 0.05  # of the time by the clock: a reader that uses so much of a processor, or waits for one, has not stopped
_WRITES = 64 * 1024 * 1024  # bytes that the worker may write into one file


def parse(path: Path, name: str, parser: str, limits: Limits, options: ParseOptions = PLAIN) -> Parsed:
    """Read a file in a process of its own; arguments and errors as in `stream`."""
    parsed = Parsed()
    for found in stream(path, name, parser, limits, options):
        match found:
            case About():
                parsed.about = found
            case PageShape():
                parsed.shapes.append(found)
            case Block():
                parsed.blocks.append(found)
            case Scanned():
                parsed.scanned += [] if found.figure else [found.page]
            case Invisible():
                parsed.invisible += found.removed
            case Part() | AtRow():
                pass
    return parsed


def stream(
    path: Path,
    name: str,
    parser: str,
    limits: Limits,
    options: ParseOptions = PLAIN,
    stopped: Callable[[], bool] | None = None,
) -> Generator[Found]:
    """Read a file in a worker process, and yield what its parser finds. Closing the generator ends the process.

    The deadline runs only while the worker is waited for, not while the caller handles what it found.

    Args:
        name: Its name as the user knows it.
        parser: Its parser's name in the catalog.
        options: How it is read, such as with a password.
        stopped: Called from another thread, five times a second; true cancels the reading.

    Raises:
        DocumentError: It cannot be read, crashed its parser, or exceeded a limit; discard what came before. With the
            key `document_cancelled` if `stopped` said so.
    """
    request = {"do": "parse", "path": str(path), "name": name, "parser": parser, **asdict(options)}
    with closing(_request(request, limits, stopped)) as answers:
        for answer in answers:
            if (found := found_in(answer)) is not None:
                yield found


def found_in(answer: Mapping[str, Any]) -> Found | None:
    """What a line of the worker's answer tells; `None` where that is nothing that a parser finds."""
    match answer:
        case {"about": [pages, title, damaged, left_out]}:
            return About(pages, title, damaged, left_out)
        case {"shape": [*values]}:
            return shape_from(values)
        case {"block": [*values]}:
            return block_from(values)
        case {"scanned": [page, figure]}:
            return Scanned(page, figure)
        case {"invisible": removed}:
            return Invisible(removed)
        case {"row": [row, total]}:
            return AtRow(row, total)
        case _:
            return None


def picture(
    path: Path, renderer: str, page: int, zoom: float, marks: Sequence[Rectangle] = (), password: str = ""
) -> bytes:
    """A page as PNG, rendered in a worker process, with the rectangles highlighted.

    Args:
        renderer: The module that renders it, from `catalog.renderer_of`.
        page: From 1.
        zoom: Pixels for each point (1/72 inch).
        marks: What to mark, in points.
        password: Opens it, if it is encrypted.

    Raises:
        DocumentError: The page cannot be rendered.
        NotFoundError: There is no such page.
    """
    request = {"do": "picture", "path": str(path), "renderer": renderer, "page": page, "zoom": zoom}
    request |= {"marks": marks, "password": password}
    with closing(_request(request, Limits())) as answers:
        for answer in answers:
            if png := answer.get("png"):
                return base64.b64decode(png)
    raise errors.BrokenDocumentError(f"Page {page} cannot be drawn.")


def figure(path: Path, renderer: str, one: Figure, shape: PageShape | None, pixels: int) -> bytes:
    """The picture of a figure as JPEG, made in a worker process.

    Args:
        renderer: The module that renders the file's pages; "" for a format without pages that can be drawn.
        shape: Of its page, where that is drawn.
        pixels: It has no more.

    Raises:
        DocumentError: It cannot be drawn.
        NotFoundError: There is no such page or picture.
    """
    request = {"do": "figure", "path": str(path), "renderer": renderer, "page": one.page or 0, "place": one.place}
    request |= {"source": one.source, "pixels": pixels, "size": [shape.width, shape.height] if shape else None}
    with closing(_request(request, Limits())) as answers:
        for answer in answers:
            if cut := answer.get("jpeg"):
                return base64.b64decode(cut)
    raise errors.BrokenDocumentError("The figure cannot be drawn.")


def unlock(
    path: Path, target: Path, decryptor: str, password: str, limits: Limits, stopped: Callable[[], bool] | None = None
) -> bool:
    """Write a decrypted copy of a file, in a worker process.

    Args:
        target: Where to write; only its owner can read it.
        decryptor: The module that decrypts it, from `catalog.decryptor_of`.
        password: Opens it.
        stopped: As for `stream`.

    Returns:
        Whether it was encrypted; nothing is written if not.

    Raises:
        LockedDocumentError: The password does not open it.
        DocumentError: It is damaged, or cost too much.
    """
    request = {"do": "unlock", "path": str(path), "target": str(target), "decryptor": decryptor, "password": password}
    writes = _WRITES + 2 * path.stat().st_size
    with closing(_request(request, limits, stopped, writes)) as answers:
        return any(bool(answer.get("unlocked")) for answer in answers)


def processor_seconds(process: int) -> float:
    """The processor time that a process has used; 0 where the system does not tell (it does on Linux).

    Args:
        process: Its id.
    """
    try:
        told = Path(f"/proc/{process}/stat").read_text("ascii", "replace")
        # The name of the program may hold anything; what follows its bracket are numbers.
        user, system = told.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return 0.0


def waited_seconds(process: int) -> float:
    """How long threads of a process were ready to work and no processor was free; 0 where the system does not tell.

    Args:
        process: Its id.
    """
    waited = 0
    for one in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # a thread may have ended
            waited += int(one.read_text("ascii", "replace").split()[1])
    return waited / 1e9


def _request(
    request: Mapping[str, Any], limits: Limits, stopped: Callable[[], bool] | None = None, writes: int = _WRITES
) -> Generator[dict[str, Any]]:
    """The worker's answers, line by line, up to its last."""
    worker = _Worker(limits, stopped or _never_stopped)
    try:
        worker.send({**request, "limits": {**worker.bounds(), "writes": writes}})
        yield from worker.answers()
    finally:
        worker.stop()


def _never_stopped() -> bool:
    return False


class _Worker:
    def __init__(self, limits: Limits, stopped: Callable[[], bool]) -> None:
        self._limits = limits
        self._stopped = stopped
        self._late = self._given_up = False
        self._pages = 0
        self._deadline = time.monotonic() + 2 * limits.seconds
        self._moving = threading.Lock()  # of the deadline: each of two threads may move it
        self._looked, self._used, self._waited, self._handled = time.monotonic(), 0.0, 0.0, 0.0
        self._over = threading.Event()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        self._folder = tempfile.TemporaryDirectory(prefix="parlour-", ignore_cleanup_errors=True)
        # `-P` keeps the current folder, which anybody may write to, off the module search path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "core.rag.parsers.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**environment(), **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._folder.name)},
        )
        self._watcher = threading.Thread(target=self._watch, name="document-reader-watch", daemon=True)
        self._watcher.start()

    def bounds(self) -> dict[str, float]:
        names = ("memory", "memory_for_scans", "seconds", "seconds_per_page", "seconds_per_scan")
        return {name: getattr(self._limits, name) for name in names}

    def send(self, request: dict[str, Any]) -> None:
        entry = self._process.stdin
        if entry is None:
            return
        try:
            entry.write(json.dumps(request).encode() + b"\n")
            entry.close()
        except OSError:  # it died at once; `answers` says why
            _log.debug("The reader of documents took no request.")

    def answers(self) -> Generator[dict[str, Any]]:
        totals = [0, 0]  # bytes of all else, and of pages with their letters
        out = self._process.stdout
        for line in out or ():
            totals[line.startswith(b'{"shape"')] += len(line)
            if max(totals) > self._limits.answer_bytes:
                raise _too_large()
            try:
                answer: dict[str, Any] = json.loads(line)
            except ValueError:  # cut off where it died
                break
            if "end" in answer:
                return
            if wrong := answer.get("error"):
                raise raised(wrong)
            with self._moving:
                if more := self._extra_seconds(answer):
                    self._deadline = time.monotonic() + 2 * (self._limits.seconds + more)
                began = time.monotonic()
                left, self._deadline = self._deadline - began, math.inf
            yield answer
            with self._moving:
                self._deadline = time.monotonic() + left
                self._handled += time.monotonic() - began
        raise self._crash_error()

    def _extra_seconds(self, answer: Mapping[str, Any]) -> float:
        """Extra seconds for the pages and scans that an answer tells of."""
        part = answer.get("part") or 0
        pages = (answer.get("about") or [0])[0] or part
        self._pages = max(self._pages, pages) if not part else self._pages + part
        scan = self._limits.seconds_per_scan if "scanned" in answer else 0.0
        return scan + self._pages * self._limits.seconds_per_page if pages or scan else 0.0

    def stop(self) -> None:
        self._over.set()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    _log.debug("A pipe was gone already.")
        self._process.wait()
        self._watcher.join()
        self._log.close()
        self._folder.cleanup()

    def _watch(self) -> None:
        """Kill the process at its deadline, or when its reading is cancelled."""
        while not self._over.wait(min(_POLL, max(0.0, self._deadline - time.monotonic()))):
            with self._moving:
                self._late = self._deadline <= time.monotonic() and not self._works()
            self._given_up = not self._late and self._stopped()
            if self._late or self._given_up:
                self._process.kill()
                return

    def _works(self) -> bool:
        """Whether the process went on since this was asked last, though on a busy machine; then it is given more time.

        How much processor time it may use in all is a bound of its own. While the caller handles what it found, the
        process may have to wait for that. It steps back behind others, so that it may long wait for a processor.
        """
        now, used, waited = time.monotonic(), processor_seconds(self._process.pid), waited_seconds(self._process.pid)
        passed, worked = now - self._looked - self._handled, used - self._used
        wanted = worked + max(0.0, waited - self._waited)
        self._looked, self._used, self._waited, self._handled = now, used, waited, 0.0
        if worked <= 0 or wanted < _WORKS * passed:
            return False
        self._deadline = now + 2 * self._limits.seconds
        return True

    def _crash_error(self) -> errors.DocumentError:
        """The error for a worker that ended without finishing its answer."""
        code = self._process.wait()
        if self._given_up:
            return cancelled()
        self._log.seek(0)
        said = self._log.read(100_000).decode(errors="replace")
        _log.warning("Reading a document ended with code %s: %s", code, said[-2000:])
        if self._late or code == -24:  # SIGXCPU: its processor time is used up
            return errors.BrokenDocumentError(
                "The file takes too long to read.", key="document_too_slow", hint="Split it into smaller ones."
            )
        if any(word in said for word in ("MemoryError", "bad_alloc", "malloc", "calloc", "memory allocation")):
            return _too_large()
        return errors.BrokenDocumentError("The file is damaged: its reader crashed.")


def cancelled() -> errors.DocumentError:
    """The error of a cancelled reading."""
    return errors.DocumentError("Reading the document was stopped.", key="document_cancelled")


def _too_large() -> errors.BrokenDocumentError:
    return errors.BrokenDocumentError(
        "The file holds too much to be read.", key="document_too_large", hint="Split it into smaller ones."
    )


_CLASSES: Mapping[str, Callable[..., errors.ParlourError]] = {
    "DocumentError": errors.DocumentError,
    "UnsupportedFormatError": errors.UnsupportedFormatError,
    "BrokenDocumentError": errors.BrokenDocumentError,
    "LockedDocumentError": errors.LockedDocumentError,
    "NotFoundError": errors.NotFoundError,
}


def raised(wrong: Mapping[str, Any]) -> errors.ParlourError:
    """The error that the worker wrote with `error_as_dict`."""
    if wrong["class"] == "MissingExtraError":
        needed: dict[str, str] = wrong["details"]
        return errors.MissingExtraError(needed["what"], needed["package"], needed["extra"])
    kind = _CLASSES.get(wrong["class"], errors.DocumentError)
    return kind(wrong["message"], hint=wrong["hint"], key=wrong["key"], **wrong["details"])
