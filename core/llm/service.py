"""Where a model is, as logs, traces, prices and the circuit breaker name its service; never with a key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from pydantic import SecretStr

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS_KEYS: Final = ("base_url", "model_server", "api_base", "azure_endpoint", "base_http_api_url")
_COMPATIBLE: Final = "https://dashscope.aliyuncs.com/compatible-mode/v1"
_PROVIDERS: Final = {  # OpenTelemetry's names, by the end of the host
    "api.openai.com": "openai",
    "openai.azure.com": "azure.ai.openai",
    "api.deepseek.com": "deepseek",
    "api.mistral.ai": "mistral_ai",
    "api.groq.com": "groq",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aliyuncs.com": "dashscope",
    "amazonaws.com": "aws.bedrock",
    "api.aws": "aws.bedrock",
}


@dataclass(frozen=True, slots=True)
class Service:
    """A service by its address.

    Args:
        name: The host, or the model's type where there is none.
        provider: What OpenTelemetry calls it, else the model's type.
        address: Without user, password and query; empty for a model in this process.
        here: Whether it runs on this machine.
    """

    name: str
    provider: str
    address: str = ""
    host: str = ""
    port: int | None = None
    here: bool = False


class Served(Protocol):
    """A model as the layers that deal with its service see it."""

    cfg: dict[str, Any]
    model: str
    model_type: str

    @property
    def service(self) -> Service:
        """Where it is."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens the text takes, at least roughly."""
        ...

    async def account(self) -> str:
        """A digest of the service and key that a call will use."""
        ...


def service_of(cfg: Mapping[str, Any], model_type: str, default: str = "") -> Service:
    """The service that a model's settings point to; `default` is its address where they have none."""
    given = next((str(cfg[key]) for key in _ADDRESS_KEYS if cfg.get(key)), "").strip()
    if given == "dashscope":
        given = _COMPATIBLE
    return _service(given or default, model_type)


def key_of(cfg: Mapping[str, Any]) -> str:
    """The API key in a model's settings; empty where there is none."""
    key = cfg.get("api_key")
    return key.get_secret_value() if isinstance(key, SecretStr) else str(key or "")


def account_mark(address: str, key: str) -> str:
    """A digest that distinguishes services and keys without revealing them."""
    return sha256(f"{address}\n{key}".encode()).hexdigest()


@lru_cache(maxsize=64)
def _service(address: str, model_type: str) -> Service:
    if not address:
        return Service(model_type, model_type)
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # not an address; the back end reports it
        return Service(model_type, model_type)
    at = f"[{host}]" if ":" in host else host
    shown = f"{parts.scheme}://{at}{f':{port}' if port else ''}{parts.path}".rstrip("/")
    provider = next((name for end, name in _PROVIDERS.items() if f".{host}".endswith(f".{end}")), model_type)
    return Service(host, provider, shown, host, port, _is_here(host))


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
