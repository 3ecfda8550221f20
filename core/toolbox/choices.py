"""What an owner chose about tools: which are on, when to be asked, and which engine searches the web."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from core.errors import SettingsError, StorageError
from core.storage.sealing import end_of
from core.toolbox.approving import policy_of
from core.tools.approval import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.storage.owner_settings import OwnerSettings
    from core.storage.sealing import Sealer
    from core.tools.web.base import SearchService

SEARCH = "web_search"
_PATTERNS = 200
_LONGEST_PATTERN = 200
_LISTS = ("allow", "ask", "deny")


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """Which engine searches the web for an owner.

    Args:
        provider: Its name in the table of search services.
        address: Where it is, where it has no usual address.
        key: For it; `end` is what may be shown of it.
    """

    provider: str
    address: str = ""
    key: str = field(default="", repr=False)
    end: str = ""


class ToolChoices:
    """Choices by owner.

    Args:
        choices: Where they are kept.
        sealer: Seals the keys of search services.
    """

    def __init__(self, choices: OwnerSettings, sealer: Sealer) -> None:
        self._choices = choices
        self._sealer = sealer

    # ---- which are on

    async def switched(self, owner: str) -> tuple[set[str], set[str]]:
        """What the owner switched off, and what on. Raises StorageError."""
        kept = await self._kept(owner, "tools")
        return set(kept.get("off") or ()), set(kept.get("on") or ())

    async def switch(self, owner: str, name: str, *, on: bool) -> None:
        """Offer a tool from the next question on, or no more. Raises StorageError."""
        was_off, was_on = await self.switched(owner)
        value = {
            "off": sorted(was_off - {name} if on else was_off | {name}),
            "on": sorted(was_on | {name} if on else was_on - {name}),
        }
        await self._choices.set(owner, "tools", value)

    # ---- who is asked

    async def approval(self, owner: str) -> Policy:
        """When the owner wants to be asked. Raises StorageError."""
        return policy_of(await self._choices.get(owner, "approval"))

    async def set_approval(
        self, owner: str, *, mode: str = "", lists: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Change when the owner is asked; what is not given stays.

        Raises:
            SettingsError: There is no such mode.
            StorageError: The database failed.
        """
        before = await self.approval(owner)
        after = Policy(cast("Any", mode or before.mode), before.allow, before.ask, before.deny)
        given = {name: _patterns(values) for name, values in (lists or {}).items() if name in _LISTS}
        so_far: dict[str, tuple[str, ...]] = {"allow": after.allow, "ask": after.ask, "deny": after.deny}
        value = {"mode": after.mode, **{name: list(given.get(name, kept)) for name, kept in so_far.items()}}
        await self._choices.set(owner, "approval", value)

    # ---- searching the web

    async def engine(self, owner: str) -> SearchEngine:
        """Which engine searches for the owner. Raises StorageError, key `key_unreadable`."""
        from core.tools.web.catalog import DEFAULT

        kept = await self._kept(owner, SEARCH)
        provider = str(kept.get("provider") or DEFAULT)
        sealed = str(kept.get("key") or "")
        key = self._sealer.open(sealed, owner, SEARCH, provider) if sealed else ""
        return SearchEngine(provider, str(kept.get("address") or ""), key, str(kept.get("end") or ""))

    async def shown_engine(self, owner: str) -> SearchEngine:
        """The same, to be shown: a key that cannot be read any more is none. Raises StorageError."""
        try:
            return await self.engine(owner)
        except StorageError as error:
            if error.words_key != "key_unreadable":
                raise
            kept = await self._kept(owner, SEARCH)
            return SearchEngine(str(kept.get("provider") or ""), str(kept.get("address") or ""))

    async def choose_engine(self, owner: str, provider: str, address: str, key: str | None) -> None:
        """Search with another engine, or with another key.

        Args:
            owner: Whose choice it is.
            provider: Its name in the table of search services.
            address: Where it is; empty for its usual address.
            key: For it; `None` keeps the one that there is for this engine at this address.

        Raises:
            SettingsError: There is no such service, or its key (`search_key_missing`) or address
                (`search_address_missing`) is missing.
            StorageError: The database failed.
        """
        service = _service(provider)
        before = await self.shown_engine(owner)
        place = "" if service.home else address.strip()
        keeps = key is None and before.provider == provider and before.address == place
        whole = before.key if keeps else (key or "").strip()
        if service.needs_key and not whole:
            raise SettingsError("This search service wants a key.", hint="Type it.", key="search_key_missing")
        if not service.home and not place:
            raise SettingsError("It has no address.", hint="Type one.", key="search_address_missing")
        value = {
            "provider": provider,
            "address": place,
            "key": self._sealer.seal(whole, owner, SEARCH, provider) if whole else "",
            "end": end_of(whole),
        }
        await self._choices.set(owner, SEARCH, value)

    async def forget_engine(self, owner: str) -> None:
        """Search with the usual engine, and forget the key. Raises StorageError."""
        await self._choices.set(owner, SEARCH, None)

    async def _kept(self, owner: str, name: str) -> dict[str, Any]:
        kept: object = await self._choices.get(owner, name)
        return cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}


def search_services() -> dict[str, type[SearchService]]:
    """The services that can search the web, by name."""
    from core.tools.web.catalog import SEARCH_SERVICES

    return {name: SEARCH_SERVICES[name] for name in SEARCH_SERVICES}


def _service(provider: str) -> type[SearchService]:
    from core.tools.web.catalog import SEARCH_SERVICES

    return SEARCH_SERVICES[provider]


def _patterns(given: Sequence[str]) -> list[str]:
    """Patterns, each once and in one line."""
    lines = dict.fromkeys(one.strip() for one in given)
    return [one for one in lines if one and len(one) <= _LONGEST_PATTERN and one.isprintable()][:_PATTERNS]
