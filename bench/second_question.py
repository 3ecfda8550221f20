"""How soon the first word comes of a second question on the same document, against the first: a real model, in process.

`python -m bench.second_question [name]`: the first argument names other weights. Both questions are asked as the page
asks them, by an `Assistant` with a library; between them the model is asked for a title and for follow-up questions.
CPU seconds, since a machine that does something else tells nothing by the clock.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import aclosing

from bench.figures import Figure, report
from core import Assistant, Library
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.weights_catalog import SMALLEST
from core.messages.message import ASSISTANT, USER, Message, Usage

_PARTS = ("roof", "garage", "cellar", "garden", "kitchen", "stairs", "chimney", "balcony", "window", "door", "fence")
_OWNERS = ("Anna", "Bert", "Clara", "Doris", "Emil", "Fritz", "Gustav", "Heinz", "Ida", "Jakob", "Karl")
TEXT = "\n\n".join(
    f"# Section {n}\n\nThe {part} of the house is looked after by {owner}. It was built in {1900 + n}, cost "
    f"{n * 1000 + 7} euros, and must be painted every {n} years. Claims about the {part} are paid within {n + 10} days "
    "after the notice, unless the owner has not paid the premium."
    for n, (part, owner) in enumerate(zip(_PARTS, _OWNERS, strict=True), 1)
)
QUESTIONS = ("Who looks after the chimney?", "When was the garden built?", "How much did the door cost?")
BESIDE = ("Write a title of three words for a conversation about a house.", "Write three questions about a house.")
GOAL = 0.35


async def asked(agent: Assistant, messages: list[Message]) -> tuple[float, Usage, str]:
    """CPU seconds to the first word, what the model read and still knew of it, and the reply."""
    began, first, said, usage = time.process_time(), 0.0, "", Usage()
    async with aclosing(agent.stream(messages)) as events:
        async for event in events:
            if event.kind == "text_delta":
                first = first or time.process_time() - began
                said += event.text
            elif event.kind == "message_finished" and event.usage is not None:
                usage = event.usage
    return first or time.process_time() - began, usage, said


async def measured(name: str, *, small: bool) -> Figure:
    """The questions in one conversation, by a model that gets documents whole or the best passages of them."""
    generate = {"temperature": 0, "max_tokens": 24}
    model = LlamaCppModel({"model": name, "threads": 1, "small": small, "generate_cfg": generate})
    await model.prepare()
    try:
        with tempfile.TemporaryDirectory() as folder, Library.open(folder) as library:
            library.add_text(TEXT, name="house.md")
            agent = Assistant(["calculator"], model, library=library)
            messages: list[Message] = []
            turns: list[tuple[float, Usage]] = []
            for question in QUESTIONS:
                messages.append(Message(USER, question))
                seconds, usage, said = await asked(agent, messages)
                turns.append((seconds, usage))
                messages.append(Message(ASSISTANT, said))
                for beside in BESIDE:
                    await model.achat([Message(USER, beside)], extra_generate_cfg={"max_tokens": 8})
    finally:
        await model.aclose()
    (first, read), *later = turns
    share = max(seconds for seconds, _ in later) / first
    told = "; ".join(
        f"{usage.prompt_tokens - usage.cached_tokens} of {usage.prompt_tokens} tokens, {seconds:.1f} s"
        for seconds, usage in [(first, read), *later]
    )
    what = "the best passages of it" if small else "the whole document"
    # A small model gets other passages with each question, and they differ in length: little but who it is is known.
    goal = 1.2 if small else GOAL
    return Figure(f"{model.label}: first word of a later question, {what}", share, goal, "× the first", told)


async def main(arguments: Sequence[str]) -> None:
    """Measure one model both ways."""
    name = arguments[0] if arguments else SMALLEST
    report([await measured(name, small=small) for small in (False, True)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
