"""The model on its way: told, failed, tried again, closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from core.bridge.watchdog import own_time, stood_by
from core.errors import ModelUnavailableError, ParlourError
from core.llm.request import Progress
from core.models.pool import ModelLoader
from core.readiness import Readiness
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


class Fetched(ScriptedModel):
    """A model that tells from a thread how far it is."""

    failures: int = 0
    prepared: int = 0
    is_closed: bool = False

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        self.prepared += 1
        assert progress is not None
        for done in (10, 100):
            await asyncio.to_thread(progress, Progress("weights", done, 100))
        if self.prepared <= self.failures:
            raise ModelUnavailableError(message="No network.", key="weights_unreachable")

    async def aclose(self) -> None:
        self.is_closed = True


async def test_progress_comes_from_any_thread_and_ends_ready() -> None:
    model, told = Fetched("x"), list[tuple[str, int]]()
    readiness = Readiness(lambda: told.append((readiness["model"].state, readiness["model"].done)))
    loader = ModelLoader(lambda: model, readiness)
    assert loader.label == ""
    loader.start()
    assert await loader.ready() is model
    assert ("loading", 10) in told
    assert ("loading", 100) in told
    while readiness["model"].state != "ready":
        await asyncio.sleep(0)
    assert readiness["model"].label == loader.label == "scripted"
    assert (readiness["model"].in_process, readiness["model"].built_in) == (True, False)
    assert await loader.ready() is model
    assert model.prepared == 1
    await loader.aclose()
    assert model.is_closed


async def test_a_model_that_is_fetched_in_the_place_of_another_is_told_by_its_own_name() -> None:
    class SecondChoice(Fetched):
        async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
            self.label = "the second"
            await super().prepare(progress)

    told = list[tuple[int, str]]()
    readiness = Readiness(lambda: told.append((readiness["model"].done, readiness["model"].label)))
    loader = ModelLoader(lambda: SecondChoice("x"), readiness)
    await loader.ready()
    assert (10, "the second") in told
    await loader.aclose()


async def test_that_a_model_runs_in_this_process_can_be_known_before_it_is_made() -> None:
    for inside in (True, False):
        readiness = Readiness()
        loader = ModelLoader(lambda: Fetched("x"), readiness, "big")
        loader.start(inside=inside)
        assert (readiness["model"].label, readiness["model"].in_process) == ("big", inside)
        await loader.aclose()


async def test_a_failure_names_its_remedy_and_the_next_one_who_waits_tries_again() -> None:
    model, readiness = Fetched("x"), Readiness()
    model.failures = 1
    loader = ModelLoader(lambda: model, readiness)
    with pytest.raises(ModelUnavailableError):
        await loader.ready()
    while readiness["model"].state != "failed":
        await asyncio.sleep(0)
    assert readiness["model"].remedy_key == "weights_unreachable"
    assert await loader.ready() is model
    await loader.aclose()


async def test_what_nobody_foresaw_is_a_failure_too() -> None:
    def broken() -> ScriptedModel:
        raise ZeroDivisionError

    readiness = Readiness()
    loader = ModelLoader(broken, readiness)
    with pytest.raises(ParlourError) as caught:
        await loader.ready()
    assert caught.value.words_key == "unexpected"
    assert readiness["model"].remedy_key == "unexpected"
    await loader.aclose()


async def test_whoever_stops_waiting_does_not_stop_the_loading() -> None:
    model, readiness = Fetched("x"), Readiness()
    loader = ModelLoader(lambda: model, readiness)
    waiting = asyncio.create_task(loader.ready())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert await loader.ready() is model
    assert model.prepared == 1
    await loader.aclose()


async def test_closing_in_the_middle_stops_the_loading() -> None:
    class Endless(ScriptedModel):
        async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
            await asyncio.Event().wait()

    loader = ModelLoader(lambda: Endless("x"), Readiness())
    loader.start()
    await asyncio.sleep(0)
    await loader.aclose()


async def test_a_service_that_fails_a_reply_is_not_ready_until_one_succeeds() -> None:
    readiness = Readiness()
    loader = ModelLoader(lambda: ScriptedModel("x"), readiness)
    await loader.ready()
    while readiness["model"].state != "ready":
        await asyncio.sleep(0)
    loader.failed(ModelUnavailableError(message="Busy.", key="model_overloaded"))
    assert readiness["model"].state == "ready"
    loader.failed(ModelUnavailableError(message="Gone.", key="model_unreachable"))
    assert (readiness["model"].state, readiness["model"].remedy_key) == ("failed", "model_unreachable")
    loader.retry()
    assert (readiness["model"].state, readiness["model"].answered) == ("ready", False)
    loader.answered()
    assert readiness["model"].answered
    await loader.aclose()


class Slow(ScriptedModel):
    """A model that is fetched for longer than a reply may take."""

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        fetched = asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, fetched.set)
        await fetched.wait()


async def test_the_time_in_which_a_model_is_fetched_counts_for_no_limit() -> None:
    loader = ModelLoader(lambda: Slow("x"), Readiness())
    async with own_time(0.15):
        assert (await loader.ready()).label == "scripted"
    with pytest.raises(TimeoutError):
        async with own_time(0.05):
            await loader.ready()
            await asyncio.Event().wait()  # from here on it counts
    await loader.aclose()


async def test_several_who_wait_for_models_at_once_stop_the_clock_once() -> None:
    told: list[bool] = []
    loaders = [ModelLoader(lambda: Slow("x"), Readiness()) for _ in range(2)]

    def stand(*, still: bool) -> None:
        told.append(still)

    with stood_by(stand):
        await asyncio.gather(*(loader.ready() for loader in loaders))
        await loaders[0].ready()  # there is nothing to wait for
    assert told == [True, False]
    for loader in loaders:
        await loader.aclose()


async def test_what_goes_on_behind_a_limit_that_is_over_disturbs_nobody() -> None:
    loader = ModelLoader(lambda: Slow("x"), Readiness())
    async with own_time(5.0):
        waiting = asyncio.create_task(loader.ready())
        await asyncio.sleep(0)
    assert (await waiting).label == "scripted"
    await loader.aclose()
