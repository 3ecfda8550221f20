"""The head of a GGUF file is read, whatever it holds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ModelServiceError
from core.llm.gguf import GgufFacts, read_gguf
from core.testing.gguf_file import gguf_file

WHOLE = gguf_file()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights") / "mine.gguf"


def test_the_head_says_what_the_model_is(path: Path) -> None:
    path.write_bytes(WHOLE)
    assert read_gguf(path) == read_gguf(path, whole=True) == GgufFacts("llama", "", 4096)


def test_a_file_that_lacks_its_end_says_how_much_is_missing(path: Path) -> None:
    path.write_bytes(WHOLE[:-10])
    with pytest.raises(ModelServiceError, match="10 bytes are missing"):
        read_gguf(path, whole=True)


def test_a_model_that_cannot_write_is_refused(path: Path) -> None:
    path.write_bytes(gguf_file(architecture="nomic-bert"))
    with pytest.raises(ModelServiceError, match="no model that writes"):
        read_gguf(path)


@given(cut=st.integers(0, len(WHOLE)), place=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255))
def test_a_damaged_head_is_told_or_harmless(path: Path, cut: int, place: int, byte: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[place] = byte
    path.write_bytes(bytes(damaged[:cut]))
    with suppress(ModelServiceError):
        assert isinstance(read_gguf(path, whole=True), GgufFacts)
