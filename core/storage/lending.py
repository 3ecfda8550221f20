"""What owners share with groups: who may use it is looked up anew each time, by the groups that they are in now.

`Lending` is what an owner gives, `Lent` what she gets. These two are all that looks from one owner to another.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from sqlalchemy import ColumnElement, and_, delete, func, select

from core.errors import NotFoundError, ParlourError, StorageError
from core.storage.audit import note_act
from core.storage.dialects import upsert
from core.storage.documents import by_name
from core.storage.loans import PERSONAS, personas_of, service_row
from core.storage.mcp_servers import McpServerStore, reached, server_record
from core.storage.model_services import ModelService, ModelServiceStore, service_record
from core.storage.owner_settings import Choices
from core.storage.people import KEEPERS
from core.storage.statements import LENT_LIBRARIES, lent_to
from core.storage.tables import (
    documents,
    files,
    group_members,
    groups,
    lent,
    libraries,
    mcp_servers,
    model_services,
    people,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from core.bridge.pool import Listeners
    from core.storage.base import NamedLibrary
    from core.storage.database import Database
    from core.storage.mcp_servers import McpServer
    from core.storage.sealing import Sealer

Kind: TypeAlias = Literal["library", "persona", "model", "server", "service"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""What can be shared with a group: a named library, a persona, a model service with the key that it has, an MCP server
and a web service with theirs."""
WRITABLE: Final[frozenset[Kind]] = frozenset({"library", "persona"})
"""What can be shared to be changed, too. The rest holds keys: who may say where they go could read them."""
LENT: Final = "lent-"
"""The names of services that somebody else set up begin so."""
_SHARES: Final[frozenset[str]] = frozenset({"member", *KEEPERS})


@dataclass(frozen=True, slots=True)
class Loan:
    """That something is shared with a group.

    Args:
        writes: Whether its members may change it, too.
    """

    group_id: str
    group: str
    writes: bool


@dataclass(frozen=True, slots=True)
class LentLibrary:
    """A library of somebody else.

    Args:
        library: With whose it is.
        lender: What they are called.
        writes: Whether documents may be added and taken out.
    """

    library: NamedLibrary
    lender: str
    writes: bool


@dataclass(frozen=True, slots=True)
class LentPersona:
    """A persona of somebody else, as it is kept; the rest is as of `LentLibrary`."""

    kept: Mapping[str, Any]
    lender_id: str
    lender: str
    writes: bool


@dataclass(frozen=True, slots=True)
class LentModel:
    """A model service of somebody else.

    Args:
        name: What it is called among the services of whoever it is lent to; it stays the same.
        service: As its owner set it up; the key is sealed.
        lender: What they are called.
    """

    name: str
    service: ModelService
    lender: str


@dataclass(frozen=True, slots=True)
class LentServer:
    """An MCP server of somebody else.

    Args:
        kept: As its owner set it up; how it is reached is sealed.
        lender: What they are called.
        keeps: They look after the house, so that their programs may be started.
        mark: Names it and the way in which it is reached: another command or address has another one.
    """

    kept: McpServer
    lender: str
    keeps: bool
    mark: str

    def is_as(self, before: LentServer) -> bool:
        """Whether what was begun with it may go on: it is reached as before, allowed and signed in to, and used."""
        (one, other), same = (self.kept, before.kept), ("settings", "confirmed", "name", "signed_in")
        if not one.enabled or any(getattr(one, name) != getattr(other, name) for name in same):
            return False
        return (self.keeps, self.lender) == (before.keeps, before.lender)


@dataclass(frozen=True, slots=True)
class LentService:
    """A web service of somebody else; `service_id` is its id among theirs, `key` the print of its key, sealed."""

    service_id: str
    lender_id: str
    lender: str
    keeps: bool
    mark: str
    key: str


