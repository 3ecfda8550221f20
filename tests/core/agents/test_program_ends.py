"""`sys.exit()`, Ctrl-C and worse in a program's own code: they reach the program, and nobody else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.bridge.cancellation import ProgramEnd
from core.bridge.sync import run, shared_loop
from core.llm.base import BaseChatModel
from core.llm.request import ChatRequest, Stream
from core.messages.events import MessageStarted
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import ApprovalRequest, Guard, Policy
from core.tools.base import BaseTool


class Odd(BaseException):
    """Neither an `Exception` nor an end of the program."""


KINDS = [SystemExit, KeyboardInterrupt, Odd]
ASKED = [{"role": "user", "content": "Go"}]


class Order(BaseTool):
    """Changes something, so that somebody is asked."""

    name = "order"
    description = "Orders."
    writes = True

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
        return "ordered"


def calls_once(*turns: Any) -> ScriptedModel:
    return ScriptedModel(Reply(calls=[("order", {})]), *(turns or ("after",)))


def ordering(tool: BaseTool | None = None, model: Any = None) -> FnCallAgent:
    return FnCallAgent([tool or Order()], model or calls_once())


def asked_with(approval: Any) -> None:
    ordering().run_nonstream(ASKED, approval=approval)


class Hooks:
    """Where a program's own code is called, each as a function that makes it raise `error`."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def raises(self, *_: Any, **__: Any) -> Any:
        raise self.error

    async def araises(self, *_: Any, **__: Any) -> Any:
        raise self.error

    def approval_function(self) -> None:
        asked_with(self.raises)

    def approval_coroutine(self) -> None:
        asked_with(self.araises)

    def approval_in_another_agent(self) -> None:
        inner = FnCallAgent([Order()], calls_once(), name="inner")
        model = ScriptedModel(Reply(calls=[("inner", {"question": "Go"})]), "after")
        FnCallAgent([inner], model).run_nonstream(ASKED, approval=self.raises)

    def approval_of_an_agent_that_a_tool_asks(self) -> None:
        outer = self

        class Asks(Order):
            def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
                return ordering().run_nonstream(ASKED, approval=outer.raises)

        ordering(Asks()).run_nonstream(ASKED)

    def approval_in_map(self) -> None:
        ordering().map(["a", "b"], approval=self.raises, keep_errors=True)

    def approval_while_streaming(self) -> None:
        for _ in ordering().run(ASKED, approval=self.raises):
            pass

    def approval_in_async_code(self) -> None:
        async def read() -> None:
            async for _ in ordering().stream([Message("user", "Go")], approval=self.raises):
                pass

        asyncio.run(read())

    def guard_of_its_own(self) -> None:
        guard: Any = Guard(Policy())
        guard.decide = self.araises
        asked_with(guard)

    def progress_of_map(self) -> None:
        BasicAgent(llm=ScriptedModel("1")).map(["a", "b", "c"], progress=self.raises)

    def progress_of_amap_in_async_code(self) -> None:
        asyncio.run(BasicAgent(llm=ScriptedModel("1")).amap(["a", "b", "c"], progress=self.raises))

    def moderation_function(self) -> None:
        self._moderated(self.raises)

    def moderation_coroutine(self) -> None:
        self._moderated(self.araises)

    def _moderated(self, look: Any) -> None:
        BasicAgent(llm=ScriptedModel({"script": ["1"], "moderation": look})).run_nonstream(ASKED)

    def moderation_of_a_batch(self) -> None:
        model = ScriptedModel({"script": ["1"], "moderation": self.raises})
        model.batch([ASKED, ASKED], keep_errors=True)

    def listener_of_calls(self) -> None:
        model = ScriptedModel("1")
        model.on_call(self.raises)
        BasicAgent(llm=model).run_nonstream(ASKED)

    def back_end_stream_hook(self) -> None:
        model: Any = BaseChatModel({"model": "own"})
        model._chat_stream = self.raises
        model.chat(ASKED, stream=False)

    def back_end_whole_hook(self) -> None:
        model: Any = BaseChatModel({"model": "own"})
        model._chat_no_stream = self.raises
        for _ in model.chat(ASKED):
            pass

    def back_end_in_the_middle_of_its_stream(self) -> None:
        error = self.error

        class Own(BaseChatModel):
            def _chat_stream(self, messages: list[Message], *_: Any, **__: Any) -> Iterator[list[Message]]:
                yield [Message("assistant", "so far")]
                raise error

        BasicAgent(llm=Own({"model": "own"})).run_nonstream(ASKED)

    def back_end_events(self) -> None:
        error = self.error

        class Own(BaseChatModel):
            async def _stream(self, request: ChatRequest) -> Stream:
                yield MessageStarted()
                raise error

        Own({"model": "own"}).batch([ASKED, ASKED])

    def agent_hook(self) -> None:
        error = self.error

        class Own(Agent):
            async def _stream_reply(self, messages: list[Message], **kwargs: Any) -> Stream:
                yield MessageStarted(None)
                raise error

        Own().run_nonstream(ASKED)

    def agent_hook_of_qwen_agent(self) -> None:
        error = self.error

        class Own(Agent):
            def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
                yield [Message("assistant", "so far")]
                raise error

        Own().run_nonstream(ASKED)

    def question_before_a_tool_is_called(self) -> None:
        order: Any = Order()
        order.wants = self.raises
        ordering(order).run_nonstream(ASKED, approval=lambda _: True)

    def task_of_a_plug_in(self) -> None:
        async def begins() -> None:
            await asyncio.create_task(self.araises())

        run(begins())


