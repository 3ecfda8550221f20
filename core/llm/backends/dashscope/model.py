"""DashScope in its own protocol: text, and models that see and hear."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator

from core.bridge.watchdog import awake_timeout
from core.errors import ModelRefusedError, ModelServiceError
from core.llm.backends.dashscope.media import UploadStore, with_uploads
from core.llm.backends.dashscope.service import (
    NO_CALLS,
    DashScopeService,
    Translator,
    checked_address,
    in_time,
    resolve_endpoint,
)
from core.llm.backends.errors import HTTP_ERRORS
from core.llm.backends.http_clients import Limits, http_pool
from core.llm.backends.http_model import HttpModel
from core.llm.ledger import wire_of
from core.llm.request import ChatRequest, Stream, call_ids, is_on
from core.llm.service import Service, account_mark, service_of
from core.llm.validation import read_config
from core.llm.wire.dashscope import DashScopeReader, body_json
from core.llm.wire.tools import ToolNames, checked_functions
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from core.messages.content import ContentItem

# The SDK resolves addresses and keys (`service.py`) but makes no request: it reads the wire line by line and turns each
# chunk into several dicts of its own classes; it uploads with a blocking client inside the event loop, to the process's
# address instead of the model's; it has a single timeout; it logs every failure with its traceback; and importing it
# takes most of a second. Our requests match the SDK's in paths, `X-DashScope-*` headers, body and form. Compare them
# with `python -m bench dashscope_streaming`.

_AUDIO_ONLY: Final = re.compile(r"audio|asr", re.IGNORECASE)


class DashScopeConfig(BaseModel):
    """The settings of this back end; unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    base_http_api_url: str | None = Field(
        default=None, validation_alias=AliasChoices("base_http_api_url", "base_url", "model_server", "api_base")
    )
    api_key: SecretStr | None = None
    workspace: str | None = None
    vision: bool | None = None
    default_headers: dict[str, str] = Field(default_factory=dict)

    _reachable = field_validator("base_http_api_url")(checked_address)

    @field_validator("api_key", "workspace", "default_headers")
    @classmethod
    def _sendable(cls, value: SecretStr | str | dict[str, str] | None) -> SecretStr | str | dict[str, str] | None:
        """Header values must be printable ASCII."""
        shown = value.get_secret_value().strip() if isinstance(value, SecretStr) else value
        texts = [*shown.keys(), *shown.values()] if isinstance(shown, dict) else [shown or ""]
        if not all(text.isascii() and (text.isprintable() or not text) for text in texts):
            raise ValueError("it has characters that cannot be sent")
        return value


