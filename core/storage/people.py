"""People with accounts, their sessions, the one-time links that let them in, and what administrators did."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, insert, select, update

from core.bridge.pool import Listeners
from core.errors import ConflictError, NotFoundError
from core.storage.audit import note_act
from core.storage.base import LOCAL_OWNER
from core.storage.conversations import insert_owner
from core.storage.dialects import begins
from core.storage.lost_libraries import note_all_deleted
from core.storage.tables import api_keys, audit, group_members, invitations, lent, owners, people, sessions, sign_ins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.storage.database import Database

Role: TypeAlias = Literal["guest", "member", "administrator", "owner"]
ROLES: Final[tuple[Role, ...]] = ("guest", "member", "administrator", "owner")
KEEPERS: Final[frozenset[Role]] = frozenset({"administrator", "owner"})
"""The roles of those who look after the house."""
TERMINAL: Final = "terminal"
"""Who did something that was done in the terminal, in the audit."""
PASSKEY: Final = "passkey"
"""What passkeys are kept under, among the other ways in."""
_SESSION: Final = select(sessions).where(sessions.c.id == bindparam("session"))


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account.

    Args:
        id: Also that of the owner whose world is theirs; it never changes.
        name: As they wrote it.
        name_key: What tells names apart.
        password: A hash; "" for who signs in otherwise.
        limits: What they may use, where that is not what their role may: see `core.people.quotas`.
        created_at: Unix seconds.
        seen_at: When they were last there; `None` for never.
    """

    id: str
    name: str
    name_key: str
    role: Role
    password: str = field(repr=False)
    limits: Mapping[str, float]
    created_at: float
    seen_at: float | None


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in; `id` is the hash of what its cookie holds, `browser` what it says that it is."""

    id: str
    person_id: str
    browser: str
    created_at: float
    seen_at: float


@dataclass(frozen=True, slots=True)
class Invitation:
    """A one-time link; `person_id` names whose password it renews, where it makes nobody new."""

    id: str
    role: Role
    person_id: str | None
    made_by: str
    created_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class Act:
    """What an administrator did; names as they were then."""

    at: float
    by: str
    did: str
    to: str
    details: Mapping[str, Any]


class PeopleStore:
    """All people of an installation.

    Args:
        told: Called after each change of a role or of limits, and where somebody is gone.

    Attributes:
        roles: The role of each person by id, as the database last said: what decides in between reads no database.
        keepers: Who may use the machine itself: the local owner, and people who look after the house.
    """

    def __init__(self, database: Database, told: Listeners[[]] | None = None) -> None:
        self._database = database
        self._told = told or Listeners[[]]()
        self.roles: dict[str, Role] = {}
        self.keepers = {LOCAL_OWNER}

    # ---- people

    async def list(self) -> list[Person]:
        """All of them, the oldest first. Raises StorageError."""
        found = await self._database.read(lambda c: c.execute(select(people).order_by(people.c.created_at)).all())
        everybody = [_person(row) for row in found]
        for gone in set(self.roles) - {one.id for one in everybody}:
            self._forget(gone)
        return [self._kept(one) for one in everybody]

    async def count(self) -> int:
        """How many there are. Raises StorageError."""
        return await self._database.read(
            lambda c: int(c.execute(select(func.count()).select_from(people)).scalar_one())
        )

    async def get(self, person_id: str) -> Person:
        """One of them. Raises NotFoundError, StorageError."""
        return await self._one(select(people).where(people.c.id == person_id))

    async def named(self, name_key: str) -> Person | None:
        """Who has this name; `None` for nobody. Raises StorageError."""
        query = select(people).where(people.c.name_key == name_key)
        row = await self._database.read(lambda c: c.execute(query).first())
        return None if row is None else self._known(row)

    async def accept(self, invitation_id: str, person: Person, outside: tuple[str, str] | None = None) -> Person:
        """Make a person of an invitation, which counts no more.

        Args:
            outside: The issuer and the subject of the account elsewhere that they sign in by.

        Returns:
            Who was made, with the role of the invitation.

        Raises:
            ConflictError: key `name_taken`.
            NotFoundError: key `link_gone`: there is no such invitation, or its time is up.
            StorageError: The database failed.
        """

        def made(connection: Connection) -> Person:
            link = _live(connection, invitation_id)
            if link.person_id is not None:
                raise _gone()
            _check_free(connection, person.name_key)
            connection.execute(delete(invitations).where(invitations.c.id == invitation_id))
            new = _with_role(person, link.role)
            _insert(connection, new, outside)
            note_act(connection, new.name, "joined", new.name, {"role": new.role})
            return new

        return self._kept(await self._database.write(made))

    async def add(self, person: Person, by: str, outside: tuple[str, str] | None = None) -> Person:
        """Make a person; `outside` as for `accept`. Raises ConflictError (`name_taken`), StorageError."""

        def made(connection: Connection) -> Person:
            _check_free(connection, person.name_key)
            _insert(connection, person, outside)
            note_act(connection, by, "joined", person.name, {"role": person.role})
            return person

        return self._kept(await self._database.write(made))

    async def renew(self, invitation_id: str, password: str) -> Person:
        """Give the person whom a link names another password; the link counts no more.

        All that an intruder could come back by ends: sessions, passkeys and keys of programs.

        Raises:
            NotFoundError: key `link_gone`.
            StorageError: The database failed.
        """

        def renewed(connection: Connection) -> Person:
            link = _live(connection, invitation_id)
            if link.person_id is None:
                raise _gone()
            connection.execute(delete(invitations).where(invitations.c.person_id == link.person_id))
            _change(connection, link.person_id, password=password)
            connection.execute(delete(sessions).where(sessions.c.person_id == link.person_id))
            passkeys = sign_ins.c.person_id == link.person_id, sign_ins.c.issuer == PASSKEY
            connection.execute(delete(sign_ins).where(*passkeys))
            keys = api_keys.c.owner_id == link.person_id, api_keys.c.revoked_at.is_(None)
            connection.execute(update(api_keys).where(*keys).values(revoked_at=time.time()))
            person = _get(connection, link.person_id)
            note_act(connection, person.name, "recovered", person.name, {})
            return person

        return self._kept(await self._database.write(renewed))

    async def set_password(self, person_id: str, password: str, *, but: str = "") -> None:
        """Another password; all sessions end but one. Raises NotFoundError, StorageError."""

        def changed(connection: Connection) -> None:
            _change(connection, person_id, password=password)
            connection.execute(delete(sessions).where(sessions.c.person_id == person_id, sessions.c.id != but))

        await self._database.write(changed)

    async def rehash(self, person_id: str, was: str, password: str) -> None:
        """The same password, hashed anew; one that replaced it meanwhile stays. Raises StorageError."""
        this = update(people).where(people.c.id == person_id, people.c.password == was)
        await self._database.write(lambda connection: connection.execute(this.values(password=password)))

    async def set_role(self, person_id: str, role: Role, by: str) -> Person:
        """Another role; who looks after the house no more shares no models, and nothing with groups of others.

        Raises:
            ConflictError: key `last_owner`: nobody would be left who keeps the house.
            NotFoundError: There is no such person.
            StorageError: The database failed.
        """

        def changed(connection: Connection) -> Person:
            was = _get(connection, person_id)
            if was.role == "owner" != role:
                _check_another_owner(connection, person_id)
            _change(connection, person_id, role=role)
            if role not in KEEPERS:
                mine = select(group_members.c.group_id).where(group_members.c.person_id == person_id)
                beyond = (lent.c.kind == "model") | lent.c.group_id.not_in(mine)
                connection.execute(delete(lent).where(lent.c.owner_id == person_id, beyond))
            note_act(connection, by, "role", was.name, {"from": was.role, "to": role})
            return _with_role(was, role)

        person = self._kept(await self._database.write(changed))
        self._told()
        return person

    async def set_limits(self, person_id: str, limits: Mapping[str, float], by: str) -> None:
        """What a person may use. Raises NotFoundError, StorageError."""

        def changed(connection: Connection) -> None:
            was = _get(connection, person_id)
            _change(connection, person_id, limits=dict(limits))
            note_act(connection, by, "limits", was.name, dict(limits))

        await self._database.write(changed)
        self._told()

    async def remove(self, person_id: str, by: str) -> Person:
        """Take somebody's account away, with all sessions; what they own is there until it is deleted.

        Raises:
            ConflictError: key `last_owner`.
            NotFoundError: There is no such person.
            StorageError: The database failed.
        """

        def removed(connection: Connection) -> Person:
            was = _get(connection, person_id)
            if was.role == "owner":
                _check_another_owner(connection, person_id)
            connection.execute(delete(people).where(people.c.id == person_id))
            connection.execute(delete(api_keys).where(api_keys.c.owner_id == person_id))
            note_all_deleted(connection, person_id)
            connection.execute(delete(lent).where(lent.c.owner_id == person_id))
            note_act(connection, by, "deleted", was.name, {})
            return was

        gone = await self._database.write(removed)
        self._forget(person_id)
        self._told()
        return gone

    async def forget(self, person_id: str) -> None:
        """Delete the owner that somebody was, with all rows that are left. Raises StorageError."""
        await self._database.write(lambda c: c.execute(delete(owners).where(owners.c.id == person_id)))

    async def is_owner(self, person_id: str) -> bool:
        """Whether there is an owner with this id, with or without an account. Raises StorageError."""
        query = select(owners.c.id).where(owners.c.id == person_id)
        return await self._database.read(lambda c: c.execute(query).first() is not None)

    async def left_behind(self, beginning: str) -> list[str]:
        """Owners whose ids begin so, and who have no account any more. Raises StorageError."""
        query = select(owners.c.id).where(begins(owners.c.id, beginning), owners.c.id.not_in(select(people.c.id)))
        return list(await self._database.read(lambda c: c.execute(query).scalars().all()))

    # ---- sessions

    async def open_session(self, session: Session, instead_of: str = "") -> None:
        """Sign a browser in; the session that it had ends. Raises StorageError."""

        def opened(connection: Connection) -> None:
            connection.execute(delete(sessions).where(sessions.c.id == instead_of))
            values = {name: getattr(session, name) for name in Session.__slots__}
            connection.execute(insert(sessions).values(**values))
            _change(connection, session.person_id, seen_at=session.seen_at)

        await self._database.write(opened)

    async def session(self, session_id: str, seen_since: float) -> tuple[Session, Person] | None:
        """A session with whose it is; `None` where there is none, or it was not used for long. Raises StorageError."""

        def read(connection: Connection) -> tuple[Session, Person] | None:
            row = connection.execute(_SESSION, {"session": session_id}).first()
            if row is None or row.seen_at < seen_since:
                return None
            found = Session(row.id, row.person_id, row.browser, row.created_at, row.seen_at)
            return found, _get(connection, row.person_id)

        both = await self._database.read(read)
        if both is not None:
            self._kept(both[1])
        return both

    async def seen(self, session_id: str, person_id: str, now: float) -> None:
        """Note that a session is used. Raises StorageError."""

        def noted(connection: Connection) -> None:
            connection.execute(update(sessions).where(sessions.c.id == session_id).values(seen_at=now))
            connection.execute(update(people).where(people.c.id == person_id).values(seen_at=now))

        await self._database.write(noted, durable=False)

    async def sessions_of(self, person_id: str) -> list[Session]:
        """The sessions of a person, the latest used first. Raises StorageError."""
        query = select(sessions).where(sessions.c.person_id == person_id).order_by(sessions.c.seen_at.desc())
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [Session(row.id, row.person_id, row.browser, row.created_at, row.seen_at) for row in rows]

    async def end_session(self, person_id: str, session_id: str) -> None:
        """End one session of a person. Raises StorageError."""
        this = delete(sessions).where(sessions.c.id == session_id, sessions.c.person_id == person_id)
        await self._database.write(lambda c: c.execute(this))

    async def end_sessions(self, person_id: str, by: str) -> None:
        """End all sessions of a person. Raises NotFoundError, StorageError."""

        def ended(connection: Connection) -> None:
            note_act(connection, by, "sessions", _get(connection, person_id).name, {})
            connection.execute(delete(sessions).where(sessions.c.person_id == person_id))

        await self._database.write(ended)

    # ---- invitations

    async def invite(self, invitation: Invitation, *, replace: bool = False) -> None:
        """Keep a one-time link.

        Args:
            replace: Those like it count no more: for the same person, or for the first owner.

        Raises:
            StorageError: The database failed.
        """

        def kept(connection: Connection) -> None:
            if replace:
                connection.execute(
                    delete(invitations).where(
                        invitations.c.person_id.is_(invitation.person_id)
                        if invitation.person_id is None
                        else invitations.c.person_id == invitation.person_id,
                        invitations.c.made_by == invitation.made_by,
                    )
                )
            values = {name: getattr(invitation, name) for name in Invitation.__slots__}
            connection.execute(insert(invitations).values(**values))
            if invitation.made_by:
                to = _get(connection, invitation.person_id).name if invitation.person_id else ""
                did = "recovery" if invitation.person_id else "invited"
                note_act(connection, invitation.made_by, did, to, {"role": invitation.role})

        await self._database.write(kept)

    async def invitation(self, invitation_id: str) -> Invitation:
        """A link that still counts. Raises NotFoundError (`link_gone`), StorageError."""
        return await self._database.read(lambda connection: _live(connection, invitation_id))

    async def invitations(self) -> list[Invitation]:
        """All that still count, the latest first. Raises StorageError."""
        query = select(invitations).where(invitations.c.ends_at > time.time(), invitations.c.made_by != "")
        rows = await self._database.read(lambda c: c.execute(query.order_by(invitations.c.created_at.desc())).all())
        return [Invitation(*row) for row in rows]

    async def revoke(self, invitation_id: str, by: str) -> None:
        """Let a link count no more. Raises NotFoundError (`link_gone`), StorageError."""

        def revoked(connection: Connection) -> None:
            link = _live(connection, invitation_id)
            connection.execute(delete(invitations).where(invitations.c.id == invitation_id))
            note_act(connection, by, "revoked", "", {"role": link.role})

        await self._database.write(revoked)

    # ---- other ways in

    async def signed_in_as(self, issuer: str, subject: str) -> tuple[Person, dict[str, Any]] | None:
        """Who an issuer's account, or a passkey, belongs to, and what is kept of it. Raises StorageError."""
        query = select(sign_ins).where(sign_ins.c.issuer == issuer, sign_ins.c.subject == subject)

        def read(connection: Connection) -> tuple[Person, dict[str, Any]] | None:
            row = connection.execute(query).first()
            return None if row is None else (_get(connection, row.person_id), dict(row.data))

        return await self._database.read(read)

    async def add_sign_in(self, issuer: str, subject: str, person_id: str, data: Mapping[str, Any]) -> None:
        """Keep another way in. Raises ConflictError where it is somebody's already, StorageError."""
        values = {"issuer": issuer, "subject": subject, "person_id": person_id, "data": dict(data)}
        await self._database.write(lambda c: c.execute(insert(sign_ins).values(**values, created_at=time.time())))

    async def sign_ins_of(self, person_id: str, issuer: str) -> dict[str, dict[str, Any]]:
        """What is kept of a person's ways in by an issuer, by subject, the oldest first. Raises StorageError."""
        query = select(sign_ins.c.subject, sign_ins.c.data).where(
            sign_ins.c.person_id == person_id, sign_ins.c.issuer == issuer
        )
        rows = await self._database.read(lambda c: c.execute(query.order_by(sign_ins.c.created_at)).all())
        return {row.subject: dict(row.data) for row in rows}

    async def change_sign_in(self, issuer: str, subject: str, data: Mapping[str, Any]) -> None:
        """Keep something else of a way in. Raises StorageError."""
        this = update(sign_ins).where(sign_ins.c.issuer == issuer, sign_ins.c.subject == subject)
        await self._database.write(lambda c: c.execute(this.values(data=dict(data))))

    async def remove_sign_in(self, issuer: str, subject: str, person_id: str) -> None:
        """Forget a way in of a person's own. Raises StorageError."""
        this = delete(sign_ins).where(
            sign_ins.c.issuer == issuer, sign_ins.c.subject == subject, sign_ins.c.person_id == person_id
        )
        await self._database.write(lambda c: c.execute(this))

    # ---- the audit

    async def audit(self, most: int = 200) -> list[Act]:
        """What was done, the latest first. Raises StorageError."""
        query = select(audit).order_by(audit.c.id.desc()).limit(most)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [Act(*row[1:]) for row in rows]

    # ---- inside

    async def _one(self, query: Select[Any]) -> Person:
        row = await self._database.read(lambda c: c.execute(query).first())
        if row is None:
            raise _nobody()
        return self._known(row)

    def _known(self, row: Row[Any]) -> Person:
        return self._kept(_person(row))

    def _kept(self, person: Person) -> Person:
        self.roles[person.id] = person.role
        (self.keepers.add if person.role in KEEPERS else self.keepers.discard)(person.id)
        return person

    def _forget(self, person_id: str) -> None:
        self.roles.pop(person_id, None)
        self.keepers.discard(person_id)


