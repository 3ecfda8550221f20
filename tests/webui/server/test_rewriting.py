"""The reader changes a reply: a version beside it, whose calls and passages stay, and that no model was asked for."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest

from core.errors import ConflictError, NotFoundError, ParlourError
from core.importing.importing import bring_in
from core.runs.rows import KEPT_KINDS
from core.storage.base import StoredMessage
from tests.webui.server.test_approval import House, house  # noqa: F401 - a fixture
from webui.handlers.send import send
from webui.views import View

pytestmark = pytest.mark.anyio


async def thread(house: House, tab: View) -> list[StoredMessage]:  # noqa: F811
    return await house.engine.stores.of(house.owner).conversations.thread(tab.conversation_id)


async def answered(house: House) -> tuple[View, str]:  # noqa: F811
    tab = house.tab()
    await send(house.desk, tab, {"text": "What is it?", "files": []})
    await house.over(tab)
    return tab, (await thread(house, tab))[-1].id


async def shown(house: House, tab: View) -> str:  # noqa: F811
    return unescape(str((await house.over(tab)).chat))


@pytest.mark.parametrize("house", [("It is a bridge.", "Indeed.")], indirect=True)
async def test_the_change_is_a_version_that_says_whose_it_is_and_the_model_goes_on_from_it(house: House) -> None:  # noqa: F811
    tab, reply = await answered(house)
    await house.act(tab, do="rate", id=reply, mark="down")
    await house.act(tab, do="rewrite", id=reply, text="It is a **tower**.")
    chat = await shown(house, tab)
    assert "It is a **tower**." in chat
    assert "edited by you" in chat
    assert '</span>2<span class="p-stroke"></span>' in chat
    assert "Marked as bad" not in chat
    await send(house.desk, tab, {"text": "Is it?", "files": []})
    await house.over(tab)
    given = " ".join(one.get_text_content() for turn in (await thread(house, tab))[:2] for one in turn.parts)
    assert "tower" in given
    assert "bridge" not in given
    await house.act(tab, do="version", id=reply)
    chat = await shown(house, tab)
    assert "It is a bridge." in chat
    assert "edited by you" not in chat


@pytest.mark.parametrize("house", [("It is a bridge.",)], indirect=True)
async def test_nothing_is_spent_on_it(house: House) -> None:  # noqa: F811
    tab, reply = await answered(house)
    runs = house.engine.runs.of(house.owner)
    await house.act(tab, do="rewrite", id=reply, text="It is a tower.")
    fresh = (await thread(house, tab))[-1]
    assert (await runs.reply(fresh)).model_calls == []
    assert (await runs.reply(fresh)).usage is None
    account = await house.engine.stores.of(house.owner).runs.account(tab.conversation_id)
    assert len(account) == 1


async def test_what_it_called_stays_and_only_its_last_words_change(house: House) -> None:  # noqa: F811
    tab = house.tab()
    await house.act(tab, do="allow", call=await house.ask(tab))
    await house.over(tab)
    reply = (await thread(house, tab))[-1]
    async with house.engine.workspaces.open(house.owner) as workspace:
        conversation = workspace.conversation(tab.conversation_id)
        assert await conversation.answer(reply.id) == "Done."
        fresh = await conversation.edit_reply(reply.id, "It is noted.")
    before, after = (
        [(one.role, one.get_text_content(), one.function_call) for one in turn.parts] for turn in (reply, fresh)
    )
    assert after[:-1] == before[:-1]
    assert after[-1][1] == "It is noted."
    steps = house.engine.stores.of(house.owner).runs.thoughts
    assert [one.tool_name for one in await steps.list(fresh.id)] == [
        one.tool_name for one in await steps.list(reply.id)
    ]
    assert "It is noted." in await shown(house, tab)


@pytest.mark.parametrize("house", [("It is a bridge.",)], indirect=True)
async def test_it_stays_when_logs_are_shortened_and_in_a_bundle(house: House, tmp_path: Path) -> None:  # noqa: F811
    tab, reply = await answered(house)
    await house.act(tab, do="rewrite", id=reply, text="It is a tower.")
    await house.engine.stores.runs.prune(float("inf"), KEPT_KINDS)
    other = house.tab("two", conversation=tab.conversation_id)
    assert "edited by you" in await shown(house, other)
    async with house.engine.workspaces.open(house.owner) as workspace:
        made = b"".join([piece async for piece in workspace.taking.bundle([tab.conversation_id], "en")])
        (tmp_path / "talk.zip").write_bytes(made)
        fresh = (await bring_in(tmp_path / "talk.zip", workspace.stores)).conversations[0]
    third = house.tab("three", conversation=fresh)
    chat = await shown(house, third)
    assert "It is a tower." in chat
    assert "edited by you" in chat


@pytest.mark.parametrize("house", [("It is a bridge.",)], indirect=True)
async def test_what_cannot_be_changed_is_refused_and_nothing_is_added(house: House) -> None:  # noqa: F811
    tab, reply = await answered(house)
    question = (await thread(house, tab))[0].id
    async with house.engine.workspaces.open(house.owner) as workspace:
        conversation = workspace.conversation(tab.conversation_id)
        with pytest.raises(NotFoundError):
            await conversation.edit_reply(question, "What else?")
        with pytest.raises(NotFoundError):
            await conversation.edit_reply("none", "What else?")
        with pytest.raises(ParlourError, match="nothing to send"):
            await conversation.edit_reply(reply, " \n ")
        with pytest.raises(NotFoundError):
            await conversation.answer(question)
        with workspace.runs.reserve(tab.conversation_id), pytest.raises(ConflictError):
            await conversation.edit_reply(reply, "It is a tower.")
        assert len(await workspace.conversations.siblings(reply)) == 1


async def test_a_reply_that_waits_for_its_reader_is_not_changed_under_way(house: House) -> None:  # noqa: F811
    tab = house.tab()
    call = await house.ask(tab)
    reply = (await thread(house, tab))[-1]
    async with house.engine.workspaces.open(house.owner) as workspace:
        with pytest.raises(ConflictError):
            await workspace.conversation(tab.conversation_id).edit_reply(reply.id, "It is noted.")
    await house.act(tab, do="refuse", call=call)
    await house.over(tab)
