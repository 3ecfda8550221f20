"""`get_chat_model`: a model from its name or settings."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.errors import SettingsError, UnknownNameError
from core.llm.base import BaseChatModel
from core.llm.catalog import LLM_REGISTRY
from core.llm.local_files import BUILT_IN, user_path
from core.llm.validation import check_model_names

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVER_KEYS = ("model_server", "base_url", "api_base")
_DECIDE: Final = ("azure_endpoint", "weights")
_DASHSCOPE: Final = "dashscope"
_FAMILIES: Final = {
    "-vl": "qwenvl_dashscope",
    "qvq": "qwenvl_dashscope",
    "-audio": "qwenaudio_dashscope",
    "-omni": "qwenomni_oai",
    "qwen": "qwen_dashscope",
    "qwq": "qwen_dashscope",
}
"""The model type by a part of the model's name, if no server is given; the first match counts."""


OneModel: TypeAlias = "str | Mapping[str, Any] | BaseChatModel"
GivenModel: TypeAlias = "OneModel | Sequence[OneModel]"
"""What a model can be made of: a name, a dict, a model, or a list of these, of which the next answers where one cannot.
"""


def get_chat_model(cfg: GivenModel) -> BaseChatModel:
    """The model that `cfg` describes.

    Args:
        cfg: A model's name, a dict (`model`, `model_type`, `model_server`, `api_key`, `generate_cfg`, …, which stays
            as it is), or a model, which is returned itself. A list of these is a `FallbackModel`: where one cannot
            answer, the next one does.

    Raises:
        UnknownNameError: No model type has that name; the message offers the near ones.
        MissingExtraError: The package it needs is not installed; the message has the command.
        SettingsError: Nothing in `cfg` says which model is meant, or one of its names is misspelt.
    """
    if isinstance(cfg, BaseChatModel):
        return cfg
    given: Any = cfg
    if isinstance(given, list | tuple):
        return LLM_REGISTRY["fallback"]({"models": cfg})
    if not isinstance(given, str | Mapping):
        hint = "Give a model's name, a dict, a model, or a list of these."
        raise SettingsError(f"A model cannot be made of {type(given).__name__}.", hint=hint)
    settings: dict[str, Any] = {"model": given} if isinstance(given, str) else dict(cast("Mapping[str, Any]", given))
    model_type = str(settings.get("model_type") or "").strip()
    if not model_type:
        check_model_names(settings, _DECIDE)
        model_type = deduced_type(settings)
    return LLM_REGISTRY[model_type]({**settings, "model_type": model_type})


def deduced_type(settings: Mapping[str, Any]) -> str:
    """The model type that the rest of the settings imply.

    An Azure endpoint decides first, then the address of a server (`dashscope` is no address but the service itself),
    then what the model is: a GGUF file, a folder of weights, a model type, or a model that DashScope serves. A name
    that matches nothing is a model of OpenAI's, or of the server in its environment variables.

    Raises:
        SettingsError: They imply none.
        UnknownNameError: The name is almost that of a model type.
    """
    name = str(settings.get("model") or "").strip()
    server = next((str(settings[key]).strip() for key in SERVER_KEYS if settings.get(key)), "")
    if settings.get("azure_endpoint"):
        return "azure"
    if server and server.lower() != _DASHSCOPE:
        return "openai"
    if name.lower().endswith(".gguf") or settings.get("weights"):
        return BUILT_IN
    if name in LLM_REGISTRY:
        return name
    if _is_folder_of_weights(name):
        return "transformers"
    if server or name:
        return _by_name(name, at_dashscope=bool(server))
    raise SettingsError(
        "The settings name no model.", hint="Give model, or model_type, or model_server.", key="model_not_named"
    )


def _by_name(name: str, *, at_dashscope: bool) -> str:
    if not at_dashscope and get_close_matches(name.lower(), LLM_REGISTRY, n=1, cutoff=0.85):
        raise UnknownNameError("model type", name, LLM_REGISTRY)
    family = next((kind for part, kind in _FAMILIES.items() if part in name.lower()), "")
    return family or ("qwen_dashscope" if at_dashscope else "openai")


def _is_folder_of_weights(name: str) -> bool:
    return bool(name) and (user_path(name) / "config.json").is_file()
