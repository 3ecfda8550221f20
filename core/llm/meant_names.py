"""Names of settings that are almost ours: what was meant is asked for, rather than the setting being lost."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from core.errors import SettingsError
from core.llm.request import OUR_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

MODEL_KEYS: Final = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "cache_age",
        "cache_dir",
        "cache_size",
        "generate_cfg",
        "model",
        "model_server",
        "model_type",
        "moderation",
    }
)
"""What the dict of any model may hold; a back end adds its own."""

_ELSEWHERE: Final = frozenset({"fallback", "fallbacks", "fallback_model", "fallback_models", "backup", "backups"})
"""Names that other libraries have for what Parlour has not: they would be ignored without a word."""

_OURS: Final = OUR_KEYS | {"seed", "stop"}
_THEIRS: Final = frozenset({"max_new_tokens", "max_output_tokens", "parallel_tool_calls", "speed"})
"""Names that services have themselves and that look like one of ours; a test goes through what vendors know."""
_NEAR: Final = 0.8


def check_generate_names(names: Iterable[str]) -> None:
    """Whether no name in a `generate_cfg` is almost one of ours; what is not near any goes to the service.

    Raises:
        SettingsError: One is; the hint says which was meant.
    """
    for name in names:
        if name not in _OURS and (meant := _meant(name)):
            raise _unknown("generate_cfg has", name, meant)


def check_model_names(names: Iterable[str], known: Iterable[str] = ()) -> None:
    """Whether no name in the dict of a model is almost one that it may hold.

    Args:
        names: Those given.
        known: What the back end knows beside `MODEL_KEYS`.

    Raises:
        SettingsError: One is; the hint says which was meant.
    """
    every = MODEL_KEYS | set(known)
    for name in names:
        if name in _ELSEWHERE and name not in every:
            hint = "A dict is one model: catch ModelServiceError, and ask the next one."
            raise SettingsError(f"A model has no setting {name!r}.", hint=hint, name=name)
        if name not in every and (meant := _nearest(name, every)):
            raise _unknown("A model has", name, meant)


@lru_cache(maxsize=256)
def _meant(name: str) -> str:
    return "" if name in _THEIRS else _nearest(name, _OURS)


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(str(name).lower().replace("-", "_"), sorted(names), n=1, cutoff=_NEAR)
    return near[0] if near else ""


def _unknown(where: str, name: str, meant: str) -> SettingsError:
    return SettingsError(f"{where} no setting {name!r}.", hint=f"Did you mean {meant!r}?", name=name, meant=meant)
