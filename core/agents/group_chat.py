"""`GroupChat`: several agents, and persons, in one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from core.agents.arguments import checked_int
from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.conversation import this_turn, unanswered_calls
from core.agents.group_view import as_dialogue, member_view, speaker_of
from core.agents.hub import (
    MultiAgentHub,
    UserAgent,
    checked_members,
    chosen_name,
    joined_names,
    member_events,
    member_list,
    mentioned,
    sentence_events,
)
from core.agents.limits import Budget
from core.errors import BadMessagesError, SettingsError
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted
from core.messages.message import ASSISTANT, SYSTEM, USER, Message
from core.messages.transcript import Transcript
from core.tools.run_state import state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.tools import GivenTool
    from core.languages import Lang
    from core.llm.open_model import GivenModel
    from core.llm.request import Stream
    from core.messages.message import Usage
    from core.tools.run_state import Meter

Method: TypeAlias = Literal["auto", "round_robin", "random", "manual"]
GROUP: Mapping[Lang, str] = {
    "en": "You are {name}, one of several who talk with each other. The others:\n{others}\n\n"
    "What they say comes with their name in front. Speak for yourself alone, and put no name in front of it.",
    "zh": "你是{name}，正在和其他人一起交谈。其他人：\n{others}\n\n"
    "他们的话前面带有名字。请只以你自己的身份发言，发言前不要加名字。",
}
HOST: Mapping[Lang, str] = {
    "en": "You lead a conversation between these members:\n{members}\n\n"
    "Read it and decide who speaks next; what was said last counts most. Answer with one of these names and nothing "
    "else: {names}. If the user wants to stop, or all has been said, answer [STOP].",
    "zh": "你主持以下成员之间的对话：\n{members}\n\n请阅读对话，决定下一位由谁发言；越靠后的话越重要。"
    "只回答其中一个名字，不要写别的：{names}。如果用户想结束，或者话已说完，就回答 [STOP]。",
}
WHO_NEXT: Mapping[Lang, str] = {
    "en": "{dialogue}\n\nWho speaks next? One of {names}, or [STOP].",
    "zh": "{dialogue}\n\n下一位由谁发言？从 {names} 中选一个，或回答 [STOP]。",
}
NOBODY_SPOKE: Mapping[Lang, str] = {"en": "Nobody had anything to say.", "zh": "没有人发言。"}
OVER: Mapping[Lang, str] = {"en": "The conversation has come to its end.", "zh": "对话已经结束。"}
CALL_SOMEBODY: Mapping[Lang, str] = {
    "en": "Say who is to answer, with an @ in front of the name: {names}.",
    "zh": "请用 @ 加名字指明由谁回答：{names}。",
}
_METHODS = ("auto", "round_robin", "random", "manual")
_MOST_ROUNDS = 99
_STOP = "[STOP]"
_TEXTS = ("name", "description", "instructions")
_LISTS = ("selected_tools", "knowledge_files")


@dataclass(slots=True)
class _State:
    """The state of one reply of the group."""

    messages: list[Message]
    lang: Lang
    random: Random
    last: str | None  # who spoke last, where that is a member
    called: list[str]  # mentioned members that have not spoken yet
    only_called: bool  # whether nobody else speaks
    usage: Usage | None = None  # of the last choice of a speaker
    over: bool = False  # whether the model has ended it
    turns: int = 0
    spoke: bool = False  # whether there was a word in one of them
    meter: Meter | None = None  # of the reply, which has limits


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

    calls_tools = False  # those in `function_list` are its members'
    leads_agents = True

    def __init__(  # noqa: PLR0913 - Qwen-Agent's arguments, and one of our own by name
        self,
        agents: Sequence[Agent] | Mapping[str, Any] = (),
        agent_selection_method: Method = "auto",
        *,
        function_list: Sequence[GivenTool] | None = None,
        llm: GivenModel | None = None,
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

    @property
    def mentionable(self) -> Sequence[Agent]:
        """The members that are no persons."""
        return self.nonuser_agents

    def _system_message(self, lang: Lang) -> str:
        del lang
        return ""  # each member is told: see `_group_prompt`

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
        most = checked_int("max_round", len(self._agents) if max_round is None else max_round, 1, _MOST_ROUNDS)
        wanted = list(mentioned_agents_name or ())
        if unknown := [one for one in wanted if one not in self.agent_names]:
            hint = f"Members: {', '.join(self.agent_names)}."
            raise SettingsError(f"There is no member named {unknown[0]!r}.", hint=hint)
        talk = self._first_state(messages, lang, wanted)
        return self._rounds(talk, most if need_batch_response else 1, self._with_guard(kwargs))

    def _first_state(self, messages: list[Message], lang: Lang, wanted: list[str]) -> _State:
        since = this_turn(messages)  # of a reply that goes on
        question = messages[-1 - len(since)]
        spoke = {speaker_of(question, self._person), *(one.name for one in since)}
        here = mentioned(question.get_text_content(), self.agent_names)
        called = list(dict.fromkeys([*wanted, *(one for one in here if one not in spoke)]))
        speaker = speaker_of(messages[-1], self._person)
        random = Random() if self._seed is None else Random(f"{self._seed}/{len(messages)}")  # noqa: S311 - no secret
        last = speaker if speaker in self.agent_names else None
        return _State(messages, lang, random, last, called, bool(called) or self.agent_selection_method == "manual")

    async def _rounds(self, talk: _State, most: int, context: dict[str, Any]) -> Stream:
        may_have_run = context.pop("may_have_run", None)
        context.setdefault("evidence", [])  # the numbers of passages go on from member to member
        interrupted = unanswered_calls(talk.messages) if may_have_run is not None else []
        budget: Budget = context.get("budget") or Budget()
        run = state_of(context)
        talk.meter = run.meter if run is not None else None
        for _ in range(most):
            if talk.turns:
                budget.check_cost()
            if interrupted and interrupted[-1].name in self.agent_names:
                member, also = self._named(interrupted[-1].name), {"may_have_run": may_have_run}
            else:
                member, also = await self._next(talk), {}
            interrupted = []
            if talk.usage is not None:
                budget.pay(talk.usage)
                yield MessageStarted(self.name)
                yield MessageFinished("stop", talk.usage)
            if member is None:
                break
            async with aclosing(self._member_turn(member, talk, {**context, **also})) as events:
                async for event in events:
                    yield event
            if isinstance(member, UserAgent):
                return
        if not talk.spoke:
            for event in sentence_events(self.name, self._why_silent(talk)):
                yield event

    async def _member_turn(self, member: Agent, talk: _State, context: dict[str, Any]) -> Stream:
        """One member's messages; they become part of the group's conversation."""
        name, turn, budget = member.name or "", Transcript(), context.get("budget")
        spent = budget.spent if budget is not None else 0.0
        view = member_view(name, talk.messages, self._group_prompt(member, talk.lang), talk.lang, self._person)
        async with aclosing(member_events(member, view, talk.lang, **context)) as events:
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

    async def _next(self, talk: _State) -> Agent | None:
        """Who speaks next; None where nobody does."""
        talk.usage = None
        if talk.called:
            return self._named(talk.called.pop(0))
        if talk.only_called:
            return None
        match self.agent_selection_method:
            case "auto":
                return await self._model_choice(talk)
            case "random":
                others = [agent for agent in self._agents if agent.name != talk.last]
                return talk.random.choice(others or self._agents)
            case _:
                return self._after(talk.last, self._agents)

    async def _model_choice(self, talk: _State) -> Agent | None:
        """The member that the model picks; None where it ends the conversation."""
        names, lang = self.agent_names, talk.lang
        told = HOST[lang].format(members=member_list(self._agents, lang), names=joined_names(names, lang))
        told = f"{self._topic()}\n\n{told}".strip()
        dialogue = as_dialogue(talk.messages, lang, self._person)
        question = WHO_NEXT[lang].format(dialogue=dialogue, names=joined_names(names, lang))
        asked = (Message(SYSTEM, told), Message(USER, question))
        request, answer = ChatRequest(asked, (), self.extra_generate_cfg, lang, purpose="router"), Transcript()
        if talk.meter is not None:
            talk.meter.check()
        async with aclosing(self._model().stream(request)) as events:
            async for event in events:
                answer.apply(event)
        talk.usage = answer.usage
        if talk.meter is not None:
            talk.meter.pay(answer.usage)
        text = "\n".join(message.get_text_content() for message in answer.messages())
        name = chosen_name(text, names)
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

    def _group_prompt(self, member: Agent, lang: Lang) -> str:
        """A member's system prompt: the topic, and the other members."""
        others = [agent for agent in self._agents if agent is not member]
        group = GROUP[lang].format(name=member.name, others=member_list(others, lang)) if others else ""
        return f"{self._topic()}\n\n{group}".strip()

    def _why_silent(self, talk: _State) -> str:
        if talk.over:
            return OVER[talk.lang]
        if not talk.turns and talk.only_called:
            return CALL_SOMEBODY[talk.lang].format(
                names=joined_names([f"@{one}" for one in self.agent_names], talk.lang)
            )
        return NOBODY_SPOKE[talk.lang]


