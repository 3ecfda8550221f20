"""Steering from a tab: what its chips and its panel choose reaches the model, and a new conversation remembers it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive

from core.engine import Engine
from core.errors import NotFoundError, ParlourError, SettingsError
from core.models.model_name import INSTALLED, ModelName
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.workspace.levels import Level
from core.workspace.metering import metering
from core.workspace.personas import Persona, Personas
from core.workspace.prompts import Prompts
from core.workspace.usable import usable
from tests.webui.server.tabs_of_engine import Tabs
from webui.context import WebContext
from webui.handlers.desk import toast
from webui.handlers.metering import MeterRoutes
from webui.handlers.send import start
from webui.handlers.steering import SteeringRoutes
from webui.uploads import Uploads
from webui.views import View
from webui.words import Words

pytestmark = pytest.mark.anyio
HERE = {"instructions": "Answer in rhymes.", "parameters": {"temperature": 0.3}, "tools": {"calculator": False}}


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(*("Yes." for _ in range(20)))


@pytest.fixture
async def tabs(model: ScriptedModel, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Tabs]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", titles=False)
    async with Engine(settings, model=model) as engine:
        yield Tabs(engine, Uploads(tmp_path / "tmp", 1_000_000))


async def asked(tabs: Tabs, view: View, text: str = "Why?") -> None:
    await start(tabs.desk, view, text, [])
    await tabs.over(view)


def told(model: ScriptedModel) -> tuple[str, object, set[str]]:
    """What the last request said of how to answer: the system message, the temperature, and the tools."""
    request = model.requests[-1]
    names = {str(function["name"]) for function in request.functions}
    return request.messages[0].get_text_content(), request.generate.get("temperature"), names


async def test_what_was_chosen_before_the_first_question_holds_for_it_and_for_those_that_follow(
    tabs: Tabs, model: ScriptedModel
) -> None:
    view = tabs.tab()
    await tabs.act(view, do="steer", change=HERE)
    await asked(tabs, view)
    system, temperature, names = told(model)
    assert "Answer in rhymes." in system
    assert (temperature, "calculator" in names, "current_time" in names) == (0.3, False, True)
    first = view.conversation_id
    await tabs.act(view, do="steer", change={"tools": {"calculator": True}, "parameters": {"temperature": None}})
    await asked(tabs, view, "And now?")
    assert told(model)[1] is None
    assert "calculator" in told(model)[2]
    await tabs.act(view, do="new")
    await asked(tabs, view)
    assert view.conversation_id != first
    assert "rhymes" not in told(model)[0]


async def test_a_question_waits_for_what_was_chosen_just_before_it(tabs: Tabs, model: ScriptedModel) -> None:
    view = tabs.tab()
    for on in (True, False):
        async with asyncio.TaskGroup() as at_once:
            at_once.create_task(tabs.act(view, do="switch", what="web", on=on))
            at_once.create_task(start(tabs.desk, view, "Why?", []))
        await tabs.over(view)
        assert ("web_search" in told(model)[2]) is on


async def test_the_chips_switch_tools_of_this_conversation_alone_and_the_panel_shows_the_same(
    tabs: Tabs, model: ScriptedModel
) -> None:
    view = tabs.tab()
    await asked(tabs, view)
    await tabs.act(view, do="steering")
    assert 'data-tools="web_search web_extractor">' in unescape(view.evidence)
    await tabs.act(view, do="switch", what="web", on=True)
    assert 'data-tools="web_search web_extractor" checked>' in unescape(view.evidence)
    await asked(tabs, view, "And now?")
    assert {"web_search", "web_extractor"} <= told(model)[2]
    assert 'data-do="bar-web" aria-pressed="true"' in unescape((await tabs.over(view)).panels["toolbar"])
    await tabs.act(view, do="new")
    assert 'data-tools="web_search web_extractor">' in unescape(view.evidence)  # it stays open, and shows the new one
    assert 'data-do="bar-web" aria-pressed="false"' in unescape((await tabs.over(view)).panels["toolbar"])


async def test_a_folders_instructions_hold_for_what_is_moved_into_it(tabs: Tabs, model: ScriptedModel) -> None:
    view = tabs.tab()
    await asked(tabs, view)
    await tabs.act(view, do="move", ids=[view.conversation_id], name="Papers <b>")
    (folder,) = await tabs.engine.stores.of(tabs.owner).folders.list()
    await tabs.act(view, do="steering", folder=folder.id)
    assert "Papers <b>" not in view.evidence
    assert "Papers <b>" in unescape(view.evidence)
    await tabs.act(view, do="steer", folder=folder.id, change={"instructions": "Cite pages."}, quiet=True)
    await asked(tabs, view, "And now?")
    assert "Cite pages." in told(model)[0]
    await tabs.act(view, do="folder", id=folder.id)
    await tabs.act(view, do="steering", folder=folder.id)
    assert (view.side, view.evidence) == ("", "")


async def test_a_conversation_begins_in_a_folder_with_its_instructions_and_libraries(
    tabs: Tabs, model: ScriptedModel
) -> None:
    view, mine = tabs.tab(), tabs.engine.stores.of(tabs.owner)
    folder = await mine.folders.create("Papers")
    kept, left = [await mine.libraries.create(name) for name in ("Kept", "Left out")]
    for library in (kept, left):
        await tabs.act(view, do="shelve", folder=folder.id, library=library.id, on=True)
    await tabs.act(view, do="steer", folder=folder.id, change={"instructions": "Cite pages."}, quiet=True)
    await tabs.act(view, do="new", folder=folder.id)
    panels = (await tabs.over(view)).panels
    assert "New chat in “Papers”" in unescape(panels["top"])
    assert "2 libraries" in unescape(panels["toolbar"])
    await tabs.act(view, do="use", id=left.id, on=False)
    await asked(tabs, view)
    assert "Cite pages." in told(model)[0]
    assert (await mine.conversations.get(view.conversation_id)).folder_id == folder.id
    assert [one.name for one in await mine.libraries.used_by(view.conversation_id)] == ["Kept"]
    await tabs.act(view, do="new")
    await asked(tabs, view)
    assert (await mine.conversations.get(view.conversation_id)).folder_id is None
    await tabs.act(view, do="new", folder=folder.id)
    await mine.folders.delete(folder.id)
    await asked(tabs, view)
    assert (await mine.conversations.get(view.conversation_id)).folder_id is None
    with pytest.raises(NotFoundError):
        await tabs.act(view, do="new", folder=folder.id)


async def test_the_documents_of_a_folder_are_those_of_its_own_library(tabs: Tabs) -> None:
    view, mine = tabs.tab(), tabs.engine.stores.of(tabs.owner)
    folder = await mine.folders.create("Papers")
    await tabs.act(view, do="steering", folder=folder.id)
    assert 'data-name="Papers" data-library=""' in unescape(view.evidence)
    library = await mine.libraries.create("Papers")
    await tabs.act(view, do="steering", folder=folder.id)
    assert f'data-library="{library.id}"' in unescape(view.evidence)


async def test_a_persona_is_saved_from_a_conversation_used_in_another_and_outlived_by_both(
    tabs: Tabs, model: ScriptedModel
) -> None:
    view = tabs.tab()
    await tabs.act(view, do="steer", change=HERE)
    await tabs.act(view, do="persona-save", name="Poet")
    (poet,) = await Personas(tabs.engine.stores.of(tabs.owner).settings).list()
    assert (poet.name, poet.sign, poet.level.instructions) == ("Poet", "P", "Answer in rhymes.")
    await tabs.act(view, do="new")
    await tabs.act(view, do="persona", id=poet.id)
    assert ">Poet<" in unescape((await tabs.over(view)).panels["toolbar"])
    await asked(tabs, view)
    assert told(model)[0].endswith("Answer in rhymes.")
    assert told(model)[1] == 0.3
    await tabs.act(view, do="persona-delete", id=poet.id)
    await asked(tabs, view, "And now?")
    assert told(model)[0].endswith("Answer in rhymes.")
    await tabs.act(view, do="persona", id="")
    await asked(tabs, view, "And without?")
    assert "rhymes" not in told(model)[0]


async def test_a_deleted_persona_is_taken_back_as_it_was_and_only_by_the_tab_that_deleted_it(tabs: Tabs) -> None:
    view, personas = tabs.tab(), Personas(tabs.engine.stores.of(tabs.owner).settings)
    await tabs.act(view, do="steer", change=HERE)
    await tabs.act(view, do="persona-save", name="Poet")
    before = await personas.list()
    await tabs.act(view, do="persona-delete", id=before[0].id)
    assert await personas.list() == []
    with pytest.raises(NotFoundError):
        await tabs.act(tabs.tab("two"), do="persona-restore", id=before[0].id)
    with pytest.raises(NotFoundError):
        await tabs.act(view, do="persona-restore", id="another")
    await tabs.act(view, do="persona-restore", id=before[0].id)
    assert await personas.list() == before
    with pytest.raises(NotFoundError):
        await tabs.act(view, do="persona-restore", id=before[0].id)


async def test_a_persona_brings_its_model_and_takes_it_along_when_it_goes(tabs: Tabs) -> None:
    view, personas = tabs.tab(), Personas(tabs.engine.stores.of(tabs.owner).settings)
    await tabs.act(view, do="persona-save", name="Poet")
    (poet,) = await personas.list()
    assert poet.model is None
    await tabs.act(view, do="persona-change", id=poet.id, model=INSTALLED.as_json())
    await tabs.act(view, do="new")
    await tabs.act(view, do="persona", id=poet.id)
    assert view.model == INSTALLED
    await asked(tabs, view)
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        conversation = workspace.conversation(view.conversation_id)
        assert await conversation.model() == INSTALLED
        await tabs.act(view, do="persona", id="")
        assert await conversation.model() is None
        await tabs.act(view, do="persona", id=poet.id)
        assert await conversation.model() == INSTALLED
        await tabs.act(view, do="steering")
        assert "The installation’s own" in unescape(view.evidence)
        await conversation.choose_model(None)
        await tabs.act(view, do="persona-save", name="Poet")
    assert (await personas.list())[0].model is None


async def test_a_persona_whose_model_is_gone_says_so_at_the_question_and_nothing_is_lost(tabs: Tabs) -> None:
    view, personas = tabs.tab(), Personas(tabs.engine.stores.of(tabs.owner).settings)
    gone = ModelName("openai", "gone")
    poet = await personas.save(Persona("", "Poet", model=gone))
    await tabs.act(view, do="persona", id=poet.id)
    assert view.model == gone
    with pytest.raises(SettingsError):
        await asked(tabs, view)
    assert view.conversation_id == ""
    await tabs.act(view, do="persona", id="")
    await asked(tabs, view)
    assert view.conversation_id


async def test_a_persona_is_changed_under_its_own_name_and_its_questions_begin_an_empty_room(
    tabs: Tabs, model: ScriptedModel
) -> None:
    view, personas = tabs.tab(), Personas(tabs.engine.stores.of(tabs.owner).settings)
    await tabs.act(view, do="persona-import", name="poet.yaml", text="name: Poet\nsystem_message: Rhyme.\n")
    (poet,) = await personas.list()
    await tabs.act(view, do="persona-change", id=poet.id, sign="¶", starters="A sonnet?\n\nA haiku?")
    assert "A haiku?" in unescape((await tabs.over(view)).panels["starters"])
    await tabs.act(view, do="steer", change={"instructions": "Rhyme twice."})
    await tabs.act(view, do="persona-save", name="Poet")
    (poet,) = await personas.list()
    assert (poet.sign, poet.starters, poet.level.instructions) == ("¶", ("A sonnet?", "A haiku?"), "Rhyme twice.")
    await asked(tabs, view)
    assert told(model)[0].endswith("Rhyme twice.")
    assert (await tabs.over(view)).panels["starters"] == ""


async def test_a_personas_file_finds_its_library_again_and_what_is_not_here_is_said(
    tabs: Tabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("gradio.Warning", lambda text, duration: said.append(text))
    personas = Personas(tabs.engine.stores.of(tabs.owner).settings)
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        library = await workspace.libraries.create("Household papers")
    kept = await personas.save(Persona("", "Poet", "¶", Level("Rhyme.", libraries=(library.id,)), ("A haiku?",)))
    scope = {"type": "http", "owner": tabs.owner, "path_params": {"persona_id": kept.id}, "headers": []}
    routes = SteeringRoutes(cast("WebContext", SimpleNamespace(engine=tabs.engine, words=Words.of)))
    text = bytes((await routes.file(Request(scope))).body).decode()
    assert library.id not in text
    await personas.delete(kept.id)
    await tabs.act(tabs.tab(), do="persona-import", name="a.yaml", text=text)
    (again,) = await personas.list()
    assert (replace(again, id=kept.id), said) == (kept, [])
    lacking = text.replace("Household papers", "Letters").replace("Poet", "Clerk")
    lacking += "  model: {service: anthropic, model: claude-x}\n"
    await tabs.act(tabs.tab(), do="persona-import", name="a.yaml", text=lacking)
    assert len(said) == 1
    assert "the library “Letters”, the model “claude-x · anthropic”" in said[0]
    clerk = next(one for one in await personas.list() if one.name == "Clerk")
    assert (clerk.level.libraries, clerk.model, clerk.sign) == ((), None, "¶")


async def test_what_an_imported_file_has_and_no_persona_does_is_said_and_no_markup_of_it_is_lost(
    tabs: Tabs, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("gradio.Warning", lambda text, duration: said.append(text))
    text = "name: A\ntemprature: 1\ntools: [calculator, no_such]\n"
    await tabs.act(tabs.tab(), do="persona-import", name="a.yaml", text=text)
    assert "the tool “no_such”, the field “temprature”, for which a persona has no place" in said[0]
    with pytest.raises(ParlourError) as caught:
        await tabs.act(tabs.tab(), do="persona-import", name="a.yaml", text="name: [1,2")
    toast(Words("en"), caught.value)
    assert "but got '&lt;stream end&gt;'" in said[1]


async def test_instructions_that_are_being_typed_are_counted_with_those_around_them(tabs: Tabs) -> None:
    view = tabs.tab()
    await asked(tabs, view)
    routes = SteeringRoutes(cast("WebContext", SimpleNamespace(engine=tabs.engine, words=Words.of)))

    async def counted(conversation: str, text: str, owner: str | None = tabs.owner) -> tuple[int, int]:
        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/steering/tokens", "owner": owner, "headers": headers}
        body = json.dumps({"conversation": conversation, "text": text}).encode()
        answer = await routes.tokens(Request(scope, body_of(body)))
        return answer.status_code, json.loads(bytes(answer.body)).get("tokens", 0)

    for conversation in (view.conversation_id, ""):
        short, long = await counted(conversation, "Rhyme."), await counted(conversation, "Rhyme. " * 50)
        assert (short[0], long[0]) == (200, 200)
        assert 0 < short[1] < long[1]
        assert await counted(conversation, "") == (200, 0)
    await tabs.act(view, do="steer", change={"instructions": "Rhyme."})
    await tabs.act(view, do="steering")
    assert f'data-told="{(await counted(view.conversation_id, "Rhyme."))[1]}"' in view.evidence
    assert (await counted("not there", "Rhyme."))[0] == 404
    assert (await counted("", "x" * 9_000))[0] == 400
    assert (await counted("", "Rhyme.", None))[0] == 401


async def test_the_chips_cost_what_the_panel_says_of_their_tools(tabs: Tabs) -> None:
    scope = {"type": "http", "method": "POST", "path": "/meter", "owner": tabs.owner, "headers": []}
    routes = MeterRoutes(cast("WebContext", SimpleNamespace(engine=tabs.engine, words=Words.of)))
    answer = await routes.meter(Request({**scope, "server": ("here", 80), "query_string": b""}, body_of(b"{}")))
    chips = json.loads(bytes(answer.body))["chips"]
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        counter = (await workspace.models.chosen(None)).loader.model
        assert counter is not None
        rows = await usable(workspace.services, await workspace.steering.of_draft({}), "", counter.counter)
    shown = {one.kind: one.tokens for one in rows if one.kind in {"web", "code"}}
    assert chips == shown
    assert chips["web"] > 0


def body_of(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return receive


async def test_prompts_are_kept_shown_and_forgotten(tabs: Tabs) -> None:
    view = tabs.tab()
    await tabs.act(view, do="steering")
    await tabs.act(view, do="prompt-save", id="", name="weather", text="How is it in {{city}}?")
    assert "How is it in {{city}}?" in unescape(view.evidence)
    (kept,) = await Prompts(tabs.engine.stores.of(tabs.owner).settings).list()
    await tabs.act(view, do="prompt-delete", id=kept.id)
    assert "weather" not in unescape(view.evidence)


async def test_a_panel_that_was_closed_by_evidence_or_a_cross_is_not_drawn_again(tabs: Tabs) -> None:
    view = tabs.tab()
    await tabs.act(view, do="steering")
    assert view.evidence
    await tabs.act(view, do="close")
    await tabs.act(view, do="switch", what="web", on=True)
    assert view.evidence == ""


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"do": "steer", "change": {"parameters": {"temperature": 9}}}, SettingsError),
        ({"do": "steer", "change": {"instructions": "a" * 9000}}, SettingsError),
        ({"do": "steer", "folder": "no such", "change": {}}, NotFoundError),
        ({"do": "switch", "what": "everything", "on": True}, NotFoundError),
        ({"do": "persona", "id": "no such"}, NotFoundError),
        ({"do": "persona-delete", "id": 7}, NotFoundError),
        ({"do": "persona-save", "name": " "}, SettingsError),
        ({"do": "persona-change", "id": "no such"}, NotFoundError),
        ({"do": "persona-import", "name": "a.yaml", "text": "- a"}, SettingsError),
        ({"do": "prompt-save", "name": "x", "text": ""}, SettingsError),
        ({"do": "prompt-delete", "id": "no such"}, NotFoundError),
        ({"do": "shelve", "folder": "no such", "library": "no such", "on": True}, NotFoundError),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(
    tabs: Tabs, message: dict[str, object], error: type[Exception]
) -> None:
    view = tabs.tab()
    with pytest.raises(error):
        await tabs.act(view, **message)
    assert view.draft == {}


async def test_messages_that_no_script_of_ours_would_send_do_nothing(tabs: Tabs) -> None:
    view = tabs.tab()
    for change in (None, [], "x", {"unknown": 1}):
        await tabs.act(view, do="steer", change=change)
    assert view.draft == {}


async def test_the_meter_counts_the_instructions_and_the_tools_of_this_conversation(
    tabs: Tabs, model: ScriptedModel
) -> None:
    view = tabs.tab()
    await asked(tabs, view)

    async def counted() -> tuple[int, int, int]:
        async with tabs.engine.workspaces.open(tabs.owner) as workspace:
            meter = (await metering(workspace.services, view.conversation_id, model, "en")).meter
        return meter.instructions, meter.tool_count, meter.reserved

    before = await counted()
    change = {"instructions": "Answer in rhymes.", "tools": {"calculator": False}, "parameters": {"max_tokens": 512}}
    await tabs.act(view, do="steer", change=change)
    after = await counted()
    assert after[0] > before[0]
    assert (after[1], after[2]) == (before[1] - 1, 512)
