"""Lists of conversations are kept for tabs that show them, and never those of very many owners."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any, cast

import pytest

from webui import frames
from webui.frames import Histories

pytestmark = pytest.mark.anyio


class Listed(list[Any]):
    """A list that can be watched."""


class Lists:
    """Gives lists, and knows which of them somebody still holds."""

    def __init__(self) -> None:
        self.held: weakref.WeakSet[Any] = weakref.WeakSet()

    async def beginning(self, *, archived: bool) -> Any:
        made = Listed([archived])
        self.held.add(cast("Any", _Handle(made)))
        return made


class _Handle:
    def __init__(self, of: Listed) -> None:
        of.append(self)  # lives as long as the list does


async def test_of_very_many_owners_only_the_latest_lists_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_MOST_OWNERS", 10)
    lists, histories = Lists(), Histories()

    def workspace(owner: int) -> Any:
        return SimpleNamespace(owner=str(owner), conversation_list=lists)

    for owner in range(100):
        assert cast("Any", await histories.of(workspace(owner), archived=False))[0] is False
    gc.collect()
    assert len(lists.held) <= 10
    newest = await histories.of(workspace(99))
    assert await histories.of(workspace(99)) is newest
    histories.changed("99")
    assert await histories.of(workspace(99)) is not newest
