"""What a service says about tokens, in one form; and an estimate where it says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping


def usage_from(said: object) -> Usage | None:
    """The usage of an OpenAI-shaped dict; `None` where there is none, or no numbers in it."""
    if not isinstance(said, dict):
        return None
    counts = cast("Mapping[str, Any]", said)
    asked, answered = (
        _number(counts, "prompt_tokens", "input_tokens"),
        _number(counts, "completion_tokens", "output_tokens"),
    )
    if asked is None and answered is None:
        return None
    total = _number(counts, "total_tokens")
    both = (asked or 0) + (answered or 0)
    return Usage(
        prompt_tokens=asked or 0, completion_tokens=answered or 0, total_tokens=both if total is None else total
    )


def estimated_usage(asked: int, answered: int) -> Usage:
    """Usage that we counted ourselves."""
    return Usage(prompt_tokens=asked, completion_tokens=answered, total_tokens=asked + answered, estimated=True)


def _number(counts: Mapping[str, Any], *names: str) -> int | None:
    return next((counts[name] for name in names if isinstance(counts.get(name), int)), None)
