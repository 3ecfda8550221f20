"""What bringing in an export of 10,001 conversations costs: processor time, and how long others wait."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from bench.figures import Figure, report
from bench.search import sentences
from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.workspace.workspace import Workspace

OWNER: Final = "local"
CONVERSATIONS: Final = 10_001


def export(path: Path, count: int, chosen: random.Random, known: Sequence[str]) -> int:
    """Write an export as ChatGPT makes it, two to ten messages each; returns how many messages it has."""
    made: list[dict[str, Any]] = []
    messages = 0
    for number in range(count):
        mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
        above, at = "root", 1_600_000_000.0 + number * 60
        for turn in range(chosen.randrange(1, 6) * 2):
            is_reply, key = bool(turn % 2), f"n{turn}"
            text = " ".join(chosen.choices(known, k=chosen.randrange(3, 16) if is_reply else 1))
            message = {
                "author": {"role": "assistant" if is_reply else "user"},
                "create_time": at + turn,
                "content": {"content_type": "text", "parts": [text]},
                "metadata": {"model_slug": "gpt-4o"} if is_reply else {},
            }
            mapping[key] = {"id": key, "parent": above, "message": message}
            above, messages = key, messages + 1
        made.append({"title": chosen.choice(known)[:60], "create_time": at, "update_time": at + 9, "mapping": mapping})
        made[-1]["current_node"] = above
    path.write_text(json.dumps(made), "utf-8")
    return messages


async def waits(workspace: Workspace, over: asyncio.Event) -> float:
    """The longest wait of somebody else who writes meanwhile, in seconds."""
    longest = 0.0
    talk = (await workspace.conversations.create("Meanwhile")).id
    while not over.is_set():
        began = time.perf_counter()
        await workspace.conversations.rename(talk, str(began))
        longest = max(longest, time.perf_counter() - began)
        await asyncio.sleep(0.02)  # as often as a reply's pieces are stored
    return longest


async def measure(count: int = CONVERSATIONS) -> list[Figure]:
    """The figures."""
    chosen, known = random.Random(7), sentences()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.json"
        messages = await asyncio.to_thread(export, path, count, chosen, known)
        settings = Settings(home=Path(folder) / "home", code="off")  # type: ignore[call-arg]
        async with (
            Engine(settings, model=ScriptedModel("Yes.")) as engine,
            engine.workspaces.open(OWNER) as workspace,
        ):
            over = asyncio.Event()
            other = asyncio.create_task(waits(workspace, over))
            spent, began = time.process_time(), time.perf_counter()
            await workspace.taking.bring_in(path)
            spent, took = time.process_time() - spent, time.perf_counter() - began
            over.set()
            waited = await other
    said = f"{took:.1f} s by the clock; {messages:,} messages, {spent / messages * 1000:.2f} ms each"
    what = f"{count:,} conversations are brought in"
    return [
        Figure(f"{what}, CPU", spent, 60, "s", said),
        Figure(f"{what}, the longest wait of who writes meanwhile", waited, 1.0, "s"),
    ]


if __name__ == "__main__":
    report(asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else CONVERSATIONS)))
