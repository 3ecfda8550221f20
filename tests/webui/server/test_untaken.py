"""Files that were too many at once: the model and the line under the reply say so, until they are added after all."""

from __future__ import annotations

import asyncio
import html
from pathlib import Path
from typing import Any

import pytest

from core.testing.script import Reply
from tests.webui.server.test_evidence import House, opened
from webui.handlers.send import start
from webui.render.conversation import question_entry
from webui.render.coverage import coverage_note
from webui.words import Words

pytestmark = pytest.mark.anyio
LEFT = [f"{number:03}.txt" for number in range(40, 50)]


def text(folder: Path, name: str, said: str) -> Path:
    (folder / name).write_text(f"{said}\n", "utf-8")
    return folder / name


async def asked(house: House, question: str, *files: Path) -> str:
    """Ask once more; the note under the reply."""
    before, house.reply = house.reply, ""
    await start(house.desk, house.view, question, [(file, file.name) for file in files])
    async with asyncio.timeout(180):
        while not await house.ended() or house.reply == before:
            await asyncio.sleep(0.02)  # between two looks
    message = await house.engine.stores.of(house.view.owner).conversations.message(house.reply)
    return html.unescape(coverage_note(await house.engine.runs.of(house.view.owner).reply(message), Words("en")))


async def shown(house: House) -> list[str]:
    """The questions of the conversation as the page shows them, the first one first."""
    thread = await house.engine.stores.of(house.view.owner).conversations.thread(house.view.conversation_id)
    return [html.unescape(str(question_entry(one, Words("en"), {}))) for one in thread if one.role == "user"]


async def test_a_question_that_was_sent_with_files_says_how_many_were_left_out_and_others_do_not(
    tmp_path: Path, anyio_backend: str
) -> None:
    async with opened(tmp_path / "home", answering=lambda _: Reply(text="They tell of lamps.")) as house:
        await house.does(do="untaken", names=LEFT, more=200)
        await asked(house, "What is there?", text(tmp_path, "lamps.txt", "The lamp of the harbour burns all night."))
        await asked(house, "And what burns?")
        await asked(house, "And this?", *(text(tmp_path, name, f"The lamp is {name}.") for name in LEFT[1:]))
        await house.does(do="untaken", names=[])
        await asked(house, "And now?", text(tmp_path, "mill.txt", "The mill turns."))
        questions = await shown(house)
    said = "210 files were too many to be added with it, and were left out: 040.txt, 041.txt, 042.txt, …"
    assert said in questions[0]
    assert "201 files were too many" in questions[2]
    assert not any("left out" in questions[at] for at in (1, 3))


async def test_later_questions_are_answered_in_the_knowledge_that_files_are_missing_until_they_are_added(
    tmp_path: Path, anyio_backend: str
) -> None:
    told: list[str] = []

    def answering(request: Any) -> Reply:
        told.append("\n".join(message.get_text_content() for message in request.messages))
        return Reply(text="They tell of lamps.")

    async with opened(tmp_path / "home", answering=answering) as house:
        await house.does(do="untaken", names=LEFT, more=200)
        lamps = text(tmp_path, "lamps.txt", "The lamp of the harbour burns all night.")
        note = await asked(house, "Summarize all of the documents.", lamps)
        assert "210 more files were not added" in told[-1]
        assert "210 files that were not added (040.txt, 041.txt, 042.txt, …)" in note
        note = await asked(house, "Summarize all of the documents once more.")
        assert "210 more files were not added" in told[-1]
        assert "210 files that were not added" in note
        note = await asked(house, "And all of these?", text(tmp_path, "040.txt", "The lamp of the mill is out."))
        assert "209 more files were not added" in told[-1]
        await house.does(do="untaken", called={"041.txt": "041.md", "042.txt": "040.txt"})
        note = await asked(house, "And of these?", text(tmp_path, "041.md", "The lamp of the bridge is lit."))
        assert "208 more files were not added" in told[-1]
        await house.does(do="untaken", names=[])
        note = await asked(house, "Summarize all of the documents again.")
        assert "not added" not in told[-1]
        assert not note
        for wrong in (
            {"names": 1},
            {"names": [1, {}], "more": -1},
            {"names": ["a"], "more": "x"},
            {"called": {"a": 1}},
            {},
        ):
            await house.does(do="untaken", **wrong)
