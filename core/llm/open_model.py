"""`get_chat_model`: a model from its name or settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.errors import SettingsError, UnknownNameError
from core.llm.base import BaseChatModel
from core.llm.catalog import LLM_REGISTRY
from core.llm.local_files import BUILT_IN, user_path
from core.llm.validation import check_model_names
from core.settings import named_key

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
_VENDORS: Final = {
    "anthropic": re.compile(r"claude-", re.IGNORECASE),
    "gemini": re.compile(r"gemini-", re.IGNORECASE),
    "mistral": re.compile(r"(?:mistral|ministral|magistral|codestral|devstral|pixtral|voxtral)-", re.IGNORECASE),
}
"""The model type by the beginning of a name that a vendor alone has."""
_COMPATIBLE: Final = {
    "deepseek-": ("DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "kimi-": ("Moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "grok-": ("xAI", "https://api.x.ai/v1", "XAI_API_KEY"),
}
"""Vendors that speak OpenAI's protocol: by the beginning of the name, their address and the variable of their key."""
_ANY_SERVER: Final = "OPENAI_BASE_URL"


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
        SettingsError: Nothing in `cfg` says which model is meant, one of its names is misspelt, or the key of the
            vendor that its name belongs to is missing; the message has the variable.
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
        if model_type == "openai":
            settings = {**settings, **_at_its_vendor(settings)}
    return LLM_REGISTRY[model_type]({**settings, "model_type": model_type})


def deduced_type(settings: Mapping[str, Any]) -> str:
    """The model type that the rest of the settings imply.

    An Azure endpoint decides first, then the address of a server (`dashscope` is no address but the service itself),
    then what the model is: a GGUF file, a folder of weights, a model type, a model that DashScope serves, or one of
    a vendor whose name it begins with, unless `OPENAI_BASE_URL` names a server. A name that matches nothing is a model
    of OpenAI's, or of that server.

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
    if not family and not at_dashscope and not named_key(_ANY_SERVER):
        family = next((kind for kind, names in _VENDORS.items() if names.match(name)), "")
    return family or ("qwen_dashscope" if at_dashscope else "openai")


def _at_its_vendor(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Address and key of the vendor that a bare name belongs to, if it speaks OpenAI's protocol."""
    name = str(settings.get("model") or "").strip()
    elsewhere = any(settings.get(key) for key in SERVER_KEYS) or named_key(_ANY_SERVER)
    vendor = None if elsewhere else next((one for start, one in _COMPATIBLE.items() if name.startswith(start)), None)
    if vendor is None:
        return {}
    owner, address, variable = vendor
    key = settings.get("api_key") or named_key(variable)
    if not key:
        hint = f'Set {variable}, or write {{"model": "{name}", "base_url": "{address}", "api_key": "…"}}.'
        raise SettingsError(f"{name} is a model of {owner}, and there is no key for it.", hint=hint, name="llm")
    return {"base_url": address, "api_key": key}


def _is_folder_of_weights(name: str) -> bool:
    return bool(name) and (user_path(name) / "config.json").is_file()
