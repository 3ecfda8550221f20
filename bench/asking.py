"""What `ask` and typed output cost beside `run_nonstream`, and how often a small model's answer fits its type.

`python -m bench.asking` measures CPU of the whole process over a scripted model. `python -m bench.asking NAME` asks
built-in weights of that name for fifty types instead, once each and without sending anything back. With
`BENCH_PYDANTIC_AI`, the interpreter of an environment that has `pydantic-ai-slim`, that is timed in turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from bench.figures import Figure, report
from core import BasicAgent, Message, OutputError
from core.llm.backends.llama_cpp import LlamaCppModel
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.testing.scripted_model import ScriptedModel

CALLS, ROUNDS = 300, 5
TEXT = '{"name": "tea", "total": 4.5, "paid": true}'
SAID = [MessageStarted(), TextDelta(TEXT), MessageFinished("stop")]
PEER = f"""
import statistics, time
from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

class Bill(BaseModel):
    name: str
    total: float
    paid: bool

said = lambda messages, info: ModelResponse(parts=[TextPart({TEXT!r})])
agents = [Agent(FunctionModel(said)), Agent(FunctionModel(said), output_type=PromptedOutput(Bill))]
for agent in agents:
    agent.run_sync("Say something.")
    rounds = []
    for _ in range({ROUNDS}):
        times = []
        for _ in range({CALLS}):
            began = time.process_time()
            agent.run_sync("Say something.")
            times.append((time.process_time() - began) * 1000)
        rounds.append(statistics.median(times))
    print(statistics.median(rounds))
"""


class Bill(BaseModel):
    """What the script says."""

    name: str
    total: float
    paid: bool


def medians(asks: list[Callable[[], object]]) -> list[float]:
    """Milliseconds of CPU of each, in turns: the median of the rounds' medians."""
    found: list[list[float]] = [[] for _ in asks]
    for ask in asks:
        ask()
    for _ in range(ROUNDS):
        for place, ask in enumerate(asks):
            times: list[float] = []
            for _ in range(CALLS):
                began = time.process_time()
                ask()
                times.append((time.process_time() - began) * 1000)
            found[place].append(statistics.median(times))
    return [statistics.median(rounds) for rounds in found]


def costs() -> list[Figure]:
    """`ask`, and with a type, against `run_nonstream`."""
    agent = BasicAgent(llm=ScriptedModel(SAID))
    question = [Message("user", "Say something.")]
    plain, asked, typed = medians(
        [
            lambda: agent.run_nonstream(question),
            lambda: agent.ask("Say something."),
            lambda: agent.ask("Say something.", output_type=Bill),
        ]
    )
    theirs = ["", ""]
    if python := os.environ.get("BENCH_PYDANTIC_AI"):
        told = subprocess.run([python, "-c", PEER], capture_output=True, text=True, check=True).stdout.split()
        theirs = [f"; `pydantic-ai` {float(one):.2f} ms" for one in told]
    beside = f"`run_nonstream` {plain:.2f} ms"
    return [
        Figure("a reply by `ask`, CPU", asked, 1, "ms", beside + theirs[0]),
        Figure("a reply by `ask` with `output_type`, CPU", typed, 2, "ms", beside + theirs[1]),
    ]


KINDS: list[tuple[str, Any]] = [
    ("name", str),
    ("count", int),
    ("price", float),
    ("is_new", bool),
    ("colour", Literal["red", "green", "blue"]),
    ("tags", list[str]),
    ("sizes", list[int]),
    ("note", str | None),
    ("score", Literal[1, 2, 3]),
    ("parts", dict[str, int]),
]
THINGS = ("a bicycle", "a pot of tea", "the town of Ulm", "a heron", "an old book")


def fifty() -> list[tuple[str, type[BaseModel]]]:
    """Fifty questions with their types: two to six fields, every third has a nested one or a list of them."""
    made: list[tuple[str, type[BaseModel]]] = []
    for number in range(50):
        chosen = [KINDS[(number * 3 + step * 7) % len(KINDS)] for step in range(2 + number % 5)]
        fields: dict[str, Any] = {name: (kind, Field(description=f"The {name} of it.")) for name, kind in chosen}
        if number % 3 == 0:
            inner = create_model(f"Maker{number}", name=(str, ...), since=(int, ...))
            fields["makers" if number % 5 == 0 else "maker"] = (list[inner] if number % 5 == 0 else inner, ...)
        made.append(
            (f"Describe {THINGS[number % len(THINGS)]}. Keep it short.", create_model(f"Thing{number}", **fields))
        )
    return made


def validity(name: str) -> list[Figure]:
    """The share of fifty answers of built-in weights that are of their type, at the first try."""
    model = LlamaCppModel({"model": name, "generate_cfg": {"temperature": 0, "max_tokens": 400}})
    agent, good, began, wrong = BasicAgent(llm=model), 0, time.process_time(), list[str]()
    for question, kind in fifty():
        try:
            agent.ask(question, output_type=kind, output_retries=0)
            good += 1
        except OutputError as error:
            wrong.append(f"{kind.__name__}: {error.problems} {error.text[-60:]!r}")
    sys.stderr.write("\n".join(wrong) + "\n")
    said = f"{good} of 50 types at the first try, {(time.process_time() - began) / 50:.1f} s of CPU each"
    return [Figure(f"answers of {name} that are of their type", good / 50, 0.98, "", said, at_least=True)]


if __name__ == "__main__":
    report(validity(sys.argv[1]) if len(sys.argv) > 1 else costs())
