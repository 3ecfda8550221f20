"""What steers a conversation: which level counts, and what makes no sense."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError, SettingsError
from core.storage.database import Database
from core.storage.stores import OwnerStores
from core.workspace.levels import LONGEST, Level, changed
from core.workspace.personas import LONGEST_SIGN, MOST_PERSONAS, Persona, checked_sign, first_sign
from core.workspace.steering import OwnerSteering, Steering
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

LIBRARIAN = Persona(
    "", "Librarian", level=Level("Quote figures as printed.", {"temperature": 0.1, "seed": 3}, {"calculator": False})
)


@pytest.fixture
async def stores(tmp_path: Path, anyio_backend: str) -> AsyncIterator[OwnerStores]:
    database = await Database.open(tmp_path / "parlour.db")
    yield stores_over(database).of("alice")
    await database.aclose()


async def filed(stores: OwnerStores) -> tuple[str, str]:
    """A conversation in a folder, and the folder."""
    talk, folder = await stores.conversations.create(), await stores.folders.create("Papers")
    await stores.folders.put([talk.id], folder.id)
    return talk.id, folder.id


# -- which level counts


async def test_a_conversation_outranks_its_persona_that_its_folder_and_all_of_them_the_service(
    stores: OwnerStores,
) -> None:
    steering, (talk, folder) = OwnerSteering(stores), await filed(stores)
    await steering.change_folder(folder, {"parameters": {"temperature": 0.9, "top_p": 0.5, "max_tokens": 99}})
    await steering.choose(talk, (await steering.personas.save(LIBRARIAN)).id)
    await steering.change(talk, {"parameters": {"seed": 7}, "tools": {"web_search": True}})
    found = await steering.of(talk)
    assert found.parameters == {"temperature": 0.1, "top_p": 0.5, "max_tokens": 99, "seed": 7}
    assert found.tools == {"calculator": False, "web_search": True}
    await steering.change(talk, {"parameters": {"seed": None}, "tools": {"calculator": True}})
    assert (await steering.of(talk)).parameters["seed"] == 3
    assert (await steering.of(talk)).tools == {"calculator": True, "web_search": True}


async def test_instructions_add_up_from_the_owner_to_the_conversation_whose_own_replace_its_personas(
    stores: OwnerStores,
) -> None:
    steering, (talk, folder) = OwnerSteering(stores), await filed(stores)
    await stores.settings.change("about_me", lambda _: "I teach chemistry.")
    await steering.change_folder(folder, {"instructions": "Cite pages."})
    await steering.choose(talk, (await steering.personas.save(LIBRARIAN)).id)
    told = (await steering.of(talk)).told("en")
    places = [told.index(text) for text in ("I teach chemistry.", "Cite pages.", "Quote figures", "what comes later")]
    assert places == sorted(places)
    await steering.change(talk, {"instructions": "Be brief."})
    told = (await steering.of(talk)).told("zh")
    assert "Be brief." in told
    assert "Quote figures" not in told
    await steering.change(talk, {"instructions": ""})  # said on purpose: nothing, not the persona's again
    assert "Quote figures" not in (await steering.of(talk)).told("en")
    await steering.change(talk, {"instructions": None})
    assert "Quote figures" in (await steering.of(talk)).told("en")


def test_where_nothing_is_said_nothing_is_told() -> None:
    assert Steering().told("en") == ""
    assert (Steering().parameters, Steering().tools, Steering().uses_documents) == ({}, {}, True)
    assert "contradict" not in Steering(Level("I teach.")).told("en")  # one alone contradicts nothing


async def test_a_draft_is_steered_as_the_conversation_that_it_becomes(stores: OwnerStores) -> None:
    steering = OwnerSteering(stores)
    kept = await steering.personas.save(LIBRARIAN)
    draft = await steering.with_persona(changed({"model": "kept"}, {"instructions": "Rhyme."}), kept.id)
    assert (await steering.of_draft(draft)).instructions == "Quote figures as printed."
    assert draft["model"] == "kept"
    draft = changed(draft, {"parameters": {"temperature": 1}})
    assert (await steering.of_draft(draft)).parameters == {"temperature": 1.0, "seed": 3}
    assert (await steering.of_draft(await steering.with_persona(draft, ""))).parameters == {}


async def test_what_a_page_shows_of_settings_that_are_read_already_is_all_but_what_the_owner_says(
    stores: OwnerStores,
) -> None:
    steering, (talk, folder) = OwnerSteering(stores), await filed(stores)
    await stores.settings.change("about_me", lambda _: "I teach chemistry.")
    await steering.change_folder(folder, {"instructions": "Cite pages."})
    await steering.choose(talk, (await steering.personas.save(LIBRARIAN)).id)
    record, kept = await stores.conversations.with_settings(talk)
    whole = await steering.of(talk)
    assert whole.owner.instructions == "I teach chemistry."
    assert await steering.shown(kept, record.folder_id) == replace(whole, owner=Level())


# -- what makes no sense


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"temperature": 2.1}},
        {"parameters": {"temperature": float("nan")}},
        {"parameters": {"temperature": "0.5"}},
        {"parameters": {"temperature": True}},
        {"parameters": {"top_p": 0}},
        {"parameters": {"max_tokens": 3.5}},
        {"parameters": {"max_tokens": 10**9}},
        {"parameters": {"seed": -1}},
        {"parameters": {"effort": "heroic"}},
        {"parameters": {"api_key": "sk-1"}},
        {"parameters": []},
        {"tools": {"web_search": "yes"}},
        {"tools": {"x" * 500: True}},
        {"tools": {str(number): True for number in range(501)}},
        {"libraries": ["a", 3]},
        {"libraries": ["a"] * 51},
        {"instructions": ["be brief"]},
    ],
)
def test_what_no_service_takes_is_refused_before_it_is_kept(change: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        changed({}, change)
    assert caught.value.words_key == "steering_value"


def test_instructions_that_would_fill_the_context_are_refused_with_their_length() -> None:
    with pytest.raises(SettingsError) as caught:
        changed({}, {"instructions": "a" * (LONGEST + 1)})
    assert caught.value.words_key == "steering_long"
    assert caught.value.details["n"] == "8,001"
    assert changed({}, {"instructions": "\ud800" + "a" * (LONGEST - 1)})["instructions"][0] == "?"


@pytest.mark.parametrize("kept", [None, [], "x", {"parameters": 3, "tools": [], "libraries": {}, "instructions": 7}])
def test_settings_that_were_edited_by_hand_are_read_without_what_makes_no_sense(kept: object) -> None:
    assert Level.of(kept) == Level()


def test_one_wrong_value_spoils_none_of_the_others() -> None:
    kept = {"parameters": {"temperature": 9, "seed": 4, "else": 1}, "tools": {"a": "on", "b": False}}
    assert Level.of(kept) == Level(parameters={"seed": 4}, tools={"b": False})


def test_a_change_leaves_alone_what_others_keep_in_the_same_settings() -> None:
    kept = {"model": "x", "parameters": {"seed": 1}}
    assert changed(kept, {"parameters": {"seed": None}, "unknown": 1}) == {"model": "x"}
    assert kept == {"model": "x", "parameters": {"seed": 1}}


async def test_a_conversation_of_somebody_else_is_not_there(stores: OwnerStores, tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "parlour.db")
    try:
        strange = OwnerSteering(stores_over(database).of("bob"))
        talk = (await stores.conversations.create()).id
        with pytest.raises(NotFoundError):
            await strange.of(talk)
        with pytest.raises(NotFoundError):
            await strange.change(talk, {"instructions": "Obey bob."})
    finally:
        await database.aclose()


# -- personas


async def test_a_conversation_whose_persona_was_deleted_goes_on_as_it_was(stores: OwnerStores) -> None:
    steering, (talk, _) = OwnerSteering(stores), await filed(stores)
    kept = await steering.personas.save(LIBRARIAN)
    await steering.choose(talk, kept.id)
    await steering.personas.save(Persona(kept.id, "Librarian", level=Level("Quote sources.")))
    assert (await steering.of(talk)).instructions == "Quote sources."  # as long as it is there, as it is now
    await steering.personas.delete(kept.id)
    assert await steering.personas.list() == []
    found = await steering.of(talk)
    assert (found.instructions, found.parameters["seed"]) == ("Quote figures as printed.", 3)
    assert found.persona is not None
    assert found.persona.name == "Librarian"
    with pytest.raises(NotFoundError):
        await steering.choose(talk, kept.id)


async def test_a_persona_brings_its_libraries_and_takes_them_along(stores: OwnerStores) -> None:
    steering, (talk, _) = OwnerSteering(stores), await filed(stores)
    mine, its = await stores.libraries.create("Mine"), await stores.libraries.create("Its")
    await stores.libraries.use(talk, mine.id, on=True)
    persona = await steering.personas.save(Persona("", "Reader", level=Level(libraries=(its.id, "gone"))))

    async def used() -> set[str]:
        return {one.name for one in await stores.libraries.used_by(talk)}

    await steering.choose(talk, persona.id)
    assert await used() == {"Mine", "Its"}
    await steering.choose(talk, "")
    assert await used() == {"Mine"}


async def test_two_personas_of_one_name_one_without_and_one_too_many_are_refused(stores: OwnerStores) -> None:
    personas = OwnerSteering(stores).personas
    kept = await personas.save(Persona("", "  Li\u202ebrarian\n", "Lib"))
    assert (kept.name, kept.sign) == ("Librarian", "Li")
    for name, key in (("librarian", "persona_name_taken"), (" \n", "persona_unnamed")):
        with pytest.raises(SettingsError) as caught:
            await personas.save(Persona("", name))
        assert caught.value.words_key == key
    for number in range(MOST_PERSONAS - 1):
        await personas.save(Persona("", f"P {number}"))
    with pytest.raises(SettingsError) as caught:
        await personas.save(Persona("", "One more"))
    assert caught.value.words_key == "persona_many"
    assert (await personas.save(Persona(kept.id, "Archivist"))).id == kept.id  # one that is there can still be changed


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("🏴‍☠️", "🏴‍☠️"),
        ("👩🏽‍🚀🇩🇪x", "👩🏽‍🚀🇩🇪"),
        ("e\u0301a\u0300x", "e\u0301a\u0300"),
        ("§", "§"),
        ("Lib", "Li"),
        ("", ""),
    ],
)
def test_a_sign_is_one_or_two_letters_or_symbols_each_of_them_whole(given: str, kept: str) -> None:
    assert checked_sign(given) == kept


def test_what_would_pile_up_as_one_letter_is_cut_and_a_name_begins_with_a_whole_one() -> None:
    assert len(checked_sign("a" + "\u0301" * 400)) == LONGEST_SIGN
    assert first_sign("👩🏽‍🚀 Pilot") == "👩🏽‍🚀"


async def test_what_is_no_persona_among_those_kept_is_passed_over(stores: OwnerStores) -> None:
    good = {"id": "1", "name": "A", "parameters": {"temperature": "hot"}}
    for kept in ("x", {}, [3, None, {"name": "nobody's"}, {"id": "2"}, good]):
        await stores.settings.change("personas", lambda _, kept=kept: kept)
        found = await OwnerSteering(stores).personas.list()
        assert [one.name for one in found] == (["A"] if isinstance(kept, list) else [])


# -- libraries of a folder


async def test_a_conversation_uses_the_libraries_of_its_folder_until_it_leaves_one_out(stores: OwnerStores) -> None:
    steering, (talk, folder) = OwnerSteering(stores), await filed(stores)
    shared, own = await stores.libraries.create("Shared"), await stores.libraries.create("Own")
    await steering.change_folder(folder, {"libraries": [shared.id, "gone"]})
    await stores.libraries.use(talk, own.id, on=True)

    async def used() -> list[str]:
        return [one.name for one in (await stores.documents.opened(talk)).libraries]

    assert await used() == ["Own", "Shared"]
    for _ in ("in one tab", "in another"):
        await stores.libraries.use(talk, shared.id, on=False)
        assert await used() == ["Own"]
    await stores.libraries.use(talk, shared.id, on=True)
    assert await used() == ["Own", "Shared"]
    await stores.folders.put([talk], None)
    await stores.libraries.use(talk, shared.id, on=False)
    assert await used() == ["Own"]


async def test_a_copy_of_a_conversation_is_steered_alike(stores: OwnerStores) -> None:
    steering, (talk, _) = OwnerSteering(stores), await filed(stores)
    await steering.change(talk, {"instructions": "Rhyme."})
    turn = await stores.conversations.add_message(talk, "user", [], None)
    copy = await stores.whole.fork(talk, turn.id)
    assert (await steering.of(copy.id)).instructions == "Rhyme."
