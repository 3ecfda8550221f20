"""From `function_list` to tools, other agents among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.agents.arguments import accepted_keywords
from core.agents.conversation import HEARD, SAID_NOTHING, language_of
from core.agents.going_on import Begun, goes_on
from core.agents.protocol import AgentProtocol, call_cycle, nested_agents
from core.errors import SettingsError, ToolError, extra_for
from core.llm.ledger import on_behalf_of
from core.messages.events import TextDelta
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.messages.transcript import Transcript
from core.tools.base import BaseTool, ToolResult
from core.tools.catalog import TOOL_REGISTRY
from core.tools.from_function import FunctionTool
from core.tools.run_state import state_of
from core.tools.taint import Taint

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from core.languages import Lang
    from core.messages.content import ContentItem
    from core.messages.events import Event
    from core.tools.approval import Guard

GivenTool: TypeAlias = "str | Mapping[str, Any] | BaseTool | AgentProtocol | Callable[..., Any]"
Tell: TypeAlias = "Callable[[tuple[str, ...], Event], None]"
ASK_AGENT: Mapping[Lang, str] = {
    "en": "The question or task, with everything that is needed to answer it.",
    "zh": "要提的问题或任务，须包含回答所需的全部信息。",
}
_KEYS = ("mcpServers", "openapi", "name")  # of a tool given as a dict: what it is, or what its tools come from
_DEEPEST = 5  # nested calls of agents
_SHOWN = 200  # characters of its text in a progress report
_OWN = frozenset({"call_id", "messages", "cut_off", "run_context"})  # of the caller's context, not for the agent
_log = logging.getLogger(__name__)
_depth: ContextVar[int] = ContextVar("depth of agents that call agents", default=0)


def tools_from(given: Sequence[GivenTool] | None) -> dict[str, BaseTool]:
    """The tools by name.

    Args:
        given: Names, dicts (`{"name": ..., options}`), tools, functions, agents, `{"mcpServers": {...}}`, and
            `{"openapi": address, path, text or dict, "credentials": {...}}`.

    Raises:
        SettingsError: One of them is none of these, or its name is unknown (`UnknownNameError`).
        ServerUnreachableError: An MCP server cannot be started or reached.
        FetchError: An OpenAPI document cannot be fetched.
    """
    tools: dict[str, BaseTool] = {}
    for item in _tool_list(given):
        for tool in _tools_of(item):
            if tools.get(tool.name) is tool:
                _log.warning("The tool %r was given twice; it counts once.", tool.name)
            elif tool.name in tools:
                _log.warning("Two tools are named %r; the later one counts.", tool.name)
            tools[tool.name] = tool
    return tools


def _tool_list(given: object) -> list[GivenTool]:
    """Raises SettingsError where one tool, or something else, stands where a list belongs."""
    if given is None:
        return []
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return list(cast("Iterable[GivenTool]", given))
    shown = str(cast("object", given)) if isinstance(given, Mapping) else "the_tool"
    shown = repr(given) if isinstance(given, str) else shown
    kind = type(cast("object", given)).__name__
    raise SettingsError(f"function_list must be a list, not {kind}.", hint=f"Write [{shown}].")


def _tools_of(item: GivenTool) -> list[BaseTool]:
    match item:
        case AgentProtocol():
            return [AgentTool(item)]
        case BaseTool():
            return [item]
        case str():
            return [TOOL_REGISTRY[item]()]
        case Mapping():
            return _from_mapping(item)
        case _ if isinstance(item, type):
            if issubclass(kind := cast("type[object]", item), BaseTool):
                return [kind()]
            hint = "Give a class of tools, or a function."
            raise SettingsError(f"This is no tool: {kind!r}.", hint=hint)
        case _ if callable(item):
            return [FunctionTool(item)]
        case _:
            raise SettingsError(
                f"This is no tool: {item!r}.", hint="Give a name, a dict, a tool, a function or an agent."
            )


def _from_mapping(item: Mapping[str, Any]) -> list[BaseTool]:
    if "mcpServers" in item:
        with extra_for("A tool of an MCP server"):
            from core.mcp.pool import MCPManager  # servers are rare, and their package is not small

        return list(MCPManager.shared().init_config(item))
    if "openapi" in item:
        from core.tools.openapi.as_tools import from_given  # as rare

        return list(from_given(item))
    if not isinstance(item.get("name"), str):
        near = next((key for name in item for key in get_close_matches(str(name), _KEYS, n=1, cutoff=0.7)), "")
        hint = f"Did you mean {near!r}?" if near else 'Write {"name": "calculator"}.'
        raise SettingsError("A tool given as a dict needs its name.", hint=hint)
    return [TOOL_REGISTRY[item["name"]](item)]


class AgentTool(BaseTool):
    """Asks an agent one question and returns its answer; the agent does not see the caller's conversation.

    The caller's guard decides about the agent's calls, as part of the caller's call. The answer brings the pictures and
    files that the agent made and the passages that it found. Meanwhile its text is reported as progress, and every
    event of its reply to `inside`. An agent without an answer is reported as such, a failing one as a failed call.
    Agents that could call each other in a cycle, and more than five nested calls, are refused.

    Args:
        name: The tool's name; the agent's by default.
        description: The tool's description; the agent's by default.

    Raises:
        SettingsError: The agent has no name, or can call itself.
    """

    timeout = 1800.0

    def __init__(self, agent: AgentProtocol, name: str | None = None, description: str | None = None) -> None:
        self.agent = agent
        self.name = (name or agent.name or "").strip()
        if not self.name:
            raise SettingsError("An agent that is used as a tool needs a name.", hint="Pass name=... to the agent.")
        self.description = description or agent.description or f"Asks {self.name}."
        question = {"type": "string", "description": ASK_AGENT[_lang_of(self.description)]}
        self.parameters = {"type": "object", "properties": {"question": question}, "required": ["question"]}
        super().__init__()
        self.idempotent = _is_idempotent(agent)
        self.goes_on = goes_on(agent)
        if said := _cycle_error(agent):
            raise SettingsError(said)

    @property
    def file_access(self) -> bool:
        """Always true: the agent's tools may need them."""
        return True

    async def call(  # noqa: PLR0913 - what the caller's context has, by name
        self,
        params: str | dict[str, Any],
        *,
        call_id: str = "",
        approval: Guard | None = None,
        progress: Callable[..., None] | None = None,
        messages: Sequence[Message] = (),
        lang: Lang | None = None,
        begun: Mapping[str, Begun] | None = None,
        **context: Any,
    ) -> ToolResult:
        """Ask the agent; where it was broken off, it goes on.

        Args:
            params: `{"question": ...}`.
            call_id: The id of the caller's call.
            approval: Decides about the agent's calls, as part of the caller's call.
            progress: Called with the end of the agent's text so far.
            messages: The caller's conversation; if it has private content, so has the agent's.
            lang: The language of Parlour's own sentences; the question's by default.
            begun: What was done before for calls that have no result yet, by the call.
            context: For the agent and its tools. `inside` is called with each event of the reply and the ids of the
                calls that it is nested in, outermost first; `ask_user` asks as part of the caller's call, too.

        Raises:
            ToolError: Agents call each other in a cycle, or too deep.
        """
        question = str(self._verify_json_format_args(params)["question"])
        if said := _cycle_error(self.agent):
            raise ToolError(said)
        deep = _depth.get()
        if deep >= _DEEPEST:
            raise ToolError(
                f"More than {_DEEPEST} agents would call one another in a row, so {self.name!r} was not asked."
            )
        extra = {"heard": True, "files": [""]} if Taint.of(messages).private else {"heard": True}
        asked = Message(USER, question, extra=extra)
        lang = lang or language_of([asked])
        if (run := state_of(context)) is not None:
            context["run_state"] = run.inner()
        context = {key: value for key, value in context.items() if key not in _OWN}
        tell = _under_call(context, call_id)
        before = (begun or {}).get(call_id) if self.goes_on else None
        token = _depth.set(deep + 1)
        try:
            with on_behalf_of(self.name, call_id):
                reply = await self._inner_reply(asked, before, progress, tell, lang=lang, approval=approval, **context)
        finally:
            _depth.reset(token)
        return _result(reply, lang, self.name)

    async def _inner_reply(
        self,
        asked: Message,
        before: Begun | None,
        progress: Callable[..., None] | None,
        tell: Tell | None,
        **context: Any,
    ) -> Transcript:
        reply, written = Transcript(before.events if before is not None else ()), ""
        said = reply.messages()
        if before is not None and said:
            context |= {"may_have_run": before.may_have_run, "begun": before.within}

        def inner(_: str, text: str, done: float | None = None, total: float | None = None) -> None:
            if progress is not None:
                progress(text, done, total)

        async with aclosing(
            self.agent.stream([asked, *said], progress=inner, **accepted_keywords(self.agent, context))
        ) as events:
            async for event in events:
                reply.apply(event)
                if tell is not None:
                    tell((), event)
                if isinstance(event, TextDelta) and progress is not None:
                    written = (written + event.text)[-_SHOWN:]
                    progress(written)
        return reply


