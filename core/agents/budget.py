"""What a reply may cost before it pauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import LimitReachedError

if TYPE_CHECKING:
    from core.messages.message import Usage


@dataclass(slots=True)
class Budget:
    """Makes a reply pause before the model call that it has no means for, instead of asking for a last answer.

    One serves all the agents that speak in a reply: its price is that of what they cost together.

    Args:
        cost: In the currency of the price list; `None` for no limit. What has no price costs nothing.
        spent: Of that, so far.
    """

    cost: float | None = None
    spent: float = 0.0

    def pay(self, usage: Usage | None, *, since: float | None = None) -> None:
        """Count what was asked of a model.

        Args:
            usage: What that took.
            since: What was spent before, where whoever asked may have counted some of it already.
        """
        cost = (usage.cost or 0.0) if usage is not None else 0.0
        self.spent = self.spent + cost if since is None else max(self.spent, since + cost)

    def check(self, *, calls: int, most_calls: int) -> None:
        """Called before each model call but the first.

        Args:
            calls: How many there were.
            most_calls: How many there may be.

        Raises:
            LimitReachedError: key `call_limit` or `cost_limit`.
        """
        self.check_cost()
        if calls >= most_calls:
            text = f"The reply has taken {calls} model calls and waits to be told to go on."
            raise LimitReachedError(text, hint="Go on, or ask for less.", key="call_limit", calls=calls)

    def check_cost(self, *, besides: float = 0.0) -> None:
        """The same of the price alone, where several agents speak.

        Args:
            besides: What was spent and is not counted yet.

        Raises:
            LimitReachedError: key `cost_limit`.
        """
        spent = self.spent + besides
        if self.cost is not None and spent >= self.cost:
            text = f"The reply has cost {spent:.4g} and waits to be told to go on."
            hint = "Go on, or ask for less."
            raise LimitReachedError(text, hint=hint, key="cost_limit", cost=spent, limit=self.cost)
