"""What the terminal says of the calls of a model."""

from __future__ import annotations

from pathlib import Path

from bench.kills.forked_page import ForkedApp, Origin
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage


def lines_after_a_question(app: AppProcess) -> list[str]:
    tab = RawPage(app.address).open()
    chat, _ = tab.paint(tab.send("Is the aspidistra in flower?"))
    tab.close()
    assert "aspidistra" in chat
    printed = app.log.read_text("utf-8")
    assert "aspidistra" not in printed
    return [line for line in printed.splitlines() if "model_call" in line]


def test_a_call_is_one_line_where_it_is_wanted_and_never_what_was_said(tmp_path: Path, origin: Origin) -> None:
    with ModelServer(behave) as model:
        app = ForkedApp(tmp_path / "home", model, {"LOG_CALLS": "1"}, origin=origin).start()
        assert len(lines_after_a_question(app)) == 1
        app.stop()


def test_a_call_is_no_line_where_that_is_not_wanted(app: AppProcess) -> None:
    assert lines_after_a_question(app) == []
