"""What happened and what to do next are two sentences, however a service or a program wrote the first."""

from __future__ import annotations

import pytest

from core import ModelRetry, tool
from core.agents.basic import FnCallAgent
from core.errors import ParlourError, ended
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Error code: 400. failing with 400", "Error code: 400. failing with 400."),
        ("x must be odd", "x must be odd."),
        ("x must be odd\n", "x must be odd."),
        ("It is so.", "It is so."),
        ("Is it so?", "Is it so?"),
        ("It said “no.”", "It said “no.”"),
        ("It said 'no'", "It said 'no'."),
        ("没有。", "没有。"),
        ("", ""),
    ],
)
def test_a_sentence_of_others_has_its_full_stop_before_ours(said: str, told: str):
    assert ended(said) == told
    assert str(ParlourError(said, hint="Ask again.")) == f"{told} Ask again.".strip()
    assert str(ParlourError(said)) == said


def test_a_call_that_goes_back_has_a_full_stop_before_what_to_do():
    @tool(retries=1)
    def odd(x: int) -> str:
        raise ModelRetry("x must be odd")

    model = ScriptedModel(*[Said(calls=[("odd", {"x": number})]) for number in (2, 4)], "Done.")
    assert [one.result for one in FnCallAgent([odd], model).ask("?").calls] == [
        "x must be odd. Call it again with corrected arguments.",
        "x must be odd. This was the last try of 2: answer without it.",
    ]
