"""The menu of model services: what a reader can choose, and what must be known of each. One entry is one line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit, urlunsplit

from core.errors import SettingsError
from core.llm.local_files import BUILT_IN
from core.models.model_name import UNSAID, Abilities
from core.settings import DASHSCOPE_ADDRESS, DASHSCOPE_DEFAULT_MODEL, NO_KEY, OPENAI_DEFAULT_MODEL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Key: TypeAlias = Literal["needed", "optional", "none"]

OWN_SERVER = "compatible"
_LONGEST_NAME = 200
_LONGEST_PATH = 1000
_LONGEST_ADDRESS = 500
_LONGEST_KEY = 4096
_ENDING = re.compile(r"(?<![/:])(?:/chat/completions|/models)?/*\Z")  # of what is copied from a manual
_FURTHER = re.compile(r"([a-z_]+)~(?:[2-9]|[1-9][0-9])\Z")  # the second server of a kind, and so on
_MOST = 99
_NAMES_HERE = (".local", ".localhost", ".lan", ".internal", ".home.arpa")
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


@dataclass(frozen=True, slots=True)
class MenuService:
    """A service that can be chosen.

    Args:
        label: What the page calls it; empty where the page has words of its own.
        address: Where it is, or usually is.
        typed: Whether the reader may give another address.
        wants_key: Whether it wants one.
        models: Names to begin with; the first is the usual one.
        model_type: The back end that speaks to it, and by whose protocol it lists its models.
        speaks: The back end for its own protocol, where that gives more; the address is the same.
        here: It runs on the machine that runs Parlour: only for whom that machine belongs to.
        inside: It runs in Parlour's own process: it has no address and no key, but takes memory.
        keys_at: Where its makers hand out keys.
        transcribes: Its usual model for speech as text; empty where it has none that is known.
    """

    label: str
    address: str = ""
    typed: bool = False
    wants_key: Key = "needed"
    models: tuple[str, ...] = ()
    model_type: str = "openai"
    speaks: str = ""
    here: bool = False
    inside: bool = False
    keys_at: str = ""
    transcribes: str = ""


_QWEN = (DASHSCOPE_DEFAULT_MODEL, "qwen-max", "qwen-turbo", "qwen-vl-plus")
_CLAUDE = ("claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5")
_GEMINI = ("gemini-2.5-flash", "gemini-2.5-pro", "gemini-2.5-flash-lite")
_MISTRAL = ("mistral-medium-latest", "mistral-small-latest", "mistral-large-latest", "pixtral-large-latest")
_GROQ = ("llama-3.3-70b-versatile", "openai/gpt-oss-120b", "openai/gpt-oss-20b", "llama-3.1-8b-instant")
_DEEPSEEK = ("deepseek-chat", "deepseek-reasoner")
_KIMI = ("kimi-k2.6", "kimi-k3")
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
_ABROAD = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
_FREE: dict[str, Any] = {"typed": True, "wants_key": "optional", "here": True}
_INSIDE: dict[str, Any] = {"wants_key": "none", "here": True, "inside": True}

MENU: Mapping[str, MenuService] = {
    BUILT_IN: MenuService("", model_type=BUILT_IN, **_INSIDE),
    "transformers": MenuService("Transformers", model_type="transformers", **_INSIDE),
    "openai": MenuService(
        "OpenAI",
        "https://api.openai.com/v1",
        models=(OPENAI_DEFAULT_MODEL,),
        keys_at="platform.openai.com",
        transcribes="gpt-4o-mini-transcribe",
    ),
    "responses": MenuService(
        "OpenAI Responses",
        "https://api.openai.com/v1",
        models=(OPENAI_DEFAULT_MODEL,),
        speaks="openai_responses",
        keys_at="platform.openai.com",
    ),
    "dashscope": MenuService("DashScope", DASHSCOPE_ADDRESS, models=_QWEN),
    "dashscope_intl": MenuService("", _ABROAD, models=_QWEN),
    "azure": MenuService("Azure OpenAI", typed=True, model_type="azure"),
    "bedrock": MenuService("Amazon Bedrock", typed=True, speaks="bedrock"),
    "anthropic": MenuService(
        "Anthropic",
        "https://api.anthropic.com/v1",
        models=_CLAUDE,
        speaks="anthropic",
        keys_at="platform.claude.com",
    ),
    "gemini": MenuService("Google Gemini", _GOOGLE, models=_GEMINI, speaks="gemini", keys_at="aistudio.google.com"),
    "mistral": MenuService(
        "Mistral",
        "https://api.mistral.ai/v1",
        models=_MISTRAL,
        speaks="mistral",
        keys_at="console.mistral.ai",
        transcribes="voxtral-mini-latest",
    ),
    "groq": MenuService(
        "Groq",
        "https://api.groq.com/openai/v1",
        models=_GROQ,
        keys_at="console.groq.com",
        transcribes="whisper-large-v3-turbo",
    ),
    "deepseek": MenuService(
        "DeepSeek", "https://api.deepseek.com/v1", models=_DEEPSEEK, keys_at="platform.deepseek.com"
    ),
    "moonshot": MenuService("Moonshot", "https://api.moonshot.ai/v1", models=_KIMI, keys_at="platform.moonshot.ai"),
    "openrouter": MenuService("OpenRouter", "https://openrouter.ai/api/v1", keys_at="openrouter.ai"),
    "ollama": MenuService("Ollama", "http://127.0.0.1:11434/v1", **_FREE),
    "lm_studio": MenuService("LM Studio", "http://127.0.0.1:1234/v1", **_FREE),
    "vllm": MenuService("vLLM", "http://127.0.0.1:8000/v1", **_FREE),
    "llama_server": MenuService("llama.cpp", "http://127.0.0.1:8080/v1", **_FREE),
    OWN_SERVER: MenuService("", typed=True, wants_key="optional"),
}


def menu(*, local: bool) -> dict[str, MenuService]:
    """What can be chosen by whoever runs Parlour (`local`), or by a reader of a shared page."""
    return {name: service for name, service in MENU.items() if local or not service.here}


def kind_of(name: str) -> str:
    """The menu's name of a service, of which `name` may be a further server."""
    found = _FURTHER.match(name)
    return found[1] if found else name


