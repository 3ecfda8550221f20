"""`handoff`: another agent takes the reply over, when the model calls a tool, and may give it back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from core.agents.arguments import accepted_keywords
from core.agents.conversation import call_id, reserve_call_ids
from core.agents.extending import check_function
from core.agents.protocol import AgentProtocol
from core.errors import LimitReachedError, SettingsError, shown
from core.messages.events import MessageStarted
from core.messages.message import FUNCTION, SYSTEM, Message
from core.tools.approval import NestedGuard
from core.tools.base import BaseTool, ToolResult
from core.tools.run_context import called
from core.tools.run_state import RunState

if TYPE_CHECKING:
    from core.languages import Lang
    from core.llm.request import Stream
    from core.tools.approval import Guard

History: TypeAlias = Literal["all", "talk"] | Callable[..., Any]
_MOST: Final = 10  # handovers of one reply: two agents may send a question to and fro
_NO_NAME: Final = re.compile(r"\W+")
_REASON: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"reason": {"type": "string", "description": "Why, and what is still to be done."}},
    "required": [],
}
_TAKES_OVER: Final[dict[Lang, str]] = {"en": "“{name}” takes over.", "zh": "由“{name}”接手。"}
_BACK: Final[dict[Lang, str]] = {"en": "The conversation is given back.", "zh": "对话已交还。"}


class HandBack(BaseTool):
    """Ends the reply of an agent that has taken over; whoever handed over to it goes on."""

    name = "hand_back"
    description = "Gives the conversation back, when your part of it is done or it is not for you."
    parameters = _REASON

    def call(self, params: str | dict[str, Any], *, lang: Lang = "en", **_: Any) -> ToolResult:
        """Give it back."""
        reason = str(self._verify_json_format_args(params).get("reason") or "")
        return ToolResult(f"{_BACK[lang]} {reason}".strip(), extra={"handoff": ""})


class Handoff(BaseTool):
    """A tool by which an agent hands the reply over to another: that one speaks to the user from then on.

    Args:
        agent: Who takes over.
        name: The tool's name; `transfer_to_` and the agent's by default.
        description: When to hand over; the agent's description by default.
        history: What it sees of the conversation: `all` of it, the `talk` (questions and answers without calls and
            results), or what a function gives that is given the messages, after a `RunContext` where it wants one.
        back: Whether it has a tool to give the reply back.

    Raises:
        SettingsError: It is no agent, has no name, or another argument is none of these.
    """

    def __init__(
        self,
        agent: AgentProtocol,
        *,
        name: str | None = None,
        description: str | None = None,
        history: History = "all",
        back: bool = False,
    ) -> None:
        if not isinstance(agent, AgentProtocol):  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
            said = f"handoff takes an agent, not {shown(agent)}."
            raise SettingsError(said, hint='Write handoff(Assistant(..., name="refunds")).', name="agent")
        if not (agent.name or "").strip():
            said = f"agent of handoff must have a name, and this {type(agent).__name__} has none."
            raise SettingsError(said, hint='Write Assistant(..., name="refunds").', name="agent")
        if history not in ("all", "talk") and not callable(history):
            said = f"history must be 'all', 'talk' or a function of the messages, not {shown(history)}."
            raise SettingsError(said, hint='Write handoff(agent, history="talk").', name="history")
        if callable(history):
            check_function("history", history, 1, "(messages: list[Message]) -> list[Message]")
        for field, text in (("name", name), ("description", description)):
            if text is not None and (not isinstance(text, str) or not text.strip()):  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
                said = f"{field} of handoff must be a text, not {shown(text)}."
                raise SettingsError(said, hint=f'Write handoff(agent, {field}="…"), or leave it out.', name=field)
        if not isinstance(back, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
            said = f"back must be True or False, not {shown(back)}."
            raise SettingsError(said, hint="Write handoff(agent, back=True).", name="back")
        self.agent = agent
        self.name = name or f"transfer_to_{_NO_NAME.sub('_', str(agent.name).strip().lower())}"
        self.description = description or f"Hands over to {agent.name}. {agent.description or ''}".strip()
        self.parameters = _REASON
        super().__init__()
        self._history: History = history
        self._back = back

    def call(self, params: str | dict[str, Any], *, lang: Lang = "en", **_: Any) -> ToolResult:
        """Note that it hands over; the loop of tools does the rest.

        Raises:
            BadArgumentsError: The arguments are none.
        """
        self._verify_json_format_args(params)
        name = str(self.agent.name)
        return ToolResult(_TAKES_OVER[lang].format(name=name), extra={"handoff": name})

    async def take_over(
        self,
        messages: Sequence[Message],
        state: RunState | None,
        *,
        lang: Lang,
        approval: Guard | None,
        **context: Any,
    ) -> Stream:
        """The reply of the other agent, as events under its name.

        Args:
            messages: The conversation with what was done in this reply, system message included.
            state: That of the reply.
            lang: Its language.
            approval: Decides about its calls.
            context: What tools are passed.

        Raises:
            LimitReachedError: There were too many handovers in this reply.
        """
        run = state or RunState()
        run.meter.handoffs += 1
        if run.meter.handoffs > _MOST:
            said = f"The reply was handed over more than {_MOST} times."
            raise LimitReachedError(said, hint="Say in the agents' descriptions who does what.", calls=_MOST)
        agent = self.agent
        if self._back:
            agent = copy(agent)
            agent.function_map = {**agent.function_map, HandBack.name: HandBack()}
        told = [one for one in messages if one.role != SYSTEM]
        begun = self._begun(told) if context.get("may_have_run") is not None else len(told)
        seen = reserve_call_ids(await self._seen(told[:begun], run), {one for one in map(call_id, told) if one})
        seen += told[begun:]  # what it did itself before the reply was interrupted
        own = RunState(run.deps, run.meter, output=run.output, data=run.data)
        # What it is told may leave out what was read: its calls are decided about after all of that.
        guard = None if approval is None else NestedGuard(approval, list(messages))
        keywords = accepted_keywords(agent, {**context, "run_state": own, "lang": lang})
        async with aclosing(agent.stream(seen, approval=guard, **keywords)) as events:
            async for event in events:
                unnamed = isinstance(event, MessageStarted) and event.name is None
                yield MessageStarted(self.agent.name) if unnamed else event
        if state is not None:
            state.stopped = own.stopped

    def _begun(self, messages: Sequence[Message]) -> int:
        """Where the messages of who took over begin, in a reply that was interrupted."""
        name = str(self.agent.name)
        marks = (at for at, one in enumerate(messages, 1) if (one.extra or {}).get("handoff") == name)
        return max(marks, default=len(messages))

    async def _seen(self, messages: list[Message], run: RunState) -> list[Message]:
        """What the other agent is told. Raises SettingsError where a function gives something else."""
        if self._history == "all":
            return messages
        if self._history == "talk":
            return [one for one in messages if one.role != FUNCTION and one.function_call is None]
        found: object = await called(self._history, run.context(), messages)
        given: list[object] = cast("list[object]", found) if isinstance(found, list) else []
        if not given or not all(isinstance(one, Message) for one in given):
            kind = type(cast("object", found)).__name__
            said = f"history of handoff to {self.agent.name!r} returned {kind}, not a list of messages."
            raise SettingsError(said, hint="Return a part of the messages that it is given.", name="history")
        return cast("list[Message]", given)


def handoff(
    agent: AgentProtocol,
    *,
    name: str | None = None,
    description: str | None = None,
    history: History = "all",
    back: bool = False,
) -> Handoff:
    """A tool for `function_list` by which an agent hands the reply over to another.

    The other agent speaks to the user from then on; where an agent in `function_list` itself is asked one question and
    answers the one who asks.

    Args:
        agent: Who takes over.
        name: The tool's name; `transfer_to_` and the agent's by default.
        description: When to hand over; the agent's description by default.
        history: What it sees of the conversation: `all` of it, the `talk` (questions and answers without calls and
            results), or what a function gives that is given the messages, after a `RunContext` where it wants one.
        back: Whether it has a tool, `hand_back`, to give the reply back.

    Raises:
        SettingsError: It is no agent, has no name, or another argument is none of these.
    """
    return Handoff(agent, name=name, description=description, history=history, back=back)
