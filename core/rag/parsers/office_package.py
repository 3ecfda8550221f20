"""Opening the packages of Word and PowerPoint, and what their libraries raise about damage."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from core.errors import BrokenDocumentError
from core.rag.parsers.zip_limits import check_zip

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

# `RuntimeError`: a part is encrypted or, as `NotImplementedError`, packed in a way that nobody knows.
_OF_ARCHIVES = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
# A part that is missing, or is not what another takes it for.
_OF_PARTS = (LookupError, ValueError, AttributeError, TypeError)


@contextmanager
def package(path: Path, what: str, open_with: Callable[[str], Any], invalid: type[Exception]) -> Generator[Any]:
    """An open package; damage that shows only while it is read is told alike.

    Args:
        path: The file.
        what: It is, as a sentence begins: "The Word document".
        open_with: Opens it.
        invalid: What the library raises of itself.

    Raises:
        BrokenDocumentError: The archive is damaged, too large inside, or another kind of file.
    """
    check_zip(path)
    of_xml = cast("type[Exception]", cast("Any", import_module("lxml.etree")).LxmlError)
    try:
        try:
            opened = open_with(str(path))
        except (KeyError, ValueError) as error:
            raise BrokenDocumentError(f"{what} is another kind of file.", key="document_not_what_it_says") from error
        yield opened
    except (*_OF_ARCHIVES, *_OF_PARTS, of_xml, invalid) as error:
        raise BrokenDocumentError(f"{what} is damaged.") from error
