"""What a figure rests on, as a passage: the rows that went into it, and where their cells stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.rag.document import Passage, union
from core.rag.row_numbers import written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Rectangle
    from core.rag.tables.query import Source

_MARKS: Final = 48  # places of cells that are marked one by one


def passage_of(source: Source, text: str) -> Passage:
    """A passage that leads to the rows and cells of a source.

    Args:
        text: What it says.
    """
    named, rows = source.table, source.rows
    page = rows[0].page if rows else named.table.page
    rectangles = _together([place for row in rows if row.page == page for place in row.places])
    return Passage(
        text,
        1.0,
        named.document,
        named.document_id,
        page,
        rectangles,
        named.table.title,
        rows=written(source.runs),
    )


def _together(places: Sequence[Rectangle]) -> tuple[Rectangle, ...]:
    """The places of cells; of very many, those below each other as one."""
    if len(places) <= _MARKS:
        return tuple(places)
    columns: dict[tuple[float, float], list[Rectangle]] = {}
    for place in places:
        columns.setdefault((place[0], place[2]), []).append(place)
    found = tuple(one for some in columns.values() if (one := union(tuple(some))))
    whole = union(tuple(places))
    return found if len(found) <= _MARKS or whole is None else (whole,)
