"""The services that owners set up from an OpenAPI document: their keys sealed, their operations as tools."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from core.bridge.pool import BoundedDict
from core.errors import ConflictError, NotFoundError, ParlourError, SettingsError, StorageError
from core.net.addresses import Reach, is_own, open_internet_and_own_network
from core.storage.base import new_id
from core.storage.sealing import end_of, in_address
from core.tools.openapi.as_tools import ApiTool, Trial, tools_of, tried
from core.tools.openapi.credentials import AuthScheme, auth_schemes
from core.tools.openapi.document import Document, fetched_text, parsed, plain
from core.tools.openapi.operations import servers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.storage.owner_settings import Choices, OwnerSettings
    from core.storage.sealing import Sealer
    from core.toolbox.code_interpreter import GivenFiles


KeyKind: TypeAlias = Literal["none", "bearer", "header", "query", "cookie", "basic", "oauth2"]

KEY_KINDS: Final[Mapping[str, KeyKind]] = {
    "none": "none", "bearer": "bearer", "header": "header", "query": "query", "cookie": "cookie", "basic": "basic",
    "oauth2": "oauth2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServiceKey:
    """How a service knows who asks.

    Args:
        kind: Where the key goes; of `oauth2` it becomes a token first.
        name: Of the header, the parameter or the cookie; of `basic` the user, of `oauth2` the client's id.
        value: The key, the password, or the client's secret; "" where only its end is told.
        end: What may be shown of it.
        scope: What a token is for, in words with spaces between; the service's usual where empty.
    """

    kind: KeyKind = "none"
    name: str = ""
    value: str = field(default="", repr=False)
    end: str = ""
    token_url: str = ""
    scope: str = ""

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
            case "header" | "query" | "cookie":
                return {self.kind: {self.name: self.value}}
            case "oauth2":
                client = {"client_id": self.name, "client_secret": self.value, "scope": self.scope}
                return {"oauth2": {**client, "token_url": self.token_url}}

    def goes_like(self, other: ServiceKey) -> bool:
        """Whether it is sent where the other one is: then, and only then, the other's value may stay in its place."""
        return (self.kind, self.token_url.strip()) == (other.kind, other.token_url)


def sealed_key(key: ServiceKey, sealer: Sealer, *place: str) -> dict[str, Any]:
    """A key as it is kept; only its value is secret.

    Args:
        sealer: Seals it.
        place: Whose it is and for what; it opens there alone.

    Raises:
        SettingsError: key `openapi_key_empty`, `openapi_key_name` or `openapi_client`: it, its name, or something of a
            client is missing; `openapi_key`: it is of no kind that there is.
    """
    if key.kind not in KEY_KINDS:
        raise SettingsError("A key cannot go there.", key="openapi_key")
    if key.kind == "none":
        return {"kind": "none"}
    value, name, token_url = key.value.strip(), key.name.strip(), key.token_url.strip()
    if key.kind == "oauth2" and not (value and name and token_url):
        hint = "Type all three."
        raise SettingsError(
            "A client needs its id, its secret, and where to get a token.", hint=hint, key="openapi_client"
        )
    if not value:
        raise SettingsError("The key is missing.", hint="Type it.", key="openapi_key_empty")
    if key.kind != "bearer" and not name:
        raise SettingsError("The name of the key is missing.", hint="Type it.", key="openapi_key_name")
    kept = {"kind": key.kind, "name": name, "sealed": sealer.seal(json.dumps(value), *place), "end": end_of(value)}
    return kept | ({"token_url": token_url, "scope": " ".join(key.scope.split())} if key.kind == "oauth2" else {})


def shown_key(kept: object) -> ServiceKey:
    """What may be shown of a key that is kept."""
    key: Mapping[str, Any] = cast("Mapping[str, Any]", kept) if isinstance(kept, Mapping) else {}
    name, end, token_url, scope = (str(key.get(one) or "") for one in ("name", "end", "token_url", "scope"))
    kind = KEY_KINDS.get(str(key.get("kind")), "none")
    return ServiceKey(kind, name, end=end, token_url=token_url, scope=scope)


def opened_key(kept: object, sealer: Sealer, *place: str) -> ServiceKey:
    """A key that is kept, with its value. Raises StorageError where it cannot be read any more."""
    shown = shown_key(kept)
    if shown.kind == "none":
        return shown
    sealed = str(cast("Mapping[str, Any]", kept).get("sealed") or "")
    return replace(shown, value=str(json.loads(sealer.open(sealed, *place))))


