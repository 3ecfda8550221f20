"""The parts of a chunk: together all of it, each short, and the best of them counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag import records
from core.rag.document import Chunk, Document
from core.rag.index_file import IndexFile
from core.rag.prose import sentence_spans
from core.rag.search.stored_vectors import PARTS, Vectors, parts_of
from core.rag.search.turns import InTurns
from core.rag.search.word_table import WordTable

TEXT = "One lamp is green. Two are red. Three are blue. Four are old. Five are new. Six are sold."


class ByLot:
    """A vector for each text, drawn by the text."""

    model = "by lot"
    at_once = 3

    def __init__(self) -> None:
        self.made: list[str] = []

    def ready(self) -> bool:
        return True

    def passages(self, texts: Sequence[str]) -> Any:
        self.made += texts
        made = [np.random.default_rng(crc32(text.encode())).standard_normal(16) for text in texts]
        return np.array([one / np.linalg.norm(one) for one in made], np.float16).astype(np.float32)

    def questions(self, texts: Sequence[str]) -> Any:
        return ByLot().passages(texts)

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IndexFile]:
    opened = IndexFile(tmp_path / "library.sqlite")
    WordTable(opened)
    yield opened
    opened.close()


def put(file: IndexFile, name: str, texts: Sequence[str]) -> None:
    with file.writing() as db:
        chunks = [Chunk(text, heading="Lamps") for text in texts]
        records.insert(db, Document(name, name, "text/plain", None, len(chunks)), chunks, [])


def best(question: str, text: str) -> Any:
    asked = ByLot().questions([question])[0]
    return pytest.approx(float((ByLot().passages(parts_of("a", "Lamps", text)) @ asked).max()), abs=1e-3)


def test_a_part_is_two_sentences_or_so_and_neighbours_share_one() -> None:
    assert parts_of("Title", "Lamps", TEXT) == [
        "Lamps\nOne lamp is green. Two are red.",
        "Lamps\nTwo are red. Three are blue.",
        "Lamps\nThree are blue. Four are old.",
        "Lamps\nFour are old. Five are new. Six are sold.",
    ]


@pytest.mark.parametrize("text", ["", "Only this.", "no stop", "One lamp. Two lamps."])
def test_a_short_chunk_is_one_part_under_its_title_where_there_is_no_heading(text: str) -> None:
    assert parts_of("Title", " ", text) == [f"Title\n{text}"]


@given(st.lists(st.sampled_from(["A lamp. ", "灯是绿的。", "It\n", "is so ", "3.14! "]), max_size=60).map("".join))
def test_every_sentence_stands_whole_in_a_part(text: str) -> None:
    parts = parts_of("", "", text)
    assert 1 <= len(parts) <= PARTS
    for start, end in sentence_spans(text):
        assert any(text[start:end].strip() in part for part in parts)


def test_a_chunk_is_as_like_as_the_likest_of_its_parts(file: IndexFile) -> None:
    vectors = Vectors(file, ByLot(), in_parts=True)
    texts = {"a": [TEXT, "Only this."], "b": ["One lamp. Two lamps. Three lamps.", TEXT[20:], ""]}
    for name, some in texts.items():
        put(file, name, some)
        assert InTurns([vectors]).fill(threading.Event())
    for wanted in (None, ["a"], ["b"]):
        found = vectors.like("which lamp", wanted)
        assert found is not None
        every = [text for name in wanted or "ab" for text in texts[name]]
        assert found.cosines.tolist() == [best("which lamp", text) for text in every]


def test_a_chunk_is_kept_when_all_of_its_parts_are_made(file: IndexFile) -> None:
    put(file, "a", [TEXT, TEXT])
    stop = threading.Event()

    class Stopped(ByLot):
        def passages(self, texts: Sequence[str]) -> Any:
            rows = super().passages(texts)
            if len(self.made) > PARTS:
                stop.set()
            return rows

    vectors = Vectors(file, Stopped(), in_parts=True)
    assert not InTurns([vectors]).fill(stop)
    assert vectors.made(["a"]) == {"a": (1, 2)}
    assert vectors.like("which lamp") is None


def test_vectors_of_whole_chunks_are_others(file: IndexFile) -> None:
    put(file, "a", [TEXT])
    whole, parts = Vectors(file, ByLot()), Vectors(file, ByLot(), in_parts=True)
    assert InTurns([whole]).fill(threading.Event())
    assert parts.like("which lamp") is None
    assert InTurns([parts]).fill(threading.Event())
    found, other = whole.like("which lamp"), parts.like("which lamp")
    assert found is not None
    assert other is not None
    assert found.cosines[0] != other.cosines[0] == best("which lamp", TEXT)
