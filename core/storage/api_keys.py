"""Keys that let an owner's programs in, and what was used with each, month by month.

A key holds 256 random bits; its hash finds it, and the key itself is shown once and kept nowhere.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, insert, select, update

from core.errors import ConflictError, NotFoundError, SettingsError
from core.messages.invisible import plain_line
from core.storage.base import new_id
from core.storage.conversations import clean, insert_owner
from core.storage.dialects import upsert
from core.storage.sealing import end_of
from core.storage.tables import api_keys, api_usage, app_tokens
from core.storage.use import count_use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.dialects.postgresql import Insert

    from core.messages.message import Usage
    from core.storage.database import Database

Scope: TypeAlias = Literal["chat", "files", "embeddings", "embed", "search", "ask"]

PREFIX: Final = "pk-parlour-"
"""What every key begins with, so that whoever finds one knows what it is for."""
SCOPES: Final[tuple[Scope, ...]] = ("chat", "files", "embeddings", "embed")
"""What a key may be for. One for `embed` stands in web pages, where everybody reads it, so it is for nothing else.

`search` and `ask` are what a program is let in for at `/mcp`, which has no key."""
MOST_KEYS: Final = 100
"""Keys of one owner, revoked ones included; beyond that the oldest revoked one is forgotten."""
LONGEST_NAME: Final = 60
_MOST_MODELS: Final = 100
_LONGEST_MODEL: Final = 200
_FORM: Final = re.compile(re.escape(PREFIX) + r"[\w-]{43}", re.ASCII)
_TRUE_FOR: Final = 1.0  # seconds
_REMEMBERED: Final = 1_000
_NOTED_EACH: Final = 60.0  # seconds: the time of the last use is no closer than that


@dataclass(frozen=True, slots=True)
class App:
    """A program that somebody let in at a page, which shows tokens in place of a key.

    Args:
        id: What it is known by: its `client_id`.
        resource: The address that its tokens are for, and no other.
        back: Where it was sent back to, as a person reads it: a host, or the name of a scheme.
    """

    id: str
    resource: str
    back: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is kept, or a program that somebody let in.

    Args:
        id: Its own; no secret.
        name: What its owner calls it.
        key_end: Its last four letters.
        scopes: What it is for.
        models: The models and agents that it may use, by their ids; `None` for all.
        budget: US dollars a month; `None` for no limit.
        created_at: In Unix seconds, as all times here.
        expires_at: From when on it no longer counts; `None` for never.
        used_at: When it was shown last, give or take a minute.
        revoked_at: When it was revoked.
        requests: How many came with it this month.
        tokens: How many they took.
        cost: What they cost, in US dollars, as far as prices are known.
        app: The program that was let in; `None` for a key.
    """

    id: str
    owner_id: str
    name: str
    key_end: str
    scopes: tuple[Scope, ...]
    models: tuple[str, ...] | None
    budget: float | None
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None
    revoked_at: float | None = None
    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    app: App | None = None

    def is_over(self, now: float) -> bool:
        """Whether its time is up."""
        return self.expires_at is not None and now >= self.expires_at

    def may_use(self, model: str) -> bool:
        """Whether it may use a model or an agent, by its id."""
        return self.models is None or model in self.models

    @property
    def is_spent(self) -> bool:
        """Whether this month's budget is used up."""
        return self.budget is not None and self.cost >= self.budget


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a key shall be.

    Args:
        name: Not empty.
        scopes: At least one.
        models: As of `ApiKey`.
        budget: As of `ApiKey`.
        expires_at: As of `ApiKey`.

    Raises:
        SettingsError: key `api_key_unnamed`, `api_key_scopes`, `api_key_embed` or `api_key_value`: it cannot be so.
    """

    name: str
    scopes: tuple[Scope, ...] = ("chat",)
    models: tuple[str, ...] | None = None
    budget: float | None = None
    expires_at: float | None = None

    @classmethod
    def checked(cls, given: dict[str, Any]) -> NewKey:
        """A key of what somebody typed: `name`, `scopes`, `models`, `budget` and `days`. Raises as the class."""
        name = given.get("name")
        plain = plain_line(clean(name), " ").strip()[:LONGEST_NAME] if isinstance(name, str) else ""
        if not plain:
            raise SettingsError("A key needs a name.", hint="Type one.", key="api_key_unnamed")
        wanted = cast("Sequence[Any]", given["scopes"]) if isinstance(given.get("scopes"), list | tuple) else ("chat",)
        scopes: tuple[Scope, ...] = tuple(one for one in SCOPES if one in wanted)
        if not scopes or len(scopes) != len(set(map(str, wanted))):
            known = ", ".join(SCOPES)
            raise SettingsError("This is nothing that a key is for.", hint=f"Known: {known}.", key="api_key_scopes")
        days, budget = _number(given.get("days")), _number(given.get("budget"))
        expires = time.time() + days * 86_400 if days is not None else None
        models = _models(given.get("models"))
        if "embed" in scopes and (len(scopes) > 1 or models is None):
            hint = "Name who answers, such as a persona, and choose nothing else."
            raise SettingsError("Everybody reads the key of a web page.", hint=hint, key="api_key_embed")
        return cls(plain, scopes, models, budget, expires)


def _adding_use() -> Insert:
    adding = upsert(api_usage)
    counted = ("requests", "prompt_tokens", "completion_tokens", "cost")
    sums = {name: api_usage.c[name] + adding.excluded[name] for name in counted}
    return adding.on_conflict_do_update(index_elements=["key_id", "month"], set_=sums)


# Made once: that takes longer than to run them.
_ADD_USE: Final = _adding_use()
_MINE: Final = (api_keys.c.id == bindparam("mine")) & (api_keys.c.owner_id == bindparam("whose"))
_STAYS: Final = select(api_keys.c.id).where(_MINE).with_for_update(read=True, key_share=True)
_NOT_LATELY: Final = func.coalesce(api_keys.c.used_at, 0.0) < bindparam("before")
_USED_AT: Final = update(api_keys).where(_MINE & _NOT_LATELY).values(used_at=bindparam("now"))


class ApiKeyStore:
    """The keys of one owner. What is somebody else's does not exist.

    Args:
        owner: Whose they are; need not be known yet.
        every: Told when a key no longer counts.
    """

    def __init__(self, database: Database, owner: str, every: AllApiKeys) -> None:
        self._database = database
        self._owner = owner
        self._every = every

    async def create(self, wanted: NewKey) -> tuple[str, ApiKey]:
        """A key, to be shown once, and what is kept of it.

        Raises:
            ConflictError: key `api_keys_many`: there are `MOST_KEYS` already; `api_key_taken`: one has that name.
            StorageError: It cannot be kept.
        """
        key = PREFIX + secrets.token_urlsafe(32)
        fresh = ApiKey(
            new_id(),
            self._owner,
            wanted.name,
            end_of(key),
            wanted.scopes,
            wanted.models,
            wanted.budget,
            time.time(),
            wanted.expires_at,
        )

        def keep(connection: Connection) -> None:
            insert_owner(connection, self._owner)
            make_room(connection, self._owner, fresh.name)
            insert_key(connection, fresh, print_of(key))

        await self._database.write(keep)
        return key, fresh

    async def list(self) -> list[ApiKey]:
        """All of them with what they used this month, the newest first; revoked ones come last.

        A program that was let in and has not come for so long that its tokens are over is none of them any more.
        """
        query = with_usage().where(api_keys.c.owner_id == self._owner, ~is_stale(time.time()))
        rows = await self._database.read(lambda c: c.execute(query).all())
        return sorted(map(key_record, rows), key=lambda one: (one.revoked_at is not None, -one.created_at))

    async def revoke(self, key_id: str) -> None:
        """Let nobody in with it any more. Raises NotFoundError."""
        mine = (api_keys.c.id == key_id) & (api_keys.c.owner_id == self._owner) & api_keys.c.revoked_at.is_(None)
        change = update(api_keys).where(mine).values(revoked_at=time.time())
        tokens = delete(app_tokens).where(app_tokens.c.key_id == key_id, app_tokens.c.owner_id == self._owner)

        def revoked(connection: Connection) -> int:
            connection.execute(tokens)
            return connection.execute(change).rowcount

        if not await self._database.write(revoked):
            raise NotFoundError("There is no such key.", kind="api_key")
        self._every.forget()

    async def note_use(self, key_id: str, usage: Usage | None, *, questions: int = 0) -> None:
        """Add what a request took to this month's account of its key, and to what its owner used.

        A key that is gone has none.

        Args:
            questions: 1 for a question, which counts towards its owner's limit of them.
        """
        now = time.time()
        fresh = {
            "key_id": key_id,
            "month": _month(now),
            "owner_id": self._owner,
            "requests": 1,
            "prompt_tokens": usage.prompt_tokens if usage is not None else 0,
            "completion_tokens": usage.completion_tokens if usage is not None else 0,
            "cost": (usage.cost or 0.0) if usage is not None else 0.0,
        }
        mine = {"mine": key_id, "whose": self._owner}

        def note(connection: Connection) -> None:
            if connection.execute(_STAYS, mine).first() is None:
                return
            connection.execute(_ADD_USE, fresh)
            connection.execute(_USED_AT, {**mine, "before": now - _NOTED_EACH, "now": now})
            tokens = usage.total_tokens if usage is not None else 0
            count_use(connection, self._owner, now, messages=questions, tokens=tokens, cost=fresh["cost"])

        await self._database.write(note, durable=False, holds=True)


class AllApiKeys:
    """The keys of all owners: the one place that knows whose a key is.

    What it found is taken for true for a second: a key that is revoked in this process counts no longer at once, one
    that another process revokes within that second.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: OrderedDict[str, tuple[float, ApiKey]] = OrderedDict()  # by the print, with when it was read
        self._changes = 0

    async def owner_of_key(self, key: str) -> ApiKey | None:
        """Whose a key is, and what it may do; `None` for one that is nobody's, revoked or over. Raises StorageError."""
        if _FORM.fullmatch(key) is None:
            return None
        mark, now = print_of(key), time.monotonic()
        read, found = self._found.get(mark, (-_TRUE_FOR, None))
        if found is None or now - read >= _TRUE_FOR:
            changes = self._changes
            query = with_usage().where(api_keys.c.print == mark)
            row = await self._database.read(lambda c: c.execute(query).first())
            found = key_record(row) if row is not None else None
            if found is not None and changes == self._changes:
                self._remember(mark, now, found)
        return found if found is not None and found.revoked_at is None and not found.is_over(time.time()) else None

    def forget(self) -> None:
        """Read each key anew: one was revoked."""
        self._changes += 1
        self._found.clear()

    def _remember(self, mark: str, now: float, found: ApiKey) -> None:
        self._found[mark] = (now, found)
        self._found.move_to_end(mark)
        while len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)


