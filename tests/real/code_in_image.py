"""Runs a cell as the code interpreter does, and prints as JSON which sandbox held and what the cell met."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from core.tools.sandbox.kernels import Kernels

CELL = """
import os, socket
import matplotlib.pyplot as plt, numpy
print(os.getuid(), numpy.ones(3).sum())
tries = {at: lambda at=at: open(at, "w") for at in ("/app/x", "/data/x", "/etc/x", "/tmp/x")}
tries |= {at: lambda at=at: os.listdir(at) for at in ("/data", "/app/core")}
tries["the net"] = lambda: socket.create_connection(("127.0.0.1", 7860), 5)
tries["another process"] = lambda: os.kill(1, 0)
for name, attempt in tries.items():
    try:
        print(name, "was let", attempt())
    except OSError as error:
        print(name, error.strerror)
open("kept.txt", "w").write("kept")
plt.plot([1, 2])
plt.show()
"""


async def main() -> None:
    """Look for a sandbox that holds, run the cell in it, and print."""
    about = Path("/proc/self/status").read_text("utf-8").splitlines()
    rights = [line for line in about if line.startswith(("CapEff", "NoNewPrivs", "Uid"))]
    kernels = Kernels(private=(Path("/data"),), ahead=False)
    choice = await kernels.chosen()
    try:
        made = await kernels.run("a conversation", CELL)
    finally:
        await kernels.aclose()
    told = {"rights": sorted(rights), "driver": choice.driver, "reason": choice.reason, "text": made.text}
    told |= {"failed": made.failed, "pictures": [one.media_type for one in made.pictures]}
    told |= {"files": [one.name for one in made.files]}
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main())
