"""What somebody sent or a tool made is shown only where it can hold no script; HTML and SVG are saved, never opened."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from core.engine import Engine
from core.messages.content import ContentItem
from core.messages.message import Message
from core.runs.reply import CallBlock
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.served_app import served
from webui.context import WebContext
from webui.handlers.approval import CallRoutes
from webui.words import Words

pytestmark = pytest.mark.anyio

SCRIPT = b"<script>document.title='pwned'</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">' + SCRIPT + b"</svg>"
HTML = b"<!doctype html>" + SCRIPT
HOSTILE = {
    "page.html": HTML,
    "page.HTM": HTML,
    "page.xhtml": b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">' + SCRIPT + b"</html>",
    "page.xml": b'<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="data:,x"?><x/>',
    "page.mht": b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n" + SCRIPT,
    "drawing.svg": SVG,
    "photo.png": HTML,
    "drawing.png": SVG,
    "sound.mp3": HTML,
    "script.js": b"document.title='pwned'",
    "form.pdf": b"%PDF-1.7\n1 0 obj << /OpenAction << /S /JavaScript /JS (app.alert(1)) >> >> endobj",
}
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 40


async def test_a_file_that_may_hold_a_script_is_saved_and_is_no_document_of_this_site(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, code="off")
    async with Engine(settings, model=ScriptedModel()) as engine, served(engine, settings) as app:
        files = engine.stores.of(LOCAL_OWNER).files
        async with httpx.AsyncClient(base_url=app.address) as browser:
            for name, data in HOSTILE.items():
                for said in ("", "image/svg+xml", "text/html"):
                    kept = await files.put(name, data, media_type=said)
                    for more in ("", "?download=1"):
                        answer = await browser.get(f"/files/{kept.id}{more}")
                        shown = answer.headers
                        assert (answer.status_code, answer.content) == (200, data), name
                        assert shown["content-type"] == "application/octet-stream", (name, said)
                        assert shown["content-disposition"].startswith("attachment"), name
                        assert shown["x-content-type-options"] == "nosniff"
                        policy = [part.strip() for part in shown["content-security-policy"].split(";")]
                        assert {"default-src 'none'", "sandbox"} <= set(policy)
            picture = await browser.get(f"/files/{(await files.put('a.png', PICTURE)).id}")
            assert picture.headers["content-type"] == "image/png"
            assert picture.headers["content-disposition"].startswith("inline")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("image/png", "image/png"),
        ("image/svg+xml", ""),
        ("IMAGE/SVG+XML", ""),
        ("text/html", ""),
        ("application/xhtml+xml", ""),
        ("", ""),
    ],
)
async def test_of_what_a_tool_gave_back_a_browser_opens_no_html_and_no_drawing(
    said: str, shown: str, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, code="off")
    address = f"data:{said};base64,{b64encode(SVG).decode()}"
    result = Message(role="function", name="draw", content=[ContentItem(image=address)])
    call: Any = CallBlock("c", "draw", result=result)
    async with Engine(settings, model=ScriptedModel()) as engine:
        routes = CallRoutes(WebContext(engine, settings, Words.of))
        nobody: Any = None
        scope = {"type": "http", "method": "GET", "headers": [], "query_string": b"n=0"}
        answer = await routes.item(Request(scope), nobody, call)
    assert answer.body == SVG
    assert answer.headers["content-type"] == (shown or "application/octet-stream")
    assert answer.headers.get("content-disposition", "").startswith("attachment") is (not shown)
