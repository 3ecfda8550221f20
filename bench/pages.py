"""Fifty pages that ask at the same moment: how long until the last of them sees its reply begin.

It speaks to Gradio's queue over HTTP as the page's own script does, so that fifty browsers are not what is measured.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil

from bench.figures import Figure, report
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess

PAGES = 50
QUESTION = "count slowly"
FIRST_WORD = "word1"
API = "/gradio_api/queue/"


@dataclass(frozen=True, slots=True)
class Functions:
    """Gradio's numbers for what the page's script calls."""

    opened: int
    send: int

    @classmethod
    def read(cls, config: dict[str, Any]) -> Functions:
        """Find them in the page's configuration: by event, and by what comes after what."""
        dependencies = config["dependencies"]
        composer = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == "composer")

        def of(event: str, source: int | None = None) -> int:
            for item in dependencies:
                if any(name == event and source in (None, part) for part, name in item["targets"]):
                    return int(item["id"])
            raise LookupError(f"The page has no event {event!r}.")

        return cls(of("load"), of("submit", composer))


class RawPage:
    """One tab, as far as the queue sees it."""

    def __init__(self, client: httpx.AsyncClient, functions: Functions) -> None:
        self._client = client
        self._functions = functions
        self._session = secrets.token_hex(6)
        self._calls = defaultdict[str, asyncio.Queue[dict[str, Any] | None]](asyncio.Queue)
        self._under_way = set[str]()
        self.told: list[str] = []
        """What the page was told in short messages, such as why a question is refused."""
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Load the page: the server says what to show, and there is nothing to follow yet."""
        await self._client.get("/")
        async with aclosing(self._call(self._functions.opened, [])) as messages:
            async for _ in messages:
                pass

    async def ask(self) -> tuple[float, float]:
        """Send the question; gives the seconds to the first frame and to the first word of the reply."""
        began, first = time.perf_counter(), 0.0
        async with aclosing(self._call(self._functions.send, [{"text": QUESTION, "files": []}])) as messages:
            async for message in messages:
                now = time.perf_counter() - began
                first = first or now
                if FIRST_WORD in json.dumps(message):
                    return first, now
        raise RuntimeError("A page never saw the reply begin.")

    async def _call(self, number: int, data: list[Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Join the queue and yield each message that carries an output, until the call is over."""
        asked = {
            "fn_index": number,
            "data": data,
            "session_hash": self._session,
            "event_data": None,
            "trigger_id": None,
        }
        joined = await self._client.post(API + "join", json=asked)
        joined.raise_for_status()
        event = joined.json()["event_id"]
        came = self._calls[event]
        self._under_way.add(event)
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())
        try:
            while (message := await came.get()) is not None:
                yield message
                if message["msg"] == "process_completed":
                    return
            raise RuntimeError("The stream of a page ended before its call.")
        finally:
            self._under_way.discard(event)
            del self._calls[event]

    async def close(self) -> None:
        """Hang up."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        """Hand out what comes for the session, as a browser does: one stream for all its calls, read to its end."""
        address = f"{API}data?session_hash={self._session}"
        try:
            while self._under_way:
                async with self._client.stream("GET", address, timeout=60) as response:
                    async for line in response.aiter_lines():
                        message = json.loads(line.removeprefix("data:")) if line.startswith("data:") else {}
                        if message.get("success") is False:
                            raise RuntimeError(f"A handler failed: {line[:500]}")
                        if message.get("msg") == "log":
                            self.told.append(str(message.get("log")))
                        if message.get("msg") in {"process_generating", "process_completed"}:
                            self._calls[message["event_id"]].put_nowait(message)
        finally:
            for came in self._calls.values():
                came.put_nowait(None)


async def measured(address: str, process: psutil.Process) -> tuple[list[float], list[float], float]:
    """Seconds to the first frame and to the first word, for each of the pages, and seconds of the server's CPU."""
    url = address.partition("?")[0].rstrip("/")
    limits = httpx.Limits(max_connections=4 * PAGES, max_keepalive_connections=4 * PAGES)
    async with httpx.AsyncClient(base_url=url, limits=limits, headers={"Referer": url + "/"}, timeout=60) as client:
        await client.get(address, follow_redirects=True)
        functions = Functions.read((await client.get("/config")).json())
        pages = [RawPage(client, functions) for _ in range(PAGES)]
        for page in pages:
            await page.open()
        before = sum(process.cpu_times()[:2])
        times = await asyncio.gather(*(page.ask() for page in pages))
        spent = sum(process.cpu_times()[:2]) - before
        for page in pages:
            await page.close()
    return [first for first, _ in times], [word for _, word in times], spent


def main() -> None:
    """The worst of fifty."""
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        app = AppProcess(
            Path(folder) / "home", model, {"REPLIES_AT_ONCE": str(PAGES)}
        ).start()  # all pages are one owner's
        try:
            assert app.process is not None
            frames, words, spent = asyncio.run(measured(app.address, psutil.Process(app.process.pid)))
        finally:
            app.stop()
    said = (
        f"median {statistics.median(frames):.2f} s; first word at the latest after {max(words):.2f} s; "
        f"{spent:.2f} s of the server's CPU until then"
    )
    report([Figure("50 pages ask at once, worst first update", max(frames), 1.0, "s", said)])


if __name__ == "__main__":
    main()