class _AsksUnder:
    """Asks the user as part of another call; equal to whatever asks the same user, so that a server sees one user."""

    def __init__(self, ask: Callable[..., Awaitable[Any]], call_id: str) -> None:
        self._ask, self._call_id = ask, call_id
        self.user: object = ask.user if isinstance(ask, _AsksUnder) else ask

    def __call__(self, _: str, *asked: Any) -> Awaitable[Any]:
        return self._ask(self._call_id, *asked)

    def __eq__(self, other: object) -> bool:
        return self.user == (other.user if isinstance(other, _AsksUnder) else other)

    def __hash__(self) -> int:
        return hash(self.user)


def _under_call(context: dict[str, Any], call_id: str) -> Tell | None:
    """Make `ask_user` and `inside` of the context speak for the caller's call; returns the new `inside`, if any."""
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


def _is_idempotent(agent: AgentProtocol) -> bool:
    """Whether every tool of the agent and of its nested agents is idempotent."""
    every = (tool for one in [agent, *nested_agents(agent)] for tool in getattr(one, "function_map", {}).values())
    return all(tool.idempotent for tool in every)


def _cycle_error(agent: AgentProtocol) -> str:
    """The error where an agent can call itself through others; "" where it cannot."""
    names = [str(getattr(one, "name", None) or type(one).__name__) for one in call_cycle(agent)]
    return f"The agent {names[0]!r} would call itself: {' → '.join(names)}." if names else ""


def _result(reply: Transcript, lang: Lang, name: str) -> ToolResult:
    """The agent's last messages and the media it made; with names where several agents spoke."""
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
    items = tuple(item for message in messages for item in _media(message))
    text = "\n\n".join(lines) or ("" if items else SAID_NOTHING[lang].format(name=name))
    passages = tuple(row for message in messages for row in (message.extra or {}).get("passages") or ())
    usage = {} if reply.usage is None else {"spent": reply.usage.model_dump()}
    return ToolResult(text, items, passages, {"agent": name, **usage})


def _media(message: Message) -> list[ContentItem]:
    """Pictures, sounds and files; without the file that holds a result's full text."""
    items = message.items[:-1] if (message.extra or {}).get("whole") else message.items
    return [item for item in items if item.type != "text"]


def _lang_of(text: str) -> Lang:
    return language_of([Message(USER, text)])
