"""What `/v1/chat/completions` adds to a service that is asked directly: to the first token, and of the server's CPU."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil
from openai import AsyncOpenAI

from bench.figures import Figure, report
from bench.load import cpu
from bench.service import service
from tests.e2e.app_process import AppProcess

QUESTION: list[Any] = [{"role": "user", "content": "Say something."}]
MANY, PACED = 8_000, 1_500
ROUNDS = 60
STREAMS = 5


def opened(home: Path, base_url: str) -> tuple[AppProcess, str]:
    """Parlour in a process of its own, and a key."""
    settings = {"BASE_URL": base_url, "MODEL": "scripted", "API_KEY": "any", "HOME": str(home)}
    app = AppProcess(home, None, settings).start()
    command = [sys.executable, "-m", "webui", "keys", "create", "bench", "--home", str(home)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return app, said.split()[-1]


async def first(client: AsyncOpenAI, model: str) -> float:
    """Seconds to the first word; the rest is read too."""
    began, came = time.perf_counter(), 0.0
    stream = await client.chat.completions.create(model=model, messages=QUESTION, stream=True)
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content and not came:
            came = time.perf_counter() - began
    return came


async def added(base_url: str, app: AppProcess, key: str) -> Figure:
    """Both in turns."""
    async with (
        AsyncOpenAI(base_url=base_url, api_key="any") as direct,
        AsyncOpenAI(base_url=f"{app.url}/v1", api_key=key) as through,
    ):
        pairs = [(await first(through, "installed"), await first(direct, "scripted")) for _ in range(ROUNDS)][10:]
    ours, bare = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
    said = f"the bare `openai` client: {ours:.1f} ms through Parlour against {bare:.1f} ms directly"
    return Figure("first token of a chat completion, added", ours - bare, 3.0, "ms", said)


async def of_server(app: AppProcess, key: str) -> float:
    """Seconds of the server's CPU for a stream that is read and not looked at."""
    assert app.process is not None
    process = psutil.Process(app.process.pid)
    before = cpu(process)
    body = {"model": "installed", "messages": QUESTION, "stream": True}
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(timeout=120) as client,
        client.stream("POST", f"{app.url}/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        async for _ in answer.aiter_raw():
            pass
    return cpu(process) - before


async def of_client(base_url: str) -> float:
    """Seconds of the bare client's CPU for the same."""
    async with AsyncOpenAI(base_url=base_url, api_key="any") as client:
        before = time.process_time()
        await first(client, "scripted")
        return time.process_time() - before


async def per_chunk(base_url: str, app: AppProcess, key: str, chunks: int, how: str) -> Figure:
    """Both in turns, after one round of each that does not count."""
    pairs = [(await of_server(app, key), await of_client(base_url)) for _ in range(STREAMS + 1)][1:]
    ours, bare = (statistics.median(side) / chunks * 1e6 for side in zip(*pairs, strict=True))
    said = f"the bare `openai` client: {ours:.1f} µs of the server against {bare:.1f} µs"
    return Figure(f"a chat completion of {chunks:,} chunks{how}, CPU a chunk", ours / bare, 0.3, "×", said)


def measured() -> list[Figure]:
    """Each against a service of its own."""
    found: list[Figure] = []
    for chunks, pace in ((40, 0.002), (MANY, 0.0), (PACED, 0.002)):
        with TemporaryDirectory() as folder, service(chunks=chunks, pace=pace) as base_url:
            app, key = opened(Path(folder) / "home", base_url)
            try:
                if chunks == 40:
                    found.append(asyncio.run(added(base_url, app, key)))
                else:
                    how = " that come one by one" if pace else ""
                    found.append(asyncio.run(per_chunk(base_url, app, key, chunks, how)))
            finally:
                app.stop()
    return found


if __name__ == "__main__":
    report(measured())
