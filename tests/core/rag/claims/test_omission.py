"""What passages say right beside an answer and limit it with is found where the answer does not mention it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.rag.claims.conditions import limits_in
from core.rag.claims.omission import LeftOut, left_out
from core.rag.config import RAGConfig
from core.rag.document import Passage
from core.rag.library import Library

POLICY = (
    "4.1 The deductible is the part of every claim that you pay yourself. The deductible is 300\n"
    "dollars for each claim.\n"
    "4.2 For damage by storm or hail the deductible is 750 dollars.\n"
    "4.3 There is no deductible for broken windows, nor for claims after five years without a claim."
)
STORM = "4.2 For damage by storm or hail the deductible is 750 dollars."
WINDOWS = "4.3 There is no deductible for broken windows, nor for claims after five years without a claim."
HAN = "4.1 每次事故的免赔额是 500 元。\n4.2 暴风和冰雹造成的损失，免赔额是 1200 元。\n4.3 玻璃破碎没有免赔额。"


def said(answer: str, *texts: str, asked: str = "") -> list[str]:
    passages = [Passage(text, 1.0, "policy.pdf", "a", 2) for text in texts]
    return [one.sentence for one in left_out(answer, passages, asked)]


@pytest.mark.parametrize(
    "answer", ["The deductible is 300 dollars for each claim. [1]", "The deductible is $300 per claim [1]."]
)
def test_the_other_cases_of_a_rule_are_told_beside_the_rule(answer: str) -> None:
    assert said(answer, POLICY, asked="What is the deductible?") == [STORM, WINDOWS]


def test_the_rule_is_told_beside_one_of_its_cases_unless_that_case_was_asked_about() -> None:
    answer = "The policy says that the deductible is 750 dollars for damage by storm or hail."
    assert "The deductible is 300 dollars for each claim." in said(answer, POLICY, asked="What is the deductible?")
    assert said(answer, POLICY, asked="How high is the deductible for storms?") == []


def test_an_answer_that_tells_all_of_it_leaves_nothing_out() -> None:
    answer = (
        "The deductible is 300 dollars for each claim, and 750 dollars after a storm or hail damage. "
        "Broken windows have none, nor have claims after five years without one."
    )
    assert said(answer, POLICY, asked="What is the deductible?") == []


def test_the_same_holds_in_chinese() -> None:
    assert said("每次事故的免赔额是 500 元。[1]", HAN, asked="免赔额是多少？") == [
        "4.2 暴风和冰雹造成的损失，免赔额是 1200 元。",
        "4.3 玻璃破碎没有免赔额。",
    ]
    answer = "免赔额为 500 元；暴风和冰雹造成的损失，免赔额是 1200 元；玻璃破碎没有免赔额。"
    assert said(answer, HAN, asked="免赔额是多少？") == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Flood from rivers is insured.", "Flood from rivers is insured only if the certificate says so."),
        ("Members enter the museum free.", "Members enter the museum free, except on the first Sunday of a month."),
        ("The fee is refunded in full.", "Unless the course has begun, the fee is refunded in full."),
        ("江河造成的水灾由我们承保。", "江河造成的水灾，只有凭证上写明时才承保。"),
        ("会员可以免费参观博物馆。", "除节假日以外，会员可以免费参观博物馆。"),
        ("家具和衣物都在承保范围内。", "家具和衣物都在承保范围内，但不包括现金和首饰。"),
    ],
)
def test_a_condition_in_the_sentence_itself_is_missed_when_the_answer_drops_it(answer: str, text: str) -> None:
    assert said(answer, text) == [text]
    assert said(text, text) == []


@pytest.mark.parametrize(
    ("answer", "text", "told"),
    [
        (
            "Employees receive 28 days of paid leave each year.",
            "Employees receive 28 days of paid leave each year. This does not apply to trainees.",
            "This does not apply to trainees.",
        ),
        (
            "员工每年享有二十八天带薪休假。",
            "员工每年享有二十八天带薪休假。但实习生除外。",
            "但实习生除外。",
        ),
    ],
)
def test_an_exception_in_the_next_sentence_is_missed(answer: str, text: str, told: str) -> None:
    assert said(answer, text) == [told]
    assert said(f"{answer} {told}", text) == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("除了北京，公司还在上海设有办公室。", "除了北京以外，公司还在上海和广州设有办公室。"),
        ("The firm has an office in Lyon.", "Apart from Paris, the firm also has an office in Lyon."),
        ("The bridge was opened in 1932.", "The bridge was opened in 1932. The tower beside it is made of brick."),
        ("The town had 300 people in 1900.", "The town had 300 people in 1900. In 1950 the town had 900 people."),
        ("The documents do not contain a date.", "The documents hold a date, unless it was removed."),
    ],
)
def test_what_limits_nothing_is_not_told(answer: str, text: str) -> None:
    assert said(answer, text) == []


def test_a_sentence_that_is_told_is_found_in_its_passage_also_across_a_line_end() -> None:
    text = "The course fee is refunded.\nThis does not apply to courses that\nhave begun."
    passage = Passage(text, 1.0, "", "", None)
    (one,) = left_out("The course fee is refunded to you.", [Passage("Other.", 1.0, "", "", None), passage])
    assert one == LeftOut(2, text.index("This"), len(text), "This does not apply to courses that have begun.")


def test_the_policy_that_comes_along_is_caught(tmp_path: Path) -> None:
    with Library(tmp_path, RAGConfig()) as library:
        library.add("assets/samples/policy.pdf")
        found = library.find("What is the deductible?")
    left = left_out("The deductible is 300 dollars for each claim.", found, "What is the deductible?")
    assert [one.sentence for one in left] == [STORM, WINDOWS]


def test_limits_are_cut_where_their_clause_ends() -> None:
    (one,) = limits_in("Members enter free, except on Sundays, and may bring a guest.")
    assert one.text == "except on Sundays"
    (one,) = limits_in("会员免费参观，节假日除外，可带一名客人。")
    assert one.text == "节假日除外"


def test_very_long_texts_take_bounded_time() -> None:
    passage = Passage(POLICY * 400, 1.0, "", "", None)
    began = time.process_time()
    left_out("The deductible is 300 dollars for each claim. " * 6_000, [passage] * 2, "deductible " * 10_000)
    left_out("unless " * 40_000, [Passage("unless " * 10_000 + "除" * 20_000, 1.0, "", "", None)], "")
    assert time.process_time() - began < 2
