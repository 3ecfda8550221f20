"""What the page says of named libraries: the chip, and the dialog's contents."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest

from core.rag.attached import Attached
from core.rag.document import Passage, ReadingProgress
from core.reading.libraries import OpenedLibrary
from core.storage.base import DocumentRecord, NamedLibrary
from webui.panels.libraries import found_data, libraries_data, library_data, uses_html
from webui.words import Words

LOCKED = {"key": "document_password_asked", "details": {"name": "b.pdf"}}
DAMAGED = {"key": "document_damaged", "details": {"name": "a.pdf"}}


def library(name: str, documents: int = 0, reading: int = 0) -> NamedLibrary:
    return NamedLibrary(f"id-{name}", "o", name, 0.0, documents, reading)


def record(name: str, status: Any, **more: Any) -> DocumentRecord:
    fields = {"library_id": None, "error": None, "pages": None, "created_at": 0.0, "collection_id": "id-x", **more}
    return DocumentRecord(f"id-{name}", "o", None, f"file-{name}", name, status=status, **fields)


def passage(text: str, score: float, page: int | None = None) -> Passage:
    return Passage(text, score, "a.pdf", "hash", page, (), "Heading", 1)


def test_a_conversation_without_libraries_has_no_chip() -> None:
    assert uses_html([], Words("en")) == ""


@pytest.mark.parametrize(("lang", "label"), [("en", "Acts + 2"), ("zh", "Acts 及另外 2 个")])
def test_the_chip_names_the_first_library_and_counts_the_others(lang: str, label: str) -> None:
    markup = unescape(uses_html([library("Acts"), library("Bills"), library("Costs")], Words(lang)))
    assert f">{label}</span>" in markup
    assert "Acts, Bills, Costs" in markup
    assert 'data-uses="id-Acts id-Bills id-Costs"' in markup


def test_a_name_is_never_markup() -> None:
    markup = uses_html([library('"><script>x</script>')], Words("en"))
    assert "<script>" not in markup


def test_the_list_counts_in_words() -> None:
    shelf = libraries_data([library("a"), library("b", 1), library("c", 5, 2)], Words("en"))
    assert [(one["said"], one["reading"]) for one in shelf] == [
        ("empty", False),
        ("1 document", False),
        ("5 documents", True),
    ]


def test_each_document_says_how_far_it_is_and_what_is_wrong_with_it() -> None:
    progress = ReadingProgress("hash", pages=12, total=48, chunks=30, seconds=2.0)
    documents = [
        record("a.pdf", "reading"),
        record("w.pdf", "reading"),
        record("b.pdf", "failed", error=LOCKED),
        record("c.pdf", "ready", error=DAMAGED, pages=3, facts={"chunks": 7}),
        record("d.pdf", "cancelled"),
    ]
    opened = OpenedLibrary(library("x", 5, 2), documents)
    told = library_data(opened, {"id-a.pdf": progress}.get, Words("en"))["documents"]
    assert [(one["state"], one["locked"], one["share"]) for one in told] == [
        ("reading", False, 0.25),
        ("reading", False, None),
        ("failed", True, None),
        ("ready", False, None),
        ("cancelled", False, None),
    ]
    assert told[0]["said"].startswith("page 12 of 48")
    assert told[1]["said"] == "queued"
    assert told[2]["said"].startswith("b.pdf is protected by a password")
    assert told[3]["said"] == "3 pages · 7 passages"
    assert told[3]["noted"].startswith("a.pdf is damaged")
    assert told[4]["said"] == "reading was cancelled"


def test_scores_are_shares_of_the_best() -> None:
    told = found_data([passage("one", 4.0, 2), passage("two", 1.0)], Words("en"))
    assert told["said"] == "2 passages, the best first; the higher a score, the nearer the passage is to the question:"
    assert [(one["where"], one["score"], one["share"]) for one in told["found"]] == [
        ("a.pdf, page 2", "4.00", 1.0),
        ("a.pdf", "1.00", 0.25),
    ]


@pytest.mark.parametrize("score", [0.0, -1.5])
def test_passages_without_a_score_have_an_empty_bar(score: float) -> None:
    assert [one["share"] for one in found_data([passage("one", score)], Words("en"))["found"]] == [0.0]


def test_nothing_fits_is_said_only_where_everything_was_searched() -> None:
    broken, behind = Attached("a.pdf", "failed"), Attached("b.md", "ready", made=(3, 8))
    assert found_data([], Words("en"))["said"] == "Nothing in this library matches."
    assert "a.pdf can be searched" in found_data([], Words("en"), [broken])["said"]
    assert "a.pdf and 1 more can be searched" in found_data([], Words("en"), [broken, behind])["said"]
