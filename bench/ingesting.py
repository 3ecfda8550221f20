"""What taking many documents in costs, and who waits for it: the queue, the ledger, vectors by a service.

`parlour ingest` reads by the queue that reads what comes by the page, so the first figure is what that queue, the rows
and the ledger cost beside a library that is given the same files by a loop.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pymupdf

from bench.figures import Figure, report
from core.engine import Engine
from core.ingesting.ingestion import Told, Wanted, ingest
from core.rag.embedding.service import ServiceEmbedder
from core.rag.library import Library
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import libraries_of, world_of

FILES = 40
WORKERS = 2
ROUNDS = 2
QUEUED = 1_000
PASSAGES = 1_000
LATENCY = 0.02  # seconds that the service takes for a request
TEXT = "Note {n}: the green lamp number {n} stands beside door {n}, and its bulb was changed in week {n}. "


def made(folder: Path, count: int) -> list[Path]:
    """Small documents, every second one a PDF of two pages."""
    folder.mkdir(parents=True)
    paths: list[Path] = []
    for n in range(count):
        path = folder / f"note {n}.{'pdf' if n % 2 else 'md'}"
        if n % 2:
            document: Any = pymupdf.open()
            for page in range(2):
                text = TEXT.format(n=n) * 8 + f"Page {page}."
                document.new_page().insert_textbox((40, 40, 500, 780), text, fontsize=10)
            path.write_bytes(document.tobytes())
        else:
            path.write_text(f"# Note {n}\n\n" + TEXT.format(n=n) * 12)
        paths.append(path)
    return paths


def spent(work: Callable[[], object]) -> float:
    """Seconds of the processor, those of processes that were waited for included."""

    def now() -> float:
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))

    began = now()
    work()
    return now() - began


def in_process(paths: list[Path]) -> None:
    """A loop over a library."""
    with (
        tempfile.TemporaryDirectory(prefix="parlour-bench-") as home,
        Library.open(home) as library,
        ThreadPoolExecutor(WORKERS) as threads,
    ):
        list(threads.map(library.add, paths))


def by_the_queue(folder: Path) -> None:
    """`parlour ingest`."""
    with tempfile.TemporaryDirectory(prefix="parlour-bench-") as home:
        settings = Settings.load(home=Path(home) / "home", retrieval="keyword")
        wanted = Wanted(str(folder), "Notes", LOCAL_OWNER, workers=WORKERS)
        tally, _ = asyncio.run(ingest(settings, wanted, Told(lambda *_: None, lambda: None)))
        assert tally.read == FILES, tally


def cost(home: Path) -> Figure:
    """What the queue costs beside the loop."""
    paths = made(home / "files", FILES)
    queue, loop = [list[float](), list[float]()]
    for _ in range(ROUNDS):
        loop.append(spent(lambda: in_process(paths)))
        queue.append(spent(lambda: by_the_queue(home / "files")))
    ours, theirs = statistics.median(queue), statistics.median(loop)
    told = f"{ours / FILES * 1000:.0f} against {theirs / FILES * 1000:.0f} ms of the processor for a file"
    what = f"{FILES} small files by `parlour ingest`, beside a loop over a library"
    return Figure(what, ours / theirs, 1.3, "×", told)


async def behind(home: Path) -> Figure:
    """A small owner's document behind a thousand of somebody else's."""
    async with Engine(Settings.load(home=home, retrieval="keyword"), model=ScriptedModel()) as engine:
        many, one = libraries_of(engine, "alice"), libraries_of(engine, "bob")
        shelf = await many.create("Many")
        for n in range(QUEUED):
            await many.add(shelf.id, f"# Note {n}\n\n{TEXT.format(n=n) * 8}".encode(), f"note {n}.md")
        waiting = sum(job.record.owner_id == "alice" for job in engine.intake.jobs.values())
        began = time.perf_counter()
        record = await one.add((await one.create("One")).id, b"# Mine\n\nThe red lamp is mine.", "mine.md")
        record = await world_of(engine, "bob").intake.wait_for_end(record.id)
        seconds = time.perf_counter() - began
        assert record.status == "ready", record
    told = f"{waiting} documents of the other owner waited or were read"
    return Figure(f"a document behind {QUEUED:,} of another owner's, until a search finds it", seconds, 10.0, "s", told)


def service() -> ThreadingHTTPServer:
    """A service of vectors that takes a while for each request, and does several at the same time."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
            time.sleep(LATENCY)
            data = [{"index": at, "embedding": [0.5] * 384} for at in range(len(texts))]
            raw = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None: ...

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    return running


def vectors() -> Figure:
    """Vectors by a service, several requests at once, beside one request after another."""
    running = service()
    cfg = {"model": "m", "base_url": f"http://127.0.0.1:{running.server_port}/v1", "batch_size": 32}
    texts = [TEXT.format(n=n) * 2 for n in range(PASSAGES)]
    seconds: list[float] = []
    for at_once in (4, 1):
        embedder = ServiceEmbedder({**cfg, "at_once": at_once})
        began = time.perf_counter()
        for at in range(0, PASSAGES, embedder.at_once):
            embedder.passages(texts[at : at + embedder.at_once])
        seconds.append(time.perf_counter() - began)
        embedder.close()
    running.shutdown()
    running.server_close()
    told = f"{seconds[0]:.2f} against {seconds[1]:.2f} s for {PASSAGES:,} passages, {LATENCY * 1000:.0f} ms a request"
    return Figure("vectors by a service, four requests at once beside one", seconds[0] / seconds[1], 0.7, "×", told)


def main() -> None:
    """Measure all three."""
    with tempfile.TemporaryDirectory(prefix="parlour-bench-") as folder:
        home = Path(folder)
        figures = [cost(home / "cost"), asyncio.run(behind(home / "behind")), vectors()]
    report(figures)


if __name__ == "__main__":
    sys.exit(main())
