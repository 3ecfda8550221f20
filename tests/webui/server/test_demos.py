"""A demonstration is watched like a conversation, asks no model, and is taken over as it was recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from core.engine import Engine
from core.errors import NotFoundError
from core.importing.recording import read_recording
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import Gate
from tests.webui.server.served_app import served
from tests.webui.server.tabs_of_engine import Tabs
from webui.app import how_long, offered_by
from webui.bundles import assets_folder
from webui.context import WebContext
from webui.handlers import evidence
from webui.panels.welcome import greeting_html
from webui.uploads import Uploads
from webui.views import View
from webui.words import Words

pytestmark = pytest.mark.anyio

DEMOS = assets_folder() / "demos"
DOCUMENTS = "en-1-documents"
EVERY = [one.stem for one in sorted(DEMOS.glob("*.jsonl"))]


class House(Tabs):
    model: ScriptedModel

    async def to_the_end(self, view: View) -> list[str]:
        """Step through all of it; what was in sight last at each step."""
        assert view.demo is not None
        seen: list[str] = []
        while not view.demo.player.is_over:
            await self.act(view, do="demostep", to="on")
            seen.append(unescape(str((await self.over(view)).chat)))
        return seen


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    settings = Settings.load(home=tmp_path / "home", code="off", titles=False)
    model = ScriptedModel("It goes on.")
    async with Engine(settings, model=model) as engine:
        engine.demonstrations.offer([DEMOS])
        tabs = House(engine, Uploads(tmp_path / "tmp", 1000))
        tabs.model = model
        yield tabs


@pytest.mark.parametrize("name", EVERY)
async def test_each_that_comes_along_is_stepped_through_without_a_model(house: House, name: str) -> None:
    recording = read_recording(DEMOS / f"{name}.jsonl")
    view = house.tab()
    await house.act(view, do="watch", name=name)
    shown = {place: unescape(markup) for place, markup in (await house.over(view)).panels.items()}
    assert recording.about.title in shown["top"]
    assert recording.about.said[0] in shown["demo"]
    assert f'data-demo="{name}"' in shown["status"]
    seen = await house.to_the_end(view)
    last = recording.messages[-1]["parts"][-1]["content"]
    words = last if isinstance(last, str) else last[0]["text"]
    assert words.split("[")[0].strip()[:20] in seen[-1]
    assert len(view.demo.player.tape.steps) == len(recording.about.said) if view.demo else False
    assert house.model.requests == []


@pytest.mark.parametrize(
    ("name", "language", "said"),
    [
        (DOCUMENTS, "en", "The answer. Its marks open what it came from."),
        (DOCUMENTS, "zh", "回答。其中的标记可打开出处。"),
        ("en-2-tools", "en", "The answer."),
        ("en-2-tools", "zh", "回答。"),
    ],
)
async def test_what_is_said_of_an_answer_speaks_of_marks_only_where_it_has_some(
    house: House, tmp_path: Path, name: str, language: str, said: str
) -> None:
    """Of a recording that says nothing of its steps."""
    told = (DEMOS / f"{name}.jsonl").read_text(encoding="utf-8")
    head, rest = told.split("\n", 1)
    own = tmp_path / "own.jsonl"
    own.write_text(json.dumps({**json.loads(head), "said": []}) + "\n" + rest, encoding="utf-8")
    house.engine.demonstrations.offer([own])
    view = house.tab(language=language)
    await house.act(view, do="watch", name="own")
    assert view.demo is not None
    answers = [at for at, step in enumerate(view.demo.player.tape.steps) if step.kind == "answers"]
    await house.act(view, do="demostep", to=answers[0])
    strip = unescape((await house.over(view)).panels["demo"])
    assert f'<p class="p-said" role="status">{said}</p>' in strip


async def test_it_plays_by_itself_and_the_address_alone_opens_it(house: House) -> None:
    view = house.tab()
    view.wanted_demo = "en-2-tools"
    await house.over(view)
    assert view.demo is not None
    assert not view.demo.player.is_playing, "nothing moves before the page says that it may"
    view.demo.player._clock = iter(range(10_000)).__next__  # type: ignore[assignment]
    await house.act(view, do="demoplay", on=True)
    assert "15085" in str(await house.seen(view, "15085"))
    await house.over(view)
    assert view.demo.player.is_over
    assert house.model.requests == []


async def test_marks_open_pages_the_inspector_shows_calls_and_anybody_may_read_them(
    house: House,
) -> None:
    view = house.tab()
    await house.act(view, do="watch", name=DOCUMENTS)
    assert view.demo is not None
    reply = view.demo.player.tape.thread[1]
    async with house.engine.demonstrations.workspace() as kept:
        documents = await kept.documents.list(view.shown_id)
        await kept.intake.wait(view.shown_id, [one.id for one in documents], 20)
    await house.act(view, do="cite", message=reply.id, n=1)
    assert "policy.pdf" in unescape(view.evidence)
    assert "/pages/" in view.evidence
    await house.act(view, do="inspect", message=reply.id)
    assert "p-inspect" in view.evidence
    passage = next(one for one in view.demo.player.reply(1).passages) if view.demo.player.reply(1).passages else None
    async with served(house.engine, house.engine.settings) as app, httpx.AsyncClient(base_url=app.address) as browser:
        document = (await _passages(house, reply.id))[0]["document_id"]
        picture = await browser.get(f"/pages/{document}/2.png")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        file = await browser.get(f"/files/{documents[0].file_id}")
        assert file.status_code == 200
        assert (await browser.get(f"/inspect/{reply.id}.json")).status_code == 200
    assert passage is None, "nothing was played yet"
    assert house.model.requests == []


async def test_a_mark_says_that_its_page_is_still_being_read_and_shows_it_as_soon_as_it_is(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_READ_WITHIN", 0.0)
    async with house.engine.demonstrations.workspace() as kept:
        gate = Gate(await kept.index(), early=True)
    view = house.tab()
    await house.act(view, do="watch", name=DOCUMENTS)
    assert view.demo is not None
    reply = view.demo.player.tape.thread[1].id
    await house.act(view, do="cite", message=reply, n=1)
    assert "still being read" in view.evidence
    assert "data-unread" in view.evidence
    assert "within 14 days" in view.evidence, "its words are there all the same"
    await house.act(view, do="again")
    assert "data-unread" in view.evidence
    await house.act(view, do="close")
    await house.act(view, do="again")
    assert view.evidence == "", "what was closed stays closed"
    await house.act(view, do="cite", message=reply, n=1)
    gate.opened.set()
    async with asyncio.timeout(20):
        while "data-unread" in view.evidence:
            await house.act(view, do="again")
    assert "/pages/" in view.evidence


async def _passages(house: House, message_id: str) -> list[dict[str, str]]:
    async with house.engine.demonstrations.workspace() as kept:
        return (await kept.runs.reply(await kept.conversations.message(message_id))).passages


async def test_nothing_of_it_can_be_changed(house: House) -> None:
    view = house.tab()
    await house.act(view, do="watch", name=DOCUMENTS)
    assert view.demo is not None
    question, reply = view.demo.player.tape.thread[:2]
    for asked in (
        {"do": "edit", "id": question.id, "text": "Else?"},
        {"do": "regenerate", "id": reply.id},
        {"do": "rate", "id": reply.id, "mark": "up"},
        {"do": "fork", "id": reply.id},
        {"do": "delete", "id": view.shown_id},
        {"do": "open", "id": view.shown_id},
    ):
        with pytest.raises(NotFoundError):
            await house.act(view, **asked)
    async with house.engine.demonstrations.workspace() as kept:
        assert len(await kept.conversations.thread(reply.conversation_id)) == 4


async def test_after_taking_over_the_model_is_sent_exactly_what_was_recorded(house: House) -> None:
    view = house.tab(owner="reader")
    await house.act(view, do="watch", name="en-2-tools")
    assert view.demo is not None
    await house.act(view, do="demostep", to=2)
    await house.act(view, do="demotake")
    assert view.demo is None
    async with house.engine.workspaces.open("reader") as workspace:
        conversation = workspace.conversation(view.conversation_id)
        thread = await workspace.conversations.thread(view.conversation_id)
        recorded = read_recording(DEMOS / "en-2-tools.jsonl").messages[:2]
        assert [one.role for one in thread] == ["user", "assistant"], "as far as it was watched"
        run = await conversation.ask("And half of it?")
        await run.wait()
    sent = [(one.role, one.get_text_content()) for one in house.model.requests[0].messages if one.role != "system"]
    told = [(part["role"], _text(part)) for one in recorded for part in one["parts"]]
    assert sent == [*told, ("user", "And half of it?")]


def _text(part: dict[str, object]) -> str:
    content = part["content"]
    return content if isinstance(content, str) else "".join(str(one["text"]) for one in content if "text" in one)  # type: ignore[union-attr]


async def test_it_is_kept_once_and_anew_where_its_file_changed(house: House, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "tour.jsonl").write_bytes((DEMOS / "en-2-tools.jsonl").read_bytes())
    (own / "broken.jsonl").write_text("no recording")
    house.engine.demonstrations.offer([own])
    assert list(house.engine.demonstrations.listed("zh")) == ["tour"], "one in another language is better than none"
    first = await house.engine.demonstrations.opened("tour")
    house.engine.demonstrations.offer([own])
    assert (await house.engine.demonstrations.opened("tour")).conversation_id == first.conversation_id
    (own / "tour.jsonl").write_bytes((DEMOS / "en-3-agents.jsonl").read_bytes())
    house.engine.demonstrations.offer([own])
    again = await house.engine.demonstrations.opened("tour")
    async with house.engine.demonstrations.workspace() as kept:
        assert [one.id for one in await kept.conversations.list()] == [again.conversation_id]
    with pytest.raises(NotFoundError):
        await house.engine.demonstrations.opened("broken")


@pytest.mark.parametrize(
    ("demos", "offered"),
    [
        (None, ["en-1-documents", "en-2-tools", "en-3-agents"]),
        ("off", []),
        (str(DEMOS / "zh-2-tools.jsonl"), ["zh-2-tools"]),
    ],
)
async def test_the_start_page_offers_what_the_settings_name(
    house: House, demos: str | None, offered: list[str]
) -> None:
    house.engine.demonstrations.offer([])
    settings = Settings.load(home=house.engine.settings.home, demos=demos, space_host="a.hf.space")
    listed = offered_by(WebContext(house.engine, settings, Words.of))("en")
    assert list(listed) == offered
    page = unescape(greeting_html(Words("en"), offered=listed, keeps=how_long(settings)))
    assert [one for one in EVERY if f'href="./?demo={one}"' in page] == offered
    assert ("Watch" in page) == bool(offered)
    assert "until this Space restarts" in page
