"""Calls of one turn: at the same time, in order, within their deadlines, and never a traceback."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from contextlib import aclosing
from typing import Any

import pytest

from core.errors import ToolError
from core.messages.content import ContentItem
from core.messages.events import CallDelta, CallStarted, Event, MessageFinished, ToolFinished, ToolStarted
from core.messages.message import Message
from core.messages.transcript import Transcript, call_message
from core.tools.base import BaseTool, ToolResult
from core.tools.from_function import tool
from core.tools.runner import ToolRunner

pytestmark = pytest.mark.anyio


async def run(runner: ToolRunner, *calls: Message, **context: Any) -> list[Event]:
    return [event async for event in runner.run(calls, **context)]


async def result_of(fake: BaseTool, arguments: str = "{}", **options: Any) -> Message:
    events = await run(ToolRunner({fake.name: fake}, **options), call_message("c1", fake.name, arguments))
    assert isinstance(events[-1], ToolFinished)
    return events[-1].message


@tool
def nap(seconds: float) -> str:
    """Sleep."""
    time.sleep(seconds)
    return f"slept {seconds}"


async def test_three_calls_of_plain_functions_run_at_the_same_time():
    together = threading.Barrier(3, timeout=30)

    @tool
    def meet() -> str:
        """Wait for the other two."""
        together.wait()
        return "met"

    calls = [call_message(f"c{n}", "meet", "{}") for n in range(3)]
    events = await run(ToolRunner({"meet": meet}), *calls)
    assert [one.message.content for one in events if isinstance(one, ToolFinished)] == ["met"] * 3
    assert [type(event) for event in events] == [ToolStarted] * 3 + [ToolFinished] * 3


async def test_results_stand_in_the_order_of_the_calls_though_the_quick_one_is_told_first():
    calls = [call_message("slow", "nap", '{"seconds": 0.2}'), call_message("quick", "nap", '{"seconds": 0}')]
    events = await run(ToolRunner({"nap": nap}), *calls)
    finished = [event.call_id for event in events if isinstance(event, ToolFinished)]
    assert finished == ["quick", "slow"]
    transcript = Transcript()
    for call_id in ("slow", "quick"):
        transcript.apply(CallStarted(call_id, "nap"))
        transcript.apply(CallDelta(call_id, "{}"))
    transcript.apply(MessageFinished("calls"))
    for event in events:
        transcript.apply(event)
    results = transcript.messages()[2:]
    assert [(message.extra or {})["function_id"] for message in results] == ["slow", "quick"]


async def test_a_result_carries_the_id_of_its_call_and_the_name_of_its_tool():
    message = await result_of(nap, '{"seconds": 0}')
    assert (message.role, message.name, message.content) == ("function", "nap", "slept 0.0")
    assert message.extra == {"function_id": "c1"}


async def test_an_exception_becomes_a_short_result_without_a_traceback(caplog: pytest.LogCaptureFixture):
    @tool
    def broken() -> str:
        """Break."""
        raise RuntimeError("the cable is out " + "x" * 5000)

    message = await result_of(broken)
    text = message.get_text_content()
    assert "RuntimeError: the cable is out" in text
    assert "Traceback" not in text
    assert len(text) < 700
    assert (message.extra or {})["failed"] == "tool_failed"
    assert "Traceback" in caplog.text  # for the person who mends it, and from the tool's own line on
    assert "in broken" in caplog.text
    assert "runner.py" not in caplog.text.replace("test_runner.py", "").replace("runner.py:", "")


async def test_an_error_on_purpose_reaches_the_model_as_its_sentence():
    @tool
    def picky() -> str:
        """Refuse."""
        raise ToolError("The account is empty.", hint="Fill it up.", key="empty_account")

    message = await result_of(picky)
    assert message.content == "The account is empty. Fill it up."
    assert (message.extra or {})["failed"] == "empty_account"


async def test_an_unknown_tool_is_answered_with_the_near_names():
    events = await run(ToolRunner({"calculator": nap}), call_message("c", "calculater", "{}"))
    assert isinstance(events[-1], ToolFinished)
    assert "Did you mean 'calculator'?" in events[-1].message.get_text_content()
    assert (events[-1].message.extra or {})["failed"] == "unknown_name"


async def test_wrong_arguments_are_told_with_the_field_and_the_tool_is_not_called():
    called: list[int] = []

    class Picky(BaseTool):
        name = "picky"
        parameters = dict(type="object", properties={"n": {"type": "integer"}}, required=["n"])  # noqa: C408

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
            called.append(1)
            return ""

    message = await result_of(Picky(), '{"n": "many"}')
    assert message.get_text_content().startswith("The field 'n' must be a whole number, not \"many\".")
    assert (message.extra or {})["failed"] == "bad_arguments"
    assert not called


async def test_arguments_that_are_nearly_json_are_understood():
    message = await result_of(nap, "{'seconds': 0,}")
    assert message.content == "slept 0.0"


async def test_half_a_call_of_a_reply_that_was_cut_off_is_never_mended_and_run():
    half = call_message("c1", "nap", '{"seconds": 0')
    whole = call_message("c2", "nap", '{"seconds": 0}')
    events = await run(ToolRunner({"nap": nap}), half, whole, cut_off=True)
    contents = {e.call_id: e.message.get_text_content() for e in events if isinstance(e, ToolFinished)}
    assert contents["c1"].startswith("The reply was cut off in the middle of this call.")
    assert contents["c2"] == "slept 0.0"


async def test_arguments_that_are_no_object_at_all_are_told():
    message = await result_of(nap, "sleep well")
    assert (message.extra or {})["failed"] == "bad_arguments"
    assert "sleep well" in message.get_text_content()


async def test_a_hanging_plain_function_ends_at_its_deadline_and_its_thread_is_left_behind(
    caplog: pytest.LogCaptureFixture,
):
    let_go = threading.Event()

    @tool
    def hang() -> str:
        """Hang."""
        let_go.wait(60)
        return "too late"

    try:
        message = await result_of(hang, deadline=0.1)
    finally:
        let_go.set()
    assert "did not finish within 0.1 seconds" in message.get_text_content()
    assert (message.extra or {})["failed"] == "tool_timeout"
    assert "still works in its thread" in caplog.text


async def test_an_async_tool_that_will_not_be_cancelled_does_not_hold_the_run():
    over = asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Never listen."""
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return ""

    message = await result_of(stubborn, deadline=0.05)
    assert (message.extra or {})["failed"] == "tool_timeout"
    over.set()


