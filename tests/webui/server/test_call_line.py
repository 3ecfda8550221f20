"""What the terminal says of the calls of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage


@pytest.mark.parametrize("wanted", [True, False])
def test_a_call_is_one_line_where_it_is_wanted_and_never_what_was_said(tmp_path: Path, wanted: bool) -> None:
    with ModelServer(behave) as model:
        app = AppProcess(tmp_path / "home", model, {"LOG_CALLS": "1"} if wanted else {}).start()
        tab = RawPage(app.address).open()
        tab.send("Is the heliotrope in flower?")
        tab.paint(tab.number("composer", "submit"))
        tab.close()
        app.stop()
    lines = [line for line in app.log.read_text("utf-8").splitlines() if "model_call" in line]
    assert len(lines) == wanted
    assert "heliotrope" not in app.log.read_text("utf-8")
