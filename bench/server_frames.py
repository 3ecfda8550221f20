"""What a frame of a streaming reply costs the server in a conversation of 5,000 messages, against one of 40."""

from __future__ import annotations

import asyncio
import statistics
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from bench.figures import Figure, report
from bench.load import cpu
from bench.pages import QUESTION, Functions, RawPage
from bench.seeding import seed
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess

SHORT, LONG = 40, 5_000
ROUNDS = 3
BEGUN, ENDING = 8, 8  # frames at the beginning and the end in which more than frames is made


class Measured(RawPage):
    """A tab that follows a reply, and sees what its frames take."""

    async def each(self, process: psutil.Process) -> float:
        """Milliseconds of the server's CPU for each frame, once the reply is under way."""
        async with aclosing(self._call(self._functions.send, [{"text": QUESTION, "files": []}])) as messages:
            spent = [cpu(process) async for _ in messages]
        first, last = BEGUN, len(spent) - ENDING
        return (spent[last] - spent[first]) / (last - first) * 1000


async def measured(app: AppProcess, conversation: str) -> float:
    """One tab of a conversation that asks and follows."""
    assert app.process is not None
    url = app.url
    headers = {"Referer": f"{url}/?c={conversation}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
        await client.get(app.address, follow_redirects=True)
        page = Measured(client, Functions.read((await client.get("/config")).json()))
        await page.open()
        return await page.each(psutil.Process(app.process.pid))


def main() -> None:
    """Both lengths in turns."""
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        home = Path(folder) / "home"
        conversations = {length: seed(home / "parlour.db", length) for length in (SHORT, LONG)}
        app = AppProcess(home, model).start()
        try:
            asyncio.run(measured(app, conversations[SHORT]))  # warm
            taken: dict[int, list[float]] = {length: [] for length in conversations}
            for _ in range(ROUNDS):
                for length, conversation in conversations.items():
                    taken[length].append(asyncio.run(measured(app, conversation)))
        finally:
            app.stop()
    short, long = (statistics.median(taken[length]) for length in (SHORT, LONG))
    said = f"{long:.2f} against {short:.2f} ms of the server's CPU"
    what = f"a frame at {LONG:,} messages over one at {SHORT}, the server's CPU"
    report([Figure(what, long / short, 1.1, "×", said)])


if __name__ == "__main__":
    main()
