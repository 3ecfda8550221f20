"""Words of many passages become lists: each term once, with each passage that has it and how often."""

from __future__ import annotations

import random

import numpy as np

from core.rag.grown.packed import Packing
from core.rag.grown.words import counted

PASSAGES = 300


def test_each_term_has_one_list_of_all_its_passages_and_lists_come_in_their_order() -> None:
    chance, packing, expected = random.Random(3), Packing(), dict[int, dict[int, int]]()
    for first in range(0, PASSAGES, 100):
        rows: list[tuple[int, int, list[int], list[int], list[int]]] = []
        for place in range(first, first + 100):
            terms = [f"term {chance.randrange(2_000)}" for _ in range(40)] + ["everywhere"] * (1 + place % 3)
            keys, repeated, times = counted(7, terms)
            rows.append((1_000 + place, len(terms), keys, repeated, times))
            for term in terms:
                there = expected.setdefault(counted(7, [term])[0][0], {})
                there[place] = there.get(place, 0) + 1
        packing.add(rows)
    made = list(packing.lists())
    assert [key for key, _ in made] == sorted(expected)
    assert min(expected) < 0 < max(expected)
    for key, packed in made:
        entries = np.frombuffer(packed, "<u4")
        there = zip((entries >> 16).tolist(), (entries >> 8 & 0xFF).tolist(), strict=True)
        assert list(there) == sorted(expected[key].items())


def test_the_least_and_the_greatest_number_of_a_term_have_their_lists() -> None:
    packing, keys = Packing(), [-(2**63), -1, 0, 2**63 - 1]
    packing.add([(1, 4, keys, [], [])])
    assert [key for key, _ in packing.lists()] == keys
