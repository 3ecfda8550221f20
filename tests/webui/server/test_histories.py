"""Lists of conversations are kept for tabs that show them, and never many of them."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any, cast

import pytest

from webui.frames import Histories

pytestmark = pytest.mark.anyio


class Listed(list[Any]):
    """A list that can be watched."""


class Store:
    """Gives lists, and knows which of them somebody still holds."""

    def __init__(self) -> None:
        self.held: weakref.WeakSet[Any] = weakref.WeakSet()

    async def history(self, limit: int, *, archived: bool) -> Any:
        del archived
        made = Listed([limit])
        self.held.add(cast("Any", _Handle(made)))
        return made


class _Handle:
    def __init__(self, of: Listed) -> None:
        of.append(self)  # lives as long as the list does


async def test_whoever_asks_for_longer_and_longer_lists_fills_no_memory() -> None:
    store = Store()
    histories, workspace = Histories(), cast("Any", SimpleNamespace(owner="alice", folders=store))
    for pages in range(1, 101):
        assert cast("Any", await histories.of(workspace, pages * 200))[0] == pages * 200
    gc.collect()
    assert len(store.held) <= 10
    newest = await histories.of(workspace, 100 * 200)
    assert await histories.of(workspace, 100 * 200) is newest
