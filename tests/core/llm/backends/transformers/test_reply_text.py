"""Tokens become text without half characters, and a reply ends before the words it is to stop at."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.llm.backends.transformers.writing import ReplyText


def as_bytes(tokens: Sequence[int]) -> str:
    """A vocabulary of single bytes: characters beyond ASCII take several tokens."""
    return bytes(tokens).decode("utf-8", "replace")


def shown(text: str, *stop: str) -> tuple[list[str], ReplyText]:
    reply = ReplyText(as_bytes, stop)
    pieces: list[str] = []
    for token in text.encode():
        pieces.append(reply.add(token))
        if reply.stopped:
            break
    return [*pieces, reply.close()], reply


@given(st.text(max_size=40), st.lists(st.text("ab\n你", min_size=1, max_size=3), max_size=3))
@example("aab", ["ab"])
@example("你好", ["好"])
def test_what_is_shown_is_the_text_before_the_first_word_to_stop_at(text: str, stop: list[str]) -> None:
    pieces, _ = shown(text, *stop)
    seen = (text[:end] for end in range(len(text) + 1))
    met = next((part for part in seen if any(part.endswith(word) for word in stop)), None)
    wanted = text if met is None else met[: min(met.find(word) for word in stop if word in met)]
    assert "".join(pieces) == wanted


def test_each_character_is_shown_as_soon_as_it_is_whole() -> None:
    pieces, reply = shown("a你b")
    assert pieces == ["a", "", "", "你", "b", ""]
    assert reply.count == 5


def test_what_may_become_a_word_to_stop_at_is_held_back_no_longer_than_needed() -> None:
    pieces, reply = shown("xENx END y", "END")
    assert "".join(pieces) == "xENx "
    assert pieces[:4] == ["x", "", "", "ENx"]
    assert reply.stopped
    assert reply.add(65) == ""


def test_bytes_that_are_no_character_are_shown_as_such_in_the_end() -> None:
    reply = ReplyText(as_bytes)
    assert reply.add(0xE4) == ""
    assert reply.close() == "\ufffd"
    many = ReplyText(as_bytes)
    assert "".join(many.add(0xFF) for _ in range(20))


@pytest.mark.parametrize("word", ["", "a" * 50])
def test_an_odd_word_to_stop_at_does_no_harm(word: str) -> None:
    pieces, _ = shown("aaa", *filter(None, [word]))
    assert "".join(pieces) == "aaa"
