"""Twenty threads, each with a question of its own: the first token through `Assistant.run` and the bare client."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from openai import OpenAI

from bench.figures import Figure, report
from bench.service import model_cfg, service
from core import Assistant

QUESTION: list[Any] = [{"role": "user", "content": "Say something."}]
THREADS = 20


def main() -> None:
    """Medians of nine rounds, ours and theirs in turns."""
    with service(chunks=60, pace=0.01) as base_url, ThreadPoolExecutor(THREADS) as threads:
        agent = Assistant(llm=model_cfg(base_url))
        client = OpenAI(base_url=base_url, api_key="any")

        def ours() -> float:
            began, first = time.perf_counter(), 0.0
            for reply in agent.run(QUESTION):
                if reply and reply[-1]["content"] and not first:
                    first = time.perf_counter() - began
            return first

        def theirs() -> float:
            began, first = time.perf_counter(), 0.0
            for chunk in client.chat.completions.create(model="scripted", messages=QUESTION, stream=True):
                if chunk.choices and chunk.choices[0].delta.content and not first:
                    first = time.perf_counter() - began
            return first

        def together(one: Callable[[], float]) -> float:
            start = Barrier(THREADS)

            def begin() -> float:
                start.wait()
                return one()

            return statistics.median([ended.result() for ended in [threads.submit(begin) for _ in range(THREADS)]])

        pairs = [(together(ours), together(theirs)) for _ in range(9)][1:]
    mine, bare = (statistics.median(side) for side in zip(*pairs, strict=True))
    said = f"the bare client: median {mine * 1000:.0f} against {bare * 1000:.0f} ms"
    report([Figure("20 threads, first token", mine / bare, 1.2, "×", said)])


if __name__ == "__main__":
    main()
