"""Models by owner: one that is left is closed once nobody works with it, and in any case at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.models.model_name import ModelName
from core.models.own_models import AllModels, Draft, OwnerModels
from core.models.pool import ActiveModel, ModelLoader, ModelPool
from core.readiness import Readiness
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.testing.scripted_model import ScriptedModel
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

ME = LOCAL_OWNER


class Counted(ScriptedModel):
    """A model that counts how often it was made ready and closed."""

    prepared = 0
    closed = 0

    async def prepare(self, progress: Any = None) -> None:
        self.prepared += 1

    async def aclose(self) -> None:
        self.closed += 1


class House:
    """Models and the choice among them; `model` is the one that is chosen."""

    def __init__(self, home: Path, database: Database) -> None:
        stores = stores_over(database)
        default = ActiveModel(ModelLoader(ScriptedModel, Readiness()), Readiness())
        self.model = Counted("x")
        self.models = AllModels(Settings.load(home=home), stores, default, lambda owner: None)

    async def chosen(self) -> ModelLoader:
        await self.models.of(ME).save(Draft("ollama", "", "m"), use=True)
        loader = await self.models.of(ME).loader()
        await loader.ready()
        return loader


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    database = await Database.open(tmp_path / "parlour.db")
    built = House(tmp_path, database)
    monkeypatch.setattr(OwnerModels, "made", lambda *given, **more: built.model)
    yield built
    await built.models.aclose()
    await database.aclose()


async def test_who_works_with_a_model_keeps_it_when_another_is_chosen(house: House) -> None:
    loader = await house.chosen()
    with loader.in_use(), loader.in_use():
        await house.models.of(ME).use("")
        assert await loader.ready() is house.model
        assert (house.model.prepared, house.model.closed) == (1, 0)
    while not house.model.closed:
        await asyncio.sleep(0)
    await house.models.aclose()
    assert house.model.closed == 1


async def test_who_begins_while_another_is_chosen_has_the_model_and_it_is_closed_after_that_too(house: House) -> None:
    loader = await house.chosen()
    await house.models.of(ME).use("")  # after this question came, and before its run began
    while not house.model.closed:
        await asyncio.sleep(0)
    with loader.in_use():
        assert await loader.ready() is house.model
        assert house.model.prepared == 2
    await house.models.aclose()
    assert house.model.closed == 2


class Heavy(ScriptedModel):
    """A model that takes its time to leave the memory."""

    def __init__(self, name: str, memory: list[str], *, in_process: bool = True) -> None:
        super().__init__(name)
        self.name, self.memory, self.in_process = name, memory, in_process
        self.may_leave = asyncio.Event()

    async def prepare(self, progress: Any = None) -> None:
        self.memory.append(f"{self.name} in")

    async def aclose(self) -> None:
        await self.may_leave.wait()
        self.memory.append(f"{self.name} out")


@pytest.mark.parametrize("in_process", [True, False])
async def test_a_model_of_this_process_is_loaded_when_the_one_before_it_is_out_of_memory(
    house: House, monkeypatch: pytest.MonkeyPatch, in_process: bool
) -> None:
    memory: list[str] = []
    old, new = Heavy("old", memory), Heavy("new", memory, in_process=in_process)
    made = iter([old, new])
    monkeypatch.setattr(OwnerModels, "made", lambda *given, **more: next(made))
    await house.chosen()
    await house.models.of(ME).save(Draft("ollama", "", "another"), use=True)
    loader = await house.models.of(ME).loader()
    while loader.model is not new:
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(old.may_leave.set)
    await loader.ready()
    assert memory[:2] == (["old in", "old out"] if in_process else ["old in", "new in"])
    new.may_leave.set()


async def test_at_the_end_models_are_closed_that_somebody_still_works_with(house: House) -> None:
    loader = await house.chosen()
    with loader.in_use():
        await house.models.of(ME).use("")
        assert not house.model.closed
        await house.models.aclose()
    assert house.model.closed


async def test_the_model_of_whom_nobody_asked_about_for_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.models.pool._OPEN", 2)
    pool = ModelPool(ActiveModel(ModelLoader(ScriptedModel, Readiness()), Readiness()))
    models = {owner: Counted(owner) for owner in ("ann", "bob", "eve")}
    name = ModelName("ollama", "m")
    for owner, model in models.items():
        loader = ModelLoader(lambda model=model: model, Readiness())
        await loader.ready()
        pool.put(owner, name, ActiveModel(loader, Readiness()))
        assert pool.get("ann", name) is not None
    async with asyncio.timeout(10):
        while not models["bob"].closed:
            await asyncio.sleep(0)
    assert pool.get("bob", name) is None
    assert (models["ann"].closed, models["eve"].closed) == (0, 0)
    await pool.aclose()
    assert (models["ann"].closed, models["eve"].closed) == (1, 1)


async def test_models_of_one_service_are_open_side_by_side_until_its_settings_change(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = house.models.of(ME)
    monkeypatch.setattr(OwnerModels, "made", lambda self, choice, **more: Counted(choice.model))
    await models.save(Draft("ollama", "", "a"), use=True)
    first, second = [await models.loader(ModelName("ollama", name)) for name in ("a", "b")]
    assert await models.loader() is first
    opened = [await one.ready() for one in (first, second)]
    assert await models.loader(ModelName("ollama", "b")) is second
    await models.save(Draft("ollama", "http://127.0.0.1:1", "a"), use=False)
    async with asyncio.timeout(10):
        while not all(getattr(one, "closed", 0) for one in opened):
            await asyncio.sleep(0)
    assert await models.loader(ModelName("ollama", "b")) is not second


class Inside(Heavy):
    """One of this process, by the model's name."""

    def __init__(self, name: str, memory: list[str]) -> None:
        super().__init__(name, memory)
        self.model, self.model_type = name, "transformers"
        self.may_leave.set()


async def test_one_model_of_this_process_is_in_memory_at_a_time_and_looking_at_another_loads_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory: list[str] = []
    monkeypatch.setattr(OwnerModels, "made", lambda self, choice, **more: Inside(choice.model, memory))
    models, small, large = house.models.of(ME), ModelName("transformers", "small"), ModelName("transformers", "large")
    await (await models.loader(small)).ready()
    for name in (small, large, small, large):
        looked_at = await models.chosen(name)
        assert looked_at.readiness["model"].state == "ready"
        assert await models.chosen(name) is looked_at
    await house.models.pool.wait_closed()
    assert memory == ["small in"]
    await (await models.loader(large)).ready()
    assert memory == ["small in", "small out", "large in"]
    await (await models.loader(large)).ready()
    assert memory == ["small in", "small out", "large in"]


async def test_a_model_that_makes_room_finishes_what_it_is_writing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory: list[str] = []
    monkeypatch.setattr(OwnerModels, "made", lambda self, choice, **more: Inside(choice.model, memory))
    models = house.models.of(ME)
    small = await models.loader(ModelName("transformers", "small"))
    with small.in_use():
        await small.ready()
        await (await models.loader(ModelName("transformers", "large"))).ready()
        assert memory == ["small in", "large in"]
    await house.models.pool.wait_closed()
    assert memory == ["small in", "large in", "small out"]
