"""Claude by Anthropic's own protocol: thoughts with their signatures, kept prompts, documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from core.errors import SettingsError
from core.llm.backends.native.model import NativeModel
from core.llm.backends.native.service import NativeConfig, Sent
from core.llm.request import call_ids, named_choice
from core.llm.wire.anthropic import (
    SAMPLING,
    AnthropicReader,
    Manner,
    body_json,
    can_stop_thinking,
    is_adaptive,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.parameters import Efforts
    from core.llm.request import ChatRequest
    from core.llm.wire.reading import EndingReader
    from core.llm.wire.tools import ToolNames

_NEWEST: Final = "2026-10-21"
_WITH_SAMPLING: Final = "2023-06-01"
_ENDING: Final = re.compile(r"(?:/v1)?(?:/messages)?/*\Z")
_TEXT_ONLY: Final = re.compile(r"claude-(?:2|instant)")


class AnthropicConfig(NativeConfig):
    """The settings of this back end."""

    anthropic_version: str | None = None
    citations: bool = True


class AnthropicModel(NativeModel):
    """A Claude model, asked by the Messages API.

    `generate_cfg` takes `max_tokens`, `stop`, `reasoning_effort` (`none`, `low`, `medium`, `high`, `xhigh`, `max`),
    `response_format`, and the service's own fields as they are (`thinking`, `service_tier`, `metadata` …).
    `temperature`, `top_p` and `top_k` go to the earlier version of the API, which has them.

    Args:
        cfg: As for every service; without `api_key` `ANTHROPIC_API_KEY` counts. `prompt_caching` is true, false,
            `5m` or `1h`: whether the service keeps the beginnings of prompts, and for how long. `anthropic_version`
            sets the version of the API. `citations` is false where Claude is not to cite the documents of a question.

    Raises:
        SettingsError: A value is wrong; the message names it and never shows a key.
    """

    model_type = "anthropic"
    default_model = "claude-sonnet-4-5"
    service_address: ClassVar[str] = "https://api.anthropic.com"
    config_class: ClassVar[type[NativeConfig]] = AnthropicConfig
    protocol: ClassVar[str] = "Anthropic"
    key_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY",)
    connect_path: ClassVar[str] = "/v1/models"
    statuses: ClassVar[Mapping[str, int]] = {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
    }
    wire_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "response_format": ("output_config", "schema", "output_format"),
        "reasoning_effort": ("thinking", "effort"),
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._forces = True
        self._cites = isinstance(self._config, AnthropicConfig) and self._config.citations
        if self._config.prompt_caching not in {True, False, "5m", "1h"}:
            said = f"prompt_caching cannot be {self._config.prompt_caching!r}."
            raise SettingsError(said, hint="Give true, false, 5m or 1h.", name="prompt_caching")

    @property
    def efforts(self) -> Efforts:
        """As for every model, by the generation of this one."""
        if version_of(self.model) < (3, 7):
            return {}
        off = {"off": {"reasoning_effort": "none"}} if can_stop_thinking(self.model) else {}
        return {**off, "short": {"reasoning_effort": "low"}, "long": {"reasoning_effort": "high"}}

    def _senses(self) -> None:
        super()._senses()
        if self._config.vision is None:
            self.support_multimodal_input = not _TEXT_ONLY.search(self.model)
        if self._config.documents is None:
            self.support_document_input = self.support_multimodal_input
        self.support_audio_input = self.support_video_input = False

    def _placed(self, address: str) -> str:
        return _ENDING.sub("", address)

    def _headers(self, key: str) -> dict[str, str]:
        official = urlsplit(self._address).netloc == urlsplit(self.service_address).netloc
        both = {} if official or not key else {"Authorization": f"Bearer {key}"}  # gateways look here
        return {"x-api-key": key, **both}

    def _sent(self, request: ChatRequest, names: ToolNames) -> Sent:
        config = self._config
        manner = Manner(config.prompt_caching, self._forces, self._cites)
        body = body_json(self.model, request, self._takes, names, manner)
        usual = _WITH_SAMPLING if SAMPLING & body.keys() or not is_adaptive(self.model) else _NEWEST
        version = config.anthropic_version if isinstance(config, AnthropicConfig) else None
        return Sent("/v1/messages", body, {"anthropic-version": version or usual})

    def _learn(self, refusal: str, asked: ChatRequest, if_taken: tuple[str, ...]) -> bool:
        """As for every such model; the newest ones cannot be forced to call a tool, the oldest do not cite."""
        if self._cites and "citation" in refusal.lower():
            self._cites = False
            return True
        if self._forces and "tool_choice" in refusal and named_choice(asked):
            self._forces = False
            return True
        return super()._learn(refusal, asked, if_taken)

    def _reader(self, request: ChatRequest, names: ToolNames) -> EndingReader:
        return AnthropicReader(call_ids(request.messages), names, model=self.model)
