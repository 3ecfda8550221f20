"""What runs code for conversations, on this machine or on others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from core.tools.sandbox.results import CodeResult
    from core.tools.sandbox.self_test import Choice


class CodeRunner(Protocol):
    """Kernels of this process, or those of sandboxes on machines of their own."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the machines on which code runs; none where it is this one."""
        ...

    @property
    def choice(self) -> Choice | None:
        """Which sandbox holds; `None` before that is known."""
        ...

    def start(self) -> None:
        """Begin to find out, in the background."""
        ...

    async def run(
        self,
        key: str,
        code: str,
        *,
        owner: str = "",
        files: Mapping[str, Path] | None = None,
        timeout: float = ...,
        progress: Callable[..., None] | None = None,
    ) -> CodeResult:
        """Run code where `key` has run some before; it remembers what that defined. Raises ToolError."""
        ...

    def warm(self) -> None:
        """Have an interpreter ready before it is asked for."""
        ...

    async def forget(self, key: str) -> None:
        """End what runs for a conversation, with all its files."""
        ...

    async def aclose(self) -> None:
        """End all that this process began."""
        ...
