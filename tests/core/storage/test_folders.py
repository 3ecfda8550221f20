"""Folders, pins, the archive, titles and waiting messages: kept for their owner, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import NotFoundError, SettingsError
from core.storage.database import Database
from core.storage.folders import LONGEST_NAME
from core.storage.sealing import Sealer
from core.storage.stores import OwnerStores, Stores

pytestmark = pytest.mark.anyio


@pytest.fixture
def of(database: Database, tmp_path: Path) -> Callable[[str], OwnerStores]:
    return Stores(database, tmp_path, Sealer("secret")).of


async def test_folders_stand_in_their_order_and_a_new_one_below_the_others(of: Callable[[str], OwnerStores]) -> None:
    folders = of("alice").folders
    first, second = await folders.create("Work"), await folders.create("Reise 旅行")
    assert [one.name for one in await folders.list()] == ["Work", "Reise 旅行"]
    await folders.place(second.id, first.position - 1)
    await folders.rename(second.id, "Travel")
    assert [one.name for one in await folders.list()] == ["Travel", "Work"]


@pytest.mark.parametrize("name", ["", "   ", "\u202e\u200b"])
async def test_a_folder_without_a_name_is_refused(name: str, of: Callable[[str], OwnerStores]) -> None:
    with pytest.raises(SettingsError):
        await of("alice").folders.create(name)


async def test_a_name_of_any_length_is_cut(of: Callable[[str], OwnerStores]) -> None:
    assert (await of("alice").folders.create("x" * 10_000)).name == "x" * LONGEST_NAME


async def test_a_folder_that_is_deleted_leaves_its_conversations(of: Callable[[str], OwnerStores]) -> None:
    mine = of("alice")
    folder, talk = await mine.folders.create("Work"), await mine.conversations.create("Plans")
    await mine.folders.put([talk.id], folder.id)
    assert (await mine.conversations.get(talk.id)).folder_id == folder.id
    assert await mine.folders.delete(folder.id) == [talk.id]
    assert (await mine.conversations.get(talk.id)).folder_id is None


async def test_what_is_somebody_elses_is_not_there_and_is_passed_over(of: Callable[[str], OwnerStores]) -> None:
    mine, hers = of("alice"), of("bob")
    folder, talk = await mine.folders.create("Work"), await mine.conversations.create("Plans")
    waiting = await mine.queued.add(talk.id, "And then?")
    await hers.conversations.pin([talk.id])
    await hers.conversations.archive([talk.id])
    await hers.folders.put([talk.id], None)
    found = await mine.conversations.get(talk.id)
    assert (found.pinned_at, found.archived_at) == (None, None)
    for forbidden in (
        hers.folders.get(folder.id),
        hers.folders.put([talk.id], folder.id),
        hers.folders.configure(folder.id, dict),
        hers.conversations.settings(talk.id),
        hers.conversations.configure(talk.id, dict),
        hers.conversations.name(talk.id, "Mine"),
        hers.queued.list(talk.id),
        hers.queued.add(talk.id, "x"),
        hers.queued.change(waiting.id, text="x"),
        hers.queued.remove(waiting.id),
    ):
        with pytest.raises(NotFoundError):
            await forbidden


async def test_a_title_by_a_person_is_never_replaced_by_a_models(of: Callable[[str], OwnerStores]) -> None:
    talks = of("alice").conversations
    talk = await talks.create("What is the deductible for")
    assert await talks.name(talk.id, "Water damage")
    assert (await talks.get(talk.id)).title == "Water damage"
    await talks.rename(talk.id, "Insurance")
    assert not await talks.name(talk.id, "Water damage again")
    assert (await talks.get(talk.id)).title == "Insurance"


async def test_messages_wait_in_order_can_change_their_place_and_go_once(of: Callable[[str], OwnerStores]) -> None:
    mine = of("alice")
    talk = await mine.conversations.create()
    first, second = await mine.queued.add(talk.id, "one"), await mine.queued.add(talk.id, "two \ud83d")
    await mine.queued.change(second.id, position=first.position - 1)
    await mine.queued.change(first.id, text="one more")
    assert [one.text for one in await mine.queued.list(talk.id)] == ["two ?", "one more"]
    assert (await mine.queued.remove(second.id)).text == "two ?"
    with pytest.raises(NotFoundError):
        await mine.queued.remove(second.id)
    await mine.conversations.delete(talk.id)
    with pytest.raises(NotFoundError):
        await mine.queued.change(first.id, text="late")


async def test_what_two_choose_for_a_conversation_at_once_is_all_kept(of: Callable[[str], OwnerStores]) -> None:
    talks = of("alice").conversations
    talk = await talks.create()
    for n in range(5):
        await talks.configure(talk.id, lambda kept, n=n: {**kept, str(n): n})
    assert await talks.settings(talk.id) == {str(n): n for n in range(5)}
