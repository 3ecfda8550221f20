"""The library of an assistant that was given files."""

from __future__ import annotations

import asyncio
import glob
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from core.agents.kept_indices import kept_index
from core.bridge.cancellation import ProgramEnd, contained
from core.errors import (
    BrokenDocumentError,
    DocumentError,
    FetchError,
    NotFoundError,
    ParlourError,
    SettingsError,
    UnsupportedFormatError,
)
from core.messages.message import USER
from core.rag.document import ReadingProgress
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.sources import is_web_address, path_given
from core.tools.threads import ProgressReporter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.languages import Lang
    from core.messages.message import Message
    from core.rag.config import RAGConfig
    from core.rag.library import Library

_log = logging.getLogger(__name__)
_AT_A_TIME = min(4, os.cpu_count() or 1)  # files that are read: each has a process of its own
_MOST_FILES = 10_000  # of one folder
_LONGEST_PART = 1_000  # characters of a pattern between two slashes: `fnmatch` takes squared time for them
_LONGEST_NAME = 255

_Key: TypeAlias = tuple[str, int, int]
"""Path, size and time of change."""
Told: TypeAlias = Callable[[str, ReadingProgress, int, int], None]
Fate: TypeAlias = Literal["must", "may_fail"]
Fates: TypeAlias = "Mapping[str, Fate]"
"""Files of a question, by path: one that it named must be read, one that its folder brought is passed over."""


