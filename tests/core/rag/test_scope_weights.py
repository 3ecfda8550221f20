"""Weights beside the rules: they are those of the lists, and say nothing of words that they do not know."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from bench import scope_weights as fitting
from bench.scopes import PRACTICE, accuracy, listed
from core.rag import scope, scope_weights
from core.rag.scope import by_rules, looked_at, scope_of

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING = scope_weights.Weights({}, (), (0.0, 0.0, 0.0, 0.0), 1.0, "")


def told(question: str) -> Mapping[str, float] | None:
    return scope_weights.weighed(looked_at(question), (), scope_weights.loaded())


def test_the_stored_weights_are_fitted_to_the_lists_as_they_are() -> None:
    assert scope_weights.loaded().lists == fitting.lists_sum(), "run python -m bench.scope_weights"
    assert scope_weights.FILE.stat().st_size <= 200 * 1024


@pytest.mark.slow  # some 20 s: it reads the features of 11,000 questions and fits to them
def test_fitting_again_gives_the_stored_weights() -> None:
    again, stored = scope_weights.unpacked(fitting.fitted(fitting.rows())), scope_weights.loaded()
    known = again.places.keys() & stored.places.keys()
    assert len(known) >= 0.98 * max(len(again.places), len(stored.places))
    for feature, need in product(known, range(len(scope_weights.NEEDS))):
        one, other = (each.values[each.places[feature] + need] * each.step for each in (again, stored))
        assert one == pytest.approx(other, abs=3 * stored.step)


def test_the_questions_of_the_lists_are_understood() -> None:
    assert accuracy(listed(PRACTICE)[::12]) >= 0.95


@pytest.mark.parametrize(
    "question",
    [
        "Which of the bakeries lost money in spring?",
        "who still hasn't returned the questionnaire",
        "deepest well in the survey?",
        "哪家面包店春天亏了",
        "谁还没交问卷",
        "按产量给果园排个序",
    ],
)
def test_a_question_over_all_entries_needs_the_whole_in_words_that_no_rule_has(question: str) -> None:
    assert scope_of(question).need == "whole"


@pytest.mark.parametrize(
    "question",
    [
        "What temperature does the glue need?",
        "who signed the lease for the bakery",
        "胶水要多少度",
        "面包店的租约是谁签的",
    ],
)
def test_a_question_for_one_fact_needs_a_passage(question: str) -> None:
    assert scope_of(question).need == "passage"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What's in lecture 5?", "lecture 5"),
        ("Explain the section on caching", "caching"),
        ("what does table 4 show", "table 4"),
        ("第六讲的重点是什么", "第六讲"),
        ("“缓存”那一节讲了什么", "缓存"),
    ],
)
def test_a_part_that_is_named_in_other_words_is_the_heading_that_has_them(question: str, words: str) -> None:
    part = scope_of(question).part
    assert part is not None
    assert part.words == words


def test_what_weights_call_a_part_and_no_words_name_is_the_next_best() -> None:
    towards_part = scope_weights.Weights({scope_weights.checksum("w:hello"): 0}, (0, 0, 0, 0), (0, 9, 2, 1), 1.0, "")
    assert scope.judged("hello", towards_part).need == "passage"


@pytest.mark.parametrize(
    "question",
    [
        "Welche Rechnungen sind überfällig?",
        "Quelles factures sont en retard ?",
        "¿Cuántos contratos terminan en 2027?",
        "契約はいつ終わりますか",
        "Worum geht es in diesen Dateien?",
    ],
)
def test_in_other_languages_the_rules_decide_alone(question: str) -> None:
    assert told(question) is None
    assert scope_of(question) == by_rules(looked_at(question))


def test_weights_that_know_no_word_leave_all_to_the_rules() -> None:
    assert scope.judged("Which invoices are overdue?", NOTHING) == by_rules("Which invoices are overdue?")


@pytest.mark.parametrize("question", ["tell me a riddle", "thank you!", "写一首关于春天的诗", "谢谢"])
def test_what_is_no_question_to_documents_reads_none_of_them_whole(question: str) -> None:
    assert scope_of(question).need == "passage"


def test_traditional_characters_are_read_as_simplified_ones() -> None:
    assert scope_of("請幫我總結這份報告").need == "whole"
    assert scope_of("請幫我總結這份報告").plain == scope_of("请帮我总结这份报告").plain


def test_weights_are_read_once_and_before_the_first_question() -> None:
    scope_weights.loaded.cache_clear()
    scope.make_ready()
    before = scope_weights.loaded.cache_info().misses
    scope_of("Which of the ferries sail at night?")
    assert scope_weights.loaded.cache_info().misses == before == 1
