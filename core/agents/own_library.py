"""The library of an assistant that was given files instead of one."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from core.errors import BrokenDocumentError, UnsupportedFormatError
from core.rag.library import Library

if TYPE_CHECKING:
    from core.rag.config import RAGConfig

_log = logging.getLogger(__name__)


class OwnLibrary:
    """Opened when it is first needed; its folder is `index_path` of the settings, else a temporary one.

    Args:
        files: Documents to read in before the first search.
        config: `rag_cfg`.
    """

    def __init__(self, files: Iterable[str | Path], config: RAGConfig | Mapping[str, Any] | None) -> None:
        self._files = [str(file) for file in files]
        self._config = config
        self._guard = threading.Lock()
        self._library: Library | None = None
        self._read: dict[tuple[str, int, int], str] = {}  # path, size and time of change: document

    def with_files(self, more: Iterable[str]) -> tuple[Library, list[str]]:
        """The library with all files in it, and the ids of their documents. Blocks while it reads.

        Args:
            more: Files that the conversation brought; those that are no documents are left out.

        Raises:
            DocumentError: A file cannot be read.
        """
        with self._guard:
            library = self._opened()
            ids = [self._added(library, path) for path in self._files]
            for path in more:
                try:
                    ids.append(self._added(library, path))
                except UnsupportedFormatError:
                    _log.info("The file %r is no document; tools may still use it.", Path(path).name)
            return library, list(dict.fromkeys(ids))

    def _opened(self) -> Library:
        if self._library is None:
            self._library = Library.open(self._folder(), self._config)
            weakref.finalize(self, self._library.close)
        return self._library

    def _folder(self) -> Path:
        if isinstance(self._config, Mapping) and (wanted := self._config.get("index_path")):
            return Path(str(wanted))
        folder = tempfile.mkdtemp(prefix="parlour-library-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def _added(self, library: Library, path: str) -> str:
        file = local_path(path)
        if not file.is_file():
            raise BrokenDocumentError(f"There is no file {file.name!r}.", key="document_missing", name=file.name)
        found = file.stat()
        key = (str(file), found.st_size, found.st_mtime_ns)
        if key not in self._read:
            self._read[key] = library.add(file).id
        return self._read[key]


def local_path(address: str) -> Path:
    """The path of a file on this machine, given as a path or a `file:` URL."""
    url = urlsplit(address)
    return Path(unquote(url.path)) if url.scheme == "file" else Path(address)
