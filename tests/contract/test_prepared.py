"""What was read elsewhere is in a library what it would be had the library read it, in either form."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from core.errors import DocumentError, LockedDocumentError, UnsupportedFormatError
from core.rag.config import RAGConfig
from core.rag.document import Document
from core.rag.grown.shelf import PgShelves
from core.rag.library import Library
from core.rag.parsers.process import Limits
from core.rag.prepared import Prepared, bulk_embedders, prepared
from tests.grown_shelves import shelves

__all__ = ["shelves"]

_NUMBERS = count()
HYBRID = RAGConfig(retrieval_type="hybrid", embedding_model="use", chunk_size=64)


def pdf(*pages: str, password: str = "") -> bytes:
    document: Any = pymupdf.open()
    for text in pages:
        document.new_page(width=400, height=500).insert_textbox((40, 40, 360, 460), text, fontsize=10)
    if not password:
        return bytes(document.tobytes())
    aes = getattr(pymupdf, "PDF_ENCRYPT_AES_256")  # noqa: B009 - PyMuPDF's stubs do not know it
    return bytes(document.tobytes(encryption=aes, user_pw=password, owner_pw=password))


@pytest.fixture(params=["embedded", "grown"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Library]]:
    """Opens a library of a name, the same each time."""
    grown: PgShelves | None = request.getfixturevalue("shelves") if request.param == "grown" else None
    owner, made = f"prepared {next(_NUMBERS)}", list[Library]()

    def open_one(name: str, retrieval: str = "hybrid") -> Library:
        config = HYBRID.model_copy(update={"retrieval_type": retrieval})
        shelf = grown.of(f"{owner} {name}") if grown is not None else None
        made.append(Library.open(tmp_path / name, config, shelf=shelf))
        return made[-1]

    yield open_one
    for one in made:
        one.close()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.pdf"
    filler = "This policy covers the contents of one flat, and the cellar below it. " * 9
    path.write_bytes(pdf("The deductible for water damage is 420 euros.", filler, f"Section 3. {filler}"))
    return path


def sent(path: Path, config: RAGConfig = HYBRID) -> Prepared:
    """As it comes from another machine."""
    made = prepared(path, path.name, config, Limits(), bulk_embedders(config.embedding_model))
    return pickle.loads(pickle.dumps(made))


def timeless(document: Document) -> Document:
    return replace(document, seconds=0.0)


def test_passages_and_records_are_those_of_a_library_that_read_it_itself(
    opened: Callable[..., Library], policy: Path
) -> None:
    one, other = opened("here", "keyword"), opened("there", "keyword")
    other.take(policy, sent(policy), other.prepared_vectors())
    read = one.add(policy)
    assert list(map(timeless, other.documents())) == [timeless(read)]
    wanted = [read.id]
    told = [
        [(p.text, p.page, p.heading, p.rectangles, p.document) for p in library.context.full_text(wanted, 10_000) or ()]
        for library in (one, other)
    ]
    assert told[0] == told[1] != []
    assert other.page_size(read.id, 2) == (400, 500)
    assert other.page_picture(other.find("water damage", 1)[0]) == one.page_picture(one.find("water damage", 1)[0])
    assert other.add(policy).chunks == read.chunks, "its bytes are here"


def test_vectors_that_came_along_are_not_made_again(
    opened: Callable[..., Library], policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = sent(policy)
    (rows,) = ready.vectors.values()
    assert len(rows) == ready.piece.document.chunks > 1
    writer = opened("there", "keyword")
    document = writer.take(policy, ready, writer.prepared_vectors())
    writer.close()
    from core.rag.embedding.local import LocalEmbedder

    def never(*_: object) -> Any:
        raise AssertionError("these vectors are there")

    monkeypatch.setattr(LocalEmbedder, "passages", never)
    reader = opened("there")
    assert reader.wait_for_vectors(300)
    assert reader.retriever.vector_progress([document.id]) == {document.id: (len(rows), len(rows))}
    assert "420" in reader.find("How much do I pay when a pipe bursts?", 1, "vector")[0].text


def test_without_its_vectors_the_library_makes_them(opened: Callable[..., Library], policy: Path) -> None:
    ready = replace(sent(policy), vectors={})
    writer = opened("there", "keyword")
    document = writer.take(policy, ready, writer.prepared_vectors())
    reader = opened("there")
    assert reader.wait_for_vectors(300)
    assert reader.retriever.vector_progress([document.id])[document.id][0] == document.chunks


def test_of_a_file_that_changed_meanwhile_nothing_is_kept(
    opened: Callable[..., Library], policy: Path, tmp_path: Path
) -> None:
    library, ready = opened("there", "keyword"), sent(policy)
    policy.write_bytes(pdf("Another text."))
    with pytest.raises(DocumentError) as caught:
        library.take(policy, ready, library.prepared_vectors())
    assert caught.value.words_key == "document_changed"
    assert library.documents() == []
    assert list((tmp_path / "there" / "originals").iterdir()) == []


def test_what_cannot_be_read_says_why_as_ever(policy: Path) -> None:
    for data, name, error in (
        (b"MZ\0\0", "a.exe", UnsupportedFormatError),
        (pdf("x", password="secret"), "a.pdf", LockedDocumentError),
        (b"", "a.txt", DocumentError),
    ):
        path = policy.with_name(name)
        path.write_bytes(data)
        with pytest.raises(error):
            prepared(path, name, HYBRID, Limits(), [])
    with pytest.raises(DocumentError, match="too large"):
        prepared(policy, "policy.pdf", HYBRID, Limits(file_bytes=10), [])