def next_of(kind: str, known: Collection[str]) -> str:
    """The name of one more server of a kind; empty where there are enough."""
    names = (kind, *(f"{kind}~{number}" for number in range(2, _MOST + 1)))
    return next((name for name in names if name not in known), "")


def service_named(name: str, *, local: bool) -> MenuService:
    """One of the menu, or a further server of one whose address is typed: `compatible~2`.

    Raises:
        SettingsError: key `service_not_offered`.
    """
    service = menu(local=local).get(kind_of(name))
    if service is None or (name not in MENU and not service.typed):
        raise SettingsError("This service cannot be chosen here.", hint="Choose another.", key="service_not_offered")
    return service


def checked_address(text: str, service: MenuService, *, local: bool) -> str:
    """The address as it is kept: whole, without user, password or query, and ending in `/v1` where it names no place.

    Raises:
        SettingsError: key `address_missing` or `address_wrong`; `address_private` where it is not one that a stranger
            may use.
    """
    given = (text.strip() if service.typed else "") or service.address
    if not given:
        raise SettingsError("The service has no address.", hint="Give the server's address.", key="address_missing")
    whole = given if "://" in given else f"{_usual_scheme(given, local=local)}://{given}"
    parts = _parts(_ENDING.sub("", whole))
    if parts is None:
        hint = "Write it like http://127.0.0.1:11434/v1."
        raise SettingsError("This is not the address of a service.", hint=hint, key="address_wrong")
    if not local:
        _refuse_what_is_here(parts, service)
    path = parts.path or ("/v1" if service.model_type == "openai" else "")
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))


