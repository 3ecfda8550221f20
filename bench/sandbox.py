"""How soon Python is ready for the code interpreter: locked in, cold and warm, against the bare kernel."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import zmq.asyncio

from bench.figures import Figure, report
from core.tools.sandbox.kernel import Channels
from core.tools.sandbox.kernels import Kernels
from core.tools.sandbox.self_test import Choice

ROUNDS = 5


def started(connection: Path) -> subprocess.Popen[bytes]:
    """A kernel as Jupyter starts it."""
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", str(connection)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def bare(folder: Path) -> float:
    """Seconds until a kernel without any sandbox has answered `1 + 1`."""
    context = zmq.asyncio.Context()
    channels = Channels(context, folder)
    connection = folder / "connection.json"
    connection.write_text(channels.connection(folder), encoding="utf-8")
    began = time.perf_counter()
    process = started(connection)
    try:
        channels.open()
        await channels.ready()
        async for _ in channels.execute("1 + 1"):
            pass
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        channels.close()
        context.term()


async def cold(driver: str, known: Path) -> float:
    """The same locked in, from the call of the tool on; the self-test was done before."""
    kernels = Kernels(wanted=driver, known=known, ahead=False)
    await kernels.chosen()
    try:
        began = time.perf_counter()
        await kernels.run("any", "1 + 1")
        return time.perf_counter() - began
    finally:
        await kernels.aclose()


async def warm(driver: str, known: Path) -> float:
    """The same with a kernel from the warm pool."""
    kernels = Kernels(wanted=driver, known=known)
    await kernels.chosen()
    try:
        kernels.warm()
        await kernels.warmed()
        began = time.perf_counter()
        await kernels.run("any", "1 + 1")
        return time.perf_counter() - began
    finally:
        await kernels.aclose()


async def tried(driver: str, known: Path) -> tuple[Choice, float]:
    """What the self-test says, and how long it took."""
    kernels = Kernels(wanted=driver, known=known)
    began = time.perf_counter()
    try:
        return await kernels.chosen(), time.perf_counter() - began
    finally:
        await kernels.aclose()


async def measured() -> list[Figure]:
    """Both drivers against the bare kernel, in turns."""
    figures: list[Figure] = []
    with TemporaryDirectory() as folder:
        for driver in ("bubblewrap", "landlock"):
            known = Path(folder) / driver
            choice, seconds = await tried(driver, known)
            print(f"   {choice.reason}; the self-test took {seconds:.2f} s")
            if not choice.driver:
                continue
            colds, warms, bares = list[float](), list[float](), list[float]()
            for number in range(ROUNDS):
                place = Path(folder) / f"{driver}-{number}"
                place.mkdir(mode=0o700)
                bares.append(await bare(place))
                colds.append(await cold(driver, known))
                warms.append(await warm(driver, known))
            own = statistics.median(bares)
            beside = f"bare ipykernel {own:.2f} s, {statistics.median(colds) / own:.2f} × it"
            figures.append(Figure(f"a kernel in {driver}, cold", statistics.median(colds), 3.0, "s", beside))
            figures.append(
                Figure(f"a kernel in {driver}, warm", statistics.median(warms), 0.2, "s", f"the same {own:.2f} s")
            )
    return figures


def main() -> None:
    """All figures."""
    report(asyncio.run(measured()))


if __name__ == "__main__":
    main()
