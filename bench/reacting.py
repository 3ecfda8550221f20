"""What a hand waits for in Chromium: a long conversation that is opened, a key, the menu of models, the palette.

Each time is from the browser's own stamp of the key, or of the button let go, to the frame that shows what came of it,
so that it holds what the page was busy with before.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import expect, sync_playwright

from bench.figures import Figure, report
from bench.frames import ARGUMENTS, busy_seconds
from bench.seeding import seed
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from set_up import find_browser
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, composer, wait_for_state

if TYPE_CHECKING:
    from playwright.sync_api import Page

SHORT, LONG = 40, 5_000
TIMES: Final = 20
KEYS: Final = 60  # of one reply
BETWEEN: Final = 80  # milliseconds from key to key
WATCH = """(wanted) => {
  window.taken = [];
  window.wanted = wanted;
  window.from = 0;
  const painted = (then) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = then;
    port2.postMessage(0);
  });
  const end = () => {
    if (!window.from) return;
    const began = window.from;
    window.from = 0;
    painted(() => window.taken.push(performance.now() - began));
  };
  const begin = (event) => { window.from = event.timeStamp; if (!window.wanted) end(); };
  addEventListener('keydown', begin, true);
  addEventListener('pointerup', begin, true);
  new MutationObserver(() => { if (window.wanted && document.querySelector(window.wanted)) end(); })
    .observe(document.body,
      { subtree: true, childList: true, attributes: true, attributeFilter: ['open', 'data-conversation'] });
}"""


def late(times: list[float]) -> float:
    """What nineteen of twenty do not exceed."""
    return sorted(times)[max(0, int(len(times) * 0.95) - 1)]


def taken(page: Page, count: int) -> list[float]:
    """The times so far, once there are so many; they are forgotten."""
    page.wait_for_function("(count) => window.taken.length >= count", arg=count)
    return [float(one) for one in page.evaluate("window.taken.splice(0)")]


def watch(page: Page, wanted: str) -> None:
    """Time what follows until there is `wanted`; until the next frame where that is empty."""
    page.evaluate("(wanted) => { window.wanted = wanted; window.from = 0; window.taken = []; }", wanted)


def opened(page: Page, titles: dict[int, str]) -> dict[int, list[float]]:
    """Milliseconds to open each conversation, in turns."""
    times: dict[int, list[float]] = {length: [] for length in titles}
    for _ in range(TIMES // 2):
        for length, identity in titles.items():
            watch(page, f"#status [data-conversation='{identity}']:not([data-room=empty])")
            page.locator(f"#history a[data-open='{identity}']").click()
            times[length] += taken(page, 1)
            expect(page.locator("#chat")).to_contain_text("The third is short")
    return times


def shown(page: Page, wanted: str, press: Any) -> list[float]:
    """Milliseconds until a menu or dialog is painted, many times."""
    times: list[float] = []
    for number in range(TIMES + 1):
        watch(page, wanted)
        press()
        times += taken(page, 1)[: bool(number)]  # the first one counts apart: everything is new
        page.evaluate("window.wanted = ''")  # Escape closes; it is timed by itself, and forgotten
        page.keyboard.press("Escape")
        expect(page.locator(wanted)).to_have_count(0)
        taken(page, 1)
    return times


def keys(page: Page) -> list[float]:
    """Milliseconds from key to paint, of keys that come one by one."""
    watch(page, "")
    composer(page).click()
    page.evaluate("window.taken = []")
    for number in range(KEYS):
        page.keyboard.press("abcdefgh "[number % 9])
        page.wait_for_timeout(BETWEEN)
    times = taken(page, KEYS)
    composer(page).fill("")
    return times


def measured(app: AppProcess, home: dict[int, str]) -> list[Figure]:
    """All of them in one window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        page = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US").new_page()
        page.goto(app.at("/"), wait_until="domcontentloaded")
        expect(page.locator("#history a[data-open]").first).to_be_visible(timeout=60_000)
        page.wait_for_timeout(2_000)  # what the page does once
        page.evaluate(WATCH, "")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        opening = opened(page, home)
        palette = shown(page, "dialog.p-palette[open]", lambda: page.keyboard.press("Control+k"))
        menu = shown(page, ".p-choose", page.locator("#top [data-do=choose]").click)
        rows = shown(page, ".p-float", page.locator("#history .p-menu").first.click)
        still = keys(page)
        page.locator("#house .p-new").click()
        wait_for_state(page, "idle")
        streaming: list[float] = []
        busy = 0.0
        for _ in range(3):
            ask(page, "count slowly")
            expect(page.locator("#chat .bot-row").last).to_contain_text("word5 ", timeout=60_000)
            before = busy_seconds(session)
            streaming += keys(page)
            busy += (busy_seconds(session) - before) / (3 * KEYS) * 1000
            wait_for_state(page, "idle")
        browser.close()
    long, short = (statistics.median(opening[length]) for length in (LONG, SHORT))
    free, told = late(still), f"{busy:.0f} ms of the main thread for each key, frames included"
    typed = f"median {statistics.median(streaming):.0f}, worst {max(streaming):.0f} ms; {len(streaming)} keys"
    during = f"{typed}; while nothing is written p95 {free:.0f} ms; {told}"
    return [
        Figure(
            f"a conversation of {LONG:,} messages opened, median",
            long / 1000,
            0.5,
            "s",
            f"worst {max(opening[LONG]) / 1000:.2f} s; one of {SHORT} {short / 1000:.2f} s in turns",
        ),
        Figure("a key until it is painted while a reply is written, p95", late(streaming), 32, "ms", during),
        Figure("the palette opened, p95", late(palette), 100, "ms", f"median {statistics.median(palette):.0f} ms"),
        Figure("the menu of models opened, p95", late(menu), 100, "ms", f"median {statistics.median(menu):.0f} ms"),
        Figure("the menu of a row opened, p95", late(rows), 100, "ms", f"median {statistics.median(rows):.0f} ms"),
    ]


def main() -> None:
    """In a folder of its own."""
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        home = Path(folder) / "home"
        conversations = {length: seed(home / "parlour.db", length) for length in (SHORT, LONG)}
        app = AppProcess(home, model).start()
        try:
            report(measured(app, conversations))
        finally:
            app.stop()


if __name__ == "__main__":
    main()
