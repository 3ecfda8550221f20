"""How much owners used on each day: questions, tokens and money, in sums that outlive the conversations."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import bindparam, func, select

from core.errors import TooManyRequestsError
from core.storage.base import LOCAL_OWNER
from core.storage.conversations import insert_owner
from core.storage.database import first_of, send
from core.storage.dialects import upsert
from core.storage.tables import files, group_members, groups, people, used

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from core.messages.message import Usage
    from core.storage.database import Database
    from core.storage.people import Role


@dataclass(frozen=True, slots=True)
class Use:
    """Sums of somebody's use.

    Args:
        messages: Questions that were answered.
        tokens: Of the model calls of their replies.
        cost: In US dollars, as far as prices are known.
        bytes: Of files that are there now.
    """

    messages: int = 0
    tokens: int = 0
    cost: float = 0.0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What somebody may use; 0 for no limit.

    Args:
        messages: Questions in a day (UTC).
        tokens: Of the model calls of their replies, in a month.
        cost: In US dollars, in a month.
    """

    messages: float = 0
    tokens: float = 0
    cost: float = 0


@dataclass(frozen=True, slots=True)
class Given:
    """What administrators set for somebody: their own limits, and the most generous of their groups for the rest.

    Args:
        role: `None` without an account.
        own: By name, as `Limits` has them, and `megabytes` of stored files; 0 for no limit.
        of_groups: The same.
    """

    role: Role | None = None
    own: Mapping[str, float] = field(default_factory=dict[str, float])
    of_groups: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def megabytes(self) -> float | None:
        """Of stored files; 0 for no limit, `None` where the installation's holds."""
        return {**self.of_groups, **self.own}.get("megabytes")


@dataclass(frozen=True, slots=True)
class UsualLimits:
    """Those of a role; who looks after the house has none."""

    guest: Limits = Limits()
    member: Limits = Limits()

    def of(self, given: Given) -> Limits:
        """Those of somebody: their own, else their groups', else these; without an account they are a guest."""
        usual = {"guest": self.guest, None: self.guest, "member": self.member}.get(given.role)
        if usual is None:  # who looks after the house has only limits of their own
            usual, known = Limits(), given.own
        else:
            known = {**given.of_groups, **given.own}
        return replace(usual, **{name: known[name] for name in Limits.__slots__ if name in known})


UNLIMITED = UsualLimits()


