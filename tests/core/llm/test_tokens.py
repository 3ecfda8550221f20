"""Tokens are counted as the Qwen vocabulary does, or estimated near it."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from core.llm import tokens
from core.llm.base import BaseChatModel
from core.llm.tokens import Counter, count_tokens, counter_for, estimate_tokens, qwen_encoding

SAMPLES = {
    "The quick brown fox jumps over the lazy dog.": 10,
    "今天天气真好": 4,
    "": 0,
    "<|im_start|>": 1,
}


@pytest.mark.parametrize(("text", "count"), SAMPLES.items())
def test_known_texts_have_their_count_or_the_estimate_where_there_is_no_vocabulary(text: str, count: int) -> None:
    has_vocabulary = tokens.qwen_encoding() is not None
    assert count_tokens(text) == (count if has_vocabulary else estimate_tokens(text))


@pytest.mark.parametrize("text", [text for text in SAMPLES if len(text) > 5 and "<" not in text])
def test_the_estimate_is_near(text: str) -> None:
    assert 0.5 <= estimate_tokens(text) / SAMPLES[text] <= 2.1


@given(st.text(max_size=300))
def test_any_text_has_a_count_and_an_estimate(text: str) -> None:
    assert count_tokens(text) >= 0
    assert 0 <= estimate_tokens(text) <= 4 * len(text)


def test_a_long_text_is_counted_to_its_end_and_a_very_long_one_by_its_beginning() -> None:
    short, long, longest = "hello world " * 1000, "hello world " * 100_000, "hello world " * 400_000
    assert abs(count_tokens(long) - 100 * count_tokens(short)) <= 100
    assert abs(count_tokens(longest) / count_tokens(long) - 4) < 0.05


@pytest.mark.parametrize(
    ("model", "exact"),
    [
        ("qwen-max", True),
        ("Qwen2.5-72B-Instruct", True),
        ("qwq-plus", True),
        ("qwen3.5-plus", False),
        ("gpt-4o", False),
        ("llama-3.1-8b", False),
    ],
)
def test_a_count_says_whether_it_is_the_models_own(model: str, exact: bool) -> None:
    counter = counter_for(model)
    assert counter.exact == (exact and qwen_encoding() is not None)
    assert counter.name in {"qwen", "estimate"}
    assert BaseChatModel({"model": model}).counter is counter


@pytest.fixture
def litellm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that brings GPT's vocabularies, or the first 256 tokens of them: each byte."""
    folder = tmp_path / "litellm_core_utils" / "tokenizers"
    folder.mkdir(parents=True)
    for vocabulary in (tokens.CL100K, tokens.O200K):
        lines = (f"{base64.b64encode(bytes([n])).decode()} {n}\n" for n in range(256))
        (tmp_path / vocabulary.places[0]).write_text("".join(lines))
        vocabulary.__dict__.pop("encoding", None)
    found: Any = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(tokens, "find_spec", lambda name: found if name == "litellm" else find_spec(name))
    counter_for.cache_clear()
    yield folder
    counter_for.cache_clear()
    for vocabulary in (tokens.CL100K, tokens.O200K):
        vocabulary.__dict__.pop("encoding", None)


@pytest.mark.parametrize(("model", "name"), [("gpt-4-turbo", "cl100k"), ("gpt-4o", "o200k"), ("openai/gpt-5", "o200k")])
def test_gpt_is_counted_by_its_own_vocabulary_where_a_package_brings_it(litellm: Path, model: str, name: str) -> None:
    counter = counter_for(model)
    assert (counter.name, counter.exact, counter.count("abc")) == (name, True, 3)
    assert counter.count("e\u0301 <|endoftext|>") == 5  # as it stands: only Qwen's is composed first
    assert counter_for("qwen-max").name == "qwen"
    assert counter.shortened("abcdefghij", 5) == "a...j"
    assert litellm.is_dir()


def test_a_newer_gpt_is_counted_near_enough_by_the_older_vocabulary(litellm: Path) -> None:
    (litellm / Path(tokens.O200K.places[0]).name).unlink()
    near = counter_for("gpt-4o")
    assert (near.name, near.exact) == ("cl100k", False)


def test_without_any_vocabulary_an_estimate_is_marked_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "find_spec", lambda name: None)
    counter_for.cache_clear()
    try:
        counter = counter_for("qwen-max")
        assert (counter.name, counter.exact) == ("estimate", False)
        assert counter.count("hello world") == estimate_tokens("hello world")
        assert counter.shortened("one two three four five six", 4).count("...") == 1
    finally:
        counter_for.cache_clear()


def test_a_model_that_counts_by_itself_is_asked() -> None:
    class Words(BaseChatModel):
        def count_tokens(self, text: str) -> int:
            return len(text.split())

    counter = Words({"model": "qwen-max"}).counter
    assert (counter.name, counter.exact, counter.count("a b c")) == ("own", False, 3)
    assert counter.at_most("a b c") == 3


def test_a_text_is_counted_once() -> None:
    counted: list[str] = []
    counter = Counter(count=lambda text: counted.append(text) or len(text))
    assert [counter.count("abc"), counter.count("ab" + "c"), counter.count("abd")] == [3, 3, 3]
    assert counted == ["abc", "abd"]


def test_what_is_remembered_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_REMEMBERED", 5)
    counter = Counter(count=len)
    assert [counter.count("a" * n) for n in range(20)] == list(range(20))
    assert len(vars(counter)["_known"]) <= 5


ANY = st.text(alphabet=st.characters(), max_size=60) | st.text(
    alphabet="ab é👩‍👧👍🏽🇩🇪e\u0301क्षि你好\r\n\ud83d", max_size=60
)


@given(ANY, st.sampled_from(["qwen-max", "gpt-4o"]))
def test_the_bound_that_is_had_without_counting_holds(text: str, model: str) -> None:
    counter = counter_for(model)
    assert counter.count(text) <= counter.at_most(text)
    assert Counter().count(text) <= Counter().at_most(text)


@given(ANY, st.integers(-2, 30), st.booleans())
def test_a_cut_text_keeps_to_its_limit_and_tears_no_character(text: str, limit: int, both: bool) -> None:
    counter = counter_for("qwen-max")
    cut = counter.shortened(text, limit, both_ends=both)
    assert counter.count(cut) <= max(0, limit)
    if cut in {text, ""}:
        return
    front, mark, back = cut.partition("...") if both and "..." not in text else (cut, "", "")
    whole = regex.findall(r"\X", text)
    assert front in {"".join(whole[:n]) for n in range(len(whole) + 1)} or not mark
    assert back in {"".join(whole[n:]) for n in range(len(whole) + 1)} or not mark


def test_a_vocabulary_is_read_when_something_has_to_be_counted() -> None:
    fresh = replace(tokens.QWEN)
    counter = Counter(fresh, exact=True)
    assert counter.at_most("hello") == 5
    assert "encoding" not in fresh.__dict__
    assert [counter.count("hello"), counter.count("hello there")] == [1, 2]
    assert "encoding" in fresh.__dict__


def test_counting_imports_no_service() -> None:
    code = "import sys; from core.llm.tokens import count_tokens; count_tokens('hi'); print('dashscope' in sys.modules)"
    home = Path(tokens.__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
