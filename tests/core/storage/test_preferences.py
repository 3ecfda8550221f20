"""What a person set for all of their conversations, and how much their things take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import SettingsError
from core.messages.message import Message
from core.storage.database import Database
from core.storage.preferences import LONGEST_ABOUT, Preferences
from core.storage.sealing import Sealer
from core.storage.space import UsedSpace
from core.storage.stores import OwnerStores, Stores

pytestmark = pytest.mark.anyio


@pytest.fixture
def of(database: Database, tmp_path: Path) -> Callable[[str], OwnerStores]:
    return Stores(database, tmp_path, Sealer("secret")).of


async def test_what_is_set_is_kept_for_its_owner_alone(of: Callable[[str], OwnerStores]) -> None:
    mine = of("alice").preferences
    assert await mine.get() == Preferences("", titles=True, check_claims=True)
    await mine.change("about_me", "  I read contracts. 我住在不来梅。 ")
    await mine.change("titles", False)
    await mine.change("check_claims", False)
    assert await mine.get() == Preferences("I read contracts. 我住在不来梅。", titles=False, check_claims=False)
    assert await of("alice").settings.get("about_me") == "I read contracts. 我住在不来梅。"
    assert await of("bob").preferences.get() == Preferences()


async def test_what_is_so_anyway_is_forgotten(of: Callable[[str], OwnerStores]) -> None:
    mine = of("alice").preferences
    for name, value in {"about_me": "Somebody", "titles": False}.items():
        await mine.change(name, value)
    await mine.change("about_me", " \n ")
    await mine.change("titles", True)
    assert [await of("alice").settings.get(name, "nothing") for name in ("about_me", "titles")] == ["nothing"] * 2


async def test_signs_that_nobody_sees_are_left_out_of_what_a_model_is_told(of: Callable[[str], OwnerStores]) -> None:
    mine = of("alice").preferences
    await mine.change("about_me", "Be brief.\0\ud83d\U000e0041\U000e0042")
    assert (await mine.get()).about_me == "Be brief.?"


@pytest.mark.parametrize(
    ("name", "value"),
    [("about_me", 3), ("about_me", None), ("titles", "no"), ("titles", 1), ("check_claims", None), ("tools", True)],
)
async def test_another_name_or_kind_is_refused(name: str, value: object, of: Callable[[str], OwnerStores]) -> None:
    with pytest.raises(SettingsError) as refused:
        await of("alice").preferences.change(name, value)
    assert refused.value.words_key == "preference_unknown"


async def test_a_text_that_is_too_long_is_refused_and_the_one_before_stays(of: Callable[[str], OwnerStores]) -> None:
    mine = of("alice").preferences
    await mine.change("about_me", "x" * LONGEST_ABOUT)
    with pytest.raises(SettingsError) as refused:
        await mine.change("about_me", "y" * (LONGEST_ABOUT + 1))
    assert refused.value.details == {"letters": "4,001", "limit": "4,000"}
    assert (await mine.get()).about_me == "x" * LONGEST_ABOUT


async def test_the_space_is_counted_by_what_it_is_taken_for(of: Callable[[str], OwnerStores]) -> None:
    mine = of("alice")
    assert await mine.space.used() == UsedSpace()
    talk = await mine.conversations.create("Talk")
    await mine.conversations.add_message(talk.id, "user", [Message("user", "猫" * 1000)], None)
    read = await mine.files.put("a.txt", b"x" * 700)
    await mine.files.put("b.png", b"y" * 300)
    await mine.documents.add(talk.id, read.id, "a.txt")
    await of("bob").files.put("c.txt", b"z" * 5000)
    used = await mine.space.used()
    assert (used.documents, used.files, used.talks) == (700, 300, 1)
    assert 3000 < used.conversations < 4000, "bytes, not characters"
