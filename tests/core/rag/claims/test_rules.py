"""A sentence that names, counts, dates, denies or turns round what its passages do not is told, with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.claims.names import KnownNames, names_of
from core.rag.claims.rules import Reason, Rules
from core.rag.document import Passage

TEXTS = (
    (
        "Anna Miller manages the bakery in Ellison since 12 May 2019. The bakery sells 300 loaves a "
        "day. Bob Stone keeps "
        "the books. The deductible for storm is $750, and damage by fire is covered. Theft is not "
        "covered unless the door "
        "was locked."
    ),
    (
        "Acme Corporation bought Borealis in 2021 for 1.2 million dollars. Most members pay by "
        "card. Prices rose in April. "
        "The World Health Organization was asked first. Offices close before noon on Friday."
    ),
    (
        "张三于2019年5月12日起担任北京分店经理。腾讯公司收购阅文集团。每天售出三百个面包。火灾造成的损失可以赔偿。"
        "盗窃造成的损失不予赔偿。会员费增加百分之十。部分会员用现金付款。"
    ),
)
RULES = Rules([Passage(text, 1.0, "shop.pdf", "a", 4) for text in TEXTS], ["Who manages the Ellison bakery?"])

TRUE = [
    "Anna Miller has managed the bakery in Ellison since May 12, 2019.",
    "The bakery sells three hundred loaves each day.",
    "For storm the deductible is 750 dollars.",
    "Damage by fire is covered.",
    "Theft is not covered unless the door was locked.",
    "Borealis was bought by Acme Corporation in 2021.",
    "Acme bought Borealis for $1,200,000.",
    "Acme paid about 1.1 million dollars for Borealis.",
    "The WHO was asked first.",
    "Most members pay by card.",
    "Prices rose in April.",
    "As page 4 of shop.pdf says, Bob Stone keeps the books.",
    "自2019年5月12日起，张三担任北京分店经理。",
    "每天售出300个面包。",
    "阅文集团被腾讯公司收购。",
    "盗窃造成的损失不予赔偿。",
    "会员费增加10%。",
]
FALSE = [
    ("Anna Miller has managed the bakery in Ellison since June 12, 2019.", "date"),
    ("Anna Miller has managed the bakery in Ellison since 12 May 2018.", "date"),
    ("Clara Novak has managed the bakery in Ellison since 12 May 2019.", "name"),
    ("Anna Miller manages the bakery in Portsmouth since 12 May 2019.", "name"),
    ("The bakery sells 350 loaves a day.", "amount"),
    ("The deductible for storm is 750 euros.", "amount"),
    ("The bakery sells 750 loaves a day.", "amount"),
    ("Borealis bought Acme Corporation in 2021.", "role"),
    ("Damage by fire is not covered.", "denial"),
    ("Theft is covered unless the door was locked.", "denial"),
    ("All members pay by card.", "extent"),
    ("Prices fell in April.", "opposite"),
    ("Offices close after noon on Friday.", "opposite"),
    ("Offices close before noon on Monday.", "date"),
    ("张三于2019年6月12日起担任北京分店经理。", "date"),
    ("李四于2019年5月12日起担任北京分店经理。", "name"),
    ("张三于2019年5月12日起担任上海分店经理。", "name"),
    ("每天售出四百个面包。", "amount"),
    ("阅文集团收购腾讯公司。", "role"),
    ("火灾造成的损失不可以赔偿。", "denial"),
    ("会员费减少百分之十。", "opposite"),
    ("全部会员用现金付款。", "extent"),
]


@pytest.mark.parametrize("sentence", TRUE)
def test_nothing_speaks_against_a_true_sentence(sentence: str) -> None:
    assert RULES.reasons(sentence) == ()


@pytest.mark.parametrize(("sentence", "kind"), FALSE)
def test_a_false_sentence_is_told_with_the_kind_of_its_reason(sentence: str, kind: str) -> None:
    assert kind in {one.kind for one in RULES.reasons(sentence)}


def test_a_reason_has_the_words_and_what_the_passage_says_in_their_place() -> None:
    assert RULES.reasons("The bakery sells 350 loaves a day.") == (Reason("amount", "350", "300", 1),)
    assert RULES.reasons("Prices fell in April.") == (Reason("opposite", "fell", "rose", 2),)
    assert RULES.reasons("Damage by fire is not covered.")[0][1:3] == ("not covered", "covered")
    (absent,) = RULES.reasons("Clara Novak plays the violin.")
    assert absent == Reason("name", "Clara Novak")


@pytest.mark.parametrize(
    ("sentence", "text", "words"),
    [
        ("Sales rose by 5%.", "Sales fell by 5%.", ("rose", "fell")),
        ("Sales rose by 5% in 2020.", "Sales fell by 5% in 2020.", ("rose", "fell")),
        ("Rent decreased 30 euros.", "Rent increased 30 euros.", ("decreased", "increased")),
        ("Wait at least 5 days.", "Wait at most 5 days.", ("least", "most")),
    ],
)
def test_an_opposite_in_a_short_sentence_with_a_figure_speaks_against_it(
    sentence: str, text: str, words: tuple[str, str]
) -> None:
    assert Rules([Passage(text, 1.0, "", "")]).reasons(sentence) == (Reason("opposite", *words, 1),)
    assert Rules([Passage(sentence, 1.0, "", "")]).reasons(f"Indeed, {sentence[0].lower()}{sentence[1:]}") == ()


@pytest.mark.parametrize(
    ("sentence", "text", "words"),
    [
        ("The cold room is kept at -5 degrees.", "The cold room is kept at 5 degrees.", ("-5", "5")),
        ("It was 5 °C in January.", "It was −5 °C in January.", ("5", "−5")),
        ("冷库的温度为-5度。", "冷库的温度为5度。", ("-5", "5")),
        ("夜里降至5℃。", "夜里降至−5℃。", ("5", "−5")),
    ],
)
def test_a_figure_below_zero_is_another_one(sentence: str, text: str, words: tuple[str, str]) -> None:
    assert Rules([Passage(text, 1.0, "", "")]).reasons(sentence) == (Reason("amount", *words, 1),)
    assert Rules([Passage(f"Mind that {text[0].lower()}{text[1:]}", 1.0, "", "")]).reasons(text) == ()


def test_a_hyphen_is_no_minus() -> None:
    rules = Rules([Passage("The list has 5 items. The B-2 flies at noon. Rooms 3-5 are closed.", 1.0, "", "")])
    assert rules.reasons("- The list has 5 items, all in all.") == ()
    assert rules.reasons("The B-2 flies at noon, they say.") == ()
    assert rules.reasons("Rooms 3-5 are closed now.") == ()
    assert Rules([Passage("长征5号火箭去年发射。", 1.0, "", "")]).reasons("长征-5号火箭去年发射。") == ()


def test_a_number_with_a_comma_is_no_year_and_may_be_rounded() -> None:
    rules = Rules([Passage("Exactly 1,040 people came to the fair.", 1.0, "", "")])
    assert rules.reasons("About 1,000 people came to the fair.") == ()
    assert rules.reasons("About 1,900 people came to the fair.") == (Reason("amount", "1,900", "1,040", 1),)


def test_an_abbreviation_that_the_sentence_spells_out_itself_needs_no_passage() -> None:
    rules = Rules([Passage("It hangs in the National Air and Space Museum, as everybody sees.", 1.0, "", "")])
    assert rules.reasons("It hangs in the National Air and Space Museum (NASM).") == ()
    assert [one.words for one in rules.reasons("It hangs in the National Air and Space Museum (NAVM).")] == ["NAVM"]


def test_across_languages_figures_alone_are_compared() -> None:
    english = Rules([Passage(TEXTS[0], 1.0, "shop.pdf", "a", 4)])
    assert english.reasons("面包房每天售出300个面包，由安娜·米勒管理。", across=True) == ()
    assert [one.words for one in english.reasons("面包房每天售出400个面包。", across=True)] == ["400个"] or [
        one.words for one in english.reasons("面包房每天售出400个面包。", across=True)
    ] == ["400"]


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("The WHO says so.", "the World Health Organization"),
        ("The World Health Organization says so.", "as WHO says"),
        ("She is Canadian.", "born in Canada"),
        ("The American bank", "a bank of the United States"),
        ("The U.S. bank", "a bank of the US"),
        ("Müller's bank", "the bank of Muller"),
        ("The British Museum", "a museum in Britain, the museum"),
    ],
)
def test_a_name_is_known_in_its_other_forms(sentence: str, text: str) -> None:
    known = KnownNames([text])
    assert all(known.has(name) for name in names_of(sentence) if not name.begins)


@pytest.mark.parametrize("sentence", ["Critics praised it.", "On Monday it rained in May.", "THIS IS IT", "I am here."])
def test_capitals_alone_make_no_name(sentence: str) -> None:
    assert [name for name in names_of(sentence) if not name.begins and sentence != sentence.upper()] == []


PIECES = (
    "Anna Miller ",
    "not ",
    "bought ",
    "《",
    "》",
    "·",
    "张三",
    "不",
    "12 May ",
    "三百",
    "$",
    "A.",
    "'s ",
    "收购",
    "“",
    "all ",
    "。",
)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_sentence_can_be_held_against_passages_and_its_own_words_never_speak_against_it(text: str) -> None:
    assert all(one.words for one in RULES.reasons(text))
    assert Rules([Passage(text, 1.0, "", "")]).reasons(text) == ()


TERMS = (
    "5.1 Tell us within 14 days, by telephone or letter. We insure at least 40 bicycles. The trip takes 14 hours."
    " Fewer than 20 boats may land there. The fee must not exceed 300 dollars."
    " 每次事故赔付不得超过 30000 元，首饰除外。"
)
OF_TERMS = Rules([Passage(TERMS, 1.0, "policy.pdf", "a", 2)])


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Tell us within 15 days, by telephone or letter.", "15 days"),
        ("You must tell us within 13 days, by telephone or letter.", "13 days"),
        ("At least 38 bicycles are insured.", "38"),
        ("Fewer than 19 boats may land there.", "19"),
        ("The fee must not exceed 290 dollars.", "290 dollars"),
        ("每次事故赔付不得超过 29000 元，首饰除外。", "29000 元"),
        ("每次事故赔付不能超过 29000 元，首饰除外。", "29000 元"),
    ],
)
def test_a_term_is_no_rounded_figure(sentence: str, words: str) -> None:
    assert [(one.kind, one.words) for one in OF_TERMS.reasons(sentence)] == [("amount", words)]


@pytest.mark.parametrize(
    "sentence", ["You tell us within 14 days, by telephone or letter.", "The trip takes about 15 hours."]
)
def test_the_same_term_and_a_figure_that_is_said_to_be_about_so_much_are_borne_out(sentence: str) -> None:
    assert not OF_TERMS.reasons(sentence)


def test_the_number_of_a_section_is_not_told_instead_of_a_figure() -> None:
    (reason,) = OF_TERMS.reasons("Tell us within 15 days, by telephone or letter.")
    assert (reason.rival, reason.passage) == ("14 days", 1)


ARTICLES = [
    "Die Durchschnittliche Gehalt beträgt 4.200 Euro.",
    "Der Umsatz stieg. Das Durchschnittliche Gehalt fiel.",
    "Le Salaire Moyen est de 4 200.",
    "La Media de ventas es 9.",
]


@pytest.mark.parametrize("sentence", ARTICLES)
def test_an_article_of_another_language_and_the_word_behind_it_are_no_name(sentence: str) -> None:
    assert [one.words for one in names_of(sentence) if one.words != "Euro"] == []


@pytest.mark.parametrize("sentence", ["El Salvador is the smallest of them.", "We went there by La Paz."])
def test_a_name_with_an_article_stays_one_in_english_and_within_a_sentence(sentence: str) -> None:
    assert [one.words for one in names_of(sentence)] in (["El Salvador"], ["La Paz"])


@pytest.mark.parametrize(
    ("sentence", "text", "reason"),
    [
        ("Anna has 50 and Ben has 30.", "Anna has 30 and Ben has 50.", ("amount", "50", "30")),
        ("安娜有50元，本有30元。", "安娜有30元，本有50元。", ("amount", "50元", "30元")),
        (
            "The head office is in Munich.",
            "The head office is in Berlin. Munich has a shop.",
            ("name", "Munich", "Berlin"),
        ),
        ("The man bit the dog.", "The dog bit the man.", ("role", "man bit dog", "dog bit man")),
        ("By law tenants pay for repairs.", "By law landlords pay for repairs.", ("opposite", "tenants", "landlords")),
        ("公司销售额增长。", "公司销售额下降。", ("opposite", "增长", "下降")),
    ],
)
def test_what_is_exchanged_in_a_short_sentence_speaks_against_it(
    sentence: str, text: str, reason: tuple[str, str, str]
) -> None:
    assert [(one.kind, one.words, one.rival) for one in Rules([Passage(text, 1.0, "", "")]).reasons(sentence)] == [
        reason
    ]


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Rooms 50 and 30 are open today.", "Rooms 30 and 50 are open today."),
        ("Ben has 50 and Anna has 30.", "Anna has 30 and Ben has 50."),
        ("Anna works in Munich.", "Anna works in Berlin. Anna works in Berlin and Munich."),
        ("The office in Munich is open.", "The office in Berlin is open, and the office in Munich is open."),
        ("订单为50和30元。", "订单为30和50元。"),
    ],
)
def test_what_is_told_in_another_order_or_of_several_is_borne_out(sentence: str, text: str) -> None:
    assert Rules([Passage(text, 1.0, "", "")]).reasons(sentence) == ()
