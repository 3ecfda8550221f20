"""Prompts: kept by name, and what is no prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.errors import NotFoundError, SettingsError
from core.storage.database import Database
from core.storage.owner_settings import OwnerSettings
from core.workspace.prompts import LONGEST_TEXT, MOST_PROMPTS, Prompt, Prompts
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio


@pytest.fixture
async def settings(tmp_path: Path, anyio_backend: str) -> AsyncIterator[OwnerSettings]:
    database = await Database.open(tmp_path / "parlour.db")
    yield stores_over(database).of("alice").settings
    await database.aclose()


async def test_a_prompt_is_kept_changed_and_forgotten(settings: OwnerSettings) -> None:
    prompts = Prompts(settings)
    kept = await prompts.save(Prompt("", " weather\n", "How is it in {{city}}?\n\nBriefly."))
    assert await prompts.list() == [Prompt(kept.id, "weather", "How is it in {{city}}?\n\nBriefly.")]
    await prompts.save(Prompt(kept.id, "Weather", "And in {{city}}?"))
    assert [one.text for one in await prompts.list()] == ["And in {{city}}?"]
    await prompts.delete(kept.id)
    assert await prompts.list() == []
    with pytest.raises(NotFoundError):
        await prompts.delete(kept.id)


async def test_a_prompt_that_cannot_be_kept_is_refused_in_a_sentence(settings: OwnerSettings) -> None:
    prompts = Prompts(settings)
    await prompts.save(Prompt("", "a", "A"))
    cases = [("", "A", "prompt_empty"), ("b", " ", "prompt_empty"), ("A", "B", "prompt_name_taken")]
    for name, text, key in [*cases, ("c", "c" * (LONGEST_TEXT + 1), "steering_long")]:
        with pytest.raises(SettingsError) as caught:
            await prompts.save(Prompt("", name, text))
        assert caught.value.words_key == key
    for number in range(MOST_PROMPTS - 1):
        await prompts.save(Prompt("", f"p{number}", "x"))
    with pytest.raises(SettingsError) as caught:
        await prompts.save(Prompt("", "more", "x"))
    assert caught.value.words_key == "prompt_many"


async def test_what_is_no_prompt_among_those_kept_is_passed_over(settings: OwnerSettings) -> None:
    for kept in ("x", {}, [3, {"id": "1"}, {"id": "2", "name": 3, "text": "x"}]):
        await settings.change("prompts", lambda _, kept=kept: kept)
        assert await Prompts(settings).list() == []
