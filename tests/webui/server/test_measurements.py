"""`/metrics`, traces and what is made of them: read by who shows the token, and by nobody else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.types import Receive, Scope, Send

from core.errors import SettingsError
from core.observing import INSTRUMENTS
from core.settings import Settings
from webui.auth import Hosts, Owners
from webui.middleware.answers import answer
from webui.middleware.owner import OwnerMiddleware
from webui.startup_app import StartupApp

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
TOKEN = "a-long-token-of-prometheus"
# A process of its own: where measurements go is chosen once for each process.
PROGRAM = """
import asyncio, json, sys
from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.observing import count
from webui.observing import gauges, observing

async def main():
    settings = Settings.load(home=sys.argv[1], traces=sys.argv[2], metrics_token=sys.argv[3])
    measurements = observing(settings)
    async with Engine(settings, model=ScriptedModel("Hello.")) as engine:
        gauges(engine)
        count("parlour.requests", {"kind": "page", "status": 200})
        async with engine.workspaces.open("alice") as workspace:
            talk = workspace.conversation((await workspace.conversations.create()).id)
            await (await talk.ask("Plum pudding?")).wait()
    told = []
    for shown in ("", "Bearer wrong", f"Bearer {sys.argv[3]}", f"bearer  {sys.argv[3]}"):
        said = []
        async def send(message):
            said.append(message)
        headers = [(b"authorization", shown.encode())]
        await measurements({"type": "http", "path": "/metrics", "headers": headers}, send)
        told.append([said[0]["status"], said[1]["body"].decode()])
    print(json.dumps(told))

asyncio.run(main())
"""


class Collector(ThreadingHTTPServer):
    """Takes traces as a collector does: OTLP over HTTP."""

    spans: list[str]

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            asked = ExportTraceServiceRequest.FromString(body)
            assert isinstance(self.server, Collector)
            if self.path == "/v1/traces":
                found = [one for whole in asked.resource_spans for scope in whole.scope_spans for one in scope.spans]
                self.server.spans += [one.name for one in found]
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    server = Collector(("127.0.0.1", 0), Collector.Handler)
    server.spans = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def told(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, str]]:
    """What `/metrics` says to nobody, to a wrong token and to the right one, after one reply."""
    home = tmp_path_factory.mktemp("home")
    command = [sys.executable, "-c", PROGRAM, str(home), f"http://127.0.0.1:{collector.server_address[1]}", TOKEN]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_measurements_are_shown_to_who_has_the_token(told: list[tuple[int, str]]):
    assert [status for status, _ in told] == [401, 401, 200, 200]
    text = told[2][1]
    assert 'parlour_replies_total{outcome="complete"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert not any(word in text for word in ("pudding", "alice", TOKEN))


def test_a_reply_and_its_calls_reach_the_collector(told: list[tuple[int, str]], collector: Collector):
    assert "invoke_agent parlour" in collector.spans
    assert "chat scripted" in collector.spans


def test_dashboard_and_alerts_ask_for_nothing_that_is_not_measured(told: list[tuple[int, str]]):
    measured = set(re.findall(r"^# TYPE (\S+)", told[2][1], re.MULTILINE))
    # What did not happen in that one reply; Prometheus' names of the same instruments.
    units = {"s": "_seconds", "{token}": "_token"}
    for name, made in INSTRUMENTS.items():
        ending = "_total" if made.kind == "counter" else units[made.unit]
        measured.add(name.replace(".", "_") + (ending if not name.endswith("token.usage") else ""))
    dashboard = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text("utf-8"))
    alerts = yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    asked += [rule["expr"] for rule in rules]
    assert all({"alert", "expr", "for", "labels", "annotations"} <= set(rule) for rule in rules)
    names = {re.sub(r"_(bucket|sum|count)$", "", name) for one in asked for name in re.findall(r"[a-z_]+(?=[{[])", one)}
    assert names
    assert names <= measured


async def test_metrics_are_asked_for_by_any_name_and_address_and_without_them_there_is_nothing():
    async def measurements(scope: Scope, send: Send) -> None:
        await answer(send, 200, f"{scope['owner']}")

    def client(app: StartupApp) -> httpx.AsyncClient:
        async def named(scope: Scope, receive: Receive, send: Send) -> None:
            await OwnerMiddleware(app, Owners("key", local=True), Hosts("127.0.0.1", (), any_address=False))(
                scope, receive, send
            )

        return httpx.AsyncClient(transport=httpx.ASGITransport(named), base_url="http://pod-7.cluster")

    opening: Any = None
    async with client(StartupApp(opening, opening, measurements)) as asked:
        said = await asked.get("/metrics", headers={"x-forwarded-for": "10.0.0.1"})
        assert (said.status_code, said.text) == (200, "None")
    async with client(StartupApp(opening, opening)) as asked:
        assert (await asked.get("/metrics")).status_code == 404


@pytest.mark.parametrize("token", ["short", "x" * 15, "ä" * 20, "a\n" * 10])
def test_a_token_that_can_be_guessed_or_sent_by_no_header_is_refused(token: str):
    with pytest.raises(SettingsError, match="'metrics_token' must be at least 16 letters and figures"):
        Settings.load(metrics_token=token)
