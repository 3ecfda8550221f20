"""What a call costs before it is sent: 200 messages with 50 tool calls, fitted, told of tools and written as JSON.

And counting tokens, which is most of that work where a conversation has to be shortened.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any

from bench.figures import Figure, report
from core.llm.base import BaseChatModel
from core.llm.tokens import QWEN, Counter
from core.llm.wire.openai import Senses, messages_json
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import Usage

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Stream

ROUNDS = 15
TOOL: dict[str, Any] = {
    "name": "search",
    "description": "Searches for what is asked.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}, "why": {"type": "string"}}},
}
ENGLISH = "The quick brown fox jumps over the lazy dog, and nobody minds. "
CHINESE = "今天天气真好，我们去公园玩吧，好不好呀？"


class Written(BaseChatModel):
    """Writes the request as it would be sent, and answers at once."""

    async def _stream(self, request: ChatRequest) -> Stream:
        yield MessageStarted()
        yield TextDelta(str(len(json.dumps(messages_json(request.messages, Senses(), request.lang)))))
        yield MessageFinished("stop", Usage(prompt_tokens=1, completion_tokens=1, total_tokens=2))


def history(round_: int) -> list[dict[str, Any]]:
    """50 turns of a question, a call of 0.75 kB, its result and an answer; each round has words of its own."""
    messages: list[dict[str, Any]] = []
    for turn in range(50):
        call_id = f"call_{turn}"
        arguments = json.dumps({"query": f"{round_}.{turn} {ENGLISH * 6}", "why": f"{turn} {ENGLISH * 5}"})
        call = {"name": "search", "arguments": arguments}
        messages += [
            {"role": "user", "content": f"Question {round_}.{turn}: {ENGLISH * 4}"},
            {"role": "assistant", "content": "", "function_call": call, "extra": {"function_id": call_id}},
            {"role": "function", "name": "search", "content": ENGLISH * 18, "extra": {"function_id": call_id}},
            {"role": "assistant", "content": f"Answer {round_}.{turn}: {ENGLISH * 14}"},
        ]
    return [*messages[:-1], {"role": "user", "content": "And now?"}]


def prepared(limit: int, *, native: bool = False, again: bool = False) -> tuple[float, int]:
    """Milliseconds of CPU for one call, the first one aside, and the bytes that it would send.

    Args:
        limit: `max_input_tokens`.
        native: Whether tools go through the service's own calling, else in the prompt.
        again: Whether each call asks the same with one message more, as an agent does, else of other things.
    """
    model = Written({"model": "qwen-max", "generate_cfg": {"max_input_tokens": limit}})
    model.native_calls = native
    times: list[float] = []
    sent = 0
    for round_ in range(ROUNDS + 1):
        messages = history(0 if again else round_)
        messages += [{"role": "user", "content": f"{round_} {ENGLISH * 4}"}] if again else []
        began = time.process_time()
        reply: Any = model.chat(messages, [TOOL], stream=False)
        times.append((time.process_time() - began) * 1000)
        sent = int(reply[0]["content"])
    return statistics.median(times[1:]), sent


def counting(text: str) -> float:
    """Seconds of CPU for a megabyte that was never counted before."""
    size = len(text.encode())
    times: list[float] = []
    for _ in range(5):
        counter = Counter(QWEN, exact=True)
        began = time.process_time()
        counter.count(text)
        times.append(time.process_time() - began)
    return statistics.median(times) / size * 1_000_000


def main() -> None:
    """Preparing where all fits and where it does not; counting English and Chinese."""
    whole, size = prepared(58_000)
    again, _ = prepared(58_000, again=True)
    native, _ = prepared(58_000, native=True)
    short, _ = prepared(4_000)
    what = "preparing a call over 200 messages with 50 tool calls"
    report(
        [
            Figure(what, whole, 10.0, "ms", f"{size // 1000} kB sent; `qwen-agent` 0.0.34: 194 ms"),
            Figure(f"{what}, the next one of a run", again, 10.0, "ms", "counts of messages are remembered"),
            Figure(f"{what}, the service's own calling", native, 10.0, "ms", "the same conversation"),
            Figure(f"{what}, cut to 4,000 tokens", short, 10.0, "ms", "every message counted; `qwen-agent`: 37 ms"),
            Figure("counting a megabyte of English", counting(ENGLISH * 16_000), 1.0, "s", "Qwen's vocabulary"),
            Figure("counting a megabyte of Chinese", counting(CHINESE * 18_000), 1.0, "s", "Qwen's vocabulary"),
        ]
    )


if __name__ == "__main__":
    main()
