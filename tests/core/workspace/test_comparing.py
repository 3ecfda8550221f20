"""Two models answer one question side by side: neither is lost, nothing is done twice, and one of them goes on."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import zipfile
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import ConflictError, NotFoundError
from core.export.sharing import snapshot
from core.models.model_name import ModelName
from core.models.own_models import Draft
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.storage.conversations import TEMPORARY
from core.storage.second_replies import SecondReplyStore
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.comparing import Comparison
from core.workspace.conversation import Conversation
from core.workspace.taking import Taking
from tests.core.talks import models_of, talk_of

pytestmark = pytest.mark.anyio

ME = LOCAL_OWNER
Servers = tuple[ModelServer, ModelServer]
ONE, TWO = ModelName("compatible", "one"), ModelName("ollama", "two")


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with house(tmp_path) as running:
        yield running


def house(folder: Path, *turns: Any) -> Engine:
    return Engine(Settings.load(home=folder / "home"), model=ScriptedModel(*turns))


@pytest.fixture
def held() -> threading.Event:
    """Set, it lets the model *two* answer."""
    return threading.Event()


@pytest.fixture
def servers(held: threading.Event) -> Iterator[Servers]:
    """Of *one*, and of *two*, which waits."""

    def answer(asked: dict[str, Any]) -> Reply:
        if asked["model"] == "two":
            held.wait(60)
        return Reply(text=f"I am {asked['model']}, after {len(asked['messages'])}.")

    with ModelServer(answer) as first, ModelServer(answer) as second:
        yield first, second
        held.set()


async def begun(engine: Engine, servers: Servers) -> Conversation:
    """A conversation that *one* answers, and *two* beside it."""
    for name, server in zip((ONE, TWO), servers, strict=True):
        await models_of(engine, ME).save(Draft(name.service, server.base_url, name.model, "k"), use=False)
    talk = talk_of(engine, ME, (await engine.stores.of(ME).conversations.create()).id)
    await talk.choose_model(ONE)
    await talk.choose_second_model(TWO)
    return talk


async def second_of(talk: Conversation, *, over: bool = True) -> Comparison:
    """What is compared, once the second reply is there, and has moved if it is to be over."""
    async with asyncio.timeout(30):
        while True:
            now = await talk.comparing.now()
            if now is not None and now.second is not None and (now.second.conversation_id == talk.id) is over:
                return now
            await asyncio.sleep(0)


async def shown(talk: Conversation) -> list[str]:
    return [turn.parts[-1].get_text_content() for turn in await talk.messages() if turn.parts]


async def listed(engine: Engine) -> int:
    return len(await engine.stores.of(ME).conversations.list(temporary=True))


async def test_both_answer_and_the_second_reply_is_a_version_of_the_first(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    talk = await begun(engine, servers)
    run = await talk.ask("Who are you?")
    assert await run.wait() == "complete", run.error
    now = await second_of(talk, over=False)
    assert now.second is not None
    assert now.second.status == "running"
    assert (await talk.messages())[-2].id == now.question
    held.set()
    over = (await second_of(talk)).second
    assert over is not None
    assert over.id == now.second.id
    assert (over.status, over.parent_id) == ("complete", now.question)
    assert over.parts[-1].get_text_content().startswith("I am two")
    assert (await shown(talk))[-1].startswith("I am one")
    versions = await engine.stores.of(ME).conversations.siblings(over.id)
    assert [one.id for one in versions] == [run.message_id, over.id]
    assert await listed(engine) == 1
    kinds = [one.event.kind for one in await talk.runs.events(over.run_id or "")]
    assert kinds.count("model_called") == 1


@pytest.mark.parametrize("form", ["md", "html"])
async def test_what_is_exported_has_both_replies_under_the_names_of_their_models_until_one_goes_on(
    engine: Engine, servers: Servers, held: threading.Event, form: Any
) -> None:
    talk = await begun(engine, servers)
    exporting = Taking(talk.services).exporting

    async def exported(form: Any = form) -> str:
        made = await exporting.export(talk.id, form)
        return "".join([piece async for piece in made.pieces])

    await (await talk.ask("Who are you?")).wait()
    second = (await second_of(talk, over=False)).second
    assert second is not None
    begun_one = await exported()
    assert begun_one.index("I am one") < begun_one.index("This reply was still being written")
    assert f'"id":"{second.id}"' in await exported("json"), "all of it is in JSON"
    held.set()
    await second_of(talk)
    both = await exported()
    names = re.findall(r'(?:## |<h2 class="who">)Assistant · (\w+)', both)
    assert names == ["one", "two"]
    assert both.index("I am one") < both.index("I am two")
    assert "not in sight" not in both
    await talk.choose_second_model(None)
    alone = await exported()
    assert "I am two" not in alone
    assert "1 turn of another version is not in sight" in alone


async def test_a_copy_of_what_is_shared_has_both_replies_to_the_one_question(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    await (await talk.ask("Who are you?")).wait()
    await second_of(talk)
    shared = await snapshot(Taking(talk.services).exporting, talk.id, "en")
    assert shared.held.messages == 3
    with zipfile.ZipFile(BytesIO(shared.bundle)) as archive:
        names = {name.rpartition("/")[2]: name for name in archive.namelist()}
        rows = [json.loads(line) for line in archive.read(names["messages.jsonl"]).splitlines()]
        about = json.loads(archive.read(names["conversation.json"]))
    question, first, second = rows
    assert question["parent_id"] is None
    assert first["parent_id"] == second["parent_id"] == question["id"]
    assert about["conversation"]["leaf_id"] == first["id"]


async def test_the_conversation_counts_as_answered_as_long_as_the_second_reply_is_written(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    talk = await begun(engine, servers)
    run = await talk.ask("Who are you?")
    await run.wait()
    await second_of(talk, over=False)
    assert talk.runs.live(talk.id) is None
    assert talk.runs.live_conversations() == {talk.id}
    held.set()
    await second_of(talk)
    assert talk.runs.live_conversations() == set()


async def test_both_models_were_used_unless_the_conversation_is_a_temporary_one(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    notes = models_of(engine, ME).notes
    await engine.stores.of(ME).conversations.configure(talk.id, lambda kept: {**kept, TEMPORARY: True})
    await (await talk.ask("Who are you?")).wait()
    await second_of(talk)
    async with asyncio.timeout(30):
        while talk.services.is_adding:
            await asyncio.sleep(0)
    assert await notes.used() == ()
    await talk.keep()
    await (await talk.ask("And now?")).wait()
    async with asyncio.timeout(30):
        while set(await notes.used()) != {ONE, TWO}:
            await asyncio.sleep(0)


async def test_the_meter_tells_what_the_second_model_costs(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    await (await talk.ask("Who are you?")).wait()
    await second_of(talk)
    known = await talk.metering()
    assert known is not None
    second = (await known.with_draft("More.")).second
    assert second is not None
    assert (second.label.split(" ")[0], second.free) == ("two", True)
    await talk.choose_second_model(None)
    alone = await talk.metering()
    assert alone is not None
    assert alone.meter.second is None


async def test_a_new_question_goes_to_both_with_what_is_shown(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    for text in ("Who are you?", "And now?"):
        run = await talk.ask(text)
        assert await run.wait() == "complete", run.error
        await second_of(talk)
    now = await second_of(talk)
    assert now.second is not None
    first, second = (await shown(talk))[-1], now.second.parts[-1].get_text_content()
    assert first.removeprefix("I am one") == second.removeprefix("I am two")


async def test_a_reply_that_is_written_again_side_by_side_has_both_models_and_the_next_question_too(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    await talk.choose_second_model(None)
    alone = await talk.ask("Who are you?")
    await alone.wait()
    assert await talk.comparing.now() is None
    again = await talk.regenerate(alone.message_id, beside=TWO)
    assert await again.wait() == "complete", again.error
    now = await second_of(talk)
    assert now.second is not None
    assert now.second.parts[-1].get_text_content().startswith("I am two")
    assert (await shown(talk))[-1].startswith("I am one")
    assert len(await engine.stores.of(ME).conversations.siblings(again.message_id)) == 3
    await (await talk.ask("And now?")).wait()
    assert (await second_of(talk)).question != now.question


@pytest.mark.parametrize("which", ["first", "second"])
async def test_who_goes_on_with_one_has_its_model_alone_from_then_on(
    engine: Engine, servers: Servers, held: threading.Event, which: str
) -> None:
    held.set()
    talk = await begun(engine, servers)
    run = await talk.ask("Who are you?")
    await run.wait()
    over = (await second_of(talk)).second
    assert over is not None
    await talk.prefer(run.message_id if which == "first" else over.id)
    name = "one" if which == "first" else "two"
    assert (await shown(talk))[-1].startswith(f"I am {name}")
    assert await talk.comparing.now() is None
    assert await talk.model() == (ONE if which == "first" else TWO)
    again = await talk.ask("And now?")
    await again.wait()
    assert (await shown(talk))[-1].startswith(f"I am {name}")
    assert len(await engine.stores.of(ME).conversations.siblings(again.message_id)) == 1


async def test_to_choose_one_stops_the_other_and_keeps_what_there_is_of_it(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    talk = await begun(engine, servers)
    run = await talk.ask("Who are you?")
    await run.wait()
    second = (await second_of(talk, over=False)).second
    assert second is not None
    await talk.prefer(run.message_id)
    left = await engine.stores.of(ME).conversations.message(second.id)
    assert (left.status, left.conversation_id) == ("stopped", talk.id)
    assert await listed(engine) == 1


async def test_who_leaves_while_a_question_is_stored_takes_neither_the_question_nor_its_files_along(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    asking = asyncio.create_task(talk.ask("Who are you?"))
    while talk.runs.live(talk.id) is None:
        await asyncio.sleep(0)
    asking.cancel()  # too late: the question is there, and so is whoever answers it
    run = await asking
    assert await run.wait() == "complete"
    assert (await second_of(talk)).second is not None


async def test_stop_stops_both(engine: Engine, servers: Servers, held: threading.Event) -> None:
    talk = await begun(engine, servers)
    await talk.choose_model(TWO)
    run = await talk.ask("Who are you?")
    await second_of(talk, over=False)
    await talk.stop()
    over = (await second_of(talk)).second
    assert (run.status, over.status if over else "") == ("stopped", "stopped")


async def test_stop_stops_also_a_second_reply_that_is_just_about_to_begin(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, go, real = asyncio.Event(), asyncio.Event(), SecondReplyStore.open

    async def slowly(self: SecondReplyStore, *given: str) -> str:
        place = await real(self, *given)
        opened.set()
        await go.wait()
        return place

    monkeypatch.setattr(SecondReplyStore, "open", slowly)
    with ModelServer(lambda _: Reply(hang=True)) as first, ModelServer(lambda _: Reply(hang=True)) as second:
        talk = await begun(engine, (first, second))
        run = await talk.ask("Who are you?")
        async with asyncio.timeout(30):
            await opened.wait()
            await talk.stop()
            go.set()
            now = await second_of(talk)
    assert run.status == "stopped"
    assert now.second is not None
    assert now.second.status == "stopped"


async def test_a_conversation_takes_its_second_reply_along_when_it_is_deleted(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    talk = await begun(engine, servers)
    run = await talk.ask("Who are you?")
    await run.wait()
    await second_of(talk, over=False)
    await talk.delete()
    assert await listed(engine) == 0


async def test_a_conversation_takes_along_a_second_reply_that_could_not_be_moved(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    stores = engine.stores.of(ME)
    question = await stores.conversations.add_message(talk.id, "user", [], None)
    place = await stores.second_replies.open(talk.id, question.id)  # its reply was never begun
    await talk.delete()
    with pytest.raises(NotFoundError):
        await stores.conversations.settings(place)


async def test_a_place_is_its_owners_and_belongs_to_a_question(engine: Engine, servers: Servers) -> None:
    talk = await begun(engine, servers)
    seconds = engine.stores.of(ME).second_replies
    question = await engine.stores.of(ME).conversations.add_message(talk.id, "user", [], None)
    place = await seconds.open(talk.id, question.id)
    assert await seconds.is_place(place)
    assert await seconds.close(place) is None  # nothing was written yet
    with pytest.raises(NotFoundError):
        await seconds.close(talk.id)
    with pytest.raises(NotFoundError):
        await seconds.open(talk.id, "nowhere")
    with pytest.raises(NotFoundError):
        await engine.stores.of("bob").second_replies.close(place)


async def test_a_question_by_one_model_alone_ends_the_comparison(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    await (await talk.ask("Who are you?")).wait()
    await second_of(talk)
    await talk.choose_second_model(None)
    assert await talk.comparing.now() is None
    run = await talk.ask("And now?")
    await run.wait()
    assert len(await engine.stores.of(ME).conversations.siblings(run.message_id)) == 1


async def test_a_second_model_that_is_gone_says_so_in_its_own_column(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    await models_of(engine, ME).remove("ollama")
    await talk.choose_model(None)
    run = await talk.ask("Who are you?")
    assert await run.wait() == "complete", run.error
    over = (await second_of(talk)).second
    assert over is not None
    assert over.status == "error"
    assert (await shown(talk))[-1].startswith("You said")


async def test_after_the_end_of_the_process_the_second_reply_is_moved_when_it_is_looked_at(
    tmp_path: Path, servers: Servers, held: threading.Event
) -> None:
    async with house(tmp_path) as engine:
        talk = await begun(engine, servers)
        run = await talk.ask("Who are you?")
        await run.wait()
        second = (await second_of(talk, over=False)).second
        conversation = talk.id
    async with house(tmp_path) as engine:
        over = (await second_of(talk_of(engine, ME, conversation))).second
        assert over is not None
        assert second is not None
        assert (over.id, over.status) == (second.id, "interrupted")
        assert await listed(engine) == 1


async def test_one_that_nobody_looked_at_is_not_swept_away(
    tmp_path: Path, servers: Servers, held: threading.Event
) -> None:
    async with house(tmp_path) as engine:
        talk = await begun(engine, servers)
        run = await talk.ask("Who are you?")
        await run.wait()
        second = (await second_of(talk, over=False)).second
    async with house(tmp_path) as engine:
        assert await engine.chores.temporary.sweep(time.time() + 10 * 24 * 3600) == 0
        assert second is not None
        moved = await engine.stores.of(ME).conversations.message(second.id)
        assert moved.conversation_id == talk.id


async def test_a_fork_compares_nothing_yet_and_goes_on_with_both_models(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    held.set()
    talk = await begun(engine, servers)
    run = await talk.ask("Who are you?")
    await run.wait()
    await second_of(talk)
    fresh = talk_of(engine, ME, (await talk.fork(run.message_id)).id)
    assert await fresh.comparing.now() == Comparison(TWO)


async def test_what_settings_hold_by_hand_compares_nothing(engine: Engine, servers: Servers) -> None:
    talk = await begun(engine, servers)
    for wrong in ("x", {}, {"question": "q"}, {"question": "q", "place": "gone"}, {"question": 1, "reply": [2]}):
        await engine.stores.of(ME).conversations.configure(
            talk.id, lambda kept, wrong=wrong: {**kept, "compared": wrong}
        )
        assert await talk.comparing.now() == Comparison(TWO)


async def test_another_reply_is_refused_while_the_first_is_written(
    engine: Engine, servers: Servers, held: threading.Event
) -> None:
    talk = await begun(engine, servers)
    await talk.choose_model(TWO)
    await talk.ask("Who are you?")
    with pytest.raises(ConflictError):
        await talk.ask("And you?")
    await talk.stop()
