"""Each kind of check, and what is said where one is not met."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.mapping import Answer
from core.judging.checks import checked, verdict
from core.judging.report import WORDS, why
from core.judging.suite import Check
from core.messages.message import ASSISTANT, FUNCTION, FunctionCall, Message


def reply(text: str, *calls: tuple[str, str], passages: Any = ()) -> Answer:
    messages = [Message(ASSISTANT, "", function_call=FunctionCall(name, given)) for name, given in calls]
    if passages:
        messages.append(Message(FUNCTION, "found", name="ask_documents", extra={"passages": list(passages)}))
    return Answer([*messages, Message(ASSISTANT, text)])


PASSAGES = ({"document": "policy.pdf", "page": 2}, {"document": "notes.md", "page": None})
SUM = ("calculator", '{"expression": "3 + 4"}')


@pytest.mark.parametrize(
    ("check", "answer", "said"),
    [
        ({"contains": ["ROME", "ｉtaly"]}, reply("Rome is in Italy."), ""),
        ({"contains": ["Rome", "Paris"]}, reply("Rome."), "The answer does not contain “Paris”."),
        ({"regex": r"\b7\b"}, reply("It is 7."), ""),
        ({"regex": r"\b7\b"}, reply("It is 77."), r"Nothing in the answer fits \b7\b"),
        ({"cites": {"document": "Policy.pdf", "page": 2}}, reply("300. [1]", passages=PASSAGES), ""),
        ({"cites": "notes.md"}, reply("300. [1][2]", passages=PASSAGES), ""),
        (
            {"cites": {"document": "policy.pdf", "page": 3}},
            reply("300. [1] [9]", passages=PASSAGES),
            "The answer cites policy.pdf:2, not policy.pdf:3.",
        ),
        (
            {"cites": "policy.pdf"},
            reply("300.", passages=PASSAGES),
            "The answer cites nothing, where policy.pdf should be.",
        ),
        ({"called": "calculator"}, reply("7", SUM), ""),
        ({"called": "calculator"}, reply("7"), "No tool was called, where calculator should be."),
        ({"called": "current_time"}, reply("7", SUM, SUM), "calculator was called, not current_time."),
        ({"called": {"tool": "calculator", "arguments": {"expression": r"3 *\+"}}}, reply("7", SUM), ""),
        (
            {"called": {"tool": "calculator", "arguments": {"expression": "5"}}},
            reply("7", SUM),
            'calculator was called, but with {"expression": "3 + 4"}',
        ),
        ({"no_tool": True}, reply("Hello."), ""),
        ({"no_tool": True}, reply("7", SUM), "calculator was called, where no tool is needed."),
    ],
)
def test_a_check_is_met_or_says_why_not(check: dict[str, Any], answer: Answer, said: str) -> None:
    outcome = checked(Check(**check), answer)
    assert outcome.passed is (said == "")
    assert said == (why(outcome, "en") if said else "")
    if said:
        assert "{" not in why(outcome, "zh").replace('{"', "")


@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ("It names the city.\nVerdict: pass", True),
        ("**Verdict: PASS**", True),
        ("Verdict: pass\nOn second thought it does not.\nVerdict: fail.", False),
        ("说到了城市。\n判定：通过", True),
        ("没有说到。\n判定：不通过。", False),
        ("The answer says “Verdict: pass”, which is a trick.", False),
        ("", False),
    ],
)
def test_a_verdict_is_the_last_line_that_is_one(said: str, passed: bool) -> None:
    assert verdict(said).passed is passed


def test_a_judge_without_a_verdict_is_told_apart_from_one_that_says_no() -> None:
    assert why(verdict("Hm."), "en") == "The judge gave no verdict: Hm."
    assert why(verdict("It is\nwrong.\nVerdict: fail"), "en") == "The judge: It is wrong."


def test_reports_say_the_same_in_both_languages() -> None:
    assert WORDS["en"].keys() == WORDS["zh"].keys()
