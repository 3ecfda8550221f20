"""What an agent itself costs: a model call without tools, over a long conversation, and fifty agents at once.

The model plays a script in this process, so that neither a socket nor a service is in the figures. CPU is that of the
whole process (`time.process_time`), threads of tools included.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

from bench.figures import Figure, report
from bench.peer import peer_seconds
from bench.preparing import history
from core import Assistant, tool
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

ROUNDS = 5
CALLS = 40  # of which one round takes the median
AT_ONCE = 50
WORDS = 40  # of an answer
QUESTION: list[Any] = [{"role": "user", "content": "Say something."}]
SHORT = [MessageStarted(), TextDelta("Something."), MessageFinished("stop")]


def per_call(messages: list[Any]) -> list[float]:
    """Milliseconds of CPU of a whole `Assistant.run_nonstream`, as the median of each round."""
    agent = Assistant(llm=ScriptedModel(SHORT))
    agent.run_nonstream(messages)
    rounds: list[float] = []
    for _ in range(ROUNDS):
        times: list[float] = []
        for _ in range(CALLS):
            began = time.process_time()
            reply = agent.run_nonstream(messages)
            times.append((time.process_time() - began) * 1000)
            if reply[-1]["content"] != "Something.":
                raise RuntimeError("The reply is not the script's.")
        rounds.append(statistics.median(times))
    return rounds


def peer_call(messages: list[Any]) -> str:
    """The same through the peer, in words; empty where it is not there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages.json"
        path.write_text(json.dumps(messages), encoding="utf-8")
        peer = peer_seconds("agents", "", messages=str(path), rounds=ROUNDS * CALLS)
    return f"; `qwen-agent` {peer * 1000:.3g} ms" if peer is not None else ""


def three_tools() -> list[Any]:
    """Tools that do next to nothing: what is measured is what is around them."""

    def double(number: int) -> str:
        """Doubles a number."""
        return str(number * 2)

    def halve(number: int) -> str:
        """Halves a number."""
        return str(number / 2)

    def negate(number: int) -> str:
        """Negates a number."""
        return str(-number)

    return [tool(double), tool(halve), tool(negate)]


def fresh_agent() -> Assistant:
    """One that calls its three tools at the same time, and then answers."""
    calls = [(name, {"number": 4}) for name in ("double", "halve", "negate")]
    return Assistant(llm=ScriptedModel(Reply(calls=calls), Reply(text="word " * WORDS)), function_list=three_tools())


async def _told(agent: Assistant) -> int:
    """How many events a reply has, as its reader counts them."""
    seen = results = 0
    async with aclosing(agent.stream(QUESTION)) as events:
        async for event in events:
            seen += 1
            results += event.kind == "tool_finished"
    if results != 3:
        raise RuntimeError(f"{results} of 3 tools finished.")
    return seen


async def _per_event(at_once: int) -> float:
    """Microseconds of CPU for each event of fifty replies, so many of them at a time."""
    agents = [fresh_agent() for _ in range(AT_ONCE)]
    began, seen = time.process_time(), 0
    for start in range(0, AT_ONCE, at_once):
        seen += sum(await asyncio.gather(*(_told(agent) for agent in agents[start : start + at_once])))
    return (time.process_time() - began) / seen * 1e6


def together() -> tuple[list[float], list[float]]:
    """All at once, and one after the other, in turns; the first of each does not count."""
    pairs = [(asyncio.run(_per_event(AT_ONCE)), asyncio.run(_per_event(1))) for _ in range(ROUNDS + 1)]
    return [pair[0] for pair in pairs[1:]], [pair[1] for pair in pairs[1:]]


def spread(rounds: list[float], digits: int = 2) -> str:
    """The least and the most of some rounds."""
    return f"{min(rounds):.{digits}f} to {max(rounds):.{digits}f}"


def main() -> None:
    """A short conversation, one of 200 messages, fifty agents."""
    short, long = per_call(QUESTION), per_call(history(0))
    many, single = together()
    pairs = [at_once / alone for at_once, alone in zip(many, single, strict=True)]
    told = f"{statistics.median(many):.0f} against {statistics.median(single):.0f} µs; {spread(pairs)} ×"
    report(
        [
            Figure(
                "a model call through `Assistant`, no tool, scripted model in process, CPU",
                statistics.median(short),
                1.0,
                "ms",
                f"{spread(short)} ms{peer_call(QUESTION)}",
            ),
            Figure(
                "the same over a history of 200 messages, 50 of them calls, CPU",
                statistics.median(long),
                10.0,
                "ms",
                f"{spread(long)} ms{peer_call(history(0))}",
            ),
            Figure(
                f"{AT_ONCE} agents at once, three tools each: CPU for each event over that of one after the other",
                statistics.median(pairs),
                1.1,
                "×",
                f"{told}; events as the reader of the replies counts them, threads of the tools included; "
                "noise is allowed a tenth",
            ),
        ]
    )


if __name__ == "__main__":
    main()
