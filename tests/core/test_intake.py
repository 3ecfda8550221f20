"""Documents on their way into a conversation."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_damaged_document_can_be_asked_and_says_that_it_is_damaged(tmp_path: Path) -> None:
    pages = pymupdf.open()
    for n in range(5):
        pages.new_page(width=400, height=500).insert_text((50, 200), f"Page {n} tells of matter {n}.")
    whole: bytes = pages.tobytes()
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as engine:
        talk = await engine.conversations.create("alice")
        cut = await engine.files.put("alice", "cut.pdf", whole[: whole.rindex(b"trailer")])
        run = await engine.send("alice", talk.id, "What does page 3 tell?", (cut.id,))
        assert await run.wait() == "complete", run.error
        (document,) = await engine.documents.list("alice", talk.id)
    assert document.status == "ready"
    assert document.error is not None
    assert (document.error["key"], document.error["details"]) == ("document_damaged", {"name": "cut.pdf"})
