"""What files in an S3 store cost this process, beside those in a folder: put, read a range, open, sign.

The store is moto's server on 127.0.0.1, so its time says nothing; the processor's time of this process does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory

from bench.figures import Figure, report
from core.storage.blobs import FILES, Blobs, FolderBlobs, key_of
from core.storage.object_blobs import Bucket, ObjectBlobs

ROUNDS = 20
LARGE = 5_000_000
RANGE = 65_536
KEY = key_of("local", FILES, "large.bin")


@contextmanager
def store() -> Generator[str]:
    """A store with a bucket `parlour`; its address."""
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            with closing(socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise SystemExit("moto's server does not start; it comes with the development environment.")
            time.sleep(0.05)
        asked = HTTPConnection("127.0.0.1", port)
        asked.request("PUT", "/parlour")
        asked.getresponse().read()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


async def spent(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Milliseconds of the processor and of the clock for one time, after one that does not count."""
    await work()
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(ROUNDS):
        await work()
    return (time.process_time() - cpu) / ROUNDS * 1e3, (time.perf_counter() - began) / ROUNDS * 1e3


async def ranged(blobs: Blobs) -> int:
    """Read 64 kB out of the middle."""
    return sum([len(piece) async for piece in blobs.open(KEY, LARGE // 2, RANGE)])


async def opened(blobs: Blobs) -> int:
    """Have the file here; from the second time on a copy is."""
    async with blobs.local(KEY) as path:
        return path.stat().st_size


async def main() -> None:
    """Measure both."""
    data = os.urandom(LARGE)
    with TemporaryDirectory(prefix="parlour-bench-") as folder, store() as address:
        home = Path(folder)
        here = FolderBlobs({FILES: home / "files"})
        there = ObjectBlobs(
            Bucket("parlour", "bench", address, access_key="k", secret_key="s"), home / "copies", 64 * 2**20
        )
        figures: list[Figure] = []
        for what, work, goal in (
            ("put 5 MB", lambda blobs: blobs.put(KEY, data), 20.0),
            ("a range of 64 kB", ranged, 3.0),
            ("open as a file, a copy is here", opened, 2.0),
            ("sign an address", lambda blobs: blobs.sign(KEY, "large.bin"), 1.0),
        ):
            folder_cpu, folder_wall = await spent(lambda work=work: work(here))
            cpu, wall = await spent(lambda work=work: work(there))
            peer = f"a folder: {folder_cpu:.2f} ms, {folder_wall:.1f} ms on the clock; S3: {wall:.1f} ms on the clock"
            figures.append(Figure(f"files in S3: {what}, processor of this process", cpu, goal, "ms", peer))
        there.close()
    report(figures)


if __name__ == "__main__":
    asyncio.run(main())