class ToolHooks(Hooks):
    """The same within a call: there `sys.exit()`, `argparse` for example, is a failed call."""

    def tool_function(self) -> Any:
        return self._called(self.raises)

    def tool_coroutine(self) -> Any:
        return self._called(self.araises)

    def tool_s_credentials(self) -> Any:
        error = self.error

        class Sealed(Order):
            def validate_credentials(self, credentials: Any) -> None:
                raise error

        return ordering(Sealed()).run_nonstream(ASKED)

    def _called(self, call: Any) -> Any:
        tool: Any = Order()
        tool.call = call
        return ordering(tool).run_nonstream(ASKED)


def hooks_of(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_") and name not in {"raises", "araises"}]


class Bystander:
    """Another caller, whose reply is in flight all the time."""

    def __init__(self) -> None:
        self.loop = shared_loop()
        self.begun, self.go, self.told = threading.Event(), asyncio.Event(), list[str]()
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()
        assert self.begun.wait(20)

    def _ask(self) -> None:
        async def reply() -> str:
            self.begun.set()
            await self.go.wait()
            return "fine"

        self.told.append(run(reply()))

    def is_answered(self) -> bool:
        self.loop.call_soon_threadsafe(self.go.set)
        self.thread.join(20)
        return self.told == ["fine"] and shared_loop() is self.loop


def raised_by(hook: Callable[[], Any]) -> BaseException | None:
    """What a caller gets who never comes back where a test should fail."""
    caught: list[BaseException | None] = []

    def call() -> None:
        try:
            hook()
        except BaseException as error:
            caught.append(error)
        else:
            caught.append(None)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(30)
    assert caught, "the caller waits for ever"
    return caught[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hook", hooks_of(Hooks))
def test_what_ends_a_program_reaches_the_caller_as_it_was_raised_and_no_bystander(hook: str, kind: type[BaseException]):
    bystander, error = Bystander(), kind("bye")
    caught = raised_by(getattr(Hooks(error), hook))
    assert caught is error
    assert bystander.is_answered()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Odd])
@pytest.mark.parametrize("hook", hooks_of(ToolHooks))
def test_an_interrupted_tool_interrupts_its_caller_and_no_bystander(hook: str, kind: type[BaseException]):
    bystander, error = Bystander(), kind("bye")
    assert raised_by(getattr(ToolHooks(error), hook)) is error
    assert bystander.is_answered()


@pytest.mark.parametrize("hook", hooks_of(ToolHooks))
def test_a_tool_that_would_end_the_program_is_a_failed_call(hook: str):
    bystander, replies = Bystander(), list[Any]()
    assert raised_by(lambda: replies.append(getattr(ToolHooks(SystemExit("bye")), hook)())) is None
    assert replies[0][-1]["content"] == "after"
    assert bystander.is_answered()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_progress_of_a_tool_that_ends_the_program_reaches_the_caller(kind: type[BaseException]):
    error = kind("bye")

    class Tells(Order):
        def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
            kwargs["progress"]("half")
            threading.Event().wait(20)  # the reply does not wait for it

    bystander = Bystander()
    assert raised_by(lambda: ordering(Tells()).run_nonstream(ASKED, progress=Hooks(error).raises)) is error
    assert bystander.is_answered()


def test_inside_another_call_the_end_of_the_program_is_no_exception_that_code_in_between_swallows():
    seen: list[BaseException] = []

    class Careless(Order):
        def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
            try:
                ordering().run_nonstream(ASKED, approval=lambda _: sys.exit("bye"))
            except Exception as error:
                seen.append(error)
            except ProgramEnd as end:
                seen.append(end)
                raise

    assert isinstance(raised_by(lambda: ordering(Careless()).run_nonstream(ASKED)), SystemExit)
    assert [type(error) for error in seen] == [ProgramEnd]


def test_quitting_at_a_question_in_the_terminal_ends_the_program_at_once():
    program = (
        "import sys\n"
        "from core.agents.basic import FnCallAgent\n"
        "from core.testing.script import Reply\n"
        "from core.testing.scripted_model import ScriptedModel\n"
        "from core.tools.base import BaseTool\n"
        "class Order(BaseTool):\n"
        "    name, description, writes = 'order', 'Orders.', True\n"
        "    def call(self, params, **kwargs): return 'ordered'\n"
        "def decide(asking):\n"
        "    if input(asking.name + '? y/n/q ') == 'q':\n"
        "        sys.exit(7)\n"
        "    return True\n"
        "model = ScriptedModel(Reply(calls=[('order', {})]), 'after')\n"
        "FnCallAgent([Order()], model).run_nonstream([{'role': 'user', 'content': 'Go'}], approval=decide)\n"
        "print('never here')\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, input="q\n", capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (7, "order? y/n/q", "")


def test_the_tool_asked_about_has_not_run_when_the_program_was_told_to_end():
    ran: list[str] = []

    class Noted(Order):
        def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
            ran.append("ordered")

    def quits(asking: ApprovalRequest) -> bool:
        sys.exit(asking.name)

    with pytest.raises(SystemExit, match="order"):
        ordering(Noted()).run_nonstream(ASKED, approval=quits)
    assert ran == []
