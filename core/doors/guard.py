"""Stands before the calls of a program's question: its own tools are handed to it, ours run by the owner's rules."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from core.runs.approvals import RunGuard
from core.tools.approval import Decision
from core.tools.base import BaseTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from core.agents.going_on import Begun
    from core.languages import Lang
    from core.messages.message import Message
    from core.tools.approval import ApprovalRequest, Policy, Why

_WHY: Mapping[Lang, Mapping[str, str]] = {
    "en": {
        "unattended": "(Not run: {name}. It would have to be agreed to, and nobody can be asked here.)",
        "rule": "(Not run: {name}. A rule of its owner forbids it.)",
    },
    "zh": {
        "unattended": "（未执行：{name}。该操作需要同意，而这里无人可问。）",
        "rule": "（未执行：{name}。所有者的规则不允许。）",
    },
}


class ClientTool(BaseTool):
    """A tool that the program has: a model may call it, and nothing runs here.

    Args:
        given: `{"name", "description", "parameters"}`.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.name = str(given["name"])
        self.description = str(given.get("description") or "")
        self.parameters = dict(given["parameters"])
        super().__init__()

    def verify(self, arguments: dict[str, Any]) -> None:
        """Nothing: the program checks what its own tools are given."""
        del arguments


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that was not made: which tool, and who or what decided so."""

    name: str
    why: Why


@dataclass(frozen=True, slots=True)
class Settled:
    """What was decided about a call.

    Args:
        call_id: The call. Agents that are tools ask under the id of the call that began them, so that it alone does
            not say what was asked about.
        name: The tool.
        arguments: What it was to be called with.
        yes: Whether it may be called.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    yes: bool

    def is_about(self, asking: ApprovalRequest) -> bool:
        """Whether it answers this question and no other."""
        return (self.call_id, self.name, dict(self.arguments)) == (asking.call_id, asking.name, dict(asking.arguments))


@dataclass(frozen=True, slots=True)
class Answered(Settled):
    """What the program said to a question about a call.

    Args:
        spend: Notes that the answer was used, before the tool runs; whether it was not used before.
    """

    spend: Callable[[], Awaitable[bool]]


class DoorGuard(RunGuard):
    """Lets the calls of a program's own tools wait until they are handed over; where it may ask, those it asks about.

    Args:
        policy: The rules.
        rules: Reads them anew.
        parked: Told whenever one more call waits.
        given: What the program answers now.
        before: What it has answered in earlier responses. An agent that is a tool and whose replies are made by code
            of its own begins anew in each, and comes to the same calls: what was refused stays so, and what was made is
            not made again.
        may_ask: Whether the program answers questions: else what would be asked is refused.

    Attributes:
        handed: The calls of the program's own tools: what the program knows each by. Calls are numbered within one
            conversation alone, so each gets an id that no other has.
        known: What it knows calls by that were handed to it before.
        asking: What the program is asked, by the call.
        refused: What was not run.
        settled: What the program has answered, in this response or an earlier one.
    """

    def __init__(
        self,
        policy: Policy,
        rules: Callable[[], Awaitable[Policy]] | None,
        *,
        parked: Callable[[], None],
        given: Sequence[Answered] | None = None,
        before: Sequence[Settled] = (),
        may_ask: bool = False,
    ) -> None:
        super().__init__(policy, None, rules)
        self._parked = parked
        self._given = list(given or ())
        self._before = list(before)
        self.settled = [*before]
        self._may_ask = may_ask
        self._ask = self._asked if may_ask or given else None
        self.handed: dict[str, str] = {}
        self.known: dict[str, str] = {}
        self.asking: dict[str, ApprovalRequest] = {}
        self.refused: list[Refusal] = []

    @property
    def waiting(self) -> set[str]:
        """The calls that wait for the program."""
        return self.handed.keys() | self.asking.keys()

    def forget(self, calls: Mapping[str, Begun]) -> None:
        """What was answered about calls whose agents go on where they were: these come to no call once more."""
        self._before = [one for one in self._before if one.call_id not in calls]
        self.settled = [one for one in self.settled if one.call_id not in calls]

    async def _decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        if isinstance(tool, ClientTool):
            self.handed[call_id] = self.known.get(call_id) or f"call_{token_hex(16)}"
            self._parked()
            await asyncio.Event().wait()  # until the reply is closed: the program makes this call
        decision = await super()._decide(tool, call_id, arguments, messages)
        if decision.why == "made" and tool.idempotent and not (tool.writes or tool.runs_code):
            return Decision(allowed=True)
        if not decision.allowed:
            self.refused.append(Refusal(tool.name, decision.why))
        return decision

    async def _asked(self, asking: ApprovalRequest) -> Decision:
        answer = next((one for one in self._given if one.is_about(asking)), None)
        if answer is not None:
            self._given.remove(answer)
            if await answer.spend():
                self.settled.append(answer)
                return Decision(answer.yes)
        known = next((one for one in self._before if one.is_about(asking)), None)
        if known is not None:
            self._before.remove(known)
            return Decision(allowed=False, why="made" if known.yes else "user")
        if not self._may_ask:
            return Decision(allowed=False, why="unattended")
        self.asking[asking.call_id] = asking
        self._parked()
        await asyncio.Event().wait()  # likewise: the program is asked, and goes on from there
        raise asyncio.CancelledError

    def told(self, lang: Lang) -> str:
        """Sentences on what was not run; "" where all was. What the program refused itself it knows."""
        others = [one for one in self.refused if one.why not in {"user", "made"}]
        each = dict.fromkeys((one.name, "rule" if one.why == "rule" else "unattended") for one in others)
        return "\n".join(_WHY[lang][why].format(name=name) for name, why in each)
