"""Text documents of OpenDocument (ODT): one XML part of a zip package."""

from __future__ import annotations

import zipfile
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.document import About, Block, table
from core.rag.parsers.archives import is_encrypted_package, package, zip_kind
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEDIA_TYPE = "application/vnd.oasis.opendocument.text"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_SIGNS = {f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_PARAGRAPHS = frozenset({f"{_TEXT}p", f"{_TEXT}h"})
_SILENT = frozenset({f"{_OFFICE}annotation", f"{_TEXT}tracked-changes", f"{_TEXT}note-citation", f"{_TEXT}ruby-text"})
_MOST_SPACES = 100
_MOST_REPEATED = 50  # empty cells up to the edge of a sheet are one cell, many times
_LONGEST_HEADING = 300


class OpenDocumentParser:
    """Reads headings, paragraphs, lists and tables in the order of the document."""

    def accepts(self, name: str, head: bytes) -> str:
        """A zip that says that it is a text document, or is called so."""
        return MEDIA_TYPE if zip_kind(name, head) == ".odt" else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Footnotes stand where their marks are; comments and deleted text are left out.

        Raises:
            BrokenDocumentError: The archive is damaged, too large inside, or no text document.
            LockedDocumentError: It is encrypted.
        """
        with package(path, "The text document", zipfile.ZipFile, zipfile.BadZipFile) as archive:
            if is_encrypted_package(path):
                raise LockedDocumentError(
                    "The document is protected by a password.", hint="Save a copy without a password."
                )
            yield About(title=_title(archive))
            body = _tree(archive.read("content.xml")).find(f"{_OFFICE}body/{_OFFICE}text")
            if body is None:
                raise BrokenDocumentError("This is no text document.", key="document_not_what_it_says")
            yield from _blocks(body)


def _tree(data: bytes) -> Any:
    """Parsed without entities and without the network; lxml bounds how deep elements may stand in each other."""
    etree = cast("Any", import_module("lxml.etree"))
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    return etree.fromstring(data, parser)


def _title(archive: zipfile.ZipFile) -> str:
    if "meta.xml" not in archive.namelist():
        return ""
    return clean(_tree(archive.read("meta.xml")).findtext(f".//{_TITLE}") or "").strip()


def _blocks(body: Any) -> Iterator[Block]:
    """Not recursive: the file decides how deep lists stand in each other."""
    waiting: list[tuple[Any, str]] = [(body, "")]
    while waiting:
        node, mark = waiting.pop()
        if node.tag in _PARAGRAPHS:
            yield from _paragraph(node, mark)
        elif node.tag == f"{_TABLE}table":
            if rows := [row for row in map(_row, node.iter(f"{_TABLE}table-row")) if any(map(str.strip, row))]:
                yield table(rows)
        elif node.tag not in _SILENT:
            mark = "- " if node.tag == f"{_TEXT}list-item" else mark
            # Only the first paragraph of an item has its mark.
            inside = list(node.iterchildren())
            waiting.extend((one, mark if not number else "") for number, one in reversed(list(enumerate(inside))))


def _paragraph(node: Any, mark: str) -> Iterator[Block]:
    text = _words(node).strip()
    if not text:
        return
    level = node.get(f"{_TEXT}outline-level", "1") if node.tag == f"{_TEXT}h" else ""
    if level and len(text) <= _LONGEST_HEADING:
        number = int(level[:3]) if level.isdecimal() else 1
        yield Block("heading", " ".join(text.split()), level=min(max(number, 1), 6))
    else:
        yield Block("paragraph", mark + text)


def _row(row: Any) -> tuple[str, ...]:
    cells: list[str] = []
    for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
        times = cell.get(f"{_TABLE}number-columns-repeated", "1")
        text = _words(cell).strip()
        cells.extend([text] * (min(int(times[:9]), _MOST_REPEATED) if times.isdecimal() else 1))
    return tuple(cells)


def _words(node: Any) -> str:
    """All text below a node; paragraphs inside it (in a cell, in a text box, in a footnote) end in a line break."""
    pieces: list[str] = []
    waiting: list[Any] = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            pieces.append(here)
            continue
        is_silent = here.tag in _SILENT
        if here is not node and here.tail:
            waiting.append(here.tail)
        if is_silent:
            continue
        if here.tag in _PARAGRAPHS and here is not node:
            waiting.append("\n")
        if here.tag == f"{_TEXT}s":
            count = here.get(f"{_TEXT}c", "1")
            pieces.append(" " * (min(int(count[:9]), _MOST_SPACES) if count.isdecimal() else 1))
        pieces.append(_SIGNS.get(here.tag, here.text or ""))
        waiting.extend(reversed(list(here.iterchildren())))
    return clean("".join(pieces))
