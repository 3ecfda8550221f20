"""The list of conversations in parts: nothing is missed, nothing comes twice, and nothing is somebody else's."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, update

from core.errors import NotFoundError
from core.storage import conversation_list
from core.storage.base import ListedRow, new_id
from core.storage.conversation_list import ConversationList, Place
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.folders import FolderStore
from core.storage.tables import conversations
from tests.tries import tries

FIRST, PART = 5, 4
LATER = 1_000.0
# Where a conversation stands, and when it was used: few times, so that many are alike.
KEPT = st.tuples(st.sampled_from(["loose", "pinned", "open", "folded", "gone", "archived"]), st.integers(1, 5))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Database]]:
    """A database, and the loop that it lives in: Hypothesis asks many times within one test."""
    with asyncio.Runner() as runner:
        database = runner.run(Database.open(tmp_path_factory.mktemp("list") / "parlour.db"))
        yield runner, database
        runner.run(database.aclose())


def _insert(rows: Sequence[dict[str, Any]], connection: Connection) -> None:
    if rows:
        connection.execute(insert(conversations), rows)


def _touch(conversation_id: str, at: float, connection: Connection) -> None:
    connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(updated_at=at))


def _names(rows: Sequence[ListedRow]) -> list[str]:
    return [row.conversation.id for row in rows if row.conversation is not None]


async def _begun(database: Database, kinds: Sequence[tuple[str, int]]) -> tuple[ConversationList, list[str]]:
    """An owner with conversations of these kinds."""
    owner = new_id()
    await ConversationStore(database, owner).ensure_owner()
    folders = FolderStore(database, owner)
    shown, folded = await folders.create("Shown"), await folders.create("Folded")
    await folders.configure(shown.id, lambda chosen: {**chosen, "open": True})
    homes = {"open": shown.id, "folded": folded.id, "gone": "a-folder-that-was-deleted"}
    rows = [
        {
            "id": new_id(),
            "owner_id": owner,
            "title": kind,
            "created_at": 0.0,
            "updated_at": float(at),
            "folder_id": homes.get(kind),
            "pinned_at": float(at) if kind == "pinned" else None,
            "archived_at": float(at) if kind == "archived" else None,
        }
        for kind, at in kinds
    ]
    await database.write(partial(_insert, rows))
    return ConversationList(database, owner), [str(row["id"]) for row in rows]


@settings(max_examples=tries(60), deadline=None)
@example(kinds=[("loose", 1)] * 13 + [("pinned", 1)] * 2 + [("open", 1)], touched=[0])
@given(kinds=st.lists(KEPT, max_size=40), touched=st.lists(st.integers(0, 39), max_size=12))
def test_every_conversation_comes_once_and_in_its_order_while_others_are_used(
    kept: tuple[asyncio.Runner, Database], kinds: list[tuple[str, int]], touched: list[int]
) -> None:
    runner, database = kept

    async def read() -> None:
        listed, made = await _begun(database, kinds)
        order = [one for one, _ in await listed.ids()]
        wanted = [name for name, (kind, _) in zip(made, kinds, strict=True) if kind not in {"folded", "archived"}]
        assert Counter(order) == Counter(wanted)
        beginning = await listed.beginning(limit=FIRST)
        seen, waiting, used = _names(beginning.rows), [made[at] for at in touched if at < len(made)], set[str]()
        parts = (await listed.parts(Place.read(beginning.end))).parts if beginning.end else ()
        assert len(beginning.rows) == FIRST or not parts
        after = beginning.end
        for part in parts:
            if waiting:
                used.add(waiting[-1])
                await database.write(partial(_touch, waiting.pop(), LATER + len(waiting)))
            found = await listed.between(Place.read(after), Place.read(part.end))
            # What was used meanwhile stands at the beginning of its section, which may be in this part.
            kept_still = [row for row in found.rows if row.conversation is None or row.conversation.id not in used]
            assert len(kept_still) <= part.rows <= PART
            seen += _names(found.rows)
            after = part.end
        assert max(Counter(seen).values(), default=1) == 1, "none comes twice"
        assert [one for one in seen if one not in used] == [one for one in order if one not in used]
        now = [one for one, _ in await listed.ids()]
        assert {*seen, *used} >= {*now}, "what was used meanwhile stands at the beginning now"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversation_list, "PART", PART)
        runner.run(read())


def test_the_archive_is_a_list_of_its_own_in_parts_too(kept: tuple[asyncio.Runner, Database]) -> None:
    runner, database = kept

    async def read() -> None:
        listed, made = await _begun(database, [("archived", number) for number in range(1, 8)] + [("loose", 1)])
        beginning = await listed.beginning(archived=True, limit=FIRST)
        cut = await listed.parts(Place.read(beginning.end), archived=True, holding=made[0])
        rest = await listed.between(Place.read(beginning.end), Place.read(cut.parts[0].end), archived=True)
        assert _names(beginning.rows) + _names(rest.rows) == made[6::-1]
        assert cut.at == 0
        assert (await listed.beginning()).has_archive

    runner.run(read())


def test_a_folder_counts_what_is_in_it_and_knows_it_while_it_is_folded(kept: tuple[asyncio.Runner, Database]) -> None:
    runner, database = kept

    async def read() -> None:
        listed, made = await _begun(database, [("folded", 1), ("folded", 2), ("open", 3), ("loose", 4)])
        beginning = await listed.beginning()
        sizes = {folder.name: beginning.sizes.get(folder.id, 0) for folder in beginning.folders}
        assert sizes == {"Shown": 1, "Folded": 2}
        assert _names(beginning.rows) == [made[2], made[3]]
        assert set(beginning.homes) == {*made[:3]}

    runner.run(read())


def test_what_is_somebody_elses_stands_in_no_part(kept: tuple[asyncio.Runner, Database]) -> None:
    runner, database = kept

    async def read() -> None:
        mine, made = await _begun(database, [("loose", 1)] * 9)
        hers, _ = await _begun(database, [])
        beginning = await mine.beginning(limit=FIRST)
        cut = (await mine.parts(Place.read(beginning.end))).parts
        assert not (await hers.between(Place.read(beginning.end), Place.read(cut[0].end))).rows
        assert not (await hers.parts(Place.read(beginning.end), holding=made[-1])).parts
        assert await hers.ids() == []

    runner.run(read())


@given(
    st.text(max_size=40) | st.sampled_from(["2~0.0~~1~nan~x", "9~0.0~~1~0.0~x", "2~inf~~1~0.0~x", "~" * 5, "x" * 999])
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(NotFoundError):
        Place.read(text)


@given(
    st.builds(
        Place, st.integers(0, 3), st.floats(0, 1e9), st.just("f-_"), st.booleans(), st.floats(-1e10, 0), st.just("i")
    )
)
def test_a_place_is_read_as_it_was_written(place: Place) -> None:
    assert Place.read(str(place)) == place


def test_places_sort_as_the_list_does() -> None:
    pinned, head = Place(0, 0.0, "", True, -5.0, "a"), Place(1, 1.0, "f", False, 0.0, "")
    inside, newer, loose = (
        Place(1, 1.0, "f", True, -1.0, "b"),
        Place(1, 1.0, "f", True, -2.0, "c"),
        Place(2, 0.0, "", True, -9.0, "d"),
    )
    assert sorted([loose, inside, head, newer, pinned]) == [pinned, head, newer, inside, loose]