def day_of(seconds: float) -> str:
    """The day (UTC) of a time in Unix seconds, as it is kept: `2026-11-28`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


_ADDING = upsert(used)
_ADD = _ADDING.on_conflict_do_update(
    index_elements=["owner_id", "day"],
    set_={
        "messages": used.c.messages + _ADDING.excluded.messages,
        "tokens": used.c.tokens + _ADDING.excluded.tokens,
        "cost": used.c.cost + _ADDING.excluded.cost,
    },
)


def count_use(connection: Connection, person_id: str, at: float, **more: Any) -> None:
    """Add to what somebody used, inside a transaction.

    Args:
        at: When, in Unix seconds.
        more: `messages`, `tokens` and `cost`, as far as there are any.
    """
    values = {"messages": 0, "tokens": 0, "cost": 0.0, **more}
    send(connection, _ADD, {"owner_id": person_id, "day": day_of(at), **values})


def check_use(connection: Connection, person_id: str, at: float, usual: UsualLimits, *, counted: int = 0) -> None:
    """Whether somebody may ask once more, inside the transaction that stores the question.

    Args:
        counted: How many questions this transaction has counted already: whoever counts first has its owner's other
            questions wait, so that no two pass as the last one.

    Raises:
        TooManyRequestsError: key `quota_messages`, `quota_tokens` or `quota_cost`.
    """
    if person_id == LOCAL_OWNER:
        return
    limits = usual.of(given_to(connection, person_id))
    if limits == Limits():
        return
    today = day_of(at)
    month = connection.execute(_SINCE, {"person": person_id, "day": f"{today[:7]}-01"}).one()
    day = connection.execute(_SINCE, {"person": person_id, "day": today}).one()
    for name, spent, most, ends in (
        ("messages", (day[0] or 0) - counted, limits.messages, _next_day(at)),
        ("tokens", month[1], limits.tokens, _next_month(at)),
        ("cost", month[2], limits.cost, _next_month(at)),
    ):
        if most and (spent or 0) >= most:
            seconds = max(1, math.ceil(ends - at))
            hours = math.ceil(seconds / 3600)
            raise TooManyRequestsError(
                f"The limit of {most:g} is reached ({name}).",
                hint=f"It begins anew in {hours} hour{'s' if hours > 1 else ''}; an administrator can raise it.",
                key=f"quota_{name}",
                retry_after=seconds,
                limit=f"{most:,g}",
                hours=hours,
                days=math.ceil(seconds / 86_400),
            )


def given_to(connection: Connection, person_id: str) -> Given:
    """What administrators set for somebody, inside a transaction."""
    row = first_of(connection, _ROLE, {"person": person_id})
    if row is None:
        return Given()
    of_groups: dict[str, float] = {}
    for limits in connection.execute(_OF_GROUPS, {"person": person_id}).scalars():
        for name, most in cast("dict[str, float]", limits).items():
            known = of_groups.get(name, most)
            of_groups[name] = 0 if 0 in {most, known} else max(most, known)
    return Given(row.role, row.limits, of_groups)


def _next_day(at: float) -> float:
    day = datetime.fromtimestamp(at, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (day + timedelta(days=1)).timestamp()


def _next_month(at: float) -> float:
    first = datetime.fromtimestamp(at, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1).timestamp()


_ROLE = select(people.c.role, people.c.limits).where(people.c.id == bindparam("person"))
_OF_GROUPS = (
    select(groups.c.limits)
    .join(group_members, group_members.c.group_id == groups.c.id)
    .where(group_members.c.person_id == bindparam("person"))
)
_SINCE = select(func.sum(used.c.messages), func.sum(used.c.tokens), func.sum(used.c.cost)).where(
    used.c.owner_id == bindparam("person"), used.c.day >= bindparam("day")
)


class UseStore:
    """The sums of all owners.

    Args:
        limits: How much may be asked.
    """

    def __init__(self, database: Database, limits: UsualLimits = UNLIMITED) -> None:
        self._database = database
        self._limits = limits

    async def check(self, person_id: str) -> None:
        """Whether somebody may ask once more, for what is answered without a run. Raises as `check_use`."""
        if person_id != LOCAL_OWNER:
            await self._database.read(lambda c: check_use(c, person_id, time.time(), self._limits))

    async def add(self, person_id: str, usage: Usage | None, *, questions: int) -> None:
        """Add to what somebody used, for what is answered without a run. Raises StorageError."""
        tokens = usage.total_tokens if usage is not None else 0
        cost = (usage.cost or 0.0) if usage is not None else 0.0

        def note(connection: Connection) -> None:
            insert_owner(connection, person_id)
            count_use(connection, person_id, time.time(), messages=questions, tokens=tokens, cost=cost)

        await self._database.write(note, durable=False, holds=True)

    async def since(self, day: str) -> dict[str, Use]:
        """What everybody used from a day on, by id. Raises StorageError."""
        summed = (
            select(used.c.owner_id, func.sum(used.c.messages), func.sum(used.c.tokens), func.sum(used.c.cost))
            .where(used.c.day >= day)
            .group_by(used.c.owner_id)
        )
        sizes = select(files.c.owner_id, func.sum(files.c.size)).group_by(files.c.owner_id)

        def read(connection: Connection) -> dict[str, Use]:
            sums = {row[0]: row[1:] for row in connection.execute(summed)}
            held = {row[0]: int(row[1] or 0) for row in connection.execute(sizes)}
            return {one: Use(*sums.get(one, (0, 0, 0.0)), held.get(one, 0)) for one in {*sums, *held}}

        return await self._database.read(read)