def group_of(
    config: Mapping[str, Any],
    llm: GivenModel | None,
    tools: Sequence[GivenTool] = (),
) -> tuple[str, list[Agent]]:
    """The topic and the members.

    Args:
        config: `{"background": topic, "agents": [member, ...]}`; a member is `{"name", "description", "instructions",
            "selected_tools": [...], "knowledge_files": [...]}`, or `{"name", "description", "is_human": true}`.
        llm: The members' model; a member's own `llm` comes before it. One of nothing but a `generate_cfg` says how the
            members' model writes for it.
        tools: What each member that is no person has besides its own.

    Raises:
        SettingsError: A field has the wrong type, or a tool or model cannot be made; the error names the field.
    """
    background, rows = config.get("background") or "", config.get("agents")
    if not isinstance(background, str):
        raise SettingsError("The field 'background' of a group must be text.")
    if not isinstance(rows, list):
        raise SettingsError("The field 'agents' of a group must be a list.", hint='Write {"agents": [{"name": ...}]}.')
    members = cast("list[Any]", rows)
    return background.strip(), [_member(place, row, llm, tools) for place, row in enumerate(members, start=1)]


def _member(place: int, row: Any, llm: GivenModel | None, tools: Sequence[GivenTool]) -> Agent:
    if not isinstance(row, dict):
        raise SettingsError(f"Member {place} of the group must be a dict.")
    fields = cast("dict[str, Any]", row)
    for names, kind, what in ((_TEXTS, str, "text"), (_LISTS, list, "a list"), (("is_human",), bool, "true or false")):
        for name in names:
            if fields.get(name) is not None and not isinstance(fields[name], kind):
                raise SettingsError(f"The field {name!r} of member {place} of the group must be {what}.")
    name, description, instructions = ((fields.get(field) or "").strip() for field in _TEXTS)
    if not name:
        raise SettingsError(f"Member {place} of the group has no name.")
    if fields.get("is_human"):
        return UserAgent(name=name, description=description)
    own, how = _own_model(fields.get("llm"))
    member = Assistant(
        [*tools, *(fields.get("selected_tools") or ())],
        own or llm,
        "\n\n".join(filter(None, (description, instructions))) or None,
        name,
        description,
        fields.get("knowledge_files") or None,
    )
    member.extra_generate_cfg.update(how)
    return member


def _own_model(given: Any) -> tuple[Any, Mapping[str, Any]]:
    """A member's own model, if any, and generate settings for the group's model otherwise."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    how = fields.get("generate_cfg")
    if len(fields) == 1 and isinstance(how, Mapping):
        return None, cast("Mapping[str, Any]", how)
    return cast("Any", given), {}
