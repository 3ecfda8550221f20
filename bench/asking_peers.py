"""What a reply costs beside pydantic-ai, openai-agents and smolagents, over one scripted server in one run.

`BENCH_PEERS=FOLDER python -m bench.asking_peers` takes the environments of that folder as `bench.beside` does. Each
side runs in a process of its own and speaks OpenAI's protocol to the server, which is in this process; only the CPU of
the side's process counts, in rounds that take turns. Without the folder ours alone is measured, for what it leaks.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.figures import Figure, report
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request

ROOT: Final = Path(__file__).resolve().parent.parent
CALLS, ROUNDS, WORDS, LEAKS = 10, 3, 200, 2000
BILL: Final = '{"name": "tea", "total": 4.5, "paid": true}'
LONG: Final = " ".join(f"word{number}" for number in range(WORDS))
MEASURED: Final = """
import resource, sys, time
def timed(way, calls):
    way()
    began = time.process_time()
    for _ in range(calls):
        way()
    print((time.process_time() - began) * 1000 / calls, flush=True)
def serve(ways):
    for line in sys.stdin:
        name, calls = line.split()
        timed(ways[name], int(calls))
"""
TYPE: Final = """
from pydantic import BaseModel
class Bill(BaseModel):
    name: str
    total: float
    paid: bool
"""
SIDES: Final = {
    "parlour": """
import asyncio, gc, os, tracemalloc
from core import BasicAgent
agent = BasicAgent(llm={"model": "scripted", "base_url": os.environ["OPENAI_BASE_URL"], "api_key": "any"})
async def follow():
    async for event in agent.events("Say something long."):
        pass
loop = asyncio.new_event_loop()
def leak():
    for _ in range(int(os.environ["LEAKS"])):
        agent.ask("Say something.")
    gc.collect()
ways = {
    "ask": lambda: agent.ask("Say something."),
    "stream": lambda: loop.run_until_complete(follow()),
    "typed": lambda: agent.ask("A bill, please.", output_type=Bill),
}
def held():
    gc.collect()
    return len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
""",
    "pydantic-ai": """
import asyncio
from pydantic_ai import Agent, NativeOutput
agent = Agent("openai-chat:scripted")
typed = Agent("openai-chat:scripted", output_type=NativeOutput(Bill))
async def follow():
    async with agent.run_stream("Say something long.") as result:
        async for text in result.stream_text(delta=True, debounce_by=None):
            pass
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
ways = {
    "ask": lambda: agent.run_sync("Say something."),
    "stream": lambda: loop.run_until_complete(follow()),
    "typed": lambda: typed.run_sync("A bill, please."),
}
""",
    "openai-agents": """