class Lending:
    """What one owner shares with groups.

    An owner shares with the groups that they are in. Who looks after the house shares with all groups; they
    alone share models.

    Args:
        told: Called after each change.
    """

    def __init__(self, database: Database, owner: str, told: Listeners[[]]) -> None:
        self._database = database
        self._owner = owner
        self._told = told

    async def groups(self) -> list[Loan]:
        """The groups that the owner may share with, by name; nothing is said of what is. Raises StorageError."""
        return await self._database.read(self._groups)

    async def loans(self, kind: Kind, thing_id: str) -> list[Loan]:
        """With whom something of the owner is shared, by the group's name. Raises StorageError."""
        query = (
            select(groups.c.id, groups.c.name, lent.c.writes)
            .join(lent, lent.c.group_id == groups.c.id)
            .where(lent.c.owner_id == self._owner, lent.c.kind == kind, lent.c.thing_id == thing_id)
        )
        rows = await self._database.read(lambda c: c.execute(query).all())
        return sorted((Loan(*row) for row in rows), key=lambda one: one.group.casefold())

    async def members(self) -> dict[str, list[str]]:
        """Who is in the groups that the owner may share with, by the group's id: names, without the owner's.

        Raises:
            StorageError: The database failed.
        """

        def load(connection: Connection) -> dict[str, list[str]]:
            wanted = [one.group_id for one in self._groups(connection)]
            query = (
                select(group_members.c.group_id, people.c.name)
                .join(people, people.c.id == group_members.c.person_id)
                .where(group_members.c.group_id.in_(wanted), people.c.id != self._owner)
                .order_by(people.c.name_key)
            )
            found: dict[str, list[str]] = {one: [] for one in wanted}
            for row in connection.execute(query):
                found[row.group_id].append(row.name)
            return found

        return await self._database.read(load)

    async def check_mine(self, kind: Kind, thing_id: str) -> None:
        """Whether something is the owner's. Raises NotFoundError, StorageError."""
        await self._database.read(lambda connection: self._check_mine(connection, kind, thing_id))

    async def lend(self, group_id: str, kind: Kind, thing_id: str, *, writes: bool) -> None:
        """Share something with a group, to read or also to write.

        Raises:
            NotFoundError: key `no_group`: there is none such that the owner may share with; or the thing is not the
                owner's.
            ParlourError: key `role_forbidden`.
            StorageError: The database failed.
        """

        def lend(connection: Connection) -> None:
            group = next((one for one in self._groups(connection) if one.group_id == group_id), None)
            if group is None:
                raise NotFoundError("There is no such group.", key="no_group")
            if kind == "model" and self._role(connection) not in KEEPERS:
                raise ParlourError("Your role does not allow this.", hint="Ask an owner.", key="role_forbidden")
            self._check_mine(connection, kind, thing_id)
            writing = writes and kind in WRITABLE
            values = {"group_id": group_id, "kind": kind, "thing_id": thing_id, "owner_id": self._owner}
            adding = upsert(lent).values(**values, writes=writing, created_at=time.time())
            same = ["group_id", "kind", "thing_id", "owner_id"]
            connection.execute(adding.on_conflict_do_update(index_elements=same, set_={"writes": writing}))
            note_act(connection, self._name(connection), f"lent_{kind}", group.group, {})

        await self._database.write(lend)
        self._told()

    async def take_back(self, group_id: str, kind: Kind, thing_id: str) -> None:
        """Share it with a group no more, which counts at once. Raises NotFoundError (`no_group`), StorageError."""

        def taken(connection: Connection) -> None:
            row = connection.execute(select(groups.c.name).where(groups.c.id == group_id)).first()
            if row is None:
                raise NotFoundError("There is no such group.", key="no_group")
            same = lent.c.group_id == group_id, lent.c.kind == kind, lent.c.thing_id == thing_id
            if connection.execute(delete(lent).where(*same, lent.c.owner_id == self._owner)).rowcount:
                note_act(connection, self._name(connection), f"taken_back_{kind}", row.name, {})

        await self._database.write(taken)
        self._told()

    async def borrowers(self, kind: Kind, thing_id: str) -> list[str]:
        """The ids of the people whom something is lent to, without the owner. Raises StorageError."""
        query = (
            select(group_members.c.person_id)
            .join(lent, lent.c.group_id == group_members.c.group_id)
            .where(lent.c.owner_id == self._owner, lent.c.kind == kind, lent.c.thing_id == thing_id)
            .where(group_members.c.person_id != self._owner)
            .distinct()
        )
        return list(await self._database.read(lambda c: c.execute(query).scalars().all()))

    # ---- inside

    def _groups(self, connection: Connection) -> list[Loan]:
        query = select(groups.c.id, groups.c.name)
        role = self._role(connection)
        if role is None or role == "guest":
            return []
        if role not in KEEPERS:
            mine = select(group_members.c.group_id).where(group_members.c.person_id == self._owner)
            query = query.where(groups.c.id.in_(mine))
        found = [Loan(row.id, row.name, writes=False) for row in connection.execute(query)]
        return sorted(found, key=lambda one: one.group.casefold())

    def _role(self, connection: Connection) -> str | None:
        return connection.execute(select(people.c.role).where(people.c.id == self._owner)).scalar()

    def _name(self, connection: Connection) -> str:
        return str(connection.execute(select(people.c.name).where(people.c.id == self._owner)).scalar() or "")

    def _check_mine(self, connection: Connection, kind: Kind, thing_id: str) -> None:
        if kind == "persona":
            mine = personas_of(connection, self._owner)
            found: object = next((one for one in mine if one.get("id") == thing_id), None)
        elif kind == "library":
            here = libraries.c.id == thing_id, libraries.c.owner_id == self._owner
            found = connection.execute(select(libraries.c.id).where(*here)).first()
        elif kind == "server":
            this = mcp_servers.c.id == thing_id, mcp_servers.c.owner_id == self._owner
            found = connection.execute(select(mcp_servers.c.id).where(*this)).first()
        elif kind == "service":
            found = service_row(connection, self._owner, thing_id)
        else:
            kept = model_services.c.service == thing_id, model_services.c.owner_id == self._owner
            found = connection.execute(select(model_services.c.service).where(*kept)).first()
        if found is None:
            raise NotFoundError("There is nothing such of yours.", kind=kind)


