"""In a checkout: `parlour.core.…` and `parlour.webui.…` are the modules `core.…` and `webui.…`, not copies of them."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_OTHER_NAMES = (["parlour", "core"], ["parlour", "webui"])


class SameModules(MetaPathFinder):
    """Finds a module under its name in a wheel."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec that stands for the module of the checkout; None for every other name."""
        del path, target
        if fullname.split(".")[:2] not in _OTHER_NAMES:
            return None
        module = import_module(fullname.removeprefix("parlour."))
        return ModuleSpec(fullname, _Same(module), is_package=hasattr(module, "__path__"))


class _Same(Loader):
    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that is there already."""
        del spec
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run again; the module keeps its own name."""
        module.__spec__ = self._spec
        sys.modules.setdefault(module.__name__, module)
