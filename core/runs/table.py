"""The runs that a process knows, and which conversations are about to have one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.bridge.pool import BoundedDict

if TYPE_CHECKING:
    from core.runs.reply import Reply
    from core.runs.run import Run

_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Reservation:
    """Its holder, and nobody else in this process, may begin to answer the conversation."""

    owner: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class RunTable:
    """The runs that this process knows.

    Args:
        live: Those that live, by their conversations.
        unsettled: Those whose end is still to be stored.
        past: Replies that are over, by owner and message.
        reserved: Conversations whose next run is being prepared or stored, and how many blocks say so.
    """

    live: dict[str, Run] = field(default_factory=dict[str, "Run"])
    unsettled: dict[str, Run] = field(default_factory=dict[str, "Run"])
    past: BoundedDict[tuple[str, str], Reply] = field(
        default_factory=lambda: BoundedDict[tuple[str, str], "Reply"](_REMEMBERED)
    )
    reserved: Counter[Reservation] = field(default_factory=Counter[Reservation])
