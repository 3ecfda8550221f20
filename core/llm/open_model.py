"""From a name or a dict to a model that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.errors import SettingsError
from core.llm.base import BaseChatModel
from core.llm.catalog import LLM_REGISTRY

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVER_KEYS = ("model_server", "base_url", "api_base")
_BUILT_IN = "llama_cpp"


def get_chat_model(cfg: str | Mapping[str, Any] | BaseChatModel) -> BaseChatModel:
    """The model that `cfg` describes.

    Args:
        cfg: A model's name, a dict (`model`, `model_type`, `model_server`, `api_key`, `generate_cfg`, …, which stays
            as it is), or a model, which is returned itself.

    Raises:
        UnknownNameError: No model type has that name; the message offers the near ones.
        MissingExtraError: The package it needs is not installed; the message has the command.
        SettingsError: Nothing in `cfg` says which model is meant.
    """
    if isinstance(cfg, BaseChatModel):
        return cfg
    settings: dict[str, Any] = {"model": cfg} if isinstance(cfg, str) else dict(cfg)
    model_type = str(settings.get("model_type") or deduced_type(settings))
    return LLM_REGISTRY[model_type]({**settings, "model_type": model_type})


def deduced_type(settings: Mapping[str, Any]) -> str:
    """The model type that the rest of the settings point to.

    Raises:
        SettingsError: They point nowhere.
    """
    name = str(settings.get("model") or "").strip()
    if any(settings.get(key) for key in SERVER_KEYS):
        return "openai"
    if name.lower().endswith(".gguf") or settings.get("weights"):
        return _BUILT_IN
    if name in LLM_REGISTRY:
        return name
    if name:
        return "openai"
    raise SettingsError(
        "The settings name no model.", hint="Give model, or model_type, or model_server.", key="model_not_named"
    )
