"""Each conversation is answered by its own model, where it has one, whatever its owner uses elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core.engine import Engine
from core.errors import ParlourError
from core.models.model_name import INSTALLED, ModelName
from core.models.own_models import Draft, OwnerModels
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation
from tests.core.talks import model_of, models_of, talk_of

pytestmark = pytest.mark.anyio

ME = LOCAL_OWNER
KEY = "sk-CANARY-0123456789abcdef"
ONE, TWO = ModelName("compatible", "one"), ModelName("compatible", "two")


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda asked: Reply(text=f"I am {asked['model']}."), api_key=KEY) as running:
        yield running


async def begun(engine: Engine) -> Conversation:
    return talk_of(engine, ME, (await engine.stores.of(ME).conversations.create()).id)


async def set_up(engine: Engine, server: ModelServer) -> OwnerModels:
    models = models_of(engine, ME)
    await models.save(Draft("compatible", server.base_url, "one", KEY), use=False)
    return models


async def said(talk: Conversation, text: str = "Who are you?") -> str:
    run = await talk.ask(text)
    assert await run.wait() == "complete", run.error
    return await last(talk)


async def last(talk: Conversation) -> str:
    return (await talk.messages())[-1].parts[-1].get_text_content()


async def test_conversations_are_answered_side_by_side_by_models_of_their_own(
    engine: Engine, server: ModelServer
) -> None:
    await set_up(engine, server)
    first, second, third = [await begun(engine) for _ in range(3)]
    await first.choose_model(ONE)
    await second.choose_model(TWO)
    assert await asyncio.gather(said(first), said(second)) == ["I am one.", "I am two."]
    assert (await said(third)).startswith("You said:")
    assert await said(first, "And now?") == "I am one."
    await first.choose_model(None)
    assert (await said(first, "And now?")).startswith("You said:")


async def test_whatever_is_done_in_a_conversation_asks_its_own_model(engine: Engine, server: ModelServer) -> None:
    await set_up(engine, server)
    talk = await begun(engine)
    await said(talk)
    await talk.choose_model(TWO)
    question, reply = await talk.messages()
    for work in (
        lambda: talk.regenerate(reply.id),
        lambda: talk.edit(question.id, "Hello there?"),
        lambda: talk.continue_(reply.id),
    ):
        run = await work()
        assert await run.wait() == "complete", run.error
        assert (await last(talk)).endswith("I am two.")


async def test_a_reply_can_be_written_again_by_another_model_for_once(engine: Engine, server: ModelServer) -> None:
    await set_up(engine, server)
    talk = await begun(engine)
    await said(talk)
    reply = (await talk.messages())[-1]
    run = await talk.regenerate(reply.id, model=TWO)
    assert await run.wait() == "complete", run.error
    assert await last(talk) == "I am two."
    assert await talk.model() is None
    assert (await said(talk, "And now?")).startswith("You said:")


async def test_the_usual_model_can_be_any_model_of_a_service(engine: Engine, server: ModelServer) -> None:
    models = await set_up(engine, server)
    await models.use_for_all(TWO)
    assert await models.usual() == TWO
    assert await said(await begun(engine)) == "I am two."
    pinned = await begun(engine)
    await pinned.choose_model(INSTALLED)
    assert (await said(pinned)).startswith("You said:")
    await models.use_for_all(INSTALLED)
    assert await models.usual() == INSTALLED
    assert (await model_of(engine, ME)).service == ""


async def test_a_fork_keeps_the_model_of_its_conversation(engine: Engine, server: ModelServer) -> None:
    await set_up(engine, server)
    talk = await begun(engine)
    await talk.choose_model(ONE)
    await said(talk)
    copy = await talk.fork((await talk.messages())[-1].id)
    assert await talk_of(engine, ME, copy.id).model() == ONE


async def test_a_model_that_is_gone_fails_the_reply_and_nothing_is_sent_elsewhere(
    engine: Engine, server: ModelServer
) -> None:
    models = await set_up(engine, server)
    talk = await begun(engine)
    await talk.choose_model(TWO)
    assert await said(talk) == "I am two."
    asked = len(server.requests)
    await models.remove("compatible")
    run = await talk.ask("Still there?")
    assert await run.wait() == "error"
    assert run.error is not None
    assert (run.error["key"], run.error["details"]["model"]) == ("model_gone", "two")
    assert len(server.requests) == asked
    part = (await models.chosen(TWO)).readiness["model"]
    assert (part.state, part.remedy_key) == ("failed", "model_gone")
    await set_up(engine, server)  # it is set up again
    assert await said(talk, "And now?") == "I am two."


async def test_a_key_that_was_removed_is_said_to_be_missing(engine: Engine) -> None:
    models = models_of(engine, ME)
    await models.save(Draft("openai", "", "gpt-5-mini", KEY), use=False)
    talk = await begun(engine)
    await talk.choose_model(ModelName("openai", "gpt-5"))
    await models.save(Draft("openai", "", "gpt-5-mini", ""), use=False)
    run = await talk.ask("Hello?")
    assert await run.wait() == "error"
    assert run.error is not None
    assert (run.error["key"], run.error["details"]["host"]) == ("model_key_missing", "api.openai.com")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (ModelName("martian", "m"), "service_not_offered"),
        (ModelName("compatible", "m"), "model_gone"),
        (ModelName("openai", "gpt-5"), "model_gone"),
        (ModelName("compatible~2", "x" * 500), "model_gone"),
        (ModelName("llama_cpp", "no such weights"), "unknown_name"),
    ],
)
async def test_what_cannot_answer_cannot_be_chosen(engine: Engine, name: ModelName, key: str) -> None:
    talk = await begun(engine)
    for choosing in (talk.choose_model(name), models_of(engine, ME).use_for_all(name)):
        with pytest.raises(ParlourError) as caught:
            await choosing
        assert caught.value.words_key == key
    assert await talk.model() is None


@pytest.mark.parametrize("stored", [None, "one", [], {"service": 1}, {"service": "x" * 2_000}, {"model": "one"}])
async def test_a_choice_that_nobody_can_have_made_is_none(engine: Engine, stored: object) -> None:
    talk = await begun(engine)
    await talk.stores.conversations.configure(talk.id, lambda kept: {**kept, "model": stored})
    assert await talk.model() is None
    assert (await said(talk)).startswith("You said:")
