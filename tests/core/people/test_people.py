"""Rules that hold whatever happens at the same time: links count once, and there is always an owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from core.errors import ConflictError, NotFoundError, ParlourError
from core.people.passwords import Passwords
from core.people.people import People, new_person, typed_limits
from core.people.roles import RIGHTS, may_set
from core.storage.api_keys import AllApiKeys, ApiKeyStore, NewKey
from core.storage.database import Database
from core.storage.people import ROLES, PeopleStore, Person, Role

pytestmark = pytest.mark.anyio
GOOD = "a sentence that nobody guesses"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "parlour.db")
    yield opened
    await opened.aclose()


@pytest.fixture
async def people(database: Database) -> People:
    made = People(PeopleStore(database))
    made.passwords = Passwords(PasswordHasher(1, 8, 1))
    return made


async def made(people: People, name: str, role: Role) -> Person:
    return await people.store.add(new_person(name, role), "terminal")


async def test_a_link_counts_once_though_two_use_it_at_the_same_moment(people: People) -> None:
    token = await people.invite(None, "member")
    done = await asyncio.gather(
        *(people.accept(token, name, GOOD, browser="") for name in ("Ann", "Ben")), return_exceptions=True
    )
    assert sorted(isinstance(one, NotFoundError) for one in done) == [False, True]
    assert [one.role for one in await people.store.list()] == ["member"]


async def test_a_link_whose_time_is_up_or_that_was_revoked_makes_nobody(people: People) -> None:
    for token in (await people.invite(None, "member", seconds=-1), "", "guessed", "x" * 1_000_000):
        with pytest.raises(NotFoundError):
            await people.accept(token, "Eve", GOOD, browser="")
    token = await people.invite(None, "owner")
    (kept,) = await people.store.invitations()
    await people.revoke(None, kept.id)
    with pytest.raises(NotFoundError):
        await people.accept(token, "Eve", GOOD, browser="")
    recovery = await people.recovery_link(None, (await made(people, "Ann", "member")).id)
    with pytest.raises(NotFoundError, match="nowhere"):
        await people.accept(recovery, "Eve", GOOD, browser="")


async def test_a_taken_name_leaves_the_link_as_it_was(people: People) -> None:
    await made(people, "Ann", "member")
    token = await people.invite(None, "member")
    with pytest.raises(ConflictError):
        await people.accept(token, "ＡＮＮ", GOOD, browser="")
    assert (await people.accept(token, "Anna", GOOD, browser="")).person.name == "Anna"


async def test_two_owners_who_demote_or_delete_each_other_at_once_leave_one(people: People) -> None:
    ann, ben = [await made(people, name, "owner") for name in ("Ann", "Ben")]
    await asyncio.gather(
        people.set_role(ann, ben.id, "member"), people.set_role(ben, ann.id, "member"), return_exceptions=True
    )
    assert [one.role for one in await people.store.list()].count("owner") == 1
    (left,) = [one for one in await people.store.list() if one.role == "owner"]
    for act in (people.set_role(None, left.id, "guest"), people.remove(None, left.id), people.remove(left, left.id)):
        with pytest.raises(ConflictError, match="must be an owner"):
            await act


async def test_who_was_just_demoted_does_nothing_more_with_the_role_that_she_had(people: People) -> None:
    ann, ben, cleo = [await made(people, name, "owner") for name in ("Ann", "Ben", "Cleo")]
    await people.set_role(ann, ben.id, "member")
    with pytest.raises(ParlourError, match="role"):
        await people.set_role(ben, cleo.id, "member")  # with what his page still holds


async def test_a_recovery_link_ends_all_sessions_and_the_links_before_it(people: People) -> None:
    joined = await people.accept(await people.invite(None, "member"), "Ann", GOOD, browser="")
    ended: list[bool] = []
    people.ended.add(lambda one: ended.append(one.covers(joined.session)))
    first, second = [await people.recovery_link(None, joined.person.id) for _ in range(2)]
    assert await people.by_session([joined.token]) is not None
    with pytest.raises(NotFoundError):
        await people.recover(first, GOOD, browser="")
    renewed = await people.recover(second, f"{GOOD} twice", browser="")
    assert await people.by_session([joined.token]) is None
    assert ended == [True]
    assert (await people.by_session([renewed.token, joined.token])) is not None
    with pytest.raises(NotFoundError):
        await people.recover(second, GOOD, browser="")
    assert [(one.did, one.by) for one in await people.store.audit(3)] == [
        ("recovered", "Ann"),
        ("recovery", "terminal"),
        ("recovery", "terminal"),
    ]


async def test_what_is_stored_opens_nothing(people: People, tmp_path: Path) -> None:
    joined = await people.accept(await people.invite(None, "member"), "Ann", GOOD, browser="")
    pending = await people.invite(None, "owner")
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("parlour.db*"))
    for secret in (joined.token, pending, GOOD):
        assert secret.encode() not in kept


@pytest.mark.parametrize("mine", ROLES)
def test_nobody_gives_a_right_that_is_above_their_own(mine: Role) -> None:
    for theirs in ROLES:
        for to in ROLES:
            allowed = may_set(mine, theirs, to)
            assert allowed == (mine == "owner" or (mine == "administrator" and {theirs, to} <= {"guest", "member"}))
    assert RIGHTS["guest"] < RIGHTS["member"] < RIGHTS["administrator"] <= RIGHTS["owner"]


async def test_a_recovery_puts_out_whoever_came_by_a_passkey_or_a_key_of_a_program(
    people: People, database: Database
) -> None:
    ann, store = await made(people, "Ann", "member"), people.store
    await store.add_sign_in("passkey", "a", ann.id, {})
    await store.add_sign_in("https://id.example", "a", ann.id, {})
    every = AllApiKeys(database)
    key, _ = await ApiKeyStore(database, ann.id, every).create(NewKey("Editor"))
    await people.recover(await people.recovery_link(None, ann.id), GOOD, browser="")
    assert await store.sign_ins_of(ann.id, "passkey") == {}
    assert list(await store.sign_ins_of(ann.id, "https://id.example")) == ["a"]
    assert await every.owner_of_key(key) is None


async def test_nobodys_keys_are_left(people: People, database: Database) -> None:
    ann = await made(people, "Ann", "member")
    every = AllApiKeys(database)
    key, _ = await ApiKeyStore(database, ann.id, every).create(NewKey("Editor"))
    await people.remove(None, ann.id)
    assert await every.owner_of_key(key) is None


async def test_a_password_that_is_hashed_anew_replaces_no_newer_one(people: People) -> None:
    ann = await made(people, "Ann", "member")
    await people.store.set_password(ann.id, "new")
    await people.store.rehash(ann.id, "old", "old, anew")
    assert (await people.store.get(ann.id)).password == "new"


async def test_a_limit_is_a_number_from_zero_up_and_of_questions_and_tokens_a_whole_one() -> None:
    typed = {"messages": "2", "tokens": "1e3", "cost": "0.5", "megabytes": " "}
    assert typed_limits(typed) == {"messages": 2, "tokens": 1000, "cost": 0.5}
    typed = {"messages": "2,300", "tokens": "1,000,000", "cost": "1,500.25"}
    assert typed_limits(typed) == {"messages": 2300, "tokens": 1_000_000, "cost": 1500.25}, "as the page writes them"
    odd = (("messages", "3.5"), ("tokens", "-5"), ("cost", "1e20"), ("cost", "nan"), ("megabytes", "many"))
    for name, text in (*odd, ("cost", "2,5"), ("messages", "23,00"), ("messages", ",300"), ("tokens", "1,0000")):
        with pytest.raises(ParlourError) as refused:
            typed_limits({name: text})
        assert refused.value.words_key == "limits_odd"
