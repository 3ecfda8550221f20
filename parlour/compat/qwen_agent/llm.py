"""Models and messages under the names that they have in Qwen-Agent: `llm`, `llm.schema`, `llm.base`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core import (
    ASSISTANT,
    AUDIO,
    CONTENT,
    EXTRA,
    FILE,
    FUNCTION,
    FUNCTION_CALL,
    IMAGE,
    LLM_REGISTRY,
    NAME,
    REASONING_CONTENT,
    ROLE,
    SYSTEM,
    TEXT,
    USER,
    VIDEO,
    BaseChatModel,
    BaseModelCompatibleDict,
    ContentItem,
    FunctionCall,
    Message,
    ModelServiceError,
    register_llm,
)
from core.llm import open_model
from parlour.compat.qwen_agent import settings

if TYPE_CHECKING:
    from collections.abc import Mapping

__path__: list[str] = []  # `llm.schema` and so on are this module

BaseFnCallModel = BaseChatModel  # each model calls functions here
DEFAULT_SYSTEM_MESSAGE = ""

__all__ = [
    "ASSISTANT",
    "AUDIO",
    "CONTENT",
    "DEFAULT_SYSTEM_MESSAGE",
    "EXTRA",
    "FILE",
    "FUNCTION",
    "FUNCTION_CALL",
    "IMAGE",
    "LLM_REGISTRY",
    "NAME",
    "REASONING_CONTENT",
    "ROLE",
    "SYSTEM",
    "TEXT",
    "USER",
    "VIDEO",
    "BaseChatModel",
    "BaseFnCallModel",
    "BaseModelCompatibleDict",
    "ContentItem",
    "FunctionCall",
    "Message",
    "ModelServiceError",
    "get_chat_model",
    "register_llm",
]


def as_told(llm: BaseChatModel | Mapping[str, Any] | str) -> BaseChatModel | Mapping[str, Any] | str:
    """A model's settings with what variables of the environment say, under what they say themselves."""
    if isinstance(llm, BaseChatModel) or not settings.GENERATE_CFG:
        return llm
    cfg: dict[str, Any] = {"model": llm} if isinstance(llm, str) else dict(llm)
    return {**cfg, "generate_cfg": {**settings.GENERATE_CFG, **(cfg.get("generate_cfg") or {})}}


def get_chat_model(cfg: BaseChatModel | Mapping[str, Any] | str = "qwen-plus") -> BaseChatModel:
    """A model by its name, its settings, or as it is.

    Raises:
        ParlourError: As `core.llm.open_model.get_chat_model`.
    """
    return open_model.get_chat_model(as_told(cfg))
