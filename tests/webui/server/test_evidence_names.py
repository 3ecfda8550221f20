"""In the panel of sources a document has the name under which the conversation has it, whatever others call it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from core.testing.script import Reply
from tests.webui.server.test_evidence import FIRE, WATER, opened, panel_document, policy_pdf, policy_sheet

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("made", [policy_sheet, policy_pdf])
async def test_what_another_conversation_calls_the_same_bytes_is_nowhere_in_the_panel(
    tmp_path: Path, anyio_backend: str, made: Any
) -> None:
    asked: list[Any] = []

    def answering(request: Any) -> Reply:
        asked.append(request)
        return answer(request)

    async with opened(tmp_path / "home", answering=answering) as house:
        mine = made(tmp_path)
        theirs = mine.with_name(f"private{mine.suffix}")
        shutil.copy(mine, theirs)
        await house.asks(mine)
        first, reply = house.view.conversation_id, house.reply
        await house.does(do="new")
        await house.asks(theirs)
        other = await house.cites()
        assert title(other) == theirs.name
        assert mine.name not in (other.html or "")

        await house.does(do="open", id=first)
        house.reply = reply
        panel = await house.cites()
        for shown in (
            panel,
            await house.does(do="page", document=panel_document(panel), n=1),
            await house.does(do="passages", n=0),
        ):
            assert title(shown) == mine.name
            assert mine.name in shown.css(".p-quotes .p-where")[0].text()
            assert theirs.name not in (shown.html or "")

        await house.asks(question="And once more: what is the deductible for water damage and for fire damage?")
        assert theirs.name not in ((await house.cites()).html or ""), "of a later reply neither"
        owner = house.engine.stores.of(house.view.owner)
        later = await house.engine.runs.of(house.view.owner).reply(await owner.conversations.message(house.reply))
        assert {one["document"] for one in later.passages} == {mine.name}, "nor is it kept with that reply"
        told = "\n".join(str(message) for message in asked[-1].messages)
        assert mine.name in told
        assert theirs.name not in told, "nor told to the model"
        async with house.engine.workspaces.open(house.view.owner) as workspace:
            for form in ("md", "html"):
                exported = await workspace.conversation(house.view.conversation_id).export(form)
                text = "".join([piece async for piece in exported.pieces])
                assert mine.name in text
                assert theirs.name not in text, form


def answer(request: Any) -> Reply:
    """What the last passage that holds it says, with its number."""
    asked = "\n".join(message.get_text_content() for message in request.messages)
    number = re.findall(r"\[(\d+)\] \(p\w+\.", asked[: asked.rfind(WATER)])[-1]
    return Reply(text=f"{WATER} [{number}] {FIRE} [{number}]")


def title(panel: LexborHTMLParser) -> str:
    return panel.css(".p-file")[0].text()
