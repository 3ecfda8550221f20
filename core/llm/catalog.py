"""The table of back ends: model type and class."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from core.llm.base import BaseChatModel
from core.registry import Entry, Registry, check_class, check_name

if TYPE_CHECKING:
    from collections.abc import Callable

LLM_REGISTRY: Registry[type[BaseChatModel]] = Registry(
    "model type",
    {
        "openai": Entry("core.llm.backends.openai.model:OpenAIModel"),
        "oai": Entry("core.llm.backends.openai.model:OpenAIModel"),
        "openai_responses": Entry("core.llm.backends.responses:ResponsesModel"),
        "openai_public": Entry("core.llm.backends.openai.variants:PublicOpenAIModel"),
        "qwenvl_oai": Entry("core.llm.backends.openai.variants:VisionModel"),
        "qwenomni_oai": Entry("core.llm.backends.openai.variants:OmniModel"),
        "azure": Entry("core.llm.backends.openai.variants:AzureModel"),
        "anthropic": Entry("core.llm.backends.anthropic:AnthropicModel"),
        "mistral": Entry("core.llm.backends.mistral:MistralModel"),
        "gemini": Entry("core.llm.backends.gemini:GeminiModel"),
        "bedrock": Entry("core.llm.backends.openai.variants:BedrockModel"),
        "bedrock_converse": Entry("core.llm.backends.converse:ConverseModel"),
        "qwen_dashscope": Entry("core.llm.backends.dashscope.model:DashScopeModel"),
        "qwenvl_dashscope": Entry("core.llm.backends.dashscope.model:DashScopeVisionModel"),
        "qwenaudio_dashscope": Entry("core.llm.backends.dashscope.model:DashScopeAudioModel"),
        "transformers": Entry("core.llm.backends.transformers.model:TransformersModel"),
        "zerogpu": Entry("core.llm.backends.zerogpu.model:ZeroGpuModel"),
        "llama_cpp": Entry("core.llm.backends.llama_cpp:LlamaCppModel"),
        "fallback": Entry("core.llm.fallback:FallbackModel"),
        "scripted": Entry("core.testing.scripted_model:ScriptedModel"),
    },
)
"""Model types by name; a class is imported when it is first used. `register_llm` adds one."""

Model = TypeVar("Model", bound=type[BaseChatModel])


def register_llm(name: str) -> Callable[[Model], Model]:
    """A decorator that makes a model of your own known as `model_type: name`.

    Args:
        name: The model type; the class's `model_type` is set to it.

    Raises:
        SettingsError: `name` is no text, or empty.
    """
    check_name(name, "register_llm")

    def add(model: Model) -> Model:
        check_class(model, "register_llm", "BaseChatModel")
        model.model_type = name
        LLM_REGISTRY.add(name, model)
        return model

    return add
