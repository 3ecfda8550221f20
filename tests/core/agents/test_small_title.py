"""Small models name an exchange by its own words: what they are asked, what they may answer, and when none is."""

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
def test_a_title_is_made_of_the_question_s_words_in_their_order(
    question: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    assert [title for title in good if not may_write(question, title)] == []
    assert [title for title in bad if may_write(question, title)] == []


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
        ("请总结这份文件\nreport.pdf", "这份报告介绍了长江大桥的维修过程。", "长江大桥的维修", "长江大桥的维修"),
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
    title = found.title(said)
    assert set(title.casefold()) <= {*f"{question} {reply} ".casefold()}
    assert "\n" not in title
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
