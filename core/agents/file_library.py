"""The library of an assistant that was given files."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from core.errors import BrokenDocumentError, FetchError, SettingsError, UnsupportedFormatError
from core.messages.message import USER
from core.rag.library import Library
from core.rag.sources import is_web_address, path_given

if TYPE_CHECKING:
    from core.messages.message import Message
    from core.rag.config import RAGConfig

_log = logging.getLogger(__name__)


class FileLibrary:
    """A library that is opened on first use, in `index_path` of the settings, else in a temporary folder.

    Args:
        files: Documents to read in before the first search: paths, or addresses on the web.
        config: `rag_cfg`.

    Raises:
        SettingsError: `files` is no list, or one of them is no path.
        BrokenDocumentError: A file of this machine is not there.
    """

    def __init__(self, files: Iterable[str | Path] | str, config: RAGConfig) -> None:
        if isinstance(files, str | Path) or not isinstance(cast("object", files), Iterable):
            raise SettingsError("files must be a list of paths.", hint=f"Write files=[{str(files)!r}].")
        hint = "Give a path, or an address on the web."
        self._files = [path_given(file, f"files[{at}]", hint) for at, file in enumerate(files)]
        for file in self._files:  # an error now, not at the first question
            if not is_web_address(file):
                _existing_file(file)
        self._config = config
        self._reset()

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self._library: Library | None = None
        self._read: dict[tuple[str, int, int], str] = {}  # path, size and time of change: document
        self._unreachable: set[str] = set()

    def with_files(self, more: Iterable[str]) -> tuple[Library, list[str]]:
        """The library with all files in it, and the ids of their documents. Blocks while it reads.

        Args:
            more: Files of the conversation; those that are no documents are skipped. An address that cannot be
                fetched raises once and is skipped from then on, so that the conversation can continue.

        Raises:
            DocumentError: A file cannot be read, or not be fetched.
        """
        with self._guard:
            library = self._open()
            ids = [self._add(library, path) for path in self._files]
            for path in more:
                if path in self._unreachable:
                    continue
                try:
                    ids.append(self._add(library, path))
                except UnsupportedFormatError:
                    _log.info("The file %r is no document; tools may still use it.", Path(path).name)
                except FetchError:
                    self._unreachable.add(path)
                    raise
            return library, list(dict.fromkeys(ids))

    def __getstate__(self) -> dict[str, object]:
        """The arguments alone: a copy opens a library of its own."""
        return {"files": self._files, "config": self._config}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._files, self._config = list(state["files"]), state["config"]
        self._reset()

    def address(self, document_id: str) -> str:
        """The path or address of a document as it was given; "" for an unknown id."""
        return next((given for (given, _, _), read in self._read.items() if read == document_id), "")

    def _open(self) -> Library:
        if self._library is None:
            self._library = Library.open(self._folder(), self._config)
            weakref.finalize(self, self._library.close)
        return self._library

    def _folder(self) -> Path:
        if self._config.index_path:
            return Path(self._config.index_path)
        folder = tempfile.mkdtemp(prefix="parlour-library-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def _add(self, library: Library, path: str) -> str:
        if is_web_address(path):
            key = (path, 0, 0)
            if key not in self._read:
                self._read[key] = library.add(path).id
            return self._read[key]
        file = _existing_file(path)
        found = file.stat()
        key = (str(file), found.st_size, found.st_mtime_ns)
        if key not in self._read:
            self._read[key] = library.add(file).id
        return self._read[key]


def _existing_file(path: str) -> Path:
    """The file at `path`. Raises BrokenDocumentError."""
    file = local_path(path)
    if file.is_dir():
        said = f"{str(file.absolute())!r} is a folder."
        hint = f"Give its files, such as sorted(Path({path!r}).glob('*'))."
        raise BrokenDocumentError(said, hint=hint, key="document_missing", name=file.name)
    if not file.is_file():
        said = f"There is no file {file.name!r} in {str(file.absolute().parent)!r}."
        raise BrokenDocumentError(said, key="document_missing", name=file.name)
    return file


def conversation_files(messages: Iterable[Message]) -> list[str]:
    """The user's files in the conversation that exist on this machine or are web addresses."""
    items = (item for message in messages if message.role == USER for item in message.items)
    files = (item.value for item in items if item.type == "file" and isinstance(item.value, str))
    return [file for file in files if is_web_address(file) or local_path(file).is_file()]


def local_path(address: str) -> Path:
    """The path of a file on this machine, given as a path or a `file:` URL."""
    url = urlsplit(address)
    return Path(unquote(url.path)) if url.scheme == "file" else Path(address)
