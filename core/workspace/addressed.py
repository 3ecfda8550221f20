"""Which of a program's agents a question goes to: who is mentioned, the group that waits for it, or who was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.agents.hub import UserAgent, is_pending, mentioned
from core.agents.protocol import nested_agents
from core.messages.message import USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.base import Agent
    from core.messages.message import Message
    from core.storage.base import StoredMessage


def names_within(agent: object) -> set[str]:
    """The names of an agent and of all that it leads or can call."""
    return {str(name) for one in [agent, *nested_agents(agent)] if (name := getattr(one, "name", None))}


def last_reply(thread: Sequence[StoredMessage]) -> StoredMessage | None:
    """The last reply that came to its end; what broke off, or is being written, changes nothing about whom it is to."""
    return next((one for one in reversed(thread) if one.role == "assistant" and one.status == "complete"), None)


def waiting_group(agents: Sequence[Agent], last: StoredMessage | None, usual: int) -> int | None:
    """The place of the agent whose group let a person speak at the end of the last reply; `None` where none did.

    Args:
        usual: The place of who answers otherwise: of two groups with the same members it is meant.
    """
    if last is None or not last.parts or not is_pending(last.parts[-1]):
        return None
    person, spoke = last.parts[-1].name, {one.name for one in last.parts if one.name and one.role != "function"}
    for place in sorted(range(len(agents)), key=lambda place: place != usual):
        inside = nested_agents(agents[place])
        persons = {one.name for one in inside if isinstance(one, UserAgent)}
        if person in persons and spoke <= names_within(agents[place]):
            return place
    return None


def mentioned_first(message: Message | None, names: Sequence[str]) -> int | None:
    """The place of the agent that a question names first with an @; `None` where it names none."""
    found = mentioned(message.get_text_content(), names) if message is not None else []
    return names.index(found[0]) if found else None


def meant(
    agents: Sequence[Agent], names: Sequence[str], messages: Sequence[Message], usual: int, waits: int | None
) -> int:
    """The agent that the last question names first with an @, else the group that waits for it, else the usual one.

    A group that waits has its members' names before the page's agents have theirs.

    Args:
        names: What the agents are called that can be mentioned; none where no question turns to one.
        usual: The place of who answers otherwise.
        waits: The place of the group that waits for it, if any.
    """
    question = next((one for one in reversed(messages) if one.role == USER), None)
    if waits is None:
        place = mentioned_first(question, names)
        return usual if place is None else place
    members = names_within(agents[waits]) - {names[waits]} if names else set[str]()
    found = mentioned(question.get_text_content(), names) if question is not None else []
    others = [name for name in found if name not in members]
    return names.index(others[0]) if others else waits
