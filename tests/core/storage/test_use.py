"""What owners use is summed up by the day, and a limit refuses the question that comes after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import TooManyRequestsError
from core.messages.message import Message, Usage
from core.people.people import new_person
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.people import PeopleStore, Role
from core.storage.runs import AllRuns
from core.storage.use import Limits, UseStore, UsualLimits

pytestmark = pytest.mark.anyio
USUAL = UsualLimits(guest=Limits(messages=2), member=Limits(tokens=100, cost=1.5))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "parlour.db")
    yield opened
    await opened.aclose()


async def asked(database: Database, who: str, tokens: int = 0, cost: float = 0.0) -> str:
    """A question of somebody's in a new conversation, answered."""
    talk = await ConversationStore(database, who).create("")
    runs = AllRuns(database, USUAL).of(who)
    run, _ = await runs.create(talk.id, user=[Message("user", "Why?")], parent_id=None, worker="1@1.00")
    usage = Usage(total_tokens=tokens, cost=cost)
    await runs.finish(run.id, "complete", epoch=1, parts=[Message("assistant", "So.")], usage=usage)
    return talk.id


async def refused(database: Database, who: str) -> dict[str, Any]:
    with pytest.raises(TooManyRequestsError) as error:
        await asked(database, who)
    assert error.value.retry_after > 0
    return {"key": error.value.words_key, "limit": error.value.details["limit"]}


async def test_deleting_conversations_gives_no_question_back_and_two_at_once_do_not_pass_both(
    database: Database,
) -> None:
    talk = await asked(database, "b-guest")
    await ConversationStore(database, "b-guest").delete(talk)
    done = await asyncio.gather(*(asked(database, "b-guest") for _ in range(5)), return_exceptions=True)
    assert [isinstance(one, TooManyRequestsError) for one in done].count(False) == 1
    assert await refused(database, "b-guest") == {"key": "quota_messages", "limit": "2"}
    assert (await UseStore(database).since("2000"))["b-guest"].messages == 2


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ({"tokens": 100}, {"key": "quota_tokens", "limit": "100"}),
        ({"cost": 1.5}, {"key": "quota_cost", "limit": "1.5"}),
    ],
)
async def test_a_member_is_stopped_by_tokens_and_by_money(
    database: Database, used: dict[str, Any], expected: dict[str, str]
) -> None:
    who = (await PeopleStore(database).add(new_person("Mara", "member"), "terminal")).id
    await asked(database, who)
    await asked(database, who, **used)
    assert await refused(database, who) == expected


@pytest.mark.parametrize("role", ["administrator", "owner", None])
async def test_who_looks_after_the_house_and_the_owner_of_the_machine_have_no_limits(
    database: Database, role: Role | None
) -> None:
    who = (await PeopleStore(database).add(new_person("Ann", role), "terminal")).id if role else "local"
    for _ in range(3):
        await asked(database, who, tokens=1000, cost=9.0)


async def test_a_persons_own_limit_outranks_the_usual_one_and_none_lifts_it(database: Database) -> None:
    people = PeopleStore(database)
    who = (await people.add(new_person("Tom", "guest"), "terminal")).id
    await people.set_limits(who, {"messages": 0}, "terminal")
    for _ in range(3):
        await asked(database, who)
    await people.set_limits(who, {"messages": 3}, "terminal")
    assert await refused(database, who) == {"key": "quota_messages", "limit": "3"}
