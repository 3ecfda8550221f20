"""Other names of modules that are there: nothing is loaded twice.

In a checkout `parlour.core.…` and `parlour.webui.…` are the modules `core.…` and `webui.…`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType


class SameModules(MetaPathFinder):
    """Finds modules under other names.

    Args:
        real_name: Says what the module of a name is really called; "" for a name that it does not know.
    """

    def __init__(self, real_name: Callable[[str], str]) -> None:
        self._real_name = real_name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec that stands for the real module, which is not run yet; None where there is none."""
        del path, target
        real = self._real_name(fullname)
        found = find_spec(real) if real else None
        if found is None:
            return None
        return ModuleSpec(fullname, _Same(real), is_package=found.submodule_search_locations is not None)


def in_checkout(name: str) -> str:
    """What a module of a wheel is called in a checkout: `core.errors` for `parlour.core.errors`."""
    _, _, below = name.partition("parlour.")
    return below if name.startswith("parlour.") and below.partition(".")[0] in {"core", "webui"} else ""


class _Same(Loader):
    def __init__(self, real: str) -> None:
        self._real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The real module, which runs now if it did not before."""
        del spec
        module = import_module(self._real)
        self._spec = module.__spec__  # the other name's takes its place until `exec_module`
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run again; the module keeps its own name."""
        module.__spec__ = self._spec
        sys.modules.setdefault(module.__name__, module)
