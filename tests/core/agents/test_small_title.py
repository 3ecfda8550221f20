"""Small models name an exchange by phrases of it: what they are asked, what they may answer, and when none is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.small_title import naming
from core.agents.title import LONGEST_TITLE, make_title
from core.errors import ModelUnavailableError
from core.languages import Lang
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


class Small(ScriptedModel):
    """A small model that is held to a grammar: what it answers here is what a grammar would let through, or not."""

    small = True
    takes_grammar = True


def may_write(question: str, title: str, reply: str = "") -> bool:
    """Whether the grammar lets a title through: its rules are regular, and followed here one by one."""
    found = naming(question, reply)
    assert found is not None
    rules = dict(line.split(" ::= ", 1) for line in found.grammar.splitlines())
    parts = re.compile(r'"((?:[^"\\]|\\.)*)"|([a-z]\w*)|([()|])')

    def ends(rule: str, starts: set[int]) -> set[int]:
        return alternatives([*parts.finditer(rules[rule])], starts)

    def alternatives(tokens: list[re.Match[str]], starts: set[int]) -> set[int]:
        found, now, at = set[int](), set(starts), 0
        while at < len(tokens):
            text, name, mark = tokens[at][1], tokens[at][2], tokens[at][3]
            if mark == "|":
                found |= now
                now = set(starts)
            elif mark == "(":
                depth, end = 1, at
                while depth:
                    end += 1
                    depth += {"(": 1, ")": -1}.get(tokens[end][3] or "", 0)
                now = alternatives(tokens[at + 1 : end], now)
                at = end
            elif name:
                now = ends(name, now) if now else now
            else:
                plain = re.sub(r"\\(.)", r"\1", text)
                now = {one + len(plain) for one in now if title.startswith(plain, one)}
            at += 1
        return found | now

    return len(title) in ends("root", {0})


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        (
            "Where was the first settlement in Victoria?",
            ("First settlement in Victoria", "The first settlement in Victoria"),
            # Too little, without the name, out of order, an answer, with a joint at its end, the question itself.
            (
                "Victoria",
                "First settlement",
                "Victoria first settlement",
                "Sullivan Bay",
                "First settlement in",
                "Where",
            ),
        ),
        (
            "How do I read a file in Python?",
            ("Read a file in Python",),
            ("Python", "Read a in Python", "I read a file"),
        ),
        (
            "please explain to me like I'm five why the sky is blue",
            ("Why the sky is blue",),
            ("Please explain", "Why the"),
        ),
        ("What is 17 times 23?", ("17 times 23",), ("17", "391", "What is 17 times 23")),
        ("毒马案是怎样被揭发的？", ("毒马案被揭发",), ("毒马案", "毒马案是", "怎样", "马案被揭发")),
        ("北京有哪些好玩的地方？", ("北京好玩的地方",), ("北京好玩的方", "京好玩的地方", "北京好玩的")),
        ("《大小姐》的主角叫什么？", ("《大小姐》的主角",), ("主角", "大小姐的主角", "《大小姐》的主")),
        ("38乘以47等于多少？", ("38乘以47",), ("38乘以47等于多少",)),
    ],
)
def test_a_title_is_words_that_stand_together_in_the_question(
    question: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    assert [title for title in good if not may_write(question, title)] == []
    assert [title for title in bad if may_write(question, title)] == []


TITLES = {
    "Within how many days must damage be reported?": (),
    "Why is the sky blue?": (),
    "How long does a swallow live in Africa?": (),
    "What is cheese made of?": (),
    "Is the bridge over the river safe?": (),
    "can you help me fix my bread, it does not rise": ("fix my bread",),
    "What is the difference between a crow and a raven?": (
        "the difference between a crow and a raven",
        "difference between a crow and a raven",
    ),
    "How do I fill out a tax form in Germany?": ("fill out a tax form in Germany",),
    "Innerhalb wie vieler Tage muss ein Schaden gemeldet werden?": (),
    "Warum ist der Himmel blau?": (),
    "Wie backe ich ein Brot ohne Hefe?": ("Brot ohne Hefe",),
    "Was ist die Hauptstadt der Schweiz?": ("Hauptstadt der Schweiz",),
    "Wann wurde die Berliner Mauer gebaut?": ("Berliner Mauer",),
    "Kannst du mir den Unterschied zwischen Butter und Margarine erklären?": (
        "Unterschied zwischen Butter und Margarine",
    ),
    "Quelle est la capitale de la France ?": (),
    "为什么天空是蓝色的？": (),
    "感冒了应该吃什么药？": (),
    "合同中规定损坏必须在多少天内报告？": (),
    "水的沸点是多少度？": ("水的沸点",),
    "怎样申请德国的工作签证？": ("德国的工作签证", "工作签证"),
    "人工智能会取代程序员吗？": ("人工智能会取代程序员",),
}
"""Questions as people ask them, with all that may be their title; with none their first words stay."""


@pytest.mark.parametrize("question", TITLES)
def test_nothing_but_phrases_of_a_question_may_be_its_title(question: str) -> None:
    found = naming(question, "")
    assert (found.titles if found else ()) == TITLES[question]


@pytest.mark.parametrize(
    ("question", "reply", "titles"),
    [
        (
            "What year did the first railway in Japan open?",
            "The first railway in Japan opened in 1872.",
            ("the first railway in Japan", "first railway in Japan"),
        ),
        ("What year did the first railway in Japan open?", "In 1872.", ()),
        ("How long do swallows live in Africa?", "Swallows live in Africa for a winter.", ("swallows live in Africa",)),
        (
            "How many people must the embassy of South Korea ask?",
            "The embassy of South Korea must ask five.",
            ("the embassy of South Korea", "embassy of South Korea"),
        ),
    ],
)
def test_of_a_question_that_turns_words_around_those_stand_together_that_the_reply_has_together(
    question: str, reply: str, titles: tuple[str, ...]
) -> None:
    found = naming(question, reply)
    assert (found.titles if found else ()) == titles


async def test_a_question_without_a_phrase_keeps_its_first_words_and_nobody_is_asked() -> None:
    model = Small("Within days must damage reported")
    made = await make_title("Within how many days must damage be reported?", "Within 7 days.", model, "en")
    assert (made.title, made.usage, model.requests) == ("", None, [])


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("hello", "Hello! How can I help?"),
        ("Hi, who are you?", "I am an assistant."),
        ("你好", "你好！有什么可以帮您？"),
        ("你是谁？", "我是助手。"),
        ("", ""),
        ("?!", "So."),
        ("Summarise this file", "I'm sorry, I cannot open files."),
        ("请总结这份文件", "抱歉，我无法打开文件。"),
        ("Summarise this file", ""),
    ],
)
async def test_what_names_nothing_keeps_its_first_words_and_nobody_is_asked(question: str, reply: str) -> None:
    model = Small("The Answer")
    made = await make_title(question, reply, model, "en")
    assert (made.title, made.usage, model.requests) == ("", None, [])


@pytest.mark.parametrize(
    ("question", "reply", "said", "title"),
    [
        (
            "Summarise this document\nduck.pdf",
            "This document tells of wild ducks in ponds.",
            "Wild ducks",
            "Wild ducks",
        ),
        ("duck.pdf", "It tells of wild ducks in ponds.", "Wild ducks in ponds", "Wild ducks in ponds"),
        (
            "请总结这份文件\nreport.pdf",
            "这份报告介绍了长江大桥的维修过程。",
            "长江大桥的维修过程",
            "长江大桥的维修过程",
        ),
        ("What is 17 times 23?\nsum.txt", "391", "17 times 23", "17 times 23"),
        ("Tell me about node.js please", "It runs scripts on servers.", "Node.js", "Node.js"),
    ],
)
async def test_of_a_question_that_only_points_to_a_file_the_reply_tells_the_subject(
    question: str, reply: str, said: str, title: str
) -> None:
    assert (await make_title(question, reply, Small(said), "en")).title == title


@pytest.mark.parametrize(
    "said",
    [
        "",
        "The Answer",
        "Title: settlement",
        "<exchange>",
        "Sullivan Bay",
        "Where was the first settlement in Victoria?",
        "The",
        "Write only the subject",
        "settlement " * 400,
    ],
)
async def test_what_a_model_without_bounds_would_write_is_no_title(said: str) -> None:
    made = await make_title("Where was the first settlement in Victoria?", "At Sullivan Bay.", Small(said), "en")
    assert made.title == ""
    assert made.usage is not None


async def test_the_call_is_short_bounded_and_told() -> None:
    model = Small(Reply("First settlement in Victoria", usage=(210, 5)))
    made = await make_title("Where was the first settlement in Victoria?", "x " * 5_000, model, "zh")
    assert made.title == "First settlement in Victoria"
    assert made.usage is not None
    assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (210, 5)
    (request,) = model.requests
    assert (request.purpose, request.lang) == ("title", "en")  # the language is the question's
    assert request.generate["grammar"].startswith("root ::= ")
    assert sum(model.count_tokens(message.get_text_content()) for message in request.messages) < 300
    assert (
        await make_title("Why is bread flat?", "So.", Small(ModelUnavailableError(message="down")), "en")
    ).title == ""


async def test_a_model_whose_makers_name_no_chinese_is_asked_for_no_chinese_title() -> None:
    model = Small("毒马案被揭发")
    assert (await make_title("毒马案是怎样被揭发的？", "不知道。", model, "zh")).title == "毒马案被揭发"
    english = Small("毒马案被揭发")
    english.languages = frozenset[Lang](("en",))
    assert (await make_title("毒马案是怎样被揭发的？", "不知道。", english, "zh")).title == ""
    assert english.requests == []


@given(st.text(max_size=400), st.text(max_size=300), st.text(max_size=120))
def test_whatever_is_asked_and_said_a_title_is_a_line_of_the_exchange_s_words(
    question: str, reply: str, said: str
) -> None:
    found = naming(question, reply)
    if found is None:
        return
    together = "".join(f"{question} {reply}".split()).casefold()
    if found.lang == "en":
        assert all("".join(title.split()).casefold() in together for title in found.titles)
    assert found.titles
    assert not any("\n" in title or len(title) > LONGEST_TITLE for title in found.titles)
    assert found.title(said) in {"", *map(found.title, found.titles)}
    assert found.grammar.startswith("root ::= ")


def test_a_very_long_question_costs_little() -> None:
    for text in (
        "word" * 50_000,
        "Alpha of the beta " * 20_000,
        "第一种东西的价格" * 20_000,
        "why " * 50_000,
        "《" * 50_000,
    ):
        found = naming(text, text)
        assert found is None or len(found.grammar) < 200_000
    assert LONGEST_TITLE == 60


def test_a_greeting_that_is_asked_for_names_nothing() -> None:
    assert naming("Say hello.", "Hello! How can I help you?") is None
