"""The first word in a conversation of 5,000 messages, with a model whose every summary takes ten seconds."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from bench.figures import Figure, report
from bench.seeding import seed
from core.engine import Engine
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request
from tests.core.talks import talk_of

MESSAGES = 5_000
SUMMARY_SECONDS = 10.0
ROUNDS = 5
LAST = "Which bell rings last of all?"


def answering(request: Request) -> Reply:
    """At once where it is asked the question; a summary takes its time."""
    if request["messages"][-1]["content"] == LAST:
        return Reply(text="The bell of the harbour.")
    return Reply(text="They spoke of points and tables.", delay=SUMMARY_SECONDS)


async def first_word(engine: Engine, conversation_id: str) -> float:
    """Seconds from sending the question to the first text of its reply; the rest is waited for, too."""
    began, first = time.perf_counter(), 0.0
    run = await talk_of(engine, LOCAL_OWNER, conversation_id).ask(LAST)
    async with aclosing(run.log.follow()) as news:
        async for _ in news:
            if run.reply().text:
                first = time.perf_counter() - began
                break
    await run.wait()
    return first


async def measured(home: Path, model: ModelServer, conversations: dict[int, str]) -> list[Figure]:
    """Rounds in which the long and the short conversation take turns."""
    settings = Settings(home=home, model="a", base_url=model.base_url, api_key="k")  # pyright: ignore[reportArgumentType]
    async with Engine(settings) as engine:
        times: dict[int, list[float]] = {length: [] for length in conversations}
        for _ in range(ROUNDS):
            for length, conversation_id in conversations.items():
                times[length].append(await first_word(engine, conversation_id))
        short, long = (statistics.median(times[length]) for length in sorted(times))
        told = f"median {long:.2f} s against {short:.2f} s, at most {max(times[MESSAGES]):.2f} s"
        what = f"first word in a conversation of {MESSAGES:,} messages"
        return [Figure(what, max(times[MESSAGES]), 5.0, "s", told)]


def main() -> None:
    """In a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, ModelServer(answering) as model:
        home = Path(folder)
        conversations = {length: seed(home / "parlour.db", length) for length in (2, MESSAGES)}
        report(asyncio.run(measured(home, model, conversations)))


if __name__ == "__main__":
    main()
