"""The table of models: name, class, and the extra that brings what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from core.llm.base import BaseChatModel
from core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Callable

LLM_REGISTRY: Registry[type[BaseChatModel]] = Registry(
    "model type",
    {
        "openai": Entry("core.llm.backends.openai:OpenAIModel"),
        "oai": Entry("core.llm.backends.openai:OpenAIModel"),
        "openai_public": Entry("core.llm.backends.openai_public:PublicOpenAIModel"),
        "qwenvl_oai": Entry("core.llm.backends.openai_qwen:VisionModel"),
        "qwenomni_oai": Entry("core.llm.backends.openai_qwen:OmniModel"),
        "azure": Entry("core.llm.backends.azure:AzureModel"),
        "qwen_dashscope": Entry("core.llm.backends.dashscope:DashScopeModel"),
        "qwenvl_dashscope": Entry("core.llm.backends.dashscope:DashScopeVisionModel"),
        "qwenaudio_dashscope": Entry("core.llm.backends.dashscope:DashScopeAudioModel"),
        "transformers": Entry("core.llm.backends.transformers:TransformersModel", extra="transformers"),
        "llama_cpp": Entry("core.llm.backends.llama_cpp:LlamaCppModel"),
        "scripted": Entry("core.testing.scripted_model:ScriptedModel"),
    },
)
"""The model types, by name: a mapping. Naming them imports nothing; `register_llm` adds one."""

Model = TypeVar("Model", bound=type[BaseChatModel])


def register_llm(name: str) -> Callable[[Model], Model]:
    """A decorator that makes a model of your own known as `model_type: name`.

    Args:
        name: The model type; the class's `model_type` is set to it.
    """

    def add(model: Model) -> Model:
        model.model_type = name
        LLM_REGISTRY.add(name, model)
        return model

    return add
