"""Several agents, and persons, in one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from core.agents.base import Agent
from core.agents.bounds import whole
from core.agents.budget import Budget
from core.agents.group_config import group_of
from core.agents.group_view import as_dialogue, read_by, speaker_of
from core.agents.hub import MultiAgentHub, checked_members, said, speech
from core.agents.leading_prompts import (
    CALL_SOMEBODY,
    GROUP,
    HOST,
    NOBODY_SPOKE,
    OVER,
    WHO_NEXT,
    in_a_row,
    listed,
)
from core.agents.mentions import mentioned, named
from core.agents.pending import this_turn, without_result
from core.agents.user_agent import UserAgent
from core.errors import BadMessagesError, SettingsError
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted
from core.messages.message import ASSISTANT, SYSTEM, USER, Message
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.given_tools import GivenTool
    from core.llm.base import BaseChatModel
    from core.llm.request import Lang, Stream
    from core.messages.message import Usage

Method: TypeAlias = Literal["auto", "round_robin", "random", "manual"]

_METHODS = ("auto", "round_robin", "random", "manual")
_MOST_ROUNDS = 99
_STOP = "[STOP]"


@dataclass(slots=True)
class _Talk:
    """One reply of the group."""

    messages: list[Message]
    lang: Lang
    random: Random
    last: str | None  # who spoke last, where that is a member
    called: list[str]  # who was mentioned and has not spoken yet
    only_called: bool  # whether nobody else speaks
    usage: Usage | None = None  # of the last choice of a speaker
    over: bool = False  # whether whoever picks has ended it
    turns: int = 0
    spoke: bool = False  # whether there was a word in one of them


class GroupChat(Agent, MultiAgentHub):
    """Lets its members speak in turn; each hears what the others said.

    | who speaks next | |
    |---|---|
    | `auto` | whom the model picks, until it answers `[STOP]`; where it names no member, the next in order |
    | `round_robin` | the one after the last speaker |
    | `random` | any but the last speaker; the same each time where there is a `seed` |
    | `manual` | only who is mentioned |

    Whoever is mentioned (`@name`) speaks next. Where a user mentions members, only they speak, and whom they mention.
    When it is the turn of a person (`UserAgent`), the reply ends with `PENDING_USER_INPUT`; what the person says is the
    next user message. A member that says nothing is passed over; if nobody says anything, one sentence says so.

    Args:
        agents: The members, or the whole group as a dict: see `group_of`.
        agent_selection_method: How the next speaker is found.
        function_list: Tools of members that are given as dicts.
        llm: The model that picks, needed for `auto`; also that of members given as dicts.
        system_message: What every member is told of the group.
        name: The group's.
        description: What it is good at.
        seed: Makes `random` choose alike.

    Raises:
        SettingsError: No such method, `auto` without a model, no members, or members without a name of their own.
    """

    def __init__(  # noqa: PLR0913 - the seed's arguments, and one of our own by name
        self,
        agents: Sequence[Agent] | Mapping[str, Any] = (),
        agent_selection_method: Method = "auto",
        *,
        function_list: Sequence[GivenTool] | None = None,
        llm: BaseChatModel | Mapping[str, Any] | str | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(None, llm, system_message, name, description)
        if agent_selection_method not in _METHODS:
            hint = f"Known: {', '.join(_METHODS)}."
            raise SettingsError(f"There is no way {agent_selection_method!r} to find who speaks next.", hint=hint)
        if agent_selection_method == "auto":
            self._model()
        self.agent_selection_method: Method = agent_selection_method
        self._background, self._seed = "", seed
        if isinstance(agents, Mapping):
            self._background, made = group_of(agents, self.llm, function_list or ())
        else:
            made = agents
        self._agents = checked_members(self, made)
        persons = [agent.name for agent in self._agents if isinstance(agent, UserAgent)]
        self._person = persons[0] if len(persons) == 1 else None

    def _system_message(self, lang: Lang) -> str:
        del lang
        return ""  # each member is told: see `_told`

    def _stream_reply(
        self,
        messages: list[Message],
        *,
        lang: Lang,
        max_round: int | None = None,
        mentioned_agents_name: Sequence[str] | None = None,
        need_batch_response: bool = True,
        **kwargs: Any,
    ) -> Stream:
        """The members' messages, one after the other.

        Args:
            messages: The conversation, with a user's message in it.
            lang: The language of what Parlour says.
            max_round: How often somebody speaks at most, 1 to 99; by default as often as there are members.
            mentioned_agents_name: Who is to speak, besides those that the last message mentions.
            need_batch_response: Whether more than one speaks.
            kwargs: For the members.

        Raises:
            BadMessagesError: No user has said anything.
            SettingsError: `max_round` makes no sense, or there is no such member.
        """
        if not any(message.role == USER for message in messages):
            raise BadMessagesError(
                code="400", message="Nobody has said anything to the group.", hint="Ask it something."
            )
        most = whole("max_round", len(self._agents) if max_round is None else max_round, 1, _MOST_ROUNDS)
        wanted = list(mentioned_agents_name or ())
        if unknown := [one for one in wanted if one not in self.agent_names]:
            hint = f"Members: {', '.join(self.agent_names)}."
            raise SettingsError(f"There is no member named {unknown[0]!r}.", hint=hint)
        talk = self._begun(messages, lang, wanted)
        return self._talked(talk, most if need_batch_response else 1, self._asking(kwargs))

    def _begun(self, messages: list[Message], lang: Lang, wanted: list[str]) -> _Talk:
        since = this_turn(messages)  # of a reply that goes on
        question = messages[-1 - len(since)]
        spoke = {speaker_of(question, self._person), *(one.name for one in since)}
        here = mentioned(question.get_text_content(), self.agent_names)
        called = list(dict.fromkeys([*wanted, *(one for one in here if one not in spoke)]))
        speaker = speaker_of(messages[-1], self._person)
        random = Random() if self._seed is None else Random(f"{self._seed}/{len(messages)}")  # noqa: S311 - no secret
        last = speaker if speaker in self.agent_names else None
        return _Talk(messages, lang, random, last, called, bool(called) or self.agent_selection_method == "manual")

    async def _talked(self, talk: _Talk, most: int, context: dict[str, Any]) -> Stream:
        begun = context.pop("begun", None)
        context.setdefault("evidence", [])  # the numbers of passages go on from member to member
        interrupted = without_result(talk.messages) if begun is not None else []
        budget: Budget = context.get("budget") or Budget()
        for _ in range(most):
            if talk.turns:
                budget.check_cost()
            if interrupted and interrupted[-1].name in self.agent_names:
                member, also = self._named(interrupted[-1].name), {"begun": begun}
            else:
                member, also = await self._next(talk), {}
            interrupted = []
            if talk.usage is not None:
                budget.pay(talk.usage)
                yield MessageStarted(self.name)
                yield MessageFinished("stop", talk.usage)
            if member is None:
                break
            async with aclosing(self._spoken(member, talk, {**context, **also})) as events:
                async for event in events:
                    yield event
            if isinstance(member, UserAgent):
                return
        if not talk.spoke:
            for event in said(self.name, self._why_silent(talk)):
                yield event

    async def _spoken(self, member: Agent, talk: _Talk, context: dict[str, Any]) -> Stream:
        """What one member says; the others hear it from then on."""
        name, turn, budget = member.name or "", Transcript(), context.get("budget")
        spent = budget.spent if budget is not None else 0.0
        view = read_by(name, talk.messages, self._told(member, talk.lang), talk.lang, self._person)
        async with aclosing(speech(member, view, talk.lang, **context)) as events:
            async for event in events:
                turn.apply(event)
                yield event
        if budget is not None:
            budget.pay(turn.usage, since=spent)
        spoken = turn.messages()
        talk.messages += spoken
        talk.last = name
        talk.turns += 1
        talk.spoke = talk.spoke or any(one.get_text_content().strip() or one.is_multimodal() for one in spoken)
        if self.agent_selection_method != "manual":
            text = "\n".join(message.get_text_content() for message in spoken if message.role == ASSISTANT)
            others = [one for one in mentioned(text, self.agent_names) if one != name and one not in talk.called]
            talk.called += others

    async def _next(self, talk: _Talk) -> Agent | None:
        """Who speaks next; None where nobody does."""
        talk.usage = None
        if talk.called:
            return self._named(talk.called.pop(0))
        if talk.only_called:
            return None
        match self.agent_selection_method:
            case "auto":
                return await self._picked(talk)
            case "random":
                others = [agent for agent in self._agents if agent.name != talk.last]
                return talk.random.choice(others or self._agents)
            case _:
                return self._after(talk.last, self._agents)

    async def _picked(self, talk: _Talk) -> Agent | None:
        """Whom the model picks; None where it ends the conversation."""
        names, lang = self.agent_names, talk.lang
        told = HOST[lang].format(members=listed(self._agents, lang), names=in_a_row(names, lang))
        told = f"{self._topic()}\n\n{told}".strip()
        dialogue = as_dialogue(talk.messages, lang, self._person)
        question = WHO_NEXT[lang].format(dialogue=dialogue, names=in_a_row(names, lang))
        asked = (Message(SYSTEM, told), Message(USER, question))
        answer = Transcript()
        async with aclosing(self._model().stream(ChatRequest(asked, (), self.extra_generate_cfg, lang))) as events:
            async for event in events:
                answer.apply(event)
        talk.usage = answer.usage
        text = "\n".join(message.get_text_content() for message in answer.messages())
        name = named(text, names)
        if name is None and _STOP in text.upper():
            talk.over = True
            return None
        return self._named(name) if name is not None else self._after(talk.last, self.nonuser_agents or self._agents)

    def _after(self, last: str | None, members: Sequence[Agent]) -> Agent:
        """The next in order."""
        names = [member.name for member in members]
        return members[(names.index(last) + 1) % len(members) if last in names else 0]

    def _named(self, name: str | None) -> Agent:
        return self._agents[self.agent_names.index(name or "")]

    def _topic(self) -> str:
        return "\n\n".join(filter(None, (self._background, self.system_message)))

    def _told(self, member: Agent, lang: Lang) -> str:
        """What a member is told of the group."""
        others = [agent for agent in self._agents if agent is not member]
        group = GROUP[lang].format(name=member.name, others=listed(others, lang)) if others else ""
        return f"{self._topic()}\n\n{group}".strip()

    def _why_silent(self, talk: _Talk) -> str:
        if talk.over:
            return OVER[talk.lang]
        if not talk.turns and talk.only_called:
            return CALL_SOMEBODY[talk.lang].format(names=in_a_row([f"@{one}" for one in self.agent_names], talk.lang))
        return NOBODY_SPOKE[talk.lang]
