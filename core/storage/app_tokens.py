"""What programs show that somebody let in at a page: a code once, and then tokens that soon run out and are renewed.

All of them hold 256 random bits; their prints alone are kept. A code or a token to renew by counts once: where one
comes again, somebody else has it too, and what was given for it ends.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from sqlalchemy import Connection, delete, insert, select, update

from core.storage.api_keys import ApiKey, App, insert_key, key_record, make_room, print_of, with_usage
from core.storage.base import new_id
from core.storage.conversations import insert_owner
from core.storage.tables import api_keys, app_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.storage.api_keys import AllApiKeys, Scope
    from core.storage.database import Database

Kind: TypeAlias = Literal["code", "access", "refresh"]

ACCESS_SECONDS: Final = 3600
"""How long a program may ask by one token."""
_CODE_SECONDS: Final = 60.0
_UNUSED_SECONDS: Final = 30 * 86_400.0  # after which a program has to be let in anew
_BEGINNINGS: Final[Mapping[Kind, str]] = {
    "code": "ac-parlour-",
    "access": "at-parlour-",
    "refresh": "rt-parlour-",
}
ACCESS_PREFIX: Final = _BEGINNINGS["access"]
"""What every token begins with that a program asks by."""
_LONGEST: Final = 100
_MOST_TOKENS: Final = 1_000  # of one program: one that renews them each hour has some seven hundred in a month


@dataclass(frozen=True, slots=True)
class NewApp:
    """A program that somebody lets in.

    Args:
        name: What it calls itself.
        app: Who it is.
        scopes: What for.
        asked: What has to come with the code again: `redirect`, `given` (whether it was named), `challenge`.
    """

    name: str
    app: App
    scopes: tuple[Scope, ...]
    asked: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeptToken:
    """A code or a token as it is kept.

    Args:
        key: The program that it was given to, with what for.
        app: The same program.
        is_spent: Whether it was used already, which it may be once.
        about: What was kept with it.
    """

    kind: Kind
    key: ApiKey
    app: App
    expires_at: float
    is_spent: bool
    about: Mapping[str, Any]

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What it is for: what its program was let in for, or less."""
        wanted: Sequence[str] = self.about.get("scopes", self.key.scopes)
        return tuple(one for one in self.key.scopes if one in wanted)


@dataclass(frozen=True, slots=True)
class Given:
    """Tokens, to be handed out once.

    Args:
        access: To ask by.
        refresh: To fetch the next two by.
        seconds: How long the first is good.
    """

    access: str
    refresh: str
    seconds: int
    scopes: tuple[Scope, ...]


class AppStore:
    """The programs of one owner. They are listed, and shut out, among the owner's keys.

    Args:
        owner: Whose they are; need not be known yet.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def let_in(self, wanted: NewApp) -> str:
        """The code by which a program gets its tokens, within a minute.

        Raises:
            ConflictError: key `api_keys_many`.
            StorageError: It cannot be kept.
        """
        now, code = time.time(), _fresh("code")
        key = ApiKey(new_id(), self._owner, wanted.name, "", wanted.scopes, None, None, now, now + _CODE_SECONDS)
        key = replace(key, app=wanted.app)

        def keep(connection: Connection) -> None:
            insert_owner(connection, self._owner)
            make_room(connection, self._owner)
            insert_key(connection, key, f"app {key.id}")  # nobody shows it: the tokens are shown
            _keep(connection, key, "code", code, now + _CODE_SECONDS, wanted.asked)

        await self._database.write(keep)
        return code


class AllApps:
    """The codes and tokens of all owners: the one place that knows whose each is.

    Args:
        keys: Told when a program is shut out.
    """

    def __init__(self, database: Database, keys: AllApiKeys) -> None:
        self._database = database
        self._keys = keys

    async def find(self, kind: Kind, token: str) -> KeptToken | None:
        """What is kept of a token; `None` where it is nobody's, its time is up, or its program was shut out."""
        if not token.startswith(_BEGINNINGS[kind]) or len(token) > _LONGEST:
            return None
        return await self._database.read(lambda connection: _found(connection, kind, token, time.time()))

    async def exchange(self, kind: Literal["code", "refresh"], token: str, scopes: Sequence[str]) -> Given | None:
        """Two tokens for a code, or for the one that they are renewed by; `None` where it counts no more.

        Args:
            scopes: What the first shall be for: no more than the program was let in for.
        """
        fresh, now = Given(_fresh("access"), _fresh("refresh"), ACCESS_SECONDS, ()), time.time()

        def change(connection: Connection) -> Given | None:
            found = _found(connection, kind, token, now)
            if found is None:
                return None
            this = app_tokens.c.print == print_of(token)
            spending = update(app_tokens).where(this, app_tokens.c.spent_at.is_(None)).values(spent_at=now)
            if not connection.execute(spending).rowcount:  # it comes a second time
                _shut_out(connection, found.key.id, now)
                return None
            _make_room(connection, found.key.id, now)
            may = [one for one in found.key.scopes if one in scopes]
            until = now + _UNUSED_SECONDS
            _keep(connection, found.key, "access", fresh.access, now + ACCESS_SECONDS, {"scopes": may})
            _keep(connection, found.key, "refresh", fresh.refresh, until, {})
            connection.execute(update(api_keys).where(api_keys.c.id == found.key.id).values(expires_at=until))
            return replace(fresh, scopes=tuple(may))

        given = await self._database.write(change)
        if given is None:
            self._keys.forget()
        return given

    async def end(self, key_id: str) -> None:
        """Shut a program out. Raises StorageError."""
        await self._database.write(lambda connection: _shut_out(connection, key_id, time.time()))
        self._keys.forget()


def _fresh(kind: Kind) -> str:
    return _BEGINNINGS[kind] + secrets.token_urlsafe(32)


def _keep(
    connection: Connection, key: ApiKey, kind: Kind, token: str, expires_at: float, about: Mapping[str, Any]
) -> None:
    values = {"print": print_of(token), "key_id": key.id, "owner_id": key.owner_id, "kind": kind}
    connection.execute(insert(app_tokens).values(**values, expires_at=expires_at, about=dict(about)))


def _make_room(connection: Connection, key_id: str, now: float) -> None:
    """Forget what is over, and of what a program has beyond all reason what would be over first."""
    mine = app_tokens.c.key_id == key_id
    connection.execute(delete(app_tokens).where(mine, app_tokens.c.expires_at <= now))
    last_first = select(app_tokens.c.print).where(mine).order_by(app_tokens.c.expires_at.desc())
    beyond = last_first.offset(_MOST_TOKENS - 2)  # two come
    connection.execute(delete(app_tokens).where(app_tokens.c.print.in_(beyond)))


def _found(connection: Connection, kind: Kind, token: str, now: float) -> KeptToken | None:
    row = connection.execute(
        select(app_tokens).where(app_tokens.c.print == print_of(token), app_tokens.c.kind == kind)
    ).first()
    of_key = with_usage().where(api_keys.c.id == row.key_id) if row is not None else None
    kept = connection.execute(of_key).first() if of_key is not None else None
    if row is None or kept is None:
        return None
    key = key_record(kept)
    if key.app is None or key.revoked_at is not None or row.expires_at <= now:
        return None
    return KeptToken(kind, key, key.app, row.expires_at, row.spent_at is not None, row.about)


def _shut_out(connection: Connection, key_id: str, now: float) -> None:
    live = api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)
    connection.execute(update(api_keys).where(*live).values(revoked_at=now))
    connection.execute(delete(app_tokens).where(app_tokens.c.key_id == key_id))
