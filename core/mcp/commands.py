"""What a command would really start, and what about it deserves a second look."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.errors import ServerUnreachableError
from core.settings import child_environment

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.mcp.settings import ServerSettings

Risk: TypeAlias = Literal["inline_code", "shell", "fetches"]

# What a server inherits: enough to find programs and folders, on each system.
_INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TZ"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh", "cmd", "powershell", "pwsh", "busybox"})
_INTERPRETERS = re.compile(r"(python|pypy|node|nodejs|deno|bun|ruby|perl|php|lua|osascript|tclsh)[\d.]*w?")
_FETCHING = frozenset({"npx", "uvx", "pipx", "bunx", "pnpx", "docker", "podman", "npm", "pnpm", "yarn", "uv"})
_CONTAINERS = frozenset({"docker", "podman"})  # their `-e` sets a variable
_INLINE = re.compile(r"-[a-zA-Z]*[cerp]|--(eval|exec|call|print|command)(=.*)?|eval", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A command as it would be started.

    Args:
        program: The program's whole path.
        args: What it is given.
        risks: `inline_code`: a program text is among the arguments; `shell`: a shell runs it; `fetches`: it may fetch
            the server from a package registry first.
    """

    program: str
    args: tuple[str, ...]
    risks: tuple[Risk, ...] = ()

    @property
    def line(self) -> str:
        """The command in one line, to be shown."""
        return " ".join([self.program, *(repr(arg) if not arg or " " in arg else arg for arg in self.args)])


def resolve_command(settings: ServerSettings) -> Resolved:
    """Find the program of a server, as it is then started. Nothing is run.

    Raises:
        ServerUnreachableError: There is no such program.
    """
    command = (settings.command or "").strip()
    path = environment_of(settings).get("PATH")
    found = shutil.which(command, path=path)
    if found is None:
        raise ServerUnreachableError(
            f"There is no program {command!r}.", hint="Check its command, arguments and environment.", command=command
        )
    return Resolved(str(Path(found).absolute()), settings.args, risks_of(command, settings.args))


def risks_of(command: str, args: Collection[str]) -> tuple[Risk, ...]:
    """What about a command deserves a second look."""
    words = [command, *args]
    if _base(command) == "env":  # runs what follows
        words = list(dropwhile(lambda word: "=" in word or word.startswith("-"), words[1:])) or words
    name = _base(words[0])
    found: list[Risk] = []
    is_program = name in _SHELLS or name in _FETCHING - _CONTAINERS or _INTERPRETERS.fullmatch(name)
    if is_program and any(_INLINE.fullmatch(word) for word in words[1:]):
        found.append("inline_code")
    if name in _SHELLS:
        found.append("shell")
    if name in _FETCHING:
        found.append("fetches")
    return tuple(found)


def environment_of(settings: ServerSettings) -> dict[str, str]:
    """All variables that a server gets: a few harmless ones of ours, and its own."""
    inherited = child_environment(_INHERITED)
    return {name: value for name, value in inherited.items() if not value.startswith("()")} | settings.revealed("env")


def _base(command: str) -> str:
    name = command.replace("\\", "/").rpartition("/")[2].lower()
    return name.removesuffix(".exe").removesuffix(".cmd").removesuffix(".bat")
