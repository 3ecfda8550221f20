"""Pictures from elsewhere: fetched on request by the guarded way alone, shown only where they are pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.engine import Engine
from core.errors import FetchError
from core.net.fetcher import Fetched
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.served_app import Served, served

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 64


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    settings = Settings(home=tmp_path, code="off")  # type: ignore[call-arg]
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine, served(engine, settings) as app:
        yield app


@pytest.mark.parametrize(
    ("data", "said", "status"),
    [
        (PNG, "text/html", 200),
        (b"<svg onload=alert(1)>", "image/png", 502),
        (b"<html>", "image/png", 502),
        (b"", "", 502),
    ],
)
async def test_what_comes_is_known_by_its_bytes(
    data: bytes, said: str, status: int, app: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def fetch(url: str, **limits: Any) -> Fetched:
        asked.append(url)
        assert limits["limits"].size <= 10**7
        return Fetched(url, said, "", data, "x.png")

    monkeypatch.setattr("webui.handlers.pictures.fetch", fetch)
    async with httpx.AsyncClient(base_url=app.address) as browser:
        answer = await browser.post("/pictures/show", json={"address": "https://example.org/x.png"})
    assert asked == ["https://example.org/x.png"]
    assert answer.status_code == status
    if status == 200:
        assert (answer.headers["content-type"], answer.content) == ("image/png", PNG)
        assert answer.headers["x-content-type-options"] == "nosniff"
    else:
        assert answer.json()["failed"] == "What is at this address is no picture."


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/x.png", "http://localhost/x.png", "http://169.254.1.1/x", "file:///etc/passwd", "x"]
)
async def test_nothing_of_this_machine_or_its_network_is_fetched(address: str, app: Served) -> None:
    async with httpx.AsyncClient(base_url=app.address) as browser:
        answer = await browser.post("/pictures/show", json={"address": address})
    assert answer.status_code == 502
    assert answer.json()["failed"]


async def test_only_the_page_s_own_script_may_ask(app: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(url: str, **_: Any) -> Fetched:
        raise FetchError("It was fetched.")

    monkeypatch.setattr("webui.handlers.pictures.fetch", fetch)
    async with httpx.AsyncClient(base_url=app.address) as browser:
        for sent in ({"address": "x" * 5000}, [1], {}):
            assert (await browser.post("/pictures/show", json=sent)).status_code == 400
        form = await browser.post("/pictures/show", data={"address": "https://a.example"})
        assert form.status_code == 400
        assert (await browser.get("/pictures/show?address=https://a.example")).status_code in {404, 405}
