"""What the model calls of a program's question took, told by the one layer that observes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from core.llm.usage import estimated_for, written
from core.messages.message import Usage
from core.runs.ledger import line_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.llm.ledger import LedgerCall
    from core.llm.request import ReadSoFar
    from core.runs.log import ModelCalled


class Account:
    """The lines of one reply, as `RunLedger` writes them for the page; kept where the reply is kept."""

    def __init__(self) -> None:
        self.lines: list[ModelCalled] = []
        self._loop = asyncio.get_running_loop()
        self._counting: set[asyncio.Task[None]] = set()

    def began(self, call: LedgerCall, spoke: Callable[[], bool]) -> None:
        """A call was begun."""
        del call, spoke

    def reads(self, call: LedgerCall, so_far: ReadSoFar) -> None:
        """The model reads its prompt."""
        del call, so_far

    def ended(self, call: LedgerCall) -> None:
        """It is over, however it ended."""
        if call.usage is not None or not written(call.events):
            self.lines.append(line_of(call, call.usage))
            return
        if asyncio.get_running_loop() is not self._loop:  # an agent of a program, which works on a loop of its own
            self.lines.append(line_of(call, _counted(call)))
            return
        task = asyncio.ensure_future(self._count(call))  # it broke off: what had come is paid for
        self._counting.add(task)
        task.add_done_callback(self._counting.discard)

    async def usage(self) -> Usage:
        """What all of it took."""
        if self._counting:
            await asyncio.wait(set(self._counting))
        return sum((line.usage for line in self.lines if line.usage is not None), Usage())

    async def _count(self, call: LedgerCall) -> None:
        self.lines.append(line_of(call, await asyncio.to_thread(_counted, call)))


def _counted(call: LedgerCall) -> Usage:
    return estimated_for(call.sent or call.given, written(call.events), call.model.count_tokens)
