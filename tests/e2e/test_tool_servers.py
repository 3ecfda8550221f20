"""A server of tools comes into the conversation: pasted, seen, started, asked for by the model, and allowed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.testing.script import Reply, Request
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat

SERVER = '''
from mcp.server import MCPServer

server = MCPServer("notes")


@server.tool()
def find_note(words: str) -> str:
    """Finds a note by its words."""
    return f"The note about {words}: buy heliotrope."


server.run("stdio")
'''


def asks_for_the_note(request: Request) -> Reply:
    """A model that calls the server's tool where it is offered, and then says what came back."""
    last: Any = request["messages"][-1]
    if last["role"] == "tool":
        return Reply(text=f"It says: {last['content']}")
    offered = [tool["function"]["name"] for tool in request.get("tools") or []]
    return Reply(calls=[("notes-find_note", {"words": "flowers"})] if "notes-find_note" in offered else [], text="")


@pytest.mark.slow
def test_a_pasted_server_is_seen_started_and_its_tool_allowed(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    program = tmp_path / "notes_server.py"
    program.write_text(SERVER)
    page = open_page(start_app(asks_for_the_note))
    page.get_by_role("button", name="Tools", exact=True).click()
    dialog = page.get_by_role("dialog", name="Tools")
    dialog.get_by_role("button", name="Add a server").click()
    area = dialog.get_by_label("Paste JSON")
    area.fill('{"mcpServers": {"notes": {"command": "x",, }}}')
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("line 1, column 42")
    area.fill(json.dumps({"mcpServers": {"notes": {"command": sys.executable, "args": [str(program)]}}}))
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("heading", name="notes")).to_be_focused()  # Enter starts nothing
    seen = dialog.get_by_role("group", name="This will be started on your machine")
    expect(seen).to_contain_text(sys.executable)
    expect(seen).to_contain_text(str(program))
    seen.get_by_role("button", name="Start it").click()
    expect(dialog.get_by_role("switch", name="find_note")).to_be_checked()
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Tools", exact=True)).to_be_focused()

    ask(page, "What is my note about flowers?")
    card = page.locator(".p-asks:not([data-fresh])").filter(has_text="find_note")
    card.get_by_role("button", name="Allow once").click()
    expect(chat(page)).to_contain_text("It says: The note about flowers: buy heliotrope.")