class DashScopeModel(HttpModel):
    """A Qwen model, or another one that DashScope serves, for text.

    Tools go through the service's own calling unless `generate_cfg` says `use_raw_api: False` or names a
    `fncall_prompt_type`; a model that turns out to have none gets them in the prompt.

    Args:
        cfg: `model`, `api_key` (else the SDK's: `DASHSCOPE_API_KEY`, its key file), `base_http_api_url` (= `base_url`,
            `model_server`, `api_base`; else the SDK's), `workspace`, `default_headers`, `generate_cfg`.

    Raises:
        SettingsError: A value has the wrong type, or the address is none.
    """

    model_type = "qwen_dashscope"
    default_model = "qwen-plus"
    service_address: ClassVar[str] = "https://dashscope.aliyuncs.com/api/v1"
    no_calls: ClassVar[re.Pattern[str]] = NO_CALLS
    raw_calls: ClassVar[bool] = True
    takes_kinds: frozenset[str] = frozenset()

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        config = self._config = read_config(DashScopeConfig, self.cfg)
        given = config.api_key.get_secret_value().strip() if config.api_key else ""
        self._endpoint = resolve_endpoint(config.base_http_api_url, given, config.workspace)
        self._translator = Translator(self._endpoint.address, self._endpoint.api_key, self.model)
        self.label = f"{self.model} · {self._translator.host}"
        own = self.raw_calls and "fncall_prompt_type" not in self.generate_cfg
        self.native_calls = is_on(self.generate_cfg.get("use_raw_api", own))
        headers = {"Authorization": f"Bearer {self._endpoint.api_key}", "Cache-Control": "no-cache"}
        if config.workspace:
            headers["X-DashScope-WorkSpace"] = config.workspace
        headers |= config.default_headers
        self._http = DashScopeService(self._endpoint.address, headers, self.model, self._translator)
        self._store = UploadStore(self._http.policy)
        self._continues = True

    @property
    def service(self) -> Service:
        """Where it is, by the settings or the SDK."""
        return service_of({"base_http_api_url": self._endpoint.address}, self.model_type, self.service_address)

    async def account(self) -> str:
        """As for every model, with the key that the SDK may have resolved."""
        return account_mark(self._endpoint.address, self._endpoint.api_key)

    def _holder(self) -> object:
        return self._http

    async def _stream(self, request: ChatRequest) -> Stream:
        yield MessageStarted()
        limits = Limits.of(request, here=self.service.here)
        names = ToolNames(str(function.get("name")) for function in checked_functions(request.functions))
        reader, wire = DashScopeReader(call_ids(request.messages), names), wire_of(request)
        try:
            if not self._endpoint.api_key:
                raise self._translator.keyless(self._endpoint.hint)
            request = await self._with_uploads(request)
            async with AsyncExitStack() as stack:
                async with awake_timeout(limits.first):  # for everything before the first byte together
                    source = await self._send(stack, request, names, limits)
                    first = await anext(source, None)
                pieces = await stack.enter_async_context(aclosing(in_time(first, source, limits, reader)))
                async for piece in pieces:
                    wire.received(piece)
                    for event in reader.feed(piece):
                        yield event
                if reader.error is not None:
                    raise self._translator.refusal(int(reader.error["status"]), reader.error, spoke=reader.spoke)
                for event in reader.close():
                    yield event
            if reader.reason is None:
                raise self._translator.ended_early(spoke=reader.spoke, foreign=reader.foreign)
        except HTTP_ERRORS as error:
            raise self._translator.translated(error, spoke=reader.spoke) from error
        except ModelServiceError as error:
            error.details |= self._translator.about
            raise
        finally:
            if request.notes is not None and reader.request_id:
                request.notes.response_id = reader.request_id

    async def _connect(self) -> None:
        if not self._endpoint.api_key:
            raise self._translator.keyless(self._endpoint.hint)
        try:
            await self._http.connect()
        except HTTP_ERRORS as error:
            raise self._translator.translated(error) from error

    def _takes(self, item: ContentItem) -> bool:
        return item.type in self.takes_kinds

    async def _send(
        self, stack: AsyncExitStack, request: ChatRequest, names: ToolNames, limits: Limits
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of the reply. A model that refuses `partial` is asked in words to continue its text."""
        takes = self._takes if self.takes_kinds else None
        task = "multimodal" if self.takes_kinds else "text"
        body = body_json(self.model, request, takes, names, partial=self._continues)
        try:
            return await self._http.ask(stack, task, body, limits, wire_of(request))
        except ModelRefusedError as error:
            if not body["input"]["messages"][-1].get("partial") or "partial" not in error.message.lower():
                raise
        self._continues = False
        body = body_json(self.model, request, takes, names, partial=False)
        return await self._http.ask(stack, task, body, limits, wire_of(request))

    async def _with_uploads(self, request: ChatRequest) -> ChatRequest:
        """The request, with local files uploaded or inlined."""
        if not self.takes_kinds:
            return request
        http = await http_pool().client(self._http)
        messages = await with_uploads(request.messages, self._takes, lambda media: self._store.put(http, media))
        return replace(request, messages=messages)


class DashScopeVisionModel(DashScopeModel):
    """A DashScope model that sees pictures and videos."""

    model_type = "qwenvl_dashscope"
    default_model = "qwen-vl-max"
    support_multimodal_input = True
    support_video_input = True
    raw_calls = False
    takes_kinds = frozenset({"image", "video"})


class DashScopeAudioModel(DashScopeModel):
    """A DashScope model that hears recordings, and sees as well unless its name says that it only listens.

    Args:
        cfg: As for text, and `vision`: whether it sees pictures and videos.
    """

    model_type = "qwenaudio_dashscope"
    default_model = "qwen-audio-turbo-latest"
    support_audio_input = True
    raw_calls = False
    takes_kinds = frozenset({"audio"})

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        vision = self._config.vision
        self.support_multimodal_input = not _AUDIO_ONLY.search(self.model) if vision is None else vision
        self.support_video_input = self.support_multimodal_input
        if self.support_multimodal_input:
            self.takes_kinds = frozenset({"audio", "image", "video"})
