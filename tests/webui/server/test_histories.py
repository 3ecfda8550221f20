"""Lists of conversations are kept for tabs that show them, and never those of very many owners."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any, cast

import pytest

from webui import histories as module
from webui.histories import REFRESH, Histories

pytestmark = pytest.mark.anyio


class Listed(list[Any]):
    """A list that can be watched."""


class Lists:
    """Gives lists, and knows which of them somebody still holds."""

    def __init__(self) -> None:
        self.held: weakref.WeakSet[Any] = weakref.WeakSet()

    def without(self, _hidden: object) -> Lists:
        return self

    async def beginning(self, *, archived: bool) -> Any:
        made = Listed([archived])
        self.held.add(cast("Any", _Handle(made)))
        return made


def listing(beginning: Any) -> Any:
    """A list that begins so, whatever is hidden."""
    made = SimpleNamespace(beginning=beginning)
    made.without = lambda _hidden: made
    return made


class _Handle:
    def __init__(self, of: Listed) -> None:
        of.append(self)  # lives as long as the list does


async def test_of_very_many_owners_only_the_latest_lists_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OWNERS", 10)
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


async def test_what_another_parlour_changed_is_seen_two_seconds_later_and_told_once() -> None:
    now, listed = [0.0], ["Birds"]

    async def beginning(*, archived: bool) -> Any:
        del archived
        return list(listed)

    one: Any = SimpleNamespace(owner="alice", conversation_list=listing(beginning))
    kept = Histories(lambda: now[0])
    before = await kept.of(one)
    now[0] = REFRESH
    assert await kept.of(one) is before  # nothing changed: whoever drew it need not draw it again
    listed.append("Trees")
    assert await kept.of(one) is before
    now[0] = 2 * REFRESH
    assert cast("Any", await kept.of(one)) == ["Birds", "Trees"]
    assert kept.moved("alice") == 1
    now[0] = 3 * REFRESH
    await kept.of(one)
    assert kept.moved("alice") == 1
    assert kept.moved("bob") == 0


async def test_a_list_that_no_other_parlour_can_have_changed_is_not_read_again() -> None:
    now, others, read = [0.0], [1], 0

    async def beginning(*, archived: bool) -> Any:
        nonlocal read
        read += 1
        return [archived]

    one: Any = SimpleNamespace(owner="alice", conversation_list=listing(beginning))
    kept = Histories(lambda: now[0], lambda: others[0])
    for now[0] in (0.0, REFRESH, 9 * REFRESH):
        await kept.of(one)
    assert read == 1
    others[0] = 2
    await kept.of(one)
    await kept.of(one)
    assert read == 1 + 1
