"""Landlock, a filter of system calls and limits: no namespaces, so it works in containers too."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from core.tools.sandbox import surroundings
from core.tools.sandbox.box import Box, Places, spec
from core.tools.sandbox.drivers import Launch

if TYPE_CHECKING:
    from collections.abc import Sequence

_CREATE_RULESET: Final = 444
_ONLY_VERSION: Final = 1
_SIGNALS_SINCE: Final = 6  # the version that keeps signals inside
_NOT_DUMPABLE: Final = 4  # PR_SET_DUMPABLE


def landlock_version() -> int:
    """The version of Landlock that this machine's kernel has; 0 for none."""
    if not surroundings.machine():
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_ONLY_VERSION))
    return max(int(answer), 0)


def hide_environment() -> None:
    """Close this process's memory and environment to others of the same user; where that is root, they are another."""
    if os.geteuid() != 0:
        libc: Any = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_NOT_DUMPABLE, 0, 0, 0, 0)


class Landlock:
    """Rules for files by Landlock; sockets, signals and much else by the filter."""

    name = "landlock"
    exempt: tuple[str, ...] = ()

    def lacking(self) -> str:
        """Why it cannot even be tried."""
        if not surroundings.machine():
            return "it needs Linux on x86_64 or aarch64"
        return "" if landlock_version() else "this kernel has no Landlock, or it is switched off"

    def version(self) -> str:
        """The kernel's version of Landlock."""
        return str(landlock_version())

    def inside(self, box: Box) -> Places:
        """The same as outside."""
        return box.here

    def launch(self, box: Box, words: Sequence[str], *, info: int | None = None) -> Launch:
        """The launcher itself."""
        del info
        if box.user is None:
            hide_environment()
        version = landlock_version()
        how = {
            "uid": box.user,
            "landlock": version,
            "anchors": surroundings.hidden_prefixes() if box.user is not None else (),
            "already": surroundings.processes_of_user() if box.user is None else 0,
            "own_signals": box.user is None and version < _SIGNALS_SINCE,
        }
        box.put("spec.json", spec(box, box.here, words, how))
        run = box.here.run
        return Launch((sys.executable, "-I", "-S", str(run / "confine.py"), str(run / "spec.json")), box.here)

    def end(self, box: Box) -> Sequence[str]:
        """Nothing more."""
        del box
        return ()
