"""Many users at once: seconds of CPU for each reply, against a bare relay of the same model, and the first update."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from bench.figures import Figure, report
from bench.pages import QUESTION, Functions, RawPage
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request
from tests.e2e.app_process import ROOT, AppProcess
from tests.ports import free_port

SETTINGS = {
    "HOST": "0.0.0.0",
    "ACCOUNTS": "guests",
    "TOKEN": "off",
    "RETRIEVAL": "keyword",
}  # each browser an owner of its own
WORDS, PACE = 300, 1 / 30
APART = 20.0  # seconds within which each user asks once


def long_reply(request: Request) -> Reply:
    """Ten seconds of words, so that half of the users wait for theirs at any moment."""
    del request
    return Reply(text=[f"word{number} " for number in range(WORDS)], pace=PACE)


class User(RawPage):
    """One browser with a cookie of its own."""

    async def whole(self, pause: float) -> float:
        """Wait, ask, follow to the end; gives the seconds to the first frame."""
        await asyncio.sleep(pause)
        began, first = time.perf_counter(), 0.0
        async with aclosing(self._call(self._functions.send, [{"text": QUESTION, "files": []}])) as messages:
            async for _ in messages:
                first = first or time.perf_counter() - began
        return first


@asynccontextmanager
async def users(url: str, count: int) -> AsyncGenerator[list[User]]:
    """Browsers that have the page open."""
    clients = [httpx.AsyncClient(base_url=url, headers={"Referer": url + "/"}, timeout=120) for _ in range(count)]
    try:
        await clients[0].get("/")
        functions = Functions.read((await clients[0].get("/config")).json())
        opened = [User(client, functions) for client in clients]
        for user in opened:
            await user.open()
        yield opened
    finally:
        for client in clients:
            await client.aclose()


async def measured(url: str, process: psutil.Process, count: int, apart: float) -> tuple[float, list[float]]:
    """Seconds of CPU for each reply, and the seconds to the first frames."""
    async with users(url, count) as opened:
        before = cpu(process)
        firsts = await asyncio.gather(*(user.whole(apart * at / count) for at, user in enumerate(opened)))
        return (cpu(process) - before) / count, list(firsts)


async def relayed(url: str, process: psutil.Process, count: int, apart: float) -> float:
    """Seconds of CPU for each reply of the relay."""
    asked = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=500)) as client:

        async def one(pause: float) -> None:
            await asyncio.sleep(pause)
            async with client.stream("POST", url, json=asked) as answer:
                async for _ in answer.aiter_lines():
                    pass

        before = cpu(process)
        await asyncio.gather(*(one(apart * at / count) for at in range(count)))
        return (cpu(process) - before) / count


def cpu(process: psutil.Process) -> float:
    """Seconds so far."""
    times = process.cpu_times()
    return times.user + times.system


def beside(model: ModelServer, count: int, apart: float) -> float:
    """The relay, in a process of its own, asked the same."""
    port = free_port()
    with subprocess.Popen([sys.executable, "-m", "bench.relay", model.base_url, str(port)], cwd=ROOT) as process:
        try:
            url, end = f"http://127.0.0.1:{port}/", time.monotonic() + 60
            while time.monotonic() < end:
                try:
                    httpx.get(url)
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            return asyncio.run(relayed(url, psutil.Process(process.pid), count, apart))
        finally:
            process.terminate()


def main() -> None:
    """Fifty users who ask within twenty seconds, a hundred, and so many that a hundred replies are written at once."""
    with TemporaryDirectory() as folder, ModelServer(long_reply) as model:
        app = AppProcess(Path(folder) / "home", model, SETTINGS).start()
        try:
            assert app.process is not None
            process = psutil.Process(app.process.pid)
            each, firsts = asyncio.run(measured(app.url, process, 50, APART))
            bare = beside(model, 50, APART)
            hundred, later = asyncio.run(measured(app.url, process, 100, APART))
            many, at_once = asyncio.run(measured(app.url, process, 200, APART))
        finally:
            app.stop()
    said = f"{WORDS} words; the bare relay {bare:.3f} s; first update p95 {late(firsts):.2f} s"
    report(
        [
            Figure("50 users, one reply each within 20 s: CPU for each reply", each, 0.2, "s", said),
            Figure("the same over a bare relay", each / bare, 9.0, "×", ""),
            Figure(
                "100 guests, one reply each within 20 s: CPU for each reply",
                hundred,
                0.27,
                "s",
                f"the first version 0.27 s, first update p95 0.61 s; now {late(later):.2f} s",
            ),
            Figure(
                "100 streams at once (200 users), first update p95",
                late(at_once),
                2.0,
                "s",
                f"{median(at_once)}; {many:.3f} s of CPU for each",
            ),
        ]
    )


def late(times: list[float]) -> float:
    """What nineteen of twenty do not exceed."""
    return sorted(times)[int(len(times) * 0.95) - 1]


def median(times: list[float]) -> str:
    """For a reader."""
    return f"median {statistics.median(times):.2f} s, worst {max(times):.2f} s"


if __name__ == "__main__":
    main()
