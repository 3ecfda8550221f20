"""A reply that nobody saw is marked by every Parlour, and after a restart, until somebody looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import StorageError
from core.storage.database import Database
from tests.core.stores import stores_over
from webui.histories import REFRESH
from webui.unread import UNREAD, Unread

pytestmark = pytest.mark.anyio


async def test_a_mark_is_seen_and_taken_away_by_another_parlour(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    stores = stores_over(database)
    now = [0.0]
    one, two = [Unread(stores, lambda: now[0]) for _ in range(2)]
    one.add("alice", "talk")
    assert one.of("alice") == {"talk"}
    await one.kept()
    await two.refresh("alice", REFRESH)
    assert two.of("alice") == {"talk"}
    assert two.of("bob") == frozenset()
    two.read("alice", "talk")
    await two.kept()
    await one.refresh("alice", REFRESH)  # its first look
    assert one.of("alice") == frozenset()
    assert await stores.of("alice").settings.get(UNREAD) is None
    await database.aclose()


async def test_what_another_parlour_marked_is_looked_for_now_and_then_alone(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    stores = stores_over(database)
    now = [0.0]
    one, two = [Unread(stores, lambda: now[0]) for _ in range(2)]
    await two.refresh("alice", REFRESH)
    one.add("alice", "talk")
    await one.kept()
    await two.refresh("alice", REFRESH)
    assert two.of("alice") == frozenset()
    now[0] = REFRESH
    await two.refresh("alice", REFRESH)
    assert two.of("alice") == {"talk"}
    await database.aclose()


async def test_marks_that_no_other_parlour_can_have_changed_are_not_read_again(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    others = [1]
    one, two = Unread(stores_over(database)), Unread(stores_over(database), others=lambda: others[0])
    await two.refresh("alice", 0)
    one.add("alice", "talk")
    await one.kept()
    await two.refresh("alice", 0)
    assert two.of("alice") == frozenset()
    others[0] = 2
    await two.refresh("alice", 0)
    assert two.of("alice") == {"talk"}
    await database.aclose()


async def test_marks_that_could_not_be_read_are_read_at_the_next_look(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    stores = stores_over(database)
    one, two = Unread(stores), Unread(stores, others=lambda: 1)
    one.add("alice", "talk")
    await one.kept()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database, "read", _broken)
        with pytest.raises(StorageError):
            await two.refresh("alice", REFRESH)
    await two.refresh("alice", REFRESH)
    assert two.of("alice") == {"talk"}
    await database.aclose()


async def _broken(_work: object) -> None:
    raise StorageError("It is broken.")


async def test_marks_come_and_go_in_their_order_however_fast(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    stores = stores_over(database)
    one = Unread(stores)
    for number in range(20):
        one.add("alice", f"talk-{number}")
        one.read("alice", f"talk-{number}")
    one.add("alice", "talk-7")
    await one.refresh("alice", 0)  # what is on its way is not forgotten for what was kept before
    assert one.of("alice") == {"talk-7"}
    await one.kept()
    assert await stores.of("alice").settings.get(UNREAD) == ["talk-7"]
    await database.aclose()


async def test_where_the_database_fails_this_process_knows_them_all_the_same(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    stores = stores_over(database)
    await database.aclose()
    one = Unread(stores)
    one.add("alice", "talk")
    await one.kept()
    assert one.of("alice") == {"talk"}
