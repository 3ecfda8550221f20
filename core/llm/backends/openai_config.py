"""What the dict of a model may hold for services of the OpenAI protocol, checked before anything is sent."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator

from core.errors import SettingsError
from core.llm.backends.dashscope_place import placed
from core.vendor_hosts import is_dashscope

_NAMED: Final = {"dashscope": "https://dashscope.aliyuncs.com/compatible-mode/v1"}
_EXAMPLE: Final = "Give an address such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1."


class OpenAIConfig(BaseModel):
    """The keys of this back end; what it does not know is left alone."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    base_url: str | None = Field(default=None, validation_alias=AliasChoices("base_url", "model_server", "api_base"))
    api_key: SecretStr | None = None
    vision: bool | None = None
    audio: bool | None = None
    video: bool | None = None
    default_headers: dict[str, str] = Field(default_factory=dict)

    @field_validator("api_key")
    @classmethod
    def _writable(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value().strip() if key else ""
        if not text:
            return None
        if not text.isascii() or re.search(r"\s", text) or not text.isprintable():
            raise ValueError("it holds characters that no key has; copy it again")
        return SecretStr(text)

    @field_validator("default_headers")
    @classmethod
    def _sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not (value.isascii() and value.isprintable()):
                raise ValueError(f"the header {name!r} cannot be sent")
        return headers


def address_of(given: str | None) -> str | None:
    """The service's address with its scheme; the name of a known service is understood.

    Raises:
        SettingsError: It is no address that can be asked over HTTP.
    """
    if not given or not given.strip():
        return None
    address = _NAMED.get(given.strip(), given.strip())
    address = (address if "://" in address else f"http://{address}").rstrip("/")
    try:
        parts = urlsplit(address)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or re.search(r"[\s\x00-\x20]", address):
        shown = address.rpartition("@")[2][:80]
        raise SettingsError(f"The model's address {shown!r} is none that can be asked.", hint=_EXAMPLE)
    return address


def usual_key(address: str | None) -> str | None:
    """The key for an address where none is given; `None` leaves it to the SDK's variable.

    DashScope's own addresses get DashScope's, and an empty one where there is none: never another vendor's.
    """
    return placed(address, "", None).api_key if address and is_dashscope(address) else None
