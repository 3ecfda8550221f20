"""A conversation that was answered keeps its model where another one is chosen for new conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from core.engine import Engine
from core.messages.message import Message
from core.models.model_name import INSTALLED, ModelName
from core.models.own_models import Draft, OwnerModels
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation
from tests.core.talks import models_of, talk_of

pytestmark = pytest.mark.anyio

ME = LOCAL_OWNER
ONE, TWO = ModelName("compatible", "one"), ModelName("compatible", "two")


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as running:
        yield running


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda asked: Reply(text=f"I am {asked['model']}.")) as running:
        yield running


async def begun(engine: Engine, owner: str = ME) -> Conversation:
    return talk_of(engine, owner, (await engine.stores.of(owner).conversations.create()).id)


async def set_up(engine: Engine, server: ModelServer, owner: str = ME) -> OwnerModels:
    models = models_of(engine, owner)
    await models.save(Draft("compatible", server.base_url, "one", ""), use=False)
    return models


async def said(talk: Conversation, text: str = "Who are you?") -> str:
    run = await talk.ask(text)
    assert await run.wait() == "complete", run.error
    return (await talk.messages())[-1].parts[-1].get_text_content()


Choosing = Callable[[OwnerModels, ModelServer], Awaitable[None]]
WAYS: dict[str, Choosing] = {
    "all new ones": lambda models, _: models.use_for_all(ONE),
    "Use, of what was set up": lambda models, _: models.use("compatible"),
    "Use, in the dialog": lambda models, at: models.take(Draft("compatible", at.base_url, "one", "")),
}


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_said_to_the_installations_model_is_sent_to_no_service_that_answers_new_conversations(
    engine: Engine, server: ModelServer, way: str
) -> None:
    models, old, untouched = await set_up(engine, server), await begun(engine), await begun(engine)
    await said(old, "A secret of this machine")
    await WAYS[way](models, server)
    assert (await said(old, "And now?")).startswith("You said: And now?")
    assert all("secret" not in str(request.body) for request in server.requests)
    assert await said(untouched) == "I am one."
    assert await said(await begun(engine)) == "I am one."


async def test_each_keeps_the_one_that_answered_it_however_often_another_is_chosen(
    engine: Engine, server: ModelServer
) -> None:
    models = await set_up(engine, server)
    talks: list[Conversation] = []
    for name in (ONE, TWO, INSTALLED):
        await models.use_for_all(name)
        talks.append(await begun(engine))
        await said(talks[-1])
    await models.use_for_all(ONE)
    assert [await said(talk, "And now?") for talk in talks[:2]] == ["I am one.", "I am two."]
    assert (await said(talks[2], "And now?")).startswith("You said:")


async def test_one_for_which_a_model_was_chosen_keeps_that_and_can_still_be_given_another(
    engine: Engine, server: ModelServer
) -> None:
    models, talk, temporary = await set_up(engine, server), await begun(engine), await begun(engine)
    await talk.choose_model(TWO)
    await said(talk)
    kept = {"temporary": True, "instructions": "Be brief."}
    await temporary.stores.conversations.configure(temporary.id, lambda _: kept)
    await said(temporary)
    await models.use_for_all(ONE)
    assert await said(talk, "And now?") == "I am two."
    assert await temporary.chosen() == {**kept, "model": INSTALLED.as_json()}
    await talk.choose_model(None)
    assert await said(talk, "And now?") == "I am one."


async def test_another_model_of_a_service_that_is_set_up_anew_answers_where_the_one_before_did(
    engine: Engine, server: ModelServer
) -> None:
    models, talk = await set_up(engine, server), await begun(engine)
    await models.use("compatible")
    assert await said(talk) == "I am one."
    await models.save(Draft("compatible", server.base_url, "two", ""), use=True)
    assert await said(talk, "And now?") == "I am two."


async def test_one_whose_service_was_removed_says_so_and_is_sent_to_no_other(
    engine: Engine, server: ModelServer
) -> None:
    models, talk = await set_up(engine, server), await begun(engine)
    await models.use("compatible")
    await said(talk)
    await models.remove("compatible")
    run = await talk.ask("Still there?")
    assert await run.wait() == "error"
    assert run.error is not None
    assert run.error["key"] == "model_gone"
    assert (await said(await begun(engine))).startswith("You said:")


async def test_one_whose_reply_is_being_written_keeps_its_model_too(engine: Engine, server: ModelServer) -> None:
    models, talk = await set_up(engine, server), await begun(engine)
    run = await talk.ask("Who are you?")
    await models.use_for_all(ONE)
    assert await run.wait() == "complete"
    assert (await said(talk, "And now?")).startswith("You said:")


async def test_one_that_was_brought_in_from_elsewhere_is_answered_as_a_new_one(
    engine: Engine, server: ModelServer
) -> None:
    models, talk = await set_up(engine, server), await begun(engine)
    store = talk.stores.conversations
    question = await store.add_message(talk.id, "user", [Message("user", "Hi")], None)
    await store.add_message(talk.id, "assistant", [Message("assistant", "Hello.")], question.id)
    await models.use_for_all(ONE)
    assert await said(talk) == "I am one."


async def test_a_choice_of_one_person_changes_nothing_of_another(engine: Engine, server: ModelServer) -> None:
    models, hers = await set_up(engine, server), await begun(engine, "alice")
    await said(hers)
    await models.use_for_all(ONE)
    assert await hers.model() is None
    assert await engine.stores.of("alice").answered.configure(lambda kept: kept) == 0
