"""Each model call as a line of an account: who keeps it, what it is for, and what went over the wire.

Whoever keeps one says so with `recorded_by`; every call that is made inside is then told to it, by the one layer that
observes calls (`layers/record.py`). What a call is for its caller says, with `ChatRequest.purpose`.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from core.llm.wire_log import WireLog

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any

    from core.llm.request import ChatRequest, ReadSoFar
    from core.llm.telemetry import Outcome
    from core.messages.events import Event
    from core.messages.message import Usage


class LedgerModel(Protocol):
    """What a line says of the model that was called."""

    model: str
    label: str
    cfg: dict[str, Any]

    def count_tokens(self, text: str) -> int:
        """How many tokens a text takes."""
        ...


@dataclass(slots=True, eq=False)
class LedgerCall:
    """A model call from its beginning on; its end fills in the rest.

    Args:
        call_id: Our own id of the call.
        model: Who was called.
        here: Whether the model runs on this machine.
        given: The request as the caller made it.
        agent: The agent that was called as a tool and makes the call; empty for the one that answers.
        within: The calls of tools that this agent answers, from the outermost.
        wire: What went over the wire, if anything did.

    Attributes:
        sent: The request after fitting and templates, once it is known.
        events: The reply as the caller gets it.
        raw: The reply as a model of this process makes it; `None` of a service, whose bytes are in `wire`.
        first: Seconds to the first of the reply; `None` while nothing came.
    """

    call_id: str
    model: LedgerModel
    here: bool
    given: ChatRequest
    agent: str = ""
    within: tuple[str, ...] = ()
    wire: WireLog = field(default_factory=WireLog)
    sent: ChatRequest | None = None
    events: Sequence[Event] = ()
    raw: Sequence[Event] | None = None
    usage: Usage | None = None
    outcome: Outcome = "stopped"
    error: BaseException | None = None
    seconds: float = 0.0
    first: float | None = None
    retries: int = 0
    cached: bool = False
    is_calling: bool = False


class Ledger(Protocol):
    """Who keeps an account of model calls, told on the loop that makes the call; it must be quick, and not fail."""

    def began(self, call: LedgerCall, spoke: Callable[[], bool]) -> None:
        """A call was begun; `spoke` tells whether anything of the reply has come."""
        ...

    def reads(self, call: LedgerCall, so_far: ReadSoFar) -> None:
        """The model reads its prompt, and is so far."""
        ...

    def ended(self, call: LedgerCall) -> None:
        """It is over, however it ended."""
        ...


_LEDGER: ContextVar[Ledger | None] = ContextVar("who keeps an account of model calls", default=None)
_AGENT: ContextVar[tuple[str, tuple[str, ...]]] = ContextVar("the agent that was called as a tool", default=("", ()))


@contextmanager
def recorded_by(ledger: Ledger | None) -> Generator[None]:
    """Tell all model calls of the block, and of tasks that it starts, to a ledger."""
    token = _LEDGER.set(ledger)
    try:
        yield
    finally:
        _LEDGER.reset(token)


@contextmanager
def on_behalf_of(agent: str, call_id: str) -> Generator[None]:
    """Note the model calls of the block as those of an agent that was called as a tool, by this call."""
    token = _AGENT.set((agent, (*_AGENT.get()[1], call_id)))
    try:
        yield
    finally:
        _AGENT.reset(token)


def ledger_now() -> Ledger | None:
    """Who keeps an account of the calls that are made here."""
    return _LEDGER.get()


def agent_now() -> tuple[str, tuple[str, ...]]:
    """The agent that was called as a tool and calls models here, and the calls that it answers; else nothing."""
    return _AGENT.get()


def wire_of(request: ChatRequest) -> WireLog:
    """Where a back end notes what goes over the wire for a request; nobody reads it where no account is kept."""
    notes = request.notes
    return notes.wire if notes is not None and notes.wire is not None else WireLog()
