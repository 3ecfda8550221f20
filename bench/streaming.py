"""CPU of a long reply through `Assistant.run` against the bare `openai` client that iterates the same stream."""

from __future__ import annotations

import statistics
import time
from typing import Any

from openai import OpenAI

from bench.figures import Figure, alternate, ratio, report
from bench.peer import peer_seconds
from bench.service import model_cfg, service
from core import Assistant

QUESTION = [{"role": "user", "content": "Say much."}]


def measured(chunks: int, rounds: int, tools: list[str] | None = None, *, pace: float = 0.0) -> tuple[float, str]:
    """The ratio of CPU seconds, and all medians in words."""
    with service(chunks=chunks, pace=pace) as base_url:
        client = OpenAI(base_url=base_url, api_key="any")
        agent = Assistant(llm=model_cfg(base_url), function_list=tools)

        def theirs() -> float:
            began = time.process_time()
            text: list[str] = []
            stream = client.chat.completions.create(model="scripted", messages=QUESTION, stream=True)  # pyright: ignore[reportArgumentType, reportCallIssue]
            text.extend(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
            check("".join(text), chunks)
            return time.process_time() - began

        def ours() -> float:
            began = time.process_time()
            reply: Any = []
            for reply in agent.run(QUESTION):  # noqa: B007 - as a caller would: each snapshot is looked at
                pass
            check(reply[-1]["content"], chunks)
            return time.process_time() - began

        mine, bare = alternate(ours, theirs, rounds)
        peer = peer_seconds("streaming", base_url, tools=bool(tools)) if not pace else None
    said = f"{statistics.median(mine) * 1000:.0f} against {statistics.median(bare) * 1000:.0f} ms of CPU"
    return ratio(mine, bare), said + (f"; `qwen-agent` {peer * 1000:.0f} ms" if peer is not None else "")


def check(text: str, chunks: int) -> None:
    """Both sides must have read the whole reply."""
    if text.count("w") != chunks:
        raise RuntimeError(f"The reply has {text.count('w')} words, not {chunks}.")


def main() -> None:
    """8,000 and 24,000 chunks as fast as they come, 8,000 with a tool on offer, and some that come one by one.

    A tool on offer is in the prompt, and calls are looked for in the text. Chunks that come together are read together.
    """
    short, said_short = measured(8_000, 7)
    long, said_long = measured(24_000, 5)
    tool, said_tool = measured(8_000, 5, ["calculator"])
    paced, said_paced = measured(1_500, 3, pace=0.002)
    peer = "the bare `openai` client"
    report(
        [
            Figure("a reply of 8,000 chunks through `Assistant.run`, CPU", short, 0.5, "×", f"{peer}: {said_short}"),
            Figure("a reply of 24,000 chunks, CPU", long, 0.5, "×", f"{peer}: {said_long}"),
            Figure("the ratio at 24,000 over the one at 8,000", long / short, 1.2, "×", "noise is allowed a fifth"),
            Figure("8,000 chunks with one tool on offer, CPU", tool, 0.55, "×", f"{peer}: {said_tool}"),
            Figure("1,500 chunks that come one by one, CPU", paced, 1.0, "×", f"{peer}: {said_paced}"),
        ]
    )


if __name__ == "__main__":
    main()
