"""What `parlour` does beside opening its own page; a command's module is imported when it is run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from core.errors import extra_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS: Final[Mapping[str, str]] = {  # names to `module:function`, as they are listed
    "audit": "webui.commands.people:audit",
    "backup": "webui.commands.data_folder:backup",
    "batch": "webui.commands.batch:main",
    "check": "webui.commands.agent_files:check",
    "demo": "webui.commands.recording:demo",
    "eval": "webui.commands.eval:main",
    "export": "webui.commands.data_folder:export",
    "groups": "webui.commands.people:groups",
    "import": "webui.commands.bringing:bring_in",
    "ingest": "webui.commands.ingesting:ingest",
    "keys": "webui.commands.keys:main",
    "models": "webui.commands.models:main",
    "move": "webui.commands.moving:move",
    "record": "webui.commands.recording:record",
    "restore": "webui.commands.data_folder:restore",
    "schema": "webui.commands.agent_files:schema",
    "serve": "webui.commands.agent_files:serve",
    "traces": "webui.commands.traces:main",
    "users": "webui.commands.people:users",
}
ABOUT: Final[Mapping[str, str]] = {  # what `parlour --help` says of each
    "audit": "list what was done about people",
    "backup": "write conversations, files and libraries into one file",
    "batch": "answer a file of questions",
    "check": "check the files of agents",
    "demo": "open the page on a recording, played without a model",
    "eval": "ask an agent the questions of a suite and judge its answers",
    "export": "write conversations as Markdown, JSON, HTML or PDF",
    "groups": "list, make and change groups of people",
    "import": "bring conversations in, of Parlour, ChatGPT and others",
    "ingest": "take a file, a folder or a store into a library",
    "keys": "make, list and revoke keys that let programs in",
    "models": "list, download and remove models that run in Parlour itself",
    "move": "carry a data folder into PostgreSQL and S3",
    "record": "record a conversation as a file for `parlour demo`",
    "restore": "make a data folder of a backup",
    "schema": "print the JSON Schema of an agent's file, or of a suite's",
    "serve": "open the page with your agents, or serve one to programs",
    "traces": "show what was done for replies: agents, calls, tools, times",
    "users": "list and invite people with accounts, change roles, delete",
}


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run a command with the arguments that follow it; returns the exit code."""
    module, _, function = COMMANDS[name].partition(":")
    with extra_for(f"The command {name!r}"):
        return int(getattr(import_module(module), function)(arguments))
