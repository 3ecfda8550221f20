"""Qwen's models that see, hear and speak, behind services of the OpenAI protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from core.llm.backends.openai import OpenAIModel
from core.llm.backends.openai_config import OpenAIConfig, address_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.request import ChatRequest
    from core.llm.wire.openai import Json
    from core.llm.wire.tool_names import ToolNames


class VisionModel(OpenAIModel):
    """A model that sees pictures and watches videos, whatever its name; with `audio: true` it hears as well.

    Pictures, videos (or their frames as a list) and recordings of this machine travel inside the request.
    """

    model_type = "qwenvl_oai"
    default_model = "qwen-vl-max"
    always_sees: ClassVar[bool] = True


class OmniModel(OpenAIModel):
    """A model that takes everything and answers in text and speech.

    The reply's recording is an item of its own, after the text. `generate_cfg` chooses the voice:
    `{"audio": {"voice": "Ethan", "format": "wav"}}`, or text alone: `{"modalities": ["text"]}`.
    The service is DashScope's where no address is given.
    """

    model_type = "qwenomni_oai"
    default_model = "qwen-omni-turbo"
    support_multimodal_output = True
    always_sees: ClassVar[bool] = True
    always_hears: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "modalities": ["text", "audio"],
        "audio": {"voice": "Cherry", "format": "wav"},
    }

    def _place(self, config: OpenAIConfig) -> str | None:
        return address_of(config.base_url or "dashscope")

    async def _body(self, request: ChatRequest, names: ToolNames) -> Json:
        body = await super()._body(request, names)
        if "audio" not in body["modalities"]:
            del body["audio"]  # a voice for a reply that is not spoken is refused
        return body
