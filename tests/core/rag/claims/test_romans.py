"""The Roman numeral of a chapter, an article or a king is a number: a wrong one speaks against a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.claims.check import check_claims
from core.rag.claims.figures import figures_of
from core.rag.claims.names import KnownNames, names_of
from core.rag.document import Passage
from core.rag.numerals import number_of_roman

KNIGHT = (
    "CHAPTER XXXVII. The princess tells her story at the inn, and the traveller from Algiers arrives with a veiled "
    "lady on an ass."
)
WINE = "CHAPTER XXXVI. The landlord comes to the gate, and Don Fernando and Dorothea are reconciled before everybody."
WRONG = "In chapter XXXVI the traveller from Algiers arrives at the inn with a veiled lady. [1]"
RIGHT = "In chapter XXXVII the traveller from Algiers arrives at the inn with a veiled lady. [1]"
ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
TENS = ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC")
HUNDREDS = ("", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM")


def in_roman(number: int) -> str:
    """A number below 4,000 as the Romans wrote it."""
    return "M" * (number // 1000) + HUNDREDS[number // 100 % 10] + TENS[number // 10 % 10] + ONES[number % 10]


def verdicts(answer: str, *passages: str | Passage) -> list[tuple[str, str]]:
    return [(one.verdict, one.reason) for one in check_claims(answer, passages)]


@given(st.integers(1, 3_999))
def test_each_roman_numeral_is_its_number(number: int) -> None:
    assert number_of_roman(in_roman(number)) == number


@given(st.text("IVXLCDM", max_size=12))
def test_letters_are_a_numeral_only_where_they_are_written_as_one(letters: str) -> None:
    number = number_of_roman(letters)
    assert number is None or in_roman(number) == letters


@given(st.integers(2, 300), st.integers(2, 300), st.sampled_from(("Chapter {}", "Article {}", "Vol. {}", "第{}章")))
def test_two_chapters_are_equal_only_if_their_numbers_are_however_they_are_written(
    one: int, other: int, form: str
) -> None:
    roman, rival = in_roman(one), in_roman(other)
    if min(len(roman), len(rival)) < 2 or not set(roman[:2] + rival[:2]) <= set("IVXL"):
        return  # one letter says little, and CD, DC and MD are no chapters
    (mine,), (theirs,) = figures_of(form.format(roman)), figures_of(form.format(rival))
    (arabic,) = figures_of(form.format(other))
    assert (mine.words, mine.number) == (roman, one)
    assert mine.equals(theirs) == mine.equals(arabic) == arabic.equals(mine) == (one == other)


@given(
    st.lists(
        st.sampled_from(("Chapter ", "XX", "IV", "第", "章", ", ", " and ", "–", "Louis ", ". ", "CD")), max_size=30
    )
)
def test_any_text_of_numerals_is_read_and_never_speaks_against_itself(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert all(text[one.start : one.start + len(one.words)] == one.words for one in figures_of(text))
    assert all(one.verdict != "unsupported" or not one.reasons for one in check_claims(text, [text]))


def test_a_wrong_chapter_is_told_with_the_one_that_the_passage_has() -> None:
    assert verdicts(WRONG, KNIGHT) == [("unsupported", "amount: “XXXVI”; passage 1: “XXXVII”")]
    assert verdicts(RIGHT, KNIGHT) == [("supported", "")]


def test_a_wrong_chapter_is_told_also_where_another_passage_has_it() -> None:
    assert verdicts(WRONG, KNIGHT, WINE) == [("unsupported", "amount: “XXXVI”; passage 1: “XXXVII”")]
    assert verdicts(RIGHT, KNIGHT, WINE) == [("supported", "")]


def test_the_chapter_may_stand_above_the_passage_beside_the_mark() -> None:
    knight = Passage(KNIGHT.partition(". ")[2], 1.0, "quixote.txt", "a", heading="CHAPTER XXXVII")
    wine = Passage(WINE.partition(". ")[2], 1.0, "quixote.txt", "b", heading="CHAPTER XXXVI")
    assert verdicts(WRONG, knight, wine) == [("unsupported", "amount: “XXXVI”; passage 1: “XXXVII”")]
    assert verdicts(RIGHT, knight, wine) == [("supported", "")]
    both = "Chapter XXXVI reconciles Don Fernando and Dorothea, before the traveller from Algiers arrives. [2][1]"
    assert verdicts(both, knight, wine) == [("supported", "")]


def test_in_chinese_a_wrong_chapter_is_told_too() -> None:
    texts = ("第XXXVII章 公主在客店讲述她的经历，来自阿尔及尔的旅客带着蒙面女子到达。", "第XXXVI章 店主来到门口。")
    assert verdicts("第XXXVI章里，来自阿尔及尔的旅客带着蒙面女子到达客店。[1]", *texts) == [
        ("unsupported", "amount: “XXXVI”; passage 1: “XXXVII”")
    ]
    assert verdicts("第XXXVII章里，来自阿尔及尔的旅客带着蒙面女子到达客店。[1]", *texts) == [("supported", "")]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Chapter 37 tells how the traveller arrives at the inn.", "Chapter XXXVII tells how the traveller arrives."),
        ("Chapter XXXVII tells how the traveller arrives.", "Chapter 37 tells how the traveller arrives at the inn."),
        ("Chapters XI and XII tell of the goatherds.", "CHAPTER XI. Of the goatherds.\nCHAPTER XII. Of the goatherds."),
        ("Article XII of the treaty binds every member state.", "Every member state is bound by articles X–XII."),
        ("King George VI opened the bridge in the harbour.", "King George opened the bridge in the harbour."),
        ("Louis XIV built the palace near the forest.", "The palace near the forest was built by Louis XIV."),
        ("The CD and the MIX of the song were sold.", "The CD and the MIX of the song were sold together."),
        (
            "As title II says, 30 days do for a claim.",
            "Title II. For a claim 30 days do (cf. title IV).",
        ),
        ("第三十七章里，旅客到达客店。", "第XXXVII章里，旅客到达客店。"),
    ],
)
def test_nothing_speaks_against_the_right_numeral(answer: str, text: str) -> None:
    assert verdicts(answer, text) == [("supported", "")]


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (
            "King Louis XV built the palace near the forest.",
            ["King Louis XIV had the palace built near the forest."],
        ),
        (
            "King Louis XV built the palace near the forest.",
            [
                "King Louis XIV had the palace built near the forest.",
                "Boats came down the river. King Louis XV sold the mill there.",
            ],
        ),
        ("Henry VII married Catherine in the chapel.", ["Henry VIII married Catherine in the chapel."]),
    ],
)
def test_a_king_of_another_number_is_another_king(answer: str, texts: list[str]) -> None:
    (claim,) = check_claims(answer, texts)
    assert [one.kind for one in claim.reasons] == ["name"]


def test_a_numeral_in_a_name_is_known_only_as_it_stands() -> None:
    (name,) = names_of("They spoke of Louis XVI.")
    assert KnownNames(["Louis XVI reigned."]).has(name)
    assert not KnownNames(["Louis XVIII reigned."]).has(name)
