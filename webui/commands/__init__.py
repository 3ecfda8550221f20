"""What `parlour` does beside opening its own page; a command's module is imported when it is run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from core.errors import extra_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS: Final[Mapping[str, str]] = {  # names to `module:function`
    "audit": "webui.commands.people:audit",
    "backup": "webui.commands.data_folder:backup",
    "batch": "webui.commands.batch:main",
    "check": "webui.commands.agent_files:check",
    "demo": "webui.commands.recording:demo",
    "eval": "webui.commands.eval:main",
    "models": "webui.commands.models:main",
    "export": "webui.commands.data_folder:export",
    "ingest": "webui.commands.ingesting:ingest",
    "import": "webui.commands.bringing:bring_in",
    "record": "webui.commands.recording:record",
    "keys": "webui.commands.keys:main",
    "move": "webui.commands.moving:move",
    "restore": "webui.commands.data_folder:restore",
    "schema": "webui.commands.agent_files:schema",
    "serve": "webui.commands.agent_files:serve",
    "traces": "webui.commands.traces:main",
    "users": "webui.commands.people:users",
    "groups": "webui.commands.people:groups",
}


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run a command with the arguments that follow it; returns the exit code."""
    module, _, function = COMMANDS[name].partition(":")
    with extra_for(f"The command {name!r}"):
        return int(getattr(import_module(module), function)(arguments))
