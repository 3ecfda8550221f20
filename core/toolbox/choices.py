"""What an owner chose about tools: which are on, when to be asked, what searches the web, and with whose key."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from core.errors import NotFoundError, SettingsError, StorageError
from core.storage.sealing import end_of
from core.tools.approval import Mode, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.storage.owner_settings import OwnerSettings
    from core.storage.sealing import Sealer
    from core.tools.web.base import SearchService

_LOG = logging.getLogger(__name__)


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


class Rules:
    """When one owner is asked before a tool runs."""

    def __init__(self, choices: OwnerSettings) -> None:
        self._choices = choices

    async def policy(self) -> Policy:
        """When the owner wants to be asked. Raises StorageError."""
        return policy_of(await self._choices.get("approval"))

    async def change(self, *, mode: str = "", lists: Mapping[str, Sequence[str]] | None = None) -> None:
        """Change when the owner is asked; what is not given stays.

        Raises:
            SettingsError: There is no such mode.
            StorageError: The database failed.
        """
        given = {name: _patterns(values) for name, values in (lists or {}).items() if name in _LISTS}

        def changed(kept: object) -> dict[str, Any]:
            before = policy_of(kept)
            after = Policy(cast("Any", mode or before.mode), before.allow, before.ask, before.deny)
            so_far: dict[str, tuple[str, ...]] = {"allow": after.allow, "ask": after.ask, "deny": after.deny}
            return {"mode": after.mode, **{name: list(given.get(name, rules)) for name, rules in so_far.items()}}

        await self._choices.change("approval", changed)


class ToolChoices:
    """Which tools one owner switched, and which engine searches the web.

    Args:
        owner: Whose choices they are; keys are sealed for this owner alone.
        sealer: Seals the keys of search services.
    """

    def __init__(self, owner: str, choices: OwnerSettings, sealer: Sealer) -> None:
        self._owner = owner
        self._choices = choices
        self._sealer = sealer

    async def switched(self) -> tuple[set[str], set[str]]:
        """What the owner switched off, and what on. Raises StorageError."""
        return _switched(await self._choices.get("tools"))

    async def switch(self, name: str, *, on: bool) -> None:
        """Offer a tool from the next question on, or no more. Raises StorageError."""

        def switched(kept: object) -> dict[str, list[str]]:
            was_off, was_on = _switched(kept)
            return {
                "off": sorted(was_off - {name} if on else was_off | {name}),
                "on": sorted(was_on | {name} if on else was_on - {name}),
            }

        await self._choices.change("tools", switched)

    # ---- searching the web

    async def engine(self) -> SearchEngine:
        """Which engine searches for the owner. Raises StorageError, key `key_unreadable`."""
        return self._engine(await self._choices.get(SEARCH))

    def _engine(self, chosen: object) -> SearchEngine:
        from core.tools.web.catalog import DEFAULT

        kept = _as_dict(chosen)
        provider = str(kept.get("provider") or DEFAULT)
        sealed = str(kept.get("key") or "")
        key = self._sealer.open(sealed, self._owner, SEARCH, provider) if sealed else ""
        return SearchEngine(provider, str(kept.get("address") or ""), key, str(kept.get("end") or ""))

    async def shown_engine(self) -> SearchEngine:
        """The same, to be shown: a key that cannot be read any more is none. Raises StorageError."""
        return self._shown_engine(await self._choices.get(SEARCH))

    def _shown_engine(self, chosen: object) -> SearchEngine:
        try:
            return self._engine(chosen)
        except StorageError as error:
            if error.words_key != "key_unreadable":
                raise
            kept = _as_dict(chosen)
            return SearchEngine(str(kept.get("provider") or ""), str(kept.get("address") or ""))

    async def choose_engine(self, provider: str, address: str, key: str | None) -> None:
        """Search with another engine, or with another key.

        Args:
            provider: Its name in the table of search services.
            address: Where it is; empty for its usual address.
            key: For it; `None` keeps the one that there is for this engine at this address.

        Raises:
            SettingsError: There is no such service, or its key (`search_key_missing`) or address
                (`search_address_missing`) is missing.
            StorageError: The database failed.
        """
        service = _service(provider)
        place = "" if service.home else address.strip()

        def changed(kept: object) -> dict[str, str]:
            before = self._shown_engine(kept)
            keeps = key is None and before.provider == provider and before.address == place
            whole = before.key if keeps else (key or "").strip()
            if service.needs_key and not whole:
                raise SettingsError("This search service wants a key.", hint="Type it.", key="search_key_missing")
            if not service.home and not place:
                raise SettingsError("It has no address.", hint="Type one.", key="search_address_missing")
            return {
                "provider": provider,
                "address": place,
                "key": self._sealer.seal(whole, self._owner, SEARCH, provider) if whole else "",
                "end": end_of(whole),
            }

        await self._choices.change(SEARCH, changed)

    async def forget_engine(self) -> None:
        """Search with the usual engine, and forget the key. Raises StorageError."""
        await self._choices.change(SEARCH, lambda _: None)


def policy_of(chosen: object) -> Policy:
    """The rules that an owner chose. What makes no sense there is left out, and never makes them laxer."""
    if chosen is None:
        return Policy()
    if not isinstance(chosen, dict):
        _LOG.warning("The rules of an owner cannot be read; everything is asked.")
        return Policy("always")
    rules = cast("dict[str, Any]", chosen)
    mode = rules.get("mode", "writes")
    if mode not in get_args(Mode):
        _LOG.warning("There is no mode %r of asking; everything is asked.", mode)
        mode = "always"
    allow = rules.get("allow")
    allowed = () if isinstance(allow, str) else _patterns_in(allow)
    return Policy(mode, allowed, _patterns_in(rules.get("ask")), _patterns_in(rules.get("deny")))


def _patterns_in(value: object) -> tuple[str, ...]:
    """Those that are some; one text is one of them."""
    if isinstance(value, str):
        value = [value]
    given = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return tuple(pattern for pattern in given if isinstance(pattern, str) and pattern)


def _as_dict(kept: object) -> dict[str, Any]:
    return cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}


def _switched(kept: object) -> tuple[set[str], set[str]]:
    """What is off, and what is on."""
    switched = _as_dict(kept)
    return set(switched.get("off") or ()), set(switched.get("on") or ())


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
