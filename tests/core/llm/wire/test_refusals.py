"""What services say, without keys in it."""

from __future__ import annotations

import pytest

from core.llm.wire.refusals import without_keys


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect key: 0123456789abcdef.", "Incorrect key: …."),
        ("Incorrect key: sk-somebody-elses", "Incorrect key: …"),
        ("Incorrect key: sk-****************wxyz", "Incorrect key: …"),
        ("Authorization: Bearer abcdef123", "Authorization: Bearer …"),
        ("The task is any-thing you like", "The task is any-thing you like"),
    ],
)
def test_no_key_is_shown_whatever_it_looks_like(said, shown):
    assert without_keys(said, "0123456789abcdef", "any", "") == shown


def test_long_words_are_cut():
    assert len(without_keys("x" * 10_000)) == 501
