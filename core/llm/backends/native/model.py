"""`NativeModel`: what back ends with protocols of their own share; a subclass words requests and reads replies."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from core.bridge.watchdog import awake_timeout
from core.errors import ModelServiceError
from core.llm.backends.errors import HTTP_ERRORS
from core.llm.backends.http_clients import IdleTimeout, Limits, drain
from core.llm.backends.http_model import HttpModel
from core.llm.backends.native.service import NativeConfig, NativeService, Sent, Translator, id_of
from core.llm.backends.service_config import whole_address
from core.llm.ledger import wire_of
from core.llm.media import inlined, is_document
from core.llm.model_names import hears_by_name, sees_by_name, watches_by_name
from core.llm.request import ChatRequest, Stream, is_on
from core.llm.service import Service, account_mark, service_of
from core.llm.validation import read_config
from core.llm.wire.tools import ToolNames, checked_functions
from core.messages.events import MessageStarted
from core.messages.message import PROOF
from core.settings import named_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

    from core.llm.wire.reading import EndingReader
    from core.llm.wire_log import WireLog
    from core.messages.content import ContentItem


_PROOF: Final = re.compile(
    r"signature|bound to a different|encrypted.?content|expected .?thinking|reasoning.{0,40}required following",
    re.IGNORECASE,
)
"""Refusals of thoughts that were sent back: what stood before them has changed, or they are not the service's."""


