"""`Agent`: what every agent promises. A subclass implements `_stream_reply` (async), or Qwen-Agent's `_run` (sync)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import aclosing
from copy import copy
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, cast, overload

from core.agents.arguments import check_keywords, check_taken, takes_any
from core.agents.asks import Asks
from core.agents.conversation import language_of, prepend_system
from core.agents.extending import Extends
from core.agents.mapping import map_questions
from core.agents.question_files import check_files
from core.agents.sync_run import run_events
from core.agents.tools import GivenTool, tools_from
from core.bridge.cancellation import is_within, released_events
from core.bridge.snapshots import as_messages, dumped, in_dicts, snapshots
from core.bridge.sync import run
from core.errors import BadMessagesError, ModelMisbehavedError, SettingsError, extra_for
from core.llm.concurrency import DEFAULT_CONCURRENCY
from core.llm.open_model import get_chat_model
from core.llm.validation import no_messages
from core.messages.events import ToolFinished
from core.messages.message import SYSTEM, Message
from core.messages.transcript import Transcript, call_message
from core.observing import begun, is_traced, spanned, spanned_items, stands_for_agent
from core.tools.approval import Guarded, LoopBoundGuard, events_under, guard_for, items_under, under
from core.tools.runner import ToolRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from core.agents.config.schema import AgentConfig
    from core.agents.mapping import Answer, MapProgress, Question
    from core.agents.reply import Reply
    from core.agents.session import Session
    from core.errors import ParlourError
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.open_model import GivenModel
    from core.llm.request import Stream
    from core.messages.content import ContentItem
    from core.messages.events import Event
    from core.observing import Span
    from core.tools.approval import Ask, Guard, Policy

Given: TypeAlias = Message | dict[str, Any]


class Agent(Asks, Extends):
    """Something that answers a conversation.

    Args:
        function_list: Tools: names, dicts (`{"name": ..., options}`), tools, functions, `{"mcpServers": {...}}`.
        llm: A model, a model's name, or its dict.
        system_message: What the agent is told first; put before a system message of the conversation.
        name: Who speaks, where there are several.
        description: What it is good at, for other agents and for people.

    Raises:
        SettingsError: A tool or a model cannot be made of what was given, or what is a text is none.
    """

    # What a configuration must know of a kind of agent.
    calls_tools: ClassVar[bool] = True  # whether it may be given tools
    leads_agents: ClassVar[bool] = False  # whether it must be given `agents`
    needs_model: ClassVar[Literal["always", "if_named", "never"]] = "always"  # "always": else that of the settings
    config_fields: ClassVar[frozenset[str]] = frozenset()
    """Arguments of its constructor, beyond those of `AgentConfig`, that a configuration may give; it checks them."""

    prompt_messages: tuple[Message, ...] = ()  # examples between the system message and the conversation
    _guard: Guard | None = None  # set on the copy that makes a guarded reply

    def __init__(
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: GivenModel | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        said: dict[str, Any] = {"name": name, "description": description, "system_message": system_message}
        for field, text in said.items():
            if not isinstance(text, str | None):
                hint = "Write @agent.instructions before the function." if callable(text) else ""
                raise SettingsError(f"{field} must be a text, not {text!r}.", hint=hint)
        self.llm = None if llm is None else get_chat_model(llm)
        self.function_map = tools_from(function_list)
        self.system_message = system_message
        self.name = name
        self.description = description
        self.extra_generate_cfg: dict[str, Any] = {}

    @classmethod
    def from_config(
        cls, config: AgentConfig | Mapping[str, Any] | str | Path, *, variables: Mapping[str, object] | None = None
    ) -> Agent:
        """The agent that a configuration describes: an `AgentConfig`, a dict, or a YAML, TOML or JSON file.

        `Agent.from_config` makes what the type or the strategy names; a subclass makes itself.

        Args:
            config: It.
            variables: Values for the blanks of its prompt (`{{name}}`).

        Raises:
            SettingsError: Something in it is wrong; the sentence names the field (`ConfigError`).
        """
        from core.agents.config.build import agent_from  # few programs have files

        return agent_from(cls, config, variables, any_kind=cls is Agent)

    @property
    def mentionable(self) -> Sequence[Agent]:
        """The members whom a question can turn to with `@name`, which the page offers; an agent alone has none."""
        return ()

    # -- asking ---------------------------------------------------------------------------------------------------

    def stream(
        self, messages: Sequence[Given], *, approval: Guard | Policy | Ask | None = None, **kwargs: Any
    ) -> Stream:
        """The reply as events. Leaving early (`async with aclosing(...)`) stops the model and its tools.

        Args:
            messages: The conversation; neither it nor its messages are changed.
            approval: Decides about every call: a function that is asked about each, a `Policy` (what it would ask about
                is refused), or a `Guard` of both, which asks where the rules want that. Left out, the tools run as they
                are called. It holds for every agent that is asked within the reply, told of it or not; their own
                `approval` may be stricter, and loosens nothing.
            kwargs: `lang` ("en" or "zh", else the language of the last question), and what tools take; `progress` is
                called with a call's id, a text, what is done and the total.

        Raises:
            BadMessagesError: There is no message, or they are none.
            SettingsError: An argument is misspelt, or there is no such language.
            ParlourError: The reply cannot be made; most such errors come while the events are read.
        """
        asked, _ = self._checked(messages, kwargs)
        guard = guard_for(approval)
        make = self._seed_events if self._is_plain_seed(kwargs) else self._events
        events = make(asked, guard, **kwargs)
        return events if is_within() else released_events(events)

    @overload
    def run(  # pyright: ignore[reportOverlappingOverload] - an empty list is refused
        self, messages: Sequence[dict[str, Any]], *, approval: Guard | Policy | Ask | None = None, **kwargs: Any
    ) -> Generator[list[dict[str, Any]], None, None]: ...
    @overload
    def run(
        self, messages: Sequence[Given], *, approval: Guard | Policy | Ask | None = None, **kwargs: Any
    ) -> Generator[list[Message], None, None]: ...
    def run(
        self, messages: Sequence[Given], *, approval: Guard | Policy | Ask | None = None, **kwargs: Any
    ) -> Generator[Any, None, None]:
        """Yields the growing reply to `messages`: each item is a complete snapshot. Dicts in, dicts out.

        Closing the iterator stops the reply. `approval` and the rest are as of `stream`.
        """
        asked, as_dicts = self._checked(messages, kwargs)
        check_files(asked)
        guard = guard_for(approval)
        if self._is_plain_seed(kwargs):
            growing = self._run_seed(asked, guard, **kwargs)
        else:
            growing = snapshots(partial(self._events, asked, guard, **kwargs))
        return in_dicts(growing) if as_dicts else growing

    @overload
    def run_nonstream(  # pyright: ignore[reportOverlappingOverload] - an empty list is refused
        self, messages: Sequence[dict[str, Any]], *, approval: Guard | Policy | Ask | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]: ...
    @overload
    def run_nonstream(
        self, messages: Sequence[Given], *, approval: Guard | Policy | Ask | None = None, **kwargs: Any
    ) -> list[Message]: ...
    def run_nonstream(
        self, messages: Sequence[Given], *, approval: Guard | Policy | Ask | None = None, **kwargs: Any
    ) -> Any:
        """The whole reply to `messages`. `approval` and the rest are as of `stream`; what nothing takes is refused."""
        asked, as_dicts = self._checked(messages, kwargs)
        check_files(asked)
        check_taken(self, kwargs)
        guard = guard_for(approval)
        if self._is_plain_seed(kwargs):
            reply: list[Message] = []
            for reply in self._run_seed(asked, guard, **kwargs):  # noqa: B007 - the last one is the whole
                pass
        else:
            reply = run(_complete_reply(self._events(asked, guard, **kwargs)))
        return dumped(reply) if as_dicts else reply

    async def amap(
        self,
        questions: Sequence[Question],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        keep_errors: bool = False,
        progress: Callable[[MapProgress], None] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> list[Answer | ParlourError]:
        """Ask many questions, `concurrency` at the same time; the answers come in the order of the questions.

        Args:
            questions: Texts, messages, or lists of messages.
            concurrency: How many are asked at the same time.
            keep_errors: Whether an error takes the place of its answer; else the first one ends all and is raised.
            progress: Called after each question, on the loop: it must be quick.
            approval: As of `stream`, for every call of every reply.
            kwargs: As of `stream`.

        Raises:
            BadMessagesError: A question is none.
            SettingsError: `concurrency` is below 1.
            ParlourError: What a reply ended with.
        """
        options: dict[str, Any] = {"progress": progress, "approval": approval, **kwargs}
        return await map_questions(self, questions, concurrency=concurrency, keep_errors=keep_errors, **options)

    def map(
        self,
        questions: Sequence[Question],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        keep_errors: bool = False,
        progress: Callable[[MapProgress], None] | None = None,
        approval: Guard | Policy | Ask | None = None,
        **kwargs: Any,
    ) -> list[Answer | ParlourError]:
        """As `amap`, from synchronous code; interrupting it stops every reply."""
        options: dict[str, Any] = {"progress": progress, "approval": approval, **kwargs}
        return run(map_questions(self, questions, concurrency=concurrency, keep_errors=keep_errors, **options))

    def session(
        self,
        store: str | Path | None = None,
        name: str = "session",
        *,
        approval: Guard | Policy | Ask | None = None,
    ) -> Session:
        """A conversation with this agent that goes on from question to question.

        Args:
            store: An SQLite file, in which it outlives the program; left out, it is kept in memory. It is made where it
                is not there, and may hold many sessions.
            name: Which of the file's sessions; one that is there goes on.
            approval: As of `stream`, for all its questions. In a file, what a `Policy` would ask about waits for
                `Session.decide`, in this process or another.

        Raises:
            SettingsError: `store` is no path, or `name` no text.
            MissingExtraError: What keeps files is not installed.
        """
        from core.agents.session import session_of  # few programs have sessions

        return session_of(self, store, name, approval)

    def serve(  # noqa: PLR0913 - by name how it is served
        self,
        *,
        page: bool | None = None,
        mcp: bool = False,
        openai: bool = False,
        a2a: bool = False,
        host: str | None = None,
        port: int | None = None,
        token: str | None = None,
        approval: Policy | None = None,
    ) -> None:
        """Serve this agent until Ctrl-C, at one address: in the browser, and for other programs.

        Args:
            page: Whether it has the page of `WebUI`; left out, where no other door is open.
            mcp: Whether it is an MCP server (`/mcp`).
            openai: Whether it is a model of OpenAI's protocol (`/v1`).
            a2a: Whether it speaks A2A (`/a2a`, with its card at `/.well-known/agent-card.json`).
            host: The address to listen on; 127.0.0.1 if left out.
            port: The port; 7860, or the next free one, if left out.
            token: What programs show; left out, `PARLOUR_TOKEN`, or one that is made and told. "off" asks for none.
            approval: Decides about calls of programs; what it would ask about is refused, for nobody is there.

        Raises:
            SettingsError: Something makes no sense, or others could come in without a token.
            MissingExtraError: The server's packages are not installed.
        """
        from core.agents.serving import SERVERS  # few agents are served

        with extra_for("Serving an agent"):
            serve = SERVERS["agent"]
        given: dict[str, Any] = {"host": host, "port": port, "token": token, "approval": approval}
        serve(self, page=page, mcp=mcp, openai=openai, a2a=a2a, **given)

    async def _answered(self, question: Question, options: Mapping[str, Any]) -> Reply[Any]:
        from core.agents.asking import answered  # brings what only typed replies need

        return await answered(self, question, options)

    def _event_stream(
        self, question: Question, options: Mapping[str, Any], whole: list[Any] | None = None
    ) -> AsyncGenerator[Event, None]:
        from core.agents.asking import event_stream

        return event_stream(self, question, options, whole)

    # -- what a subclass implements -------------------------------------------------------------------------------

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        """The reply to `messages`, which begin with the system message; the hook may change the list."""
        raise NotImplementedError(f"{type(self).__name__} must define _stream_reply or _run.")

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        """Qwen-Agent's hook: yields the growing reply. `super()._run(...)` is the async hook's reply."""
        kwargs.setdefault("lang", language_of(messages))
        return snapshots(partial(self._stream_reply, list(messages), **kwargs))

    def _system_message(self, lang: Lang) -> str:
        """The system prompt."""
        del lang
        return self.system_message or ""

    # -- for synchronous subclasses -------------------------------------------------------------------------------

    def _call_llm(
        self,
        messages: Sequence[Given],
        functions: list[dict[str, Any]] | None = None,
        stream: bool = True,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        extra_generate_cfg: Mapping[str, Any] | None = None,
    ) -> Iterator[list[Message]]:
        """Ask the model; yields the growing reply, or only the complete one."""
        extra = {**self.extra_generate_cfg, **(extra_generate_cfg or {})}
        asked, _ = as_messages(messages)
        model = self._model()
        if stream:
            return model.chat(asked, functions, extra_generate_cfg=extra)  # type: ignore[return-value]
        return iter([model.chat(asked, functions, stream=False, extra_generate_cfg=extra)])  # type: ignore[list-item]

    def _call_tool(
        self, tool_name: str, tool_args: str | dict[str, Any] = "{}", **kwargs: Any
    ) -> str | list[ContentItem]:
        """Run one tool and wait; an error comes as a sentence, like a result."""
        text = tool_args if isinstance(tool_args, str) else json.dumps(tool_args, ensure_ascii=False)
        guard = guard_for(kwargs.pop("approval", None) or self._guard)
        call = call_message(f"call_{token_hex(8)}", tool_name, text)
        return run(_tool_result(ToolRunner(self.function_map, guard=guard), call, kwargs))

    def _detect_tool(self, message: Message) -> tuple[bool, str, str, str]:
        """Whether the message is a call, its tool and arguments, and the message's text."""
        call = message.function_call
        return call is not None, call.name if call else "", call.arguments if call else "", message.get_text_content()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _checked(self, messages: Sequence[Given], kwargs: Mapping[str, Any]) -> tuple[list[Message], bool]:
        """The checked messages, and whether all were given as dicts."""
        self.check_options(kwargs)
        asked, as_dicts = as_messages(messages)
        if not asked:
            raise no_messages()
        return asked, as_dicts

    def check_options(self, given: Mapping[str, Any], known: Iterable[str] = ()) -> None:
        """Refuse keywords of a reply that are misspelt.

        Args:
            given: Names and values.
            known: Further names that are right.

        Raises:
            SettingsError: One is; the hint has the right one.
        """
        check_keywords(self, self.function_map.values(), given, known)

    def _model(self) -> BaseChatModel:
        if self.llm is None:
            raise SettingsError(f"{type(self).__name__} has no model.", hint="Pass llm=...", key="model_not_named")
        return self.llm

    def _events(self, asked: list[Message], guard: Guard | None, **kwargs: Any) -> Stream:
        if guard is not None:
            within = Guarded(guard, asked)
            with under(within):  # the hook may be no generator
                events = self._guarded(guard)._events(asked, None, approval=guard, **kwargs)  # noqa: SLF001 - its own copy
            return events_under(within, events)
        lang = kwargs.pop("lang", None) or language_of(asked)
        if self.extras is not None or "run_state" in kwargs:
            from core.agents.conduct import conducted  # brings what only few replies need

            events = conducted(self, asked, lang, kwargs)
        else:
            events = self._stream_reply(self._prompted(asked, lang), lang=lang, **kwargs)
        return spanned(self._begin_trace, events) if is_traced() else events

    def _begin_trace(self) -> Span | None:
        """The span of one reply; without a name it needs none in a run, which stands for it."""
        if not self.name and stands_for_agent():
            return None
        name = self.name or type(self).__name__
        about: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        if self.llm is not None:
            about["gen_ai.request.model"] = self.llm.model
            about["gen_ai.provider.name"] = self.llm.service.provider
        return begun(f"invoke_agent {name}", about, "agent")

    def prompted(self, asked: list[Message], lang: Lang) -> list[Message]:
        """The conversation with the system prompt and the examples.

        Args:
            asked: The conversation.
            lang: The language of the prompt.
        """
        return self._prompted(asked, lang)

    def reply_to(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        """The reply to a conversation that has its prompt, from whichever hook the agent has.

        Args:
            messages: It; the hook may change the list.
            lang: Its language.
            kwargs: As of `stream`.
        """
        if self._is_synchronous():
            return self._seed_reply(messages, lang, kwargs)
        return self._stream_reply(messages, lang=lang, **kwargs)

    def _is_plain_seed(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether Qwen-Agent's hook makes the reply, and nothing else has to be done for it."""
        return self.extras is None and "run_state" not in kwargs and self._is_synchronous()

    async def _seed_reply(self, messages: list[Message], lang: Lang, kwargs: dict[str, Any]) -> Stream:
        """The reply of Qwen-Agent's hook to a conversation that has its prompt."""
        here = None if self._guard is None else LoopBoundGuard(self._guard)  # the hook runs in a thread
        own = {**kwargs, "lang": lang, "is_prompted": True}
        own.pop("approval", None)
        if not takes_any(self._run):
            own.pop("run_state", None)
        async with aclosing(run_events(partial(self._run_seed, messages, here, **own), self.name)) as events:
            async for event in events:
                yield event

    def _prompted(self, asked: list[Message], lang: Lang) -> list[Message]:
        """The conversation with the system prompt and the examples."""
        messages = prepend_system(asked, self._system_message(lang))
        if not self.prompt_messages:
            return messages
        first = 1 if messages[0].role == SYSTEM else 0
        return [*messages[:first], *self.prompt_messages, *messages[first:]]

    def _is_synchronous(self) -> bool:
        """Whether the most derived class that implements a hook implements Qwen-Agent's."""
        for cls in type(self).__mro__:
            if "_stream_reply" in vars(cls):
                return False
            if "_run" in vars(cls):
                return True
        return False

    def _guarded(self, guard: Guard) -> Self:
        """A copy for one reply whose every call the guard decides about, whatever a subclass passes on."""
        own = copy(self)
        own._guard = guard  # noqa: SLF001 - its own copy
        return own

    def _with_guard(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The keywords for a loop or another agent, with this reply's guard."""
        return {"approval": self._guard, **kwargs}

    def _run_seed(
        self, asked: list[Message], guard: Guard | None, **kwargs: Any
    ) -> Generator[list[Message], None, None]:
        if guard is not None:
            replies = self._guarded(guard)._run_seed(asked, None, approval=guard, **kwargs)  # noqa: SLF001 - its own copy
            yield from items_under(Guarded(guard, asked), replies)
            return
        # Qwen-Agent's hooks may change what they are given.
        own = [Message(**message.model_dump()) for message in asked]
        lang = kwargs.pop("lang", None) or language_of(own)
        is_inner = kwargs.pop("is_prompted", False)  # of a reply that has its prompt, and its span
        replies = self._seed_replies(own if is_inner else self._prompted(own, lang), lang, kwargs)
        yield from replies if is_inner or not is_traced() else spanned_items(self._begin_trace, replies)

    def _seed_replies(
        self, told: list[Message], lang: Lang, kwargs: Mapping[str, Any]
    ) -> Generator[list[Message], None, None]:
        replies: Any = self._run(told, lang=lang, **kwargs)
        for reply in cast("Iterable[Any]", replies) if isinstance(replies, Iterable) else [replies]:
            yield [self._signed(message) for message in self._read(reply)]

    def _read(self, reply: Any) -> list[Message]:
        """The messages that `_run` yielded, checked."""
        try:
            return as_messages(reply)[0]
        except BadMessagesError as error:
            said = f"{type(self).__name__}._run gave what is no reply. {error.message}"
            raise ModelMisbehavedError(message=said, hint="Yield lists of messages.") from error

    async def _seed_events(self, asked: list[Message], guard: Guard | None, **kwargs: Any) -> Stream:
        here = None if guard is None else LoopBoundGuard(guard)  # the hook runs in a thread
        async with aclosing(run_events(partial(self._run_seed, asked, here, **kwargs), self.name)) as events:
            async for event in events:
                yield event

    def _signed(self, message: Message) -> Message:
        if self.name and not message.name:
            return message.model_copy(update={"name": self.name})
        return message


async def _complete_reply(events: Stream) -> list[Message]:
    transcript = Transcript()
    async with aclosing(events) as source:
        async for event in source:
            transcript.apply(event)
    return transcript.messages()


async def _tool_result(runner: ToolRunner, call: Message, context: dict[str, Any]) -> str | list[ContentItem]:
    content: str | list[ContentItem] = ""
    async with aclosing(runner.run([call], **context)) as events:
        async for event in events:
            if isinstance(event, ToolFinished):
                content = event.message.content
    return content
