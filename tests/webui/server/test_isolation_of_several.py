"""Two Parlours that share PostgreSQL, Redis and an S3 store: what is Alice's at one is nobody else's at any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bench.kills.forked_page import ForkedApp, Origin
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.grown_servers import S3Server
from tests.webui.server.raw_page import RawPage
from tests.webui.server.test_isolation import ACTIONS, ROUTES, hers_at


@pytest.fixture
def both(tmp_path: Path, origin: Origin, postgres: str, redis: str, s3: S3Server) -> Iterator[list[AppProcess]]:
    """Two apps whose browsers are owners of their own."""
    settings = {
        "OWNERS": "cookie",
        "RETRIEVAL": "keyword",
        "DATABASE": postgres,
        "REDIS": redis,
        "FILES": f"s3://{s3.make_bucket()}/parlour",
        "SECRET": "the same secret of both Parlours",
    }
    with pytest.MonkeyPatch.context() as patch, ModelServer(behave) as model:
        for name, value in {"ACCESS_KEY_ID": "AKIDTEST", "SECRET_ACCESS_KEY": "any"}.items():
            patch.setenv(f"AWS_{name}", value)
        patch.setenv("AWS_ENDPOINT_URL", s3.address)
        apps: list[AppProcess] = [
            ForkedApp(tmp_path / name, model, settings, origin=origin).start() for name in ("one", "two")
        ]
        yield apps
        for app in apps:
            app.stop()


def test_what_is_alices_at_one_parlour_is_nobody_elses_at_any(both: list[AppProcess]) -> None:
    alice = hers_at(both[0])
    known = {name: getattr(alice, name) for name in ("conversation", "question", "reply", "document", "upload", "file")}
    there = replace(alice.tab, url=both[1].url)  # she herself, as her proxy may lead her
    before = alice.painted()
    for app in both:
        bob = RawPage(app.at("/")).open()
        for route in ROUTES:
            path = route.format(**known)
            assert alice.tab.client.get(there.url + path).status_code == 200, path
            assert bob.client.get(app.url + path).status_code == 404, path
            assert httpx.get(app.url + path).status_code == 401, path
        for asked in ACTIONS:
            filled = {name: value.format(**known) if isinstance(value, str) else value for name, value in asked.items()}
            told = bob.act(**filled)
            assert "heliotrope" not in str(told)
        address = RawPage(app.at("/"), alice.conversation, bob.client).open()
        chat, status = address.painted()
        assert chat == "[]"
        assert alice.conversation not in status
        bob.close()
    assert alice.painted() == before
    assert "heliotrope" in before
    alice.tab.close()
