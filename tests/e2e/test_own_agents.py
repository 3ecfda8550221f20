"""A program's own two agents on the page: the chooser, a name after an @, and asking before a tool acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request
from tests.e2e.chat_steps import ask, ask_and_wait, chat, wait_for_state
from tests.e2e.test_asking_first import card
from tests.webui.server.own_process import OwnProcess

CALL = '<tool_call>\n{"name": "keep", "arguments": {}}\n</tool_call>'


def said(request: Request) -> Reply:
    """Bob is told that he is Bob; Ann keeps a note when she is told to."""
    system, last = str(request["messages"][0]["content"]), str(request["messages"][-1]["content"])
    if "You are Bob." in system:
        return Reply(text="Bob speaks.")
    if "kept" in last:
        return Reply(text="It is kept.")
    return Reply(text=CALL if "Keep" in last else "Ann speaks.")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[OwnProcess]:
    """Asked for before `open_page`, so that the pages are closed first."""
    with ModelServer(said) as model:
        app = OwnProcess(tmp_path / "home", model)
        try:
            yield app.start()
        finally:
            app.stop()


@pytest.mark.slow
def test_a_reader_turns_to_another_agent_and_is_asked_before_a_tool_acts(
    program: OwnProcess, open_page: Callable[..., Page]
) -> None:
    page = open_page(program)
    page.locator("#hello .p-starter").click()
    expect(chat(page)).to_contain_text("Ann speaks.")
    wait_for_state(page, "idle")
    ask_and_wait(page, "@Bob what do you say?", "Bob speaks.")
    for name in ("Bob", "Ann"):
        page.locator(".p-ready summary").click()
        page.locator(".p-agents a", has_text=name).click()
        expect(page.locator(".p-ready .p-model")).to_contain_text(f"{name} · ")
    ask(page, "Keep this")
    card(page, "keep").get_by_role("button", name="Allow once").click()
    expect(chat(page)).to_contain_text("It is kept.")
    wait_for_state(page, "idle")
