"""Groups: made by administrators, with people in them, and limits of which the most generous counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.errors import ConflictError, NotFoundError, ParlourError, QuotaError, TooManyRequestsError
from core.messages.message import Message
from core.people.groups import Groups
from core.people.people import People, checked_role, new_person
from core.storage.database import Database
from core.storage.people import Person
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.storage.use import Limits, UsualLimits

pytestmark = pytest.mark.anyio
MIB = 2**20


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    database = await Database.open(tmp_path / "parlour.db")
    usual = UsualLimits(guest=Limits(messages=1), member=Limits(messages=2))
    yield Stores(database, tmp_path / "files", Sealer("a secret"), limits=usual, quota=MIB)
    await database.aclose()


async def somebody(stores: Stores, name: str, role: str = "member") -> Person:
    return await stores.people.add(new_person(name, checked_role(role)), "terminal")


async def asked(stores: Stores, who: Person, times: int) -> None:
    """So many questions of somebody's, each in a conversation of its own."""
    mine = stores.of(who.id)
    for _ in range(times):
        talk = await mine.conversations.create("")
        await mine.runs.create(talk.id, user=[Message("user", "Why?")], parent_id=None, worker="1@1.00")


async def test_administrators_make_rename_and_fill_groups_and_the_audit_says_so(stores: Stores) -> None:
    boss, mara, groups = await somebody(stores, "Boss", "administrator"), await somebody(stores, "Mara"), rules(stores)
    research = await groups.make(boss, " Ｒesearch ")
    assert research.name == "Research"
    with pytest.raises(ConflictError):
        await groups.make(boss, "RESEARCH")
    await groups.add(boss, research.id, mara.id)
    await groups.add(boss, research.id, mara.id)
    await groups.rename(boss, research.id, "Lab")
    assert [(one.name, one.members) for one in await stores.groups.list()] == [("Lab", {mara.id})]
    for attempt in (
        groups.make(mara, "Mine"),
        groups.rename(mara, research.id, "Mine"),
        groups.delete(mara, research.id),
        groups.add(mara, research.id, mara.id),
        groups.take_out(mara, research.id, mara.id),
        groups.set_limits(mara, research.id, {"messages": "0"}),
    ):
        with pytest.raises(ParlourError) as refused:
            await attempt
        assert refused.value.words_key == "role_forbidden"
    await groups.take_out(boss, research.id, mara.id)
    await groups.delete(boss, research.id)
    with pytest.raises(NotFoundError):
        await groups.add(boss, research.id, mara.id)
    done = [(act.by, act.did, act.to) for act in reversed(await stores.people.audit())][2:]
    assert done == [
        ("Boss", "group_made", "Research"),
        ("Boss", "group_added", "Mara"),
        ("Boss", "group_renamed", "Lab"),
        ("Boss", "group_removed", "Mara"),
        ("Boss", "group_deleted", "Lab"),
    ]


async def test_who_leaves_the_house_is_in_no_group_any_more_and_shares_nothing(stores: Stores) -> None:
    mara, jan = await somebody(stores, "Mara"), await somebody(stores, "Jan")
    await somebody(stores, "Boss", "owner")
    group = await rules(stores).make(None, "Research")
    for one in (mara, jan):
        await rules(stores).add(None, group.id, one.id)
    library = await stores.of(mara.id).libraries.create("Towers")
    await stores.of(mara.id).lending.lend(group.id, "library", library.id, writes=False)
    assert [one.library.name for one in await stores.of(jan.id).lent.libraries()] == ["Towers"]
    await stores.people.remove(mara.id, "Boss")
    assert await stores.of(jan.id).lent.libraries() == []
    assert [one.members for one in await stores.groups.list()] == [{jan.id}]


async def test_the_most_generous_of_somebodys_groups_counts_unless_they_have_their_own(stores: Stores) -> None:
    mara, groups = await somebody(stores, "Mara"), rules(stores)
    await asked(stores, mara, 2)
    with pytest.raises(TooManyRequestsError):
        await asked(stores, mara, 1)
    few, many = await groups.make(None, "Few"), await groups.make(None, "Many")
    for group, messages in ((few, "1"), (many, "4")):
        await groups.set_limits(None, group.id, {"messages": messages})
        await groups.add(None, group.id, mara.id)
    await asked(stores, mara, 2)
    with pytest.raises(TooManyRequestsError) as error:
        await asked(stores, mara, 1)
    assert error.value.details["limit"] == "4"
    await groups.set_limits(None, few.id, {"messages": "0"})  # no limit is the most generous
    await asked(stores, mara, 1)
    await stores.people.set_limits(mara.id, {"messages": 3}, "Boss")
    with pytest.raises(TooManyRequestsError) as error:
        await asked(stores, mara, 1)
    assert error.value.details["limit"] == "3"


async def test_a_small_group_limits_nobody_who_looks_after_the_house(stores: Stores) -> None:
    boss = await somebody(stores, "Boss", "administrator")
    group = await rules(stores).make(None, "Few")
    await rules(stores).set_limits(None, group.id, {"messages": "1"})
    await rules(stores).add(None, group.id, boss.id)
    await asked(stores, boss, 3)


