"""The ways to lock code in, best first, as a table; which one is used is decided by trying, never by what is installed.

`bubblewrap` and `landlock` need nothing but Linux. A container engine is taken only where the administrator says so:
its socket is as good as the whole machine to whoever holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from core.tools.sandbox.box import Box, Places


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that starts a program inside a box.

    Args:
        command: The command and its arguments.
        inner: The box's folders as the program sees them.
        own_quota: Whether the driver itself bounds the work folder; else somebody must watch it.
        job_of_process: Whether the work folder is reached through the first process inside, whose number is told on
            the descriptor that follows `--info-fd` in the command.
    """

    command: tuple[str, ...]
    inner: Places
    own_quota: bool = False
    job_of_process: bool = False


class Driver(Protocol):
    """One way to lock code in. `exempt` are cases of the self-test that do not matter in it."""

    name: str
    exempt: tuple[str, ...]

    def lacking(self) -> str:
        """Why it cannot even be tried; empty where it can."""
        ...

    def version(self) -> str:
        """Changes when its answer to the self-test may change."""
        ...

    def launch(self, box: Box, words: Sequence[str], *, info: int | None = None) -> Launch:
        """Write the launcher's orders into the box; the command that starts `words` (a program in the run folder)."""
        ...

    def inside(self, box: Box) -> Places:
        """The box's folders as a program inside sees them."""
        ...

    def end(self, box: Box) -> Sequence[str]:
        """A command that ends the box besides killing the process; empty where that is enough."""
        ...


DRIVERS: Final[Registry[type[Driver]]] = Registry(
    "sandbox",
    {
        "bubblewrap": Entry("core.tools.sandbox.bubblewrap:Bubblewrap"),
        "landlock": Entry("core.tools.sandbox.landlock:Landlock"),
        "docker": Entry("core.tools.sandbox.docker:Docker"),
        "runsc": Entry("core.tools.sandbox.docker:Runsc"),
    },
)
ON_THEIR_OWN: Final = ("bubblewrap", "landlock")
"""Those that are tried unless the settings name one."""


def stated(path: Path | None) -> str:
    """When a program was last replaced."""
    return f"{path.stat().st_mtime_ns}" if path is not None and path.exists() else ""
