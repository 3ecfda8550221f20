"""Parlour under the one name that an installed wheel has: `from parlour import Assistant`.

In a wheel the library is `parlour.core` and the page `parlour.webui`; in a checkout both stand at the top, and here are
other names of the same modules.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import core as library

if TYPE_CHECKING:
    from core import *  # noqa: F403 - the list is below

__all__ = library.__all__  # pyright: ignore[reportUnsupportedDunderAll] - the library's own list


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'parlour' has no attribute {name!r}")
    return getattr(library, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if library.__name__ == "core":  # a checkout
    from parlour.same_modules import SameModules

    sys.meta_path.insert(0, SameModules())