def _person(row: Row[Any]) -> Person:
    return Person(*row)


def _with_role(person: Person, role: Role) -> Person:
    return replace(person, role=role)


def _get(connection: Connection, person_id: str) -> Person:
    row = connection.execute(select(people).where(people.c.id == person_id)).first()
    if row is None:
        raise _nobody()
    return _person(row)


def _insert(connection: Connection, person: Person, outside: tuple[str, str] | None = None) -> None:
    insert_owner(connection, person.id)
    connection.execute(insert(people).values(**{name: getattr(person, name) for name in Person.__slots__}))
    if outside is not None:
        issuer, subject = outside
        values: dict[str, Any] = {"issuer": issuer, "subject": subject, "person_id": person.id, "data": {}}
        connection.execute(insert(sign_ins).values(**values, created_at=person.created_at))


def _change(connection: Connection, person_id: str, **values: Any) -> None:
    if not connection.execute(update(people).where(people.c.id == person_id).values(**values)).rowcount:
        raise _nobody()


def _check_free(connection: Connection, name_key: str) -> None:
    if connection.execute(select(people.c.id).where(people.c.name_key == name_key)).first() is not None:
        raise ConflictError("This name is taken.", hint="Choose another one.", key="name_taken")


def _check_another_owner(connection: Connection, person_id: str) -> None:
    others = select(people.c.id).where(people.c.role == "owner", people.c.id != person_id)
    if connection.execute(others).first() is None:
        hint = "Make somebody else an owner first."
        raise ConflictError("There must be an owner.", hint=hint, key="last_owner")


def _live(connection: Connection, invitation_id: str) -> Invitation:
    row = connection.execute(select(invitations).where(invitations.c.id == invitation_id)).first()
    if row is None or row.ends_at <= time.time():
        raise _gone()
    return Invitation(*row)


def _nobody() -> NotFoundError:
    return NotFoundError("There is no such person.", key="no_person")


def _gone() -> NotFoundError:
    return NotFoundError("This link leads nowhere any more.", hint="Ask for a new one.", key="link_gone")
