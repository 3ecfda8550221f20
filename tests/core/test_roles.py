"""Some Parlours serve pages and others write replies: what is asked at the one is answered by the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from core.engine import Engine
from core.errors import SettingsError
from core.runs.followed import FollowedRun
from core.runs.taking import chosen
from core.settings import Settings
from core.storage.base import QUEUED, Lease, RunRecord
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of

pytestmark = pytest.mark.anyio
SECRET = "the same secret of all Parlours"


@pytest.fixture
async def house(postgres: str, tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Opens Parlours on one database: `await house("web")`, `await house("worker", "Said.")`."""
    async with AsyncExitStack() as opened:

        async def open_one(role: str, *turns: Any, **more: Any) -> Engine:
            home = tmp_path / f"{role}-{len(list(tmp_path.iterdir()))}"
            given: Any = {"home": home, "retrieval": "keyword", "code": "off", "secret": SECRET, **more}
            settings = Settings.load(database=postgres, role=role, **given)
            return await opened.enter_async_context(Engine(settings, model=ScriptedModel(*turns)))

        yield open_one


async def asked(engine: Engine, text: str, owner: str = "alice") -> FollowedRun:
    """Ask in a new conversation of one that writes no replies."""
    talk = await engine.stores.of(owner).conversations.create()
    run = await talk_of(engine, owner, talk.id).ask(text)
    assert isinstance(run, FollowedRun)
    return run


async def test_what_is_asked_at_one_that_serves_pages_is_written_by_a_worker(house: Any) -> None:
    web, worker = await house("web"), await house("worker", "Said by a worker.")
    run = await asked(web, "Who writes?")
    with anyio.fail_after(20):
        assert await run.wait() == "complete"
    assert web.runs.table.live == {}
    assert web.readiness["model"].answered, "what writes in another process answers"
    (question, reply) = await talk_of(web, "alice", run.conversation_id).messages()
    assert (question.parts[0].get_text_content(), reply.status) == ("Who writes?", "complete")
    assert reply.parts[-1].get_text_content() == "Said by a worker."
    assert worker.services.agents.says_once


async def test_a_question_waits_for_a_worker_and_its_reader_is_told_that_nobody_writes(
    house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.runs.elsewhere._TOLD_AFTER", 0.0)
    web = await house("web")
    run = await asked(web, "Is anybody there?")
    talk = talk_of(web, "alice", run.conversation_id)
    with anyio.fail_after(20):
        while run.reply().unwritten != "nobody":
            await web.runs.elsewhere.look()
    assert [turn.status for turn in await talk.messages()] == ["complete", "running"]  # nothing is lost
    await house("worker", "Now I am.")
    with anyio.fail_after(20):
        assert await run.wait() == "complete"
    assert (await talk.messages())[-1].parts[-1].get_text_content() == "Now I am."


async def test_a_question_that_waits_is_stopped_without_a_worker(house: Any) -> None:
    web = await house("web")
    run = await asked(web, "Never mind?")
    talk = talk_of(web, "alice", run.conversation_id)
    await talk.stop()
    assert (await talk.messages())[-1].status == "stopped"
    worker = await house("worker", "Too late.")
    assert await worker.runs.recover() == 0
    assert (await talk.messages())[-1].status == "stopped"


async def test_a_reply_is_stopped_from_where_it_was_asked(house: Any) -> None:
    web = await house("web")
    await house("worker", Reply("word " * 2000, pace=0.01))
    run = await asked(web, "Count!")
    with anyio.fail_after(20):
        while "word" not in (await web.runs.of("alice").found(run.conversation_id)).reply().text:
            await anyio.sleep(0.01)  # between two looks
        await talk_of(web, "alice", run.conversation_id).stop()
    assert (await talk_of(web, "alice", run.conversation_id).messages())[-1].status == "stopped"


async def test_another_version_and_a_continuation_are_handed_over_as_well(house: Any) -> None:
    web = await house("web")
    await house("worker", Reply("Broken off", finish="length"), "Another version.", " and on.")
    run = await asked(web, "Say it.")
    talk = talk_of(web, "alice", run.conversation_id)
    with anyio.fail_after(30):
        assert await run.wait() == "complete"
        again = await talk.regenerate(run.message_id)
        assert await again.wait() == "complete"
        first, *_ = await web.stores.of("alice").conversations.siblings(again.message_id)
        on = await talk.continue_(first.id)
        assert await on.wait() == "complete"
    replies = await web.stores.of("alice").conversations.siblings(on.message_id)
    assert [one.parts[-1].get_text_content() for one in replies] == [
        "Broken off",
        "Another version.",
        "Broken off and on.",
    ]


async def test_a_worker_writes_no_more_at_once_than_it_may_and_one_owner_keeps_out_no_other(house: Any) -> None:
    web = await house("web")
    runs = [await asked(web, f"{number}?", owner) for number, owner in enumerate(["ann"] * 4 + ["bob"])]
    worker = await house("worker", *[Reply("word " * 2000, pace=0.01)] * 5, replies_per_worker=2)
    with anyio.fail_after(20):
        while len(worker.runs.table.live) < 2:
            await anyio.sleep(0.01)  # between two looks
    assert sorted(run.owner for run in worker.runs.table.live.values()) == ["ann", "bob"]
    assert await worker.runs._taking.look() == 0
    for run in runs:
        with anyio.fail_after(20):
            await web.runs.of(run.owner).stop(run.conversation_id)
    assert await worker.stores.runs.running() == []


def queued(*owners: str) -> list[tuple[RunRecord, Lease]]:
    return [
        (RunRecord(f"{at}", owner, f"{at}", f"{at}", "running", None, "", None, float(at), None), Lease(QUEUED, 0.0))
        for at, owner in enumerate(owners)
    ]


def test_an_owner_with_fewer_replies_comes_first_and_nobody_has_more_than_is_set() -> None:
    waits = queued("ann", "ann", "ann", "bob", "cid")
    assert [one.id for one, _ in chosen(waits, {}, 4, None)] == ["0", "3", "4", "1"]
    assert [one.id for one, _ in chosen(waits, {"ann": 1, "cid": 1}, 5, 2)] == ["3", "0", "4"]
    assert chosen(waits, {}, 0, None) == []
    assert [one.id for one, _ in chosen(waits, {"ann": 2, "bob": 2}, 5, 2)] == ["4"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"role": "page"}, "The setting 'role' must be 'all', 'web', 'worker' or 'sandbox'."),
        (
            {"role": "web"},
            "The setting 'role' must be all without PARLOUR_DATABASE: what one does alone, nobody else goes on with.",
        ),
        (
            {"role": "worker", "database": "postgresql://a@127.0.0.1/b", "replies_per_worker": 0},
            "The setting 'replies_per_worker' must be a whole number, 1 or more.",
        ),
    ],
)
def test_a_role_that_makes_no_sense_is_told_in_a_sentence(given: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.load(home=tmp_path, **given)
    assert str(refused.value.args[0]) == said
