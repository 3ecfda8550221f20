"""English for pages with several agents; part of `en.py`."""

from __future__ import annotations

AGENTS: dict[str, str] = {
    "agents.choose": "Who answers in this conversation",
    "agents.at": "@ and a name in a question turns that question alone to another.",
    "agents.question": "Asked",
    "agents.again": "Ask again with another question",
    "agents.own_tools": "The tools of this page are its program's own; when they ask first, and rules for single "
    "tools, are yours to set.",
    "agents.own_model": "The model that answers here is the program's own, so there is none to choose.",
    "js.mention": "Agents to turn to",
    "js.mention_found": "{n} agents. Arrow keys choose, Enter takes.",
    "js.mention_found_one": "One agent. Enter takes it.",
}
