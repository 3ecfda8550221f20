"""What documents are called where they are used.

In an index the same bytes are one document, which has the name that they came with last, anywhere: another
conversation's, or that of somebody who never saw this one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from core.rag.tables.shape import called

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.document import Passage
    from core.rag.tables.query import Named

Names: TypeAlias = "Mapping[str, Sequence[str]]"
"""What documents are called, by their ids in the index; several names where one was added twice."""


def name_here(names: Names, document_id: str, name: str) -> str:
    """What a document is called here; `name` where that is one of its names, or it has none."""
    own = names.get(document_id, ())
    return own[0] if own and name not in own else name


def passage_here(names: Names, passage: Passage) -> Passage:
    """The passage, of a document by its name here."""
    name = name_here(names, passage.document_id, passage.document)
    return passage if name == passage.document else replace(passage, document=name)


def tables_here(names: Names, tables: Sequence[Named]) -> list[Named]:
    """The tables, of documents by their names here; what queries call them is made of those, too."""
    here = [name_here(names, one.document_id, one.document) for one in tables]
    if here == [one.document for one in tables]:
        return list(tables)
    each = [one.document_id for one in tables]
    taken: set[str] = set()
    found: list[Named] = []
    for one, document in zip(tables, here, strict=True):
        name = called(document, one.table.title if each.count(one.document_id) > 1 else "", taken)
        taken.add(name)
        found.append(replace(one, name=name, document=document))
    return found
