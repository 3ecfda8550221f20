"""CPU of a long reply through `qwen_dashscope` against the bare `dashscope` SDK that iterates the same stream."""

from __future__ import annotations

import statistics
import time
from typing import Any

import dashscope

from bench.figures import Figure, alternate, ratio, report
from bench.service import service
from bench.streaming import QUESTION, check
from core import Assistant


def measured(chunks: int, rounds: int, *, tool: bool = False) -> tuple[float, str]:
    """The ratio of CPU seconds, and both medians in words; with a tool, it stands in the prompt."""
    with service(chunks=chunks) as base_url:
        address = base_url.removesuffix("/v1") + "/api/v1"
        dashscope.base_http_api_url = address
        llm: dict[str, Any] = {
            "model": "qwen-max",
            "model_type": "qwen_dashscope",
            "base_http_api_url": address,
            "api_key": "any",
        }
        if tool:
            llm["generate_cfg"] = {"fncall_prompt_type": "nous"}
        agent = Assistant(llm=llm, function_list=["calculator"] if tool else None)

        def theirs() -> float:
            began = time.process_time()
            text: list[str] = []
            stream: Any = dashscope.Generation.call(  # pyright: ignore[reportUnknownMemberType]
                model="qwen-max",
                messages=QUESTION,  # pyright: ignore[reportArgumentType]
                api_key="any",
                stream=True,
                incremental_output=True,
                result_format="message",
            )
            text.extend(chunk.output.choices[0].message.content or "" for chunk in stream)
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
    said = f"{statistics.median(mine) * 1000:.0f} against {statistics.median(bare) * 1000:.0f} ms of CPU"
    return ratio(mine, bare), said


def main() -> None:
    """8,000 and 24,000 chunks."""
    short, said_short = measured(8_000, 7)
    with_tool, said_tool = measured(8_000, 7, tool=True)
    long, said_long = measured(24_000, 5)
    peer = "the bare `dashscope` SDK"
    report(
        [
            Figure(
                "8,000 chunks of DashScope's through `Assistant.run`, CPU", short, 0.5, "×", f"{peer}: {said_short}"
            ),
            Figure(
                "8,000 chunks of DashScope's, a tool in the prompt, CPU", with_tool, 0.55, "×", f"{peer}: {said_tool}"
            ),
            Figure("24,000 chunks of DashScope's, CPU", long, 0.5, "×", f"{peer}: {said_long}"),
            Figure("the ratio at 24,000 over the one at 8,000", long / short, 1.2, "×", "noise is allowed a fifth"),
        ]
    )


if __name__ == "__main__":
    main()
