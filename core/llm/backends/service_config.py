"""The settings that every back end of a service has: address, key, headers, and what the model takes."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator

from core.errors import SettingsError


class ServiceConfig(BaseModel):
    """The settings of a back end; unknown ones are ignored."""

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


def whole_address(given: str, example: str) -> str:
    """The service's address, completed with a scheme, without a slash at its end.

    Args:
        given: As it was typed.
        example: What to write instead where it is none.

    Raises:
        SettingsError: It is not an HTTP address.
    """
    address = given.strip()
    address = (address if "://" in address else f"http://{address}").rstrip("/")
    try:
        parts = urlsplit(address)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or re.search(r"[\s\x00-\x20]", address):
        shown = address.rpartition("@")[2][:80]
        raise SettingsError(f"The model's address {shown!r} is none that can be asked.", hint=example)
    return address
