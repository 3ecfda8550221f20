"""`BaseChatModel`: what every model promises, and the layers around it, from the outside in.

A back end implements `_stream`, or the two synchronous hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast, overload

from core.bridge.cancellation import released
from core.bridge.snapshots import are_dicts, as_messages, deltas, dumped, in_dicts, listed, snapshots
from core.bridge.sync import run
from core.errors import ModelServiceError, ParlourError, SettingsError
from core.llm.concurrency import DEFAULT_CONCURRENCY, in_order
from core.llm.layers.cache import cache
from core.llm.layers.call_prompting import call_prompting
from core.llm.layers.fit_context import fit_context
from core.llm.layers.messages import KeepingModel, documents_first, uploads, visible
from core.llm.layers.moderation import moderation
from core.llm.layers.record import Recorded, record, stages
from core.llm.layers.reply import longest, stop_words, thoughts
from core.llm.layers.retry import retry
from core.llm.oai_surface import chunks, from_oai, functions_of
from core.llm.parameters import Efforts, efforts_of
from core.llm.request import ChatRequest, Layer, ModelFacts, Progress, Source, Stream, language_of, merge_generate
from core.llm.service import Service, account_mark, key_of, service_of
from core.llm.sync_hooks import Hooks, hooks_stream
from core.llm.tokens import Counter, counter_for
from core.llm.validation import check_messages, read_settings
from core.llm.wire.tools import checked_functions
from core.messages.message import Message, ModelResponse
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from core.languages import Lang
    from core.llm.request import Purpose
    from core.llm.telemetry import OnCall

__all__ = ["BaseChatModel", "ChatRequest", "Layer", "ModelFacts", "Progress", "Source", "Stream"]


Given: TypeAlias = Message | dict[str, Any]
Reply: TypeAlias = list[Message] | list[dict[str, Any]]


class BaseChatModel:
    """A chat model.

    A subclass implements `_stream` (async, events) or `_chat_stream` / `_chat_no_stream` (sync, whole messages). One
    that runs in this process, and asks no service, sets `in_process`; one that reads a prompt only from where it
    differs from an earlier one sets `keeps_prompt`.

    Args:
        cfg: `model`, `generate_cfg` and what the back end adds; the dict is copied, never changed.

    Raises:
        SettingsError: `generate_cfg` is no dict, or a limit in it makes no sense.
    """

    model_type: str = ""
    support_multimodal_input: bool = False
    support_multimodal_output: bool = False
    support_audio_input: bool = False
    support_video_input: bool = False
    support_document_input: bool = False
    """Whether PDF documents go to it as they are."""
    small: bool = False
    native_calls: bool = False
    in_process: bool = False
    keeps_prompt: bool = False
    takes_schema: bool = False
    """Whether its service holds answers to a JSON schema (`response_format` of the type `json_schema`)."""
    takes_grammar: bool = False
    """Whether answers are held to a grammar of llama.cpp (`grammar` in `generate_cfg`)."""
    languages: frozenset[Lang] = frozenset(("en", "zh"))
    """Those of the page's own languages that it reads and writes, as far as its makers say."""
    tokens_per_message: int = 0
    default_model: ClassVar[str] = ""
    service_address: ClassVar[str] = ""
    """Where its service is if the settings do not say; empty if that is unknown, or there is none."""
    call_listeners: tuple[OnCall, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_chat_with_functions" in vars(cls) and "native_calls" not in vars(cls):
            cls.native_calls = True  # it has calls of its own

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        self.cfg: dict[str, Any] = dict(cfg or {})
        self.model: str = str(self.cfg.get("model") or self.default_model).strip()
        self.model_type = str(self.cfg.get("model_type") or self.model_type)
        generate: Any = self.cfg.get("generate_cfg") or {}
        if not isinstance(generate, Mapping):
            raise SettingsError("The model's 'generate_cfg' must be a dict.", hint="Give names and values.")
        given_settings = {"use_raw_api": self.cfg.get("use_raw_api"), **cast("Mapping[str, Any]", generate)}.items()
        self.generate_cfg = read_settings({name: value for name, value in given_settings if value is not None})
        self.label: str = self.model or self.model_type

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes layers and a counter of its own."""
        return {name: value for name, value in vars(self).items() if name not in {"_stacked", "_counter"}}

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Parlour's own back ends are copied by their settings, without connections and weights."""
        maker = next(cls for cls in type(self).__mro__ if "__init__" in vars(cls))
        if maker.__module__.startswith("core.llm.backends."):
            return type(self), (self.cfg,)
        return super().__reduce_ex__(protocol)

    @property
    def service(self) -> Service:
        """Where the model is, as logs and traces name it; a back end may know better."""
        found = service_of(self.cfg, self.model_type, self.service_address)
        return replace(found, here=True) if self.in_process and not found.address else found

    @property
    def efforts(self) -> Efforts:
        """How long it may think before it answers, by name, with what each is in `generate_cfg`; empty if unknown."""
        return efforts_of(self.model, self.service.address, here=self.in_process)

    @property
    def left_out(self) -> Mapping[str, Any]:
        """Parameters that the service refused and that are left out since then, with the refused values."""
        return {}

    async def account(self) -> str:
        """A digest of the service and key that a call will use, part of the cache's keys."""
        return account_mark(self.service.address, key_of(self.cfg))

    @property
    def max_retries(self) -> int:
        """The default number of retries, from `generate_cfg`; else 0."""
        return self.generate_cfg.get("max_retries") or 0

    @property
    def use_raw_api(self) -> bool:
        """Whether tools go through the service's own calling, by Qwen-Agent's name for `native_calls`."""
        return self.native_calls

    # -- asking ---------------------------------------------------------------------------------------------------

    def stream(self, request: ChatRequest) -> Stream:
        """The reply to `request` as events: `MessageStarted` first, exactly one `MessageFinished` last.

        Leaving early (`async with aclosing(...)`) stops the model.

        Raises:
            ModelServiceError: The model failed; the class says whether a retry may help.
            BadMessagesError: There is nothing to answer, or the order of the messages is wrong.
            ModelRefusedError: A tool has no name, or an invalid schema.
            SettingsError: A limit in `generate_cfg` makes no sense.
        """
        generate = read_settings(merge_generate(self.generate_cfg, request.generate))
        if "use_raw_api" not in request.generate:
            generate.pop("use_raw_api", None)  # the model's own setting is in `native_calls`
        check_messages(request.messages)
        checked_functions(request.functions)
        return self._stacked(replace(request, generate=generate))

    @overload
    def chat(
        self,
        messages: Sequence[Given],
        functions: Sequence[dict[str, Any]] | None = None,
        stream: Literal[True] = True,  # noqa: FBT002 - Qwen-Agent's signature
        delta_stream: bool = False,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        extra_generate_cfg: Mapping[str, Any] | None = None,
    ) -> Generator[Reply, None, None]: ...
    @overload
    def chat(
        self,
        messages: Sequence[Given],
        functions: Sequence[dict[str, Any]] | None = None,
        *,
        stream: Literal[False],
        delta_stream: bool = False,
        extra_generate_cfg: Mapping[str, Any] | None = None,
    ) -> Reply: ...
    @overload
    def chat(
        self,
        messages: Sequence[Given],
        functions: Sequence[dict[str, Any]] | None = None,
        stream: bool = True,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        delta_stream: bool = False,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        extra_generate_cfg: Mapping[str, Any] | None = None,
    ) -> Generator[Reply, None, None] | Reply: ...
    def chat(
        self,
        messages: Sequence[Given],
        functions: Sequence[dict[str, Any]] | None = None,
        stream: bool = True,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        delta_stream: bool = False,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        extra_generate_cfg: Mapping[str, Any] | None = None,
    ) -> Generator[Reply, None, None] | Reply:
        """Ask, from synchronous code.

        Args:
            messages: The conversation: dicts in, dicts out; any `Message` in, `Message` out.
            functions: Tools on offer.
            stream: Whether to iterate over the reply as it grows (each item is the whole reply so far).
            delta_stream: With `stream`, each item is only what is new.
            extra_generate_cfg: Over the model's own `generate_cfg`, for this call.

        Raises:
            BadMessagesError: It is no list of messages.
            ModelServiceError: The model failed.
            NotImplementedError: `delta_stream` together with `functions`.
        """
        asked, as_dicts = as_messages(messages)
        request = self._request(asked, functions, extra_generate_cfg)
        if not stream:
            reply = run(self._reply(request))
            return dumped(reply) if as_dicts else reply
        if delta_stream and request.functions:
            raise NotImplementedError("A stream of deltas has no form for calls: leave delta_stream out.")
        make = partial(self.stream, request)
        shown = deltas(make) if delta_stream else snapshots(make)
        return in_dicts(shown) if as_dicts else shown

    async def achat(
        self,
        messages: Sequence[Given],
        functions: Sequence[dict[str, Any]] | None = None,
        extra_generate_cfg: Mapping[str, Any] | None = None,
        *,
        purpose: Purpose = "answer",
    ) -> list[Message]:
        """Ask and wait for the whole reply; `messages`, `functions` and `extra_generate_cfg` are as of `chat`.

        Args:
            messages: The conversation.
            functions: Tools on offer.
            extra_generate_cfg: Over the model's own `generate_cfg`, for this call.
            purpose: What the call is for, as an account of calls names it.

        Raises:
            ModelServiceError: The model failed; what had come by then is in its `extra["partial"]`.
        """
        asked, _ = as_messages(messages)
        with released():
            request = self._request(asked, functions, extra_generate_cfg)
            return await self._reply(replace(request, purpose=purpose))

    def quick_chat(self, prompt: str) -> str:
        """The text that answers `prompt`, one question. Raises ModelServiceError."""
        reply = ModelResponse(messages=run(self.achat([{"role": "user", "content": prompt}])))
        return "".join(message.get_text_content() for message in reply.messages)

    def quick_chat_oai(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None = None
    ) -> Generator[dict[str, Any], None, None]:
        """Ask with OpenAI's `messages` and `tools`, and be answered in chunks of OpenAI's shape.

        Each chunk's `choices[0]` holds the whole `message` so far and, as `delta`, what is new in it. The last chunk
        has the `finish_reason` and the real `usage`. The given dicts are not changed.

        Raises:
            ModelServiceError: The model failed.
        """
        request = self._request(from_oai(messages), functions_of(tools), None)
        return chunks(self.model, partial(self.stream, request))

    def raw_chat(
        self,
        messages: Sequence[Given],
        functions: Sequence[dict[str, Any]] | None = None,
        stream: bool = True,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        generate_cfg: Mapping[str, Any] | None = None,
    ) -> Generator[Reply, None, None] | Reply:
        """As `chat`, with the service's own tool calling, whatever the model would use otherwise.

        Raises:
            ModelServiceError: The model failed, or the service has no calls of its own.
        """
        extra = {**(generate_cfg or {}), "use_raw_api": True}
        return self.chat(messages, functions, stream, extra_generate_cfg=extra)

    def batch(
        self,
        list_of_messages: Iterable[Sequence[Given]],
        functions: Sequence[dict[str, Any]] | None = None,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        extra_generate_cfg: Mapping[str, Any] | None = None,
        keep_errors: bool = False,
    ) -> list[Reply | ParlourError]:
        """Ask many questions, `concurrency` at the same time; the replies come in the order of the questions.

        Args:
            list_of_messages: One conversation for each question; dicts in, dicts out, as in `chat`.
            functions: Tools on offer, to all.
            concurrency: How many are asked at the same time.
            extra_generate_cfg: Over the model's own `generate_cfg`, for all.
            keep_errors: Whether an error takes the place of its reply; else the first one ends all and is raised.

        Raises:
            ModelServiceError: The model failed.
            SettingsError: `concurrency` is no whole number from 1.
        """
        asked = listed(list_of_messages)
        as_dicts = [are_dicts(messages) for messages in asked]
        asking = self.abatch(
            asked,
            functions,
            concurrency=concurrency,
            extra_generate_cfg=extra_generate_cfg,
            keep_errors=keep_errors,
        )
        replies = run(asking)
        return [
            dumped(reply) if dicts and not isinstance(reply, ParlourError) else reply
            for reply, dicts in zip(replies, as_dicts, strict=True)
        ]

    async def abatch(
        self,
        list_of_messages: Iterable[Sequence[Given]],
        functions: Sequence[dict[str, Any]] | None = None,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        extra_generate_cfg: Mapping[str, Any] | None = None,
        keep_errors: bool = False,
    ) -> list[list[Message] | ParlourError]:
        """As `batch`, from asynchronous code; replies are messages, as in `achat`."""

        async def ask(messages: Sequence[Given]) -> list[Message]:
            return await self.achat(messages, functions, extra_generate_cfg)

        with released():
            return await in_order(ask, listed(list_of_messages), concurrency, keep_errors=keep_errors)

    # -- around it ------------------------------------------------------------------------------------------------

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` takes: `counter.exact` tells whether that is known or an estimate."""
        return self.counter.count(text)

    @property
    def counter(self) -> Counter:
        """Counts tokens, and cuts texts by them; a subclass with a `count_tokens` of its own counts by that."""
        return self._counter

    @cached_property
    def _counter(self) -> Counter:
        if type(self).count_tokens is not BaseChatModel.count_tokens:
            return Counter(count=self.count_tokens)
        return counter_for(self.model)

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Fetch and load what the model needs, once, reporting to `progress`; nothing for a service."""

    def warm_up(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Load the weights, or open the connection to the service, before the first question is asked.

        Args:
            progress: Called with bytes while weights are fetched.

        Raises:
            ModelServiceError: The service cannot be reached, or the weights cannot be fetched.
        """
        run(self.awarm_up(progress))

    async def awarm_up(self, progress: Callable[[Progress], None] | None = None) -> None:
        """As `warm_up`, from asynchronous code, for the loop that will ask."""
        await self.prepare(progress)
        await self._connect()

    async def read_ahead(
        self, messages: Sequence[Message], functions: Sequence[Mapping[str, Any]] = (), lang: Lang = "en"
    ) -> None:
        """Read what questions to come begin with, so that their first word comes sooner; nothing for a service.

        Args:
            messages: What they begin with, and any question.
            functions: The tools that they come with.
            lang: Their language.
        """

    def on_call(self, listen: OnCall) -> Callable[[], None]:
        """Listen to the calls of this model: each is reported when it is over, with its four stages (`ModelCall`).

        The four: the messages given, those sent after fitting and templates, the raw reply, the parsed reply. They
        are kept only while there are listeners.

        Args:
            listen: Called on the loop that ran the call; it must be quick, and must not fail.

        Returns:
            A function that removes the listener.
        """
        self.call_listeners = (*self.call_listeners, listen)

        def remove() -> None:
            self.call_listeners = tuple(each for each in self.call_listeners if each is not listen)

        return remove

    async def aclose(self) -> None:
        """Close connections and free memory; the next question opens them again."""

    # -- what a back end implements -------------------------------------------------------------------------------

    def _stream(self, request: ChatRequest) -> Stream:
        """The reply as events; `request.generate` is merged already. The default calls the synchronous hooks."""
        hooks = Hooks(self._chat_stream, self._chat_no_stream, self._chat_with_functions)
        return hooks_stream(hooks, request, type(self).__name__)

    async def _connect(self) -> None:
        """Open the connection that the first request will use; nothing for a model in this process."""

    def _chat_stream(
        self,
        messages: list[Message],
        delta_stream: bool,  # noqa: FBT001 - Qwen-Agent's signature
        generate_cfg: dict[str, Any],
    ) -> Iterable[list[Message]]:
        """Synchronous hook: the whole reply so far, again and again (`delta_stream` is always false)."""
        raise NotImplementedError

    def _chat_no_stream(self, messages: list[Message], generate_cfg: dict[str, Any]) -> list[Message]:
        """Synchronous hook: the whole reply at once."""
        raise NotImplementedError

    def _chat_with_functions(
        self,
        messages: list[Message],
        functions: list[dict[str, Any]],
        stream: bool,  # noqa: FBT001 - Qwen-Agent's signature
        delta_stream: bool,  # noqa: FBT001 - Qwen-Agent's signature
        generate_cfg: dict[str, Any],
        lang: Lang,
    ) -> list[Message] | Iterable[list[Message]]:
        """Synchronous hook: a reply that may call `functions`. If it exists, it handles all requests with functions.

        Without it Parlour puts the functions into the prompt and parses calls from the text of the two hooks above.
        """
        raise NotImplementedError

    # -- inside ---------------------------------------------------------------------------------------------------

    @cached_property
    def _stacked(self) -> Source:
        return stacked(self, self._stream)

    def _request(
        self,
        messages: list[Message],
        functions: Sequence[dict[str, Any]] | None,
        extra: Mapping[str, Any] | None,
    ) -> ChatRequest:
        check_messages(messages)
        generate = read_settings(merge_generate(self.generate_cfg, extra))
        lang = generate.get("lang") or language_of(messages)
        return ChatRequest(tuple(messages), tuple(functions_of(functions)), dict(extra or {}), lang)

    async def _reply(self, request: ChatRequest) -> list[Message]:
        transcript = Transcript()
        try:
            async with aclosing(self.stream(request)) as events:
                async for event in events:
                    transcript.apply(event)
        except ModelServiceError as error:
            if reply := transcript.messages():  # what had come is kept
                error.extra = {**(error.extra or {}), "partial": dumped(reply)}
            raise
        return transcript.messages()


class Layered(Recorded, KeepingModel, Protocol):
    """A model as the layers see it."""


def layers(model: Layered) -> list[Layer]:
    """All layers, the outermost first."""
    return [
        visible,
        moderation(model),
        record(model),
        uploads(model),
        fit_context(model),
        documents_first(model),
        call_prompting(model),
        stop_words,
        thoughts,
        stages,
        cache(model),
        retry(model),
        longest(model),
    ]


def stacked(model: Layered, source: Source) -> Source:
    """`source` with all layers around it."""
    for layer in reversed(layers(model)):
        source = _around(source, layer)
    return source


def _around(below: Source, layer: Layer) -> Source:
    return lambda request: layer(request, below)
