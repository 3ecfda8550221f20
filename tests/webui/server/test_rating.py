"""What a reader thinks of a reply is kept in its log, shown after a reload, taken along, and taken back."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest

from core.errors import NotFoundError
from core.export.schema import read_export
from core.importing.importing import bring_in
from core.runs.rows import KEPT_KINDS
from tests.webui.server.test_approval import House, house  # noqa: F401 - a fixture
from webui.handlers.send import send
from webui.views import View

pytestmark = pytest.mark.anyio


async def answered(house: House, name: str = "one") -> tuple[View, str]:  # noqa: F811
    tab = house.tab(name)
    await send(house.desk, tab, {"text": "What is it?", "files": []})
    await house.over(tab)
    return tab, (await house.engine.stores.of(house.owner).conversations.thread(tab.conversation_id))[-1].id


async def shown(house: House, tab: View) -> str:  # noqa: F811
    return unescape(str((await house.over(tab)).chat))


@pytest.mark.parametrize("house", [("It is a bridge.",)], indirect=True)
async def test_a_mark_and_its_reason_stay_until_they_are_taken_back(house: House) -> None:  # noqa: F811
    tab, reply = await answered(house)
    assert "Good reply" in await shown(house, tab)
    await house.act(tab, do="rate", id=reply, mark="down", reason=" Not true ")
    assert "Marked as bad: Not true." in await shown(house, tab)
    again = house.tab("two")
    await house.act(again, do="open", id=tab.conversation_id)
    assert "Marked as bad: Not true." in await shown(house, again)
    await house.act(tab, do="rate", id=reply, mark="up")
    assert "Marked as good" in await shown(house, tab)
    await house.act(tab, do="rate", id=reply, mark="")
    assert "Marked as" not in await shown(house, tab)


@pytest.mark.parametrize("house", [("It is a bridge.",)], indirect=True)
async def test_a_bundle_takes_it_along(house: House, tmp_path: Path) -> None:  # noqa: F811
    tab, reply = await answered(house)
    await house.act(tab, do="rate", id=reply, mark="down", reason="Too long")
    async with house.engine.workspaces.open(house.owner) as workspace:
        made = b"".join([piece async for piece in workspace.taking.bundle([tab.conversation_id], "en")])
        (tmp_path / "talk.zip").write_bytes(made)
        fresh = (await bring_in(tmp_path / "talk.zip", workspace.stores)).conversations[0]
    again = house.tab("two")
    await house.act(again, do="open", id=fresh)
    assert "Marked as bad: Too long." in await shown(house, again)


@pytest.mark.parametrize("house", [("It is a bridge.",)], indirect=True)
async def test_exports_say_what_their_reader_made_of_a_reply(house: House) -> None:  # noqa: F811
    tab, reply = await answered(house)
    await house.act(tab, do="rewrite", id=reply, text="It is a *tower*.")
    fresh = (await house.engine.stores.of(house.owner).conversations.thread(tab.conversation_id))[-1].id
    await house.act(tab, do="rate", id=fresh, mark="down", reason="Not <b>true</b>")
    async with house.engine.workspaces.open(house.owner) as workspace:
        conversation = workspace.conversation(tab.conversation_id)
        made = (
            await conversation.export("json"),
            await conversation.export("md"),
            await conversation.export("html", "zh"),
        )
        as_json, as_markdown, as_html = ["".join([piece async for piece in one.pieces]) for one in made]
    assert "scripted · edited by the reader · " in as_markdown
    assert "· marked as bad: Not &lt;b&gt;true&lt;/b&gt;</sub>" in as_markdown
    assert "scripted · 由读者修改 · " in as_html
    assert "标记为不好：Not &lt;b&gt;true&lt;/b&gt;</p>" in as_html
    turns = {turn.id: turn for turn in read_export(as_json.encode()).turns}
    assert (turns[fresh].edited, turns[fresh].rating, turns[fresh].rated_for) == (True, "down", "Not <b>true</b>")
    assert (turns[reply].edited, turns[reply].rating) == (False, None)


@pytest.mark.parametrize("house", [("It is a bridge.",)], indirect=True)
async def test_what_cannot_be_marked_is_refused(house: House) -> None:  # noqa: F811
    tab, reply = await answered(house)
    question = (await house.engine.stores.of(house.owner).conversations.thread(tab.conversation_id))[0].id
    for message, mark in ((question, "up"), ("nothing", "up"), (reply, "sideways")):
        with pytest.raises(NotFoundError):
            await house.act(tab, do="rate", id=message, mark=mark)
    stranger = house.tab("two")
    with pytest.raises(NotFoundError):  # it shows another conversation
        await house.act(stranger, do="rate", id=reply, mark="up")
    assert "Marked as" not in await shown(house, tab)


def test_it_stays_when_logs_are_shortened() -> None:
    assert "rated" in KEPT_KINDS
