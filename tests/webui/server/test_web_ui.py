"""`WebUI(agent).run()`: a program's agents in Parlour's own page."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core import FnCallAgent, Message, MultiAgentHub, UserAgent
from core.engine import Engine
from core.errors import ConflictError, SettingsError
from core.settings import Settings
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.program import Program
from tests.webui.server.own_process import OwnProcess
from webui import WebUI
from webui.app import build_app
from webui.context import WebContext
from webui.gradio_patches import SESSIONS
from webui.handlers.wiring import Handlers
from webui.page_look import Look
from webui.panels.welcome import translations
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio

LOOK = Look.of({"prompt.suggestions": ["What can you do?"], "input.placeholder": "Ask <Ann>"})


async def test_a_program_of_three_lines_opens_the_page_with_what_it_chose(tmp_path: Path) -> None:
    with ModelServer(Reply(text="Hello.")) as model:
        app = OwnProcess(tmp_path / "home", model)
        try:
            await asyncio.to_thread(app.start)
            status, page = await asyncio.to_thread(app.get, "/")
        finally:
            await asyncio.to_thread(app.stop)
    assert status == 200
    told = html.unescape(page)
    assert "What can you do?" in told
    assert "Ask Ann" in told
    assert "Kim" in told
    assert "Parlour is ready at" in app.log.read_text("utf-8")


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    agents = [FnCallAgent(llm=ScriptedModel(f"I am {name}."), name=name) for name in ("Ann", "Bob & <Co>")]
    beginning = [Message("user", "Hi"), Message("assistant", "Hello, I am Ann.")]
    program = Program(agents, beginning=beginning)
    async with Engine(Settings.load(home=tmp_path / "home", code="off"), program=program) as running:
        yield running


@pytest.fixture
def handlers(house: Engine, tmp_path: Path) -> Handlers:
    return Handlers(WebContext(house, house.settings, Words.of, LOOK), Uploads(tmp_path / "tmp", 1000))


def tab(name: str = "tab", conversation_id: str = "") -> Any:
    headers = {"referer": f"http://127.0.0.1/?c={conversation_id}"}
    return SimpleNamespace(session_hash=name, username="alice", headers=headers)


async def shown(handlers: Handlers, request: Any) -> tuple[Any, ...]:
    last: tuple[Any, ...] = ()
    async for frame in handlers.follow(request):
        last = frame
    return last


def texts(chat: list[Any]) -> str:
    return "\n".join(part["text"] for entry in chat for part in entry["content"])


async def test_a_new_conversation_shows_what_every_one_begins_with_and_a_second_tab_makes_no_second(
    house: Engine, handlers: Handlers
) -> None:
    await handlers.opened(tab())
    chat, *_ = await shown(handlers, tab())
    await handlers.opened(tab("other"))
    assert "Hello, I am Ann." in texts(chat)
    assert len(await house.stores.of("alice").conversations.list()) == 1


async def test_the_chooser_names_the_agents_and_turns_to_another(house: Engine, handlers: Handlers) -> None:
    await handlers.opened(tab())
    _, top, *_ = await shown(handlers, tab())
    assert "<Co>" not in top
    assert "Bob & <Co>" in html.unescape(top)
    assert "p-open-models" not in top, "their model is their own"
    await handlers.act('{"do": "agent", "n": 2}', tab())
    await handlers.send({"text": "Who?", "files": []}, tab())
    chat, top, *_ = await shown(handlers, tab())
    assert "I am Bob & <Co>" in texts(chat).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    assert 'href="#do-agent-2" aria-current="true"' in top


async def test_a_suggestion_is_asked(house: Engine, handlers: Handlers) -> None:
    await handlers.opened(tab())
    await handlers.act('{"do": "starter", "n": 1}', tab())
    chat, *_ = await shown(handlers, tab())
    assert "What can you do?" in texts(chat)


@pytest.mark.filterwarnings("ignore:This no longer exists")  # how Gradio says it where there is no page
@pytest.mark.parametrize("message", ['{"do": "agent", "n": 3}', '{"do": "agent", "n": "x"}', '{"do": "starter"}', "["])
async def test_what_the_page_does_not_offer_is_refused(
    handlers: Handlers, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    await handlers.act(message, tab())
    assert "failed" not in caplog.text


def test_what_stands_on_the_page_before_its_first_frame_is_what_was_chosen() -> None:
    words = translations(LOOK).translations
    assert words["zh"]["composer.placeholder"] == "Ask <Ann>"
    assert "What can you do?" in words["zh"]["hello"]
    assert "policy" not in words["en"]["hello"]


@pytest.mark.parametrize("config", [None, {"user.name": "Kim"}, {"prompt.suggestions": []}])
def test_parlours_own_questions_do_not_stand_on_the_page_of_a_program_that_gave_none(config: Any) -> None:
    hello = translations(Look.of(config)).translations["en"]["hello"]
    assert "do-starter" not in hello
    assert Words("en")("hello.how") not in hello
    assert Words("en")("hello.ask") in hello
    assert hello != translations(Look()).translations["en"]["hello"]


async def test_one_of_parlours_own_questions_is_not_asked_of_a_programs_agent(house: Engine, tmp_path: Path) -> None:
    handlers = Handlers(WebContext(house, house.settings, Words.of, Look.of(None)), Uploads(tmp_path / "tmp", 1000))
    with pytest.warns(UserWarning, match="This no longer exists"):  # how Gradio says it where there is no page
        await handlers.act('{"do": "starter", "n": 2}', tab())
    assert await house.stores.of("alice").conversations.list() == []


def test_a_name_cannot_end_the_style_it_stands_in() -> None:
    style = Look.of({"user.name": '"}</style><script>李'}).style()
    assert style.count("<") == 2
    assert "李" in style


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"user.nmae": "Kim"}, "Did you mean 'user.name'"),
        ({"user.name": 5}, "user.name"),
        ({"verbose": "yes"}, "verbose"),
        ({"prompt.suggestions": "one"}, "prompt.suggestions"),
        ({"prompt.suggestions": [5]}, "prompt.suggestions"),
        ({"prompt.suggestions": [{"text": "a", "files": ["nowhere.pdf"]}]}, "nowhere.pdf"),
        ({"agent.avatar": "https://example.com/a.png"}, "agent.avatar"),
    ],
)
def test_a_config_that_makes_no_sense_is_one_sentence_that_names_the_key(config: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        WebUI(FnCallAgent(llm=ScriptedModel()), config)
    assert said in f"{refused.value} {refused.value.hint}"


def test_what_has_several_agents_brings_them_without_the_persons() -> None:
    class Hub(MultiAgentHub):
        _agents = [FnCallAgent(llm=ScriptedModel(), name="Ann"), UserAgent(name="Kim", description="A person.")]

    assert [agent.name for agent in WebUI(Hub()).agents] == ["Ann"]


async def test_no_other_model_can_be_chosen_where_the_agents_bring_theirs(house: Engine) -> None:
    with pytest.raises(ConflictError) as refused:
        await house.services.models.of("alice").use("")
    assert refused.value.words_key == "model_of_agent"


def test_what_is_no_agent_is_refused_at_once() -> None:
    with pytest.raises(SettingsError, match="no agent"):
        WebUI("Ann")  # type: ignore[arg-type]


async def test_gradio_keeps_the_settings_of_a_few_tabs_alone(house: Engine, tmp_path: Path) -> None:
    context = WebContext(house, house.settings, Words.of, LOOK)
    built = await asyncio.to_thread(build_app, context, Uploads(tmp_path / "tmp", 1000))
    apps: list[Any] = [getattr(route, "app", None) for route in built.app.routes]
    (sessions,) = (app.state_holder for app in apps if hasattr(app, "state_holder"))
    for number in range(SESSIONS + 20):
        assert sessions[f"tab {number}"]
    assert len(sessions.session_data) == SESSIONS
