"""Twenty people a second sign in while replies are written: what the replies notice, and how long each waits."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx
import psutil

from bench.figures import Figure, report
from bench.load import cpu, late, long_reply
from bench.pages import QUESTION, Functions, RawPage
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess

READERS: Final = 10
EACH_SECOND: Final = 20
SETTINGS: Final = {
    "HOST": "0.0.0.0",
    "ACCOUNTS": "accounts",
    "RETRIEVAL": "keyword",
    "CODE": "off",
    "TRUSTED_PROXIES": "127.0.0.1",  # so that each comes from an address of their own: of one, 30 are tried at once
}
PASSWORD: Final = "a sentence that nobody guesses"
LINK: Final = re.compile(r"/link/([\w-]+)")


@dataclass
class Noticed:
    """What the readers of replies noticed, and those who signed in meanwhile."""

    firsts: list[float] = field(default_factory=list[float])
    gaps: list[float] = field(default_factory=list[float])
    whole: list[float] = field(default_factory=list[float])
    signed_in: list[float] = field(default_factory=list[float])
    put_off: int = 0
    cpu: float = 0.0


class Reader(RawPage):
    """A page of somebody who has signed in."""

    async def read(self, noticed: Noticed) -> None:
        """Ask, and follow the reply to its end."""
        began = last = time.perf_counter()
        gaps: list[float] = []
        async with aclosing(self._call(self._functions.send, [{"text": QUESTION, "files": []}])) as messages:
            async for _ in messages:
                now = time.perf_counter()
                gaps.append(now - last)
                last = now
        noticed.firsts.append(gaps[0])
        noticed.gaps.append(max(gaps[1:]))
        noticed.whole.append(last - began)


def browser(url: str) -> httpx.AsyncClient:
    """One that names its origin as browsers do."""
    headers = {"Referer": f"{url}/", "Origin": url}
    # What it would trust is never asked, and takes 25 ms to read: the client shall not be what is measured.
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=300, verify=False)


async def people(url: str, first: str) -> list[httpx.AsyncClient]:
    """Those who read, each signed in: the owner, and whom she invites."""
    clients = [browser(url) for _ in range(READERS)]
    link = first
    for number, client in enumerate(clients):
        form = {"name": f"Reader {number}", "password": PASSWORD}
        assert (await client.post(f"/link/{link}", data=form)).status_code == 303
        invited = await clients[0].post("/people/invite", data={"role": "member"})
        link = LINK.findall(invited.text)[0]
    return clients


async def sign_ins(url: str, noticed: Noticed, over: asyncio.Event) -> None:
    """Twenty a second, whether those before have come in or not, until the replies are over."""

    async def one(number: int) -> None:
        began = time.perf_counter()
        async with browser(url) as client:
            form = {"name": f"reader {number % READERS}", "password": PASSWORD}
            seen = {"x-forwarded-for": f"203.0.113.{number % 250}"}
            answer = await client.post("/sign-in", data=form, headers=seen)
        if answer.status_code == 303:
            noticed.signed_in.append(time.perf_counter() - began)
        else:
            noticed.put_off += 1

    async with asyncio.TaskGroup() as group:
        number = 0
        while not over.is_set():
            group.create_task(one(number))
            number += 1
            await asyncio.sleep(1 / EACH_SECOND)


async def replies(url: str, clients: list[httpx.AsyncClient], process: psutil.Process, *, beside: bool) -> Noticed:
    """Ten replies of ten seconds each, written at once; beside sign-ins or alone."""
    noticed, over = Noticed(), asyncio.Event()
    functions = Functions.read((await clients[0].get("/config")).json())
    pages = [Reader(client, functions) for client in clients]
    for page in pages:
        await page.open()
    before = cpu(process)
    coming = asyncio.create_task(sign_ins(url, noticed, over)) if beside else None
    await asyncio.gather(*(page.read(noticed) for page in pages))
    noticed.cpu = cpu(process) - before
    over.set()
    if coming is not None:
        await coming
    for page in pages:
        await page.close()
    return noticed


async def measured(url: str, first: str, process: psutil.Process) -> tuple[Noticed, Noticed]:
    """Alone, and beside sign-ins."""
    clients = await people(url, first)
    alone = await replies(url, clients, process, beside=False)
    beside = await replies(url, clients, process, beside=True)
    for client in clients:
        await client.aclose()
    return alone, beside


def main() -> None:
    """Measure and print."""
    with TemporaryDirectory() as folder, ModelServer(long_reply) as model:
        app = AppProcess(Path(folder) / "home", model, SETTINGS).start()
        try:
            assert app.process is not None
            first = LINK.findall(app.log.read_text("utf-8"))[0]
            url = f"http://127.0.0.1:{app.port}"
            alone, beside = asyncio.run(measured(url, first, psutil.Process(app.process.pid)))
        finally:
            app.stop()
    took, usual = statistics.median(beside.whole), statistics.median(alone.whole)
    said = (
        f"10 replies at once; first update alone {late(alone.firsts):.2f} s, beside {late(beside.firsts):.2f} s; "
        f"{alone.cpu:.1f} and {beside.cpu:.1f} s of CPU"
    )
    came = len(beside.signed_in)
    waited = (
        f"{came} came in, {came / max(beside.signed_in):.1f} a second, {beside.put_off} were asked to come again; "
        f"p95 {late(beside.signed_in):.1f} s"
    )
    report(
        [
            Figure(
                "first update of a reply beside 20 sign-ins a second ÷ alone",
                late(beside.firsts) / late(alone.firsts),
                2.0,
                "×",
                said,
            ),
            Figure(
                "longest gap in a reply beside 20 sign-ins a second",
                max(beside.gaps),
                1.0,
                "s",
                f"alone {max(alone.gaps):.2f} s",
            ),
            Figure(
                "a whole reply beside 20 sign-ins a second ÷ alone",
                took / usual,
                1.2,
                "×",
                f"{took:.1f} against {usual:.1f} s, medians",
            ),
            Figure("signing in among 20 a second, median", statistics.median(beside.signed_in), 30.0, "s", waited),
        ]
    )


if __name__ == "__main__":
    main()
