"""Looks at the tables that are asked for at one moment are one look, and each who asked has its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from core.errors import StorageError
from core.runs.feed import TableLooks
from core.storage.run_news import News

pytestmark = pytest.mark.anyio


class Tables:
    """Tables that say of each run but `gone` that it goes on, as soon as they may."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.asked: list[dict[str, int]] = []
        self.fails: Exception | None = None
        self.may = asyncio.Event()
        if is_open:
            self.may.set()

    async def of(self, wanted: Mapping[str, int]) -> dict[str, News]:
        self.asked.append(dict(wanted))
        await self.may.wait()
        if self.fails is not None:
            raise self.fails
        return {run: News(1, "running", None, []) for run in wanted if run != "gone"}


def looks_at(tables: Any) -> TableLooks:
    return TableLooks(tables)


async def test_who_asks_at_one_moment_shares_a_look_from_the_earliest_number() -> None:
    tables = Tables()
    looks = looks_at(tables)
    told = await asyncio.gather(
        looks.at_once("one", 7), looks.at_once("two", 0), looks.at_once("one", 3), looks.at_once("gone", 0)
    )
    assert tables.asked == [{"one": 3, "two": 0, "gone": 0}]
    assert [one is None for one in told] == [False, False, False, True]
    await looks.aclose()


async def test_who_asks_while_a_look_takes_long_does_not_wait_for_it() -> None:
    tables = Tables(is_open=False)
    looks = looks_at(tables)
    slow = asyncio.create_task(looks.at_once("one", 0))
    while not tables.asked:
        await asyncio.sleep(0)
    quick = asyncio.create_task(looks.at_once("two", 0))
    while len(tables.asked) < 2:
        await asyncio.sleep(0)
    tables.may.set()
    assert None not in await asyncio.gather(slow, quick)
    await looks.aclose()


@pytest.mark.parametrize("error", [StorageError("The database is away."), KeyError("a fault of ours")])
async def test_a_look_that_fails_is_told_to_each_who_asked(error: Exception) -> None:
    tables = Tables()
    tables.fails = error
    looks = looks_at(tables)
    told = await asyncio.gather(looks.at_once("one", 0), looks.at_once("two", 0), return_exceptions=True)
    assert told == [error, error]
    await looks.aclose()


async def test_one_who_asks_no_more_takes_no_other_along() -> None:
    tables = Tables(is_open=False)
    looks = looks_at(tables)
    leaves, stays = (asyncio.create_task(looks.at_once(run, 0)) for run in ("one", "two"))
    while not tables.asked:
        await asyncio.sleep(0)
    leaves.cancel()
    tables.may.set()
    assert await stays is not None
    assert leaves.cancelled()
    await looks.aclose()


@pytest.mark.parametrize("begun", [False, True])
async def test_when_it_closes_nobody_waits_for_ever(begun: bool) -> None:
    tables = Tables(is_open=False)
    looks = looks_at(tables)
    asked = asyncio.create_task(looks.at_once("one", 0))
    await asyncio.sleep(0)
    while begun and not tables.asked:
        await asyncio.sleep(0)
    with anyio.fail_after(10):
        await looks.aclose()
        await asyncio.wait({asked})
    assert asked.cancelled()
