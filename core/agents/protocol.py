"""What other modules need of an agent, and which agents it leads or can call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from core.agents.extras import Extras
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.request import Stream
    from core.messages.message import Message
    from core.tools.approval import Ask, Guard, Policy
    from core.tools.base import BaseTool


@runtime_checkable
class AgentProtocol(Protocol):
    """Something that answers a conversation; `core.agents.base.Agent` says what each member means."""

    name: str | None
    description: str | None
    function_map: dict[str, BaseTool]

    def stream(
        self,
        messages: Sequence[Message | dict[str, Any]],
        *,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> Stream:
        """The reply as events."""
        ...


class ExtensibleAgent(AgentProtocol, Protocol):
    """An agent to which a program may add; `core.agents.base.Agent` says what each member means."""

    leads_agents: ClassVar[bool]
    llm: BaseChatModel | None
    extras: Extras | None

    def check_options(self, given: Mapping[str, Any], known: Iterable[str] = ()) -> None:
        """Refuse misspelt keywords."""
        ...

    def prompted(self, asked: list[Message], lang: Lang) -> list[Message]:
        """The conversation with the system prompt and the examples."""
        ...

    def reply_to(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        """The reply to a conversation that has its prompt."""
        ...


def nested_agents(agent: object) -> list[object]:
    """Every agent that this one leads or can call, directly or through others; each once."""
    found: list[object] = []
    waiting = list(_children(agent))
    while waiting:
        one = waiting.pop()
        if not any(one is known for known in found):
            found.append(one)
            waiting += _children(one)
    return found


def call_cycle(agent: object) -> list[object]:
    """The shortest path from an agent over those it leads or can call back to itself; empty where there is none."""
    paths: list[list[object]] = [[agent]]
    seen: list[object] = []
    while paths:
        path = paths.pop(0)
        for one in _children(path[-1]):
            if one is agent:
                return [*path, agent]
            if not any(one is known for known in seen):
                seen.append(one)
                paths.append([*path, one])
    return []


def _children(agent: object) -> Iterator[object]:
    """The agents that it leads, and those that are among its tools."""
    yield from getattr(agent, "_agents", ())
    for tool in getattr(agent, "function_map", {}).values():
        if (called := getattr(tool, "agent", None)) is not None:
            yield called
