"""Calls of an MCP server over standard input and output, beside the bare client of the SDK and the peer."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from bench.figures import Figure, report
from core import FnCallAgent, MCPClient
from core.bridge.sync import run
from core.mcp.servers import Servers
from core.mcp.settings import ServerSettings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

SERVER = Path(__file__).with_name("mcp_server.py")
COMMAND: dict[str, Any] = {"command": sys.executable, "args": [str(SERVER)]}
CALLS, ROUNDS = 300, 5
THREADS, EACH = 16, 25
STARTS = (0.2, 0.4, 0.6, 0.8, 1.0)  # seconds that five servers take to start

PEER = """
import json, sys, time
from qwen_agent.tools.mcp_manager import MCPManager
tools = MCPManager().initConfig({"mcpServers": {"bench": {"command": sys.argv[1], "args": [sys.argv[2]]}}})
tool = tools[0]
tool.call("{}")
began = time.process_time()
for _ in range(300):
    tool.call("{}")
cpu = (time.process_time() - began) / 300
began = time.perf_counter()
for _ in range(3):
    tool.call(json.dumps({"seconds": 0.5}))
print("SECONDS", cpu, time.perf_counter() - began, flush=True)
import os
os._exit(0)
"""


async def ours() -> float:
    """CPU milliseconds of the client for a call."""
    async with MCPClient("bench", COMMAND) as client:
        await client.call("wait")
        began = time.process_time()
        for _ in range(CALLS):
            await client.call("wait")
        return (time.process_time() - began) / CALLS * 1000


async def bare() -> float:
    """The same with the SDK's client alone."""
    async with Client(StdioServerParameters(**COMMAND)) as client:
        await client.call_tool("wait", {})
        began = time.process_time()
        for _ in range(CALLS):
            await client.call_tool("wait", {})
        return (time.process_time() - began) / CALLS * 1000


def from_threads() -> tuple[int, float]:
    """Errors and seconds of 400 calls from 16 threads."""
    client = MCPClient("bench", COMMAND)
    run(client.connect())
    errors: list[Exception] = []

    def work() -> None:
        for _ in range(EACH):
            try:
                if run(client.call("wait")).text != "done":
                    raise RuntimeError("a wrong answer")
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    run(client.aclose())
    return len(errors), seconds


async def three_at_once() -> float:
    """Seconds of three calls of half a second in one turn of an agent, over one server."""
    async with MCPClient("bench", COMMAND) as client:
        calls = [("bench-wait", {"seconds": 0.5})] * 3
        agent = FnCallAgent(list(client.tools), ScriptedModel(Reply(calls=calls), "Done."))
        times = [
            time.perf_counter()
            async for event in agent.stream([{"role": "user", "content": "Wait."}])
            if event.kind in {"tool_started", "tool_finished"}
        ]
        return times[-1] - times[0]


async def connected(*seconds: float) -> float:
    """Seconds until servers that take so long to start are all there."""
    servers = Servers()
    wanted = [
        servers.of("bench").server(str(number), ServerSettings(command=sys.executable, args=(str(SERVER), str(one))))
        for number, one in enumerate(seconds)
    ]
    began = time.perf_counter()
    tools = await servers.tools_of(wanted)
    took = time.perf_counter() - began
    await servers.aclose()
    if len(tools) != len(seconds):
        raise RuntimeError(f"{len(tools)} of {len(seconds)} servers answered.")
    return took


def peer() -> tuple[float, float] | None:
    """CPU milliseconds for a call and seconds for three of half a second; `None` where the peer is not there."""
    python = os.environ.get("BENCH_PEER_PYTHON")
    if not python:
        return None
    command = [python, "-c", PEER, sys.executable, str(SERVER)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        sys.stderr.write("The peer did not end within 60 seconds.\n")
        return None
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("SECONDS")]
    if not said:
        sys.stderr.write(f"The peer failed: {done.stderr[-500:]}\n")
        return None
    return float(said[-1][0]) * 1000, float(said[-1][1])


async def measured() -> list[Figure]:
    """All figures but the one of threads."""
    pairs = [(await ours(), await bare()) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    waited = statistics.median([await three_at_once() for _ in range(3)])
    slowest, together = [], []
    for _ in range(3):
        slowest.append(await connected(max(STARTS)))
        together.append(await connected(*STARTS))
    alone, all_five = statistics.median(slowest), statistics.median(together)
    said = await asyncio.to_thread(peer)
    beside = f"; qwen-agent {said[0]:.2f} ms" if said else ""
    in_turn = f"qwen-agent {said[1]:.2f} s" if said else "one after another: 1.5 s"
    return [
        Figure("MCP call over stdio, CPU of the client", mine, 1.0, "ms", f"bare client {theirs:.2f} ms{beside}"),
        Figure("three MCP calls of 0.5 s over one server", waited, 0.6, "s", in_turn),
        Figure(
            "five MCP servers connecting, against the slowest alone",
            all_five / alone,
            1.3,
            "×",
            f"{all_five:.2f} s / {alone:.2f} s; one after another {sum(STARTS):.1f} s",
        ),
    ]


if __name__ == "__main__":
    wrong, took = from_threads()
    threads = Figure("400 MCP calls from 16 threads, errors", wrong, 0, "", f"in {took:.2f} s")
    report([*asyncio.run(measured()), threads])
