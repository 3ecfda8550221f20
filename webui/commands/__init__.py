"""What `parlour` does beside opening its own page: one module for each word, imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS: Final[Mapping[str, str]] = {
    "backup": "webui.commands.backup",
    "batch": "webui.commands.batch",
    "check": "webui.commands.check",
    "eval": "webui.commands.eval",
    "export": "webui.commands.export",
    "restore": "webui.commands.restore",
    "schema": "webui.commands.schema",
    "serve": "webui.commands.serve",
}


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run a command with what stands after it; returns the exit code."""
    return int(import_module(COMMANDS[name]).main(arguments))
