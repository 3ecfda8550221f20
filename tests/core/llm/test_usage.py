"""What services say about tokens."""

from __future__ import annotations

import pytest

from core.llm.usage import estimated_usage, usage_from
from core.messages.message import Usage


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        (
            {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
            Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3),
        ),
        ({"input_tokens": 1, "output_tokens": 2}, Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3)),
        ({"prompt_tokens": 5, "completion_tokens": None}, Usage(prompt_tokens=5, total_tokens=5)),
        ({"total_tokens": 5}, None),
        ({}, None),
        (None, None),
        ("many", None),
    ],
)
def test_usage_is_read_in_every_form(said, usage):
    assert usage_from(said) == usage


def test_an_estimate_says_that_it_is_one():
    assert estimated_usage(1, 2) == Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3, estimated=True)