_LOG = logging.getLogger(__name__)
_ALL: Final = "services"  # the name of the list among an owner's choices
_LONGEST: Final = 2 * 1024 * 1024  # letters of a document that is kept
_MOST: Final = 20  # services of one owner
_MOST_ON: Final = 20  # operations that are offered unless they are switched off
_KNOWN: Final = 16  # services
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class OwnService:
    """A service as it stands.

    Args:
        name: Before the names of its tools.
        on: Whether its tools are offered.
        key: Without its value.
        off: The names of those that are not offered.
        error: Why it has no tools.
        ways: How it can know who asks, as its document says.
    """

    id: str
    name: str
    address: str
    on: bool
    key: ServiceKey
    tools: tuple[ApiTool, ...] = ()
    off: frozenset[str] = frozenset()
    error: ParlourError | None = None
    ways: tuple[AuthScheme, ...] = ()

    @property
    def wants_together(self) -> tuple[str, ...]:
        """The keys that one of its operations wants at once, by the document's names: one alone may be too few."""
        wanted = (tool.operation.security for tool in self.tools)
        fewest = (min(each, key=len) for each in wanted if each)
        return next((tuple(plain(name, 40) for name in sorted(names)) for names in fewest if len(names) > 1), ())


@dataclass(frozen=True, slots=True)
class Draft:
    """What a document says of a service that nobody has set up yet.

    Args:
        title: What it is called there.
        address: Where it is; "" where the document does not say.
        ways: How it can know who asks.
    """

    title: str
    address: str
    ways: tuple[AuthScheme, ...]


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of a document."""

    tools: tuple[ApiTool, ...] = ()
    ways: tuple[AuthScheme, ...] = ()


class KnownServices(BoundedDict[tuple[str, ...], _Made]):
    """What came of the documents of all owners' services that were used last: to read a long one takes a second."""

    def __init__(self) -> None:
        super().__init__(_KNOWN)


