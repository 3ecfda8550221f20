"""`Agent`: what every agent promises. A subclass implements `_stream_reply` (async), or the seed's `_run` (sync)."""

from __future__ import annotations

import json
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from core.agents.given_tools import GivenTool, tools_from
from core.agents.language import language_of
from core.agents.seed_run import run_events
from core.bridge.snapshots import as_messages, dumped, in_dicts, snapshots
from core.bridge.sync import run
from core.errors import SettingsError
from core.llm.open_model import get_chat_model
from core.messages.content import ContentItem
from core.messages.events import ToolFinished
from core.messages.message import SYSTEM, Message
from core.messages.transcript import Transcript, call_message
from core.tools.runner import ToolRunner

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from core.llm.base import BaseChatModel
    from core.llm.request import Lang, Stream

Given: TypeAlias = Message | dict[str, Any]


class Agent:
    """Something that answers a conversation.

    Args:
        function_list: Tools: names, dicts (`{"name": ..., options}`), tools, functions, `{"mcpServers": {...}}`.
        llm: A model, a model's name, or its dict.
        system_message: What the agent is told first; put before a system message of the conversation.
        name: Who speaks, where there are several.
        description: What it is good at, for other agents and for people.

    Raises:
        SettingsError: A tool or a model cannot be made of what was given.
    """

    def __init__(
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: BaseChatModel | Mapping[str, Any] | str | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        self.llm = None if llm is None else get_chat_model(llm)
        self.function_map = tools_from(function_list)
        self.system_message = system_message
        self.name = name
        self.description = description
        self.extra_generate_cfg: dict[str, Any] = {}

    # -- asking ---------------------------------------------------------------------------------------------------

    def stream(self, messages: Sequence[Given], **kwargs: Any) -> Stream:
        """The reply as events. Leaving early (`async with aclosing(...)`) stops the model and its tools.

        Args:
            messages: The conversation; neither it nor its messages are changed.
            kwargs: `lang` ("en" or "zh", else the language of the last question), and what tools take.

        Raises:
            ValueError: There is no message.
            ParlourError: The reply cannot be made; most such errors come while the events are read.
        """
        asked, _ = as_messages(messages)
        if self._is_synchronous():
            return run_events(partial(self._run_seed, asked, **kwargs), self.name)
        return self._events(asked, **kwargs)

    @overload
    def run(  # pyright: ignore[reportOverlappingOverload] - an empty list is refused
        self, messages: Sequence[dict[str, Any]], **kwargs: Any
    ) -> Generator[list[dict[str, Any]], None, None]: ...
    @overload
    def run(self, messages: Sequence[Given], **kwargs: Any) -> Generator[list[Message], None, None]: ...
    def run(self, messages: Sequence[Given], **kwargs: Any) -> Generator[Any, None, None]:
        """The reply so far, again and again; each item is whole and never changes. Dicts in, dicts out.

        Closing the iterator stops the reply.
        """
        asked, as_dicts = as_messages(messages)
        if self._is_synchronous():
            growing = self._run_seed(asked, **kwargs)
        else:
            growing = snapshots(partial(self._events, asked, **kwargs))
        return in_dicts(growing) if as_dicts else growing

    @overload
    def run_nonstream(  # pyright: ignore[reportOverlappingOverload] - an empty list is refused
        self, messages: Sequence[dict[str, Any]], **kwargs: Any
    ) -> list[dict[str, Any]]: ...
    @overload
    def run_nonstream(self, messages: Sequence[Given], **kwargs: Any) -> list[Message]: ...
    def run_nonstream(self, messages: Sequence[Given], **kwargs: Any) -> Any:
        """The whole reply."""
        asked, as_dicts = as_messages(messages)
        if self._is_synchronous():
            reply: list[Message] = []
            for reply in self._run_seed(asked, **kwargs):  # noqa: B007 - the last one is the whole
                pass
        else:
            reply = run(_whole(self._events(asked, **kwargs)))
        return dumped(reply) if as_dicts else reply

    # -- what a subclass implements -------------------------------------------------------------------------------

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        """The reply to `messages`, which begin with the system message; the list is the hook's own."""
        raise NotImplementedError(f"{type(self).__name__} must define _stream_reply or _run.")

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        """The seed's hook: the whole reply so far, again and again. `super()._run(...)` is the async hook's reply."""
        kwargs.setdefault("lang", language_of(messages))
        return snapshots(partial(self._stream_reply, list(messages), **kwargs))

    def _system_message(self, lang: Lang) -> str:
        """What the agent is told first."""
        del lang
        return self.system_message or ""

    # -- for synchronous subclasses -------------------------------------------------------------------------------

    def _call_llm(
        self,
        messages: Sequence[Given],
        functions: list[dict[str, Any]] | None = None,
        stream: bool = True,  # noqa: FBT001, FBT002 - the seed's signature
        extra_generate_cfg: Mapping[str, Any] | None = None,
    ) -> Iterator[list[Message]]:
        """Ask the model; the iterator gives the reply so far, or only the whole one."""
        extra = {**self.extra_generate_cfg, **(extra_generate_cfg or {})}
        asked, _ = as_messages(messages)
        model = self._model()
        if stream:
            return model.chat(asked, functions, extra_generate_cfg=extra)  # type: ignore[return-value]
        return iter([model.chat(asked, functions, stream=False, extra_generate_cfg=extra)])  # type: ignore[list-item]

    def _call_tool(
        self, tool_name: str, tool_args: str | dict[str, Any] = "{}", **kwargs: Any
    ) -> str | list[ContentItem]:
        """Run one tool and wait; an error is a sentence like any result."""
        text = tool_args if isinstance(tool_args, str) else json.dumps(tool_args, ensure_ascii=False)
        return run(_ran(ToolRunner(self.function_map), call_message("call", tool_name, text), kwargs))

    def _detect_tool(self, message: Message) -> tuple[bool, str, str, str]:
        """Whether the message is a call, its tool and arguments, and the message's text."""
        call = message.function_call
        return call is not None, call.name if call else "", call.arguments if call else "", message.get_text_content()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _model(self) -> BaseChatModel:
        if self.llm is None:
            raise SettingsError(f"{type(self).__name__} has no model.", hint="Pass llm=...", key="model_not_named")
        return self.llm

    def _events(self, asked: list[Message], **kwargs: Any) -> Stream:
        if not asked:
            raise ValueError("There is no message to answer.")
        lang = kwargs.pop("lang", None) or language_of(asked)
        return self._stream_reply(with_system(asked, self._system_message(lang)), lang=lang, **kwargs)

    def _is_synchronous(self) -> bool:
        """Whether the most derived class that implements a hook implements the seed's."""
        for cls in type(self).__mro__:
            if "_stream_reply" in vars(cls):
                return False
            if "_run" in vars(cls):
                return True
        return False

    def _run_seed(self, asked: list[Message], **kwargs: Any) -> Generator[list[Message], None, None]:
        # The seed's hooks may change what they are given.
        own = [Message(**message.model_dump()) for message in asked]
        lang = kwargs.pop("lang", None) or language_of(own)
        for reply in self._run(with_system(own, self._system_message(lang)), lang=lang, **kwargs):
            yield [self._signed(message) for message in reply]

    def _signed(self, given: Given) -> Message:
        message = given if isinstance(given, Message) else Message(**given)
        if self.name and not message.name:
            return message.model_copy(update={"name": self.name})
        return message


def with_system(messages: list[Message], text: str) -> list[Message]:
    """A new list that begins with `text` as system message, before what the conversation's own one says."""
    if not text:
        return list(messages)
    if not messages or messages[0].role != SYSTEM:
        return [Message(SYSTEM, text), *messages]
    said = messages[0].content
    content = f"{text}\n\n{said}" if isinstance(said, str) else [ContentItem(text=f"{text}\n\n"), *said]
    return [messages[0].model_copy(update={"content": content}), *messages[1:]]


async def _whole(events: Stream) -> list[Message]:
    transcript = Transcript()
    async with aclosing(events) as source:
        async for event in source:
            transcript.apply(event)
    return transcript.messages()


async def _ran(runner: ToolRunner, call: Message, context: dict[str, Any]) -> str | list[ContentItem]:
    content: str | list[ContentItem] = ""
    async with aclosing(runner.run([call], **context)) as events:
        async for event in events:
            if isinstance(event, ToolFinished):
                content = event.message.content
    return content
