"""Notices a model that calls the same tool with the same arguments again and again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.message import Message

_MOST = 2  # turns in a row in which the same call is run


class Repeats:
    """The calls of a reply, turn by turn."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def take(self, calls: Sequence[Message]) -> list[Message]:
        """Note the calls of one more turn; those of them that come for the third turn in a row, or later."""
        now = {_signature(call): self._turns.get(_signature(call), 0) + 1 for call in calls}
        self._turns = now
        return [call for call in calls if now[_signature(call)] > _MOST]


def _signature(call: Message) -> str:
    """The same for the same call, however its arguments are written."""
    if call.function_call is None:
        return ""
    try:
        arguments = json.dumps(json.loads(call.function_call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.function_call.arguments
    return f"{call.function_call.name} {arguments}"
