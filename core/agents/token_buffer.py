"""A memory of what was said: as much of the newest as a model is to be given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.bounds import whole
from core.llm.layers.costs import Costs
from core.llm.open_model import get_chat_model
from core.messages.message import FUNCTION, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.base import BaseChatModel


class TokenBufferMemory:
    """Keeps all messages, and gives back the newest that fit.

    Args:
        model: Whose tokens are counted.
        max_tokens: How many the messages given back may take.

    Raises:
        SettingsError: The model cannot be made of what was given, or `max_tokens` is not above 0.
    """

    def __init__(self, model: BaseChatModel | Mapping[str, Any] | str, max_tokens: int = 2000) -> None:
        self.max_tokens = whole("max_tokens", max_tokens, 1)
        self.model = get_chat_model(model)
        self.history_messages: list[Message] = []

    def add_message(self, message: Message | Mapping[str, Any]) -> None:
        """Remember `message`, as the newest."""
        self.history_messages.append(message if isinstance(message, Message) else Message(**message))

    def get_history_messages(self) -> list[Message]:
        """The newest messages that fit, the oldest of them first.

        Calls stay with their results: both are there or neither. The first that does not fit ends it, so that there is
        no hole in what is told; one message that is too long for itself leaves nothing.
        """
        costs, room = Costs(self.model), self.max_tokens
        kept: list[list[Message]] = []
        for step in reversed(_steps(self.history_messages)):
            room -= sum(map(costs.of, step))
            if room < 0:
                break
            kept.append(step)
        return [message for step in reversed(kept) for message in step]

    def clear(self) -> None:
        """Forget everything."""
        self.history_messages = []


def _steps(messages: Sequence[Message]) -> list[list[Message]]:
    """Each message by itself, but the calls of one turn with their results."""
    steps: list[list[Message]] = []
    for message in messages:
        before = steps[-1][-1] if steps else None
        is_result = message.role == FUNCTION
        is_next_call = message.function_call is not None and before is not None and before.function_call is not None
        if before is not None and (is_result or is_next_call):
            steps[-1].append(message)
        else:
            steps.append([message])
    return steps
