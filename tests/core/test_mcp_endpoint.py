"""What other programs may do with an owner's tools, whatever the owner changes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConflictError, ToolError, TooManyRequestsError
from core.mcp_endpoint import McpAccess
from core.storage.database import Database
from core.tools.approval import Policy
from tests.core.runs.note_tools import Held, agent_of, writes
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio


async def test_a_rule_set_while_another_program_is_answered_holds_for_the_next_call() -> None:
    held, rules = Held(), {"alice": Policy("never")}
    agent: Any = agent_of(held, writes("1", tool=held.name), writes("2", tool=held.name), "Done.")

    @asynccontextmanager
    async def agent_for(services: Any, documents: dict[str, list[str]]) -> AsyncIterator[Any]:
        yield agent

    async def policy() -> Policy:
        return rules["alice"]

    async def none() -> list[Any]:
        return []

    @asynccontextmanager
    async def opened(owner: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(services=None, libraries=SimpleNamespace(list=none), rules=SimpleNamespace(policy=policy))

    workspaces: Any = SimpleNamespace(open=opened)
    stores: Any = SimpleNamespace(of=lambda owner: SimpleNamespace(settings=None))
    outward = McpAccess(stores, workspaces, agent=agent_for, seconds=20)
    answer = asyncio.create_task(outward.of("alice").ask("Write two notes."))
    await held.began.wait()
    rules["alice"] = Policy("never", deny=(held.name,))
    held.released.set()
    assert await answer == "Done."
    assert held.written == ["1"]


class Counted:
    """What owners used, looked up in a database that takes its time.

    Attributes:
        added: How many questions were counted.
        over: Whether all that may be used is used.
    """

    def __init__(self) -> None:
        self.added = 0
        self.over = False

    async def check(self, owner: str) -> None:
        """Whether an owner may ask once more."""
        del owner
        await asyncio.sleep(0)
        if self.over:
            raise TooManyRequestsError("Enough for today.", hint="Come again tomorrow.", retry_after=60)

    async def add(self, owner: str, usage: Any, *, questions: int) -> None:
        """Count a question."""
        del owner, usage
        self.added += questions


async def test_two_questions_of_an_owner_are_answered_at_once_however_many_come_in_one_moment() -> None:
    use, released = Counted(), asyncio.Event()

    class Workspace:
        async def __aenter__(self) -> None:
            await released.wait()
            raise ToolError("It is closed today.")

        async def __aexit__(self, *told: object) -> None: ...

    workspaces: Any = SimpleNamespace(open=lambda owner: Workspace())
    stores: Any = SimpleNamespace(of=lambda owner: SimpleNamespace(settings=None), use=use)
    nothing: Any = None
    async with McpAccess(stores, workspaces, agent=nothing, seconds=20) as outward:
        access = outward.of("alice")
        access.is_counted = True
        asked = [asyncio.create_task(access.ask("Why?")) for _ in range(5)]
        async with asyncio.timeout(15):
            while sum(one.done() for one in asked) < 3:
                await asyncio.sleep(0)
        assert outward.asking == {"alice": 2}
        released.set()
        came = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(one, ConflictError) for one in came) == 3
        assert outward.asking == {}
        use.over = True
        with pytest.raises(TooManyRequestsError):
            await access.ask("Why?")
        assert outward.asking == {}
    assert use.added == 2, "who is refused has used nothing"


@pytest.fixture
async def door(tmp_path: Path, anyio_backend: str) -> AsyncIterator[McpAccess]:
    """Where other programs come in, over a database of its own."""
    database = await Database.open(tmp_path / "parlour.db")
    nothing: Any = None
    yield McpAccess(stores_over(database), nothing, agent=nothing, seconds=20)
    await database.aclose()


async def owner_of(door: McpAccess, token: str) -> str | None:
    """Whom a token lets in as."""
    access = await door.authenticate(token, visitor=False)
    return access.owner if access is not None else None


async def test_only_the_token_that_was_given_lets_in_and_only_as_its_owner(door: McpAccess) -> None:
    of_alice, of_bob = await door.of("alice").renew_token(), await door.of("bob").renew_token()
    assert (await owner_of(door, of_alice), await owner_of(door, of_bob)) == ("alice", "bob")
    beginning, named, secret = of_alice.split(".")
    other = of_bob.split(".")
    wrong = [
        "",
        "..",
        secret,
        f"{beginning}.{named}.",
        f"{beginning}.{named}.{secret[:-1]}",
        f"{beginning}.{named}.{secret}x",
        f"{beginning}.{named}.{secret.swapcase()}",
        f"{beginning}.{named}.{other[2]}",  # another owner's secret
        f"{beginning}.{other[1]}.{secret}",  # for another owner
        f"{beginning}.{named}.{secret}.{secret}",
        f"{of_alice} ",
        of_alice + "x" * 10_000,
    ]
    assert [await owner_of(door, token) for token in wrong] == [None] * len(wrong)


async def test_a_token_of_an_owner_without_one_lets_nobody_in(door: McpAccess) -> None:
    token = await door.of("alice").renew_token()
    named = token.split(".")[1]
    await door.of("alice").revoke_token()
    assert await door.of("alice").token() is None
    assert await owner_of(door, token) is None
    assert await owner_of(door, f"parlour.{named}.") is None


async def test_a_new_token_ends_the_one_before(door: McpAccess) -> None:
    first, second = await door.of("alice").renew_token(), await door.of("alice").renew_token()
    assert (await owner_of(door, first), await owner_of(door, second)) == (None, "alice")


@given(st.text(max_size=80))
def test_whatever_is_sent_as_a_token_is_nobodys(token: str) -> None:
    class Empty:
        place = Path()

        async def read(self, work: Any) -> None:
            return None

    nothing: Any = None
    database: Any = Empty()
    door = McpAccess(stores_over(database), nothing, agent=nothing, seconds=20)
    assert asyncio.run(owner_of(door, token)) is None
