"""OpenAI's models by the Responses protocol: thoughts go back with the calls they led to, and nothing is kept there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from core.llm.backends.native.model import NativeModel
from core.llm.backends.native.service import Sent
from core.llm.request import call_ids
from core.llm.wire.responses import ResponsesReader, body_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.request import ChatRequest
    from core.llm.wire.reading import EndingReader
    from core.llm.wire.tools import ToolNames

_ENDING: Final = re.compile(r"(?:/responses|/chat/completions)?/*\Z")


class ResponsesModel(NativeModel):
    """A model of OpenAI's, or of a service that speaks its Responses protocol.

    Nothing is stored at the service (`store: false`): what a model thought goes along encrypted, and back with the
    calls that it led to. `generate_cfg` takes `temperature`, `top_p`, `max_tokens`, `reasoning_effort`,
    `response_format`, and the service's own fields (`reasoning`, `text`, `prompt_cache_key`, `service_tier` …).
    `stop` is kept by Parlour, as the service has nothing of the kind.

    Args:
        cfg: As for every service; without `api_key` `OPENAI_API_KEY` counts.

    Raises:
        SettingsError: A value is wrong; the message names it and never shows a key.
    """

    model_type = "openai_responses"
    default_model = "gpt-5-mini"
    service_address: ClassVar[str] = "https://api.openai.com/v1"
    protocol: ClassVar[str] = "Responses"
    key_variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    statuses: ClassVar[Mapping[str, int]] = {
        "invalid_prompt": 400,
        "invalid_request_error": 400,
        "rate_limit_exceeded": 429,
        "rate_limit_error": 429,
        "insufficient_quota": 429,
        "server_error": 500,
        "server_is_overloaded": 503,
    }
    wire_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "response_format": ("text.format", "json_schema"),
        "reasoning_effort": ("reasoning.effort",),
        "max_tokens": ("max_output_tokens",),
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._tells = True

    def _placed(self, address: str) -> str:
        return _ENDING.sub("", address)

    def _headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def _sent(self, request: ChatRequest, names: ToolNames) -> Sent:
        return Sent("/responses", body_json(self.model, request, self._takes, names, tells=self._tells))

    def _reader(self, request: ChatRequest, names: ToolNames) -> EndingReader:
        return ResponsesReader(call_ids(request.messages), names, model=self.model)

    def _learn(self, refusal: str, asked: ChatRequest, if_taken: tuple[str, ...]) -> bool:
        """As for every such model; summaries of thoughts are for accounts that were verified."""
        if self._tells and "summar" in refusal:
            self._tells = False
            return True
        return super()._learn(refusal, asked, if_taken)