_KEPT: Final = ("id", "owner_id", "name", "key_end", "budget", "created_at", "expires_at", "used_at", "revoked_at")


def make_room(connection: Connection, person_id: str, name: str = "") -> None:
    """Make sure that one more key can be kept.

    Args:
        name: What it is called, which no other key may be; "" for a program, whose names may be the same.

    Raises:
        ConflictError: key `api_keys_many` or `api_key_taken`.
    """
    mine = api_keys.c.owner_id == person_id
    connection.execute(delete(api_keys).where(mine, is_stale(time.time())))
    columns = (api_keys.c.id, api_keys.c.name, api_keys.c.revoked_at, api_keys.c.app)
    query = select(*columns).where(mine).order_by(api_keys.c.revoked_at, api_keys.c.created_at)
    there = connection.execute(query).all()
    live = [one for one in there if one.revoked_at is None]
    if name and any(one.name.casefold() == name.casefold() and one.app is None for one in live):
        hint = "Choose another name."
        raise ConflictError(f"There is a key {name!r} already.", hint=hint, key="api_key_taken", name=name)
    if len(live) >= MOST_KEYS:
        hint = "Revoke one that is not needed any more."
        raise ConflictError("There are too many keys.", hint=hint, key="api_keys_many", most=MOST_KEYS)
    if len(there) >= MOST_KEYS:
        oldest = next(one.id for one in there if one.revoked_at is not None)
        connection.execute(delete(api_keys).where(api_keys.c.id == oldest))


