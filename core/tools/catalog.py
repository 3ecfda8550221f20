"""The tools there are, by name."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from core.errors import SettingsError
from core.registry import Entry, Registry
from core.tools.base import BaseTool

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=type[BaseTool])

TOOL_REGISTRY: Registry[type[BaseTool]] = Registry(
    "tool",
    {
        "calculator": Entry("core.tools.builtin.calculator:Calculator"),
        "current_time": Entry("core.tools.builtin.current_time:CurrentTime"),
        "storage": Entry("core.tools.builtin.storage:Storage"),
    },
)


class ToolNameError(SettingsError, ValueError):
    """A tool's name is taken, or two names contradict each other."""


def register_tool(name: str, allow_overwrite: bool = False) -> Callable[[T], T]:  # noqa: FBT001, FBT002 - the seed's signature
    """A decorator that puts a `BaseTool` class under `name`.

    Raises:
        ToolNameError: The name is taken, or the class already has another one. It is a `ValueError` too.
    """

    def add(cls: T) -> T:
        if cls.name and cls.name != name:
            raise ToolNameError(f"{cls.__name__} is named {cls.name!r}, which conflicts with {name!r}.")
        if name in TOOL_REGISTRY:
            if not allow_overwrite:
                raise ToolNameError(
                    f"There is already a tool named {name!r}.",
                    hint="Choose another name, or pass allow_overwrite=True.",
                )
            _log.warning("The tool %r already exists; %s takes its place.", name, cls.__name__)
        cls.name = name
        TOOL_REGISTRY.add(name, cls)
        return cls

    return add
