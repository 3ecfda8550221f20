"""How much later the first token comes than with the bare client: one caller, and twenty at once."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import aclosing
from typing import Any

from openai import AsyncOpenAI

from bench.figures import Figure, report
from bench.service import model_cfg, service
from core import Assistant

QUESTION: list[Any] = [{"role": "user", "content": "Say something."}]
CALLERS = 20


async def ours(agent: Assistant) -> float:
    """Seconds to the first text of an agent's stream; the rest is read too."""
    began, first = time.perf_counter(), 0.0
    async with aclosing(agent.stream(QUESTION)) as events:
        async for event in events:
            if event.kind == "text_delta" and not first:
                first = time.perf_counter() - began
    return first


async def theirs(client: AsyncOpenAI) -> float:
    """The same with the bare client."""
    began, first = time.perf_counter(), 0.0
    stream = await client.chat.completions.create(model="scripted", messages=QUESTION, stream=True)
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content and not first:
            first = time.perf_counter() - began
    return first


async def alone(agent: Assistant, client: AsyncOpenAI, rounds: int = 60) -> Figure:
    """One caller, ours and theirs in turns."""
    pairs = [(await ours(agent), await theirs(client)) for _ in range(rounds)][10:]
    mine, bare = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
    return Figure("first token added by Parlour", mine - bare, 5.0, "ms", f"`openai`: {mine:.1f} against {bare:.1f} ms")


async def together(agent: Assistant, client: AsyncOpenAI, rounds: int = 9) -> Figure:
    """Twenty at once, ours and theirs in turns."""
    mine: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        mine.append(statistics.median(await asyncio.gather(*(ours(agent) for _ in range(CALLERS)))))
        bare.append(statistics.median(await asyncio.gather(*(theirs(client) for _ in range(CALLERS)))))
    left, right = statistics.median(mine[1:]), statistics.median(bare[1:])
    said = f"`openai`: median {left * 1000:.0f} against {right * 1000:.0f} ms"
    return Figure("20 streams at once, first token", left / right, 1.3, "×", said)


async def measured() -> list[Figure]:
    """Both, against one service."""
    with service(chunks=40, pace=0.002) as base_url:
        agent = Assistant(llm=model_cfg(base_url))
        async with AsyncOpenAI(base_url=base_url, api_key="any") as client:
            return [await alone(agent, client), await together(agent, client)]


if __name__ == "__main__":
    report(asyncio.run(measured()))
