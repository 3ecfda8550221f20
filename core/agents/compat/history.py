"""What a program keeps of a conversation: the newest messages that fit, and steps of thought."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from core.agents.arguments import checked_int
from core.llm.layers.fit_context import Costs
from core.llm.open_model import get_chat_model
from core.messages.message import FUNCTION, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.base import BaseChatModel
    from core.storage.base import AgentThought


class TokenBufferMemory:
    """Keeps all messages, and returns the newest that fit.

    Args:
        model: Counts the tokens.
        max_tokens: The most tokens of the messages that are returned.

    Raises:
        SettingsError: The model cannot be made of what was given, or `max_tokens` is not above 0.
    """

    def __init__(self, model: BaseChatModel | Mapping[str, Any] | str, max_tokens: int = 2000) -> None:
        self.max_tokens = checked_int("max_tokens", max_tokens, 1)
        self.model = get_chat_model(model)
        self.history_messages: list[Message] = []

    def add_message(self, message: Message | Mapping[str, Any]) -> None:
        """Remember `message`, as the newest."""
        self.history_messages.append(message if isinstance(message, Message) else Message(**message))

    def get_history_messages(self) -> list[Message]:
        """The newest messages that fit, the oldest of them first.

        A call and its result are both there or neither. Nothing older than the first message that does not fit is
        returned, so there is no gap; if the newest is too long by itself, the list is empty.
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
    """The messages in groups: the calls of one turn with their results, any other message alone."""
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


@dataclass
class AgentScratchpadUnit:
    """One round of thinking: thought, action, observation.

    Args:
        action: What was done; `None` in the round that ended with an answer.
        thought: What was thought before it.
        observation: What came of it.
        action_str: The action as text, such as `search(query='tea')`.
    """

    @dataclass
    class Action:
        """A tool call.

        Args:
            action_name: The tool.
            action_input: Its arguments, by name.
            thought: Why it was called.
        """

        action_name: str
        action_input: dict[str, Any]
        thought: str = ""

        def to_dict(self) -> dict[str, Any]:
            """Name, input and thought."""
            return {"action_name": self.action_name, "action_input": self.action_input, "thought": self.thought}

    action: Action | None = None
    thought: str = ""
    observation: str = ""
    action_str: str = ""

    @classmethod
    def of(cls, step: AgentThought) -> Self:
        """The unit of `step`, one of a stored reply. Arguments that are no JSON object are in `action_str` alone."""
        if step.tool_name is None:
            return cls(None, step.thought, step.observation or "")
        given = step.to_dict()["tool_input"]
        named = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        shown = ", ".join(f"{name}={value!r}" for name, value in named.items()) if named else step.tool_input or ""
        action = cls.Action(step.tool_name, named, step.thought)
        return cls(action, step.thought, step.observation or "", f"{step.tool_name}({shown if shown != '{}' else ''})")

    def to_dict(self) -> dict[str, Any]:
        """All of it; the action as a dict, or `None`."""
        return {
            "action": self.action.to_dict() if self.action is not None else None,
            "thought": self.thought,
            "observation": self.observation,
            "action_str": self.action_str,
        }

    def __str__(self) -> str:
        """The round as a model that thinks in text writes it; without an action the thought alone."""
        if self.action is None:
            return f"Thought: {self.thought}"
        given = json.dumps(self.action.action_input, ensure_ascii=False, default=str)
        return (
            f"Thought: {self.thought}\nAction: {self.action.action_name}\n"
            f"Action Input: {given}\nObservation: {self.observation}"
        )

    def to_prompt_message(self) -> str:
        """What a model is shown of it."""
        return str(self)
