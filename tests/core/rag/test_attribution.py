"""After an answer each sentence is told apart: borne out by its passages, hardly, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.rag.attribution import Support, placed_sentences, sentences_of, with_units_apart, words_of
from core.rag.citations import cited_numbers, sentence_of
from core.rag.claims.weighing import Claim, claims_of
from core.rag.document import Passage
from core.rag.embedding.local import LocalEmbedder
from core.rag.prose import Markup

POLICY = (
    Passage(
        "4.1 The deductible is the part of every claim that you pay yourself. The deductible is 300 dollars for each "
        "claim. 4.2 For damage by storm or hail the deductible is 750 dollars. 4.3 There is no deductible for broken "
        "windows, nor for claims after five years without a claim.",
        2.0,
        "policy.pdf",
        "a",
        2,
    ),
    Passage(
        "5.1 Tell us within 14 days, by telephone or letter. 5.3 We answer within 10 working days. If we agree, we pay "
        "within 5 working days more. 6.1 For things that are destroyed or lost we pay what it costs to buy the same "
        "thing new. For things older than ten years we pay half of that.",
        1.0,
        "policy.pdf",
        "a",
        2,
    ),
)
CHINESE = (
    Passage(
        "4.1 免赔额是每次事故中由您自己承担的部分。每次事故的免赔额是 500 元。4.2 暴风和冰雹造成的损失，免赔额是 "
        "1200 元。4.3 玻璃破碎没有免赔额。5.1 请在 14 天内用电话或信件通知我们。",
        1.0,
        "保险单.pdf",
        "b",
        2,
    ),
)
SUPPORTED = [
    "The deductible is 300 dollars for each claim.",
    "If a storm damages your belongings, the deductible is 750 dollars.",
    "For every claim you bear the first 300 dollars yourself.",
    "We answer within 10 working days and pay within 5 working days more.",
]
PARAPHRASED = [
    "Items older than a decade are reimbursed at half the price.",
    "No deductible applies when a window is broken.",
]
UNSUPPORTED = [
    "The deductible is 450 dollars for burglary.",
    "Your car is insured against theft everywhere in Europe.",
    "Customers can earn reward points for every premium paid.",
    "The company was founded by sailors in a harbour town.",
]


@pytest.fixture(scope="module")
def meaning() -> LocalEmbedder:
    return LocalEmbedder("use")


def verdict(sentence: str, passages: tuple[Passage, ...] = POLICY, meaning: LocalEmbedder | None = None) -> str:
    (claim,) = claims_of(sentence, passages, embed=meaning.questions if meaning else None)
    return claim.verdict


@pytest.mark.parametrize("sentence", SUPPORTED)
def test_a_sentence_in_the_words_of_a_passage_is_supported(sentence: str) -> None:
    assert verdict(sentence) == "supported"


@pytest.mark.parametrize("sentence", [*SUPPORTED, *PARAPHRASED])
def test_a_sentence_in_other_words_is_never_called_unsupported_where_there_is_a_model_of_meaning(
    sentence: str, meaning: LocalEmbedder
) -> None:
    assert verdict(sentence, meaning=meaning) in {"supported", "weak"}


@pytest.mark.parametrize("sentence", UNSUPPORTED)
def test_what_stands_nowhere_is_unsupported_with_and_without_a_model_of_meaning(
    sentence: str, meaning: LocalEmbedder
) -> None:
    assert verdict(sentence) == "unsupported"
    assert verdict(sentence, meaning=meaning) == "unsupported"


def test_a_wrong_figure_speaks_against_a_sentence_that_is_otherwise_right() -> None:
    assert verdict("For damage by storm or hail the deductible is 700 dollars.") == "unsupported"


def test_the_name_and_page_of_a_document_are_no_invented_figures() -> None:
    assert verdict("On page 2 policy.pdf says that the deductible is 300 dollars for each claim.") == "supported"


def test_a_chinese_sentence_is_told_by_its_passages() -> None:
    assert verdict("每次事故的免赔额是500元。", CHINESE) == "supported"
    assert verdict("每次事故的免赔额是600元。", CHINESE) == "unsupported"
    assert verdict("本保险涵盖牙科治疗费用。", CHINESE) == "unsupported"


def test_across_languages_meaning_decides_and_words_alone_say_nothing(meaning: LocalEmbedder) -> None:
    assert verdict("每次理赔您需自付300元免赔额。", POLICY, meaning) == "supported"
    assert verdict("宠物的兽医费用由我们承担。", POLICY, meaning) == "weak"
    assert claims_of("每次理赔您需自付300元免赔额。", POLICY) == []


def test_the_passages_that_bear_a_sentence_out_are_named() -> None:
    (claim,) = claims_of(SUPPORTED[3], POLICY)
    assert claim.passages == (2,)


@pytest.mark.parametrize(
    "text",
    [
        "# The company was founded by sailors",
        "| Founded by sailors | in a harbour town |",
        "```\nThe company was founded by sailors in a harbour.\n```",
        "Was the company founded by sailors in a harbour?",
        "Thank you!",
        "The documents do not mention sailors or the founding of the company.",
        "These are the sailors who founded the company:",
        "",
    ],
)
def test_what_claims_nothing_gets_no_verdict(text: str) -> None:
    assert claims_of(text, POLICY) == []


def test_what_a_tool_said_is_not_looked_for_in_the_documents() -> None:
    said = "It is 14:05 in Tokyo now."
    assert claims_of(said, POLICY, told=['{"time": "14:05", "city": "Tokyo", "now": true}']) == []


def test_words_of_the_question_that_come_back_count_for_nothing() -> None:
    asked = "What does a duck eat?"
    (claim,) = claims_of("A duck eats insects.", POLICY, asked=asked)
    assert claim.verdict == "unsupported"
    assert claims_of("What a duck eats, the duck eats.", POLICY, asked=asked) == []
    header = (Passage("Alpha | Beta | Gamma | Delta\n1 | 2 | 3 | 4", 1.0, "test.xlsx", "a", 1),)
    said = "The first row of the table contains the column headers Alpha, Beta, Gamma, and Delta."
    asked = "What stands in the first row of the table?"
    (claim,) = claims_of(said, header, asked=asked, embed=LocalEmbedder("use").questions)
    assert claim.verdict != "unsupported"
    # What the question asks of is not proved by it.
    team = (Passage("Anna Berg was the head of the team in Oslo. She left in May.", 1.0, "team.pdf", "a", 1),)
    (claim,) = claims_of("Anna Berg was the first head of the team.", team, asked="Was Anna Berg the first head?")
    assert claim.verdict == "weak"


def test_figures_of_a_table_belong_together() -> None:
    table = (Passage("ColA | ColB | ColC\n1 | 2 | 3\n5 | 6 | 7\n9 | 10 | 11", 1.0, "test.xlsx", "a", 1),)
    assert verdict("The numbers in the table are 1, 2, 3, 5, 6, 7, 9, 10, and 11.", table) == "supported"


def test_a_figure_that_is_said_of_something_else_weakens_a_sentence() -> None:
    history = (
        Passage(
            "Undo and Redo: introduced in the 1980s, these allowed users to take back what they had typed. Fonts came "
            "with the printers. Menus came with the mouse. Spell Check: early programs had none. By the 1990s, these "
            "spotted errors automatically.",
            1.0,
            "history.pdf",
            "a",
            2,
        ),
    )
    said = "Spell check was introduced in the {}s, allowing users to spot errors automatically."
    assert verdict(said.format(1980), history) == "weak"
    assert verdict(said.format(1990), history) == "supported"


def test_without_passages_there_is_nothing_to_compare_with() -> None:
    assert claims_of(SUPPORTED[0], ()) == []


def test_a_claim_ends_behind_its_marks_and_list_numbers_are_no_figures() -> None:
    text = "7. The deductible is 300 dollars for each claim [1]. And more?\n8. We answer within 10 working days.[2]"
    claims = claims_of(text, POLICY)
    assert [text[: claim.end].endswith(end) for claim, end in zip(claims, ("[1].", "days.[2]"), strict=True)] == [
        True
    ] * 2
    assert {claim.verdict for claim in claims} == {"supported"}


@given(st.text(alphabet=st.sampled_from("ab 1.\n#*`|[]()。！免赔额300$\\-"), max_size=80))
def test_any_text_is_read_and_every_end_lies_in_it_behind_the_last(text: str) -> None:
    ends = [end for _, end in sentences_of(text)]
    assert ends == sorted(set(ends))
    assert all(0 < end <= len(text) for end in ends)
    placed = placed_sentences(text)
    assert all(start < end and not text[start].isspace() for _, start, end in placed)
    assert all(text[start] == sentence[0] for sentence, start, _ in placed)
    claims = claims_of(text, POLICY)
    assert all(isinstance(claim, Claim) and claim.end in ends for claim in claims)


MARKS = ("> ", ">", "# ", "~~~", "```", "`", "$", "$$", "\\(", "\\)", "|", "- ", "1. ", "    ", "\t", "\n", "\n\n", " ")
WORDS = ("a. ", "The deductible is 300 dollars.", "免赔额是 500 元。", "[1]", "\r", "So")
MARKED = st.lists(st.sampled_from((*MARKS, *WORDS)), max_size=30).map("".join)


@given(MARKED)
@example("> # no\n>>>>>>>># so\n>\t# a\n> ~~~\n> a\n\n    code\n")
def test_prose_is_what_it_is_letter_by_letter(text: str) -> None:
    markup, prose = Markup(), list[str]()
    for line in text.split("\n"):
        plain = "".join(" " if markup.is_literal(letter) else letter for letter in line)
        prose += [plain] if plain.strip() and markup.is_prose() else []
        markup.is_literal("\n")
    read, fast = Markup(), list[str]()
    for line in text.split("\n"):
        if read.is_ordinary(line):
            fast += [line] if line.strip() else []
            continue
        plain = read.without_literals(line)
        fast += [plain] if plain.strip() and read.is_prose() else []
        read.is_literal("\n")
    assert fast == prose


SAID = (
    "The deductible is 300 dollars. So it is.",
    "> For hail it is 755 dollars.",
    "Tell us within 14 days, please.",
    "Nobody pays for a broken roof.",
    "暴风的免赔额是 1200 元。",
    "`code`",
    "- We pay half of that.",
    "1. So?",
)


@given(st.lists(st.sampled_from(SAID), min_size=1, max_size=6), st.integers(2, 4))
def test_what_is_said_again_is_judged_the_same_again(lines: list[str], times: int) -> None:
    text = "\n\n".join(lines)
    once, often = claims_of(text, POLICY), claims_of("\n\n".join(lines * times), POLICY)
    assert often == [
        replace(claim, start=claim.start + at * (len(text) + 2), end=claim.end + at * (len(text) + 2))
        for at in range(times)
        for claim in once
    ]


def test_each_sentence_is_made_a_vector_of_once() -> None:
    asked: list[list[str]] = []

    def embed(texts: Sequence[str]) -> Any:
        asked.append(list(texts))
        return np.ones((len(texts), 1), dtype=np.float32)

    said = "Nobody ever pays anything for a broken roof or chimney."
    claims = claims_of("\n".join([said] * 50), POLICY, embed=embed)
    assert len(claims) == 50
    assert len({(claim.verdict, claim.passages) for claim in claims}) == 1
    assert [texts.count(said) for texts in asked] == [1]


@pytest.mark.parametrize("loop", [" ", ": - ", ":", "[1] ", "\t[", "* ", "a. ", "> "])
def test_a_reply_that_goes_round_in_circles_is_read_in_good_time(loop: str) -> None:
    text = f"The deductible is 300 dollars{loop * 100_000}for each claim."
    assert all(claim.end <= len(text) for claim in claims_of(text, POLICY))
    assert cited_numbers(text)[:1] in ([], [1])
    assert isinstance(sentence_of(text, 1), str)


@pytest.mark.parametrize(
    ("glued", "apart"),
    [
        ("1pm", "1 pm"),
        ("5km", "5 km"),
        ("3GB", "3 GB"),
        ("10%", "10 %"),
        ("10%", "10 percent"),
        ("10％", "10 per cent"),
        ("€5", "5 euro"),
        ("5€", "€ 5"),
        ("$1,200", "1200 dollar"),
        ("￥30", "30 yuan"),
        ("百分之十", "10%"),
        ("百分之二十五", "25%"),
        ("百分之百", "100%"),
        ("百分之三点五", "3.5%"),
        ("百分之 7", "7 %"),
        ("3rd", "3"),
        ("12th May", "12 May"),
        ("5公里", "5 公里"),
        ("2.5m", "2.5 m"),
    ],
)
def test_a_figure_glued_to_its_unit_is_the_one_with_a_space(glued: str, apart: str) -> None:
    assert words_of(glued) == words_of(apart)


@pytest.mark.parametrize(("one", "other"), [("1pm", "2 pm"), ("10%", "100%"), ("5km", "15 km"), ("百分之十", "20%")])
def test_other_figures_stay_others(one: str, other: str) -> None:
    assert words_of(one) != words_of(other)


@pytest.mark.parametrize("name", ["Q3", "A4", "B12", "x86", "mp3"])
def test_names_with_figures_stay_whole(name: str) -> None:
    assert words_of(name) == {name.lower()}


@given(st.text(alphabet="0123456789.,%€$£¥ apmkst", max_size=60))
def test_taking_units_apart_keeps_every_figure(text: str) -> None:
    def figures(one: str) -> str:
        return "".join(letter for letter in one if letter.isdigit())

    assert figures(with_units_apart(text)) == figures(text)


@given(st.text(alphabet="0123456789.%百分之零十二三五点 a", max_size=60))
def test_any_numeral_can_be_looked_at(text: str) -> None:
    assert isinstance(words_of(text), set)


def test_a_sentence_that_stands_there_word_for_word_is_supported_however_its_figures_are_written() -> None:
    notes = Passage("The water will be off on Tuesday 12 May, from 9 am to 1 pm.", 1.0, "notes.md", "a", None)
    (claim,) = claims_of("The water will be off on Tuesday 12th May, from 9 am to 1pm.", [notes])
    assert claim.verdict == "supported"
    (claim,) = claims_of("The water will be off on Tuesday 12 May, from 9 am to 3pm.", [notes])
    assert claim.verdict == "unsupported"


@pytest.mark.parametrize(
    ("question", "told", "said"),
    [
        ("这个文档有多少页？", "zh_report.pdf 有 8 页。", "这个文档有 8 页。"),
        ("这个表格一共有多少行？", "工作表 Sheet1 有 323 行数据。", "这个表格一共有323行。"),
        ("总金额是多少？", "订单表.csv 中的表格：金额 的总和是 30（3 行数据）。", "总金额是 30。"),
    ],
)
def test_what_a_program_counted_bears_out_its_figure_in_the_words_of_the_question(
    question: str, told: str, said: str
) -> None:
    counted = Passage(told, 1.0, "a file", "1")
    assert Support([counted], question).numbers(said) == [1]
    other = said.replace("8", "9").replace("323", "324").replace("30", "31")
    assert Support([counted], question).numbers(other) == []
    assert Support([counted], question).numbers(f"李四说，{said}") == []
    assert Support([replace(counted, chunk_id=5)], question).numbers(said) == [], "a piece of a document says more"