class Lent:
    """What others share with one owner, by the groups that the owner is in at the moment of each question.

    Args:
        sealer: Opens the keys of services.
        standing: Told when the owner changed what somebody shares.
    """

    def __init__(self, database: Database, sealer: Sealer, owner: str, standing: Listeners[[]]) -> None:
        self._database = database
        self._sealer = sealer
        self._owner = owner
        self._standing = standing

    # ---- libraries

    async def libraries(self) -> list[LentLibrary]:
        """All that are shared with the owner, by name. Raises StorageError."""
        return await self._database.read(self._libraries)

    async def library(self, library_id: str, *, writes: bool = False) -> LentLibrary:
        """One of them.

        Args:
            writes: It is to be changed.

        Raises:
            NotFoundError: It is not shared with the owner.
            ParlourError: key `lent_to_read`: it is, to read alone.
        """
        found = next((one for one in await self.libraries() if one.library.id == library_id), None)
        if found is None:
            raise NotFoundError("There is no such library.", kind="library")
        if writes and not found.writes:
            raise _only_to_read(found.lender)
        return found

    async def shelf_of(self, document_id: str) -> str | None:
        """The id of a lent library that a document stands in; `None` where it stands in none. Raises StorageError."""
        query = select(documents.c.collection_id).where(documents.c.id == document_id)
        shelf = await self._database.read(lambda c: c.execute(query).scalar())
        known = {one.library.id for one in await self.libraries()} if shelf is not None else set[str]()
        return shelf if shelf in known else None

    async def holder(self, library_id: str) -> str | None:
        """Whose index has a text that stands in a library lent to the owner; `None` for nobody's.

        Args:
            library_id: The text's id in the index.

        Raises:
            StorageError: The database failed.
        """
        query = (
            select(documents.c.owner_id)
            .join(libraries, libraries.c.id == documents.c.collection_id)
            .where(documents.c.library_id == library_id, lent_to(self._owner))
            .order_by(documents.c.created_at)
            .limit(1)
        )
        return await self._database.read(lambda c: c.execute(query).scalar())

    async def is_being_read(self, digest: str) -> bool:
        """Whether a document with this content (SHA-256) is being read into a library lent to the owner, or waits.

        Raises:
            StorageError: The database failed.
        """
        reading = (
            select(documents.c.id)
            .join(libraries, libraries.c.id == documents.c.collection_id)
            .where(documents.c.status == "reading", lent_to(self._owner))
        )
        known = reading.where(documents.c.library_id == digest)
        fresh = reading.join(files, files.c.id == documents.c.file_id).where(files.c.sha256 == digest)
        return await self._database.read(lambda c: any(c.execute(query).first() for query in (known, fresh)))

    def still(self, library_ids: Sequence[str]) -> bool:
        """Whether these libraries are all lent to the owner at this moment; it blocks this thread.

        Raises:
            StorageError: The database failed.
        """
        query = select(func.count()).select_from(libraries).where(libraries.c.id.in_(library_ids), lent_to(self._owner))
        count = self._database.read_here(lambda c: int(c.execute(query).scalar_one()))
        return count == len(set(library_ids))

    def _libraries(self, connection: Connection) -> list[LentLibrary]:
        rows = connection.execute(LENT_LIBRARIES, {"owner": self._owner}).all()
        writing = self._writable(connection, "library")
        names = {row.id: row.lender for row in rows}
        listed = by_name([row[:6] for row in rows])
        return [LentLibrary(one, names[one.id], (one.id, one.owner_id) in writing) for one in listed]

    # ---- personas

    async def personas(self) -> list[LentPersona]:
        """All that are shared with the owner, in no order. Raises StorageError."""

        def load(connection: Connection) -> list[LentPersona]:
            loans = self._loans(connection, "persona")
            writing = self._writable(connection, "persona")
            found: list[LentPersona] = []
            for lender_id, name in dict.fromkeys((one[1], one[2]) for one in loans):
                wanted = {thing for thing, lender, _ in loans if lender == lender_id}
                found += [
                    LentPersona(one, lender_id, name, (str(one["id"]), lender_id) in writing)
                    for one in personas_of(connection, lender_id)
                    if one.get("id") in wanted
                ]
            return found

        return await self._database.read(load)

    async def change_persona(self, persona_id: str, change: Mapping[str, Any]) -> None:
        """Change what a persona says, where its owner keeps it.

        Args:
            change: What is another from now on, as it is kept.

        Raises:
            NotFoundError: It is not shared with the owner.
            ParlourError: key `lent_to_read`.
            StorageError: The database failed.
        """

        def changed(connection: Connection) -> None:
            loan = next((one for one in self._loans(connection, "persona") if one[0] == persona_id), None)
            if loan is None:
                raise NotFoundError("There is no such persona.", kind="persona")
            _, lender_id, lender = loan
            if (persona_id, lender_id) not in self._writable(connection, "persona"):
                raise _only_to_read(lender)
            kept = [
                {**one, **change, "id": persona_id} if one.get("id") == persona_id else one
                for one in personas_of(connection, lender_id)
            ]
            Choices(connection, lender_id).put(PERSONAS, kept)

        await self._database.write(changed)
        self._standing()

    # ---- models

    async def models(self) -> list[LentModel]:
        """The services that are shared with the owner, by their lenders' names. Raises StorageError."""

        def load(connection: Connection) -> list[LentModel]:
            found: list[LentModel] = []
            for service, lender_id, lender in self._loans(connection, "model", roles=KEEPERS):
                kept = model_services.c.owner_id == lender_id, model_services.c.service == service
                row = connection.execute(select(model_services).where(*kept)).first()
                if row is not None:
                    found.append(LentModel(lent_name(lender_id, service), service_record(row), lender))
            return sorted(found, key=lambda one: (one.lender.casefold(), one.service.service))

        return await self._database.read(load)

    async def model(self, name: str) -> LentModel | None:
        """One of them by its name here; `None` where it is not shared with the owner. Raises StorageError."""
        return next((one for one in await self.models() if one.name == name), None)

    def key_of(self, lent_model: LentModel) -> str:
        """The key of a service: it goes to the service and nowhere else. Raises StorageError (`key_unreadable`)."""
        kept = lent_model.service
        return ModelServiceStore(self._database, self._sealer, kept.owner_id).key_of(kept)

    # ---- tools

    async def servers(self) -> list[LentServer]:
        """The MCP servers that are shared with the owner, by name. Raises StorageError."""
        return await self._database.read(self._servers)

    async def server(self, server_id: str) -> LentServer | None:
        """One of them, as it is now; `None` where it is not shared with the owner. Raises StorageError."""
        return next((one for one in await self.servers() if one.kept.id == server_id), None)

    def store_of(self, server: LentServer) -> McpServerStore:
        """Where a server's owner keeps it with its secrets, which go to the server and nowhere else."""
        return McpServerStore(self._database, self._sealer, server.kept.owner_id)

    def _servers(self, connection: Connection) -> list[LentServer]:
        found: list[LentServer] = []
        keepers = self._keepers(connection, "server")
        for server_id, lender_id, lender in self._loans(connection, "server"):
            this = mcp_servers.c.owner_id == lender_id, mcp_servers.c.id == server_id
            row = connection.execute(select(mcp_servers).where(*this)).first()
            if row is None:
                continue
            kept = server_record(row)
            try:
                way = reached(McpServerStore(self._database, self._sealer, lender_id).settings_of(kept))
            except StorageError:  # its owner has to type the secrets again
                way = ()
            mark = self._sealer.mark("mcp", lender_id, server_id, json.dumps(way))
            found.append(LentServer(kept, lender, lender_id in keepers, mark))
        return sorted(found, key=lambda one: (one.kept.name.casefold(), one.lender.casefold()))

    async def services(self) -> list[LentService]:
        """The web services that are shared with the owner. Raises StorageError."""

        def load(connection: Connection) -> list[LentService]:
            found: list[LentService] = []
            keepers = self._keepers(connection, "service")
            for service_id, lender_id, lender in self._loans(connection, "service"):
                row = service_row(connection, lender_id, service_id)
                if row is None or row.get("on") is not True:
                    continue
                mark = self._sealer.mark("service", lender_id, service_id)
                key = self._sealer.mark("key", json.dumps(row.get("key"), sort_keys=True))
                found.append(LentService(service_id, lender_id, lender, lender_id in keepers, mark, key))
            return sorted(found, key=lambda one: (one.lender.casefold(), one.service_id))

        return await self._database.read(load)

    # ---- all of it

    async def standing(self) -> str:
        """Names the owner's role and limits, the groups that they may share with, and all that is shared with them now.

        It is another one where any of that changes, or what a shared persona says, theirs too. Raises StorageError.
        """

        def load(connection: Connection) -> list[Any]:
            row = connection.execute(select(people.c.role, people.c.limits).where(people.c.id == self._owner)).first()
            role, limits = tuple(row) if row is not None else (None, None)
            mine = select(group_members.c.group_id).where(group_members.c.person_id == self._owner)
            named = select(groups.c.id, groups.c.name)
            if role not in KEEPERS:
                named = named.where(groups.c.id.in_(mine))
            query = (
                select(lent.c.kind, lent.c.thing_id, lent.c.writes, people.c.id, people.c.name, people.c.role)
                .join(people, people.c.id == lent.c.owner_id)
                .where(lent.c.group_id.in_(mine), lent.c.owner_id != self._owner)
            )
            given = select(groups.c.limits).where(groups.c.id.in_(mine))
            rows = [sorted(map(repr, map(tuple, connection.execute(one).all()))) for one in (named, given, query)]
            return [role, limits, *rows, self._shared_personas(connection)]

        found = await self._database.read(load)
        return sha256(json.dumps(found).encode()).hexdigest()[:16]

    # ---- inside

    def _shared_personas(self, connection: Connection) -> list[dict[str, Any]]:
        """Personas that the owner shares, and those that are shared with them."""
        mine = select(lent.c.thing_id).where(lent.c.kind == "persona", lent.c.owner_id == self._owner)
        shared = {(lender, thing) for thing, lender, _ in self._loans(connection, "persona")}
        shared.update((self._owner, thing) for thing in connection.execute(mine).scalars())
        owners = sorted({lender for lender, _ in shared})
        kept = [(one, it) for one in owners for it in personas_of(connection, one)]
        return [it for one, it in kept if (one, it.get("id")) in shared]

    def _keepers(self, connection: Connection, kind: Kind) -> set[str]:
        """Who of the lenders of a kind looks after the house."""
        return {lender_id for _, lender_id, _ in self._loans(connection, kind, roles=KEEPERS)}

    def _loans(
        self, connection: Connection, kind: Kind, *, roles: frozenset[str] = _SHARES
    ) -> list[tuple[str, str, str]]:
        """What of a kind is lent to the owner: its id, and its lender's id and name."""
        query = (
            select(lent.c.thing_id, lent.c.owner_id, people.c.name)
            .join(group_members, group_members.c.group_id == lent.c.group_id)
            .join(people, people.c.id == lent.c.owner_id)
            .where(self._mine(kind), people.c.role.in_(roles))
            .distinct()
        )
        return [(row.thing_id, row.owner_id, row.name) for row in connection.execute(query)]

    def _writable(self, connection: Connection, kind: Kind) -> set[tuple[str, str]]:
        query = select(lent.c.thing_id, lent.c.owner_id).join(
            group_members, group_members.c.group_id == lent.c.group_id
        )
        return {
            (row.thing_id, row.owner_id) for row in connection.execute(query.where(self._mine(kind), lent.c.writes))
        }

    def _mine(self, kind: Kind) -> ColumnElement[bool]:
        return and_(group_members.c.person_id == self._owner, lent.c.kind == kind, lent.c.owner_id != self._owner)


def lent_name(lender_id: str, service: str) -> str:
    """What a service is called among those of whoever it is lent to."""
    return f"{LENT}{sha256(f'{lender_id} {service}'.encode()).hexdigest()[:24]}"


def _only_to_read(lender: str) -> ParlourError:
    return ParlourError(
        f"{lender} shares this to read alone.", hint="Ask them to share it to write.", key="lent_to_read", lender=lender
    )
