"""The process in which files are opened: `python -m core.rag.parsers.worker`.

It reads one request, a line of JSON, from standard input and answers in lines of JSON on standard output. It starts
with a bound on memory and processor time and with nothing of the parent's environment: a file that crashes it, fills
its memory or never ends costs that file only.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from dataclasses import replace
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from core.errors import BrokenDocumentError, DocumentError, MissingExtraError, NotFoundError, ParlourError, extra_for
from core.rag.document import About, Block, PageShape, block_values, shape_values
from core.rag.parsers.base import MOST_THREADS, AtRow, ParseOptions, Part, Scanned, clean, tally
from core.rag.parsers.catalog import PARSER_REGISTRY

if TYPE_CHECKING:
    from collections.abc import Mapping

# Seconds between flushes of pages: the first ones are wanted soon.
_FIRST_FLUSH, _FLUSH = 0.02, 0.2
_PAGES_OF_A_PART = 4  # that a document within another may cost as much time as, besides its own
_PAGES_OF_PARTS = 4_000  # of all of them: archives in archives have no end


def main() -> None:
    """Answer one request and end."""
    answer = _private_output()
    request: dict[str, Any] = json.loads(sys.stdin.readline())
    limits = Bounds(**request["limits"])
    try:
        with extra_for("Reading this document"):
            _do(request, answer, limits)
    except (DocumentError, NotFoundError, MissingExtraError) as error:
        _send(answer, {"error": error_as_dict(error)})
    except MemoryError:
        _send(answer, {"error": error_as_dict(too_large())})
    _send(answer, {"end": True})
    answer.flush()


def _do(request: Mapping[str, Any], answer: TextIO, limits: Bounds) -> None:
    if request["do"] == "picture":
        reader = import_module(request["renderer"])
        place = (request["page"], request["zoom"], request["marks"])
        png: bytes = reader.picture(Path(request["path"]), *place, request["password"])
        _send(answer, {"png": base64.b64encode(png).decode("ascii")})
    elif request["do"] == "figure":
        jpeg: bytes = import_module("core.rag.parsers.cutouts").drawn(request)
        _send(answer, {"jpeg": base64.b64encode(jpeg).decode("ascii")})
    elif request["do"] == "unlock":
        os.umask(0o077)
        decryptor = import_module(request["decryptor"])
        done: bool = decryptor.unlock(Path(request["path"]), Path(request["target"]), request["password"])
        _send(answer, {"unlocked": done})
    else:
        _parse(request, answer, limits)


def _parse(request: Mapping[str, Any], answer: TextIO, limits: Bounds) -> None:
    flushed, interval, left, ahead = time.monotonic(), _FIRST_FLUSH, _PAGES_OF_PARTS, MOST_THREADS
    options = ParseOptions(request["password"], request["pictures"], request["first_page"])
    for found in PARSER_REGISTRY[request["parser"]]().parse(Path(request["path"]), request["name"], options):
        match found:
            case About():
                limits.grow(found.pages or 0)
                _send(answer, {"about": [found.pages, clean(found.title), found.damaged, found.left_out]})
            case PageShape():
                if (now := time.monotonic()) - flushed > interval:
                    answer.flush()
                    flushed, interval = now, min(_FLUSH, 2 * interval)
                _send(answer, {"shape": shape_values(found)})
            case Part():
                if allowed := min(_PAGES_OF_A_PART + found.pages, left):
                    left -= allowed
                    limits.grow(allowed)
                    _send(answer, {"part": allowed})
                    answer.flush()
            case Scanned():
                limits.allow(1 + ahead)  # with the first page, others are begun
                ahead = 0
                _send(answer, {"scanned": [found.page, found.figure]})
                answer.flush()
            case Block() | AtRow():
                _send(answer, _told(found))
            case _:
                pass
        if tally.removed:
            _send(answer, {"invisible": tally.take()})


def _told(found: Block | AtRow) -> dict[str, Any]:
    if isinstance(found, AtRow):
        return {"row": [found.row, found.total]}
    return {"block": block_values(_cleaned(found))}


def _cleaned(block: Block) -> Block:
    """The block without invisible characters that its parser left, such as from references in HTML."""
    cells = tuple(tuple(map(clean, row)) for row in block.cells)
    if not block.lines:
        return replace(block, text=clean(block.text), cells=cells)
    starts = [start for start, _ in block.lines]
    pieces = [clean(block.text[start:end]) for start, end in pairwise([*starts, len(block.text)])]
    before = clean(block.text[: starts[0]])
    ends = accumulate(map(len, pieces), initial=len(before))
    lines = tuple((start, place) for start, (_, place) in zip(ends, block.lines, strict=False))
    return replace(block, text=before + "".join(pieces), lines=lines, cells=cells)


def too_large() -> BrokenDocumentError:
    """The error when memory was not enough."""
    return BrokenDocumentError(
        "The file needs too much memory to be read.", key="document_too_large", hint="Split it into smaller ones."
    )


def error_as_dict(error: ParlourError) -> dict[str, Any]:
    """An error in a form that crosses the process's border."""
    message = str(error).removesuffix(f" {error.hint}") if error.hint else str(error)
    return {
        "class": type(error).__name__,
        "message": message,
        "hint": error.hint,
        "key": error.words_key,
        "details": error.details,
    }


def _send(answer: TextIO, line: dict[str, Any]) -> None:
    answer.write(json.dumps(line, separators=(",", ":")))
    answer.write("\n")


def _private_output() -> TextIO:
    """Standard output for answers alone: what C libraries print goes to the log."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "w", encoding="utf-8", buffering=1 << 16)


class Bounds:
    """Limits on memory and processor time of this process, where the system has them (not on Windows).

    Args:
        memory: Bytes of address space.
        memory_for_scans: More of it, once OCR begins.
        seconds: Processor time to begin with.
        seconds_per_page: More of it for each page, once they are counted.
        seconds_per_scan: More of it for each page read by OCR.
        writes: Bytes that it may write into one file.
    """

    def __init__(
        self,
        memory: int,
        memory_for_scans: int,
        seconds: float,
        seconds_per_page: float,
        seconds_per_scan: float,
        writes: int,
    ) -> None:
        self._seconds, self._per_page, self._per_scan = seconds, seconds_per_page, seconds_per_scan
        if sys.platform == "win32":
            return
        import resource

        for kind, soft, hard in (
            (resource.RLIMIT_CORE, 0, 0),
            (resource.RLIMIT_FSIZE, writes, writes),
            (resource.RLIMIT_AS, memory, memory + memory_for_scans),
        ):
            _lower(kind, soft, hard)
        self.grow(0)

    def grow(self, pages: int) -> None:
        """Allow for the pages of a document."""
        self._seconds += pages * self._per_page
        if sys.platform == "win32":
            return
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (max(1, round(self._seconds)), hard))

    def allow(self, pages: int = 1) -> None:
        """Allow for the OCR of more pages."""
        self._seconds += pages * self._per_scan
        self.grow(0)


def _lower(kind: int, soft: int, hard: int) -> None:
    import resource

    _, bound = resource.getrlimit(kind)
    if bound != resource.RLIM_INFINITY:
        soft, hard = min(soft, bound), min(hard, bound)
    try:
        resource.setrlimit(kind, (soft, hard))
    except (ValueError, OSError):
        return  # macOS refuses some; the parent's clock remains


if __name__ == "__main__":
    main()
