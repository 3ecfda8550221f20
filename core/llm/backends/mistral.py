"""Mistral's models by their own protocol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from core.llm.backends.native.model import NativeModel
from core.llm.backends.native.service import Sent
from core.llm.request import call_ids
from core.llm.wire.cited import sources_of
from core.llm.wire.mistral import MistralReader, body_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.parameters import Efforts
    from core.llm.request import ChatRequest
    from core.llm.wire.reading import EndingReader
    from core.llm.wire.tools import ToolNames

_ENDING: Final = re.compile(r"(?:/chat/completions)?/*\Z")
_SEES: Final = re.compile(r"pixtral|mistral-(?:small|medium|large)|ministral|magistral", re.IGNORECASE)
_EFFORTS: Final = re.compile(r"mistral-(?:small|medium)-(?:latest|26|27)", re.IGNORECASE)


class MistralModel(NativeModel):
    """A model of Mistral's.

    `generate_cfg` takes `temperature`, `top_p`, `max_tokens`, `stop`, `seed`, `response_format`, `reasoning_effort`
    (`none`, `high`), and the service's own fields (`safe_prompt`, `prompt_mode`, `prompt_cache_key` …).

    Args:
        cfg: As for every service; without `api_key` `MISTRAL_API_KEY` counts.

    Raises:
        SettingsError: A value is wrong; the message names it and never shows a key.
    """

    model_type = "mistral"
    default_model = "mistral-medium-latest"
    service_address: ClassVar[str] = "https://api.mistral.ai/v1"
    protocol: ClassVar[str] = "Mistral"
    key_variables: ClassVar[tuple[str, ...]] = ("MISTRAL_API_KEY",)
    statuses: ClassVar[Mapping[str, int]] = {
        "invalid_request_error": 400,
        "rate_limit_error": 429,
        "rate_limit_exceeded": 429,
        "internal_server_error": 500,
    }
    wire_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"seed": ("random_seed",)}

    @property
    def efforts(self) -> Efforts:
        """As for every model: two ways, for those that can think or not."""
        if not _EFFORTS.search(self.model):
            return {}
        return {"off": {"reasoning_effort": "none"}, "long": {"reasoning_effort": "high"}}

    def _senses(self) -> None:
        super()._senses()
        if self._config.vision is None:
            self.support_multimodal_input = bool(_SEES.search(self.model))
        if self._config.documents is None:
            self.support_document_input = True  # the service reads them itself, for every model

    def _placed(self, address: str) -> str:
        return _ENDING.sub("", address)

    def _headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def _sent(self, request: ChatRequest, names: ToolNames) -> Sent:
        return Sent("/chat/completions", body_json(self.model, request, self._takes, names))

    def _reader(self, request: ChatRequest, names: ToolNames) -> EndingReader:
        taken, sources = call_ids(request.messages), sources_of(request.messages)
        return MistralReader(taken, names, model=self.model, sources=sources)
