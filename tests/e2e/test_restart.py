"""What happens to replies when the app goes away: told to stop, or as in a power cut."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, chat, until, wait_for_state, words_of

# What the browser says while the app is away; the last is Gradio's word for the rest of a frame that was cut off.
GONE = ("net::ERR_", "network error", "Connection errored out", "Service Unavailable", "Unexpected client exception")


def test_a_reply_cut_by_a_power_cut_is_there_marked_and_goes_on(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app(as_users_do=True)
    page = open_page(app, expected=GONE)
    ask(page, "count slowly until the lights go out")
    expect(chat(page)).to_contain_text("word30 ")
    app.kill()
    app.start()
    # The page finds the app again by itself, and the conversation with it.
    expect(chat(page)).to_contain_text("This reply was interrupted")
    wait_for_state(page, "idle")
    kept = words_of(page)
    assert len(kept) >= 20
    assert kept == [f"word{number}" for number in range(1, len(kept) + 1)]
    page.get_by_role("button", name="Continue").click()
    wait_for_state(page, "running")
    wait_for_state(page, "idle")
    assert words_of(page)[: len(kept)] == kept
    assert len(words_of(page)) > len(kept)
    page.get_by_role("button", name="Regenerate").click()
    expect(chat(page)).not_to_contain_text("word50 ")
    expect(chat(page)).to_contain_text("word200")
    wait_for_state(page, "idle")
    until(lambda: words_of(page) == [f"word{number}" for number in range(1, 201)])


def test_told_to_stop_it_ends_at_once_and_keeps_the_reply(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    began = time.monotonic()
    app = start_app(as_users_do=True)
    at_once = max(5, time.monotonic() - began)  # seconds; a machine that is too busy to start it in five may be later
    page = open_page(app, expected=GONE)
    ask(page, "count at leisure until you are told to stop")
    expect(chat(page)).to_contain_text("word20 ")
    process = app.process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    assert process.wait(at_once) == 0
    log = app.log.read_text("utf-8")
    assert "Traceback" not in log, log
    app.start()
    expect(chat(page)).to_contain_text("This reply was interrupted")
    assert len(words_of(page)) >= 20
    ask_and_wait(page, "Are you back?", "You said: Are you back?")


@pytest.mark.slow
def test_a_second_start_at_a_port_that_was_asked_for_says_that_it_is_taken_and_ends(
    start_app: Callable[..., AppProcess],
) -> None:
    first = start_app(as_users_do=True)
    second = AppProcess(first.home.parent / "second", first.model, port=first.port + 1)
    second.settings["PORT"] = str(first.port)
    try:
        with pytest.raises(RuntimeError):
            second.start()
        assert second.process is not None
        assert second.process.wait(60) == 1
        (line,) = second.log.read_text("utf-8").splitlines()
        assert line.startswith(f"parlour: Port {first.port} is taken")
        assert first.get("/healthz")[0] == 200
    finally:
        second.stop()
