"""A finished call of 4 KB, and then a second one that streams: what was read once is not read again."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

from bench.figures import Figure, report
from bench.peer import peer_seconds
from bench.service import model_cfg, service
from core import get_chat_model

QUESTION = [{"role": "user", "content": "Say much."}]
WEATHER: dict[str, Any] = {
    "name": "weather",
    "description": "The weather of a day.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": []},
}
FIRST, SECOND, PIECE = 4096, 1536, 5  # characters


def written(size: int) -> str:
    """A call whose argument has `size` characters."""
    return (
        "<tool_call>\n"
        + json.dumps({"name": "weather", "arguments": {"text": "rain " * (size // 5)}})
        + "\n</tool_call>"
    )


def main() -> None:
    """CPU of reading both, in pieces of five characters."""
    text = f"{written(FIRST)}\n{written(SECOND)}"
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    with service(script=[{"text": pieces} for _ in range(40)]) as base_url:
        model = get_chat_model({**model_cfg(base_url), "generate_cfg": {"fncall_prompt_type": "nous"}})
        times: list[float] = []
        for _ in range(7):
            began = time.process_time()
            reply: Any = []
            for reply in model.chat(QUESTION, functions=[WEATHER], stream=True):  # noqa: B007 - each snapshot is looked at
                pass
            times.append(time.process_time() - began)
            if [message["function_call"]["name"] for message in reply if message.get("function_call")] != [
                "weather"
            ] * 2:
                raise RuntimeError("The reply has not the two calls.")
        peer = peer_seconds("calls", base_url)
    said = f"{len(pieces)} chunks" + (f"; `qwen-agent` {peer:.2g} s" if peer is not None else "")
    report([Figure("a 4 KB call, then a second one that streams, CPU", statistics.median(times[1:]), 0.1, "s", said)])


if __name__ == "__main__":
    main()
