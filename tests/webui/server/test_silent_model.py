"""A model that says nothing for long: what waits for it says that it lives, so that no proxy gives it up."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.e2e.app_process import AppProcess
from tests.webui.server.impatient_proxy import ImpatientProxy
from tests.webui.server.raw_page import RawPage
from tests.webui.server.served_app import served
from webui import context

GIVES_UP = 6.0  # seconds: of proxies it is sixty as a rule
SILENT = "be silent for 10 seconds"


def test_a_reply_comes_through_a_proxy_that_gives_up_sooner_than_the_model_answers(app: AppProcess) -> None:
    with ImpatientProxy(app.port, GIVES_UP) as proxy, httpx.Client(timeout=60, headers={"connection": "close"}) as http:
        tab = RawPage(app.address.replace(f":{app.port}", f":{proxy.port}"), client=http).open()
        chat, status = tab.paint(tab.send(SILENT))
    assert f"You said: {SILENT}" in chat
    assert 'data-state="idle"' in status
    assert proxy.gave_up == 0


@pytest.mark.anyio
async def test_a_choice_that_a_slow_model_answers_comes_through_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert context.ALIVE <= 15
    monkeypatch.setattr(context, "ALIVE", 0.3)
    settings = Settings(home=tmp_path / "home", retrieval="keyword", check_claims=False)
    with ModelServer(Reply(text="I am here.", delay=4)) as slow:
        async with Engine(settings, model=ScriptedModel("Hello.")) as engine, served(engine, settings) as house:
            with ImpatientProxy(urlsplit(house.address).port or 0, 2.0) as proxy:
                wanted = {"service": "compatible", "address": slow.base_url, "model": "one"}
                async with httpx.AsyncClient(timeout=60, headers={"connection": "close"}) as http:
                    told = (await http.post(f"http://127.0.0.1:{proxy.port}/models/use", json=wanted)).json()
    assert (told.get("used"), told.get("failed")) == ("compatible", None)
    assert proxy.gave_up == 0


def test_the_proxy_of_these_tests_does_give_up() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        ImpatientProxy(silent.getsockname()[1], 0.1) as proxy,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        httpx.get(f"http://127.0.0.1:{proxy.port}/", timeout=60, headers={"connection": "close"})
    assert proxy.gave_up == 1
