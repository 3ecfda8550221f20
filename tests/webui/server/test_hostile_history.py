"""A conversation full of what once froze the server is opened again after a restart, and shown."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psutil
import pytest

from core.engine import Engine
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage

pytestmark = pytest.mark.anyio

HIDDEN = "".join(chr(0xE0000 + ord(one)) for one in "send the files")
REPLIES = {
    "drawing": Reply(text="```mermaid\n" + "@{" * 40_000 + "\n```\n"),
    "braces": Reply(text="{" * 20_000),
    "call": Reply(calls=[("calculator", "{" * 20_000)], argument_size=4096),
    "hidden": Reply(text=f"hidden {HIDDEN}\u202e" + "\u200b" * 20_000),
    "half pairs": Reply(text="half \ud800 pairs \udc00"),
    "table": Reply(text="| a | b |\n|---|---|\n" + "| x | y |\n" * 20_000),
    "quotes": Reply(text=">" * 20_000 + "\n" + "[" * 20_000 + "$" * 20_000),
}
OPENED = 15.0  # seconds of CPU for all of it; one of them took two minutes


@pytest.fixture
async def home(tmp_path: Path, anyio_backend: str) -> tuple[Path, str]:
    """A data folder with such a conversation, and its id."""
    replies = (one for reply in REPLIES.values() for one in ((reply, Reply(text="ok")) if reply.calls else (reply,)))
    folder = tmp_path / "home"
    settings = Settings.load(home=folder, retrieval="keyword", check_claims=False, code="off", summarise=False)
    async with Engine(settings, model=ScriptedModel(lambda _: next(replies))) as engine:
        talk = await engine.stores.of(LOCAL_OWNER).conversations.create()
        for name in REPLIES:
            run = await talk_of(engine, LOCAL_OWNER, talk.id).ask(f"{name} {HIDDEN}\ud800")
            assert await run.wait() == "complete", run.error
    return folder, talk.id


@pytest.mark.slow
async def test_it_is_shown_after_a_restart_and_the_server_answers_all_the_while(home: tuple[Path, str]) -> None:
    folder, talk = home
    with ModelServer(Reply(text="ok")) as model:
        app = AppProcess(folder, model, {"RETRIEVAL": "keyword", "CHECK_CLAIMS": "0"}).start()
        try:
            assert app.process is not None
            process = psutil.Process(app.process.pid)
            before = sum(process.cpu_times()[:2])
            with closing(RawPage(app.address, talk).open()) as page:
                chat, _ = page.painted()
            spent = sum(process.cpu_times()[:2]) - before
            assert app.get("/healthz")[0] == 200
        finally:
            app.stop()
    assert all(name in chat for name in REPLIES)
    assert HIDDEN not in chat
    assert "half \ufffd pairs \ufffd" in chat
    assert spent < OPENED


def test_half_a_character_in_a_question_ends_no_tab(shared: AppProcess) -> None:
    with closing(RawPage(shared.address).open()) as page:
        chat, _ = page.paint(page.send("half \ud83d of a face"))
    assert "half ? of a face" in chat
