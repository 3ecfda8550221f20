"""What a person does on the page, in words that tests can use."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

NAMED = re.compile(r"\?c=")
"""The address of a conversation that exists; it comes a moment after the first words of its reply."""

TONE = """() => {
  const audio = new AudioContext();
  const tone = new OscillatorNode(audio);
  const out = audio.createMediaStreamDestination();
  tone.connect(out);
  tone.start();
  navigator.mediaDevices.getUserMedia = async () => { window.microphone = out.stream; return out.stream; };
}"""
"""Puts a tone in the place of the microphone, which browsers of machines without one can record."""


def composer(page: Page) -> Locator:
    """The field one writes in."""
    return page.locator("#composer textarea")


def ask(page: Page, text: str) -> None:
    """Write `text` and press Enter, without waiting for the reply."""
    composer(page).fill(text)
    composer(page).press("Enter")


def focus(element: Locator) -> None:
    """Put the keyboard on an element once it is in sight: what is hidden as yet does not take it, and says nothing."""
    expect(element).to_be_visible()
    element.focus()
    expect(element).to_be_focused()


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so; the page's own rules forbid Playwright to wait inside it."""
    end = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < end, "It never came to be."
        time.sleep(0.05)  # between two looks, not for luck


def wait_for_script(page: Page) -> None:
    """Wait until the page's own script and styles are there.

    Gradio puts them into a page that is drawn already: what is clicked or measured before says nothing.
    """
    expect(page.locator("html[data-hour]")).to_be_attached()  # the script sets it as it begins
    page.evaluate(
        """() => Promise.all([...document.querySelectorAll('link[rel=stylesheet]')].filter((one) => !one.sheet)
            .map((one) => new Promise((done) => { one.onload = one.onerror = done; })))"""
    )


def wait_for_state(page: Page, state: str) -> None:
    """Wait until the page says that it is `idle`, `running`, `stopping` or in `error`."""
    expect(page.locator(f"#status [data-state={state}]")).to_be_attached(timeout=60_000)


def ask_and_wait(page: Page, text: str, answer: str) -> None:
    """Ask, and wait until the reply holds `answer` and is over."""
    ask(page, text)
    expect(chat(page)).to_contain_text(answer, timeout=60_000)
    wait_for_state(page, "idle")


def chat(page: Page) -> Locator:
    """The conversation, with everything that is said and done in it."""
    return page.locator("#chat")


def button(page: Page, name: str) -> Locator:
    """A button of the composer, by the name that a screen reader says."""
    return page.locator("#composer").get_by_role("button", name=name, exact=True)


def words_of(page: Page) -> list[str]:
    """The numbered words of a reply to "count slowly" and its like."""
    return re.findall(r"word\d+", chat(page).inner_text())


def switch_theme(page: Page) -> None:
    """From light to dark, or back, by the command of the palette."""
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("switch to")
    page.get_by_role("option", name="Switch to").click()
    expect(page.locator("dialog.p-palette")).to_have_count(0)
