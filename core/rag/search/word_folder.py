"""The folder of a quick word index, kept by the `tantivy` package: many times faster than SQLite's in large libraries.

Nothing in it is the only copy of anything. It holds the terms of chunks, and one mark that says up to which change of
the library it goes. The package is loaded on demand; where it is missing, there is no such index.
"""

from __future__ import annotations

import json
import shutil
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Sequence
    from pathlib import Path

_FORMAT = 1  # of what stands in the folder; another one is thrown away
_HEAP = 32_000_000  # bytes of memory while writing; 15 million is the least that the package takes
_PIECE = 1 << 20
_FOOTER_END = 8  # bytes: how long the footer is, and a number that says that it is one
_FOOTER_MAGIC = 1337
_LONGEST_FOOTER = 4096
_MARK = 0  # where chunks have their numbers, which begin at 1


class BrokenFolderError(Exception):
    """The folder cannot be used: damaged, of another version, being changed, or the disk is full."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to where an index goes.

    Args:
        library: A name that the library drew by lot.
        chunks: The last chunk that it has looked at.
        removals: The last removal that it knows of.
    """

    library: str
    chunks: int
    removals: int


def is_installed() -> bool:
    """Whether the package is there; whether it can be loaded shows when it is."""
    return find_spec("tantivy") is not None


class Snapshot:
    """One state of the index; it stays as it is while others write."""

    def __init__(self, package: Any, index: Any) -> None:
        self._query = package.Query
        self._occur = package.Occur
        self._schema = index.schema
        self._searcher = index.searcher()
        self.mark = self._read_mark(f"{_FORMAT} {package.__version__}")

    def find(self, asked: Sequence[str], k: int, documents: Collection[str] | None) -> list[tuple[int, float]]:
        """The best `k` chunks that hold any of the terms, with their BM25 scores.

        Raises:
            BrokenFolderError: A file is damaged.
        """
        with _told():
            terms = [(self._occur.Should, self._term("terms", term)) for term in asked]
            query = self._query.boolean_query(terms)
            if documents is not None:
                inside = self._query.term_set_query(self._schema, "document", list(documents))
                unscored = self._query.const_score_query(inside, 0.0)
                query = self._query.boolean_query([(self._occur.Must, query), (self._occur.Must, unscored)])
            # It makes room for as many as are asked for, and ends the process where there is none.
            most = min(k, self._searcher.num_docs)
            hits = self._searcher.search(query, most, count=False).hits
            ids = self._searcher.fast_field_values("chunk", [place for _, place in hits])
            return [(int(chunk_id), float(score)) for chunk_id, (score, _) in zip(ids, hits, strict=True)]

    def _term(self, field: str, value: Any) -> Any:
        return self._query.term_query(self._schema, field, value, index_option="freq" if field == "terms" else "basic")

    def _read_mark(self, version: str) -> Mark:
        hits = self._searcher.search(self._term("chunk", _MARK), 1, count=False).hits
        text = self._searcher.doc(hits[0][1]).get_first("mark") if hits else ""
        found, _, rest = str(text).partition("|")
        if found != version:
            raise BrokenFolderError("It is of another version, or was never finished.")
        library, chunks, removals = rest.split("|")
        return Mark(library, int(chunks), int(removals))


