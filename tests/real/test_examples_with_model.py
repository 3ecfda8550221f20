"""Two of the examples with real weights, the smallest there are: they run, and something is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.examples.test_examples import example

pytestmark = [pytest.mark.weights, pytest.mark.slow]

LLM: dict[str, Any] = {
    "model_type": "llama_cpp",
    "model": "smollm2-135m",
    "threads": 1,
    "generate_cfg": {"temperature": 0, "max_tokens": 40},
}


def test_a_long_dialogue_with_a_real_model() -> None:
    answers = example("long_dialogue").main(LLM)
    assert len(answers) == 2
    assert all(answers)


def test_an_agent_of_ones_own_with_a_real_model() -> None:
    draft, better = example("custom_agent").main(LLM)
    assert draft
    assert better
