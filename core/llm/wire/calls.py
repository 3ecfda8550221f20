"""Calls that arrive in pieces: an index or an id, a name at first, arguments in any number of parts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.messages.events import CallDelta, CallStarted

if TYPE_CHECKING:
    from core.llm.wire.halves import Halves
    from core.llm.wire.tool_names import ToolNames
    from core.messages.events import Event

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class _Call:
    call_id: str
    said_id: str
    name: str = ""
    announced: bool = False


@dataclass(slots=True)
class CallPieces:
    """Puts the pieces of one reply together. A call is announced once its name is whole.

    Args:
        taken: Call ids of the conversation so far; a service that uses one again gets a new one.
        names: Gives tools their own names back.
        halves: Of the reply.
    """

    taken: set[str]
    names: ToolNames
    halves: Halves
    _calls: dict[int, _Call] = field(default_factory=dict[int, _Call])

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, said: Json) -> list[Event]:
        """The events of one piece: `{"index", "id", "function": {"name", "arguments"}}`, each of them optional."""
        function = cast("Json", said.get("function") or {})
        call = self._calls[self._place(said)]
        name = str(function.get("name") or "")
        if name and not call.announced and name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if not arguments:
            return []
        return [*self._announced(call), CallDelta(call.call_id, self.halves.whole(call.call_id, str(arguments)))]

    def close(self) -> list[Event]:
        """What is left when the reply is whole: calls without arguments."""
        return [event for call in self._calls.values() for event in self._announced(call)]

    def _place(self, said: Json) -> int:
        """Which call a piece belongs to: by its index; without one, by its id; without both, the last."""
        said_id = str(said.get("id") or "")
        index = said.get("index")
        if not isinstance(index, int):
            last = max(self._calls, default=-1)
            fresh = last < 0 or (said_id and all(call.said_id != said_id for call in self._calls.values()))
            known = (place for place, call in self._calls.items() if said_id and call.said_id == said_id)
            index = last + 1 if fresh else next(known, last)
        if index not in self._calls:
            call_id = said_id if said_id and said_id not in self.taken else f"call_{token_hex(8)}"
            self.taken.add(call_id)
            self._calls[index] = _Call(call_id, said_id)
        return index

    def _announced(self, call: _Call) -> list[Event]:
        if call.announced:
            return []
        call.announced = True
        return [CallStarted(call.call_id, self.names.given(call.name))]
