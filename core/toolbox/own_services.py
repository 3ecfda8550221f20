"""The services that owners set up from an OpenAPI document: their keys sealed, their operations as tools."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from core.errors import ConflictError, NotFoundError, ParlourError, SettingsError, StorageError
from core.net.addresses import Reach, is_own, open_internet_and_own_network
from core.storage.base import new_id
from core.storage.sealing import end_of
from core.storage.typed_keys import in_address
from core.tools.openapi.as_tools import ApiTool, tools_of
from core.tools.openapi.document import Document, fetched_text, parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from core.storage.owner_settings import OwnerSettings
    from core.storage.sealing import Sealer
    from core.tools.base import BaseTool

KeyKind: TypeAlias = Literal["none", "bearer", "header", "query", "basic"]

KEY_KINDS: Final[Mapping[str, KeyKind]] = {
    "none": "none", "bearer": "bearer", "header": "header", "query": "query", "basic": "basic",
}  # fmt: skip
_LOG = logging.getLogger(__name__)
_ALL: Final = "services"  # the name of the list among an owner's choices
_LONGEST: Final = 2 * 1024 * 1024  # letters of a document that is kept
_MOST: Final = 20  # services of one owner
_MOST_ON: Final = 20  # operations that are offered unless they are switched off
_KNOWN: Final = 16  # services whose tools are kept: to read a long document takes a second
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class ServiceKey:
    """How a service knows who asks.

    Args:
        kind: Where the key goes.
        name: Of the header or the parameter; of `basic` the user.
        value: The key; "" where only its end is told.
        end: What may be shown of it.
    """

    kind: KeyKind = "none"
    name: str = ""
    value: str = field(default="", repr=False)
    end: str = ""

    @property
    def credentials(self) -> dict[str, Any]:
        """As tools take them."""
        match self.kind:
            case "none":
                return {}
            case "bearer":
                return {"bearer": self.value}
            case "basic":
                return {"basic": {"username": self.name, "password": self.value}}
            case "header" | "query":
                return {self.kind: {self.name: self.value}}


@dataclass(frozen=True, slots=True)
class OwnService:
    """A service as it stands.

    Args:
        name: Before the names of its tools.
        address: Where it is.
        on: Whether its tools are offered.
        key: Without its value.
        tools: All of its operations.
        off: The names of those that are not offered.
        error: Why it has no tools.
    """

    id: str
    name: str
    address: str
    on: bool
    key: ServiceKey
    tools: tuple[ApiTool, ...] = ()
    off: frozenset[str] = frozenset()
    error: ParlourError | None = None


class OwnServices:
    """Services by owner.

    Args:
        choices: Where they are kept.
        sealer: Seals their keys.
        at_home: Whether an owner may name services of this machine and its network.
    """

    def __init__(self, choices: OwnerSettings, sealer: Sealer, at_home: Callable[[str], bool]) -> None:
        self._choices = choices
        self._sealer = sealer
        self._at_home = at_home
        # The list is read, and written again with one more in it: two that come together would lose one.
        self._changing = asyncio.Lock()  # noqa: TID251 - said above
        self._known: dict[tuple[str, str, str], list[ApiTool]] = {}

    async def list(self, owner: str) -> list[OwnService]:
        """All of the owner's, in the order in which they came. Raises StorageError."""
        found = [await self._standing(owner, service_id) for service_id in await self._ids(owner)]
        return [one for one in found if one is not None]

    async def tools(self, owner: str) -> list[BaseTool]:
        """What the owner's services offer. Raises StorageError."""
        standing = [one for one in await self.list(owner) if one.on]
        return [tool for one in standing for tool in one.tools if tool.operation.name not in one.off]

    async def secrets(self, owner: str) -> list[str]:
        """The keys of the owner's services, for whoever must not repeat them; one that cannot be read is none."""
        found: list[str] = []
        for one in await self._ids(owner):
            with suppress(StorageError, NotFoundError):  # NotFoundError: removed meanwhile
                row = await self._row(owner, one)
                found += [key for name in ("url", "server", "address") for key in in_address(str(row.get(name) or ""))]
                found.append(self._key(owner, one, row).value)
        return found

    async def add(
        self, owner: str, source: str, *, name: str = "", server: str = "", key: ServiceKey | None = None
    ) -> OwnService:
        """Set one up.

        Args:
            owner: Whose it is.
            source: The address of its document, or the document itself.
            name: What to call it; else as the document does.
            server: Where it is, where the document does not say, or says something else.
            key: How it knows who asks.

        Raises:
            FetchError: The document cannot be fetched.
            SettingsError: It is none, a setting is wrong, or the owner has too many.
            ConflictError: key `server_name_taken`.
        """
        text, url = source.strip(), ""
        if text.lower().startswith(("http://", "https://")) and "\n" not in text:
            text, url = await fetched_text(text, self._reach(owner))
        if len(text) > _LONGEST:
            raise SettingsError("The document is too long.", hint="Leave out what is not needed.", key="openapi_long")
        document = Document(await asyncio.to_thread(parsed, text), url)
        short = _NOT_IN_NAMES.sub("_", name or document.title).strip("_")[:24] or "service"
        row: dict[str, Any] = {"name": short, "document": text, "url": url, "server": server.strip(), "on": True}
        service_id = new_id()
        row |= self._sealed(owner, service_id, key or ServiceKey())
        tools = await asyncio.to_thread(self._fresh, owner, service_id, row, document)
        row["address"] = tools[0].operation.server or ""
        row["off"] = [tool.operation.name for tool in tools[_MOST_ON:]]
        if key is not None and key.kind != "none":
            tools[0].validate_credentials(tools[0].credentials)
        if not row["address"]:
            hint = "Type where the service is."
            raise SettingsError("The document does not say where the service is.", hint=hint, key="openapi_no_server")
        async with self._changing:
            ids = await self._ids(owner)
            if len(ids) >= _MOST:
                raise SettingsError(f"There are {_MOST} services already.", key="openapi_many", most=_MOST)
            names = [str((await self._row(owner, one)).get("name")).casefold() for one in ids]
            if short.casefold() in names:
                raise ConflictError("There is a service of that name.", key="server_name_taken", name=short)
            await self._choices.set(owner, _place(service_id), row)
            await self._choices.set(owner, _ALL, [*ids, service_id])
        return self._made(service_id, row, tools)

    async def set_key(self, owner: str, service_id: str, key: ServiceKey) -> None:
        """Another key; without a value the one that is kept stays, where it goes the same way.

        Raises:
            NotFoundError: The owner has no such service.
            SettingsError: key `openapi_key`: it is not whole.
            StorageError: key `key_unreadable`: the one that is kept cannot be read any more.
        """

        def changed(row: dict[str, Any]) -> dict[str, Any]:
            keeps = not key.value.strip() and key.kind != "none" and _shown(row).kind == key.kind
            value = self._key(owner, service_id, row).value if keeps else key.value
            return row | self._sealed(owner, service_id, replace(key, value=value))

        await self._change(owner, service_id, changed)

    async def enable(self, owner: str, service_id: str, *, on: bool) -> None:
        """Offer its tools, or no more. Raises NotFoundError."""
        await self._change(owner, service_id, lambda row: row | {"on": on})

    async def switch(self, owner: str, service_id: str, operation: str, *, on: bool) -> None:
        """Offer one of its operations, or no more. Raises NotFoundError."""

        def switched(row: dict[str, Any]) -> dict[str, Any]:
            off = {str(one) for one in row.get("off") or ()}
            return row | {"off": sorted(off - {operation} if on else off | {operation})}

        await self._change(owner, service_id, switched)

    async def remove(self, owner: str, service_id: str) -> None:
        """Forget it, and its key. Raises NotFoundError."""
        async with self._changing:
            ids = await self._ids(owner)
            await self._row(owner, service_id)
            await self._choices.set(owner, _ALL, [one for one in ids if one != service_id] or None)
            await self._choices.set(owner, _place(service_id), None)

    # ---- inside

    def _reach(self, owner: str) -> Reach:
        return Reach(allows=open_internet_and_own_network) if self._at_home(owner) else Reach()

    async def _ids(self, owner: str) -> list[str]:
        kept: object = await self._choices.get(owner, _ALL)
        return [str(one) for one in cast("list[object]", kept)] if isinstance(kept, list) else []

    async def _row(self, owner: str, service_id: str) -> dict[str, Any]:
        kept: object = await self._choices.get(owner, _place(service_id))
        if not isinstance(kept, dict):
            raise NotFoundError("There is no such service.", kind="service")
        return cast("dict[str, Any]", kept)

    async def _change(self, owner: str, service_id: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        async with self._changing:
            await self._choices.set(owner, _place(service_id), change(await self._row(owner, service_id)))

    async def _standing(self, owner: str, service_id: str) -> OwnService | None:
        try:
            row = await self._row(owner, service_id)
        except NotFoundError:
            return None
        try:
            tools = await asyncio.to_thread(self._tools, owner, service_id, row)
        except ParlourError as error:
            _LOG.warning("The service %r has no tools: %s", row.get("name"), error)
            return replace(self._made(service_id, row, []), error=error)
        return self._made(service_id, row, tools)

    def _tools(self, owner: str, service_id: str, row: Mapping[str, Any]) -> list[ApiTool]:
        """The tools of what is kept. Raises SettingsError, StorageError."""
        place = (owner, service_id, json.dumps(row.get("key")))
        tools = self._known.get(place)
        if tools is None:
            document = Document(parsed(str(row.get("document") or "")), str(row.get("url") or ""))
            tools = self._fresh(owner, service_id, row, document)
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[place] = tools
        return tools

    def _fresh(self, owner: str, service_id: str, row: Mapping[str, Any], document: Document) -> list[ApiTool]:
        return tools_of(
            document,
            credentials=self._key(owner, service_id, row).credentials,
            name=str(row.get("name") or ""),
            server=str(row.get("server") or ""),
            reach=self._reach(owner) if _may_be_inside(row) else Reach(),
        )

    def _sealed(self, owner: str, service_id: str, key: ServiceKey) -> dict[str, Any]:
        """A key as it is kept. Raises SettingsError."""
        if key.kind not in KEY_KINDS:
            raise SettingsError("A key cannot go there.", key="openapi_key")
        if key.kind == "none":
            return {"key": {"kind": "none"}}
        if not key.value.strip() or (key.kind != "bearer" and not key.name.strip()):
            raise SettingsError("The key is not whole.", hint="Type it, and what it is called.", key="openapi_key")
        value, name = key.value.strip(), key.name.strip()
        sealed = self._sealer.seal(json.dumps(value), owner, _ALL, service_id)
        return {"key": {"kind": key.kind, "name": name, "sealed": sealed, "end": end_of(value)}}

    def _key(self, owner: str, service_id: str, row: Mapping[str, Any]) -> ServiceKey:
        shown = _shown(row)
        if shown.kind == "none":
            return shown
        sealed = str(cast("Mapping[str, Any]", row["key"]).get("sealed") or "")
        return replace(shown, value=str(json.loads(self._sealer.open(sealed, owner, _ALL, service_id))))

    @staticmethod
    def _made(service_id: str, row: Mapping[str, Any], tools: list[ApiTool]) -> OwnService:
        return OwnService(
            service_id,
            str(row.get("name") or ""),
            _origin(str(row.get("address") or "")),
            row.get("on") is True,
            _shown(row),
            tuple(tools),
            frozenset(str(one) for one in row.get("off") or ()),
        )


def _shown(row: Mapping[str, Any]) -> ServiceKey:
    kept: Any = row.get("key")
    key: dict[str, Any] = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
    kind = KEY_KINDS.get(str(key.get("kind")), "none")
    return ServiceKey(kind, str(key.get("name") or ""), end=str(key.get("end") or ""))


def _may_be_inside(row: Mapping[str, Any]) -> bool:
    """Whether the service may be on the owner's own network: not because a document of the open internet says so."""
    url = str(row.get("url") or "")
    host = urlsplit(url).hostname or ""
    return bool(row.get("server")) or not url or host == "localhost" or is_own(host)


def _place(service_id: str) -> str:
    return f"service:{service_id}"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
