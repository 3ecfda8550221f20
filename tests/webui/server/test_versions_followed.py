"""Other versions of a question or reply: shown in every tab of their owner, and kept over a reload."""

from __future__ import annotations

import re
from html import unescape

import pytest

from core.errors import ConflictError, NotFoundError
from core.testing.script import Reply
from tests.webui.server.test_approval import PUT, House, house  # noqa: F401 - a fixture
from webui.frames import Frame
from webui.handlers.send import send
from webui.views import View

pytestmark = pytest.mark.anyio


async def ids(of: House, tab: View) -> list[str]:
    return [turn.id for turn in await of.engine.stores.of(tab.owner).conversations.thread(tab.conversation_id)]


async def chat_of(of: House, tab: View) -> str:
    return text_of(await of.over(tab))


def text_of(frame: Frame) -> str:
    """What a frame shows of the conversation, without the words' own elements."""
    return re.sub(r"</?span[^>]*>", "", unescape(str(frame.chat)))


@pytest.mark.parametrize("house", [("First answer.", "Second answer.", "To the other question.")], indirect=True)
async def test_a_reply_that_was_written_anew_is_found_again_in_every_tab(house: House) -> None:  # noqa: F811
    tab = house.tab()
    await send(house.desk, tab, {"text": "Why?", "files": []})
    assert "p-versions" not in await chat_of(house, tab)
    question, first = await ids(house, tab)
    await house.act(tab, do="regenerate", id=first)
    chat = await chat_of(house, tab)
    assert "Second answer." in chat
    assert "Version 2 of 2" in chat
    assert re.findall(r"#do-version-([\w-]+)", chat) == [first]

    other = house.tab("two", conversation=tab.conversation_id)
    await house.over(other)
    other.stale = False
    await house.act(tab, do="version", id=first)
    assert other.stale
    for shown in (tab, other, house.tab("after a reload", conversation=tab.conversation_id)):
        chat = await chat_of(house, shown)
        assert "First answer." in chat
        assert "Second answer." not in chat
        assert "Version 1 of 2" in chat

    await house.act(tab, do="edit", id=question, text="Why not?")
    assert "To the other question." in await chat_of(house, tab)
    await house.act(tab, do="version", id=question)
    assert "Second answer." in await chat_of(house, tab)  # the newest under it


@pytest.mark.parametrize("house", [("One.", "Two.", Reply(calls=[("storage", PUT)]), "Done.")], indirect=True)
async def test_versions_stay_as_they_are_while_a_reply_is_written(house: House) -> None:  # noqa: F811
    tab = house.tab()
    await send(house.desk, tab, {"text": "Why?", "files": []})
    await house.over(tab)
    first = (await ids(house, tab))[-1]
    await house.act(tab, do="regenerate", id=first)
    await house.over(tab)
    call = await house.ask(tab)
    frame = await house.seen(tab, "p-asks")
    assert "Version 2 of 2" in text_of(frame)
    assert "#do-version-" not in text_of(frame)
    with pytest.raises(ConflictError):
        await house.act(tab, do="version", id=first)
    await house.act(tab, do="refuse", call=call)
    assert f"#do-version-{first}" in await chat_of(house, tab)


@pytest.mark.parametrize("house", [("One.", "Two.", "Three.")], indirect=True)
async def test_a_version_of_somebody_else_or_of_another_conversation_is_not_turned_to(house: House) -> None:  # noqa: F811
    tab, elsewhere = house.tab(), house.tab("two")
    await send(house.desk, tab, {"text": "Why?", "files": []})
    await house.over(tab)
    first = (await ids(house, tab))[-1]
    await house.act(tab, do="regenerate", id=first)
    await house.over(tab)
    before = await ids(house, tab)
    await send(house.desk, elsewhere, {"text": "And here?", "files": []})
    await house.over(elsewhere)
    for stranger in (elsewhere, house.tab("three", owner="b-bob", conversation=tab.conversation_id)):
        for wrong in (first, "nothing", ""):
            with pytest.raises(NotFoundError):
                await house.act(stranger, do="version", id=wrong)
    assert await ids(house, tab) == before
