"""What `Router` and `GroupChat` share: their members, persons among them, and the members' names in text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from core.agents.arguments import accepted_keywords
from core.agents.base import Agent
from core.agents.protocol import nested_agents
from core.errors import SettingsError, WrongParametersError
from core.messages.events import CallStarted, MessageFinished, MessageStarted, TextDelta

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.languages import Lang
    from core.llm.request import Stream
    from core.messages.events import Event
    from core.messages.message import Message

PENDING_USER_INPUT = "<!-- parlour: waiting for a person to speak -->"
"""What a `UserAgent` says: it is that person's turn. As Markdown it shows as nothing."""


class UserAgent(Agent):
    """Stands for a person in a group: at its turn the group's reply ends, so that the person can speak.

    It has no model and never fails: its whole reply is `PENDING_USER_INPUT`. The person's answer is the next user
    message, under the member's name or, where the group has one person only, without a name.
    """

    calls_tools = False
    needs_model = "never"

    async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        del messages, lang, kwargs
        yield MessageStarted(self.name)
        yield TextDelta(PENDING_USER_INPUT)
        yield MessageFinished("stop")


def is_pending(message: Message) -> bool:
    """Whether the message is nothing but `PENDING_USER_INPUT`."""
    return message.get_text_content().strip() == PENDING_USER_INPUT


class MultiAgentHub:
    """An agent with members. A subclass keeps them in `self._agents`, as `checked_members` returns them."""

    _agents: list[Agent]

    @property
    def agents(self) -> list[Agent]:
        """The agents.

        Raises:
            SettingsError: There are none, one has no name, or two have the same.
        """
        return checked_members(self, getattr(self, "_agents", ()))

    @property
    def agent_names(self) -> list[str]:
        """Their names, in the same order."""
        return [agent.name or "" for agent in self.agents]

    @property
    def nonuser_agents(self) -> list[Agent]:
        """The members that are no `UserAgent`."""
        return [agent for agent in self.agents if not isinstance(agent, UserAgent)]


def _begun(own: Any, *values: object, **named: object) -> None:
    made = super(MultiAgentHub, own).__init__  # of the class beside it, in one that a program derives
    if (values or named) and getattr(made, "__objclass__", None) is object:
        hint = "Write GroupChat(agents=[...]), or your own."
        raise WrongParametersError("MultiAgentHub takes nothing: its subclass holds the agents.", hint=hint)
    made(*values, **named)


# Not in the class, whose signature is the one of the class beside it.
setattr(MultiAgentHub, "__init__", _begun)  # noqa: B010


def checked_members(owner: object, given: object) -> list[Agent]:
    """The members of `owner`, as a new list.

    Raises:
        SettingsError: There is no list or none in it, one is no agent or the owner itself, or has no name of its own.
    """
    what = type(owner).__name__
    if not isinstance(given, Iterable):
        raise SettingsError(f"{what} takes a list of agents, not {given!r}.", hint="Pass agents=[...].")
    members = list(cast("Iterable[Any]", given))
    if not members:
        raise SettingsError(f"{what} has no agents.", hint="Pass agents=[...].")
    taken = {getattr(owner, "name", None)} - {None}
    for member in members:
        if not isinstance(member, Agent):
            raise SettingsError(f"{what} cannot lead this, which is no agent: {member!r}.")
        if member is owner or owner in nested_agents(member):
            raise SettingsError(f"{what} cannot be one of its own agents.", hint="Leave it out of agents=[...].")
        if not (member.name or "").strip():
            raise SettingsError(f"An agent of {what} has no name.", hint="Pass name=... to each of them.")
        if member.name in taken:
            raise SettingsError(f"Two agents are named {member.name!r}.", hint="Give each a name of its own.")
        taken.add(member.name)
    return members


async def member_events(agent: Agent, messages: Sequence[Message], lang: Lang, **kwargs: Any) -> Stream:
    """A member's reply as events under its own name; closing the stream stops it."""
    async with aclosing(agent.stream(messages, lang=lang, **accepted_keywords(agent, kwargs))) as events:
        async for event in events:
            unnamed = isinstance(event, MessageStarted) and event.name is None
            yield MessageStarted(agent.name) if unnamed else event


def sentence_events(speaker: str | None, text: str) -> Iterator[Event]:
    """A message with one sentence of Parlour's own, as events."""
    yield MessageStarted(speaker)
    yield TextDelta(text)
    yield MessageFinished("stop")


class CallIds:
    """Collects the ids of a reply's calls."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def note(self, event: object) -> None:
        """Remember the id, if the event starts a call."""
        if isinstance(event, CallStarted):
            self.taken.add(event.call_id)


def member_list(agents: Sequence[Agent], lang: Lang) -> str:
    """A line for each agent: its name and description."""
    colon = "：" if lang == "zh" else ": "
    rows = ((agent.name or "", " ".join((agent.description or "").split())) for agent in agents)
    return "\n".join(f"- {name}{colon}{description}" if description else f"- {name}" for name, description in rows)


def joined_names(names: Sequence[str], lang: Lang) -> str:
    """The names in one line."""
    return ("、" if lang == "zh" else ", ").join(names)


_WORD = "[A-Za-z0-9_\u00c0-\u024f]"  # letters of words that spaces separate; Chinese has no spaces
_AROUND = " \t\r\n*_`'\"“”‘’「」『』《》<>()（）[]【】@＠"
_AFTER = ".,;:!?。，；：！？、"


def mentioned(text: str, names: Sequence[str]) -> list[str]:
    """The names after an @ in the text, in order, each once.

    Of names with the same beginning the longest counts; case does not matter. An address such as `ada@example.org`
    mentions nobody.
    """
    if not names or not ("@" in text or "＠" in text):
        return []
    known = {name.casefold(): name for name in names}
    pattern = f"(?<!{_WORD})[@＠](?P<name>{_any_of(names)})"
    found = (known[match["name"].casefold()] for match in re.finditer(pattern, text, re.IGNORECASE))
    return list(dict.fromkeys(found))


_ADDRESSED = re.compile(r"\s*[@＠](?P<name>[^\s@＠.,;:!?。，；：！？、]{1,60})")


def mentions_nobody(text: str, names: Sequence[str]) -> str:
    """The word behind the @ that a text begins with, where no name is mentioned in it; else ""."""
    found = _ADDRESSED.match(text)
    return found["name"] if found is not None and not mentioned(text, names) else ""


def chosen_name(text: str, names: Sequence[str]) -> str | None:
    """The name that a model's answer chooses: alone, quoted, with a full stop, or the only one in a sentence."""
    known = {name.casefold(): name for name in names}
    plain = text.strip(_AROUND).casefold()
    for one in (plain, plain.rstrip(_AFTER).strip(_AROUND)):
        if one in known:
            return known[one]
    if not names:
        return None
    pattern = f"(?<!{_WORD})(?P<name>{_any_of(names)})"
    found = {known[match["name"].casefold()] for match in re.finditer(pattern, text, re.IGNORECASE)}
    return found.pop() if len(found) == 1 else None


def _any_of(names: Sequence[str]) -> str:
    """A pattern of all names, longest first, none of which ends within a word."""
    longest = sorted(names, key=len, reverse=True)
    return "|".join(re.escape(name) + (f"(?!{_WORD})" if re.search(f"{_WORD}$", name) else "") for name in longest)
