"""Word documents (DOCX)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from core.rag.document import About, Block, table
from core.rag.figure_labels import figure_text
from core.rag.parsers.archives import package, zip_kind
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean
from core.rag.parsers.figure_pictures import part_of, with_figures
from core.rag.parsers.word_forms import CONTROL, OLDER, control_text, older_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_LOOKED_BACK = 16  # pieces of text: the words before a field are its label
_HEADING = re.compile(r"(?:heading|überschrift|titre|título|标题|標題)\s*([1-9])$", re.IGNORECASE)


class WordParser:
    """Reads paragraphs, headings and tables in the order of the document."""

    def accepts(self, name: str, head: bytes) -> str:
        """A zip that is a Word document by what it holds, or by its name."""
        return MEDIA_TYPE if zip_kind(name, head) == ".docx" else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Walks the body itself: the library's own walk omits content controls, where forms keep their text.

        Raises:
            BrokenDocumentError: The archive is damaged, too large inside, or no Word document.
        """
        from docx import Document
        from docx.exceptions import PythonDocxError

        with package(path, "The Word document", Document, PythonDocxError) as document:
            yield About(title=clean(document.core_properties.title or "").strip())
            walk = _Walk(_heading_levels(document), _pictures(document))
            yield from with_figures(walk.blocks(document.element.body), partial(part_of, path), words=options.pictures)


def _heading_levels(document: Any) -> dict[str, int]:
    """Heading level by style id; collected once, as asking each paragraph for its style costs seconds in a handbook."""
    levels: dict[str, int] = {}
    for style in document.styles.element.iter(f"{_W}style"):
        name_node, outline = style.find(f"{_W}name"), style.find(f"{_W}pPr/{_W}outlineLvl")
        name = name_node.get(f"{_W}val", "") if name_node is not None else ""
        found = _HEADING.match(name)
        if found:
            level = int(found[1])
        elif name.lower() == "title":
            level = 1
        elif outline is not None and outline.get(f"{_W}val", "9").isdecimal():
            level = int(outline.get(f"{_W}val", "9")) + 1
        else:
            continue
        if 1 <= level <= 9:
            levels[style.get(f"{_W}styleId", "")] = min(level, 6)
    return levels


def _pictures(document: Any) -> dict[str, str]:
    """The parts of the package that hold pictures, by the ids by which the text refers to them."""
    return {
        relation_id: str(relation.target_part.partname).lstrip("/")
        for relation_id, relation in document.part.rels.items()
        if relation.reltype.endswith("/image") and not relation.is_external
    }


@dataclass(frozen=True, slots=True)
class _Walk:
    """What the walk through the body must know.

    Args:
        levels: Of headings, by style.
        pictures: Parts of the package, by id.
    """

    levels: dict[str, int]
    pictures: dict[str, str]

    def blocks(self, body: Any) -> Iterator[Block]:
        """The blocks of a body or of a content control."""
        for node in body.iterchildren():
            if node.tag == f"{_W}p":
                yield from self._figures(node)
                yield from _paragraph(node, self.levels)
            elif node.tag == f"{_W}tbl":
                yield from self._figures(node)
                rows = [tuple(_text(cell) for cell in _cells(row)) for row in node.iter(f"{_W}tr")]
                if filled := [row for row in rows if any(cell.strip() for cell in row)]:
                    yield table(filled)
            elif node.tag == CONTROL and (content := node.find(f"{_W}sdtContent")) is not None:
                inside = list(self.blocks(content))
                alone = len(inside) == 1 and inside[0].kind == "paragraph"
                told = control_text(node, inside[0].text if alone else "", "") if alone or not inside else ""
                yield from [Block("paragraph", told)] if told else inside

    def _figures(self, node: Any) -> Iterator[Block]:
        """The pictures in a paragraph or table, with the words that stand in for them."""
        for drawing in node.iter(f"{_W}drawing"):
            blip = next(drawing.iter(f"{_A}blip"), None)
            part = self.pictures.get(blip.get(f"{_R}embed", ""), "") if blip is not None else ""
            known = next(drawing.iter(f"{_WP}docPr"), None)
            told = str(known.get("descr") or "") if known is not None else ""
            if part:
                yield Block("figure", figure_text(clean(told)), source=part)


def _paragraph(node: Any, levels: dict[str, int]) -> Iterator[Block]:
    text = _text(node).strip()
    if not text:
        return
    style = node.find(f"{_W}pPr/{_W}pStyle")
    level = levels.get(style.get(f"{_W}val", ""), 0) if style is not None else 0
    if level and len(text) <= 300:
        yield Block("heading", " ".join(text.split()), level=level)
    else:
        yield Block("paragraph", text)


def _cells(row: Any) -> Iterator[Any]:
    """A row's cells, including those wrapped in content controls."""
    for node in row.iterchildren():
        if node.tag == f"{_W}tc":
            yield node
        elif node.tag == f"{_W}sdt":
            yield from node.iter(f"{_W}tc")


def _text(node: Any) -> str:
    """All text below a node; paragraphs inside it (in a cell, in a text box) end in a line break."""
    pieces: list[str] = []
    waiting: list[Any] = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            pieces.append(here)
        elif here.tag == f"{_W}t":
            pieces.append(here.text or "")
        elif here.tag == CONTROL and here is not node:
            pieces.append(control_text(here, _text(here), "".join(pieces[-_LOOKED_BACK:])))
        elif here.tag == OLDER:
            pieces.append(older_text(here, "".join(pieces[-_LOOKED_BACK:])))
        elif here.tag == f"{_W}tab":
            pieces.append("\t")
        elif here.tag in {f"{_W}br", f"{_W}cr"}:
            pieces.append("\n")
        elif here.tag != _FALLBACK and here.tag not in {f"{_W}pPr", f"{_W}del", f"{_W}moveFrom"}:
            if here.tag == f"{_W}p" and here is not node:
                waiting.append("\n")
            waiting.extend(reversed(list(here.iterchildren())))
    return clean("".join(pieces))