class OwnerOpenApi:
    """The services of one owner.

    Args:
        owner: Whose they are; their keys are sealed for this owner alone.
        sealer: Seals their keys.
        known: What was read already, of all owners.
        at_home: Whether the owner may name services of this machine and its network.
        given: The files of the owner's conversations; none if left out.
    """

    def __init__(
        self,
        owner: str,
        choices: OwnerSettings,
        sealer: Sealer,
        *,
        known: KnownServices,
        at_home: bool,
        given: GivenFiles | None = None,
    ) -> None:
        self._owner = owner
        self._choices = choices
        self._sealer = sealer
        self._known = known
        self._at_home = at_home
        self._given = given

    async def list(self) -> list[OwnService]:
        """All of the owner's, in the order in which they came. Raises StorageError."""
        found = [await self.standing(service_id) for service_id in await self._ids()]
        return [one for one in found if one is not None]

    async def tools(self, conversation_id: str = "") -> list[ApiTool]:
        """What the owner's services offer; what is sent with files may send those of the conversation, and no other.

        Raises:
            StorageError: The database failed.
        """
        standing = [one for one in await self.list() if one.on]
        tools = [tool for one in standing for tool in one.tools if tool.operation.name not in one.off]
        return await with_given(tools, self._given, conversation_id)

    async def secrets(self) -> list[str]:
        """The keys of the owner's services, for whoever must not repeat them; one that cannot be read is none."""
        return [key for one in await self._ids() for key in await self.secrets_of(one)]

    async def secrets_of(self, service_id: str) -> list[str]:
        """Those of one service."""
        found: list[str] = []
        with suppress(StorageError, NotFoundError):  # NotFoundError: removed meanwhile
            row = await self._row(service_id)
            found += [key for name in ("url", "server", "address") for key in in_address(str(row.get(name) or ""))]
            key = self._key(service_id, row)
            found += [key.value, *in_address(key.token_url)]
        return [one for one in found if one]

    async def draft(self, source: str, server: str = "") -> Draft:
        """What a document says, before anything is set up.

        Args:
            source: The address of the document, or the document itself.
            server: Where the service is, where the document does not say, or says something else.

        Raises:
            FetchError: The document cannot be fetched.
            SettingsError: It is none.
        """
        _, document = await self._read(source)
        named = [server.strip()] if server.strip() else servers_of(document, document.root)
        address = named[0] if named else ""
        return Draft(document.title, address, tuple(auth_schemes(document, address)))

    async def try_draft(self, source: str, server: str, key: ServiceKey) -> Trial:
        """Whether a service would answer, before it is set up; nothing of it is kept.

        Raises:
            FetchError: The document cannot be fetched, or the service may not be called or does not answer.
            SettingsError: It is no document, or a setting is wrong.
            ToolError: The service refuses.
        """
        text, document = await self._read(source)
        row = {"document": text, "url": document.url, "server": server.strip()} | self._sealed("", key)
        made = await asyncio.to_thread(self._fresh, "", row, document)
        _check(made.tools)
        return await tried(made.tools)

    async def try_key(self, service_id: str, key: ServiceKey | None = None) -> Trial:
        """Whether a service answers: with its own key, or with another that is not kept yet.

        Raises:
            FetchError: It may not be called, or does not answer.
            NotFoundError: The owner has no such service.
            SettingsError: The key is not whole, or cannot be sent.
            StorageError: key `key_unreadable`: the one that is kept cannot be read any more.
            ToolError: It refuses.
        """
        row = await self._row(service_id)
        if key is None:
            return await tried((await self._made(service_id, row)).tools)
        return await tried((await self._with_key(service_id, row, key))[1].tools)

    async def add(self, source: str, *, name: str = "", server: str = "", key: ServiceKey | None = None) -> OwnService:
        """Set one up.

        Args:
            source: The address of its document, or the document itself.
            name: What to call it; else as the document does.
            server: Where it is, where the document does not say, or says something else.
            key: How it knows who asks.

        Raises:
            FetchError: The document cannot be fetched.
            SettingsError: It is none, a setting is wrong, or the owner has too many.
            ConflictError: key `server_name_taken`.
        """
        text, document = await self._read(source)
        short = _NOT_IN_NAMES.sub("_", name or document.title).strip("_")[:24] or "service"
        service_id = new_id()
        row: dict[str, Any] = {
            "name": short,
            "document": text,
            "url": document.url,
            "server": server.strip(),
            "on": True,
        }
        row |= self._sealed(service_id, key or ServiceKey())
        made = await asyncio.to_thread(self._fresh, service_id, row, document)
        row["address"] = made.tools[0].operation.server or ""
        row["off"] = [tool.operation.name for tool in made.tools[_MOST_ON:]]
        _check(made.tools)

        def added(choices: Choices) -> None:
            ids = _ids(choices.get(_ALL))
            if len(ids) >= _MOST:
                raise SettingsError(f"There are {_MOST} services already.", key="openapi_many", most=_MOST)
            names = [str(_row(choices.get(_place(one))).get("name")).casefold() for one in ids]
            if short.casefold() in names:
                raise ConflictError("There is a service of that name.", key="server_name_taken", name=short)
            choices.put(_place(service_id), row)
            choices.put(_ALL, [*ids, service_id])

        await self._choices.change_together(added)
        self._known[self._place_of(service_id, row)] = made
        return self._standing_as(service_id, row, made)

    async def set_key(self, service_id: str, key: ServiceKey) -> None:
        """Another key; without a value the one that is kept stays, where it goes the same way.

        Raises:
            NotFoundError: The owner has no such service.
            SettingsError: It is not whole, or cannot be sent.
            StorageError: key `key_unreadable`: the one that is kept cannot be read any more.
        """
        changed, _ = await self._with_key(service_id, await self._row(service_id), key)
        await self._change(service_id, lambda row: row | {"key": changed["key"]})

    async def enable(self, service_id: str, *, on: bool) -> None:
        """Offer its tools, or no more. Raises NotFoundError."""
        await self._change(service_id, lambda row: row | {"on": on})

    async def switch(self, service_id: str, operation: str, *, on: bool) -> None:
        """Offer one of its operations, or no more. Raises NotFoundError."""

        def switched(row: dict[str, Any]) -> dict[str, Any]:
            off = {str(one) for one in row.get("off") or ()}
            return row | {"off": sorted(off - {operation} if on else off | {operation})}

        await self._change(service_id, switched)

    async def remove(self, service_id: str) -> None:
        """Forget it, and its key. Raises NotFoundError."""

        def removed(choices: Choices) -> None:
            _row(choices.get(_place(service_id)))
            ids = _ids(choices.get(_ALL))
            choices.put(_ALL, [one for one in ids if one != service_id] or None)
            choices.put(_place(service_id), None)
            choices.end_loans("service", service_id)

        await self._choices.change_together(removed)

    # ---- inside

    def _reach(self) -> Reach:
        return Reach(allows=open_internet_and_own_network) if self._at_home else Reach()

    async def _read(self, source: str) -> tuple[str, Document]:
        """The text of a document, and the document. Raises FetchError, SettingsError."""
        text, url = source.strip(), ""
        if text.lower().startswith(("http://", "https://")) and "\n" not in text:
            text, url = await fetched_text(text, self._reach())
        if len(text) > _LONGEST:
            raise SettingsError("The document is too long.", hint="Leave out what is not needed.", key="openapi_long")
        return text, Document(await asyncio.to_thread(parsed, text), url)

    async def _with_key(self, service_id: str, row: Mapping[str, Any], key: ServiceKey) -> tuple[dict[str, Any], _Made]:
        """A service with another key, and what it is then. Raises SettingsError, StorageError."""
        if not key.value.strip() and key.kind != "none" and key.goes_like(_shown(row)):
            key = replace(key, value=self._key(service_id, row).value)
        changed = {**row, **self._sealed(service_id, key)}
        made = await self._made(service_id, changed, keep=False)
        _check(made.tools)
        return changed, made

    async def _ids(self) -> list[str]:
        return _ids(await self._choices.get(_ALL))

    async def _row(self, service_id: str) -> dict[str, Any]:
        return _row(await self._choices.get(_place(service_id)))

    async def _change(self, service_id: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        await self._choices.change(_place(service_id), lambda kept: change(_row(kept)))

    async def standing(self, service_id: str) -> OwnService | None:
        """One of them as it stands; `None` for none. Raises StorageError."""
        try:
            row = await self._row(service_id)
        except NotFoundError:
            return None
        try:
            made = await self._made(service_id, row)
        except ParlourError as error:
            _LOG.warning("The service %r has no tools: %s", row.get("name"), error)
            return replace(self._standing_as(service_id, row, _Made()), error=error)
        return self._standing_as(service_id, row, made)

    async def _made(self, service_id: str, row: Mapping[str, Any], *, keep: bool = True) -> _Made:
        """The tools of what is kept. Raises SettingsError, StorageError."""
        place = self._place_of(service_id, row)
        made = self._known.get(place)
        if made is None:
            made = await asyncio.to_thread(self._read_again, service_id, row)
            if keep:
                self._known[place] = made
        return made

    def _place_of(self, service_id: str, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Where what came of a service is remembered: who is at home no more has another reach."""
        return self._owner, service_id, json.dumps(row.get("key")), str(self._at_home)

    def _read_again(self, service_id: str, row: Mapping[str, Any]) -> _Made:
        document = Document(parsed(str(row.get("document") or "")), str(row.get("url") or ""))
        return self._fresh(service_id, row, document)

    def _fresh(self, service_id: str, row: Mapping[str, Any], document: Document) -> _Made:
        tools = tools_of(
            document,
            credentials=self._key(service_id, row).credentials,
            name=str(row.get("name") or ""),
            server=str(row.get("server") or ""),
            reach=self._reach() if _may_be_inside(row) else Reach(),
        )
        return _Made(tuple(tools), tuple(auth_schemes(document, tools[0].operation.server or "")))

    def _sealed(self, service_id: str, key: ServiceKey) -> dict[str, Any]:
        return {"key": sealed_key(key, self._sealer, self._owner, _ALL, service_id)}

    def _key(self, service_id: str, row: Mapping[str, Any]) -> ServiceKey:
        return opened_key(row.get("key"), self._sealer, self._owner, _ALL, service_id)

    @staticmethod
    def _standing_as(service_id: str, row: Mapping[str, Any], made: _Made) -> OwnService:
        return OwnService(
            service_id,
            str(row.get("name") or ""),
            _origin(str(row.get("address") or "")),
            row.get("on") is True,
            _shown(row),
            made.tools,
            frozenset(str(one) for one in row.get("off") or ()),
            ways=made.ways,
        )


async def with_given(tools: list[ApiTool], given: GivenFiles | None, conversation_id: str) -> list[ApiTool]:
    """Tools that may send the files of a conversation, and no other. Raises StorageError."""
    if not any(tool.operation.files for tool in tools):
        return tools
    files = await given.of(conversation_id) if given is not None and conversation_id else {}
    return [tool.with_files(files) for tool in tools]


def _ids(kept: object) -> list[str]:
    return [str(one) for one in cast("list[object]", kept)] if isinstance(kept, list) else []


def _row(kept: object) -> dict[str, Any]:
    """A service as it is kept. Raises NotFoundError."""
    if not isinstance(kept, dict):
        raise NotFoundError("There is no such service.", kind="service")
    return cast("dict[str, Any]", kept)


def _check(tools: Sequence[ApiTool]) -> None:
    """Look whether calls can be sent with the key that was given, and anywhere at all. Raises SettingsError."""
    first = tools[0]
    if not first.operation.server:
        hint = "Type where the service is."
        raise SettingsError("The document does not say where the service is.", hint=hint, key="openapi_no_server")
    if first.credentials:
        first.validate_credentials(first.credentials)


def _shown(row: Mapping[str, Any]) -> ServiceKey:
    return shown_key(row.get("key"))


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
