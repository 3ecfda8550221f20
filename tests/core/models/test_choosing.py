"""Choosing a model: tried, kept, used from the next question on; each owner's own, and no way into the house."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import ConflictError, ParlourError
from core.llm.backends.openai import service as openai_service
from core.llm.layers.retry import FAILURES
from core.models.menu import same_place
from core.models.own_models import AllModels, Draft
from core.models.pool import ActiveModel, ModelLoader
from core.readiness import Readiness
from core.settings import NO_KEY, Settings
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.core.stores import stores_over
from tests.core.talks import model_of, models_of, talk_of

pytestmark = pytest.mark.anyio

ME = LOCAL_OWNER
KEY = "sk-CANARY-0123456789abcdef"


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as running:
        yield running


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "parlour.db")
    yield opened
    await opened.aclose()


def draft(server: ModelServer, key: str | None = KEY, model: str = "m") -> Draft:
    return Draft("compatible", server.base_url, model, key)


async def reply_to(engine: Engine, owner: str, text: str = "Hi") -> str:
    talk = await engine.stores.of(owner).conversations.create()
    run = await talk_of(engine, owner, talk.id).ask(text)
    assert await run.wait() == "complete", run.error
    return (await engine.stores.of(owner).conversations.thread(talk.id))[-1].parts[-1].get_text_content()


async def refusal_of(work: Any) -> ParlourError:
    with pytest.raises(ParlourError) as caught:
        await work
    assert KEY not in str(caught.value) + repr(caught.value.details)
    return caught.value


async def test_without_a_choice_the_installations_model_answers(engine: Engine) -> None:
    assert (await reply_to(engine, ME)).startswith("You said: Hi")
    assert (await model_of(engine, ME)).service == ""


async def test_a_chosen_service_answers_from_the_next_question_on(engine: Engine) -> None:
    with ModelServer(Reply(text="From the service."), api_key=KEY) as server:
        await models_of(engine, ME).save(draft(server), use=True)
        assert await reply_to(engine, ME) == "From the service."
        chosen = await model_of(engine, ME)
        assert (chosen.service, chosen.readiness["model"].answered) == ("compatible", True)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert (await reply_to(engine, "alice")).startswith("You said")  # somebody else's question goes where it went
        await models_of(engine, ME).use("")
        assert (await reply_to(engine, ME)).startswith("You said")
        await models_of(engine, ME).use("compatible")
        assert await reply_to(engine, ME) == "From the service."


async def test_a_choice_outlives_the_process_and_a_test_uses_the_kept_key(tmp_path: Path) -> None:
    with ModelServer(Reply(text="Here."), api_key=KEY) as server:
        settings = Settings.load(home=tmp_path)
        async with Engine(settings, model=ScriptedModel()) as one:
            await models_of(one, ME).save(draft(server), use=True)
        async with Engine(settings, model=ScriptedModel()) as other:
            assert await reply_to(other, ME) == "Here."
            (kept,) = await models_of(other, ME).kept()
            assert (kept.key_end, kept.in_use) == ("cdef", True)
            label, seconds = await models_of(other, ME).test(draft(server, None))
            assert label.startswith("m · 127.0.0.1")
            assert 0 <= seconds < 30


async def test_what_answers_and_is_tested_is_known_to_work_or_not(engine: Engine) -> None:
    answers = [Reply(text="Yes."), Reply(text="Yes."), Reply(text="Yes."), Reply(status=401), Reply(text="Yes.")]
    with ModelServer(lambda _: answers.pop(0)) as server:
        models = models_of(engine, ME)
        await models.save(draft(server), use=True)
        chosen = await model_of(engine, ME)
        await chosen.loader.ready()
        part = chosen.readiness
        assert (part["model"].state, part["model"].answered) == ("ready", False)
        for other in (draft(server, "sk-other"), draft(server, model="other")):
            await models.test(other)
            assert not part["model"].answered, "that is not what answers"
        await models.test(draft(server, None))
        assert (part["model"].state, part["model"].answered) == ("ready", True)
        await refusal_of(models.test(draft(server, None)))
        assert (part["model"].state, part["model"].remedy_key) == ("failed", "model_key_wrong")
        await models.test(draft(server))
        assert (part["model"].state, part["model"].answered) == ("ready", True)


async def test_a_reply_that_is_being_written_keeps_its_model(engine: Engine) -> None:
    slow = Reply(text=" ".join(f"word{n}" for n in range(60)), pace=0.01)
    with ModelServer(slow) as old, ModelServer(Reply(text="New.")) as new:
        await models_of(engine, ME).save(draft(old), use=True)
        talk = await engine.stores.of(ME).conversations.create()
        run = await talk_of(engine, ME, talk.id).ask("Hi")
        async for _ in run.log.follow():
            break
        await models_of(engine, ME).save(draft(new), use=True)
        assert await run.wait() == "complete"
        assert (
            (await engine.stores.of(ME).conversations.thread(talk.id))[-1]
            .parts[-1]
            .get_text_content()
            .endswith("word59")
        )
        assert await reply_to(engine, ME) == "New."


async def test_saving_alone_changes_nothing_that_answers(engine: Engine) -> None:
    with ModelServer(Reply(text="No.")) as server:
        await models_of(engine, ME).save(draft(server), use=False)
        assert (await reply_to(engine, ME)).startswith("You said")


async def test_saving_one_service_leaves_the_model_of_another_as_it_is(engine: Engine) -> None:
    with ModelServer(Reply(text="Here.")) as server:
        await models_of(engine, ME).save(draft(server), use=True)
        assert await reply_to(engine, ME) == "Here."
        before = await model_of(engine, ME)
        await models_of(engine, ME).save(Draft("openai", key=KEY), use=False)
        assert await model_of(engine, ME) is before  # weights that are loaded stay loaded
        await models_of(engine, ME).save(draft(server, model="other"), use=False)
        assert (await model_of(engine, ME)).loader.label.startswith("other")  # but what answers is what was saved of it


async def test_a_wrong_key_is_told_and_shown_nowhere(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = Reply(status=401, error={"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid"}})
    with ModelServer(echo) as server:
        error = await refusal_of(models_of(engine, ME).test(draft(server)))
        assert error.words_key == "model_key_wrong"
        await models_of(engine, ME).save(draft(server), use=True)
        talk = await engine.stores.of(ME).conversations.create()
        run = await talk_of(engine, ME, talk.id).ask("Hi")
        assert await run.wait() == "error"
        assert KEY not in repr(run.error)
        assert (await model_of(engine, ME)).readiness["model"].remedy_key == "model_key_wrong"
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("reply", "key"),
    [
        (Reply(status=404, error={"error": {"message": "no such model"}}), "model_unknown"),
        (Reply(body="<html>Hello</html>", content_type="text/html"), "model_html"),
        (Reply(text=""), "model_silent"),
    ],
)
async def test_a_test_says_what_is_wrong(engine: Engine, reply: Reply, key: str) -> None:
    with ModelServer(reply) as server:
        assert (await refusal_of(models_of(engine, ME).test(draft(server)))).words_key == key
        assert len(server.requests) == 1  # a test is not tried again


async def test_a_service_that_wants_a_key_where_none_was_typed_asks_for_one(engine: Engine) -> None:
    with ModelServer(Reply(text="never"), api_key=KEY) as server:
        assert (await refusal_of(models_of(engine, ME).test(draft(server, key="")))).words_key == "model_key_missing"
        assert (await refusal_of(models_of(engine, ME).test(draft(server, "sk-other")))).words_key == "model_key_wrong"


@pytest.mark.parametrize("address", ["http://", "https:///v1", "http:", "://", "http://:8000"])
async def test_half_an_address_is_none(engine: Engine, address: str) -> None:
    assert (
        await refusal_of(models_of(engine, ME).test(Draft("compatible", address, "m")))
    ).words_key == "address_wrong"


async def test_a_service_that_was_down_can_be_tried_as_often_as_one_likes(engine: Engine, free_port: int) -> None:
    gone = Draft("compatible", f"http://127.0.0.1:{free_port}/v1", "m", KEY)
    errors = [await refusal_of(models_of(engine, ME).test(gone)) for _ in range(FAILURES + 1)]
    assert {error.words_key for error in errors} == {"model_unreachable"}


async def test_the_installations_own_model_can_be_tried(engine: Engine) -> None:
    label, _ = await models_of(engine, ME).test(Draft(""))
    assert label == "scripted"


async def test_a_test_asks_for_no_more_than_the_first_word(engine: Engine) -> None:
    with ModelServer(Reply(text="a " * 500, pace=0.01)) as server:
        await models_of(engine, ME).test(draft(server))
        assert server.requests[0].ended.wait(10)
        assert server.requests[0].left_early


async def test_a_test_has_a_time_limit_and_runs_alone(tmp_path: Path, database: Database) -> None:
    stores = stores_over(database)
    default = ActiveModel(ModelLoader(ScriptedModel, Readiness()), Readiness())
    models = AllModels(Settings.load(home=tmp_path), stores, default, lambda owner: None, seconds=0.2)
    with ModelServer(Reply(hang=True)) as server:
        first = asyncio.create_task(refusal_of(models.of(ME).test(draft(server))))
        await asyncio.sleep(0)
        with pytest.raises(ConflictError):
            await models.of(ME).test(draft(server))
        error = await first
        assert (error.words_key, error.details["host"]) == ("model_slow", f"127.0.0.1:{server.port}")
    await models.aclose()


@pytest.mark.parametrize(
    ("given", "host"),
    [(Draft(""), "scripted"), (Draft("compatible", "127.0.0.1:{port}", "m"), "127.0.0.1:{port}")],
)
async def test_what_took_too_long_is_named(tmp_path: Path, database: Database, given: Draft, host: str) -> None:
    stores = stores_over(database)
    with ModelServer(Reply(hang=True)) as server:
        default = ActiveModel(ModelLoader(lambda: ScriptedModel(Reply(text="x", delay=60)), Readiness()), Readiness())
        models = AllModels(Settings.load(home=tmp_path), stores, default, lambda owner: None, seconds=0.2)
        typed = replace(given, address=given.address.format(port=server.port))
        error = await refusal_of(models.of(ME).test(typed))
        assert (error.words_key, error.details["host"]) == ("model_slow", host.format(port=server.port))
    await models.aclose()
    await default.loader.aclose()


async def test_the_models_of_a_service_are_listed(engine: Engine) -> None:
    with ModelServer(Reply(text="x"), models=["b", "a"]) as server:
        assert await models_of(engine, ME).offered(draft(server, model="")) == ["a", "b"]
    assert await models_of(engine, ME).offered(draft(server, model="")) == []
    assert "qwen2.5-coder-0.5b" in await models_of(engine, ME).offered(Draft("llama_cpp"))


async def test_a_rush_of_readers_does_not_ask_for_lists_without_end(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = list[str](), asyncio.Event()

    async def slow(address: str, key: str, *, public_only: bool) -> list[str]:
        asked.append(address)
        await answered.wait()
        return ["listed"]

    monkeypatch.setattr(openai_service, "offered_models", slow)
    first = [asyncio.create_task(models_of(engine, f"b-{n}").offered(Draft("openai", key=KEY))) for n in range(20)]
    while len(asked) < len(first):
        await asyncio.sleep(0)
    assert await models_of(engine, "b-more").offered(Draft("openai", key=KEY)) == ["gpt-5-mini"]
    answered.set()
    assert await asyncio.gather(*first) == [["listed"]] * len(first)
    assert await models_of(engine, "b-more").offered(Draft("openai", key=KEY)) == ["listed"]


async def test_a_kept_key_goes_to_no_other_server(engine: Engine) -> None:
    with ModelServer(Reply(text="x")) as mine, ModelServer(Reply(text="x")) as other:
        await models_of(engine, ME).save(draft(mine), use=True)
        await models_of(engine, ME).test(draft(other, None))
        assert other.requests[0].headers["authorization"] == f"Bearer {NO_KEY}"
        await models_of(engine, ME).save(draft(other, None), use=True)
        assert (await models_of(engine, ME).kept())[0].key is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/v1", "https://a.example:443/v2", True),
        ("http://127.0.0.1:80", "http://127.0.0.1/v1", True),
        ("http://a.example", "https://a.example", False),
        ("https://a.example", "https://a.example:8443", False),
        ("https://a.example", "https://b.example", False),
    ],
)
def test_a_server_is_known_by_its_name_and_port(one: str, other: str, same: bool) -> None:
    assert same_place(one, other) is same


async def test_a_key_is_taken_away_with_an_empty_one(engine: Engine) -> None:
    with ModelServer(Reply(text="x")) as server:
        await models_of(engine, ME).save(draft(server), use=True)
        await models_of(engine, ME).save(draft(server, ""), use=True)
        await reply_to(engine, ME)
        assert server.requests[0].headers["authorization"] == f"Bearer {NO_KEY}"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (Draft("martian"), "service_not_offered"),
        (Draft("compatible", "", "m"), "address_missing"),
        (Draft("azure", " ", "m"), "address_missing"),
        (Draft("compatible", "ftp://a.example/v1", "m"), "address_wrong"),
        (Draft("compatible", "http://user:pw@a.example/v1", "m"), "address_wrong"),
        (Draft("compatible", "http://a.example/v1?key=x", "m"), "address_wrong"),
        (Draft("compatible", "http://a b/v1", "m"), "address_wrong"),
        (Draft("compatible", "http://[::1/v1", "m"), "address_wrong"),
        (Draft("compatible", "http://a.example:99999", "m"), "address_wrong"),
        (Draft("compatible", "http://" + "a" * 600, "m"), "address_wrong"),
        (Draft("compatible", "http://a.example", " "), "model_not_typed"),
        (Draft("compatible", "http://a.example", "x" * 201), "model_not_typed"),
        (Draft("compatible", "http://a.example", "two\nlines"), "model_not_typed"),
        (Draft("llama_cpp", "", "no-such-weights"), "unknown_name"),
        (Draft("transformers"), "model_not_typed"),
        (Draft("compatible", "http://a.example", "m", f"{KEY}\r\nx: y"), "key_wrong_form"),
        (Draft("compatible", "http://a.example", "m", "钥匙"), "key_wrong_form"),
        (Draft("compatible", "http://a.example", "m", "x" * 5000), "key_wrong_form"),
    ],
)
async def test_what_cannot_be_meant_is_refused(engine: Engine, given: Draft, key: str) -> None:
    assert (await refusal_of(models_of(engine, ME).save(given, use=True))).words_key == key
    assert (await refusal_of(models_of(engine, ME).test(given))).words_key == key
    assert await models_of(engine, ME).kept() == []


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("localhost:11434", "http://localhost:11434/v1"),
        (" http://127.0.0.1:1234/ ", "http://127.0.0.1:1234/v1"),
        ("https://A.Example/api/v1/", "https://a.example/api/v1"),
        ("api.example.com/v1", "https://api.example.com/v1"),  # the key must not travel in the open
        ("api.example.com:8443", "https://api.example.com:8443/v1"),
        ("http://api.example.com/v1", "http://api.example.com/v1"),
        ("192.168.1.7:8000", "http://192.168.1.7:8000/v1"),
        ("[fd00::7]:8000", "http://[fd00::7]:8000/v1"),
        ("gpu-box:8000", "http://gpu-box:8000/v1"),
        ("gpu.local:8000", "http://gpu.local:8000/v1"),
        ("8.8.8.8", "https://8.8.8.8/v1"),
        ("http://127.0.0.1:8000/v1/chat/completions/", "http://127.0.0.1:8000/v1"),
        ("https://a.example/api/models", "https://a.example/api"),
    ],
)
async def test_an_address_is_kept_whole(engine: Engine, typed: str, kept: str) -> None:
    await models_of(engine, ME).save(Draft("compatible", typed, "m"), use=False)
    assert (await models_of(engine, ME).kept())[0].address == kept


@pytest.mark.parametrize("service", ["llama_cpp", "ollama", "vllm"])
async def test_a_reader_of_a_shared_page_cannot_choose_what_runs_on_this_machine(engine: Engine, service: str) -> None:
    assert (await refusal_of(models_of(engine, "b-alice").save(Draft(service, "", "m"), use=True))).words_key == (
        "service_not_offered"
    )


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:11434/v1", "localhost", "https://169.254.169.254/v1", "[::1]", "http://a.example"]
)
async def test_a_reader_of_a_shared_page_cannot_name_this_machine(engine: Engine, address: str) -> None:
    given = Draft("compatible", address, "m", KEY)
    assert (await refusal_of(models_of(engine, "b-alice").save(given, use=True))).words_key == "address_private"
    assert (await refusal_of(models_of(engine, "b-alice").test(given))).words_key == "address_private"
    assert (await refusal_of(models_of(engine, "b-alice").offered(given))).words_key == "address_private"
    azure = Draft("azure", "https://evil.example", "m", KEY)
    assert (await refusal_of(models_of(engine, "b-alice").save(azure, use=True))).words_key == "address_private"


async def test_the_installations_key_is_for_whoever_runs_it_alone(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    default = ActiveModel(ModelLoader(ScriptedModel, Readiness()), Readiness())
    stores = stores_over(database)
    models = AllModels(Settings.load(home=tmp_path), stores, default, lambda owner: None)
    given = Draft("openai")
    assert (await models.of(ME).checked(given)).key == KEY
    guest = await models.of("b-alice").checked(given)
    assert (guest.key, guest.address) == ("", "https://api.openai.com/v1")
    with pytest.raises(ParlourError) as caught:
        models.of("b-alice").made(guest)
    assert caught.value.words_key == "model_key_missing"
    own = models.of("b-alice").made(await models.of("b-alice").checked(Draft("openai", key="sk-of-alice")))
    assert own.cfg["api_key"] == "sk-of-alice"
    assert KEY not in repr(await models.of(ME).checked(given)) + repr(Draft("openai", key=KEY))


async def test_a_service_that_wants_a_key_is_not_used_without_one(engine: Engine) -> None:
    models = models_of(engine, ME)
    for work in (models.test, partial(models.save, use=True)):
        error = await refusal_of(work(Draft("deepseek")))
        assert (error.words_key, error.details["host"]) == ("model_key_missing", "api.deepseek.com")
    await models_of(engine, ME).save(Draft("deepseek"), use=False)
    assert (await model_of(engine, ME)).service == ""


async def test_a_key_of_another_secret_is_asked_for_again(tmp_path: Path) -> None:
    with ModelServer(Reply(text="x")) as server:
        async with Engine(Settings.load(home=tmp_path, secret="one"), model=ScriptedModel()) as engine:
            await models_of(engine, ME).save(draft(server), use=True)
        async with Engine(Settings.load(home=tmp_path, secret="two"), model=ScriptedModel()) as engine:
            talk = await engine.stores.of(ME).conversations.create()
            run = await talk_of(engine, ME, talk.id).ask("Hi")
            assert await run.wait() == "error"
            assert run.error is not None
            assert run.error["key"] == "key_unreadable"
            await models_of(engine, ME).save(draft(server), use=True)
            assert await reply_to(engine, ME) == "x"


async def test_what_a_test_refuses_is_not_taken_and_the_old_model_goes_on(engine: Engine) -> None:
    with ModelServer(Reply(text="Here."), api_key=KEY) as server:
        wrong = draft(server, "sk-CANARY-of-another")
        assert (await refusal_of(models_of(engine, ME).take(wrong))).words_key == "model_key_wrong"
        nowhere = Draft("compatible", "http://127.0.0.1:9/v1", "m")
        assert (await refusal_of(models_of(engine, ME).take(nowhere))).words_key == "model_unreachable"
        assert (await model_of(engine, ME)).service == ""
        assert not await models_of(engine, ME).kept()
        await models_of(engine, ME).take(draft(server))
        assert await reply_to(engine, ME) == "Here."


async def test_what_was_tried_to_be_taken_counts_as_tried_until_another_is_chosen(engine: Engine) -> None:
    async def tried() -> bool:
        chosen = await model_of(engine, ME)
        await chosen.loader.ready()
        return chosen.readiness["model"].answered

    with ModelServer(Reply(text="Here."), api_key=KEY) as server:
        await models_of(engine, ME).take(draft(server))
        assert await tried()
        await models_of(engine, ME).save(draft(server, model="other"), use=True)
        assert not await tried()
        (await model_of(engine, ME)).loader.answered()
        (await model_of(engine, ME)).loader.failed(ParlourError("", key="model_key_wrong"))
        (await model_of(engine, ME)).loader.retry()
        assert not await tried()


async def test_the_installations_model_counts_as_tried_after_a_test(engine: Engine) -> None:
    await models_of(engine, ME).test(Draft(""))
    assert (await model_of(engine, ME)).readiness["model"].answered


async def test_several_servers_of_one_kind_stand_side_by_side_each_with_its_key(engine: Engine) -> None:
    with ModelServer(Reply(text="One."), api_key=KEY) as one, ModelServer(Reply(text="Two."), api_key=KEY[:-1]) as two:
        await models_of(engine, ME).take(draft(one))
        await models_of(engine, ME).take(replace(draft(two, KEY[:-1]), service="compatible~2"))
        assert await reply_to(engine, ME) == "Two."
        await models_of(engine, ME).use("compatible")
        assert await reply_to(engine, ME) == "One."
        assert [kept.service for kept in await models_of(engine, ME).kept()] == ["compatible", "compatible~2"]
        await models_of(engine, ME).remove("compatible")
        assert (await model_of(engine, ME)).service == ""
        assert [kept.service for kept in await models_of(engine, ME).kept()] == ["compatible~2"]


@pytest.mark.parametrize(
    "name", ["openai~2", "compatible~1", "compatible~100", "compatible~02", "martian~2", "compatible~2~3"]
)
async def test_only_servers_whose_address_is_typed_can_be_several(engine: Engine, name: str) -> None:
    given = Draft(name, "http://127.0.0.1:9/v1", "m", KEY)
    assert (await refusal_of(models_of(engine, ME).save(given, use=False))).words_key == "service_not_offered"
