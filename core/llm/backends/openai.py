"""Any service that speaks the OpenAI protocol."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from core.errors import ModelRefusedError, ModelServiceError, SettingsError
from core.llm.backends.openai_clients import client_pool
from core.llm.backends.openai_errors import VENDOR_ERRORS, Translator
from core.llm.base import BaseChatModel, is_true
from core.llm.pictures import with_pictures
from core.llm.request import ChatRequest, Stream, call_ids
from core.llm.wire.openai import Json, Senses, messages_json, settings_json
from core.llm.wire.openai_chunks import ChunkReader
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

OFFICIAL: Final = "https://api.openai.com/v1"
_NAMED: Final = {"dashscope": "https://dashscope.aliyuncs.com/compatible-mode/v1"}
_SEES: Final = re.compile(
    r"gpt-4o|gpt-4\.1|gpt-5|\bo[134]\b|vl\b|-vl|vision|gemma-?3|llava|pixtral|claude|gemini|qvq|omni|minicpm-v|internvl"
    r"|llama-?4",
    re.IGNORECASE,
)
_NO_CALLS: Final = re.compile(r"does not support (?:tools|function)|auto.{0,3} tool choice requires", re.IGNORECASE)
_CONNECT_SECONDS: Final = 5.0
_FIRST_BYTE_SECONDS: Final = 60.0
_FIRST_BYTE_HERE_SECONDS: Final = 600.0  # a server on this machine may load a model or read a long prompt first
_IDLE_SECONDS: Final = 30.0
_AFTER_DONE_SECONDS: Final = 0.2


class OpenAIConfig(BaseModel):
    """What the dict of a model may hold for this back end; what it does not know is left alone."""

    model_config = ConfigDict(extra="ignore")

    base_url: str | None = Field(default=None, validation_alias=AliasChoices("base_url", "model_server", "api_base"))
    api_key: SecretStr | None = None
    vision: bool | None = None
    default_headers: dict[str, str] = Field(default_factory=dict)


class OpenAIModel(BaseChatModel):
    """A model behind an OpenAI-compatible service.

    Tools go through the service's own calling where `generate_cfg["use_raw_api"]` is true, or where nothing is said
    and the service is OpenAI's own; any other service gets them in the prompt, which every model understands.

    Args:
        cfg: `model`, `model_server` (= `base_url`, `api_base`), `api_key`, `generate_cfg`, `default_headers`, and
            `vision`: whether the model sees pictures (worked out from its name where it is left out).

    Raises:
        SettingsError: A value has the wrong type.
    """

    model_type = "openai"
    default_model = "gpt-5-mini"
    always_sees = False

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        try:
            self._config = OpenAIConfig.model_validate(self.cfg)
        except ValidationError as error:
            wrong = error.errors()[0]
            raise SettingsError(f"The model's {wrong['loc'][0]!r} is wrong: {wrong['msg']}.") from None
        self._base_url = _address(self._config.base_url)
        self._api_key = self._config.api_key.get_secret_value() if self._config.api_key else None
        address = self._base_url or OFFICIAL
        host = urlsplit(address).hostname or address
        self.label = f"{self.model} · {host}"
        official = host == urlsplit(OFFICIAL).hostname and "fncall_prompt_type" not in self.generate_cfg
        self.native_calls = is_true(self.generate_cfg.get("use_raw_api", official))
        guess = self.always_sees or bool(_SEES.search(self.model))
        self.support_multimodal_input = guess if self._config.vision is None else self._config.vision
        self._first_byte = _FIRST_BYTE_HERE_SECONDS if _is_here(host) else _FIRST_BYTE_SECONDS
        self._translator = Translator(address, self._api_key or "", self.model)
        self._usage_on_request = True

    async def aclose(self) -> None:
        """Close this loop's connections, unless another model uses them."""
        await client_pool().release(self)

    def stream(self, request: ChatRequest) -> Stream:
        """As for every model. A service that turns out to have no calls of its own gets tools in the prompt."""
        native = self.native_calls and bool(request.functions)
        return self._native_first(request) if native else super().stream(request)

    async def _native_first(self, request: ChatRequest) -> Stream:
        try:
            async with aclosing(super().stream(request)) as events:
                async for event in events:
                    yield event
            return
        except ModelRefusedError as error:
            if not _NO_CALLS.search(error.message):
                raise
        self.native_calls = False
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                if not isinstance(event, MessageStarted):  # it was told by the attempt before
                    yield event

    async def _stream(self, request: ChatRequest) -> Stream:
        yield MessageStarted()
        reader = ChunkReader(call_ids(request.messages))
        limits = self._limits(request)
        try:
            async with AsyncExitStack() as stack:
                response = await self._opened(stack, await self._body(request), limits)
                pieces = await stack.enter_async_context(aclosing(await self._readable(response)))
                limit = limits.first
                while not reader.over and (piece := await _next(pieces, limit)) is not None:
                    for event in reader.feed(piece):
                        yield event
                    limit = limits.idle
                if reader.error:
                    raise self._translator.in_stream(reader.error, spoke=reader.spoke)
                for event in reader.close():
                    yield event
                await _drained(pieces)
            if not reader.done:
                raise self._translator.ended_early(spoke=reader.spoke)
        except VENDOR_ERRORS as error:
            raise self._named(self._translator.translated(error, spoke=reader.spoke)) from error
        except ModelServiceError as error:
            raise self._named(error) from error.__cause__

    def _named(self, error: ModelServiceError) -> ModelServiceError:
        """The error, with the host and the model that the page's sentences name."""
        error.details |= self._translator.about
        return error

    async def _body(self, request: ChatRequest) -> Json:
        messages = request.messages
        if self.support_multimodal_input:
            messages = await with_pictures(messages)
        senses = Senses(self.support_multimodal_input, self.support_audio_input)
        return {
            "model": self.model,
            "messages": messages_json(messages, senses, request.lang),
            **settings_json(request),
        }

    def _limits(self, request: ChatRequest) -> _Limits:
        asked = request.generate.get("request_timeout")
        return _Limits(float(asked), float(asked)) if asked else _Limits(self._first_byte, _IDLE_SECONDS)

    async def _client(self) -> openai.AsyncOpenAI:
        try:
            client = await client_pool().client(self, self._base_url, self._api_key)
        except openai.OpenAIError:
            if self._base_url is None:
                raise
            # No key anywhere, and a service of the user's own, which rarely wants one.
            client = await client_pool().client(self, self._base_url, "EMPTY")
        self._translator.learn(client.api_key)
        return client

    async def _opened(self, stack: AsyncExitStack, body: Json, limits: _Limits) -> httpx2.Response:
        client = await self._client()
        whole = {**body, "stream": True}
        if self._usage_on_request:
            whole.setdefault("stream_options", {"include_usage": True})
        # The messages travel in `extra_body`: the SDK walks through every part of typed arguments on each request.
        opening = client.chat.completions.with_streaming_response.create(
            model=self.model,
            messages=[],
            stream=True,
            extra_body=whole,
            extra_headers=self._config.default_headers,
            timeout=httpx2.Timeout(limits.first, connect=_CONNECT_SECONDS),
        )
        try:
            return (await stack.enter_async_context(opening)).http_response
        except openai.BadRequestError as error:
            if not self._usage_on_request or "stream_options" not in error.response.text:
                raise
        self._usage_on_request = False  # an older server, which says nothing about tokens
        return await self._opened(stack, body, limits)

    async def _readable(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise self._translator.html()
        if "json" in kind and "event" not in kind:  # a service that does not stream, or an error it calls a success
            return _one_event(await response.aread())
        return response.aiter_bytes()


class OpenAIVisionModel(OpenAIModel):
    """A model behind an OpenAI-compatible service that sees pictures, whatever its name."""

    model_type = "qwenvl_oai"
    always_sees = True


@dataclass(frozen=True, slots=True)
class _Limits:
    """Seconds to wait for the first bytes of the reply, and for more of it later."""

    first: float
    idle: float


async def _next(pieces: AsyncGenerator[bytes, None], limit: float) -> bytes | None:
    async with asyncio.timeout(limit):
        return await anext(pieces, None)


async def _drained(pieces: AsyncGenerator[bytes, None]) -> None:
    """Read the few bytes after the last chunk, so that the connection can serve the next question."""
    try:
        async with asyncio.timeout(_AFTER_DONE_SECONDS):
            async for _ in pieces:
                pass
    except VENDOR_ERRORS:
        return


async def _one_event(raw: bytes) -> AsyncGenerator[bytes, None]:
    """A whole JSON body as one server-sent event."""
    yield b"data: " + raw.replace(b"\n", b" ") + b"\n\n"


def _address(given: str | None) -> str | None:
    """The service's address; `None` is OpenAI's own, or what the SDK's variables say."""
    if not given:
        return None
    address = _NAMED.get(given.strip(), given.strip()).rstrip("/")
    return address if "://" in address else f"http://{address}"


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
