"""What services say about tokens."""

from __future__ import annotations

import pytest

from core.llm.service import Service
from core.llm.usage import cost_of, estimated_usage, usage_from
from core.llm.wire.anthropic import usage_of
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
        (  # OpenAI, chat
            {
                "prompt_tokens": 10,
                "completion_tokens": 20,
                "total_tokens": 30,
                "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 12, "audio_tokens": 0},
            },
            Usage(prompt_tokens=10, completion_tokens=20, total_tokens=30, cached_tokens=4, reasoning_tokens=12),
        ),
        (  # OpenAI, responses
            {
                "input_tokens": 10,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens_details": {"reasoning_tokens": 12},
            },
            Usage(prompt_tokens=10, completion_tokens=20, total_tokens=30, cached_tokens=4, reasoning_tokens=12),
        ),
        (  # DashScope mixes the names, and puts pictures beside them
            {
                "input_tokens": 10,
                "output_tokens": 20,
                "total_tokens": 30,
                "image_tokens": 6,
                "input_tokens_details": {"text_tokens": 4, "image_tokens": 6},
                "prompt_tokens_details": {"cached_tokens": 3},
                "output_tokens_details": {"reasoning_tokens": 12, "text_tokens": 8},
            },
            Usage(prompt_tokens=10, completion_tokens=20, total_tokens=30, cached_tokens=3, reasoning_tokens=12),
        ),
        (  # vLLM
            {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30, "prompt_tokens_details": None},
            Usage(prompt_tokens=10, completion_tokens=20, total_tokens=30),
        ),
        (  # beside the others
            {"prompt_tokens": 1, "completion_tokens": 2, "prompt_cache_hit_tokens": 1, "reasoning_tokens": 2},
            Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3, cached_tokens=1, reasoning_tokens=2),
        ),
        (
            {"prompt_tokens": True, "completion_tokens": 2, "prompt_tokens_details": "none", "total_tokens": -1},
            Usage(completion_tokens=2, total_tokens=2),
        ),
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


@pytest.mark.anyio
async def test_what_a_service_puts_into_its_cache_costs_what_it_asks_for_that():
    counts = {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 7}
    fresh = usage_of({**counts, "input_tokens": 15})
    kept = usage_of({**counts, "cache_creation_input_tokens": 10})
    host = "api.anthropic.com"
    service = Service(host, "anthropic", f"https://{host}", host)
    costs = [await cost_of(usage, "claude-opus-4-5", service) for usage in (fresh, kept)]
    assert fresh.prompt_tokens == kept.prompt_tokens == 35
    assert costs == pytest.approx([0.000_260, 0.000_2725])