class FileLibrary:
    """A library that is opened on first use.

    It lies in `index_path` of the settings, else in the user's cache, where the next run finds it (`kept_indices`);
    what only conversations brought is taken out of it at the end. Without files of its own it is temporary.

    Args:
        files: Documents to read in before a search: paths, addresses on the web, folders, and patterns such as
            `docs/**/*.pdf`. What is added to a folder later is found as well; files that are no documents or cannot be
            read are passed over in it, as hidden ones are.
        config: `rag_cfg`.

    Raises:
        SettingsError: `files` is no list, or one of them is no path.
        BrokenDocumentError: A file of this machine is not there, or a folder or a pattern has none.
    """

    def __init__(self, files: Iterable[str | Path] | str, config: RAGConfig) -> None:
        if isinstance(files, str | Path) or not isinstance(cast("object", files), Iterable):
            raise SettingsError("files must be a list of paths.", hint=f"Write files=[{str(files)!r}].")
        hint = "Give a path, or an address on the web."
        self._files = [path_given(file, f"files[{at}]", hint) for at, file in enumerate(files)]
        self._wanted()  # an error now, not at the first question
        self._config = config
        self._reset()

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self._library: Library | None = None
        self._read: dict[_Key, str] = {}  # its document
        self._unreadable: dict[_Key, str] = {}  # what it is called, where it is a document
        self._unreachable: set[str] = set()
        self._kept: Path | None = None
        self._called: dict[str, str] = {}  # names of files that have others on the disk
        self._held: Path | None = None
        self._brought: set[str] = set()  # documents that conversations brought to an index that is kept

    def _wanted(self) -> list[_Wanted]:
        """The files that were given, those of folders and patterns one by one."""
        found: dict[str, _Wanted] = {}
        for path in self._files:
            for one in _files_at(path):
                place = one.path if is_web_address(one.path) else os.path.abspath(local_path(one.path))  # noqa: PTH100 - links stay
                if found.setdefault(place, one).origin == "folder":
                    found[place] = one  # named itself as well, it has to be read
        return list(found.values())

    def with_files(
        self,
        more: Iterable[str],
        told: Told | None = None,
        stopped: threading.Event | None = None,
        fates: Fates | None = None,
    ) -> tuple[Library, list[str]]:
        """The library with all files in it, and the ids of their documents. Blocks while it reads, several at a time.

        Args:
            more: Files of the conversation; those that are no documents are skipped. An address that cannot be
                fetched raises once and is skipped from then on, so that the conversation can continue.
            told: Called while files are read, from any thread: with the name of one, how far it is, how many files are
                read, and how many there are to read.
            stopped: Ends the reading when it is set.
            fates: Files of the conversation that the question decides about.

        Raises:
            DocumentError: A file cannot be read, or not be fetched.
        """
        with self._guard:
            library, fate = self._open(), (fates or {}).get
            talk = (_Wanted(path, "talk", fate(path)) for path in more if path not in self._unreachable)
            wanted = [*self._wanted(), *talk]
            files = [(key, one) for one in wanted if (key := _key(one)) is not None]
            new: dict[_Key, _Wanted] = {}
            for key, one in files:
                if key not in self._read and key not in self._unreadable:
                    new.setdefault(key, one)
            if new:
                self._read_in(library, new, told, stopped or threading.Event())
            return library, list(dict.fromkeys(self._read[key] for key, _ in files if key in self._read))

    def passed_over(self, more: Iterable[str] = ()) -> list[str]:
        """The names of documents that could not be read and were passed over, of those that are there now.

        Args:
            more: Files of the conversation.
        """
        with self._guard:
            if not any(self._unreadable.values()):
                return []
            wanted = [*self._wanted(), *(_Wanted(path, "talk", "may_fail") for path in more)]
            keys = [_key_if_there(one) for one in wanted]
            return [name for key in dict.fromkeys(keys) if key is not None and (name := self._unreadable.get(key, ""))]

    def hold(self, data: bytes, name: str, called: str) -> str:
        """Keep bytes that a conversation brought, as long as this is there; returns the path, to be read like a file.

        Args:
            name: Of the file, as far as its ending goes.
            called: What the document is called.
        """
        with self._guard:
            if self._held is None:
                self._held = Path(tempfile.mkdtemp(prefix="parlour-brought-"))
                weakref.finalize(self, shutil.rmtree, str(self._held), ignore_errors=True)
            path = self._held / f"{hashlib.sha256(data).hexdigest()}{Path(name).suffix}"
            if not path.is_file():
                path.write_bytes(data)
            self._called[str(path)] = called
            return str(path)

    def _read_in(
        self, library: Library, new: Mapping[_Key, _Wanted], told: Told | None, stopped: threading.Event
    ) -> None:
        """Read files in, so many at a time; what fails is raised when the others have stopped."""
        done: list[_Key] = []

        def read(key: _Key, one: _Wanted) -> None:
            def tell(progress: ReadingProgress) -> None:
                if told is not None:
                    told(one.name, progress, len(done), len(new))

            try:
                document = library.add(one.source, name=self._called.get(one.path), progress=tell, cancelled=stopped)
                self._read[key] = document.id
                if one.origin == "talk" and not self._config.index_path:
                    self._brought.add(document.id)
            except (DocumentError, NotFoundError) as error:
                self._pass_over(key, one, error, is_stopped=stopped.is_set())
            done.append(key)

        with ThreadPoolExecutor(min(_AT_A_TIME, len(new)), "parlour-reading") as pool:
            reading = [pool.submit(read, key, one) for key, one in new.items()]
            try:
                for one in reading:
                    one.result()
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _pass_over(self, key: _Key, one: _Wanted, error: ParlourError, *, is_stopped: bool) -> None:
        """Remember a file that cannot be read, and need not be; raises the error of one that must be."""
        if isinstance(error, FetchError) and one.origin == "talk":
            self._unreachable.add(one.path)
            raise error
        if is_stopped or not one.may_fail(error):
            raise _naming(error, one.name)
        is_document = not isinstance(error, UnsupportedFormatError)
        self._unreadable[key] = one.name if is_document else ""
        _log.log(
            logging.WARNING if is_document else logging.INFO,
            "The file %r is passed over; tools may still use it: %s",
            one.name,
            error,
        )

    def __getstate__(self) -> dict[str, object]:
        """The arguments alone: a copy opens a library of its own."""
        return {"files": self._files, "config": self._config}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._files, self._config = list(state["files"]), state["config"]
        self._reset()

    def address(self, document_id: str) -> str:
        """The path or address of a document as it was given; "" for an unknown id."""
        return next((given for (given, _, _), read in tuple(self._read.items()) if read == document_id), "")

    @property
    def folder(self) -> Path | None:
        """Where its index is kept, for the next run to find; `None` before the first question, and where it is not."""
        return self._kept

    def _open(self) -> Library:
        if self._library is None:
            from core.rag.library import Library  # brings the reading of documents, which only files need

            folder = self._folder()
            library = self._library = Library.open(folder, self._config)
            weakref.finalize(self, _close, library, self._brought)
        return self._library

    def _folder(self) -> Path:
        if self._config.index_path:
            self._kept = Path(self._config.index_path)
            return self._kept
        places = [one if is_web_address(one) else os.path.abspath(local_path(one)) for one in self._files]  # noqa: PTH100 - links stay
        if (index := kept_index(places, self._config)) is not None:
            weakref.finalize(self, index.close)
            self._kept = index.folder
            return index.folder
        folder = tempfile.mkdtemp(prefix="parlour-library-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


def _close(library: Library, brought: set[str]) -> None:
    """Close a library, without what conversations brought to it."""
    for document_id in brought:
        with suppress(ParlourError):
            library.remove(document_id)
    library.close()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A file to read; `origin` says whether it was named itself, or found in a folder or a conversation."""

    path: str
    origin: Literal["given", "folder", "talk"] = "given"
    fate: Fate | None = None  # of one in a conversation, where the question decides

    def may_fail(self, error: ParlourError) -> bool:
        """Whether it is passed over where it cannot be read."""
        if self.fate is not None:
            return self.fate == "may_fail"
        return self.origin == "folder" or (self.origin == "talk" and isinstance(error, UnsupportedFormatError))

    @property
    def source(self) -> str | Path:
        return self.path if is_web_address(self.path) else _existing_file(self.path)

    @property
    def name(self) -> str:
        return self.path if is_web_address(self.path) else local_path(self.path).name


def _naming(error: ParlourError, name: str) -> ParlourError:
    """The error, which says which of several files it is about."""
    said = str(error.args[0]) if error.args else ""
    if name not in said:
        error.args = (f"{name}: {said}", *error.args[1:])
    return error


def _key(one: _Wanted) -> _Key | None:
    """What tells a file from its earlier and later versions; `None` where one of a folder is gone meanwhile.

    Raises:
        BrokenDocumentError: Another one is gone.
    """
    if is_web_address(one.path):
        return one.path, 0, 0
    try:
        file = _existing_file(one.path)
        found = file.stat()
    except (BrokenDocumentError, OSError):
        if one.origin == "folder":
            return None
        raise
    return str(file), found.st_size, found.st_mtime_ns


def _key_if_there(one: _Wanted) -> _Key | None:
    try:
        return _key(one)
    except BrokenDocumentError:
        return None


def _files_at(path: str) -> list[_Wanted]:
    """The file at a path, or the files of a folder or pattern, by name. Raises BrokenDocumentError."""
    file = Path(path) if is_web_address(path) else local_path(path)
    if is_web_address(path) or _is(file.is_file):
        return [_Wanted(path)]
    if _is(file.is_dir):
        found, said = _in_folder(file), f"The folder {str(file.absolute())!r} has no files."
    elif glob.has_magic(path) and max(map(len, file.parts)) <= _LONGEST_PART:
        found, said = _matching(file), f"No file matches {path!r}."
    else:
        _existing_file(path)
        return []
    files = sorted(map(str, islice(found, _MOST_FILES + 1)))
    if not files:
        raise BrokenDocumentError(said, hint="Look at how it is written.", key="document_missing", name=file.name)
    if len(files) > _MOST_FILES:
        hint = "Give a smaller folder, or a pattern such as 'docs/*.pdf'."
        raise SettingsError(f"{path!r} has more than {_MOST_FILES:,} files.", hint=hint)
    return [_Wanted(one, "folder") for one in files]


def _in_folder(folder: Path) -> Iterator[Path]:
    """The files in a folder and in those inside it, without hidden ones; links to folders are not followed."""
    for at, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith(".")]
        here = (Path(at, name) for name in names if not name.startswith("."))
        yield from (one for one in here if one.is_file())


def _matching(pattern: Path) -> Iterator[Path]:
    """The files that a pattern matches, without hidden ones; `**` follows no links to folders. Raises SettingsError."""
    parts = pattern.parts
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    base = Path(*parts[:first])
    try:
        for one in base.glob("/".join(parts[first:])):
            if one.is_file() and not any(part.startswith(".") for part in one.relative_to(base).parts):
                yield one
    except ValueError as error:
        raise SettingsError(f"{str(pattern)!r} is no pattern: {error}.", hint="Write it as 'docs/**/*.pdf'.") from error


def _is(what: Callable[[], bool]) -> bool:
    """What is asked of a path; no where it is none that a file can have, or nobody here may look."""
    try:
        return what()
    except (OSError, ValueError):
        return False


def _existing_file(path: str) -> Path:
    """The file at `path`. Raises BrokenDocumentError."""
    file = local_path(path)
    if not _is(file.is_file):
        name = file.name[:_LONGEST_NAME]
        said = f"There is no file {name!r} in {str(file.absolute().parent)!r}."
        raise BrokenDocumentError(said, key="document_missing", name=name)
    return file


_READING: Final[Mapping[Lang, tuple[str, str]]] = {
    "en": ("Reading {name}", "Reading {name}: page {page} of {pages}"),
    "zh": ("正在读取 {name}", "正在读取 {name}：第 {page} 页，共 {pages} 页"),
}


async def read_files(
    library: FileLibrary,
    more: Iterable[str],
    lang: Lang,
    follow: Callable[..., None] | None = None,
    fates: Fates | None = None,
) -> tuple[Library, list[str]]:
    """As `FileLibrary.with_files`, in a thread.

    Args:
        lang: The language in which it is told what is read.
        follow: Called on the loop while files are read, as for calls of tools: with "documents", a text, how many files
            are read, and how many there are to read.
        fates: As of `with_files`.
    """
    ended: list[ProgramEnd] = []

    def follow_safely(*progress: object) -> None:
        try:
            with contained():
                if follow is not None:
                    follow(*progress)
        except ProgramEnd as end:
            ended.append(end)
        except Exception:  # noqa: BLE001 - a program's code: its trouble is not the reader's
            _log.exception("The progress of reading could not be told.")

    reporter = ProgressReporter("documents", follow_safely if follow is not None else None)
    stopped = threading.Event()

    def told(name: str, progress: ReadingProgress, done: int, files: int) -> None:
        bare, paged = _READING[lang]
        text = paged if progress.total else bare
        reporter(text.format(name=name, page=progress.pages, pages=progress.total), done, files)

    try:
        read = await asyncio.to_thread(library.with_files, more, told if follow is not None else None, stopped, fates)
    except asyncio.CancelledError:  # the thread would read on, and the next question wait for it
        stopped.set()
        raise
    finally:
        reporter.end()
    if ended:
        raise ended[0]
    return read


def conversation_files(messages: Iterable[Message]) -> list[str]:
    """The user's files in the conversation that exist on this machine or are web addresses."""
    asked = (message for message in messages if message.role == USER and message.is_multimodal())
    items = (item for message in asked for item in message.items)
    files = (item.value for item in items if item.type == "file" and isinstance(item.value, str))
    return [file for file in files if is_web_address(file) or _is(local_path(file).is_file)]


def paths_at(given: str) -> list[str]:
    """The path of a file, or those of the files of a folder or pattern, as in a constructor's `files`.

    Raises:
        BrokenDocumentError: There is none.
        SettingsError: There are too many, or it is no pattern.
    """
    return [one.path for one in _files_at(given)]


def check_there(path: str) -> None:
    """Raises BrokenDocumentError where there is no such file on this machine."""
    _existing_file(path)


def check_kind(path: str) -> None:
    """Check by the first bytes of a file that it is of a kind that can be read.

    Raises:
        DocumentError: It is not, or it is gone.
    """
    file = _existing_file(path)
    try:
        with file.open("rb") as stream:
            parser_for(file.name, stream.read(HEAD))
    except OSError as error:
        said = f"The file {file.name!r} cannot be opened: {error.strerror or type(error).__name__}."
        raise BrokenDocumentError(said, name=file.name) from error
    except DocumentError as error:
        raise _naming(error, file.name) from error


def local_path(address: str) -> Path:
    """The path of a file on this machine, given as a path or a `file:` URL."""
    url = urlsplit(address)
    return Path(unquote(url.path)) if url.scheme == "file" else Path(address)
