"""The models that can be chosen, side by side: what is known of each, and nothing that is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.doors.catalog import Catalog
from core.engine import Engine
from core.errors import ParlourError
from core.llm.usage import Listed, listed
from core.llm.weights_catalog import named
from core.models.choices import Choosable, ModelMenu, ServiceChoices, is_near
from core.models.model_name import INSTALLED, Abilities, ModelName
from core.models.own_models import Draft, OwnerModels
from core.models.remembered import Notes
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.conversations import TEMPORARY
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.clearing import delete_everything
from tests.core.talks import models_of, world_of

pytestmark = pytest.mark.anyio

ME = LOCAL_OWNER
KEY = "sk-CANARY-0123456789abcdef"


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as running:
        yield running


async def services(engine: Engine, owner: str = ME) -> dict[str, ServiceChoices]:
    return {one.service: one for one in await ModelMenu(models_of(engine, owner)).services()}


async def model(engine: Engine, service: str, name: str) -> Choosable:
    found = (await services(engine))[service].models
    return next(one for one in found if one.name.model == name)


async def test_a_service_without_a_key_is_there_with_its_usual_model_and_comes_last(engine: Engine) -> None:
    every = await services(engine)
    assert next(iter(every)) == ""
    assert [one.state for one in every["anthropic"].models] == ["no_key"]
    assert {"gemini", "mistral", "groq", "deepseek", "moonshot", "openai"} <= set(every)
    assert "ollama" not in every  # there may be none: it stands there once it was set up
    await models_of(engine, ME).save(Draft("groq", "", "", KEY), use=False)
    names = [*await services(engine)]
    assert names.index("groq") < names.index("anthropic")
    assert all(one.state == "untried" for one in (await services(engine))["groq"].models)


async def test_nobody_else_is_shown_what_runs_on_this_machine(engine: Engine) -> None:
    assert "llama_cpp" in await services(engine)
    assert "llama_cpp" not in await services(engine, "reader")


def downloaded(folder: Path, name: str) -> None:
    """The file of built-in weights, as one that was fetched and checked; its bytes are holes."""
    weights = named(name)
    folder.mkdir(exist_ok=True)
    path = folder / weights.file
    with path.open("wb") as file:
        file.truncate(weights.size)
    checked = {"path": str(path), "size": weights.size, "modified": path.stat().st_mtime_ns}
    (folder / f"{weights.file}.checked.json").write_text(json.dumps(checked), "utf-8")


async def test_a_built_in_model_says_whether_its_file_is_here_or_how_much_must_be_downloaded(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    downloaded(folder, "smollm2-135m")
    (folder / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf.part").write_bytes(b"x" * 1_000)
    (folder / "smollm3-3b.gguf.part").write_bytes(b"x" * 10)
    given = Settings.load(home=tmp_path / "home", weights_dir=folder)
    async with Engine(given, model=ScriptedModel()) as engine:
        found = {one.name.model: one for one in (await services(engine))["llama_cpp"].models}
        rows = {one.weights.name: one for one in models_of(engine, ME).weight_files.list()}
    assert [(one.state, one.done, one.total, one.estimated) for one in found.values()] == [
        ("absent", 0, 491_400_064, False),
        ("absent", 1_000, 1_117_320_768, False),
        ("here", 0, 0, False),
        ("absent", 10, 1_900_000_000, True),  # not measured yet: listed as something of it is here
    ]
    # What the terminal lists is the same.
    assert [(rows[name].state == "here") == (one.state == "here") for name, one in found.items()] == [True] * 4
    assert [rows[name].weights.size or rows[name].weights.about for name in found] == [
        one.total or rows[name].weights.size for name, one in found.items()
    ]


async def test_programs_are_offered_the_built_in_models_whose_files_are_here(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    downloaded(folder, "smollm2-135m")
    given = Settings.load(home=tmp_path / "home", weights_dir=folder)
    async with Engine(given, model=ScriptedModel()) as engine:
        offered = await Catalog(world_of(engine, ME), None).all()
    assert [one.id for one in offered if one.id.startswith("llama_cpp/")] == ["llama_cpp/smollm2-135m"]
    assert "installed" in {one.id for one in offered}


async def test_the_installation_s_model_is_known_among_the_built_in_ones(tmp_path: Path) -> None:
    model = ScriptedModel()
    model.model_type, model.model = "llama_cpp", "qwen2.5-coder-0.5b"
    given = Settings.load(home=tmp_path / "home", weights_dir=tmp_path / "weights")
    async with Engine(given, model=model) as engine:
        await engine.services.models.pool.default.loader.ready()
        (default,) = (await services(engine))[""].models
        (others,) = (await services(engine, "reader"))[""].models
    assert (default.twin, default.state, default.listed.context, default.free) == (model.model, "ready", 32_768, True)
    assert others.twin == ""  # nobody else is shown the built-in ones


async def test_what_a_service_offers_is_asked_for_once_and_remembered(engine: Engine) -> None:
    with ModelServer(Reply(text="x"), api_key=KEY, models=["a", "vl-b"]) as server:
        models = models_of(engine, ME)
        await models.save(Draft("compatible", server.base_url, "mine", KEY), use=False)
        menu = ModelMenu(models)
        assert [one.name.model for one in (await services(engine))["compatible"].models] == ["mine"]
        assert await menu.refresh()
        assert not await menu.refresh()
    found = (await services(engine))["compatible"].models  # also where it does not answer any more
    assert [(one.name.model, one.state, one.sees, one.free) for one in found] == [
        ("mine", "ready", False, True),
        ("a", "ready", False, True),
        ("vl-b", "ready", True, True),
    ]


async def test_a_service_that_does_not_answer_says_so(engine: Engine) -> None:
    models = models_of(engine, ME)
    await models.save(Draft("compatible", "http://127.0.0.1:9", "m"), use=False)
    assert await ModelMenu(models).refresh()
    assert (await model(engine, "compatible", "m")).state == "no_answer"


async def test_a_model_that_answered_is_ready_and_one_that_failed_is_not(engine: Engine) -> None:
    with ModelServer(Reply(text="x"), api_key=KEY) as server:
        models = models_of(engine, ME)
        await models.save(Draft("compatible", server.base_url, "m", KEY), use=True)
        talk = await engine.stores.of(ME).conversations.create()
        assert await (await world_of(engine, ME).conversation(talk.id).ask("Hi")).wait() == "complete"
        assert (await model(engine, "compatible", "m")).state == "ready"
        server.api_key = "another"
        assert await (await world_of(engine, ME).conversation(talk.id).ask("Hi")).wait() == "error"
        assert (await model(engine, "compatible", "m")).state == "no_key"


async def test_what_was_said_by_hand_counts_for_what_is_shown_accepted_and_sent(engine: Engine) -> None:
    with ModelServer(Reply(text="x"), api_key=KEY) as server:
        models, name = models_of(engine, ME), ModelName("compatible", "plain")
        said = Abilities(sees=True, hears=True, calls=False)
        await models.save(Draft("compatible", server.base_url, "plain", KEY, said), use=False)
        shown = await model(engine, "compatible", "plain")
        assert (shown.sees, shown.hears, shown.calls) == (True, True, False)
        made = await (await models.loader(name)).ready()
        assert (made.support_multimodal_input, made.support_audio_input, made.native_calls) == (True, True, False)
        assert await world_of(engine, ME).accepts_audio(name)
        await models.save(Draft("compatible", server.base_url, "plain", None, Abilities()), use=False)
        made = await (await models.loader(name)).ready()
        assert (made.support_multimodal_input, made.support_audio_input, made.native_calls) == (False, False, True)


async def test_nine_models_can_be_favourites_and_one_whose_service_is_removed_is_none(engine: Engine) -> None:
    models = models_of(engine, ME)
    await models.save(Draft("openai", "", "m", KEY), use=False)
    menu, names = ModelMenu(models), [ModelName("openai", f"m{number}") for number in range(10)]
    await asyncio.gather(*(menu.star(name, on=True) for name in names[:9]))
    for work in (menu.star(names[9], on=True), menu.star(ModelName("martian", "m"), on=True)):
        with pytest.raises(ParlourError) as caught:
            await work
        assert caught.value.words_key in {"favourites_full", "service_not_offered"}
    await menu.star(names[0], on=False)
    await menu.star(names[9], on=True)
    assert set((await models.notes.all()).favourites) == set(names[1:])
    await models.remove("openai")
    assert (await models.notes.all()).favourites == ()


async def used_until(models: OwnerModels, *names: ModelName) -> None:
    """Wait for what is noted after a reply."""
    async with asyncio.timeout(30):
        while await models.notes.used() != names:
            await asyncio.sleep(0)


async def test_the_models_that_wrote_replies_are_remembered_the_newest_first(engine: Engine) -> None:
    with ModelServer(lambda request: Reply(text="x"), api_key=KEY) as server:
        models, world = models_of(engine, ME), world_of(engine, ME)
        await models.save(Draft("compatible", server.base_url, "m", KEY), use=False)
        one, two = ModelName("compatible", "m"), ModelName("compatible", "n")
        first, second = [world.conversation((await world.conversations.create()).id) for _ in range(2)]
        await (await first.ask("Hi")).wait()
        await used_until(models, INSTALLED)
        await second.choose_model(one)
        await (await second.ask("Hi")).wait()
        await used_until(models, one, INSTALLED)
        reply = (await second.messages())[-1]
        await (await second.regenerate(reply.id, model=two)).wait()
        await used_until(models, two, one, INSTALLED)
        assert [one.name.model for one in (await services(engine))["compatible"].models] == ["m", "n"]
        await (await first.ask("Hi")).wait()
        await used_until(models, INSTALLED, two, one)
        await models.remove("compatible")
        assert await models.notes.used() == (INSTALLED,)
        await delete_everything(world)
        assert await models.notes.used() == ()


async def test_a_reply_that_failed_or_is_temporary_leaves_no_model_among_those_used(engine: Engine) -> None:
    models, world = models_of(engine, ME), world_of(engine, ME)
    await models.save(Draft("compatible", "http://127.0.0.1:9", "m"), use=False)
    failed = world.conversation((await world.conversations.create()).id)
    await failed.choose_model(ModelName("compatible", "m"))
    assert await (await failed.ask("Hi")).wait() == "error"
    passing = world.conversation((await world.conversations.create(settings={TEMPORARY: True})).id)
    assert await (await passing.ask("Hi")).wait() == "complete"
    async with asyncio.timeout(30):
        while world.services.is_adding:
            await asyncio.sleep(0)
    assert await models.notes.used() == ()


async def test_of_many_models_that_were_used_the_last_twenty_are_remembered(engine: Engine) -> None:
    notes = models_of(engine, ME).notes
    for number in range(30):
        await notes.note_used(ModelName("openai", f"m{number}"))
    assert [one.model for one in await notes.used()] == [f"m{number}" for number in range(29, 9, -1)]


@pytest.mark.parametrize("kept", ["x", {"a": 1}, [1, None, {"service": 1}, {"service": "x" * 2_000}]])
async def test_used_models_that_nobody_can_have_noted_are_none(engine: Engine, kept: Any) -> None:
    await engine.stores.of(ME).settings.change("models_used", lambda _: kept)
    notes = models_of(engine, ME).notes
    assert await notes.used() == ()
    await notes.note_used(INSTALLED)
    assert await notes.used() == (INSTALLED,)


@pytest.mark.parametrize(
    "kept", [None, [], "x", {"favourites": 1, "said": {}, "offered": [1]}, {"favourites": [1, {}]}]
)
def test_notes_that_nobody_can_have_made_are_none(kept: Any) -> None:
    notes = Notes.read(kept)
    assert (notes.favourites, dict(notes.said), dict(notes.offered)) == ((), {}, {})


async def test_a_price_is_the_lists_and_one_that_it_does_not_know_is_none() -> None:
    found = await listed(["gpt-4o", "no such model"], "https://api.openai.com/v1")
    assert found == {"gpt-4o": Listed(2.5, 10.0, 128_000)}
    assert await listed(["gpt-4o"], "https://models.example/v1") == {}


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://192.168.1.20/v1", True),
        ("http://workshop:80/v1", True),
        ("http://box.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("", False),
    ],
)
def test_what_runs_near_is_free(address: str, near: bool) -> None:
    assert is_near(address) is near
