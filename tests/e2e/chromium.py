"""The machine's own Chromium, without those parts of its window that no page is seen in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from playwright.sync_api import Browser, sync_playwright

from set_up import find_browser

# Playwright's own, which Chromium would forget: of several such lists it hears the last.
_NOT_USED = """
    AimEnabled AvoidCorsURLLoaderRestartOnRedirect AvoidUnnecessaryBeforeUnloadCheckSync DestroyProfileOnBrowserClose
    HttpsFirstBalancedModeAutoEnable HttpsUpgrades LensOverlay MediaRouter NetworkTimeServiceQuerying OptimizationHints
    PaintHolding PreconnectToSearch ThirdPartyStoragePartitioning
"""
# Each new window draws these two lists under its address bar as pages of their own: a third of what opening ours takes.
_WINDOW = "WebUIOmniboxPopup WebUIOmniboxAimPopup"
# What draws is a part of the browser's own process: to tell another one of each picture is a sixth of opening a page.
_ARGUMENTS = """
    --headless --no-sandbox --disable-gpu --in-process-gpu
    --disable-quic --no-first-run --disable-dev-shm-usage --disable-sync
    --disable-background-networking --disable-component-update --disable-default-apps --disable-extensions
"""


@contextmanager
def chromium(home: Path) -> Iterator[Browser]:
    """A browser; what it wants to keep for itself goes into the folder `home`."""
    path = find_browser()
    assert path, "Chromium is not installed; `make test` installs it."
    features = ",".join((_NOT_USED + _WINDOW).split())
    arguments = [*_ARGUMENTS.split(), f"--disable-features={features}"]
    with sync_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, "HOME": str(home)}
        browser = playwright.chromium.launch(executable_path=path, args=arguments, env=environment)
        yield browser
        _note_time_of_pages()
        browser.close()


def _note_time_of_pages() -> None:
    """Tell the gate what pages took: nobody waits for their processes, so the system counts them for nobody."""
    noted = os.environ.get("GATE_TIMES")
    if not noted:
        return
    seconds = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "--type=" in " ".join(process.cmdline()):
                seconds += sum(process.cpu_times()[:4])
    with Path(noted).open("a", encoding="utf-8") as file:
        file.write(f"{seconds:.1f}\n")
