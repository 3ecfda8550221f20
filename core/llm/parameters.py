"""How a reply is written, as a reader may choose it: which of these a model takes, and under which names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from core.known_hosts import is_dashscope

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN: Final = ("temperature", "top_p", "max_tokens", "seed")
"""Parameters that every back end takes by these names."""

_OPENAI: Final = re.compile(r"(?:^|/)(?:o[134]\b|gpt-oss)", re.IGNORECASE)
_GPT_5: Final = re.compile(r"(?:^|/)gpt-5", re.IGNORECASE)
_GEMINI: Final = re.compile(r"gemini-(?:2\.5|[3-9])", re.IGNORECASE)
_SWITCHED: Final = re.compile(r"qwen-?3|qwen-(?:plus|turbo|flash)", re.IGNORECASE)
_NEVER: Final = re.compile(r"instruct|coder|-vl|omni|audio|embedding", re.IGNORECASE)

Efforts = dict[str, dict[str, Any]]


def efforts_of(model: str, address: str, *, here: bool = False) -> Efforts:
    """How long a model may think before it answers: `off`, `short` or `long`, and what each is in `generate_cfg`.

    Args:
        model: Its name.
        address: Of its service; empty for a model of this process.
        here: Whether it runs in this process.

    Returns:
        Only what the model takes; empty for one that is not known to think.
    """
    if _GPT_5.search(model):
        if "chat" in model.lower():  # the ones that only talk
            return {}
        return {name: {"reasoning_effort": sent} for name, sent in _levels("minimal").items()}
    if _OPENAI.search(model) or _GEMINI.search(model):
        return {name: {"reasoning_effort": sent} for name, sent in _levels().items()}
    if not _SWITCHED.search(model) or _NEVER.search(model):
        return {}
    if here or is_dashscope(address):
        return {"off": {"enable_thinking": False}, "long": {"enable_thinking": True}}
    if not re.search(r"qwen-?3", model, re.IGNORECASE):
        return {}
    # Servers of open weights hand it to the model's chat template.
    template = {"off": {"enable_thinking": False}, "long": {"enable_thinking": True}}
    return {name: {"chat_template_kwargs": sent} for name, sent in template.items()}


def _levels(off: str = "") -> dict[str, str]:
    return {**({"off": off} if off else {}), "short": "low", "long": "high"}


def generate_of(parameters: Mapping[str, Any], efforts: Efforts) -> dict[str, Any]:
    """Chosen parameters as `generate_cfg`, without those that the model is known not to take.

    Args:
        parameters: By name: those of `PLAIN`, and `effort`, one of `off`, `short` and `long`.
        efforts: As `efforts_of` gives them.

    Returns:
        The settings. `if_taken` among them names those that are left out where the service refuses them.
    """
    plain = {name: parameters[name] for name in PLAIN if parameters.get(name) is not None}
    chosen = {**plain, **efforts.get(str(parameters.get("effort") or ""), {})}
    return {**chosen, "if_taken": sorted(chosen)} if chosen else {}
