"""Dictation with all of Parlour: from the service that is set up to the line in the account of the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import TONE, ask, chat, composer, wait_for_state
from tests.transcription_server import TranscriptionServer

_POST = """async ([address, body]) => {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(address, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}"""


def post(page: Page, to: str, **body: Any) -> None:
    assert "failed" not in page.evaluate(_POST, [to, body])


def test_what_is_dictated_through_a_service_is_sent_by_hand_and_has_its_line(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    page = open_page(start_app())
    with TranscriptionServer({"text": "What did I say?"}) as service:
        server = {"service": "compatible", "address": service.base_url, "model": "m", "key": service.key}
        post(page, "./models/save_anyway", **server)
        post(page, "./preferences/change", name="dictation", value="compatible")
        page.evaluate(TONE)
        microphone = page.locator("#composer .p-dictate")
        microphone.hover()
        expect(microphone).to_have_attribute("title", f"Dictate. What you say is recorded and goes to {host(service)}")
        microphone.click()
        expect(page.locator(".p-hint")).to_contain_text("whisper-1 turns it into text: free.")
        microphone.click()
        expect(microphone).to_have_attribute("aria-pressed", "true")
        page.locator(".p-recording").get_by_role("button", name="Done").click()
        expect(composer(page)).to_have_value("What did I say?")
        assert service.sent[0].sound.startswith(b"\x1aE\xdf\xa3")
        expect(chat(page)).not_to_contain_text("What did I say?")
        ask(page, "What did I say?")
        wait_for_state(page, "idle")
        page.get_by_role("button", name="Behind this reply").click()
        row = page.locator("#page .p-calls li", has_text="Dictation")
        expect(row).to_contain_text("whisper-1")
        expect(row).to_contain_text("free")


def host(service: TranscriptionServer) -> str:
    place = service.base_url.removeprefix("http://").removesuffix("/v1")
    return f"OpenAI-compatible: {place}, which turns it into text"
