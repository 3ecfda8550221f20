"""An agent that hands each question to the one among several that suits it best."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from core.agents.assistant import Assistant
from core.agents.base import with_system
from core.agents.call_line import CallLine
from core.agents.hub import CallIds, MultiAgentHub, as_private, checked_members, said, speech, with_taken
from core.agents.leading_prompts import (
    HANDED_OVER,
    NAMED_NOBODY,
    NO_SUCH_HELPER,
    REMIND,
    ROUTE,
    SAID_NOTHING,
    in_a_row,
    listed,
)
from core.agents.mentions import named
from core.agents.pending import call_id, this_turn
from core.agents.telling import with_more
from core.messages.events import Event, ItemAdded, MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.tools.seen import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from core.agents.base import Agent
    from core.agents.budget import Budget
    from core.agents.given_tools import GivenTool
    from core.llm.base import BaseChatModel
    from core.llm.request import Lang, Stream
    from core.rag.config import RAGConfig


class Router(Assistant, MultiAgentHub):
    """Lets its model pick who answers, by the names and descriptions of its agents.

    The model writes `Call: name`, which nobody sees; the agent's answer streams in its place, under the agent's name.
    A name that no agent has goes to the first agent, and a sentence in the reply says so. A reply without such a line
    is the router's own answer. What its model writes before the line is left out; of a long preamble (more than 80
    letters) the beginning has been seen by then. An agent that says nothing is named in one sentence.

    Args:
        llm: The model that picks, and answers what needs none of the agents.
        agents: Those it picks from; each has a name of its own, and a description that says what it is good at.
        function_list: Tools of its own.
        system_message: What it is told besides how to hand over.
        name: Who speaks where none of the agents does.
        description: What it is good at.
        files: Documents of its own.
        rag_cfg: How these are cut and searched.

    Raises:
        SettingsError: There are no agents, one has no name or another one's, or is the router itself.
    """

    def __init__(  # noqa: PLR0913 - the seed's arguments
        self,
        llm: BaseChatModel | Mapping[str, Any] | str | None = None,
        agents: Sequence[Agent] = (),
        *,
        function_list: Sequence[GivenTool] | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        files: Sequence[str] | None = None,
        rag_cfg: RAGConfig | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description, files, rag_cfg)
        self._agents = checked_members(self, agents)

    def _system_message(self, lang: Lang) -> str:
        del lang
        return ""  # the agents are not told how to hand over: see `_told`

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        kwargs = self._asking(kwargs)
        if kwargs.get("begun") is not None and (agent := self._interrupted(messages)) is not None:
            return speech(agent, messages, lang, **kwargs)
        return self._routed(messages, lang, kwargs)

    async def _routed(self, messages: list[Message], lang: Lang, context: dict[str, Any]) -> Stream:
        line, ids = CallLine(), CallIds()
        context.setdefault("evidence", [])  # the numbers of passages go on
        async with aclosing(super()._stream_reply(self._told(messages, lang), lang=lang, **context)) as own:
            async for event in own:
                ids.note(event)
                for one in _without_line(event, line):
                    yield one
                if line.name is not None:
                    _pay(context.get("budget"), event)
                    break
        if line.name is None:
            return
        context.pop("begun", None)
        picked = named(line.name, self.agent_names)
        agent = self._agents[self.agent_names.index(picked) if picked is not None else 0]
        if picked is None:
            words = NO_SUCH_HELPER if line.name else NAMED_NOBODY
            for event in said(self.name, words[lang].format(wanted=line.name[:80], name=agent.name)):
                yield event
        spoke = False
        async with aclosing(speech(agent, with_taken(messages, ids.taken), lang, **context)) as events:
            async for event in events:
                spoke = spoke or not isinstance(event, MessageStarted | MessageFinished)
                yield event
        if not spoke:
            for event in said(self.name, SAID_NOTHING[lang].format(name=agent.name)):
                yield event

    def _told(self, messages: list[Message], lang: Lang) -> list[Message]:
        """What the router's model reads: how to hand over, and who answered before."""
        how = ROUTE[lang].format(members=listed(self._agents, lang), names=in_a_row(self.agent_names, lang))
        own = super()._system_message(lang)
        read = _who_answered(messages, self.agent_names, lang)
        if self._model().small and not self._may_have_documents(messages):  # those are searched with the question
            read = _reminded(read, REMIND[lang].format(names=in_a_row(self.agent_names, lang)))
        return with_system(read, f"{own}\n\n{how}" if own else how)

    def _interrupted(self, messages: list[Message]) -> Agent | None:
        """The agent that was in the middle of its calls."""
        speakers = [message.name for message in this_turn(messages) if message.role == ASSISTANT]
        return next((agent for agent in self._agents if speakers and agent.name == speakers[-1]), None)


def _pay(budget: Budget | None, event: Event) -> None:
    """Pay for the router's own call, where its loop is left before it has."""
    if budget is not None and isinstance(event, MessageFinished):
        budget.pay(event.usage)


def _without_line(event: Event, line: CallLine) -> Iterator[Event]:
    """The router's own event, without the line that hands over; what was held back comes before what follows it."""
    if isinstance(event, TextDelta):
        passed = line.feed(event.text)
    elif isinstance(event, MessageStarted):
        passed = ""
    else:
        passed = line.close() if isinstance(event, MessageFinished | ItemAdded) or event.kind.startswith("call") else ""
    if passed:
        yield TextDelta(passed)
    if line.name is not None:
        yield MessageFinished("stop", event.usage if isinstance(event, MessageFinished) else None)
    elif not isinstance(event, TextDelta):
        yield event


def _reminded(messages: list[Message], how: str) -> list[Message]:
    """With `how` behind the last question: a small model has lost sight of what stands before it."""
    if not messages or messages[-1].role != USER:
        return messages
    return [*messages[:-1], with_more(messages[-1], how)]


def _who_answered(messages: list[Message], names: Sequence[str], lang: Lang) -> list[Message]:
    """The conversation as the router's model reads it: what an agent answered, and nothing of how it came by that."""
    theirs = {call_id(one) for one in messages if one.function_call is not None and one.name in names}
    kept: list[Message] = []
    for message in messages:
        by_agent = message.role == ASSISTANT and message.name in names
        if message.role == FUNCTION and call_id(message) in theirs:
            continue
        if not by_agent:
            kept.append(message)
        elif message.function_call is None and (text := message.get_text_content()):
            text = HANDED_OVER[lang].format(name=message.name, text=text)
            kept.append(message.model_copy(update={"content": text, "reasoning_content": None}))
    return as_private(kept) if Seen.of(messages).private else kept
