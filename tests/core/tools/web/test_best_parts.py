"""Which parts of a long text a model is given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from core.rag.prose import count_tokens
from core.tools.web.passages import Chosen, best_parts

PARTS = ["Bananas are yellow fruit.", "The model was trained for 3.5 days.", "模型训练了三天半。", "Attention is all."]


def test_all_are_given_where_they_fit() -> None:
    assert best_parts(PARTS, "training", 1000) == Chosen((0, 1, 2, 3))


def test_those_about_the_question_come_in_order_of_the_text() -> None:
    assert best_parts(PARTS, "How long was the model trained?", 12) == Chosen((1,), by_question=True)
    assert best_parts(PARTS, "训练了多久", 12).numbers[0] == 2
    assert best_parts([*PARTS, "trained again"], "trained", 16).numbers == (1, 4)


def test_a_question_of_other_words_gives_the_two_ends() -> None:
    assert best_parts([f"part {at} " + "word " * 20 for at in range(9)], "zebra", 100) == Chosen((0, 1, 8))


@given(some.lists(some.text(max_size=40), max_size=12), some.text(max_size=20), some.floats(1, 200))
def test_it_never_gives_more_than_fits_and_each_part_once(parts: list[str], question: str, room: float) -> None:
    chosen = best_parts(parts, question, room).numbers
    assert list(chosen) == sorted(set(chosen))
    assert set(chosen) <= set(range(len(parts)))
    assert len(chosen) <= 1 or sum(count_tokens(parts[at]) for at in chosen) <= room + 1e-6