def insert_key(connection: Connection, key: ApiKey, mark: str) -> None:
    """Keep a key.

    Args:
        mark: Its print.
    """
    values = {name: getattr(key, name) for name in _KEPT}
    models = list(key.models) if key.models is not None else None
    app = asdict(key.app) if key.app is not None else None
    values |= {"scopes": list(key.scopes), "models": models, "app": app, "print": mark}
    connection.execute(insert(api_keys).values(values))


def print_of(key: str) -> str:
    """Enough for a key of 256 random bits: it cannot be guessed, however fast the function is."""
    return sha256(key.encode("utf-8", "replace")).hexdigest()


def _month(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m")


def is_stale(now: float) -> ColumnElement[bool]:
    """Whether a program that was let in did not fetch its first tokens, or let the last ones run out."""
    return api_keys.c.app.is_not(None) & (api_keys.c.expires_at <= now) & api_keys.c.revoked_at.is_(None)


def with_usage() -> Any:
    """Keys, each with what was used of it this month."""
    used: ColumnElement[bool] = (api_usage.c.key_id == api_keys.c.id) & (api_usage.c.month == _month(time.time()))
    return select(
        api_keys, api_usage.c.requests, api_usage.c.prompt_tokens, api_usage.c.completion_tokens, api_usage.c.cost
    ).select_from(api_keys.outerjoin(api_usage, used))


def key_record(row: Row[Any]) -> ApiKey:
    """A row of these as it is handed out."""
    key = ApiKey(
        **{name: getattr(row, name) for name in _KEPT},
        scopes=tuple(row.scopes),
        models=tuple(row.models) if row.models is not None else None,
        app=App(**row.app) if row.app is not None else None,
    )
    if row.requests is None:
        return key
    tokens = row.prompt_tokens + row.completion_tokens
    return replace(key, requests=row.requests, tokens=tokens, cost=row.cost)


def _number(given: object) -> float | None:
    """A number above zero; `None` where none was given. Raises SettingsError."""
    if given is None or given == "":
        return None
    try:
        number = float(cast("Any", given))
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < 1e9:
        raise SettingsError("This is no number above zero.", hint="Type a number.", key="api_key_value")
    return number


def _models(given: object) -> tuple[str, ...] | None:
    """Ids of models and agents; `None` for all. Raises SettingsError."""
    if given is None:
        return None
    names = cast("Sequence[object]", given) if isinstance(given, list | tuple) else ()
    texts = tuple(dict.fromkeys(one for one in names if isinstance(one, str) and 0 < len(one) <= _LONGEST_MODEL))
    if not texts or len(texts) != len(names) or len(texts) > _MOST_MODELS:
        raise SettingsError("These are no models.", hint="Name at least one, or let it use all.", key="api_key_value")
    return texts
