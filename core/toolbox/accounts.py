"""With whose key a tool asks a service: an owner's account for a tool, the key sealed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import NotFoundError, SettingsError, StorageError
from core.storage.sealing import end_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.storage.owner_settings import OwnerSettings
    from core.storage.sealing import Sealer


@dataclass(frozen=True, slots=True)
class ToolService:
    """A service that a tool can ask.

    Args:
        label: What it is called; empty where the page has words for it.
        usual: Where it is, if it may be elsewhere as well, and then without a key; else empty.
        model: The model that is asked unless another is named; empty where there is no choice.
    """

    label: str
    usual: str = ""
    model: str = ""


TOOL_SERVICES: Final[Mapping[str, Mapping[str, ToolService]]] = {
    "image_gen": {
        "openai": ToolService("OpenAI", usual="https://api.openai.com/v1", model="gpt-image-1"),
        "dashscope": ToolService("DashScope", model="wan2.6-t2i"),
    },
    "amap_weather": {"amap": ToolService("AMap")},
}
"""Tools that work for whoever has an account, with the services that each can ask; the first is the usual one."""


@dataclass(frozen=True, slots=True)
class ToolAccount:
    """An owner's account.

    Args:
        service: Its name in the table.
        address: Where it is, if not at its usual address.
        model: Which model is asked; empty for the usual one.
        key: For it; `end` is what may be shown of it.
    """

    service: str
    address: str = ""
    model: str = ""
    key: str = field(default="", repr=False)
    end: str = ""

    @property
    def usable(self) -> bool:
        """Whether the service would answer at all."""
        return bool(self.key or self.address)


class ToolAccounts:
    """The accounts of one owner, by tool.

    Args:
        owner: Whose they are; their keys are sealed for this owner alone.
        choices: Where they are kept.
        sealer: Seals their keys.
    """

    def __init__(self, owner: str, choices: OwnerSettings, sealer: Sealer) -> None:
        self._owner = owner
        self._choices = choices
        self._sealer = sealer

    async def of(self, tool: str) -> ToolAccount:
        """The account for a tool. One whose key cannot be read any more has none. Raises StorageError."""
        return self._of(tool, await self._choices.get(_place(tool)))

    def _of(self, tool: str, chosen: object) -> ToolAccount:
        kept = cast("dict[str, Any]", chosen) if isinstance(chosen, dict) else {}
        known = TOOL_SERVICES[tool]
        service = str(kept.get("service") or "")
        if service not in known:
            return ToolAccount(next(iter(known)))
        key, end = self._opened(tool, kept), str(kept.get("end") or "")
        return ToolAccount(
            service, str(kept.get("address") or ""), str(kept.get("model") or ""), key, end if key else ""
        )

    async def choose(self, tool: str, service: str, *, address: str, model: str, key: str | None) -> None:
        """Keep an account, in place of the one before.

        Args:
            tool: For which tool.
            service: Its name in the table.
            address: Where it is, if not at its usual address.
            model: Which model is asked; empty for the usual one.
            key: For it; `None` keeps the one that there is for this service at this address.

        Raises:
            NotFoundError: key `tool_unknown`: the tool has no such service.
            SettingsError: key `tool_key_missing`.
            StorageError: The database failed.
        """
        known = TOOL_SERVICES.get(tool, {}).get(service)
        if known is None:
            raise NotFoundError("There is no such service.", key="tool_unknown")
        place = address.strip() if known.usual else ""

        def changed(kept: object) -> dict[str, str]:
            before = self._of(tool, kept)
            keeps = key is None and (before.service, before.address) == (service, place)
            whole = before.key if keeps else (key or "").strip()
            if not whole and not place:
                raise SettingsError("This service wants a key.", hint="Type its key.", key="tool_key_missing")
            return {
                "service": service,
                "address": place,
                "model": model.strip() if known.model else "",
                "key": self._sealer.seal(whole, self._owner, tool, service) if whole else "",
                "end": end_of(whole),
            }

        await self._choices.change(_place(tool), changed)

    async def forget(self, tool: str) -> None:
        """Forget an account with its key. Raises StorageError."""
        await self._choices.change(_place(tool), lambda _: None)

    def _opened(self, tool: str, kept: Mapping[str, Any]) -> str:
        sealed = str(kept.get("key") or "")
        try:
            return self._sealer.open(sealed, self._owner, tool, str(kept.get("service"))) if sealed else ""
        except StorageError:
            return ""


def _place(tool: str) -> str:
    return f"account:{tool}"
