"""What an article tells from its own date, such as "on Wednesday", speaks against no sentence that writes it out."""

from __future__ import annotations

from calendar import day_name
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.claims.reckoned import dates_of, times_of
from core.rag.claims.rules import Rules
from core.rag.document import Passage

COURT = "By Travis Zimpfer on March 2, 2017\nThe commission narrowed the list to three applicants Wednesday evening."
DEBATES = "December 20, 2018 10:04AM PT\nThe committee announced 12 debates, with the first planned for June."
CUP = (
    "Fri 15 Feb 19\nTwo clean sweeps.\n"
    "Both teams took the volleyball cup this year, building on 2018 when the men won it.\nSee 2019 too."
)
PAY = "9 May 2018\nThe gap in pay for the film came to light last year, and a donation of $2 million was made."
HAN = "2017年3月2日\n委员会周三晚上把候选人名单缩小到三人。去年收到三十一份申请。"


def against(sentence: str, *texts: str) -> list[str]:
    return [one.words for one in Rules([Passage(text, 1.0, "", "") for text in texts]).reasons(sentence)]


@pytest.mark.parametrize(
    ("text", "true", "false", "words"),
    [
        (COURT, "On March 1, 2017 the commission narrowed the list to three applicants.", "March 4, 2017", ["4"]),
        (COURT, "On March 1, 2017 the commission narrowed the list to three applicants.", "March 9, 2017", ["9"]),
        (DEBATES, "The committee announced 12 debates, the first planned for June 2019.", "June 2020", ["2020"]),
        (
            DEBATES,
            "The committee announced 12 debates, the first planned for June 2019.",
            "July 2019",
            ["July", "2019"],
        ),
        (CUP, "Both teams took the volleyball cup in 2019, building on how the men won it.", "2017", ["2017"]),
        (PAY, "The gap in pay for the film of 2017 came to light before the donation of $2 million.", "2016", ["2016"]),
        (HAN, "委员会在2017年3月1日把候选人名单缩小到三人。", "2017年3月4日", ["4日"]),
        (HAN, "委员会在2016年收到三十一份申请。", "2015年", ["2015年"]),
    ],
)
def test_a_date_is_borne_out_by_a_word_and_the_date_of_the_text_and_a_wrong_one_is_not(
    text: str, true: str, false: str, words: list[str]
) -> None:
    assert against(true, text) == []
    right = next(one for one in ("March 1, 2017", "June 2019", "2017年3月1日", "2016年", "2019", "2017") if one in true)
    assert against(true.replace(right, false), text) == words


def test_the_date_may_stand_in_another_passage_of_the_same_document_only() -> None:
    head, rest = COURT.split("\n")
    sentence = "On March 1, 2017 the commission narrowed the list to three applicants."
    passages = [Passage(head, 1.0, "news.html", "a"), Passage(rest, 1.0, "news.html", "a")]
    assert not Rules(passages).reasons(sentence)
    elsewhere = [Passage(head, 1.0, "other.html", "b"), Passage(rest, 1.0, "news.html", "a")]
    assert [one.words for one in Rules(elsewhere).reasons(sentence)] == ["1"]


def test_a_date_in_the_midst_of_what_is_told_is_none_of_the_text() -> None:
    told = "On March 2, 2017 the governor, who had been in office since January, opened the new bridge over the river."
    assert dates_of([told]) == []
    assert dates_of(["Fri 15 Feb 19", "2 March 2017", "2017-03-04", "2017年3月5日", "30 February 2017"]) == [
        date(2019, 2, 15),
        date(2017, 3, 2),
        date(2017, 3, 4),
        date(2017, 3, 5),
    ]


@given(st.dates(date(1960, 1, 10), date(2069, 12, 1)), st.integers(-6, 6), st.integers(7, 200))
def test_a_weekday_is_a_day_within_a_week_of_the_date(day: date, step: int, far: int) -> None:
    meant = day + timedelta(step)
    times = times_of(f"They met on {day_name[meant.weekday()]}.", dates_of([f"{day:%d %B %Y}"]))
    assert meant in times.days
    assert all(abs((one - day).days) <= 7 for one in times.days)
    assert day + timedelta(far + 1) not in times.days


PIECES = (
    "12 May 2019",
    "\n",
    "Monday ",
    "last year ",
    "in June ",
    "2018 ",
    "3月",
    "周三",
    "去年",
    "15 Feb 19",
    ". ",
    "30 ",
)


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_any_text_can_be_dated_and_its_own_words_never_speak_against_it(text: str) -> None:
    assert against(text, text) == []
    assert against("In 1950 they met on 3 March.", f"{text}\nThey met.")