import agents, asyncio
from agents import Agent, Runner
agents.set_default_openai_api("chat_completions")
agents.set_tracing_disabled(True)
agent = Agent(name="a", model="scripted")
typed = Agent(name="b", model="scripted", output_type=Bill)
async def follow():
    async for event in Runner.run_streamed(agent, "Say something long.").stream_events():
        pass
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
ways = {
    "ask": lambda: Runner.run_sync(agent, "Say something."),
    "stream": lambda: loop.run_until_complete(follow()),
    "typed": lambda: Runner.run_sync(typed, "A bill, please."),
}
""",
    "smolagents": """
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent
model = OpenAIModel("scripted")
agent = ToolCallingAgent(tools=[], model=model, verbosity_level=LogLevel.OFF)
ways = {"ask": lambda: agent.run("Say something with final_answer.")}
""",
}
IMPORTS: Final = {
    "parlour": "from core import Assistant",
    "pydantic-ai": "from pydantic_ai import Agent",
    "openai-agents": "from agents import Agent",
    "smolagents": "from smolagents import ToolCallingAgent",
}


def answer(request: Request) -> Reply:
    """What the server says: a call for smolagents, which wants one; a bill; or a text."""
    asked = str(request["messages"][-1])
    if "final_answer" in asked:
        return Reply(calls=[("final_answer", {"answer": "So."})])
    if "bill" in asked:
        return Reply(text=BILL)
    return Reply(text=LONG if "long" in asked else "It is so.")


class Side:
    """One side, in a process that runs what it is told and says what that cost.

    Args:
        name: Whose.
        python: Its interpreter.
        address: Of the server.
    """

    def __init__(self, name: str, python: Path, address: str) -> None:
        here = {**os.environ, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "any", "PYTHONPATH": str(ROOT)}
        code = MEASURED + TYPE + SIDES[name] + "\nserve(ways)\n"
        pipe = subprocess.PIPE
        self.name, self.ways = name, [way for way in ("ask", "stream", "typed") if f'"{way}":' in SIDES[name]]
        self._process = subprocess.Popen([python, "-c", code], stdin=pipe, stdout=pipe, text=True, env=here)

    def milliseconds(self, way: str, calls: int = CALLS) -> float:
        """CPU of its process for each of some replies."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("The process has no pipes.")
        self._process.stdin.write(f"{way} {calls}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=30)


def replies(folder: Path | None) -> list[Figure]:
    """CPU of a reply: plain, streamed in 200 words, and typed."""
    found: dict[tuple[str, str], list[float]] = {}
    with ModelServer(answer) as server:
        names = [name for name in SIDES if name == "parlour" or folder is not None]
        sides = [Side(name, _python(name, folder), server.base_url) for name in names]
        for _ in range(ROUNDS):
            for side in sides:
                for way in side.ways:
                    found.setdefault((way, side.name), []).append(side.milliseconds(way))
        for side in sides:
            side.close()
    said = {"ask": "a reply over HTTP", "stream": f"one of {WORDS} words, streamed", "typed": "one with a type"}
    figures: list[Figure] = []
    for way, what in said.items():
        cost = {name: statistics.median(found[way, name]) for name in SIDES if (way, name) in found}
        theirs = [value for name, value in cost.items() if name != "parlour"]
        beside = "; ".join(f"{name} {value:.2f} ms" for name, value in cost.items() if name != "parlour")
        figures.append(Figure(f"{what}, CPU", cost["parlour"], min(theirs, default=10.0), "ms", beside))
    return figures


def imports(folder: Path) -> list[Figure]:
    """CPU of importing an agent, and the size of what an installation brings."""
    cost: dict[str, float] = {}
    for name, line in IMPORTS.items():
        code = f"import time; began = time.process_time(); {line}; print(time.process_time() - began)"
        command = [_python(name, folder), "-c", code]
        ran = [subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT) for _ in range(3)]
        cost[name] = statistics.median(float(one.stdout) for one in ran)
    beside = "; ".join(f"{name} {value:.2f} s" for name, value in cost.items() if name != "parlour")
    least = min(value for name, value in cost.items() if name != "parlour")
    figures = [Figure("importing an agent, CPU", cost["parlour"], least, "s", beside)]
    sizes = {name: _megabytes(folder / name) for name in IMPORTS if (folder / name).is_dir()}
    if "parlour" in sizes:
        beside = "; ".join(f"{name} {value:.0f}" for name, value in sizes.items() if name != "parlour")
        goal = min(value for name, value in sizes.items() if name != "parlour")
        figures.append(Figure("what `pip install` brings, MB", sizes["parlour"], goal, "", f"{beside}; pip left out"))
    return figures


def leaks() -> Figure:
    """What two thousand replies leave behind, in objects."""
    code = MEASURED + TYPE + SIDES["parlour"] + "\nfor _ in range(50): ways['ask']()\nbefore = held()\nleak()\n"
    code += "after = held()\nprint(after[0] - before[0], (after[1] - before[1]) / 1024)\n"
    with ModelServer(answer) as server:
        here = {**os.environ, "OPENAI_BASE_URL": server.base_url, "LEAKS": str(LEAKS), "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=here)
    objects, megabytes = map(float, done.stdout.split())
    beside = f"the most memory grew by {megabytes:.1f} MB"
    return Figure(f"objects left by {LEAKS} replies, for each", objects / LEAKS, 0.1, "", beside)


def _python(name: str, folder: Path | None) -> Path:
    return Path(sys.executable) if name == "parlour" or folder is None else folder / name / "bin" / "python"


def _megabytes(environment: Path) -> float:
    """The packages of an environment, without pip and setuptools."""
    home = next((environment / "lib").glob("python*")) / "site-packages"
    kept = [path for path in home.iterdir() if not path.name.startswith(("pip", "setuptools", "_distutils_hack"))]
    files = [file for path in kept for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc") / 1e6


def main() -> None:
    """All of it."""
    given = os.environ.get("BENCH_PEERS")
    folder = Path(given) if given else None
    report([*replies(folder), *(imports(folder) if folder else []), leaks()])


if __name__ == "__main__":
    main()
