"""Gemini by Google's own protocol: thoughts with their signatures, documents, recordings and videos."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from core.llm.backends.native.model import NativeModel
from core.llm.backends.native.service import Sent
from core.llm.request import call_ids, is_off
from core.llm.wire.gemini import GeminiReader, body_json, thinks, version_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.parameters import Efforts
    from core.llm.request import ChatRequest
    from core.llm.wire.reading import EndingReader
    from core.llm.wire.tools import ToolNames

_ENDING: Final = re.compile(r"(?:/v1(?:beta|alpha)?)?(?:/openai)?(?:/models(?:/.*)?)?/*\Z")


class GeminiModel(NativeModel):
    """A Gemini model, asked by `generateContent`.

    `generate_cfg` takes `temperature`, `top_p`, `top_k`, `max_tokens`, `stop`, `seed`, `reasoning_effort` (`none`,
    `minimal`, `low`, `medium`, `high`), `response_format`, and the service's own fields (`safety_settings`,
    `cached_content`, `thinking_config`, and those of `generationConfig`).

    Args:
        cfg: As for every service; without `api_key` `GEMINI_API_KEY` counts, then `GOOGLE_API_KEY`.

    Raises:
        SettingsError: A value is wrong; the message names it and never shows a key.
    """

    model_type = "gemini"
    default_model = "gemini-2.5-flash"
    service_address: ClassVar[str] = "https://generativelanguage.googleapis.com"
    support_multimodal_output = True
    protocol: ClassVar[str] = "Gemini"
    key_variables: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    connect_path: ClassVar[str] = "/v1beta/models"
    statuses: ClassVar[Mapping[str, int]] = {
        "INVALID_ARGUMENT": 400,
        "FAILED_PRECONDITION": 400,
        "UNAUTHENTICATED": 401,
        "PERMISSION_DENIED": 403,
        "NOT_FOUND": 404,
        "RESOURCE_EXHAUSTED": 429,
        "INTERNAL": 500,
        "UNAVAILABLE": 503,
        "DEADLINE_EXCEEDED": 504,
    }
    wire_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "response_format": (
            "response_mime_type",
            "response mime type",
            "response_schema",
            "responseJsonSchema",
            "schema",
        ),
        "reasoning_effort": ("thinking", "Thinking", "budget"),
        "max_tokens": ("max_output_tokens", "maxOutputTokens"),
        "top_p": ("topP",),
    }

    @property
    def efforts(self) -> Efforts:
        """As for every model, by the generation of this one."""
        if not thinks(self.model):
            return {}
        may_not = version_of(self.model) < (3, 0) and "pro" not in self.model.lower()
        off = {"off": {"reasoning_effort": "none"}} if may_not else {}
        return {**off, "short": {"reasoning_effort": "low"}, "long": {"reasoning_effort": "high"}}

    def _placed(self, address: str) -> str:
        return _ENDING.sub("", address)

    def _headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def _sent(self, request: ChatRequest, names: ToolNames) -> Sent:
        whole = is_off(request.generate.get("stream"))
        model = quote(self.model.removeprefix("models/"), safe="")
        verb = "generateContent" if whole else "streamGenerateContent?alt=sse"
        return Sent(f"/v1beta/models/{model}:{verb}", body_json(self.model, request, self._takes, names))

    def _reader(self, request: ChatRequest, names: ToolNames) -> EndingReader:
        return GeminiReader(call_ids(request.messages), names, model=self.model)

    def _senses(self) -> None:
        super()._senses()
        config: Any = self._config
        hears = config.audio is None and version_of(self.model) >= (1, 5)
        self.support_audio_input = self.support_audio_input or hears
