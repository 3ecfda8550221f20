"""Credentials are checked once, before a tool's first call; calls that begin together wait for the same check."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from core.bridge.endings import contained
from core.tools.base import BaseTool
from core.tools.failures import tried_to_end

if TYPE_CHECKING:
    from core.tools.threads import ToolThreads


class Credentials:
    """The checks of one turn; what was found good counts for as long as the tool lives.

    Args:
        threads: Where checks run that are plain functions.
    """

    _good: ClassVar[WeakSet[BaseTool]] = WeakSet()

    def __init__(self, threads: ToolThreads) -> None:
        self._threads = threads
        self._checks: dict[int, asyncio.Task[None]] = {}

    async def check(self, tool: BaseTool) -> None:
        """Check the tool's credentials unless that was done.

        Raises:
            SettingsError: They are missing or refused; the next call tries again.
        """
        if type(tool).validate_credentials is BaseTool.validate_credentials or tool in self._good:
            return
        check = self._checks.get(id(tool))
        if check is None or (check.done() and tool not in self._good):
            check = self._checks[id(tool)] = asyncio.create_task(self._checked(tool))
        await asyncio.shield(check)

    def close(self) -> None:
        """Call off what is still being checked."""
        for check in self._checks.values():
            check.cancel()

    async def _checked(self, tool: BaseTool) -> None:
        credentials = tool.credentials
        with contained():
            try:
                if inspect.iscoroutinefunction(tool.validate_credentials):
                    await tool.validate_credentials(credentials)
                else:
                    found = await self._threads.run(lambda: tool.validate_credentials(credentials), name=tool.name)
                    if inspect.isawaitable(found):
                        await found
            except SystemExit as error:
                raise tried_to_end(tool.name) from error
        self._good.add(tool)
