"""Pages of a document whose reading has not come to its end, so that whoever reads it next goes on behind them.

Kept is what the parser found, not what was made of it: whoever goes on makes the same chunks of it again, passes over
those that are stored, and begins with the first page that is missing. Recognising the words of a scan takes seconds a
page; this takes none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.errors import DocumentError
from core.rag.document import Block, PageShape, block_values, shape_values
from core.rag.parsers.base import Invisible, Scanned
from core.rag.parsers.process import found_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from core.rag.config import RAGConfig
    from core.rag.parsers.base import Found

_log = logging.getLogger(__name__)

MOST: Final = 16 * 1024 * 1024
"""Bytes that are kept of one document; pages behind them are read again."""


@dataclass(frozen=True, slots=True)
class KeptPages:
    """Some pages that were read whole.

    Args:
        last: The last of them; they follow those that were kept before.
        by: What read them, and how: only the same goes on with them.
        data: What was found on them, packed.
        begins: Whether they begin with the first page: what was kept of the document before goes.
    """

    last: int
    by: str
    data: bytes
    begins: bool = False


def reader_of(config: RAGConfig) -> str:
    """What reads in this process, and how: after an update another one may cut in another way."""
    return f"{_program()} {config.pdf_reader} {config.chunk_size} {config.chunk_overlap}"


@cache
def _program() -> str:
    """A print of what finds text on pages and cuts it."""
    here = Path(__file__).parent
    told = hashlib.sha256()
    for one in sorted([*here.glob("*.py"), *here.glob("parsers/*.py")]):
        told.update(one.read_bytes())
    return told.hexdigest()[:16]


def last_of(kept: Sequence[KeptPages], by: str) -> int:
    """The last page behind which one who reads in this way begins; 0 where it has to read all of them.

    So it has where any was kept by another program, or is damaged.

    Args:
        kept: In their order.
        by: As of `reader_of`.
    """
    return kept[-1].last if kept and all(one.by == by and _is_sound(one.data) for one in kept) else 0


def _is_sound(data: bytes) -> bool:
    """Whether it can be unpacked, with the sum that was made of it."""
    try:
        zlib.decompress(data)
    except zlib.error as error:
        _log.warning("What was kept of a document's pages is damaged, so it is read from its beginning: %s", error)
        return False
    return True


def found_on(kept: Iterable[KeptPages]) -> Generator[Found]:
    """What was found on pages, in its order.

    Raises:
        DocumentError: It is damaged.
    """
    for one in kept:
        try:
            for line in zlib.decompress(one.data).splitlines():
                if (found := found_in(json.loads(line))) is not None:
                    yield found
        except (zlib.error, ValueError, TypeError) as error:
            hint = "Read it again."
            raise DocumentError("What was kept of its pages is damaged.", hint=hint) from error


class Keeper:
    """Notes what a parser finds, until all of a page is there.

    Args:
        by: As of `reader_of`.
        kept: What is kept of the document already.
    """

    def __init__(self, by: str, kept: Sequence[KeptPages] = ()) -> None:
        self._by, self._kept = by, sum(len(one.data) for one in kept)
        self._page = 0  # the present one
        self._whole: list[Found] = []
        self._last = 0
        self._begins = not kept
        self._present: list[Found] = []

    def noted(self, found: Iterable[Found]) -> Generator[Found]:
        """The same items; whoever takes the next one has done with the one before."""
        for one in found:
            if self._kept <= MOST and isinstance(one, PageShape | Block | Scanned | Invisible):
                page = self._page if isinstance(one, Invisible) else one.page or 0
                if page > self._page:
                    self._turn(page)
                self._present.append(one)
            yield one

    def _turn(self, page: int) -> None:
        if self._page:
            self._whole += self._present
            self._last = self._page
            self._present = []
        self._page = page

    def take(self) -> KeptPages | None:
        """The pages that have become whole since the last time; `None` where there are none, or too many before."""
        if not self._whole or self._kept > MOST:
            return None
        told = "\n".join(json.dumps(_told(one), separators=(",", ":")) for one in self._whole)
        pages = KeptPages(self._last, self._by, zlib.compress(told.encode(), 1), self._begins)
        self._whole, self._begins = [], False
        self._kept += len(pages.data)
        if self._kept > MOST:  # without these none that follow can be used
            self._present = []
            return None
        return pages


def _told(found: Found) -> dict[str, Any]:
    """As the parser's process tells it."""
    match found:
        case PageShape():
            return {"shape": shape_values(found)}
        case Scanned():
            return {"scanned": [found.page, found.figure]}
        case Invisible():
            return {"invisible": found.removed}
        case Block():
            return {"block": block_values(found)}
        case _:
            return {}
