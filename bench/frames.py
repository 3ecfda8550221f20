"""What a frame of a streaming reply costs the browser in a conversation of 200 messages, against one of 40."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from bench.figures import Figure, report
from bench.seeding import seed
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from set_up import find_browser
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, wait_for_state

DATABASE = "parlour.db"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
]
COUNT_FRAMES = """() => {
  let marked = false;
  window.framesSeen = 0;
  const seen = () => { marked = false; window.framesSeen++; };
  const mark = () => { if (!marked) { marked = true; requestAnimationFrame(seen); } };
  new MutationObserver(mark).observe(
    document.querySelector('#chat'), {subtree: true, childList: true, characterData: true});
}"""

# Playwright's own waiting looks through the page again and again, on the thread that is measured.
UNTIL_SAID = """(words) => new Promise((said) => {
  const chat = document.querySelector('#chat');
  const look = () => { if (chat.textContent.includes(words)) { watching.disconnect(); said(); } };
  const watching = new MutationObserver(look);
  watching.observe(chat, {subtree: true, childList: true, characterData: true});
  look();
})"""


def busy_seconds(session: CDPSession) -> float:
    """Seconds that the page's main thread has worked so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def milliseconds_per_frame(page: Page) -> float:
    """Main-thread time per frame while a reply of 200 words comes at 30 words a second."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU, not the clock on the wall
    ask(page, "count slowly")
    expect(page.locator("#chat")).to_contain_text("word20 ", timeout=60_000)
    page.evaluate(COUNT_FRAMES)
    before = busy_seconds(session)
    page.evaluate(UNTIL_SAID, "word180 ")
    spent, frames = busy_seconds(session) - before, page.evaluate("window.framesSeen")
    wait_for_state(page, "idle")
    return spent / frames * 1000


@contextmanager
def opened(browser: Browser, app: AppProcess, conversation: str) -> Iterator[Page]:
    """The conversation in a window of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    page = context.new_page()
    page.goto(app.at(f"/?c={conversation}"), wait_until="domcontentloaded")
    page.wait_for_selector("#composer textarea")
    expect(page.locator("#chat")).to_contain_text("The third is short", timeout=60_000)
    try:
        yield page
    finally:
        context.close()


def measured(rounds: int = 2) -> tuple[float, float]:
    """Median milliseconds a frame at 40 and at 200 messages, in turns."""
    results: dict[int, list[float]] = {40: [], 200: []}
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        home = Path(folder) / "home"
        conversations = {(size, number): seed(home / DATABASE, size) for number in range(rounds) for size in results}
        app = AppProcess(home, model).start()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
                for (size, _), conversation in conversations.items():
                    with opened(browser, app, conversation) as page:
                        results[size].append(milliseconds_per_frame(page))
                browser.close()
        finally:
            app.stop()
    return statistics.median(results[40]), statistics.median(results[200])


def main() -> None:
    """The ratio of the two."""
    short, long = measured()
    said = f"{long:.1f} against {short:.1f} ms of the browser's main thread"
    report([Figure("a frame at 200 messages over one at 40", long / short, 1.2, "×", said)])


if __name__ == "__main__":
    main()
