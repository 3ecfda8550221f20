"""The sentence with the mark, and the words of the passage that it rests on."""

from __future__ import annotations

import pytest

from core.rag.bearing import borne_by, cited_numbers, sentence_of

REPLY = (
    "You pay **420** euros for water. [1] Fire costs 300 [2].\n\nSee `x [1]`:\n\n"
    "- Hail is covered [1, 2].\n| Storm | 500 [3] |\n押金为三个月租金。[1]退租后退还【4】。"
)
POLICY = (
    "Our policy covers one flat. The deductible for water damage is 420 euros per claim. "
    "Fire damage has a deductible of 300 euros. Hail is excluded unless it was agreed."
)
ROWS = "Cause | Deductible | Limit\nFire | 300 | 10000\nWater | 420 | 5000"
LEASE = "本公寓的押金为三个月租金。房东应在退租后十四天内退还押金。租客须自付水电费。"


def test_every_mark_counts_but_those_in_code() -> None:
    assert cited_numbers(REPLY) == [1, 2, 1, 2, 3, 1, 4]


@pytest.mark.parametrize(
    ("number", "occurrence", "sentence"),
    [
        (1, 0, "You pay **420** euros for water."),
        (2, 0, "Fire costs 300"),
        (1, 1, "- Hail is covered"),
        (2, 1, "- Hail is covered"),
        (3, 0, "| Storm | 500"),
        (1, 2, "押金为三个月租金。"),
        (4, 0, "退租后退还"),
        (1, 9, "You pay **420** euros for water."),
        (1, -1, "You pay **420** euros for water."),
        (7, 0, ""),
    ],
)
def test_each_mark_belongs_to_the_sentence_before_it(number: int, occurrence: int, sentence: str) -> None:
    assert sentence_of(REPLY, number, occurrence) == sentence


@pytest.mark.parametrize(
    ("sentence", "passage", "borne"),
    [
        ("You pay 420 euros for water damage.", POLICY, ["The deductible for water damage is 420 euros per claim."]),
        ("Fire costs 300 euros", POLICY, ["Fire damage has a deductible of 300 euros."]),
        ("The deductible for water is 420 euros.", ROWS, ["Water | 420 | 5000"]),
        ("押金是三个月的租金。", LEASE, ["本公寓的押金为三个月租金。"]),
        ("退租后十四天内退还", LEASE, ["房东应在退租后十四天内退还押金。"]),
        ("The moon is made of cheese.", POLICY, []),
        ("", POLICY, []),
        ("Water", "", []),
    ],
)
def test_what_bears_a_sentence_out_is_picked_from_the_passage(sentence: str, passage: str, borne: list[str]) -> None:
    assert [passage[start:end] for start, end in borne_by(sentence, passage)] == borne


def test_a_sentence_that_goes_on_in_the_next_line_is_one() -> None:
    text = "A policy. The deductible for\nwater damage is 420 euros.\nFire costs more."
    found = borne_by("Water damage costs 420 euros.", text)
    assert [text[start:end] for start, end in found] == ["The deductible for\nwater damage is 420 euros."]


def test_two_sentences_may_bear_one_out() -> None:
    found = borne_by("The deductible is 420 euros for water damage and 300 euros for fire damage.", POLICY)
    assert [POLICY[start:end] for start, end in found] == [
        "The deductible for water damage is 420 euros per claim.",
        "Fire damage has a deductible of 300 euros.",
    ]
