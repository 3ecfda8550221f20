"""A library in which documents are called what those who use it call them, and not what others call the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.rag.called import name_here
from core.rag.joined import JoinedLibrary
from core.rag.library import Library
from core.rag.scope_part import Part

ORDERS = "Item,Price\nInk,12\nPaper,30\n"
NOTE = "# Water\n\nThe deductible for water damage is four hundred and twenty euros."


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as library:
        yield library


def test_everything_that_names_a_document_has_the_name_that_it_has_here(library: Library) -> None:
    note, orders = library.add_text(NOTE, name="private-note.md"), library.add_text(ORDERS, name="private-orders.csv")
    here = JoinedLibrary(library, names={note.id: ["policy.md"], orders.id: ["orders.csv"]})
    both = [note.id, orders.id]
    said = [
        *(one.name for one in here.documents()),
        *(here.document(one).name for one in both),
        *(one.document for one in here.find("What is the deductible for water damage?", documents=both)),
        *(one.document for one in here.find("price of ink", documents=both)),
        *(one.document for one in here.holding("deductible", 5)),
        *(one.document for one in here.first_passages(5)),
        *(one.document for one in here.context.whole(both)),
        *(one.document for one in here.context.full_text(both, 10_000) or ()),
        *(one.document for one in here.context.part(both, Part("chapter", words="Water"))),
        *(one.document for one in here.context.merged(library.find("water damage", documents=both))),
        *(one.document for one in here.pages.chunks(note.id)),
        here.pages.chunk(note.id, here.pages.chunks(note.id)[0].chunk_id).document,
    ]
    assert set(said) == {"policy.md", "orders.csv"}
    assert {one.name for one in library.documents()} == {"private-note.md", "private-orders.csv"}


def test_tables_are_asked_by_the_names_that_they_have_here(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "private.csv"
    path.write_text(ORDERS, "utf-8")
    document = library.add(path)
    here = JoinedLibrary(library, names={document.id: ["orders.csv"]})
    (table,) = here.tables.of([document.id])
    assert (table.name, table.document) == ("orders", "orders.csv")
    answer = here.tables.ask([document.id], "SELECT sum(price) FROM orders")
    assert answer.rows[0][0] == 42
    assert [one.document for one in answer.tables] == ["orders.csv"]


def test_a_name_of_its_own_stays_and_so_does_one_that_nobody_has_another_for() -> None:
    names = {"a": ["first.md", "second.md"]}
    assert name_here(names, "a", "second.md") == "second.md"
    assert name_here(names, "a", "theirs.md") == "first.md"
    assert name_here(names, "b", "theirs.md") == "theirs.md"
