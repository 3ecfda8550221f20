"""How soon the first word of the page's four starters comes from the built-in model, just after a start.

    python -m bench.starters [name of weights]

Each is asked as the page asks it, by an `Assistant` with the tools and the sample that go with it, of a model that was
just loaded and has read ahead as it does after a start (`Assistants.read_ahead`). CPU seconds, since a machine that
does something else tells nothing by the clock; beside them stands how many tokens were read and written until then.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, report
from core import Assistant
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.weights_catalog import DEFAULT
from core.messages.message import USER, Message
from core.workspace.assistants import Assistants
from webui.words import Words

SAMPLES = Path(__file__).parents[1] / "assets" / "samples"
TOOLS = ("calculator", "current_time")
# Tokens read until the first word before models read ahead, and before a small model was given fewer passages: the
# goal is half of them.
BEFORE = {1: 575, 2: 490, 3: 480, 4: 403}


class First(NamedTuple):
    """The way to a first word.

    Args:
        seconds: Of CPU.
        read: Tokens that were read; what was known of a prompt is not counted.
        written: Tokens that were written before: calls of tools.
    """

    seconds: float
    read: int
    written: int


async def asked(name: str, number: int) -> First:
    """One starter, to the end of the call that says its first word."""
    said, sample = (Words("en")(f"starter.{number}.{part}") for part in ("text", "with"))
    model = LlamaCppModel({"model": name, "threads": 1, "generate_cfg": {"temperature": 0, "max_tokens": 60}})
    await model.prepare()
    try:
        await Assistants(8).read_ahead(model)
        agent = Assistant(list(TOOLS), model, files=[str(SAMPLES / sample)] if "." in sample else None)
        began, first, read, written, call = time.process_time(), 0.0, 0, 0, 0
        async with aclosing(agent.stream([Message(USER, said)])) as events:
            async for event in events:
                if event.kind == "text_delta":
                    first = first or time.process_time() - began
                elif event.kind == "message_finished" and event.usage is not None:
                    read += event.usage.prompt_tokens - event.usage.cached_tokens
                    written += call
                    call = event.usage.completion_tokens
                    if first:
                        break
        return First(first, read, written)
    finally:
        await model.aclose()


async def main(name: str) -> None:
    """All four of them."""
    figures: list[Figure] = []
    for number, before in BEFORE.items():
        one = await asked(name, number)
        what = f"{Words('en')(f'starter.{number}.verb')}: tokens read until the first word"
        told = f"before: {before}; {one.written} written for a call; {one.seconds:.1f} s of CPU"
        figures.append(Figure(what, one.read, before / 2, "", told))
    report(figures)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else DEFAULT))
