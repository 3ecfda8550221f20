"""Archives (ZIP): the files in them, in the order of their names."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.document import About
from core.rag.parsers.archives import ARCHIVE_ERRORS, check_zip, is_archive
from core.rag.parsers.base import PLAIN, Found, ParseOptions
from core.rag.parsers.parts import File, parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEDIA_TYPE = "application/zip"
_ENCRYPTED = 0x1
_NAME_IN_UTF8 = 0x800


class ArchiveParser:
    """Reads each file as a document of its own; names that lead elsewhere lead nowhere, since nothing is unpacked."""

    def accepts(self, name: str, head: bytes) -> str:
        """An archive that is no document, and is called one: many programs keep what is theirs alone in archives."""
        return MEDIA_TYPE if is_archive(name, head) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """The files with their folders as headings; hidden files are passed over.

        Raises:
            BrokenDocumentError: The archive is damaged, or too large inside.
        """
        check_zip(path)
        with zipfile.ZipFile(path) as archive:
            yield About()
            named = ((_name(entry), entry) for entry in archive.infolist() if not entry.is_dir())
            seen = sorted(((name, entry) for name, entry in named if not _is_hidden(name)), key=lambda one: one[0])
            files = (File(name, entry.file_size, partial(_read, archive, entry)) for name, entry in seen)
            yield from parts(files, options)


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.flag_bits & _ENCRYPTED:
        raise LockedDocumentError("It is encrypted.")
    try:
        return archive.read(entry)
    except (*ARCHIVE_ERRORS, ValueError) as error:
        raise BrokenDocumentError("It is damaged.") from error


def _name(entry: zipfile.ZipInfo) -> str:
    """The name as its writer meant it: many a Chinese program writes GBK and does not say so."""
    name = entry.filename
    if not (entry.flag_bits & _NAME_IN_UTF8 or name.isascii()):
        raw = name.encode("cp437", errors="replace")
        for encoding in ("gb18030", "utf-8"):
            with suppress(UnicodeDecodeError):
                name = raw.decode(encoding)
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in {"", ".", ".."})


def _is_hidden(name: str) -> bool:
    """Files of systems, which nobody put there: their names, or those of their folders, begin with a dot."""
    parts = PurePosixPath(name).parts
    return any(part == "__MACOSX" or part.startswith(".") for part in parts)
