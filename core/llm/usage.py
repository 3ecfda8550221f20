"""What a service says about tokens, in one form; and an estimate where it says nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from core.llm.request import ChatRequest
    from core.messages.message import Message

_PER_MESSAGE: Final = 4
_ASKED: Final = ("prompt_tokens", "input_tokens")
_ANSWERED: Final = ("completion_tokens", "output_tokens")
_ASKED_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
_ANSWERED_DETAILS: Final = ("completion_tokens_details", "output_tokens_details")


def usage_from(said: object) -> Usage | None:
    """The usage that a service reports; `None` where there is none, or no numbers in it.

    Reads OpenAI's form (chat and responses), DashScope's, vLLM's and those that lean on them; what is missing, `null`
    or no number of tokens counts as not said.
    """
    counts = _mapping(said)
    asked, answered = _number(counts, *_ASKED), _number(counts, *_ANSWERED)
    if asked is None and answered is None:
        return None
    total = _number(counts, "total_tokens")
    both = (asked or 0) + (answered or 0)
    return Usage(
        prompt_tokens=asked or 0,
        completion_tokens=answered or 0,
        total_tokens=both if total is None else total,
        reasoning_tokens=_detail(counts, _ANSWERED_DETAILS, "reasoning_tokens"),
        cached_tokens=_detail(counts, _ASKED_DETAILS, "cached_tokens", "prompt_cache_hit_tokens"),
    )


def estimated_usage(asked: int, answered: int) -> Usage:
    """Usage that we counted ourselves."""
    return Usage(prompt_tokens=asked, completion_tokens=answered, total_tokens=asked + answered, estimated=True)


def estimated_for(request: ChatRequest, said: Iterable[str], count: Callable[[str], int]) -> Usage:
    """Usage of a call whose service says nothing about tokens, counted by us.

    Args:
        request: What was sent.
        said: The reply's text, thought and arguments.
        count: Counts the tokens of a text.
    """
    asked = sum(_PER_MESSAGE + count(_written(message)) for message in request.messages)
    asked += sum(count(json.dumps(function, ensure_ascii=False)) for function in request.functions)
    return estimated_usage(asked, count("".join(said)))


def _written(message: Message) -> str:
    call = message.function_call
    text = message.get_text_content()
    return f"{text}{call.name}{call.arguments}" if call else text


def _detail(counts: Mapping[str, Any], places: tuple[str, ...], *names: str) -> int:
    """A number that most services put one level down, and a few beside the others."""
    for place in places:
        found = _number(_mapping(counts.get(place)), *names)
        if found is not None:
            return found
    return _number(counts, *names) or 0


def _number(counts: Mapping[str, Any], *names: str) -> int | None:
    return next((counts[name] for name in names if type(counts.get(name)) is int and counts[name] >= 0), None)


def _mapping(said: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", said) if isinstance(said, dict) else {}
