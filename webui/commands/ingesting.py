"""`parlour ingest`: takes very many files into a named library, whether Parlour runs or not."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from typing import TYPE_CHECKING, Final

from core.errors import ParlourError
from webui.commands.command_line import Parser, on_data_folder, positive_int, sentence
from webui.commands.owners import add_owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.ingesting.running import Tally
    from core.ingesting.sources import Item
    from core.settings import Settings
    from webui.words import Words

_CLUSTER: Final = re.compile(r"(?:ray://)?[\w.-]{1,253}:\d{1,5}")
_OFTEN: Final = 0.2  # seconds between two lines that are rewritten
_SELDOM: Final = 30.0  # the same, where each stays


def ingest(arguments: Sequence[str]) -> int:
    """`parlour ingest`: take files in; returns the exit code of `on_data_folder`, 1 where not all were."""
    parser = Parser(
        prog="parlour ingest",
        description="Take a file, a folder, the files that a pattern finds, or an S3 store into a library. The same "
        "bytes are there once; run again, it reads only what is missing. What cannot be read is named and noted, and "
        "the rest goes on. Ctrl-C leaves whole documents.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a file, a folder, a pattern in quotes such as 'papers/**/*.pdf', or s3://bucket/prefix with the keys and "
        "the address that PARLOUR_FILES has",
    )
    parser.add_argument("--library", required=True, metavar="NAME", help="where to; it is made where there is none")
    add_owner(parser, "whose library it is")
    parser.add_argument(
        "--on",
        default="local",
        type=_where,
        metavar="WHERE",
        help="what reads: local (this machine), ray (a Ray cluster of this machine), host:port (a cluster that this "
        "machine belongs to), or ray://host:port (one elsewhere)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="pass over files that could not be read before and have not changed since"
    )
    parser.add_argument("--workers", type=positive_int, metavar="N", help="files read at the same time (one a core)")
    return on_data_folder(parser, arguments, _ingest, _wrong)


def _wrong(given: argparse.Namespace) -> str:
    return "" if given.source.strip() else "SOURCE must be a file, a folder, a pattern or s3://bucket/prefix, not ''"


def _where(text: str) -> str:
    if text not in {"local", "ray"} and _CLUSTER.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"must be local, ray, host:port or ray://host:port, not {text!r}")
    return text


def _ingest(given: argparse.Namespace, settings: Settings, words: Words) -> list[str]:
    from core.ingesting.ingestion import Told, Wanted  # much to import: other commands do without
    from core.ingesting.ingestion import ingest as taken_in
    from core.reading.libraries import checked_name

    wanted = Wanted(given.source, given.library, given.owner, given.on, given.resume, given.workers)
    line = _Line(words)
    try:
        tally, by_meaning = asyncio.run(taken_in(settings, wanted, Told(line.file, line.vectors)))
    finally:
        line.end()
    sys.stdout.write(
        words("ingest.done", read=tally.read, known=tally.known, library=_plain(checked_name(given.library))) + "\n"
    )
    if tally.failed:
        raise ParlourError(
            f"{tally.failed} of {tally.found} files could not be taken in.",
            hint="Their names and why stand above; run it again when they are mended.",
            key="ingest_failed",
            failed=tally.failed,
            found=tally.found,
        )
    if not by_meaning:
        raise ParlourError(
            "Not all can be searched by meaning yet: the vectors could not be made.",
            hint="Words find all of it; run it again, or start Parlour, and they are made.",
            key="ingest_without_vectors",
        )
    return []


class _Line:
    """How it goes, for who watches: a line that is rewritten on a screen, one now and then in a file."""

    def __init__(self, words: Words) -> None:
        self._words, self._out = words, sys.stderr
        self._rewrites = self._out.isatty()
        self._last, self._width = time.monotonic(), 0

    def file(self, tally: Tally, item: Item, trouble: ParlourError | None) -> None:
        """A file was taken in, or could not be."""
        if trouble is not None:
            self._say(f"{_plain(item.place)}: {sentence(trouble, self._words)}")
        now = time.monotonic()
        if now - self._last < (_OFTEN if self._rewrites else _SELDOM):
            return
        self._last = now
        said = self._words("ingest.progress", read=tally.read, known=tally.known, failed=tally.failed)
        if not self._rewrites:
            self._say(said)
            return
        self._out.write("\r" + said.ljust(self._width))
        self._width = len(said)
        self._out.flush()

    def vectors(self) -> None:
        """All was read, and vectors are still being made."""
        self._say(self._words("ingest.vectors"))

    def end(self) -> None:
        """End the line."""
        if self._width:
            self._out.write("\n")
            self._width = 0

    def _say(self, text: str) -> None:
        if self._width:
            self._out.write("\r" + " " * self._width + "\r")
            self._width = 0
        self._out.write(f"{text}\n")
        self._out.flush()


def _plain(place: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in place)
