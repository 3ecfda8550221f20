"""A life: Parlour's engine in a process of its own, told what to do on one pipe, telling what it did on another."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.kills.checking import Checking
from bench.kills.kinds import Doing
from core.engine import Engine
from core.llm.request import ChatRequest
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.toolbox.toolbox import OwnerTools
from core.tools.base import BaseTool

_TAG = re.compile(r"\[([0-9a-f]{16})\]")


_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Note(BaseTool):
    """Adds a line to a file that outlives the process: each call must leave one at most."""

    name = "write_note"
    description = "Writes a note."
    parameters = _TEXT
    writes = True
    idempotent = False

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def call(self, params: str | dict[str, Any], **_: Any) -> str:
        """Write the note."""
        text = self._verify_json_format_args(params)["text"]
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"{text}\n".encode())
        os.close(file)
        await asyncio.sleep(0.03)
        return f"written: {text}"


def answer(request: ChatRequest) -> Reply:
    """What the model says to a question, by its words."""
    last = request.messages[-1]
    asked = next(one.get_text_content() for one in reversed(request.messages) if one.role == "user")
    tag = (_TAG.findall(asked) or ["none"])[-1]
    if last.role == "function":
        return Reply(text=f"Done with {tag}.", pace=0.003)
    if "Use the tool" in asked:
        return Reply(calls=[("write_note", {"text": tag})], pace=0.003)
    if "stream" in asked:
        return Reply(text=f"About {tag}: " + "word " * (20 if "little" in asked else 150), pace=0.008)
    return Reply(text=f"This is about {tag}.", pace=0.002)


async def _live(home: Path, commands: int, tell: Callable[[dict[str, Any]], None], retrieval: str) -> None:
    calls = home.parent / f"{home.name}.calls"

    async def tools(_self: OwnerTools, _talk: str, **_: Any) -> list[BaseTool]:
        return [Note(calls)]

    OwnerTools.for_model = tools  # pyright: ignore[reportAttributeAccessIssue] - everybody has the one tool
    settings = Settings.load(home=home, retrieval=retrieval, check_claims=False, code="off")
    reader = asyncio.StreamReader(limit=1 << 28)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(commands, "rb"))
    async with Engine(settings, model=ScriptedModel(answer)) as engine:
        tell({"up": True})
        work: asyncio.Task[None] | None = None
        while line := await reader.readline():
            command: dict[str, Any] = json.loads(line)
            if command["do"] == "check":
                tell({"checked": await Checking(engine, home, command["known"], calls).all()})
            elif command["do"] == "end":
                break
            else:
                doing = Doing(
                    engine, lambda what, one, of=None: tell({"ack": what, "id": one, "of": of}), command["seed"]
                )
                work = asyncio.create_task(doing.go_on(command["do"]))
                work.add_done_callback(lambda done: tell({"failed": repr(done.exception())}))
        if work is not None:
            work.cancel()
    tell({"ended": True})


def live(home: Path, commands: int, told: int, retrieval: str) -> None:
    """Live until somebody kills the process, or the pipe of commands ends."""

    def tell(what: dict[str, Any]) -> None:
        os.write(told, json.dumps(what).encode() + b"\n")

    try:
        asyncio.run(_live(home, commands, tell, retrieval))
    except BaseException as error:
        tell({"failed": repr(error)})
        raise
