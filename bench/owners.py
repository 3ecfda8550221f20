"""Many people at one house: another's first word while documents get vectors and a scan is recognised, and visitors."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import threading
import time
from contextlib import aclosing
from pathlib import Path

import psutil
import pymupdf

from bench.figures import Figure, report
from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of, world_of

READERS = 16
VISITORS = 60
CHATS = 25
PAGES = 12
READS = 4.0  # seconds of CPU
PARAGRAPH = "{owner} keeps note {n}: bicycles stand in the shed, the bell rings at {n} past nine, and nobody minds. "


async def first_word(engine: Engine, owner: str) -> float:
    """Seconds from sending a plain question to the first text of its reply; the rest is waited for too."""
    talk = await engine.stores.of(owner).conversations.create()
    began, first = time.perf_counter(), 0.0
    run = await talk_of(engine, owner, talk.id).ask("hi")
    async with aclosing(run.log.follow()) as news:
        async for _ in news:
            if run.reply().text:
                first = time.perf_counter() - began
                break
    await run.wait()
    return first


async def chats(engine: Engine, name: str) -> list[float]:
    """The first words of one chat after another, each by somebody new."""
    return [await first_word(engine, f"{name} {number}") for number in range(CHATS)]


async def reads(engine: Engine, owner: str) -> None:
    """Give an owner a document of some hundred passages, and ask about it."""
    text = "\n\n".join(PARAGRAPH.format(owner=owner, n=n) * 6 for n in range(150))
    file = await engine.stores.of(owner).files.put("notes.md", text.encode())
    talk = await engine.stores.of(owner).conversations.create()
    await (await talk_of(engine, owner, talk.id).ask("When does the bell ring?", [file.id])).wait()


def scanned() -> bytes:
    """A PDF of dense pages that are pictures: each takes some seconds to recognise."""
    made = pymupdf.open()
    for page in range(PAGES):
        text = "".join(PARAGRAPH.format(owner="somebody", n=page * 100 + line) for line in range(30))
        with pymupdf.open() as drawn:
            drawn.new_page().insert_textbox((50, 50, 545, 800), text)
            picture = drawn[0].get_pixmap(dpi=200).tobytes("jpeg")
        made.new_page().insert_image((0, 0, 595, 842), stream=picture)
    return bytes(made.tobytes())


async def beside_a_scan(engine: Engine) -> tuple[list[float], bool]:
    """The first words while a scan is recognised, and whether it still was after them."""
    owner, ours = "scanner", psutil.Process()
    file = await engine.stores.of(owner).files.put("scan.pdf", scanned())
    talk = talk_of(engine, owner, (await engine.stores.of(owner).conversations.create()).id)
    run = await talk.ask("When does the bell ring?", [file.id])
    # A process that has computed for longer than a start takes is recognising.
    while max((sum(one.cpu_times()[:2]) for one in ours.children(recursive=True)), default=0.0) < READS:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.2)
    found = await chats(engine, "beside a scan")
    goes_on = not run.reply().text
    await talk.stop()
    await run.wait()
    return found, goes_on


async def visits(engine: Engine) -> tuple[float, float]:
    """Descriptors and threads that stay of each visitor who only chats."""
    process = psutil.Process()
    for number in range(2 * VISITORS):  # then all that they share is open, also what begins seconds later
        await first_word(engine, f"early {number}")
    before, threads = process.num_fds(), threading.active_count()
    for number in range(VISITORS):
        await first_word(engine, f"visitor {number}")
    return (process.num_fds() - before) / VISITORS, (threading.active_count() - threads) / VISITORS


async def measured(home: Path) -> list[Figure]:
    """Visitors first, then plain chats alone, then beside those whose documents are made into vectors."""
    async with Engine(Settings(home=home), model=ScriptedModel("Hello there.")) as engine:
        descriptors, threads = await visits(engine)
        alone = await chats(engine, "alone")
        owners = [f"reader {number}" for number in range(READERS)]
        await asyncio.gather(*(reads(engine, owner) for owner in owners))
        beside = await chats(engine, "beside")
        waiting = sum(bool(world_of(engine, owner).intake.preparing()) for owner in owners)
        seen, goes_on = await beside_a_scan(engine)
        mine, bare = statistics.median(beside), statistics.median(alone)
        told = f"{waiting} of {READERS} still being made; {mine * 1000:.0f} against {bare * 1000:.0f} ms alone"
        told += f", at most {max(beside) * 1000:.0f} against {max(alone) * 1000:.0f} ms"
        what = f"first word of a chat while the documents of {READERS} others are made into vectors"
        read = statistics.median(seen)
        scan = f"{'still' if goes_on else 'no longer'} recognised after it; "
        scan += f"{read * 1000:.0f} against {bare * 1000:.0f} ms alone, at most {max(seen) * 1000:.0f} ms"
        return [
            Figure(what, mine / bare, 3.0, "×", told),
            Figure("first word of a chat while a scan of another is recognised", read / bare, 2.0, "×", scan),
            Figure("descriptors that stay of a visitor who only chats", descriptors, 0.1, "", f"{VISITORS} visitors"),
            Figure("threads that stay of a visitor who only chats", threads, 0.1, "", f"{VISITORS} visitors"),
        ]


def main() -> None:
    """In a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report(asyncio.run(measured(Path(folder))))


if __name__ == "__main__":
    main()
