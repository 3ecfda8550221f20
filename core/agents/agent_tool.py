"""An agent that another agent may call like a tool."""

from __future__ import annotations

from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from core.agents.hub import circle, within
from core.agents.keywords import handed_on
from core.agents.language import language_of
from core.agents.leading_prompts import ASK_AGENT, HEARD, SAID_NOTHING
from core.errors import SettingsError, ToolError
from core.messages.events import TextDelta
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.messages.transcript import Transcript
from core.tools.base import BaseTool, ToolResult
from core.tools.seen import Seen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from core.agents.base import Agent
    from core.llm.request import Lang
    from core.messages.content import ContentItem
    from core.messages.events import Event
    from core.tools.approval import Guard

Tell: TypeAlias = "Callable[[tuple[str, ...], Event], None]"

_DEEPEST = 5  # agents that call one another in a row
_SHOWN = 200  # letters of what it writes that whoever follows sees
_OWN = frozenset({"call_id", "messages", "cut_off"})  # of the caller's context, what is the call's alone

_depth: ContextVar[int] = ContextVar("depth of agents that call agents", default=0)


class AgentTool(BaseTool):
    """Asks an agent one question and returns its answer; it sees nothing of the caller's conversation.

    What the agent calls is decided about by the caller's guard, under the caller's call. Its answer comes back with the
    pictures and files it made and the passages it found; while it works, what it writes is told as progress, and to
    whoever wants to know (`inside`) everything that happens in its reply. An agent
    that says nothing is reported as such, one that fails as a failed call. Agents that could call each other in a
    circle, and more than five that call one another in a row, are refused.

    Args:
        agent: Who is asked.
        name: The tool's name; the agent's by default.
        description: What the model is told; the agent's by default.

    Raises:
        SettingsError: The agent has no name, or can call itself.
    """

    timeout = 1800.0

    def __init__(self, agent: Agent, name: str | None = None, description: str | None = None) -> None:
        self.agent = agent
        self.name = (name or agent.name or "").strip()
        if not self.name:
            raise SettingsError("An agent that is used as a tool needs a name.", hint="Pass name=... to the agent.")
        self.description = description or agent.description or f"Asks {self.name}."
        question = {"type": "string", "description": ASK_AGENT[_lang_of(self.description)]}
        self.parameters = {"type": "object", "properties": {"question": question}, "required": ["question"]}
        super().__init__()
        self.idempotent = _may_run_twice(agent)
        if said := _in_a_circle(agent):
            raise SettingsError(said)

    @property
    def file_access(self) -> bool:
        """Always true: the agent's tools may need them."""
        return True

    async def call(
        self,
        params: str | dict[str, Any],
        *,
        call_id: str = "",
        approval: Guard | None = None,
        progress: Callable[..., None] | None = None,
        messages: Sequence[Message] = (),
        lang: Lang | None = None,
        **context: Any,
    ) -> ToolResult:
        """Ask the agent.

        Args:
            params: `{"question": ...}`.
            call_id: The caller's call.
            approval: Decides about what the agent calls, as part of the caller's call.
            progress: Told the end of what the agent has written so far.
            messages: The caller's conversation: whether something private is in it counts for the agent too.
            lang: The language of what Parlour says; the question's by default.
            context: For the agent and its tools. `inside` is told each event of the reply, with the calls that it
                happens in, from the outermost; `ask_user` asks under the caller's call, too.

        Raises:
            ToolError: Agents call each other in a circle, or too deep.
        """
        question = str(self._verify_json_format_args(params)["question"])
        if said := _in_a_circle(self.agent):
            raise ToolError(said)
        deep = _depth.get()
        if deep >= _DEEPEST:
            raise ToolError(
                f"More than {_DEEPEST} agents would call one another in a row, so {self.name!r} was not asked."
            )
        extra = {"heard": True, "files": [""]} if Seen.of(messages).private else {"heard": True}
        asked = Message(USER, question, extra=extra)
        lang = lang or language_of([asked])
        context = {key: value for key, value in context.items() if key not in _OWN}
        tell = _within(context, call_id)
        token = _depth.set(deep + 1)
        try:
            reply = await self._replied(asked, progress, tell, lang=lang, approval=approval, **context)
        finally:
            _depth.reset(token)
        return _result(reply, lang, self.name)

    async def _replied(
        self, asked: Message, progress: Callable[..., None] | None, tell: Tell | None, **context: Any
    ) -> Transcript:
        reply, written = Transcript(), ""

        def inner(_: str, text: str, done: float | None = None, total: float | None = None) -> None:
            if progress is not None:
                progress(text, done, total)

        async with aclosing(self.agent.stream([asked], progress=inner, **handed_on(self.agent, context))) as events:
            async for event in events:
                reply.apply(event)
                if tell is not None:
                    tell((), event)
                if isinstance(event, TextDelta) and progress is not None:
                    written = (written + event.text)[-_SHOWN:]
                    progress(written)
        return reply


