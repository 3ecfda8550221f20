"""Many questions to one agent: order, one limit, errors in their places, decisions passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.mapping import AgentFailedError, Answer, MapProgress
from core.bridge.sync import shared_loop
from core.errors import BadMessagesError, ModelRefusedError, ModelServiceError, SettingsError
from core.llm.request import Stream
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from core.tools.base import BaseTool

pytestmark = pytest.mark.anyio


class Echo(Agent):
    """Answers with the question; the earlier ones wait for the later ones."""

    def __init__(self, together: int = 1) -> None:
        super().__init__()
        self.running = self.most = 0
        self._together = together
        self._all = asyncio.Event()

    async def _stream_reply(self, messages: list[Message], **kwargs: Any) -> Stream:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running == self._together:
            self._all.set()
        await self._all.wait()
        said = messages[-1].get_text_content()
        for _ in range(0 if said == "c" else 5):
            await asyncio.sleep(0)
        self.running -= 1
        yield MessageStarted(None)
        yield TextDelta(said)
        yield MessageFinished("stop")


async def test_answers_come_in_order_and_no_more_than_the_limit_at_once() -> None:
    agent = Echo(together=3)
    answers = await agent.amap(["a", "b", "c", "d", "e", "f"], concurrency=3)
    assert [answer.text for answer in answers if isinstance(answer, Answer)] == ["a", "b", "c", "d", "e", "f"]
    assert agent.most == 3


def test_questions_may_be_texts_messages_and_conversations() -> None:
    model = ScriptedModel("1", "2", "3", "4")
    given: list[Any] = [
        "a",
        {"role": "user", "content": "b"},
        Message("user", "c"),
        [{"role": "user", "content": "d"}, {"role": "assistant", "content": "e"}, {"role": "user", "content": "f"}],
    ]
    answers = BasicAgent(llm=model).map(given, concurrency=1)
    assert [answer.text for answer in answers if isinstance(answer, Answer)] == ["1", "2", "3", "4"]
    assert [request.messages[-1].get_text_content() for request in model.requests] == ["a", "b", "c", "f"]


def test_a_question_that_is_none_is_said_before_any_is_asked() -> None:
    model = ScriptedModel("1")
    with pytest.raises(BadMessagesError):
        BasicAgent(llm=model).map(["a", 3], concurrency=1)  # pyright: ignore[reportArgumentType]
    assert not model.requests


def test_errors_take_the_places_of_their_answers() -> None:
    agent = BasicAgent(llm=ScriptedModel("1", ModelRefusedError(code="400", message="no"), "3"))
    answers = agent.map(["a", "b", "c"], concurrency=1, keep_errors=True)
    assert [type(one) is Answer for one in answers] == [True, False, True]
    assert isinstance(answers[1], ModelServiceError)


def test_an_error_takes_the_place_of_a_question_that_is_none() -> None:
    model, told = ScriptedModel("1", "3"), list[int]()
    agent = BasicAgent(llm=model)
    asked: Any = ["a", None, "c"]
    answers = agent.map(asked, concurrency=1, keep_errors=True, progress=lambda one: told.append(one.place))
    assert [type(one) for one in answers] == [Answer, BadMessagesError, Answer]
    assert (told, len(model.requests)) == ([0, 1, 2], 2)


def test_the_first_error_ends_all_where_none_is_kept() -> None:
    model = ScriptedModel("1", ModelRefusedError(code="400", message="no"), "3")
    with pytest.raises(ModelServiceError):
        BasicAgent(llm=model).map(["a", "b", "c"], concurrency=1)
    assert len(model.requests) == 2


def test_an_agent_that_would_end_the_program_fails_for_its_question_alone() -> None:
    class Leaves(Agent):
        async def _stream_reply(self, messages: list[Message], **kwargs: Any) -> Stream:
            yield MessageStarted(None)
            if messages[-1].get_text_content() == "b":
                raise SystemExit(3)
            yield TextDelta("fine")
            yield MessageFinished("stop")

    loop = shared_loop()
    answers = Leaves().map(["a", "b", "c"], keep_errors=True)
    assert isinstance(answers[1], AgentFailedError)
    assert [answer.text for answer in answers if isinstance(answer, Answer)] == ["fine", "fine"]
    assert shared_loop() is loop


def test_an_agent_that_raises_in_the_middle_fails_for_its_question_alone() -> None:
    class Broken(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", "so far")]
            if messages[-1].get_text_content() == "b":
                raise KeyError("oops")

    answers = Broken().map(["a", "b", "c"], concurrency=2, keep_errors=True)
    assert isinstance(answers[1], AgentFailedError)
    assert "KeyError" in str(answers[1])
    assert [one.text for one in answers if isinstance(one, Answer)] == ["so far", "so far"]


def test_progress_is_told_of_each_question() -> None:
    told: list[MapProgress] = []
    BasicAgent(llm=ScriptedModel("1", "2")).map(["a", "b"], concurrency=1, progress=told.append)
    assert [(one.place, one.done, one.total) for one in told] == [(0, 1, 2), (1, 2, 2)]


def test_usage_of_all_calls_of_a_reply_is_counted() -> None:
    script = [Reply(text="x", usage=(10, 2)), Reply(text="y", usage=(20, 3))]
    answers = BasicAgent(llm=ScriptedModel(*script)).map(["a", "b"], concurrency=1)
    assert [one.usage.total_tokens for one in answers if isinstance(one, Answer) and one.usage] == [12, 23]


def test_what_would_ask_is_refused_where_nobody_is_there() -> None:
    class Writes(BaseTool):
        name = "writes"
        writes = True
        ran = 0

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
            Writes.ran += 1
            return "done"

    def agent() -> FnCallAgent:
        return FnCallAgent([Writes()], ScriptedModel(Reply(calls=[("writes", {})]), "over"))

    agent().map(["a"], approval=Policy())
    assert Writes.ran == 0
    agent().map(["a"], approval=Policy(allow=("writes",)))
    assert Writes.ran == 1


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(SettingsError, match="concurrency"):
        BasicAgent(llm=ScriptedModel("1")).map(["a"], concurrency=0)
