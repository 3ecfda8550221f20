"""A conversation is named by the model that answered its first question, and never over a person's name for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import NotFoundError
from core.llm.request import ChatRequest, Stream
from core.runs.beside import Titles
from core.runs.manager import Live
from core.settings import Settings
from core.storage.base import ConversationRecord
from core.testing.model_server import ModelServer
from core.testing.script import Reply, refusal
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of

pytestmark = pytest.mark.anyio

ASKED = "When will the harbour be rebuilt, and by whom?"
TITLE = "Harbour rebuilding"


def is_for_a_title(request: dict[str, Any]) -> bool:
    return "<exchange>" in str(request["messages"][-1]["content"])


def naming(title: Reply | Callable[[], Reply], answer: str = "Next year, by forty people.") -> Callable[[Any], Reply]:
    """Answers, and gives this title when it is asked for one."""

    def reply(request: dict[str, Any]) -> Reply:
        if not is_for_a_title(request):
            return Reply(answer)
        return title if isinstance(title, Reply) else title()

    return reply


@asynccontextmanager
async def house(home: Path, server: ModelServer, **settings: Any) -> AsyncGenerator[Engine]:
    given = {"titles": True, "base_url": server.base_url, "model": "scripted", "api_key": "any", **settings}
    async with Engine(Settings.load(home=home, **given)) as engine:
        yield engine


async def named(engine: Engine, *questions: str, owner: str = "alice") -> tuple[ConversationRecord, list[Live]]:
    """A conversation with these questions, after all titles were made."""
    talk = await engine.stores.of(owner).conversations.create()
    runs: list[Live] = []
    for question in questions:
        runs.append(await talk_of(engine, owner, talk.id).ask(question))
        await runs[-1].wait()
        await settled(engine, owner)
    return await engine.stores.of(owner).conversations.get(talk.id), runs


async def settled(engine: Engine, owner: str = "alice") -> None:
    """No title is being made any more."""
    while engine.services.of(owner).is_adding:
        await asyncio.sleep(0.01)


def asked_for_titles(server: ModelServer) -> int:
    return sum(is_for_a_title(one.question) for one in server.requests)


async def test_the_title_comes_after_the_first_exchange_and_is_asked_for_once(tmp_path: Path) -> None:
    with ModelServer(naming(Reply(TITLE))) as server:
        async with house(tmp_path / "home", server) as engine:
            talk, _ = await named(engine, ASKED, "And what does it cost?")
            assert (talk.title, talk.titled_by) == (TITLE, "model")
            assert asked_for_titles(server) == 1
            assert ASKED in str(next(one for one in server.requests if is_for_a_title(one.question)).question)
            found = await engine.stores.of("alice").search.find("rebuilding")
            assert [one.conversation.title for one in found.conversations] == [TITLE]


async def test_what_a_title_took_stands_in_the_log_of_the_reply_for_good(tmp_path: Path) -> None:
    with ModelServer(naming(Reply(TITLE, usage=(90, 3)))) as server:
        async with house(tmp_path / "home", server) as engine:
            talk, (run,) = await named(engine, ASKED)
            (place,) = (one for one in await engine.stores.of("alice").conversations.thread(talk.id) if one.run_id)
            own = (await engine.stores.of("alice").runs.get(run.id)).usage
        async with house(tmp_path / "home", server) as engine:
            await engine.stores.runs.prune(2e9, frozenset({"model_called", "message_finished"}))
            reply = await engine.runs.of("alice").reply(place)
    call = reply.model_calls[-1]
    assert (call.purpose, call.model.split(" ")[0]) == ("title", "scripted")
    assert call.usage is not None
    assert (call.usage.prompt_tokens, call.usage.completion_tokens) == (90, 3)
    assert own == reply.usage  # the reply's own tokens are its own


async def test_switched_off_no_model_is_asked(tmp_path: Path) -> None:
    with ModelServer(naming(Reply(TITLE))) as server:
        async with house(tmp_path / "home", server, titles=False) as engine:
            talk, _ = await named(engine, ASKED)
    assert (talk.title, talk.titled_by) == (ASKED, "question")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "title",
    [
        Reply("x" * 10_000),
        Reply(""),
        Reply("\n \n"),
        refusal(500),
        refusal(401),
        Reply("Never whole", cut_after=1),
        Reply(calls=[("calculator", {"expression": "1"})]),
    ],
    ids=["of 10,000 letters", "empty", "blank", "failing", "refused", "cut off", "a call"],
)
async def test_without_a_title_worth_its_name_the_question_s_words_stay(tmp_path: Path, title: Reply) -> None:
    with ModelServer(naming(title)) as server:
        async with house(tmp_path / "home", server, generate_cfg={"max_retries": 0}) as engine:
            talk, (run,) = await named(engine, ASKED)
            assert (talk.title, talk.titled_by, run.status) == (ASKED, "question", "complete")
            again = await talk_of(engine, "alice", talk.id).ask("More?")
            await again.wait()
            await settled(engine)
    assert asked_for_titles(server) == 1


async def test_a_chinese_title_with_markdown_and_several_lines_is_one_plain_line(tmp_path: Path) -> None:
    with ModelServer(naming(Reply("**标题：** 《港口重建》\n\n因为问的是港口。"))) as server:
        async with house(tmp_path / "home", server) as engine:
            talk, _ = await named(engine, "港口什么时候重建？")
    assert talk.title == "港口重建"


async def test_a_name_by_a_person_stands_whenever_it_was_given(tmp_path: Path) -> None:
    hold, asked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def late() -> Reply:
        loop.call_soon_threadsafe(asked.set)
        asyncio.run_coroutine_threadsafe(hold.wait(), loop).result(30)
        return Reply(TITLE)

    with ModelServer(naming(late)) as server:
        # Another process on the same data renames it while the model is thinking about a name.
        async with house(tmp_path / "home", server) as engine, house(tmp_path / "home", server) as other:
            talk = await engine.stores.of("alice").conversations.create()
            await (await talk_of(engine, "alice", talk.id).ask(ASKED)).wait()
            await asked.wait()
            await other.stores.of("alice").conversations.rename(talk.id, "Mine")
            hold.set()
            await settled(engine)
            kept = await engine.stores.of("alice").conversations.get(talk.id)
            assert (kept.title, kept.titled_by) == ("Mine", "person")
            second = await engine.stores.of("alice").conversations.create()
            await engine.stores.of("alice").conversations.rename(second.id, "Also mine")
            await (await talk_of(engine, "alice", second.id).ask(ASKED)).wait()
            await settled(engine)
            assert (await engine.stores.of("alice").conversations.get(second.id)).title == "Also mine"
    assert asked_for_titles(server) == 1


async def test_a_name_that_says_what_the_question_says_is_a_person_s_all_the_same(tmp_path: Path) -> None:
    with ModelServer(naming(Reply(TITLE))) as server:
        async with house(tmp_path / "home", server, titles=False) as engine:
            talk, _ = await named(engine, ASKED)
            conversations = engine.stores.of("alice").conversations
            await conversations.rename(talk.id, ASKED)
            (question, _) = await conversations.thread(talk.id)
            await (await talk_of(engine, "alice", talk.id).edit(question.id, "And the bridge?")).wait()
            kept = await conversations.get(talk.id)
    assert (kept.title, kept.titled_by) == (ASKED, "person")


async def test_a_changed_first_question_gives_another_title_and_a_second_reply_to_it_none(tmp_path: Path) -> None:
    titles = iter([Reply(TITLE), Reply("Bridge rebuilding")])
    with ModelServer(naming(lambda: next(titles))) as server:
        async with house(tmp_path / "home", server) as engine:
            talk, _ = await named(engine, ASKED)
            conversations, here = engine.stores.of("alice").conversations, talk_of(engine, "alice", talk.id)
            (question, reply) = await conversations.thread(talk.id)
            await (await here.regenerate(reply.id)).wait()
            await settled(engine)
            assert (await conversations.get(talk.id)).title == TITLE
            await (await here.edit(question.id, "And the bridge?")).wait()
            await settled(engine)
            assert (await conversations.get(talk.id)).title == "Bridge rebuilding"
    assert asked_for_titles(server) == 2


async def test_a_conversation_that_is_deleted_meanwhile_is_let_go(tmp_path: Path) -> None:
    hold, asked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def late() -> Reply:
        loop.call_soon_threadsafe(asked.set)
        asyncio.run_coroutine_threadsafe(hold.wait(), loop).result(30)
        return Reply(TITLE)

    with ModelServer(naming(late)) as server:
        async with house(tmp_path / "home", server) as engine:
            talk = await engine.stores.of("alice").conversations.create()
            await (await talk_of(engine, "alice", talk.id).ask(ASKED)).wait()
            await asked.wait()
            await talk_of(engine, "alice", talk.id).delete()
            hold.set()
            await settled(engine)
            with pytest.raises(NotFoundError):
                await engine.stores.of("alice").conversations.get(talk.id)
            assert await engine.stores.of("alice").conversations.list() == []


async def test_after_a_first_reply_that_failed_the_first_whole_one_names_it(tmp_path: Path) -> None:
    replies = iter([refusal(401), Reply("By forty people.")])
    with ModelServer(lambda request: Reply(TITLE) if is_for_a_title(request) else next(replies)) as server:
        async with house(tmp_path / "home", server) as engine:
            talk, runs = await named(engine, ASKED, "By whom?")
    assert [run.status for run in runs] == ["error", "complete"]
    assert (talk.title, asked_for_titles(server)) == (TITLE, 1)


async def test_the_page_is_told_and_waits_until_then(tmp_path: Path) -> None:
    told: list[tuple[str | None, str | None, str]] = []
    with ModelServer(naming(Reply(TITLE))) as server:
        async with house(tmp_path / "home", server) as engine:
            conversations = engine.stores.of("alice").conversations
            talk = await conversations.create()
            run = await talk_of(engine, "alice", talk.id).ask(ASKED)
            assert engine.services.of("alice").is_adding
            assert not engine.services.of("bob").is_adding
            await run.wait()
            engine.on_change(lambda owner, which: told.append((owner, which, run.status)))
            await settled(engine)
    assert ("alice", talk.id, "complete") in told


class AtHome(ScriptedModel):
    """A model of this process, whose titles wait for a sign."""

    def __init__(self) -> None:
        self.may_name = asyncio.Event()
        self.naming = asyncio.Event()
        super().__init__("An answer.")

    async def _stream(self, request: ChatRequest) -> Stream:
        if "<exchange>" in request.messages[-1].get_text_content():
            self.naming.set()
            await self.may_name.wait()
            self._turns = [TITLE, "An answer."]
        async for event in super()._stream(request):
            yield event


async def test_a_model_of_this_process_is_asked_when_idle_and_lets_a_reply_go_first(tmp_path: Path) -> None:
    model = AtHome()
    async with Engine(Settings.load(home=tmp_path / "home", titles=True), model=model) as engine:
        engine.services.beside._idle = 0.05  # pyright: ignore[reportPrivateUsage]
        conversations = engine.stores.of("alice").conversations
        first, second = await conversations.create(), await conversations.create()
        await (await talk_of(engine, "alice", first.id).ask(ASKED)).wait()
        assert (await conversations.get(first.id)).title == ASKED
        await model.naming.wait()
        # It is being named, and waits; a question elsewhere is answered all the same.
        run = await asyncio.wait_for(talk_of(engine, "alice", second.id).ask("Hello?"), 10)
        assert await asyncio.wait_for(run.wait(), 10) == "complete"
        model.may_name.set()
        await asyncio.wait_for(settled(engine), 20)
        assert (await conversations.get(first.id)).title == TITLE


async def test_closing_gives_up_what_is_being_named(tmp_path: Path) -> None:
    model = AtHome()
    async with Engine(Settings.load(home=tmp_path / "home", titles=True), model=model) as engine:
        assert isinstance(engine.services.titles, Titles)
        talk = await engine.stores.of("alice").conversations.create()
        await (await talk_of(engine, "alice", talk.id).ask(ASKED)).wait()
    assert not model.naming.is_set()
