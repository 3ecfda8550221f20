"""A hundred visitors watch demonstrations: how long until each sees the first of it, and whether any model is asked."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from bench.figures import Figure, report
from bench.load import cpu
from bench.pages import Functions, RawPage
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from webui.bundles import assets_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

VISITORS = 100
APART = 0.5  # seconds between two visitors
MOST = 12
READS = 2.0  # seconds that each looks at a step before going on
NAMES = [one.stem for one in sorted((assets_folder() / "demos").glob("en-*.jsonl"))]


class Visitor(RawPage):
    """A tab whose address names a demonstration."""

    def __init__(self, client: httpx.AsyncClient, functions: Functions, act: int) -> None:
        super().__init__(client, functions)
        self._act = act

    async def first_paint(self) -> float:
        """Seconds from opening the page to the first frame with something of the demonstration."""
        began = time.perf_counter()
        await self._client.get("/")
        async with aclosing(self._call(self._functions.opened, [])) as messages:
            async for message in messages:
                if "p-asked" in json.dumps(message):
                    return time.perf_counter() - began
        raise RuntimeError("A visitor saw no demonstration.")

    async def step(self) -> str:
        """One step on; what was painted."""
        seen = ""
        async with aclosing(self._call(self._act, [json.dumps({"do": "demostep", "to": "on"})])) as messages:
            async for message in messages:
                seen = json.dumps(message)
        return seen


def _act(config: dict[str, Any]) -> int:
    """Gradio's number for what the script asks."""
    button = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == "bus-go")
    asks = next(item["id"] for item in config["dependencies"] if any(part == button for part, _ in item["targets"]))
    return int(asks)


async def _visit(app: AppProcess, functions: Functions, act: int, number: int) -> tuple[float, int]:
    await asyncio.sleep(max(0, number) * APART)
    referer = f"{app.url}/?demo={NAMES[number % len(NAMES)]}"
    async with httpx.AsyncClient(base_url=app.url, headers={"Referer": referer}, timeout=120) as client:
        visitor = Visitor(client, functions, act)
        first = await visitor.first_paint()
        steps = 0
        while steps < MOST:
            steps += 1
            await asyncio.sleep(READS if number >= 0 else 0.0)
            if 'aria-disabled=\\"true\\"' in (await visitor.step()).partition("p-demo-on")[2][:200]:
                break
        await visitor.close()
        return first, steps


async def _measured(app: AppProcess) -> Sequence[tuple[float, int]]:
    async with httpx.AsyncClient(base_url=app.url, timeout=120) as client:
        await client.get(app.address, follow_redirects=True)
        config = (await client.get("/config")).json()
    functions, act = Functions.read(config), _act(config)
    for number in range(-len(NAMES), 0):  # taken in by the first who watches
        await _visit(app, functions, act, number)
    return await asyncio.gather(*(_visit(app, functions, act, number) for number in range(VISITORS)))


def main() -> None:
    """Count and measure."""
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        settings = {"OWNERS": "cookie", "NEW_OWNERS_PER_MINUTE": "0"}
        app = AppProcess(Path(folder) / "home", model, settings).start()
        try:
            process = psutil.Process(app.process.pid if app.process else 0)
            began = cpu(process)
            visits = asyncio.run(_measured(app))
            spent = (cpu(process) - began) / VISITORS
            asked = len(model.requests)
        finally:
            app.stop()
    firsts = sorted(first for first, _ in visits)
    late = firsts[int(len(firsts) * 0.95)]
    steps = sum(count for _, count in visits)
    said = f"median {statistics.median(firsts) * 1000:.0f} ms; {steps} steps, {spent:.2f} s of CPU a visitor"
    report(
        [
            Figure("a demonstration's first paint, p95 of 100 visitors", late, 1.0, "s", said),
            Figure("calls of a model while 100 visitors watch", float(asked), 0.0, "calls", "counted by the service"),
        ]
    )


if __name__ == "__main__":
    main()
