"""The page of a program's own agents: who speaks, whom an @ turns to, and what of the dialogs has an effect there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from core import Agent, FnCallAgent, GroupChat, Router, UserAgent
from core.engine import Engine
from core.readiness import Readiness
from core.runs.manager import Runs
from core.settings import Settings
from core.storage.stores import Stores
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation
from core.workspace.program import Program
from core.workspace.services import OwnerServices
from tests.core.talks import talk_of
from tests.webui.server.agents_on_a_page import Keep
from webui.context import WebContext
from webui.handlers.models import ModelRoutes
from webui.handlers.tools import ToolRoutes
from webui.handlers.wiring import Handlers
from webui.page_look import Look
from webui.panels.top import Speakers, speakers, top_html
from webui.render.markup import escaped
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio


def agent(name: str | None, *says: Any, tools: Sequence[Any] = (), about: str = "") -> FnCallAgent:
    return FnCallAgent(list(tools), ScriptedModel(*says), name=name, description=about or None)


def house(tmp_path: Path, *agents: Agent, mention: bool = False) -> Engine:
    return Engine(Settings.load(home=tmp_path / "home", code="off"), program=Program(agents, mention=mention))


async def speaking(own: Engine) -> Speakers:
    nothing: Any = None  # nothing is looked up for a tab without a conversation
    stores = Stores(nothing, Path(), nothing)
    bound = SimpleNamespace(of=lambda owner: None)
    others: dict[str, Any] = dict.fromkeys(("intake", "settings", "remembering", "agents"))
    others |= {"runs": Runs(stores), "toolbox": bound, "models": bound, "code": bound, "titles": bound}
    services: Any = SimpleNamespace(stores=stores, **others)
    found = await speakers(own.program, Conversation(OwnerServices(services, "alice"), ""))
    assert found is not None
    return found


async def asked(own: Engine, path: str, lang: str = "en") -> dict[str, Any]:
    context = WebContext(own, own.settings, Words.of, Look())
    routes = Starlette(routes=[*ModelRoutes(context).table(), *ToolRoutes(context).table()])

    async def owned(scope: Any, receive: Any, send: Any) -> None:
        await routes({**scope, "owner": "alice"}, receive, send)

    transport = httpx.ASGITransport(app=owned)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        return dict((await client.get(path, headers={"accept-language": lang})).json())


async def test_all_who_may_speak_are_known_before_they_do(tmp_path: Path) -> None:
    helper = agent("Helper")
    assert (await speaking(house(tmp_path, agent("Ann", tools=[helper]), agent("Bob")))).cast == (
        "Ann",
        "Bob",
        "Helper",
    )
    assert (await speaking(house(tmp_path, agent(None)))).cast == ("FnCallAgent",)


async def test_an_at_is_offered_only_where_it_turns_to_somebody(tmp_path: Path) -> None:
    ann, bob = agent("Ann", about="Counts"), agent("Bob B.")
    both = await speaking(house(tmp_path, ann, bob, mention=True))
    assert both.mentions == (("Ann", "Counts"), ("Bob B.", ""))
    assert (await speaking(house(tmp_path, ann, bob))).mentions == ()
    assert (await speaking(house(tmp_path, ann, mention=True))).mentions == ()
    group = GroupChat([ann, bob, UserAgent(name="Kim")], llm=ScriptedModel(), name="Group")
    assert [name for name, _ in (await speaking(house(tmp_path, group))).mentions] == ["Ann", "Bob B."]
    desk = Router(agents=[ann, bob], llm=ScriptedModel(), name="Desk")  # its model picks one, whoever is mentioned
    assert (await speaking(house(tmp_path, desk))).mentions == ()


@pytest.mark.parametrize("mention", [True, False])
async def test_the_chooser_says_what_it_chooses_what_each_is_good_at_and_what_an_at_does(
    tmp_path: Path, mention: bool
) -> None:
    own = house(tmp_path, agent("Ann", about="Counts <b>things</b>."), agent("Bob", about="x" * 500), mention=mention)
    top = top_html("", Readiness(), Words("en"), speakers=await speaking(own))
    assert Words("en")("agents.choose") in top
    assert escaped("Counts <b>things</b>.") in top
    assert "x" * 121 not in top
    assert (escaped(Words("en")("agents.at")) in top) == mention


async def test_a_mention_is_read_as_groups_read_it(tmp_path: Path) -> None:
    async with house(tmp_path, agent("Ann", "no"), agent("Bob B.", "I."), mention=True) as running:
        conversation = (await running.stores.of("alice").conversations.create()).id
        run = await talk_of(running, "alice", conversation).ask("＠bob b., you?")
        assert await run.wait() == "complete"
        assert run.reply().speakers == {"Bob B.": None}


async def test_what_an_asked_agent_says_reaches_the_page_inside_of_its_call(tmp_path: Path) -> None:
    helper = agent("Helper", "It is 42.")
    ann = agent("Ann", Reply(calls=[("Helper", {"question": "How much?"})]), "42, says Helper.", tools=[helper])
    async with house(tmp_path, ann) as running:
        conversation = (await running.stores.of("alice").conversations.create()).id
        await (await talk_of(running, "alice", conversation).ask("How much?")).wait()
        handlers = Handlers(WebContext(running, running.settings, Words.of, Look()), Uploads(tmp_path / "tmp", 1000))
        headers = {"referer": f"http://127.0.0.1/?c={conversation}"}
        request: Any = SimpleNamespace(session_hash="tab", username="alice", headers=headers)
        chat = [frame async for frame in handlers.follow(request) if frame][-1][0]
    call = next(one for one in chat if "p-asked" in str(one.get("metadata")))
    inside = [one for one in chat if (one.get("metadata") or {}).get("parent_id") == call["metadata"]["id"]]
    assert "It is 42." in str(inside[0])
    assert "p-speaker" in str(chat[1])


async def test_frames_of_a_reply_read_no_table_and_another_choice_is_shown_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = Reply(text="word " * 40, pace=0.02)
    async with house(tmp_path, agent("Ann", reply), agent("Bob")) as running:
        conversation = (await running.stores.of("alice").conversations.create()).id
        handlers = Handlers(WebContext(running, running.settings, Words.of, Look()), Uploads(tmp_path / "tmp", 1000))
        headers = {"referer": f"http://127.0.0.1/?c={conversation}"}
        request: Any = SimpleNamespace(session_hash="tab", username="alice", headers=headers)
        run = await talk_of(running, "alice", conversation).ask("Go on")
        program = running.program
        assert program is not None
        read, reads, frames = program.chosen, list[str](), 0

        async def counted(talk: Conversation) -> int | None:
            reads.append(talk.id)
            return await read(talk)

        monkeypatch.setattr(program, "chosen", counted)
        async with aclosing(handlers.follow(request)) as following:
            async for frame in following:
                frames += frame is not None
        assert await run.wait() == "complete"
        assert len(reads) <= 4 < frames  # when it was opened, and when the reply began or ended
        await program.choose(talk_of(running, "alice", conversation), 1)
        last = [frame async for frame in handlers.follow(request) if frame][-1]
        assert "Bob" in str(last[1])


async def test_the_tools_dialog_has_what_has_an_effect_on_a_programs_page(tmp_path: Path) -> None:
    async with house(tmp_path, agent("Ann", tools=[Keep(), agent("Helper")])) as running:
        lists = {"allow": ["keep", "kepp"], "ask": ["Helper"], "deny": list[str]()}
        await running.toolbox.of("alice").rules.change(lists=lists)
        told = await asked(running, "/tools/state")
        assert told["own"].startswith("The tools of this page belong to its program")
        assert told["tools"] == []
        assert [line.split(" ")[0] for line in told["approval"]["hints"]["allow"]] == ["“kepp”"]
        assert told["approval"]["hints"]["ask"] == []
        assert "由打开它的程序提供" in (await asked(running, "/tools/state", "zh"))["own"]


async def test_where_agents_bring_their_model_the_dialog_says_that_there_is_none_to_choose(tmp_path: Path) -> None:
    async with house(tmp_path, agent("Ann")) as running:
        assert await asked(running, "/models/menu") == {
            "fixed": "This page uses its program's own model, so there is none to choose."
        }
        assert (await speaking(running)).brings_model
