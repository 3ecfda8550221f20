"""How long a second start takes: until `/readyz` says yes, and until the page has been sent."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import Figure, report
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess


def measured() -> tuple[float, float]:
    """Seconds to readiness and to the page, at a start with a data folder that is there already."""
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        app = AppProcess(Path(folder) / "home", model)
        app.start().stop()
        began = time.perf_counter()
        try:
            app.start()
            ready = time.perf_counter() - began
            status, _ = app.get("/")
            whole = time.perf_counter() - began
        finally:
            app.stop()
    if status != 200:
        raise RuntimeError(f"The page answered {status}.")
    return ready, whole


def main() -> None:
    """Both figures."""
    ready, whole = measured()
    report(
        [
            Figure("a second start, until `/readyz` says yes", ready, 5.0, "s"),
            Figure("a second start, until the page has been sent", whole, 10.0, "s"),
        ]
    )


if __name__ == "__main__":
    main()
