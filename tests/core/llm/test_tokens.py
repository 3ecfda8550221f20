"""Tokens are counted as the Qwen vocabulary does, or estimated near it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm import tokens
from core.llm.tokens import count_tokens, estimate_tokens

SAMPLES = {
    "The quick brown fox jumps over the lazy dog.": 10,
    "今天天气真好": 4,
    "": 0,
    "<|im_start|>": 1,
}


@pytest.mark.parametrize(("text", "count"), SAMPLES.items())
def test_known_texts_have_their_count_or_the_estimate_where_there_is_no_vocabulary(text: str, count: int) -> None:
    has_vocabulary = tokens.vocabulary_at_hand() is not None
    assert count_tokens(text) == (count if has_vocabulary else estimate_tokens(text))


@pytest.mark.parametrize("text", [text for text in SAMPLES if len(text) > 5 and "<" not in text])
def test_the_estimate_is_near(text: str) -> None:
    assert 0.5 <= estimate_tokens(text) / SAMPLES[text] <= 2.1


@given(st.text(max_size=300))
def test_any_text_has_a_count_and_an_estimate(text: str) -> None:
    assert count_tokens(text) >= 0
    assert 0 <= estimate_tokens(text) <= 4 * len(text)


def test_a_megabyte_is_counted_by_its_beginning_and_fast() -> None:
    short, long = "hello world " * 1000, "hello world " * 100_000
    assert abs(count_tokens(long) / count_tokens(short) - 100) < 5


def test_counting_imports_no_service() -> None:
    code = "import sys; from core.llm.tokens import count_tokens; count_tokens('hi'); print('dashscope' in sys.modules)"
    home = Path(tokens.__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
