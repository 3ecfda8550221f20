"""What a server wants to know from the user: passed on to whoever asks, where that is allowed at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_types import ElicitRequestFormParams, ElicitResult

from core.errors import ParlourError
from core.mcp.shown import many_lines

_LOG = logging.getLogger(__name__)

Elicit: TypeAlias = Callable[[str, str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
AskUser: TypeAlias = Callable[[str, str, str, dict[str, Any]], Awaitable[dict[str, Any] | None]]

PATIENCE = 600.0  # seconds that a person has for an answer
_LONGEST_QUESTION = 4000
_MOST_FIELDS = 40


@dataclass(frozen=True, eq=False)
class Caller:
    """Who makes a call, and may be asked during it.

    Args:
        ask: Asks that user: `await ask(call_id, server, message, schema)`, as of `Elicit`. Those that are equal ask in
            the same place.
        call_id: The call.
        loop: Where `ask` is at home.
    """

    ask: AskUser
    call_id: str
    loop: asyncio.AbstractEventLoop

    async def elicit(self, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask, from whichever loop."""

        async def asking() -> dict[str, Any] | None:
            return await self.ask(self.call_id, server, message, schema)

        if asyncio.get_running_loop() is self.loop:
            return await asking()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking(), self.loop))


# The call during which a server of the newer kind asks: it does so instead of answering. The older ones ask in between,
# and do not say for which call.
_NOW: ContextVar[Caller | None] = ContextVar("the call during which a server asks", default=None)


class Asker:
    """Answers the questions of one server, one after another.

    A question goes to the user whose call the server is working at. Where it works for several at once, nobody can
    tell whose it is, and it is declined: it might tell one what is another's.

    Args:
        server: The server's name, for the user.
        elicit: Asks where no call says whom; `None` where servers may not ask at all.
    """

    def __init__(self, server: str, elicit: Elicit | None) -> None:
        self._server = server
        self._elicit = elicit
        self._clocks: set[asyncio.Timeout] = set()
        self._callers: list[Caller | None] = []
        self._asked: tuple[Caller | None, asyncio.Future[dict[str, Any] | None]] | None = None

    @contextmanager
    def during(self, clock: asyncio.Timeout, caller: Caller | None) -> Generator[None]:
        """While a request runs: its clock stands still while the user is asked; its end takes its question back."""
        self._clocks.add(clock)
        self._callers.append(caller)
        before = _NOW.set(caller)
        try:
            yield
        finally:
            _NOW.reset(before)
            self._clocks.discard(clock)
            self._callers.remove(caller)
            if self._asked is not None and caller is not None and self._asked[0] is caller:
                self._asked[1].cancel()

    async def answer(self, context: Any, params: Any) -> ElicitResult:
        """What the SDK calls when the server asks. Only forms are passed on: no server sends a user to an address."""
        del context
        if self._elicit is None or not isinstance(params, ElicitRequestFormParams) or self._asked is not None:
            return ElicitResult(action="decline")
        schema: dict[str, Any] = dict(params.requested_schema)
        if len(schema.get("properties") or {}) > _MOST_FIELDS:
            return ElicitResult(action="decline")
        whose = self._whose()
        if whose is None and any(self._callers):
            return ElicitResult(action="decline")
        elicit = whose.elicit if whose is not None else self._elicit
        question = many_lines(params.message, _LONGEST_QUESTION)
        asked = asyncio.ensure_future(elicit(self._server, question, schema))
        self._asked = whose, asked
        try:
            with self.standing():
                return await _answered(asked, self._server)
        finally:
            self._asked = None
            asked.cancel()

    def _whose(self) -> Caller | None:
        """Whose call it is that the server asks about, where that is certain."""
        caller = _NOW.get()
        if caller is not None:
            return caller
        if len({one.ask if one is not None else None for one in self._callers}) != 1:
            return None
        return self._callers[0]

    @contextmanager
    def standing(self) -> Generator[None]:
        """While it is open, all clocks stand still: a person is asked."""
        resting = {clock: clock.when() for clock in self._clocks}
        now = asyncio.get_running_loop().time
        began = now()
        for clock in resting:
            clock.reschedule(None)
        try:
            yield
        finally:
            for clock, when in resting.items():
                if when is not None and clock in self._clocks:
                    clock.reschedule(when + now() - began)


async def _answered(asked: asyncio.Future[dict[str, Any] | None], server: str) -> ElicitResult:
    try:
        async with asyncio.timeout(PATIENCE):
            given = await asked
    except TimeoutError:
        return ElicitResult(action="cancel")
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ElicitResult(action="cancel")  # the call is over: nobody wants the answer any more
    except ParlourError as error:
        _LOG.info("The question of the MCP server %r was not answered: %s", server, error)
        return ElicitResult(action="cancel")
    return ElicitResult(action="decline") if given is None else ElicitResult(action="accept", content=given)
