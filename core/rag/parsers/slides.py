"""Slides (PPTX)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from core.rag.document import About, Block, PageShape, table, union
from core.rag.figure_labels import figure_text
from core.rag.parsers.archives import package, zip_kind
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean
from core.rag.parsers.figure_pictures import part_of, with_figures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from core.rag.document import Rectangle

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_CHOICE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Choice"
_ALTERNATE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_DIAGRAM = "/diagramData"
_POINT = 12_700  # of the format's units
_LONGEST_TITLE = 120
_Place = tuple[float, float, float, float]  # how a group's own measures lie on the slide: scale and shift, both ways
_WHOLE: _Place = (1.0, 1.0, 0.0, 0.0)


class SlidesParser:
    """Reads slide by slide: title, texts, tables, charts, diagrams, then the speaker's notes."""

    def accepts(self, name: str, head: bytes) -> str:
        """A zip that holds slides, or says so by its name."""
        return MEDIA_TYPE if zip_kind(name, head) == ".pptx" else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """A slide is a page; the places are those of its boxes.

        Raises:
            BrokenDocumentError: The archive is damaged, too large inside, or holds no slides.
        """
        from pptx import Presentation
        from pptx.exc import PythonPptxError

        with package(path, "The file with slides", Presentation, PythonPptxError) as presentation:
            slides = list(presentation.slides)
            yield About(pages=len(slides), title=clean(presentation.core_properties.title or "").strip())
            width, height = _points(presentation.slide_width), _points(presentation.slide_height)
            for number, slide in enumerate(slides, 1):
                blocks = list(_titled([*_on_slide(slide, number), *_notes(slide, number)], number))
                places = tuple(block.rectangle for block in blocks if block.rectangle)
                yield PageShape(number, width, height, union(places))
                yield from with_figures(blocks, partial(part_of, path), words=options.pictures)


def _titled(blocks: list[Block], number: int) -> Iterator[Block]:
    """The blocks of a slide, beginning with a heading, so that nothing counts under the title of the slide before."""
    title = next((block for block in blocks if block.kind == "heading"), None)
    if title is None and (first := next((block for block in blocks if block.kind == "paragraph"), None)):
        line, _, rest = first.text.partition("\n")
        if len(line) <= _LONGEST_TITLE:
            title = Block("heading", line, number, first.lines, level=1)
            at = blocks.index(first)
            blocks = [*blocks[:at], *([replace(first, text=rest)] if rest else []), *blocks[at + 1 :]]
    if blocks or title:
        yield title or Block("heading", str(number), number, level=1)
    yield from (block for block in blocks if block is not title)


def _on_slide(slide: Any, number: int) -> Iterator[Block]:
    title = slide.shapes.title
    waiting: list[tuple[Any, _Place]] = [(shape, _WHOLE) for shape in reversed(list(slide.shapes))]
    while waiting:
        shape, place = waiting.pop()
        if hasattr(shape, "shapes"):
            inner = _inside(shape, place)
            waiting.extend((one, inner) for one in reversed(list(shape.shapes)))
            continue
        box = _box(shape, place)
        lines = ((0, box),) if box else ()
        is_title = title is not None and shape.shape_id == title.shape_id
        for block in _of_shape(shape, number, is_title=is_title):
            yield Block(block.kind, block.text, number, lines, block.level, block.cells, source=block.source)
    # Newer kinds of shapes stand in wrappers that the library passes over.
    for wrapper in slide.shapes.element.iter(_ALTERNATE):
        if text := _texts(wrapper.find(_CHOICE)):
            yield Block("paragraph", text, number)


