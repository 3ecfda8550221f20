"""Electronic books (EPUB): the HTML chapters of a zip package, in the order of its spine."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.document import About
from core.rag.parsers.archives import check_zip, zip_kind
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean
from core.rag.parsers.figure_pictures import with_figures
from core.rag.parsers.web_page import strict_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MEDIA_TYPE = "application/epub+zip"
_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PROTECTED = "document_protected"  # by its seller: no password opens it
_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbncx+xml"})


class BookParser:
    """Reads chapter by chapter."""

    def accepts(self, name: str, head: bytes) -> str:
        """A zip that says that it is a book, by what it holds or by its name."""
        return MEDIA_TYPE if zip_kind(name, head) == ".epub" else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Headings, paragraphs, tables and listings of all chapters.

        A chapter that is missing or damaged costs that chapter, and the book is `damaged`.

        Raises:
            BrokenDocumentError: The archive is damaged, too large inside, or no book.
            LockedDocumentError: Its chapters are encrypted.
        """
        check_zip(path)
        with zipfile.ZipFile(path) as archive:
            package = _package(archive)
            title = clean(_first(package.tree, "dc:title")).strip()
            yield About(title=title)
            if _locked(archive).intersection(package.chapters):
                raise LockedDocumentError(
                    "The book is protected against copying.", hint="Save a copy without protection.", key=_PROTECTED
                )
            lost = False
            there = frozenset(archive.namelist())

            def source_in(chapter: str) -> Callable[[str], str]:
                folder = posixpath.dirname(chapter)

                def source(address: str) -> str:
                    part = posixpath.normpath(posixpath.join(folder, unquote(address)))
                    return part if part in there else ""

                return source

            def chapters() -> Iterator[Found]:
                nonlocal lost
                for chapter in package.chapters:
                    data = _read(archive, chapter)
                    lost = lost or data is None
                    if data:
                        yield from strict_page(data, source_in(chapter))

            yield from with_figures(chapters(), partial(_read, archive), words=options.pictures)
            if lost:
                yield About(title=title, damaged=True)


class _Package:
    """The book's list of its parts."""

    def __init__(self, tree: Any, folder: str) -> None:
        self.tree = tree
        parts = {
            str(node.attributes.get("id")): posixpath.normpath(posixpath.join(folder, unquote(href)))
            for node in tree.css("item")
            if (href := node.attributes.get("href")) and node.attributes.get("media-type") in _PAGES
        }
        order = [str(node.attributes.get("idref")) for node in tree.css("itemref")]
        self.chapters = [parts[one] for one in dict.fromkeys(order) if one in parts]


def _package(archive: zipfile.ZipFile) -> _Package:
    where = ""
    if (container := _read(archive, _CONTAINER)) and (root := _tree(container).css_first("rootfile")) is not None:
        where = root.attributes.get("full-path") or ""
    where = where or next((name for name in archive.namelist() if name.endswith(".opf")), "")
    data = _read(archive, where) if where else None
    if not data:
        raise BrokenDocumentError("This is no book.", key="document_not_what_it_says")
    return _Package(_tree(data), posixpath.dirname(where))


def _locked(archive: zipfile.ZipFile) -> frozenset[str]:
    """The parts that are encrypted; often only fonts, which are not needed here."""
    data = _read(archive, _ENCRYPTION) if _ENCRYPTION in archive.namelist() else None
    if not data:
        return frozenset()
    references = (node.attributes.get("uri") for node in _tree(data).root.traverse())
    return frozenset(unquote(uri) for uri in references if uri)


def _read(archive: zipfile.ZipFile, part: str) -> bytes | None:
    try:
        return archive.read(part)
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError):
        return None


def _tree(data: bytes) -> Any:
    """XML parsed as HTML, so that no entity is fetched or expanded."""
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(data.decode("utf-8", errors="replace"))


def _first(tree: Any, tag: str) -> str:
    return next((node.text() for node in tree.root.traverse() if node.tag == tag), "")