async def test_each_tool_has_its_own_deadline_where_the_runner_sets_none():
    @tool(cfg={"timeout": 0.05})
    async def slow() -> str:
        """Wait."""
        await asyncio.sleep(5)
        return ""

    assert (await result_of(slow)).get_text_content().count("0.05 seconds") == 1


async def test_leaving_early_cancels_the_tools():
    cancelled = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.set()
        return ""

    calls = [call_message("a", "wait", "{}"), call_message("b", "nap", '{"seconds": 0}')]
    async with aclosing(ToolRunner({"wait": wait, "nap": nap}).run(calls)) as events:
        async for event in events:
            if isinstance(event, ToolFinished):
                break
    assert cancelled.is_set()


async def test_ten_megabytes_are_cut_to_their_ends():
    @tool
    def flood() -> str:
        """Flood."""
        return "头" + "x" * 10_000_000 + "尾"

    message = await result_of(flood)
    text = message.get_text_content()
    assert len(text.encode()) <= 64 * 1024
    assert text.startswith("头")
    assert text.endswith("尾")
    assert "10000006 bytes in all" in text
    assert (message.extra or {})["cut_from"] == 10_000_006


async def test_results_of_every_shape_become_a_message():
    async def content_of(value: Any) -> Any:
        @tool
        def give() -> Any:
            """Give."""
            return value

        return (await result_of(give)).content

    assert await content_of({"城市": "海淀", "n": 1}) == json.dumps(
        {"城市": "海淀", "n": 1}, ensure_ascii=False, indent=2
    )
    assert await content_of(None) == ""
    assert await content_of(41.5) == "41.5"
    assert await content_of(["a", "b"]) == '[\n  "a",\n  "b"\n]'
    picture = ContentItem(image="data:image/png;base64,iVBORw0KGgo=")
    assert await content_of([ContentItem(text="see"), picture]) == [ContentItem(text="see"), picture]
    assert await content_of(ToolResult("see", items=(picture,))) == [ContentItem(text="see"), picture]


async def test_passages_and_extra_travel_in_the_result():
    @tool
    def look() -> ToolResult:
        """Look."""
        return ToolResult("[1] sky", passages=({"text": "sky"},), extra={"source": "here"})

    extra = (await result_of(look)).extra
    assert extra == {"function_id": "c1", "source": "here", "passages": [{"text": "sky"}]}


async def test_a_tool_gets_only_the_context_it_takes():
    class Old(BaseTool):
        name = "old"

        def call(self, params: str) -> str:  # type: ignore[override]  # Qwen-Agent's tools often take nothing more
            return json.loads(params).get("x", "") + "!"

    class Curious(BaseTool):
        name = "curious"

        async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
            return ",".join(sorted(kwargs))

    tools = {"old": Old(), "curious": Curious()}
    calls = [call_message("a", "old", '{"x": "y"}'), call_message("b", "curious", "{}")]
    events = await run(ToolRunner(tools), *calls, lang="zh", messages=[], files=["f"])
    contents = {e.call_id: e.message.content for e in events if isinstance(e, ToolFinished)}
    assert contents == {"a": "y!", "b": "call_id,lang,messages,progress"}


async def test_a_tool_that_cancels_itself_is_a_failure_and_not_the_end_of_the_run():
    @tool
    async def quits() -> str:
        """Quit."""
        raise asyncio.CancelledError

    assert (await result_of(quits)).get_text_content() == "The tool 'quits' stopped itself."


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_tool_that_ends_the_program_only_fails(kind: str):
    @tool(name="quits")
    def plain() -> str:
        """Quit."""
        sys.exit(3)

    @tool(name="quits")
    async def of_the_loop() -> str:
        """Quit."""
        sys.exit(3)

    message = await result_of(plain if kind == "plain" else of_the_loop)
    assert (message.extra or {})["failed"] == "tool_failed"
    assert "end the program" in message.get_text_content()


async def test_what_a_result_brings_along_can_always_be_stored():
    circle: dict[str, Any] = {}
    circle["again"] = circle

    class Brings(BaseTool):
        name = "brings"

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
            return ToolResult("x", extra=brought)

    for brought in ({"at": {1: object()}}, circle, {"pair": {(1, 2): 3}}):  # noqa: B007 - the tool reads it
        message = await result_of(Brings())
        assert json.loads(message.model_dump_json())["extra"]["function_id"] == "c1"
