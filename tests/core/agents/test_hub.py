"""Names after an @, and the name that a model meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.hub import chosen_name, mentioned, mentions_nobody

NAMES = ["Ada", "Ada Lovelace", "Bob", "小塘", "小塘塘", "C++ 专家", "Dr. Who"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@Bob, what do you say?", ["Bob"]),
        ("@ada lovelace and @BOB!", ["Ada Lovelace", "Bob"]),
        ("@Ada: and @Bob, then @Ada again", ["Ada", "Bob"]),
        ("@小塘你怎么看？", ["小塘"]),
        ("＠小塘塘，你呢？@小塘", ["小塘塘", "小塘"]),
        ("请@C++ 专家回答", ["C++ 专家"]),
        ("Ask @Dr. Who.", ["Dr. Who"]),
        ("@Bobby is somebody else", []),
        ("Write to me@bob.example.org", []),
        ("Bob and Ada", []),
        ("@", []),
        ("", []),
    ],
)
def test_who_is_mentioned(text: str, found: list[str]):
    assert mentioned(text, NAMES) == found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Bob", "Bob"),
        ("  **bob**.\n", "Bob"),
        ("“小塘”。", "小塘"),
        ("I pick Ada Lovelace for this.", "Ada Lovelace"),
        ("下一位：小塘塘", "小塘塘"),
        ("@Dr. Who", "Dr. Who"),
        ("Ada or Bob", None),
        ("Carol", None),
        ("", None),
    ],
)
def test_which_name_a_model_meant(text: str, name: str | None):
    assert chosen_name(text, NAMES) == name


def test_without_names_nobody_is_meant():
    assert mentioned("@Ada", []) == []
    assert chosen_name("Ada", []) is None


@given(st.text(), st.lists(st.text(min_size=1), max_size=4, unique_by=str.casefold))
def test_any_text_and_any_names_can_be_read(text: str, names: list[str]):
    assert set(mentioned(text, names)) <= set(names)
    assert chosen_name(text, names) in {None, *names}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@Nobody, count", "Nobody"),
        (" ＠没有的人 你好", "没有的人"),
        ("@Ann count", ""),
        ("@Nobody ask @Ann", ""),
        ("Ask @Nobody", ""),
        ("@", ""),
        ("ada@example.org", ""),
    ],
)
def test_who_is_meant_at_the_beginning_of_a_text_and_is_not_there_is_known(text: str, name: str) -> None:
    assert mentions_nobody(text, ["Ann", "Ben"]) == name
