"""`Router`: its model picks the agent that answers."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from core.agents.assistant import Assistant
from core.agents.conversation import (
    SAID_NOTHING,
    append_paragraph,
    call_id,
    mark_private,
    prepend_system,
    reserve_call_ids,
    this_turn,
)
from core.agents.hub import (
    CallIds,
    MultiAgentHub,
    checked_members,
    chosen_name,
    joined_names,
    member_events,
    member_list,
    sentence_events,
)
from core.messages.events import Event, ItemAdded, MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.tools.taint import Taint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from core.agents.base import Agent
    from core.agents.limits import Budget
    from core.agents.tools import GivenTool
    from core.languages import Lang
    from core.llm.open_model import GivenModel
    from core.llm.request import Stream
    from core.rag.config import RAGConfig

ROUTE: Mapping[Lang, str] = {
    "en": "You can hand a question over to these helpers:\n{members}\n\n"
    "Decide who answers the user's last message. If one of the helpers is better suited than you, write one line and "
    "nothing else:\nCall: the helper's name\nThe name must be one of: {names}. "
    "Otherwise answer yourself, without such a line.",
    "zh": "你可以把问题交给以下助手：\n{members}\n\n"
    "请判断由谁来回答用户的最后一条消息。如果某位助手比你更合适，就只写一行，不要写别的：\n"
    "Call: 助手的名字\n名字必须是其中之一：{names}。否则由你自己直接回答，不要写这样的一行。",
}
REMIND: Mapping[Lang, str] = {
    "en": "(Write “Call: ” and one of: {names}. Only if none of them fits, answer.)",
    "zh": "（请写“Call: ”加其中一个名字：{names}。都不合适时才直接回答。）",
}
HANDED_OVER: Mapping[Lang, str] = {"en": "Call: {name}\nReply: {text}", "zh": "Call: {name}\nReply: {text}"}
NO_SUCH_HELPER: Mapping[Lang, str] = {
    "en": "There is no helper named “{wanted}”, so “{name}” answers.",
    "zh": "没有名为“{wanted}”的助手，由“{name}”来回答。",
}
NAMED_NOBODY: Mapping[Lang, str] = {
    "en": "No helper was named, so “{name}” answers.",
    "zh": "没有指明由哪位助手回答，由“{name}”来回答。",
}


_LINE = re.compile(r"[ \t>*#`_]*call[ \t*`_]*[:：][ \t*`_]*(?P<name>[^\n]*)", re.IGNORECASE)
_SPOKEN = re.compile(
    rf"[ \t>*#`_]*[^\s:：][^\n:：]{{0,40}}[:：]{_LINE.pattern}", re.IGNORECASE
)  # "Waiter: Call: Waiter"
_BEGINS = re.compile(r"[ \t>*#`_]*(?:c(?:a(?:l(?:l[ \t*`_]*)?)?)?)?", re.IGNORECASE)
_AROUND = " \t>*#`_"
_AFTER_CALL = re.compile(r"(?<=\Acall)[ \t*`_]+", re.IGNORECASE)


class CallLine:
    """Finds a line `Call: name` in streamed text; holds back what may become one, and passes on the rest.

    Args:
        held: How many characters at the beginning are always held back: a sentence before the line must not show.
    """

    def __init__(self, held: int = 80) -> None:
        self.name: str | None = None  # what stands after `Call:`, once that is known
        self._first = held
        self._kept: list[str] = []
        self._short = ""  # the line that is held, without what may stand around the word in any number
        self._named = False  # whether that line is one, which only its end ends
        self._at_line_start = True

    def feed(self, text: str) -> str:
        """The text that is certainly no such line, after more of it; "" once the line was found."""
        if self.name is not None:
            return ""
        if not self._first and self._goes_on(text):
            self._kept.append(text)
            return ""
        held = "".join([*self._kept, text])
        self._kept = [held]
        if self._finds(held, whole=False) or len(held) < self._first:
            return ""
        self._first = 0
        start = held.rfind("\n") + 1
        line = held[start:]
        may_be = (start or self._at_line_start) and (_BEGINS.fullmatch(line) or _LINE.fullmatch(line))
        passed, line = (held[:start], line) if may_be else (held, "")
        self._kept = [line] if line else []
        self._short, self._named = _shortened(line), bool(_LINE.fullmatch(line))
        self._at_line_start = passed.endswith("\n") or (not passed and self._at_line_start)
        return passed

    def close(self) -> str:
        """What is still held back, at the end of the text."""
        held, self._kept = "".join(self._kept), []
        return "" if self._finds(held, whole=True) else held

    def _goes_on(self, text: str) -> bool:
        """Whether the held line may still become one with this text."""
        if not self._kept or "\n" in text:
            return False
        if not self._named:
            short = _shortened(self._short + text)
            self._named = bool(_LINE.fullmatch(short))
            if not self._named and not _BEGINS.fullmatch(short):
                return False
            self._short = short
        return True

    def _finds(self, text: str, *, whole: bool) -> bool:
        """Whether there is such a line; an unfinished one counts only at the end of the text (`whole`)."""
        if self.name is not None:
            return True
        lines = text.split("\n")
        ended = lines if whole else lines[:-1]
        for number, line in enumerate(ended):
            if not (number or self._at_line_start):
                continue
            match = _LINE.fullmatch(line)
            if match is None and not number and len(line) < self._first:  # small models begin with a name, as in a play
                match = _SPOKEN.fullmatch(line)
            if match is not None:
                self.name = match["name"].strip()
                return True
        return False


def _shortened(line: str) -> str:
    """The line without what the patterns skip."""
    return _AFTER_CALL.sub(" ", line.lstrip(_AROUND))


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

    leads_agents = True

    def __init__(  # noqa: PLR0913 - Qwen-Agent's arguments
        self,
        llm: GivenModel | None = None,
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
        return ""  # the agents are not told how to hand over: see `_router_messages`

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        kwargs = self._with_guard(kwargs)
        if kwargs.get("may_have_run") is not None and (agent := self._interrupted(messages)) is not None:
            return member_events(agent, messages, lang, **kwargs)
        return self._routed(messages, lang, kwargs)

    async def _routed(self, messages: list[Message], lang: Lang, context: dict[str, Any]) -> Stream:
        line, ids = CallLine(), CallIds()
        context.setdefault("evidence", [])  # the numbers of passages go on
        async with aclosing(super()._stream_reply(self._router_messages(messages, lang), lang=lang, **context)) as own:
            async for event in own:
                ids.note(event)
                for one in _without_line(event, line):
                    yield one
                if line.name is not None:
                    _pay(context.get("budget"), event)
                    break
        if line.name is None:
            return
        context.pop("may_have_run", None)
        picked = chosen_name(line.name, self.agent_names)
        agent = self._agents[self.agent_names.index(picked) if picked is not None else 0]
        if picked is None:
            words = NO_SUCH_HELPER if line.name else NAMED_NOBODY
            for event in sentence_events(self.name, words[lang].format(wanted=line.name[:80], name=agent.name)):
                yield event
        spoke = False
        async with aclosing(member_events(agent, reserve_call_ids(messages, ids.taken), lang, **context)) as events:
            async for event in events:
                spoke = spoke or not isinstance(event, MessageStarted | MessageFinished)
                yield event
        if not spoke:
            for event in sentence_events(self.name, SAID_NOTHING[lang].format(name=agent.name)):
                yield event

    def _router_messages(self, messages: list[Message], lang: Lang) -> list[Message]:
        """The conversation for the router's model: with how to hand over, and who answered before."""
        how = ROUTE[lang].format(members=member_list(self._agents, lang), names=joined_names(self.agent_names, lang))
        own = super()._system_message(lang)
        read = _without_helper_steps(messages, self.agent_names, lang)
        if self._model().small and not self._may_have_documents(messages):  # those are searched with the question
            read = _with_reminder(read, REMIND[lang].format(names=joined_names(self.agent_names, lang)))
        return prepend_system(read, f"{own}\n\n{how}" if own else how)

    def _interrupted(self, messages: list[Message]) -> Agent | None:
        """The agent whose calls were interrupted."""
        speakers = [message.name for message in this_turn(messages) if message.role == ASSISTANT]
        return next((agent for agent in self._agents if speakers and agent.name == speakers[-1]), None)


def _pay(budget: Budget | None, event: Event) -> None:
    """Add the cost of the router's own call, since its loop is left before it does."""
    if budget is not None and isinstance(event, MessageFinished):
        budget.pay(event.usage)


def _without_line(event: Event, line: CallLine) -> Iterator[Event]:
    """The router's own event without the call line; held back text is flushed before other events."""
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


def _with_reminder(messages: list[Message], how: str) -> list[Message]:
    """The messages with `how` after the last question: a small model forgets what came before it."""
    if not messages or messages[-1].role != USER:
        return messages
    return [*messages[:-1], append_paragraph(messages[-1], how)]


def _without_helper_steps(messages: list[Message], names: Sequence[str], lang: Lang) -> list[Message]:
    """The conversation with the helpers' answers, without their calls, results and thoughts."""
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
    return mark_private(kept) if Taint.of(messages).private else kept
