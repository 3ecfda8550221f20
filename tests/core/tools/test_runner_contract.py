"""What the runner promises of credentials, progress, long results and errors."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import core
from core.errors import SettingsError
from core.llm.wire.turns import note
from core.messages.content import ContentItem
from core.messages.events import ToolFinished
from core.messages.message import Message
from core.messages.transcript import call_message
from core.tools.base import BaseTool, ToolResult
from core.tools.from_function import tool
from core.tools.runner import ToolRunner

pytestmark = pytest.mark.anyio


async def results(runner: ToolRunner, *calls: Message, **context: Any) -> list[Message]:
    return [e.message async for e in runner.run(calls, **context) if isinstance(e, ToolFinished)]


def calls_of(name: str, count: int = 1) -> list[Message]:
    return [call_message(f"c{number}", name, "{}") for number in range(count)]


class Keyed(BaseTool):
    """Needs a key."""

    name = "keyed"

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self.checked: list[dict[str, Any]] = []
        self.called = 0

    def validate_credentials(self, credentials: Mapping[str, Any]) -> None:
        self.checked.append(dict(credentials))
        if credentials.get("key") != "right":
            raise SettingsError("The key of this service is not valid.", hint="Enter it again.", key="bad_key")

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        self.called += 1
        return "done"


async def test_credentials_are_checked_once_before_the_first_call_however_many_begin_together():
    keyed = Keyed({"credentials": {"key": "right"}})
    for _ in range(2):
        assert [m.content for m in await results(ToolRunner({"keyed": keyed}), *calls_of("keyed", 3))] == ["done"] * 3
    assert keyed.checked == [{"key": "right"}]


@pytest.mark.parametrize("cfg", [{}, {"credentials": {"key": "sk-CANARY-wrong"}}])
async def test_wrong_credentials_are_one_clear_sentence_and_the_tool_is_not_called(cfg: dict[str, Any]):
    keyed = Keyed(cfg)
    (message,) = await results(ToolRunner({"keyed": keyed}), *calls_of("keyed"))
    assert message.content == "The key of this service is not valid. Enter it again."
    assert (message.extra or {})["failed"] == "bad_key"
    assert not keyed.called
    keyed.cfg["credentials"] = {"key": "right"}
    assert (await results(ToolRunner({"keyed": keyed}), *calls_of("keyed")))[0].content == "done"


async def test_credentials_may_be_checked_on_the_loop():
    class Async(Keyed):
        async def validate_credentials(self, credentials: Mapping[str, Any]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            await asyncio.sleep(0)
            Keyed.validate_credentials(self, credentials)

    (message,) = await results(ToolRunner({"keyed": Async()}), *calls_of("keyed"))
    assert (message.extra or {})["failed"] == "bad_key"


@pytest.mark.parametrize("kind", ["thread", "loop"])
async def test_progress_comes_from_loop_and_threads_with_the_call_it_belongs_to(kind: str):
    heard: list[tuple[Any, ...]] = []
    here = threading.get_ident()

    class Slow(BaseTool):
        name = "slow"

        def call(self, params: str | dict[str, Any], *, progress: Any = None, call_id: str = "", **kwargs: Any) -> Any:
            progress("page 1", 1, 2)
            progress("page 2")
            return call_id

    class SlowLoop(Slow):
        async def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
            return Slow.call(self, params, **kwargs)

    def follow(*said: Any) -> None:
        heard.append((*said, threading.get_ident() == here))

    slow = Slow() if kind == "thread" else SlowLoop()
    (message,) = await results(ToolRunner({"slow": slow}), *calls_of("slow"), progress=follow)
    assert message.content == "c0"
    assert heard == [("c0", "page 1", 1, 2, True), ("c0", "page 2", None, None, True)]
    assert (await results(ToolRunner({"slow": slow}), *calls_of("slow")))[0].content == "c0"  # nobody follows


async def test_a_follower_s_trouble_is_not_the_tool_s_and_what_is_said_after_the_end_is_not_told():
    left: list[Any] = []

    class Talks(BaseTool):
        name = "talks"

        async def call(self, params: str | dict[str, Any], *, progress: Any, **kwargs: Any) -> str:
            left.append(progress)
            progress("now")
            return "done"

    heard: list[Any] = []

    def follow(*said: Any) -> None:
        heard.append(said)
        raise RuntimeError("the page is gone")

    assert (await results(ToolRunner({"talks": Talks()}), *calls_of("talks"), progress=follow))[0].content == "done"
    left[0]("later")
    assert [said[1] for said in heard] == ["now"]


async def test_a_typed_function_gets_what_it_asks_for_behind_an_underscore():
    @tool
    def hello(name: str, _lang: str = "en", _progress: Any = None) -> str:
        """Greet.

        Args:
            name: Whom.
        """
        _progress("greeting")
        return f"{_lang}: {name}"

    assert set(hello.function["parameters"]["properties"]) == {"name"}
    heard: list[Any] = []
    call = call_message("c0", "hello", '{"name": "Ann"}')
    (message,) = await results(ToolRunner({"hello": hello}), call, lang="zh", progress=lambda *said: heard.append(said))
    assert (message.content, heard) == ("zh: Ann", [("c0", "greeting", None, None)])


async def test_a_long_result_is_kept_whole_as_a_file_and_shown_by_its_ends():
    long = "头" + "x" * 100_000 + "尾"

    @tool
    def flood() -> str:
        """Flood."""
        return long

    (message,) = await results(ToolRunner({"flood": flood}), *calls_of("flood"))
    assert (message.extra or {})["whole"] == "flood.txt"
    file = message.items[-1]
    head, _, data = str(file.file).partition(",")
    assert head == "data:text/plain;charset=utf-8;base64"
    assert b64decode(data).decode() == long
    assert len(message.get_text_content().encode()) <= 64 * 1024
    assert note(file) == "[file]"  # all of it that a model reads


async def test_what_is_too_long_even_for_a_file_still_shows_its_ends():
    @tool
    def flood() -> ToolResult:
        """Flood."""
        return ToolResult("x" * (25 * 1024 * 1024))

    (message,) = await results(ToolRunner({"flood": flood}), *calls_of("flood"))
    assert isinstance(message.content, str)
    assert (message.extra or {})["cut_from"] == 25 * 1024 * 1024
    assert "whole" not in (message.extra or {})


async def test_an_error_is_one_line_without_a_place_in_our_code():
    here = str(Path(core.__file__).resolve().parent)

    @tool
    def broken() -> str:
        """Break."""
        raise FileNotFoundError(2, "No such file", f"{here}/tools/secret.py")

    @tool
    def torn() -> str:
        """Break."""
        raise ValueError(f'first line\n  File "{here}/x.py", line 3, in call')

    for name, each in (("broken", broken), ("torn", torn)):
        (message,) = await results(ToolRunner({name: each}), *calls_of(name))
        text = message.get_text_content()
        assert here not in text
        assert "\n" not in text
        assert text.startswith(f"The tool {name!r} failed: ")


@pytest.mark.parametrize(
    "text",
    [
        "Client error '401' for url 'https://x.example/v1?q=1&api_key=sk-CANARY-1'",
        "{'Authorization': 'Bearer sk-CANARY-1'}",
        'token: "sk-CANARY-1"',
        "password=sk-CANARY-1;host=x",
    ],
)
async def test_l3_a_library_s_error_does_not_bring_a_key_to_the_model(text: str):
    @tool
    def broken() -> str:
        """Break."""
        raise RuntimeError(text)

    (message,) = await results(ToolRunner({"broken": broken}), *calls_of("broken"))
    assert "CANARY" not in message.get_text_content()
    assert message.get_text_content().startswith("The tool 'broken' failed: RuntimeError: ")


@pytest.mark.parametrize(
    "address", ["data:image/svg+xml;base64,PHN2Zz4=", "data:image/png;base64,!!", "data:image/png,x"]
)
async def test_a_picture_that_is_none_becomes_a_file_so_that_the_model_can_go_on(address: str):
    @tool
    def draw() -> ToolResult:
        """Draw."""
        return ToolResult("Drawn.", items=(ContentItem(image=address),))

    (message,) = await results(ToolRunner({"draw": draw}), *calls_of("draw"))
    assert [item.type for item in message.items] == ["text", "file"]
    assert message.items[1].file == address
