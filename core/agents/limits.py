"""What ends or pauses a reply: its cost, the number of its model calls, and a call that repeats."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from core.agents.protocol import nested_agents
from core.errors import LimitReachedError, SettingsError
from core.llm.base import BaseChatModel
from core.llm.usage import is_priced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.messages.message import Message, Usage


@dataclass(slots=True)
class Budget:
    """Makes a reply pause before a model call that it cannot afford, instead of asking for a last answer.

    All agents of a reply share one budget.

    Args:
        cost: The limit, in the currency of the price list; `None` for none. A model without a price costs nothing.
        spent: What was spent so far.
    """

    cost: float | None = None
    spent: float = 0.0

    def pay(self, usage: Usage | None, *, since: float | None = None) -> None:
        """Add the cost of a model call.

        Args:
            usage: The call's tokens and cost.
            since: What was spent before the call, where the callee may have added some of its cost already.
        """
        cost = (usage.cost or 0.0) if usage is not None else 0.0
        self.spent = self.spent + cost if since is None else max(self.spent, since + cost)

    def check(self, *, calls: int, most_calls: int) -> None:
        """Check both limits; called before each model call but the first.

        Args:
            calls: Model calls so far.
            most_calls: The most there may be.

        Raises:
            LimitReachedError: key `call_limit` or `cost_limit`.
        """
        self.check_cost()
        if calls >= most_calls:
            text = f"The reply has taken {calls} model calls and waits to be told to go on."
            raise LimitReachedError(text, hint="Go on, or ask for less.", key="call_limit", calls=calls)

    def check_cost(self, *, besides: float = 0.0) -> None:
        """Check the cost alone, where several agents speak.

        Args:
            besides: Cost that is not added yet.

        Raises:
            LimitReachedError: key `cost_limit`.
        """
        spent = self.spent + besides
        if self.cost is not None and spent >= self.cost:
            text = f"The reply has cost {spent:.4g} and waits to be told to go on."
            hint = "Go on, or ask for less."
            raise LimitReachedError(text, hint=hint, key="cost_limit", cost=spent, limit=self.cost)


_BACK_ENDS = f"{BaseChatModel.__module__.rpartition('.')[0]}.backends."


def check_prices(agent: object) -> None:
    """Check that a limit of cost can hold: the price of every model that may be asked is known.

    A model of this process costs nothing, and one of the program's own may tell what it costs.

    Raises:
        SettingsError: One is not known.
    """
    for one in [agent, *nested_agents(agent)]:
        for model in _models_of(getattr(one, "llm", None)):
            is_ours = type(model).__module__.startswith(_BACK_ENDS)
            if is_ours and not model.in_process and not is_priced(model.model, model.service):
                said = f"The price of {model.model!r} is not known, so a limit of cost cannot hold."
                raise SettingsError(said, hint="Write Limits(tokens=20_000), or Limits(calls=5).", name="limits")


def _models_of(given: object) -> Iterator[BaseChatModel]:
    """A model; those of a chain."""
    if isinstance(given, BaseChatModel):
        chain: object = getattr(given, "models", None)
        if isinstance(chain, tuple):
            for one in cast("tuple[object, ...]", chain):
                yield from _models_of(one)
        else:
            yield given


_MOST = 2  # turns in a row in which the same call is run


class Repeats:
    """Finds calls that a model repeats, with the same arguments, turn after turn."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def take(self, calls: Sequence[Message]) -> list[Message]:
        """Take in the calls of one more turn; returns those that come for at least the third turn in a row."""
        now = {_signature(call): self._turns.get(_signature(call), 0) + 1 for call in calls}
        self._turns = now
        return [call for call in calls if now[_signature(call)] > _MOST]


def _signature(call: Message) -> str:
    """Equal for equal calls, however their arguments are written."""
    if call.function_call is None:
        return ""
    try:
        arguments = json.dumps(json.loads(call.function_call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.function_call.arguments
    return f"{call.function_call.name} {arguments}"
