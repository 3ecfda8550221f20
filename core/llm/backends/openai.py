"""Any service that speaks the OpenAI protocol."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

import httpx2
import openai

from core.bridge.awake import awake_timeout
from core.errors import ModelServiceError, SettingsError
from core.llm.backends.http_clients import CONNECT_SECONDS
from core.llm.backends.native_first import native_first
from core.llm.backends.openai_clients import client_pool
from core.llm.backends.openai_config import OpenAIConfig, address_of, usual_key
from core.llm.backends.openai_errors import VENDOR_ERRORS, Translator
from core.llm.backends.openai_meanings import NO_CALLS
from core.llm.backends.openai_quirks import Quirks
from core.llm.backends.patience import Patience
from core.llm.backends.read_config import read_config
from core.llm.backends.time_limits import AFTER_END_SECONDS, FIRST_BYTE_SECONDS, Limits
from core.llm.base import BaseChatModel
from core.llm.media import inlined
from core.llm.request import ChatRequest, Progress, Stream, call_ids, is_on
from core.llm.service import Service, account_mark, service_of
from core.llm.wire.functions import checked
from core.llm.wire.openai import Json, Senses, messages_json, settings_json
from core.llm.wire.openai_chunks import ChunkReader
from core.llm.wire.sse import one_event
from core.llm.wire.tool_names import ToolNames
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable, Mapping

    from openai import RequestOptions

OFFICIAL: Final = "https://api.openai.com/v1"
NO_KEY: Final = "EMPTY"
"""What a service is told that wants no key."""
_SEES: Final = re.compile(
    r"gpt-4o|gpt-4\.1|gpt-5|\bo[134]\b|vl\b|-vl|vision|gemma-?3|llava|pixtral|claude|gemini|qvq|omni|minicpm-v|internvl"
    r"|llama-?4",
    re.IGNORECASE,
)
_HEARS: Final = re.compile(r"gpt-4o(?:-mini)?-audio|gpt-audio|omni|voxtral|qwen\d?-audio|gemini", re.IGNORECASE)
_WATCHES: Final = re.compile(r"qwen.*vl|vl.*qwen|qvq|omni|minicpm-v|internvl|gemini", re.IGNORECASE)


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
    config_class: ClassVar[type[OpenAIConfig]] = OpenAIConfig
    usual_address: ClassVar[str] = OFFICIAL
    always_sees: ClassVar[bool] = False
    always_hears: ClassVar[bool] = False
    always_native: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {}
    pool = staticmethod(client_pool)  # whose connections it uses

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._reached = ""
        self._config = config = read_config(self.config_class, self.cfg)
        self._base_url = self._place(config)
        self._api_key = config.api_key.get_secret_value() if config.api_key else self._usual_key()
        address = self._base_url or self.usual_address
        host = urlsplit(address).hostname or address
        self.label = f"{self.model} · {host}"
        official = self.always_native or host == urlsplit(OFFICIAL).hostname
        asked = official and "fncall_prompt_type" not in self.generate_cfg
        self.native_calls = is_on(self.generate_cfg.get("use_raw_api", asked))
        sees = self.always_sees or bool(_SEES.search(self.model))
        self.support_multimodal_input = sees if config.vision is None else config.vision
        hears = self.always_hears or bool(_HEARS.search(self.model))
        self.support_audio_input = hears if config.audio is None else config.audio
        watches = self.always_sees or bool(_WATCHES.search(self.model))
        watches = watches and self.support_multimodal_input
        self.support_video_input = watches if config.video is None else config.video
        self._senses = Senses(self.support_multimodal_input, self.support_audio_input, self.support_video_input)
        self._translator = Translator(address, self._api_key or "", self.model)
        self._quirks = Quirks()

    def _place(self, config: OpenAIConfig) -> str | None:
        """The service's address; `None` leaves it to the SDK: its variable, else OpenAI's own."""
        return address_of(config.base_url)

    def _usual_key(self) -> str | None:
        """The key where none is given; `None` leaves it to the SDK: its variable."""
        return usual_key(self._base_url)

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Load what the first question needs, beside the loop. The service itself is not asked."""
        del progress  # nothing is fetched
        await self.pool().prepare()
        await asyncio.to_thread(self.count_tokens, self.label)

    async def aclose(self) -> None:
        """Close this loop's connections, unless another model uses them."""
        await self.pool().release(self)

    def stream(self, request: ChatRequest) -> Stream:
        """As for every model. A service that turns out to have no calls of its own gets tools in the prompt."""
        checked(request.functions)  # before any layer writes them down
        ask = partial(super().stream, request)
        return native_first(self, ask, NO_CALLS) if self.native_calls and request.functions else ask()

    async def _stream(self, request: ChatRequest) -> Stream:
        limits = Limits.of(request, here=self.service.here)
        names = ToolNames(str(function.get("name")) for function in checked(request.functions))
        reader = ChunkReader(call_ids(request.messages), names)
        body = await self._body(request, names)
        yield MessageStarted()
        try:
            async with AsyncExitStack() as stack:
                async with awake_timeout(limits.first):  # for all that comes before the first word, not for each
                    response = await self._opened(stack, body, limits)
                    if request.notes is not None:
                        request.notes.response_id = response.headers.get("x-request-id")
                    pieces = await stack.enter_async_context(aclosing(await self._readable(response)))
                    piece = await anext(pieces, None)
                patience = stack.enter_context(Patience())
                while piece is not None:
                    for event in reader.feed(piece):
                        yield event
                    piece = None if reader.over else await patience.next(pieces, limits.idle)
                if reader.error:
                    raise self._translator.in_stream(reader.error, spoke=reader.spoke)
                for event in reader.close():
                    yield event
                await _drained(pieces)
            if not reader.done:
                raise self._translator.ended_early(spoke=reader.spoke, foreign=reader.foreign)
        except openai.APIStatusError as error:
            # What the service said is in our error, without any key; the vendor's would show it in a traceback.
            raise self._named(self._translator.translated(error)) from None
        except VENDOR_ERRORS as error:
            raise self._named(self._translator.translated(error, spoke=reader.spoke)) from error
        except ModelServiceError as error:
            raise self._named(error) from error.__cause__

    def _named(self, error: ModelServiceError) -> ModelServiceError:
        """The error, with the host and the model that the page's sentences name."""
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
        client = await self.pool().client(self, self._kept_apart(), self._made)
        self._translator.learn(client.api_key)
        self._reached = str(client.base_url)
        return client

    @property
    def service(self) -> Service:
        """Where the model is: what the vendor's client made of the settings and its variables, once it is there."""
        return service_of({"base_url": self._reached} if self._reached else self.cfg, self.model_type)

    async def account(self) -> str:
        """As for every model, with the address and the key that the vendor's client may take from its variables."""
        try:
            client = await self._client()
        except openai.OpenAIError:  # no key; asking will say so
            return await super().account()
        return account_mark(str(client.base_url), client.api_key)

    async def _connect(self) -> None:
        try:
            client = await self._client()
            await client.get(
                "/models", cast_to=httpx2.Response, options={"max_retries": 0, "timeout": FIRST_BYTE_SECONDS}
            )
        except openai.APIStatusError:
            return  # the connection stands, whatever the service thinks of the question
        except VENDOR_ERRORS as error:
            raise self._named(self._translator.translated(error)) from error

    def _kept_apart(self) -> Hashable:
        """What tells the client of this service from any other."""
        return self._base_url, self._api_key

    def _made(self, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        """The vendor's client for this service, upon connections that are shared."""
        if self._api_key == "":
            raise openai.OpenAIError("There is no api_key for this vendor.")
        key = self._api_key
        if key is None:
            key = usual_key_of(self._base_url, http)
        return openai.AsyncOpenAI(base_url=self._base_url, api_key=key, max_retries=0, http_client=http)

    async def _opened(self, stack: AsyncExitStack, body: Json, limits: Limits) -> httpx2.Response:
        client = await self._client()
        whole = self._quirks.fitted(body)
        query = whole.pop("extra_query", None)
        headers = {**self._config.default_headers, **whole.pop("extra_headers", {})}
        options: RequestOptions = {
            "headers": headers,
            "params": query or {},
            "timeout": httpx2.Timeout(limits.first, connect=CONNECT_SECONDS, read=None),  # reading has a limit of ours
        }
        try:
            # Not `chat.completions.create`: it walks through every part of its arguments on each request.
            response: Any = await client.post(
                "/chat/completions", cast_to=httpx2.Response, body=whole, options=options, stream=True
            )
            stack.push_async_callback(response.aclose)
            return response
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if not self._quirks.learn(error.response.text, whole):
                raise
        except UnicodeEncodeError:  # half a character somewhere
            body = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        except (TypeError, ValueError, RecursionError) as error:
            hint = "Give texts, numbers, lists and dicts alone."
            raise SettingsError(f"generate_cfg cannot be sent: {error}.", hint=hint) from error
        return await self._opened(stack, body, limits)

    async def _readable(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise self._translator.html()
        if "json" in kind and "event" not in kind:  # a service that does not stream, or an error it calls a success
            return one_event(await response.aread())
        return response.aiter_bytes()


def usual_key_of(address: str | None, http: httpx2.AsyncClient) -> str | None:
    """The key for an address where none is given: `None`, which leaves it to the SDK's variable, or `NO_KEY`.

    A service of the user's own rarely wants one, and the vendor's is not for strangers.
    """
    if address is None:
        return None
    usual = openai.AsyncOpenAI(api_key=NO_KEY, http_client=http).base_url
    try:
        openai.AsyncOpenAI(base_url=address, http_client=http)
    except openai.OpenAIError:  # there is none among the variables
        return NO_KEY
    known = {urlsplit(OFFICIAL).netloc, urlsplit(str(usual)).netloc}
    return None if urlsplit(address).netloc in known else NO_KEY


async def _drained(pieces: AsyncGenerator[bytes, None]) -> None:
    """Read the few bytes after the last chunk, so that the connection can serve the next question."""
    try:
        async with asyncio.timeout(AFTER_END_SECONDS):
            async for _ in pieces:
                pass
    except VENDOR_ERRORS:
        return
