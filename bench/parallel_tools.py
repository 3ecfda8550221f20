"""Three tools of half a second each, called in one turn."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import Any

from bench.figures import Figure, report
from bench.service import model_cfg, service
from core import Assistant, tool

QUESTION: list[Any] = [{"role": "user", "content": "Call all three."}]
NAMES = ("first", "second", "third")


def half_a_second(name: str) -> Any:
    """A tool that blocks for half a second."""

    def work() -> str:
        time.sleep(0.5)
        return f"{name} is done"

    work.__name__ = name
    work.__doc__ = f"Does the {name} thing."
    return tool(work)


async def measured() -> float:
    """Seconds from the first tool's start to the last one's end."""
    with service(script=[{"calls": [{"name": name} for name in NAMES]}, {"text": "All three are done."}]) as base_url:
        agent = Assistant(llm=model_cfg(base_url), function_list=[half_a_second(name) for name in NAMES])
        times: list[float] = []
        finished = 0
        async with aclosing(agent.stream(QUESTION)) as events:
            async for event in events:
                if event.kind in {"tool_started", "tool_finished"}:
                    times.append(time.perf_counter())
                    finished += event.kind == "tool_finished"
        if finished != len(NAMES):
            raise RuntimeError(f"{finished} of {len(NAMES)} tools finished.")
        return times[-1] - times[0]


if __name__ == "__main__":
    report([Figure("three tools of 0.5 s in one turn", asyncio.run(measured()), 0.7, "s", "one after another: 1.5 s")])
