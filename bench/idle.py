"""What Parlour costs while nobody does anything: the server with no page and with one open, and the page itself."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from playwright.sync_api import sync_playwright

from bench.figures import Figure, report
from bench.frames import ARGUMENTS, busy_seconds
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from set_up import find_browser
from tests.e2e.app_process import AppProcess

SECONDS = 60.0
SETTLED = 10.0  # what a start or an opened page leaves to be done
GOAL = 0.005  # of a core


def used(process: psutil.Process) -> tuple[float, int]:
    """Seconds of CPU so far, and how often the process has waited for something."""
    times = process.cpu_times()
    return times.user + times.system, process.num_ctx_switches().voluntary


def watched(process: psutil.Process) -> tuple[float, float]:
    """Share of a core, and wake-ups a second of its main thread."""
    (before, waits), began = used(process), time.monotonic()
    time.sleep(SECONDS)
    (after, more), spent = used(process), time.monotonic() - began
    return (after - before) / spent, (more - waits) / spent


def measured() -> tuple[tuple[float, float], tuple[float, float], float, float]:
    """The server alone, the server with a page, the page's main thread, and its whole process."""
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        app = AppProcess(Path(folder) / "home", model).start()
        try:
            assert app.process is not None
            server = psutil.Process(app.process.pid)
            time.sleep(SETTLED)
            alone = watched(server)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
                others = set(_renderers())
                page = browser.new_page(viewport={"width": 1280, "height": 860})
                page.goto(app.address, wait_until="domcontentloaded")
                page.wait_for_selector("#status [data-state]:not([data-lang=''])", state="attached")
                renderers = [psutil.Process(pid) for pid in _renderers() if pid not in others]
                session = page.context.new_cdp_session(page)
                session.send("Performance.enable", {"timeDomain": "threadTicks"})
                time.sleep(SETTLED)
                busy, whole, began = busy_seconds(session), _cpu(renderers), time.monotonic()
                opened = watched(server)
                spent = time.monotonic() - began
                return (
                    alone,
                    opened,
                    (busy_seconds(session) - busy) / spent,
                    (_cpu(renderers) - whole) / spent,
                )
        finally:
            app.stop()


def _renderers() -> list[int]:
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if "--type=renderer" in child.cmdline()]


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(used(process)[0] for process in processes)


def main() -> None:
    """Shares of a core, in per cent."""
    (alone, waits), (opened, more), busy, whole = measured()
    report(
        [
            Figure("idle server, no page", alone * 100, GOAL * 100, "%", f"of a core; {waits:.0f} wake-ups a second"),
            Figure("idle server, one page", opened * 100, GOAL * 100, "%", f"of a core; {more:.0f} wake-ups a second"),
            Figure("idle page", whole * 100, GOAL * 100, "%", f"of a core; its main thread {busy * 100:.3f} %"),
        ]
    )


if __name__ == "__main__":
    main()