class WordFolder:
    """The folder, open.

    Args:
        path: Where it is.
        new: Make it anew, over what is there.

    Raises:
        BrokenFolderError: It cannot be used, or the package cannot be loaded.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        with _told():
            self._package: Any = import_module("tantivy")
            if new:
                if path.exists():
                    shutil.rmtree(path)
                path.mkdir(mode=0o700)
                self._index: Any = self._package.Index(self._schema(), str(path), reuse=False)
            else:
                _check(path)
                self._index = self._package.Index.open(str(path))
            spaces = self._package.TextAnalyzerBuilder(self._package.Tokenizer.whitespace()).build()
            self._index.register_tokenizer("spaces", spaces)
            self._index.config_reader("manual")

    def snapshot(self) -> Snapshot:
        """What was written last, by whichever process.

        Raises:
            BrokenFolderError: It cannot be used.
        """
        with _told():
            self._index.reload()
            return Snapshot(self._package, self._index)

    def waste(self) -> float:
        """The part of it, from 0 to 1, that is only in the way: chunks that are gone.

        Raises:
            BrokenFolderError: It cannot be read.
        """
        with _told():
            segments = _segments(self._path)
            gone = sum(one["deletes"]["num_deleted_docs"] for one in segments if one["deletes"])
            return gone / max(1, sum(one["max_doc"] for one in segments))

    @contextmanager
    def writing(self) -> Generator[WordWriter]:
        """Changes; one writer at a time.

        Raises:
            BrokenFolderError: It cannot be written.
        """
        with _told():
            writer = WordWriter(self._package, self._index)
            try:
                yield writer
            finally:
                writer.close()

    def _schema(self) -> Any:
        fields = self._package.SchemaBuilder()
        fields.add_text_field("terms", tokenizer_name="spaces", index_option="freq")
        fields.add_text_field("document", tokenizer_name="raw", index_option="basic")
        fields.add_unsigned_field("chunk", indexed=True, fast=True)
        fields.add_text_field("mark", stored=True, tokenizer_name="raw", index_option="basic")
        return fields.build()


class WordWriter:
    """Takes chunks in and out; nothing is seen before `commit`."""

    def __init__(self, package: Any, index: Any) -> None:
        self._package = package
        self._schema = index.schema
        self._writer = index.writer(_HEAP, 1)

    def add(self, rows: Iterable[tuple[int, str, str]]) -> None:
        """Chunks: their numbers, their documents, their terms parted by spaces."""
        for chunk_id, document_id, terms in rows:
            row = self._package.Document()
            row.add_unsigned("chunk", chunk_id)
            row.add_text("document", document_id)
            row.add_text("terms", terms)
            self._writer.add_document(row)

    def remove(self, chunk_ids: Sequence[int]) -> None:
        """Forget chunks; those that are not there do not matter."""
        # Its `delete_documents_by_term` looks for a signed number, and finds none.
        self._writer.delete_documents_by_query(self._package.Query.term_set_query(self._schema, "chunk", chunk_ids))

    def commit(self, mark: Mark) -> None:
        """All of it lands with its mark, or nothing."""
        self.remove([_MARK])
        row = self._package.Document()
        row.add_unsigned("chunk", _MARK)
        said = f"{_FORMAT} {self._package.__version__}|{mark.library}|{mark.chunks}|{mark.removals}"
        row.add_text("mark", said)
        self._writer.add_document(row)
        self._writer.commit()

    def settle(self) -> None:
        """Wait until small parts are joined to larger ones; nothing can be written after."""
        self._writer.wait_merging_threads()

    def close(self) -> None:
        """Let go; what was not committed is dropped."""
        del self._writer


@contextmanager
def _told() -> Generator[None]:
    """Whatever the package says, as one error."""
    try:
        yield
    except (ValueError, TypeError, KeyError, OSError, RuntimeError, ImportError) as error:
        raise BrokenFolderError(str(error)) from error
    except BaseException as error:
        # Where its own code gives up, the package raises something that is no `Exception`, and that has no public name.
        if type(error).__name__ != "PanicException":
            raise
        raise BrokenFolderError(str(error)) from error


def _segments(path: Path) -> list[dict[str, Any]]:
    meta: dict[str, Any] = json.loads((path / "meta.json").read_bytes())
    segments: list[dict[str, Any]] = meta["segments"]
    return segments


def _check(path: Path) -> None:
    """Compare every file with the sum at its end: the package itself reads a changed byte without a word."""
    wanted = {one["segment_id"].replace("-", "") for one in _segments(path)}
    for file in sorted(path.iterdir()):
        if file.name.partition(".")[0] in wanted and not _is_whole(file):
            raise BrokenFolderError(f"{file.suffix} is damaged.")


def _is_whole(file: Path) -> bool:
    """Whether the file's sum is right; true as well where it has none that we can read."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        stream.seek(max(0, size - _LONGEST_FOOTER))
        end = stream.read()
        length = int.from_bytes(end[-8:-4], "little")
        is_footer = int.from_bytes(end[-4:], "little") == _FOOTER_MAGIC and length <= len(end) - _FOOTER_END
        if not is_footer:
            return True
        footer = json.loads(end[-8 - length : -8])
        left = size - length - _FOOTER_END
        stream.seek(0)
        found = 0
        while left > 0 and (piece := stream.read(min(left, _PIECE))):
            found = zlib.crc32(piece, found)
            left -= len(piece)
    return footer.get("crc") == found