async def test_files_are_refused_before_they_are_stored_by_what_somebody_or_their_group_may_have(
    stores: Stores,
) -> None:
    mara, groups = await somebody(stores, "Mara"), rules(stores)
    files = stores.of(mara.id).files
    with pytest.raises(QuotaError):
        await files.put("a.bin", b"x" * (MIB + 1))
    group = await groups.make(None, "Films")
    await groups.set_limits(None, group.id, {"megabytes": "2"})
    await groups.add(None, group.id, mara.id)
    await files.put("a.bin", b"x" * (MIB + 1))
    with pytest.raises(QuotaError) as error:
        await files.check_room(MIB)
    assert error.value.details == {"used": 1, "limit": 2}
    await stores.people.set_limits(mara.id, {"megabytes": 0}, "Boss")
    await files.check_room(100 * MIB)


async def test_members_share_with_their_own_groups_alone_and_models_are_shared_by_who_keeps_the_house(
    stores: Stores,
) -> None:
    mara, boss = await somebody(stores, "Mara"), await somebody(stores, "Boss", "administrator")
    jan = await somebody(stores, "Jan")
    mine, other = await rules(stores).make(None, "Mine"), await rules(stores).make(None, "Other")
    await rules(stores).add(None, mine.id, mara.id)
    await rules(stores).add(None, other.id, jan.id)
    lending = stores.of(mara.id).lending
    library = await stores.of(mara.id).libraries.create("Towers")
    assert [one.group for one in await lending.groups()] == ["Mine"]
    assert [one.group for one in await stores.of(boss.id).lending.groups()] == ["Mine", "Other"]
    with pytest.raises(NotFoundError):
        await lending.lend(other.id, "library", library.id, writes=False)
    with pytest.raises(NotFoundError):  # not hers
        await stores.of(boss.id).lending.lend(other.id, "library", library.id, writes=False)
    for who in (mara, boss):
        await stores.of(who.id).model_services.save(
            "openai", address="https://a.example/v1", model="big", key="k-123", use=False
        )
    with pytest.raises(ParlourError) as refused:
        await lending.lend(mine.id, "model", "openai", writes=False)
    assert refused.value.words_key == "role_forbidden"
    await stores.of(boss.id).lending.lend(other.id, "model", "openai", writes=True)
    (model,) = await stores.of(jan.id).lent.models()
    assert (model.lender, model.service.model, stores.of(jan.id).lent.key_of(model)) == ("Boss", "big", "k-123")
    assert await stores.of(mara.id).lent.models() == []
    await stores.people.set_role(boss.id, "member", "Jan")
    assert await stores.of(jan.id).lent.models() == []
    await stores.people.set_role(boss.id, "administrator", "Jan")
    await stores.of(boss.id).model_services.delete("openai")
    await stores.of(boss.id).model_services.save("openai", address="", model="new", key="other", use=False)
    assert await stores.of(jan.id).lent.models() == [], "a new service of the same name is not shared by that"


async def test_who_is_taken_out_of_a_group_shares_nothing_with_it_any_more(stores: Stores) -> None:
    mara, jan = await somebody(stores, "Mara"), await somebody(stores, "Jan")
    group = await rules(stores).make(None, "Research")
    for one in (mara, jan):
        await rules(stores).add(None, group.id, one.id)
    library = await stores.of(mara.id).libraries.create("Towers")
    await stores.of(mara.id).lending.lend(group.id, "library", library.id, writes=False)
    await rules(stores).take_out(None, group.id, mara.id)
    assert await stores.of(jan.id).lent.libraries() == []
    await rules(stores).add(None, group.id, mara.id)
    assert await stores.of(jan.id).lent.libraries() == []


async def test_who_looks_after_the_house_no_more_shares_only_what_members_may(stores: Stores) -> None:
    boss, jan = await somebody(stores, "Boss", "administrator"), await somebody(stores, "Jan")
    mine, other = await rules(stores).make(None, "Mine"), await rules(stores).make(None, "Other")
    for group, one in ((mine, boss), (mine, jan), (other, jan)):
        await rules(stores).add(None, group.id, one.id)
    his = stores.of(boss.id)
    kept, gone = await his.libraries.create("Towers"), await his.libraries.create("Bridges")
    await his.model_services.save("openai", address="https://a.example/v1", model="big", key="k-123", use=False)
    await his.lending.lend(mine.id, "library", kept.id, writes=False)
    await his.lending.lend(mine.id, "model", "openai", writes=False)
    await his.lending.lend(other.id, "library", gone.id, writes=False)
    for role in ("member", "administrator"):
        await stores.people.set_role(boss.id, checked_role(role), "Jan")
        assert [one.library.name for one in await stores.of(jan.id).lent.libraries()] == ["Towers"], role
        assert await stores.of(jan.id).lent.models() == [], role
        assert await his.lending.loans("library", gone.id) == [], role


def rules(stores: Stores) -> Groups:
    return Groups(stores.groups, People(stores.people))
