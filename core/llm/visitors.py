"""Who a model is asked for, where the hardware counts by visitor: the newest token that their requests showed.

On ZeroGPU the platform puts a token into each request (`X-IP-Token`), good for minutes, by which it knows whose time a
GPU takes. It is kept in memory alone.
"""

from __future__ import annotations

import itertools
from contextvars import ContextVar
from typing import Final, NamedTuple

from core.bridge.pool import BoundedDict
from core.settings import named_key

TOKEN_HEADER: Final = b"x-ip-token"
_MOST: Final = 10_000


class _Shown(NamedTuple):
    number: int
    token: str
    name: str


_NONE: Final = _Shown(-1, "", "")
_NUMBERS: Final = itertools.count()
_NEWEST: Final = BoundedDict[str, _Shown](_MOST)
_SHOWN: Final[ContextVar[_Shown]] = ContextVar("what the request showed that this task began with", default=_NONE)
WORKING_FOR: Final[ContextVar[str]] = ContextVar("the owner that this task works for, whatever began it", default="")


def on_zero_gpu() -> bool:
    """Whether this is a Space with ZeroGPU hardware, as the platform's own package decides it."""
    return named_key("SPACES_ZERO_GPU").lower() in {"1", "t", "true"}


def came(name: str, token: str) -> None:
    """A request came with a token; what this task does from now on is for its sender.

    Args:
        name: The owner who sent it; "" where it shows a key, or is nobody's.
    """
    shown = _Shown(next(_NUMBERS), token, name)
    if name:
        _NEWEST[name] = shown
    _SHOWN.set(shown)
    WORKING_FOR.set(name)


def newest_token() -> str:
    """The newest token of whom this task works for; "" where there is none."""
    name, shown = WORKING_FOR.get(), _SHOWN.get()
    if shown.name not in {"", name}:  # what somebody else began pays with nothing of hers
        shown = _NONE
    return max(shown, _NEWEST.get(name, _NONE)).token
