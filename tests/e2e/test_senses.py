"""Files for senses that the model lacks: a picture and a recording become text, and marks lead into them."""

from __future__ import annotations

import os
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, expect

from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, wait_for_state
from tests.e2e.test_dictation import post
from tests.e2e.test_documents import add
from tests.transcription_server import TranscriptionServer

ANSWER = "The deductible for water damage is four hundred euros."
SPOKEN: dict[str, Any] = {
    "text": "Welcome. The deductible is 150 euros.",
    "segments": [
        {"start": 1.0, "end": 4.0, "text": " Welcome to the meeting of the house."},
        {"start": 65.4, "end": 70.0, "text": " The deductible for water damage is four hundred euros."},
    ],
}


def letter(path: Path) -> Path:
    drawn = Image.new("RGB", (1000, 420), "white")
    pen, font = ImageDraw.Draw(drawn), ImageFont.load_default(40)
    pen.text((40, 40), "House insurance of Anna Weber", "black", font=font)
    pen.text((40, 130), "The deductible for storm damage is 150 euros.", "black", font=font)
    drawn.save(path)
    return path


def tone(path: Path) -> Path:
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 1, 8000, 0, "NONE", ""))
        sound.writeframes(bytes((127 + at // 20 % 2 * 20) for at in range(8000 * 75)))
    return path


def look(page: Page, name: str) -> None:
    """A picture for whoever wants to look, where the environment names a folder."""
    if folder := os.environ.get("LOOK"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_a_picture_is_read_for_a_model_that_does_not_see_and_its_mark_opens_it(page: Page, tmp_path: Path) -> None:
    add(page, letter(tmp_path / "letter.png"))
    ask(page, "What is the deductible for storm damage?")
    expect(chat(page)).to_contain_text("of letter.png it was given the text that was recognised in it")
    wait_for_state(page, "idle")
    look(page, "picture-desk")
    chat(page).locator("a.cite").first.click()
    evidence = page.locator("#evidence")
    picture = evidence.get_by_role("img", name="Page 1 of letter.png")
    expect(picture).to_be_visible()
    expect(evidence.locator(".p-hl.p-on").first).to_be_visible()
    look(page, "picture-evidence")
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    look(page, "picture-phone-dark")


def test_a_recording_becomes_a_transcript_and_its_mark_stands_at_the_second(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(start_app(lambda _: Reply(text=ANSWER), RETRIEVAL="keyword"))
    with TranscriptionServer(SPOKEN) as service:
        server = {"service": "compatible", "address": service.base_url, "model": "m", "key": service.key}
        post(page, "./models/save_anyway", **server, use=False)
        post(page, "./preferences/change", name="dictation", value="compatible")
        add(page, tone(tmp_path / "meeting.wav"))
        ask(page, "What is the deductible for water damage?")
        expect(chat(page)).to_contain_text("of meeting.wav it was given a transcript by whisper-1")
        wait_for_state(page, "idle")
    look(page, "sound-desk")
    chat(page).locator("a.cite").first.click()
    evidence = page.locator("#evidence")
    player = evidence.locator(".p-player audio")
    expect(evidence).to_contain_text("meeting.wav from 0:01:05")
    page.wait_for_function("() => document.querySelector('#evidence .p-player audio').currentTime === 65")
    assert player.evaluate("player => player.paused")
    look(page, "sound-evidence")
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    look(page, "sound-phone-dark")
