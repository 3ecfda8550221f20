"""What a program adds to an agent."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.tools.run_state import Hook, Hooks


@dataclass(slots=True)
class Extras:
    """What a program has added to an agent: functions by the moment at which they are called, in their order."""

    hooks: Hooks = field(default_factory=Hooks)
    instructions: list[Hook] = field(default_factory=list[Hook])
    toolsets: list[Hook] = field(default_factory=list[Hook])
    input_guards: list[Hook] = field(default_factory=list[Hook])
    output_guards: list[Hook] = field(default_factory=list[Hook])
