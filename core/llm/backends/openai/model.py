"""`OpenAIModel`: any service that speaks the OpenAI protocol."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

import httpx2
import openai

from core.bridge.watchdog import awake_timeout
from core.errors import ModelServiceError, SettingsError
from core.llm.backends.http_clients import CONNECT_SECONDS, FIRST_BYTE_SECONDS, IdleTimeout, Limits, drain
from core.llm.backends.meanings import NO_CALLS
from core.llm.backends.openai.service import (
    OFFICIAL,
    VENDOR_ERRORS,
    OpenAIConfig,
    Translator,
    address_of,
    client_pool,
    dashscope_key,
    default_key,
    refusal,
)
from core.llm.base import BaseChatModel
from core.llm.layers.call_prompting import native_first
from core.llm.ledger import wire_of
from core.llm.media import inlined
from core.llm.model_names import hears_by_name, sees_by_name, watches_by_name
from core.llm.request import ChatRequest, Progress, Stream, call_ids, is_on
from core.llm.service import Service, account_mark, service_of
from core.llm.validation import read_config
from core.llm.wire.openai import ChunkReader, Json, Senses, messages_json, settings_json
from core.llm.wire.reading import one_event
from core.llm.wire.tools import ToolNames, checked_functions
from core.llm.wire_log import WireLog, noted_in
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence

    from openai import RequestOptions

_NO_STREAM: Final = re.compile(
    r'"param":\s*"stream"|verified to stream|(?:stream|streaming) (?:is|are) not supported|not support stream',
    re.IGNORECASE,
)


class OpenAIModel(BaseChatModel):
    """A model behind an OpenAI-compatible service.

    Tools go through the service's own calling where `generate_cfg["use_raw_api"]` is true, or where nothing is said
    and the service is OpenAI's own; any other service gets them in the prompt, which every model understands.

    Args:
        cfg: `model`, `model_server` (= `base_url`, `api_base`), `api_key`, `generate_cfg`, `default_headers`, and
            `vision`, `audio`, `video`: whether the model sees pictures, hears recordings and watches videos (worked
            out from its name where they are left out).

    Raises:
        SettingsError: A value is wrong; the message names it and never shows a key.
    """

    model_type = "openai"
    default_model = "gpt-5-mini"
    takes_schema = True
    config_class: ClassVar[type[OpenAIConfig]] = OpenAIConfig
    usual_address: ClassVar[str] = OFFICIAL
    service_address: ClassVar[str] = OFFICIAL
    always_sees: ClassVar[bool] = False
    always_hears: ClassVar[bool] = False
    always_native: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {}
    pool = staticmethod(client_pool)

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._reached = ""
        self._known_service: tuple[str, Service] | None = None
        self._config = config = read_config(self.config_class, self.cfg)
        self._base_url = self._address(config)
        self._api_key = config.api_key.get_secret_value() if config.api_key else self._default_key()
        address = self._base_url or self.usual_address
        host = urlsplit(address).hostname or address
        self.label = f"{self.model} · {host}"
        official = self.always_native or host == urlsplit(OFFICIAL).hostname
        native = official and "fncall_prompt_type" not in self.generate_cfg
        self.native_calls = is_on(self.generate_cfg.get("use_raw_api", native))
        sees = self.always_sees or sees_by_name(self.model)
        self.support_multimodal_input = sees if config.vision is None else config.vision
        hears = self.always_hears or hears_by_name(self.model)
        self.support_audio_input = hears if config.audio is None else config.audio
        watches = self.always_sees or watches_by_name(self.model)
        watches = watches and self.support_multimodal_input
        self.support_video_input = watches if config.video is None else config.video
        self._senses = Senses(self.support_multimodal_input, self.support_audio_input, self.support_video_input)
        self._translator = Translator(address, self._api_key or "", self.model)
        self._quirks = Quirks()

    def _address(self, config: OpenAIConfig) -> str | None:
        """The service's address; `None` leaves it to the SDK: its environment variable, else OpenAI's own."""
        return address_of(config.base_url)

    def _default_key(self) -> str | None:
        """The key where the settings have none; `None` leaves it to the SDK's environment variable."""
        return dashscope_key(self._base_url)

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Load what the first request needs, in a thread; nothing is sent."""
        del progress  # nothing is fetched
        await self.pool().prepare()
        await asyncio.to_thread(self.count_tokens, self.label)

    async def aclose(self) -> None:
        """Close this loop's connections, unless another model uses them."""
        await self.pool().release(self)

    def stream(self, request: ChatRequest) -> Stream:
        """As for every model; tools move into the prompt if the service turns out to have no tool calling."""
        checked_functions(request.functions)  # before any layer puts them into the prompt
        ask = partial(super().stream, request)
        return native_first(self, ask, NO_CALLS) if self.native_calls and request.functions else ask()

    async def _stream(self, request: ChatRequest) -> Stream:
        limits = Limits.of(request, here=self.service.here)
        names = ToolNames(str(function.get("name")) for function in checked_functions(request.functions))
        reader = ChunkReader(call_ids(request.messages), names)
        body, wire = await self._body(request, names), wire_of(request)
        yield MessageStarted()
        try:
            async with AsyncExitStack() as stack:
                async with awake_timeout(limits.first):  # for everything before the first byte together
                    response = await self._send(stack, body, limits, wire, request.generate.get("if_taken") or ())
                    if request.notes is not None:
                        request.notes.response_id = response.headers.get("x-request-id")
                    pieces = await stack.enter_async_context(aclosing(await self._body_of(response)))
                    piece = await anext(pieces, None)
                idle = stack.enter_context(IdleTimeout())
                while piece is not None:
                    wire.received(piece)
                    for event in reader.feed(piece):
                        yield event
                    piece = None if reader.over else await idle.next(pieces, limits.idle)
                if reader.error:
                    raise self._translator.in_stream(reader.error, spoke=reader.spoke)
                for event in reader.close():
                    yield event
                await drain(pieces, wire.received, VENDOR_ERRORS)
            if not reader.done:
                raise self._translator.ended_early(spoke=reader.spoke, foreign=reader.foreign)
        except openai.APIStatusError as error:
            # The vendor's error is left out of the traceback: it may show the key.
            raise self._with_details(self._translator.translated(error)) from None
        except VENDOR_ERRORS as error:
            raise self._with_details(self._translator.translated(error, spoke=reader.spoke)) from error
        except ModelServiceError as error:
            raise self._with_details(error) from error.__cause__

    def _with_details(self, error: ModelServiceError) -> ModelServiceError:
        """The error, with host and model among its details."""
        error.details |= self._translator.about
        return error

    async def _body(self, request: ChatRequest, names: ToolNames) -> Json:
        messages = await inlined(request.messages, self._senses.takes)
        return {
            "model": self.model,
            "messages": messages_json(messages, self._senses, request.lang, names),
            **self.defaults,
            **settings_json(request, names),
        }

    async def _client(self) -> openai.AsyncOpenAI:
        client = await self.pool().client(self, self._client_key(), self._make_client)
        self._translator.learn(client.api_key)
        self._reached = str(client.base_url)
        return client

    @property
    def service(self) -> Service:
        """Where the model is: as the vendor's client resolved it, once there is one."""
        known = self._known_service
        if known is None or known[0] != self._reached:
            given = {"base_url": self._reached} if self._reached else self.cfg
            known = self._known_service = self._reached, service_of(given, self.model_type, self.service_address)
        return known[1]

    async def account(self) -> str:
        """As for every model, with the address and key that the vendor's client resolved."""
        try:
            client = await self._client()
        except openai.OpenAIError:  # no key: the request will say so
            return await super().account()
        return account_mark(str(client.base_url), client.api_key)

    async def _connect(self) -> None:
        try:
            client = await self._client()
            await client.get(
                "/models", cast_to=httpx2.Response, options={"max_retries": 0, "timeout": FIRST_BYTE_SECONDS}
            )
        except openai.APIStatusError:
            return  # it is connected, whatever it answers
        except VENDOR_ERRORS as error:
            raise self._with_details(self._translator.translated(error)) from error

    def _client_key(self) -> Hashable:
        """What distinguishes this service's client from others in the pool."""
        return self._base_url, self._api_key

    def _make_client(self, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        """The vendor's client for this service, on the shared connections."""
        if self._api_key == "":
            raise openai.OpenAIError("There is no api_key for this vendor.")
        key = self._api_key
        if key is None:
            key = default_key(self._base_url, http)
        return openai.AsyncOpenAI(base_url=self._base_url, api_key=key, max_retries=0, http_client=http)

    @property
    def left_out(self) -> Mapping[str, Any]:
        """As for every model, learned from refusals."""
        return dict(self._quirks.refused)

    async def _send(
        self, stack: AsyncExitStack, body: Json, limits: Limits, wire: WireLog, if_taken: Sequence[str] = ()
    ) -> httpx2.Response:
        client = await self._client()
        sent = self._quirks.apply(body, if_taken)
        query = sent.pop("extra_query", None)
        headers = {**self._config.default_headers, **sent.pop("extra_headers", {})}
        options: RequestOptions = {
            "headers": headers,
            "params": query or {},
            "timeout": httpx2.Timeout(limits.first, connect=CONNECT_SECONDS, read=None),  # `IdleTimeout` limits reading
        }
        try:
            with noted_in(wire):
                return await self._answered(stack, client, sent, options)
        except openai.APIStatusError as error:
            wire.received(error.response.content)
            if error.status_code not in {400, 422} or not self._quirks.learn(error.response.text, sent, if_taken):
                raise
        except UnicodeEncodeError:  # a lone surrogate somewhere
            body = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        except (TypeError, ValueError, RecursionError) as error:
            hint = "Give texts, numbers, lists and dicts alone."
            raise SettingsError(f"generate_cfg cannot be sent: {error}.", hint=hint) from error
        return await self._send(stack, body, limits, wire, if_taken)

    async def _answered(
        self, stack: AsyncExitStack, client: openai.AsyncOpenAI, sent: Json, options: RequestOptions
    ) -> httpx2.Response:
        """The answer to a request, sent by the SDK or with a head that it made before. Raises `VENDOR_ERRORS`."""
        pool = self.pool()
        http, named = await pool.http(), repr(options)
        request = pool.heads.request(client, http, named, sent)
        if request is None:
            # Not `chat.completions.create`: that transforms every part of its arguments on each request.
            response: Any = await client.post(
                "/chat/completions", cast_to=httpx2.Response, body=sent, options=options, stream=True
            )
            pool.heads.note(client, named, response.request)
            stack.push_async_callback(response.aclose)
            return response
        response = await http.send(request, stream=True)
        stack.push_async_callback(response.aclose)
        if not response.is_success:
            await response.aread()
            raise refusal(response)
        return response

    async def _body_of(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise self._translator.html()
        if "json" in kind and "event" not in kind:  # not a stream, or an error with status 200
            return one_event(await response.aread())
        return response.aiter_bytes()


@dataclass(slots=True)
class Quirks:
    """Options that this service has not refused so far; each is learned from one refusal, and the request sent again.

    Args:
        usage: `stream_options.include_usage`; older servers refuse it.
        streams: `stream`; a few models only answer at once.
        parallel: `parallel_tool_calls`; reasoning models refuse it.
        short_limit: `max_tokens`; OpenAI's newer models want `max_completion_tokens`.
        refused: Parameters that a reader chose and the service refused, with the values: these are left out.
    """

    usage: bool = True
    streams: bool = True
    parallel: bool = True
    short_limit: bool = True
    refused: dict[str, Any] = field(default_factory=dict[str, Any])

    def apply(self, body: dict[str, Any], if_taken: Sequence[str] = ()) -> dict[str, Any]:
        """The body without the refused options.

        Args:
            if_taken: Those that may be left out.
        """
        gone = {name for name in if_taken if name in self.refused and self.refused[name] == body.get(name)}
        sent = {**{name: value for name, value in body.items() if name not in gone}, "stream": self.streams}
        if self.usage and self.streams:
            sent.setdefault("stream_options", {"include_usage": True})
        else:
            sent.pop("stream_options", None)
        if not self.short_limit and "max_tokens" in sent:
            sent["max_completion_tokens"] = sent.pop("max_tokens")
        if not self.parallel:
            sent.pop("parallel_tool_calls", None)
        return sent

    def learn(self, refusal: str, sent: dict[str, Any], if_taken: Sequence[str] = ()) -> bool:
        """Learn from a refusal; true if it told something new, so that sending again may help.

        Args:
            if_taken: As of `apply`.
        """
        if "stream_options" in sent and "stream_options" in refusal:
            self.usage = False
        elif sent["stream"] and _NO_STREAM.search(refusal):
            self.streams = False
        elif "parallel_tool_calls" in sent and "parallel_tool_calls" in refusal:
            self.parallel = False
        elif "max_tokens" in sent and "max_completion_tokens" in refusal:
            self.short_limit = False
        else:
            return self._leave_out(refusal, sent, if_taken)
        return True

    def _leave_out(self, refusal: str, sent: dict[str, Any], if_taken: Sequence[str]) -> bool:
        """Leave out the parameter that a refusal names, as long as it has this value."""
        others = {"max_tokens": "max_completion_tokens"}
        for name in if_taken:
            there = name if name in sent else others.get(name, "")
            if there in sent and there in refusal:
                self.refused[name] = sent[there]
                return True
        return False
