"""The agents there are, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from core.agents.base import Agent

AGENTS: Registry[type[Agent]] = Registry(
    "agent",
    {
        "BasicAgent": Entry("core.agents.basic:BasicAgent"),
        "FnCallAgent": Entry("core.agents.fn_call:FnCallAgent"),
        "Assistant": Entry("core.agents.assistant:Assistant"),
        "ReActChat": Entry("core.agents.react:ReActChat"),
    },
)