class _AsksUnder:
    """Asks the user under another call; equal to whatever asks the same user, so that a server knows whom it asks."""

    def __init__(self, ask: Callable[..., Awaitable[Any]], call_id: str) -> None:
        self._ask, self._call_id = ask, call_id
        self.user: object = ask.user if isinstance(ask, _AsksUnder) else ask

    def __call__(self, _: str, *asked: Any) -> Awaitable[Any]:
        return self._ask(self._call_id, *asked)

    def __eq__(self, other: object) -> bool:
        return self.user == (other.user if isinstance(other, _AsksUnder) else other)

    def __hash__(self) -> int:
        return hash(self.user)


def _within(context: dict[str, Any], call_id: str) -> Tell | None:
    """Let the context tell and ask under the caller's call; returns who is told what happens, if anybody is."""
    ask_user: Callable[..., Awaitable[Any]] | None = context.get("ask_user")
    if ask_user is not None:
        context["ask_user"] = _AsksUnder(ask_user, call_id)
    inside: Tell | None = context.get("inside")
    if inside is None:
        return None

    def tell(calls: tuple[str, ...], event: Event) -> None:
        inside((call_id, *calls), event)

    context["inside"] = tell
    return tell


def _may_run_twice(agent: Agent) -> bool:
    """Whether nothing that it and those within it can call would be done a second time."""
    every = (tool for one in [agent, *within(agent)] for tool in getattr(one, "function_map", {}).values())
    return all(tool.idempotent for tool in every)


def _in_a_circle(agent: Agent) -> str:
    """What is wrong with agents that can call each other for ever; empty where nothing is."""
    names = [str(getattr(one, "name", None) or type(one).__name__) for one in circle(agent)]
    return f"The agent {names[0]!r} would call itself: {' → '.join(names)}." if names else ""


def _result(reply: Transcript, lang: Lang, name: str) -> ToolResult:
    """The agent's last words and what it made; names stand before them where several spoke."""
    messages = reply.messages()
    results = [at for at, message in enumerate(messages) if message.role == FUNCTION]
    last = [one for one in messages[results[-1] + 1 if results else 0 :] if one.get_text_content().strip()]
    last = last or [one for one in messages if one.role == ASSISTANT and one.get_text_content().strip()]
    several = len({one.name for one in last}) > 1
    lines = [
        HEARD[lang].format(name=one.name, text=one.get_text_content())
        if several and one.name
        else one.get_text_content()
        for one in last
    ]
    items = tuple(item for message in messages for item in _made(message))
    text = "\n\n".join(lines) or ("" if items else SAID_NOTHING[lang].format(name=name))
    passages = tuple(row for message in messages for row in (message.extra or {}).get("passages") or ())
    usage = {} if reply.usage is None else {"spent": reply.usage.model_dump()}
    return ToolResult(text, items, passages, {"agent": name, **usage})


def _made(message: Message) -> list[ContentItem]:
    """Pictures, sounds and files; not the file that holds the whole of a text too long for a model."""
    items = message.items[:-1] if (message.extra or {}).get("whole") else message.items
    return [item for item in items if item.type != "text"]


def _lang_of(text: str) -> Lang:
    return language_of([Message(USER, text)])