def checked_model(text: str, service: MenuService) -> str:
    """The model's name.

    Raises:
        SettingsError: key `model_not_typed`.
        UnknownNameError: There are no built-in weights of that name.
    """
    name = text.strip() or (service.models[0] if service.models else "")
    if not name and service.model_type == BUILT_IN:
        return ""  # the machine decides
    fine = _one_line(name, _LONGEST_PATH) if service.inside else _plain(name, _LONGEST_NAME)
    if not name or not fine:
        raise SettingsError("The model has no name.", hint="Choose or type one.", key="model_not_typed")
    if service.model_type == BUILT_IN and not name.lower().endswith(".gguf"):
        from core.llm.weights_catalog import named

        named(name)
    return name


def checked_key(text: str) -> str:
    """The key; it is never part of an error.

    Raises:
        SettingsError: key `key_wrong_form`: it could not be sent.
    """
    key = text.strip()
    if key and not (_plain(key, _LONGEST_KEY) and key.isascii()):
        hint = "Copy the key again, without anything around it."
        raise SettingsError("An API key is one line of letters and figures.", hint=hint, key="key_wrong_form")
    return key


def same_place(one: str, other: str) -> bool:
    """Whether two addresses are the same server: a key that was meant for one may go to the other."""
    return _server(urlsplit(one)) == _server(urlsplit(other))


def model_cfg(
    service: MenuService, address: str, model: str, key: str, *, local: bool, abilities: Abilities = UNSAID
) -> dict[str, Any]:
    """What `get_chat_model` is given. Address and key are always said: a vendor's package would look for its own.

    Args:
        abilities: What the owner said that the model can do.
    """
    if service.inside:
        return {"model_type": service.model_type, **({"model": model} if model else {})}
    where = "azure_endpoint" if service.model_type == "azure" else "base_url"
    stranger = service.typed and service.model_type == "openai" and not local
    kind = "openai_public" if stranger else service.speaks or service.model_type
    cfg: dict[str, Any] = {"model_type": kind, "model": model, where: address, "api_key": key or NO_KEY}
    senses = {"vision": abilities.sees, "audio": abilities.hears}
    return cfg | {name: value for name, value in senses.items() if value is not None}


def _server(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _usual_scheme(given: str, *, local: bool) -> str:
    """What is meant where none was typed: what is not of the owner's own network gets no key in the open."""
    from core.llm.backends.http_clients import is_public

    try:
        host = urlsplit(f"//{given}").hostname or ""
    except ValueError:
        return "https"
    try:
        here = not is_public(str(ip_address(host)))
    except ValueError:
        here = "." not in host or host.endswith(_NAMES_HERE)
    return "http" if local and here else "https"


def _parts(address: str) -> SplitResult | None:
    """The parts of an address that could be a service's, and holds no secret."""
    try:
        parts = urlsplit(address)
        fine = (
            bool(parts.hostname)
            and not parts.netloc.endswith(":")
            and parts.port != 0
            and parts.scheme in {"http", "https"}
        )
    except ValueError:
        return None
    more = parts.username or parts.password or parts.query or parts.fragment
    return parts if fine and not more and _plain(address, _LONGEST_ADDRESS) else None


def _refuse_what_is_here(parts: SplitResult, service: MenuService) -> None:
    """What can be seen without looking a name up; the rest is seen when it is called."""
    from core.llm.backends.http_clients import is_public, not_public

    host = parts.hostname or ""
    if service.model_type == "azure" and not host.endswith(_AZURE):
        raise not_public(host)
    try:
        literal = str(ip_address(host))
    except ValueError:
        literal = ""
    is_here = host.rstrip(".") == "localhost" or (literal and not is_public(literal))
    if is_here or parts.scheme != "https":  # a key must not travel in the open
        raise not_public(host)


def _one_line(text: str, longest: int) -> bool:
    return len(text) <= longest and text.isprintable()


def _plain(text: str, longest: int) -> bool:
    return _one_line(text, longest) and not re.search(r"\s", text)
