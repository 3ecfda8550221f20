"""A step of thought as an agent writes it down, and as a model reads it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

if TYPE_CHECKING:
    from core.storage.base import AgentThought


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
