"""The first passages of documents, for questions about the whole."""

from __future__ import annotations

from pathlib import Path

from core.rag.library import Library


def test_beginnings_are_the_first_passages_of_each_document(tmp_path: Path) -> None:
    with Library.open(tmp_path / "library") as library:
        one = library.add_text("First of one.\n\n" + "Filler goes on and on. " * 400, name="one")
        library.add_text("First of two.\n\n" + "Filler goes on and on. " * 400, name="two")
        found = library.first_passages(4)
        assert [passage.document for passage in found] == ["one", "one", "two", "two"]
        assert found[0].text.startswith("First of one.")
        assert {passage.document for passage in library.first_passages(3, documents=[one.id])} == {"one"}
        assert library.first_passages(3, documents=[]) == []
