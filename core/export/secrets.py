"""Every key that is known of an owner, so that none leaves with a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from pydantic import SecretStr

from core.export.redaction import is_called_secret
from core.storage.sealing import in_address

if TYPE_CHECKING:
    from core.settings import Settings


class Keeper(Protocol):
    """Who keeps keys of owners."""

    async def secrets(self, owner: str) -> list[str]:
        """All that there are."""
        ...


class KnownSecrets:
    """What the installation was started with, where it keeps things, and what an owner typed on the page.

    Args:
        settings: Of the installation.
        keepers: Those who keep what owners typed: keys of model services; of tools, services and MCP servers. A program
            that brought agents of its own brought keys with them.
    """

    def __init__(self, settings: Settings, *keepers: Keeper) -> None:
        self._settings = settings
        self._keepers = keepers

    async def __call__(self, owner: str) -> list[str]:
        """All of them. Raises StorageError."""
        given = [getattr(self._settings, name) for name in type(self._settings).model_fields]
        own = [value.get_secret_value() for value in given if isinstance(value, SecretStr)]
        own += in_address(self._settings.base_url or "") + in_address(self._settings.openai_base_url or "")
        own += keys_inside(self._settings.model_options) + keys_inside(self._settings.generate_cfg)
        own.append(self._settings.signing_secret())
        own += [str(self._settings.home.absolute()), str(self._settings.weights_dir)]  # which failures may name
        return [*own, *[secret for keeper in self._keepers for secret in await keeper.secrets(owner)]]


def keys_inside(value: Any, *, secret: bool = False) -> list[str]:
    """What is called a key in a value, however deep; a `SecretStr` is one too."""
    if isinstance(value, SecretStr):
        return [value.get_secret_value()]
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return [
            one for name, inner in items for one in keys_inside(inner, secret=secret or is_called_secret(str(name)))
        ]
    if isinstance(value, list | tuple):
        return [one for inner in cast("list[Any]", value) for one in keys_inside(inner, secret=secret)]
    return [value] if secret and isinstance(value, str) else []
