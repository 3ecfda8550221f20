"""The table of back ends, gathered from every `rows_*.py` in this folder.

To put a back end under the contract, add a file `rows_<family>.py` with a list `ROWS` of `BackEnd`s:

    from core.testing.back_end import BackEnd

    ROWS = [
        BackEnd("mine", lambda server: {"model": "m", "model_type": "mine", "base_url": server.base_url}),
        BackEnd("mine, real", lambda server: {"model_type": "mine"}, scripted=False, marks=("slow",),
                leaves_out={"errors": "it has no service", "reasoning": "its model does not think"}),
    ]

Nothing else changes: each promise of `test_back_ends.py` (its name without `test_`) runs for each row that does not
leave it out. The server speaks the dialects of `core/testing/dialect.py`. What a promise asks of a real model is
looser: that there is text, not which.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from core.bridge.sync import run
from core.llm.base import BaseChatModel
from core.llm.request import ChatRequest
from core.messages.events import Event
from core.messages.message import USER, Message
from core.testing.back_end import BackEnd
from core.testing.model_server import ModelServer
from core.testing.script import Reply

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _rows() -> list[BackEnd]:
    found: list[BackEnd] = []
    for path in sorted(Path(__file__).parent.glob("rows_*.py")):
        spec = spec_from_file_location(f"contract_{path.stem}", path)
        assert spec
        assert spec.loader
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.ROWS
    return found


ROWS = _rows()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each promise for each row that does not leave it out."""
    if "row" in metafunc.fixturenames:
        promise = metafunc.function.__name__.removeprefix("test_")
        kept = [row for row in ROWS if promise not in row.leaves_out]
        metafunc.parametrize(
            "row", [pytest.param(r, id=r.name, marks=[getattr(pytest.mark, m) for m in r.marks]) for r in kept]
        )


@pytest.fixture
def rows() -> list[BackEnd]:
    """The whole table."""
    return ROWS


@dataclass
class Service:
    """The back end of one test: a model, the script it plays, and what reached the service."""

    row: BackEnd
    server: ModelServer
    promise: str
    opened: list[BaseChatModel]

    def model(self, **generate: Any) -> BaseChatModel:
        """A model of the row; `generate` goes into its `generate_cfg`."""
        settings = self.row.settings(self.server)
        settings["generate_cfg"] = {**settings.get("generate_cfg", {}), **generate}
        self.opened.append(self.row.open(settings))
        return self.opened[-1]

    def play(self, *replies: Reply) -> None:
        """What the model says next, where a script decides it."""
        self.server.add(*replies)

    def question(self, text: str, *functions: dict[str, Any], **generate: Any) -> ChatRequest:
        """The promise's question, or the row's own words for it."""
        asked = self.row.questions.get(self.promise, text)
        return ChatRequest((Message(USER, asked),), functions, generate)

    def sent(self) -> str:
        """The last request's body as text."""
        return json.dumps(self.server.requests[-1].body, ensure_ascii=False)

    async def events(self, request: ChatRequest, **generate: Any) -> list[Event]:
        """All events of one reply; the model is closed afterwards."""
        model = self.model(**generate)
        try:
            async with aclosing(model.stream(request)) as stream:
                return [event async for event in stream]
        finally:
            if self.row.closes:
                await model.aclose()


@pytest.fixture
def service(row: BackEnd, request: pytest.FixtureRequest) -> Iterator[Service]:
    """The back end of one row with a server of its own."""
    opened: list[BaseChatModel] = []
    with ModelServer([]) as server:
        yield Service(row, server, request.function.__name__.removeprefix("test_"), opened)
        for model in opened if row.closes else ():
            run(model.aclose())


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[bytes], str]:
    """Writes a picture file; its path."""

    def written(raw: bytes = DOT) -> str:
        file = tmp_path / "dot.png"
        file.write_bytes(raw)
        return str(file)

    return written