class NativeModel(HttpModel):
    """A model behind a service that is asked in its own protocol.

    Tools go through the service's own calling unless `generate_cfg` says `use_raw_api: False` or names a
    `fncall_prompt_type`; a model that turns out to have none gets them in the prompt.

    Args:
        cfg: `model`, `api_key` (else the vendor's usual variable, for its own address alone), `base_url`
            (= `model_server`, `api_base`), `generate_cfg`, `default_headers`, and `vision`, `audio`, `video`,
            `documents`: what the model takes beside text, where its name does not tell.

    Raises:
        SettingsError: A value is wrong; the message names it and never shows a key.
    """

    takes_schema = True
    config_class: ClassVar[type[NativeConfig]] = NativeConfig
    protocol: ClassVar[str] = ""
    key_variables: ClassVar[tuple[str, ...]] = ()
    """The variables in which the vendor's key usually is; the first that is set counts."""
    needs_key: ClassVar[bool] = True
    statuses: ClassVar[Mapping[str, int]] = {}
    """HTTP statuses by the service's own words for errors."""
    wire_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """How refusals name what `generate_cfg` has under another name."""
    connect_path: ClassVar[str] = "/models"

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        config = self._config = read_config(self.config_class, self.cfg)
        self._address = self._placed(whole_address(self._given_address(), f"Give one such as {self.service_address}."))
        key = config.api_key.get_secret_value() if config.api_key else self._usual_key()
        self._key = key
        self._translator = Translator(self.protocol, self._address, key, self.model, self.statuses)
        self.label = f"{self.model} · {self._translator.host}"
        native = "fncall_prompt_type" not in self.generate_cfg
        self.native_calls = is_on(self.generate_cfg.get("use_raw_api", native))
        self._senses()
        self._http = NativeService(self._address, {**self._headers(key), **config.default_headers}, self._translator)
        self._refused: dict[str, Any] = {}

    # -- what a protocol says -------------------------------------------------------------------------------------

    def _headers(self, key: str) -> dict[str, str]:
        """The headers of every request, with the key where the service looks for it."""
        raise NotImplementedError

    def _sent(self, request: ChatRequest, names: ToolNames) -> Sent:
        """The request as it goes out."""
        raise NotImplementedError

    def _reader(self, request: ChatRequest, names: ToolNames) -> EndingReader:
        """What reads the reply."""
        raise NotImplementedError

    def _placed(self, address: str) -> str:
        """The address, up to what paths go on with."""
        return address

    # -- as for every model ---------------------------------------------------------------------------------------

    @property
    def service(self) -> Service:
        """Where the model is."""
        return service_of({"base_url": self._address}, self.model_type, self.service_address)

    @property
    def left_out(self) -> Mapping[str, Any]:
        """As for every model, learned from refusals."""
        return dict(self._refused)

    async def account(self) -> str:
        """As for every model, with the key that a variable may have had."""
        return account_mark(self._address, self._key)

    def _holder(self) -> object:
        return self._http

    async def _stream(self, request: ChatRequest) -> Stream:
        names = ToolNames(str(function.get("name")) for function in checked_functions(request.functions))
        reader = self._reader(request, names)
        yield MessageStarted()
        try:
            self._check_key()
            async with aclosing(self._events(request, reader, names)) as events:
                async for event in events:
                    yield event
            if reader.error is not None:
                raise self._translator.in_stream(reader.error, spoke=reader.spoke)
            if not reader.done:
                raise self._translator.ended_early(spoke=reader.spoke, foreign=reader.foreign)
        except HTTP_ERRORS as error:
            raise self._translator.translated(error, spoke=reader.spoke) from error
        except ModelServiceError as error:
            error.details |= self._translator.about
            raise
        finally:
            if request.notes is not None:
                request.notes.response_id = reader.response_id or request.notes.response_id

    async def _events(self, request: ChatRequest, reader: EndingReader, names: ToolNames) -> Stream:
        limits, wire = Limits.of(request, here=self.service.here), wire_of(request)
        asked = replace(request, messages=await inlined(request.messages, self._takes))
        async with AsyncExitStack() as stack:
            async with awake_timeout(limits.first):  # for everything before the first byte together
                response = await self._send(asked, names, limits, wire)
                stack.push_async_callback(response.aclose)
                pieces = await stack.enter_async_context(aclosing(await self._http.pieces_of(response)))
                piece = await anext(pieces, None)
            if request.notes is not None:
                request.notes.response_id = id_of(response)
            idle = stack.enter_context(IdleTimeout())
            while piece is not None:
                wire.received(piece)
                for event in reader.feed(piece):
                    yield event
                piece = None if reader.over else await idle.next(pieces, limits.idle)
            if reader.error is None:
                for event in reader.close():
                    yield event
                await drain(pieces, wire.received, HTTP_ERRORS)

    async def _connect(self) -> None:
        self._check_key()
        try:
            await self._http.connect(self.connect_path)
        except HTTP_ERRORS as error:
            raise self._translator.translated(error) from error

    # -- inside ---------------------------------------------------------------------------------------------------

    def _given_address(self) -> str:
        """The address as it was given; the vendor's own is never asked in the open."""
        given, usual = (self._config.base_url or "").strip(), urlsplit(self.service_address)
        if "://" not in given and urlsplit(f"//{given}").hostname == usual.hostname:
            return f"{usual.scheme}://{given}"
        return given or self.service_address

    def _usual_key(self) -> str:
        """The vendor's key goes to the vendor's own address alone."""
        if urlsplit(self._address).netloc != urlsplit(self.service_address).netloc:
            return ""
        return next((key for name in self.key_variables if (key := named_key(name))), "")

    def _check_key(self) -> None:
        if self.needs_key and not self._key:
            variable = f", or {self.key_variables[0]}" if self.key_variables else ""
            raise self._translator.keyless(f"Set api_key{variable}.")

    def _senses(self) -> None:
        config = self._config
        self.support_multimodal_input = sees_by_name(self.model) if config.vision is None else config.vision
        self.support_audio_input = hears_by_name(self.model) if config.audio is None else config.audio
        self.support_video_input = watches_by_name(self.model) if config.video is None else config.video
        self.support_document_input = self.support_multimodal_input if config.documents is None else config.documents

    def _takes(self, item: ContentItem) -> bool:
        """Whether the item goes to the model as it is."""
        match item.type:
            case "image":
                return self.support_multimodal_input
            case "audio":
                return self.support_audio_input
            case "video":
                return self.support_video_input
            case "file":
                return self.support_document_input and is_document(item)
            case _:
                return False

    async def _send(self, request: ChatRequest, names: ToolNames, limits: Limits, wire: WireLog) -> httpx2.Response:
        """The open response; what may be left out and is refused is left out, and the request sent again."""
        if_taken: tuple[str, ...] = tuple(request.generate.get("if_taken") or ())
        while True:
            asked = self._without_refused(request, if_taken)
            response = await self._http.ask(self._sent(asked, names), limits, wire)
            if response.status_code == 200:
                return response
            refused = response.text if response.status_code in {400, 422} else ""
            if refused and _PROOF.search(refused) and (plain := without_proofs(request)) is not None:
                request = plain  # a thought is of another conversation by now: it goes on without
            elif not refused or not self._learn(refused, asked, if_taken):
                raise self._translator.refused(response)

    def _without_refused(self, request: ChatRequest, if_taken: tuple[str, ...]) -> ChatRequest:
        given = request.generate
        gone = {name for name in if_taken if name in self._refused and self._refused[name] == given.get(name)}
        if not gone:
            return request
        return replace(request, generate={name: value for name, value in given.items() if name not in gone})

    def _learn(self, refusal: str, asked: ChatRequest, if_taken: tuple[str, ...]) -> bool:
        """Learn from a refusal; true if it told something new, so that sending again may help."""
        for name in if_taken:
            words = (name, *self.wire_names.get(name, ()))
            if name in asked.generate and any(word in refusal for word in words):
                self._refused[name] = asked.generate[name]
                return True
        return False


def without_proofs(request: ChatRequest) -> ChatRequest | None:
    """The request without what proves earlier thoughts; `None` where there is nothing of the kind."""
    if not any(PROOF in (message.extra or {}) for message in request.messages):
        return None
    plain = [
        message.model_copy(update={"extra": {name: value for name, value in message.extra.items() if name != PROOF}})
        if message.extra
        else message
        for message in request.messages
    ]
    return replace(request, messages=tuple(plain))