def _of_shape(shape: Any, number: int, *, is_title: bool) -> Iterator[Block]:
    if shape.has_text_frame:
        text = _tidy(shape.text_frame.text)
        if text and is_title and len(text) <= 2 * _LONGEST_TITLE:
            yield Block("heading", " ".join(text.split()), number, level=1)
        elif text:
            yield Block("paragraph", text, number)
    elif getattr(shape, "has_table", False):
        rows = [tuple(clean(cell.text) for cell in row.cells) for row in shape.table.rows]
        if any(cell.strip() for row in rows for cell in row):
            yield table(rows, number)
    elif getattr(shape, "has_chart", False):
        yield from _chart(shape.chart, number)
    elif source := _picture(shape):
        known = shape.element.find(f".//{_P}cNvPr")
        told = str(known.get("descr") or "") if known is not None else ""
        yield Block("figure", figure_text(clean(told)), number, source=source)
    else:
        yield from _diagram(shape, number)


def _picture(shape: Any) -> str:
    """The part of the package that holds the picture of a shape; "" for another shape."""
    relation = getattr(shape.element, "blip_rId", None) if shape.element.tag == f"{_P}pic" else None
    if not relation or relation not in shape.part.rels or shape.part.rels[relation].is_external:
        return ""
    return str(shape.part.rels[relation].target_part.partname).lstrip("/")


def _chart(chart: Any, number: int) -> Iterator[Block]:
    """The data of a chart as a table."""
    if chart.has_title and chart.chart_title.has_text_frame and (text := _tidy(chart.chart_title.text_frame.text)):
        yield Block("paragraph", text, number)
    for plot in chart.plots:
        series = list(plot.series)
        categories = [clean(str(category)) for category in plot.categories]
        header = ("", *(clean(str(one.name or "")) for one in series))
        values = [list(one.values) for one in series]
        longest = max([len(categories), *map(len, values)], default=0)
        rows = [
            (_at(categories, row), *("" if (value := _at(one, row)) is None else f"{value}" for one in values))
            for row in range(longest)
        ]
        if rows:
            yield table([header, *rows], number)


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else ""


def _diagram(shape: Any, number: int) -> Iterator[Block]:
    """The text of a diagram, which is in a package part of its own."""
    ids = {value for node in shape.element.iter() for value in node.attrib.values()}
    for relation_id, relation in shape.part.rels.items():
        if relation.reltype.endswith(_DIAGRAM) and relation_id in ids and not relation.is_external:
            from pptx.oxml import parse_xml

            if text := _texts(cast("Any", parse_xml)(relation.target_part.blob)):
                yield Block("paragraph", text, number)


def _texts(node: Any) -> str:
    if node is None:
        return ""
    paragraphs = ("".join(text.text or "" for text in one.iter(f"{_A}t")) for one in node.iter(f"{_A}p"))
    return _tidy("\n".join(paragraphs))


def _notes(slide: Any, number: int) -> Iterator[Block]:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and (text := _tidy(frame.text)):
        yield Block("paragraph", text, number)


def _tidy(text: str) -> str:
    lines = (" ".join(line.split()) for line in clean(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _box(shape: Any, place: _Place) -> Rectangle | None:
    left, top, width, height = shape.left, shape.top, shape.width, shape.height
    if left is None or top is None or not width or not height:
        return None
    across, down, x, y = place
    return (
        _points(x + across * left),
        _points(y + down * top),
        _points(x + across * (left + width)),
        _points(y + down * (top + height)),
    )


def _inside(group: Any, place: _Place) -> _Place:
    """The transformation from a group's coordinates to the slide's."""
    frame = group.element.find(f".//{_A}xfrm")
    ends = [frame.find(f"{_A}{part}") if frame is not None else None for part in ("off", "ext", "chOff", "chExt")]
    if any(end is None for end in ends):
        return place
    x, y, width, height, inner_x, inner_y, inner_width, inner_height = (
        int(value) for end in ends if end is not None for value in end.attrib.values()
    )
    across, down, shift_x, shift_y = place
    scale_x, scale_y = width / (inner_width or 1), height / (inner_height or 1)
    return (
        across * scale_x,
        down * scale_y,
        shift_x + across * (x - scale_x * inner_x),
        shift_y + down * (y - scale_y * inner_y),
    )


def _points(length: float) -> float:
    return round(length / _POINT, 2)
