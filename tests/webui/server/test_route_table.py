"""Every route of the application, Gradio's own included, stands in a table: a new one fails until it was judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount

from webui.gradio_patches import queue_first
from webui.middleware.gate import GateMiddleware
from webui.uploads import Uploads

# What lets a browser through that has a cookie and asks for nothing of its own.
OPEN = {
    *("/", "/config", "/theme.css", "/favicon.ico", "/manifest.json", "/robots.txt"),
    *("/assets/x", "/static/x", "/gradio_api/startup-events", "/gradio_api/app_id", "/gradio_api/theme.css"),
    *("/gradio_api/upload", "/gradio_api/upload_progress", "/gradio_api/heartbeat/x"),
}
# Open to who names a session, event or upload of their own; here they name none.
ASKED = {"/gradio_api/queue/join", "/gradio_api/queue/data", "/gradio_api/cancel", "/gradio_api/file=x"}
HARMLESS = {"/gradio_api/reset"}  # does nothing


def paths(routes: list[BaseRoute], prefix: str = "") -> Iterator[str]:
    for route in routes:
        included = getattr(route, "original_router", None)  # how FastAPI keeps a router that was included
        if included is not None:
            yield from paths(included.routes, prefix)
        elif isinstance(route, Mount):
            yield from paths(list(route.routes), prefix + route.path)
        else:
            yield prefix + re.sub(r"{[^}]*}", "x", str(getattr(route, "path", "")))


@pytest.fixture(scope="module")
def every_path() -> list[str]:
    with gr.Blocks(analytics_enabled=False) as demo:
        gr.Textbox()
    app = gr.mount_gradio_app(FastAPI(), demo, path="/", ssr_mode=False)
    return sorted(set(paths(list(app.routes))))


def test_the_routes_of_the_queue_are_looked_at_first_and_no_other_is_lost() -> None:
    with gr.Blocks(analytics_enabled=False) as demo:
        gr.Textbox()
    app = gr.mount_gradio_app(FastAPI(), demo, path="/", ssr_mode=False)
    before = list(paths(list(app.routes)))
    queue_first(app)
    after = list(paths(list(app.routes)))
    asked = ["/gradio_api/queue/join", "/gradio_api/queue/data"]
    others = [path for path in before if path not in asked]
    place = after.index(asked[0])
    assert after[place : place + 2] == asked
    assert [*after[:place], *after[place + 2 :]] == others
    assert others[place] == "/gradio_api/user/"  # the first of the router that has the queue


async def _status(path: str, uploads: Uploads) -> int:
    """What the gate answers; 200 where it lets the request through."""
    answers: list[int] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        answers.append(200)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": [], "owner": "b-alice"}
    await GateMiddleware(inside, uploads)(scope, receive, send)
    return answers[0]


@pytest.mark.anyio
async def test_only_the_routes_of_the_table_are_open(every_path: list[str], tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "tmp", 1000)
    opened = {path for path in every_path if await _status(path, uploads) == 200}
    assert opened == (OPEN | HARMLESS) & set(every_path)
    assert len(every_path) > 80
    assert set(every_path) >= ASKED


OWN = {
    "/search",
    "/meter",
    "/meter/save",
    "/offline.js",
    "/inspect/x.json",
    "/mcp",
    "/conversations/x/export",
    "/libraries/state",
    "/files/x",
    "/documents/unlock",
    "/preferences/page",
    "/dictation/way",
    "/shares/preview",
    "/shared/x",
    "/conversations/x/answers/y",
}
"""Some of Parlour's own, which look at the owner themselves; what is like them and not there is refused."""


@pytest.mark.anyio
async def test_parlours_own_routes_are_let_through_and_nothing_beside_them(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "tmp", 1000)
    assert {path: await _status(path, uploads) for path in OWN} == dict.fromkeys(OWN, 200)
    assert [await _status(path, uploads) for path in ("/search/x", "/searching", "/conversations")] == [404] * 3
