"""What a server wants to know while one of its tools runs: asked in the log of the run, answered by its user.

Unlike the question whether a call may run, it cannot outlive the process: the call that wants it ends with that.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from core.bridge.sync import on_loop
from core.mcp.forms import form_of
from core.runs.asking import ASKED_FOR, already_decided
from core.runs.log import InputAsked, InputGiven

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from core.runs.log import InputWhy, RunLog

_LARGEST = 64 * 1024  # characters of a schema as it is kept


@dataclass(slots=True)
class _Open:
    asked: InputAsked
    answer: asyncio.Future[Mapping[str, Any] | None]
    why: InputWhy = "over"


class Inputs:
    """The forms of one run. What is typed into them goes to the server, and is not kept.

    Args:
        log: Where they are asked.
        waiting: Told when the run begins to wait for the user, or does so no more.
        within: Seconds until silence counts as a no.
    """

    def __init__(self, log: RunLog, waiting: Callable[[bool], None], *, within: float = ASKED_FOR) -> None:
        self._log = log
        self._waiting = waiting
        self._within = within
        self._open: dict[str, _Open] = {}
        self._closed = False
        self._loop = asyncio.get_running_loop()

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked something."""
        return bool(self._open)

    async def ask(self, call_id: str, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user and wait, from whichever loop; cancelled, nobody is asked any more.

        Args:
            call_id: The call during which the server asks.
            server: Its name.
            message: What it says.
            schema: A flat JSON Schema of an object.

        Returns:
            The values by name; `None` for a no, for silence, and for what cannot be shown as a form.
        """
        return await on_loop(self._loop, lambda: self._ask(call_id, server, message, schema))

    async def _ask(self, call_id: str, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        if self._closed or form_of(schema) is None or len(str(schema)) > _LARGEST:
            return None
        asked = InputAsked(call_id, uuid4().hex, server, message, schema, time.time() + self._within)
        question = _Open(asked, asyncio.get_running_loop().create_future())
        self._open[asked.input_id] = question
        self._log.append(asked)
        self._waiting(True)  # noqa: FBT003 - the one thing it is told
        try:
            async with asyncio.timeout(self._within):
                given = await question.answer
        except TimeoutError:
            question.why = "timeout"
            return None
        finally:
            self._open.pop(asked.input_id, None)
            self._log.append(InputGiven(call_id, asked.input_id, question.why))
            if not self._open:
                self._waiting(False)  # noqa: FBT003 - the one thing it is told
        return None if given is None else dict(given)

    def give(self, input_id: str, values: Mapping[str, Any] | None) -> None:
        """Answer one; the first answer counts. `None` is a no.

        Raises:
            ConflictError: key `already_decided`: nobody waits for it any more.
        """
        question = self._open.pop(input_id, None)
        if question is None or question.answer.done():
            raise already_decided()
        question.why = "declined" if values is None else "answered"
        question.answer.set_result(values)

    def close(self) -> None:
        """The run is over: nothing is asked any more."""
        self._closed = True
        for question in self._open.values():
            question.answer.cancel()
