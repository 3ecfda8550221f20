"""The engine and its model: waited for, missing, tried again, wrongly named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from core.engine import Engine
from core.errors import ModelUnavailableError, SettingsError
from core.llm.local_files import BUILT_IN
from core.llm.request import Progress
from core.models.default_model import default_model
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import model_of, talk_of

pytestmark = pytest.mark.anyio


class Unreachable(ScriptedModel):
    """A model whose file cannot be fetched until somebody connects the network."""

    connected = False

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        if progress is not None:
            progress(Progress("model", 10, 100))
        await asyncio.sleep(0)
        if not self.connected:
            raise ModelUnavailableError(message="There is no network.", key="weights_unreachable")


def opened(home: Path, model: ScriptedModel) -> Engine:
    return Engine(Settings.load(home=home), model=model)


async def becomes(engine: Engine, what: Callable[[], bool]) -> None:
    """Wait, from one change of the engine to the next, until this is so."""
    change = asyncio.Event()
    leave = engine.on_change(lambda _owner, _talk: change.set())
    async with asyncio.timeout(180):
        while not what():
            await change.wait()
            change.clear()
    leave()


async def test_a_question_asked_too_early_waits_for_the_model(tmp_path: Path) -> None:
    loaded = asyncio.Event()

    class Loading(ScriptedModel):
        async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
            if progress is not None:
                progress(Progress("model", 10, 100))
            await loaded.wait()

    async with opened(tmp_path / "home", Loading("Here I am.")) as engine:
        told: list[object] = []
        engine.on_change(lambda owner, talk_id: told.append((owner, talk_id)))
        talk = await engine.stores.of("alice").conversations.create()
        run = await talk_of(engine, "alice", talk.id).ask("Are you there?")
        await becomes(engine, lambda: engine.readiness["model"].total == 100)
        assert (engine.readiness["model"].state, run.status) == ("loading", "running")
        loaded.set()
        assert await run.wait() == "complete"
        assert engine.readiness["model"].state == "ready"
        assert (None, None) in told
        assert ("alice", talk.id) in told


async def test_a_model_that_cannot_be_had_says_what_to_do_and_is_tried_again(tmp_path: Path) -> None:
    model = Unreachable("Hello.")
    async with opened(tmp_path / "home", model) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        run = await talk_of(engine, "alice", talk.id).ask("Hello?")
        assert await run.wait() == "error"
        assert run.error is not None
        assert run.error["key"] == "weights_unreachable"
        await becomes(engine, lambda: engine.readiness["model"].state == "failed")
        assert engine.readiness["model"].remedy_key == "weights_unreachable"
        model.connected = True
        (await model_of(engine, "alice")).loader.retry()
        again = await talk_of(engine, "alice", run.conversation_id).regenerate(run.message_id)
        assert await again.wait() == "complete"
        assert engine.readiness["model"].state == "ready"


async def test_settings_that_name_no_model_still_open_the_house(tmp_path: Path) -> None:
    async with Engine(Settings.load(home=tmp_path / "home", model_type="nonsense")) as engine:
        await becomes(engine, lambda: engine.readiness["model"].state != "loading")
        assert engine.readiness["model"].remedy_key == "unknown_name"
        assert engine.readiness["database"].state == "ready"


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        (
            {"model_type": "nonsense"},
            "no model type named 'nonsense', as the setting 'model_type' {} has it. Write one of",
        ),
        (
            {"model_type": "llama_cpp", "model": "nonsense"},
            "no built-in model named 'nonsense', as the setting 'model' {} has it",
        ),
        ({"model": "gone.gguf"}, "no model file 'gone.gguf', as the setting 'model' {} has it. Write the path of"),
    ],
)
async def test_what_names_no_model_is_told_with_its_variable_what_was_typed_and_what_to_write_and_once(
    variables: dict[str, str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    field = named.rpartition("setting '")[2].partition("'")[0]
    for name, value in variables.items():
        monkeypatch.setenv(f"PARLOUR_{name.upper()}", value)
    async with Engine(Settings.load(home=tmp_path / "home")) as engine:
        loader = (await model_of(engine, "alice")).loader
        for _ in range(2):
            with pytest.raises(SettingsError):
                await loader.ready()
    (warned,) = [one.getMessage() for one in caplog.records if "The model is not ready" in one.getMessage()]
    assert named.format(f"(PARLOUR_{field.upper()})") in warned
    for name in variables:
        monkeypatch.delenv(f"PARLOUR_{name.upper()}")
    with pytest.raises(SettingsError) as caught:
        default_model(Settings.load(home=tmp_path / "home", **cast("Any", variables)))
    assert named.format("").replace("  ", " ") in str(caught.value)


async def test_a_built_in_model_that_waits_is_fetched_when_somebody_asks_and_not_before(tmp_path: Path) -> None:
    fetched: list[str] = []

    class BuiltIn(ScriptedModel):
        model_type = BUILT_IN
        in_process = True

        async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
            del progress
            fetched.append("weights")

    async with Engine(Settings.load(home=tmp_path / "home"), model=BuiltIn("Here I am."), waits=True) as engine:
        ahead = asyncio.create_task(engine.services.read_ahead())
        await becomes(engine, lambda: engine.readiness["model"].state == "ready")
        assert (fetched, [*engine.readiness.notes]) == ([], ["model_waits"])
        assert not ahead.done()
        await (await model_of(engine, "alice")).loader.ready()
        assert (fetched, [*engine.readiness.notes]) == (["weights"], [])
        await ahead


async def test_only_a_model_that_would_be_fetched_waits(tmp_path: Path) -> None:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel("Hello."), waits=True) as engine:
        await becomes(engine, lambda: engine.readiness["model"].state == "ready")
        assert engine.readiness.notes == {}
