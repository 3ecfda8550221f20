"""What a run is given besides its question: what it may do, and what its reply begins with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from core.runs.asking import ASKED_FOR
from core.tools.approval import Policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from core.runs.log import LoggedEvent

Rules: TypeAlias = "Callable[[], Awaitable[Policy]]"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run may do.

    Args:
        policy: Which tools run, and which the user is asked about.
        rules: Reads the same anew for each call, so that what the user changes meanwhile holds at once; left out, the
            policy stays as it is.
        attended: Whether there is a user to ask; else what would be asked is refused.
        seconds: Its time; waiting for the user does not count.
        letters: The characters that all its model calls together may write: text, thoughts and arguments.
        cost: What its model calls may cost, in the currency of the price list; `None` for no limit.
        asked_for: Seconds until a question that nobody answers counts as refused.
        checked_within: Seconds that looking at a whole reply may take.
    """

    policy: Policy = field(default_factory=Policy)
    rules: Rules | None = None
    attended: bool = True
    seconds: float = 600.0
    letters: int = 2_000_000
    cost: float | None = None
    asked_for: float = ASKED_FOR
    checked_within: float = 10.0


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run begins with that is not new.

    Args:
        logged: What the reply has already, in the order in which it happened.
        begun: The calls without a result that may have begun all the same: what cannot be done twice is not. `None`
            where no call waits for its turn.
        stored: Whether the events are in the run's table already.
    """

    logged: Sequence[LoggedEvent] = ()
    begun: frozenset[str] | None = None
    stored: bool = False
