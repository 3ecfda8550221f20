"""Processes below this one, of which some may end while they are looked at."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import psutil


def kernels_below(but: Collection[int] = ()) -> list[psutil.Process]:
    """Those of interpreters.

    Args:
        but: Numbers of those that are left out, as they are of other tests.
    """
    return [one for one in psutil.Process().children(recursive=True) if one.pid not in but and _is_kernel(one)]


def named_below(names: Collection[str], but: Collection[int] = ()) -> list[psutil.Process]:
    """Those of programs of these names."""
    return [one for one in psutil.Process().children(recursive=True) if one.pid not in but and _name_of(one) in names]


def _is_kernel(one: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return "kernel.py" in " ".join(one.cmdline())
    return False


def _name_of(one: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return one.name()
    return ""
