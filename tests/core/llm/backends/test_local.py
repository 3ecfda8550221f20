"""What models in this process share: turns for their templates, and questions that always come to an end."""

from __future__ import annotations

import asyncio
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.llm.backends import llama_server
from core.llm.backends.llama_server import LlamaQuestion, LlamaServer, Shape
from core.llm.backends.local import Question, QuestionQueue, answers, local_turns
from core.llm.backends.transformers.model import TransformersEngine
from core.llm.backends.transformers.writing import Writing
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, SYSTEM, USER, Message

PICTURE = ContentItem(image="sky.png")


def test_the_system_comes_first_and_neighbours_of_one_role_are_joined() -> None:
    messages = [
        Message(USER, "a"),
        Message(SYSTEM, "S"),
        Message(USER, "b"),
        Message(ASSISTANT, ""),
        Message(USER, "c"),
    ]
    assert local_turns(messages, "en", who="W") == [
        {"role": "system", "content": "W\n\nS"},
        {"role": "user", "content": "a\n\nb\n\nc"},
    ]


def test_texts_of_one_message_are_one_text() -> None:
    messages = [Message(USER, [ContentItem(text="a"), ContentItem(text="b")]), Message(USER, [ContentItem(text="c")])]
    assert local_turns(messages, "en") == [{"role": "user", "content": "ab\n\nc"}]


def test_pictures_are_parts_for_a_model_that_sees_and_notes_for_another() -> None:
    messages = [
        Message(SYSTEM, "S"),
        Message(USER, [ContentItem(text="What?"), PICTURE, ContentItem(text="<|im_end|>")]),
    ]
    assert local_turns(messages, "en")[1] == {"role": "user", "content": "What?[picture sky.png]<\u200b|im_end|>"}
    assert local_turns(messages, "en", sees=True) == [
        {"role": "system", "content": [{"type": "text", "text": "S"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What?"},
                {"type": "image", "image": "sky.png"},
                {"type": "text", "text": "<\u200b|im_end|>"},
            ],
        },
    ]


def test_an_empty_question_stays_a_question() -> None:
    assert local_turns([Message(USER, "")], "en") == [{"role": "user", "content": ""}]


pytestmark = pytest.mark.anyio


async def test_a_question_that_comes_after_the_model_was_closed_has_no_answer_and_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llama_server, "_load", lambda path, shape: object())
    server = LlamaServer(Path("any.gguf"), Shape(context=512, threads=1, parallel=2))
    server.close()
    async with asyncio.timeout(60):
        assert [chunk async for chunk in answers(server.ask, {})] == []


def test_whoever_asked_may_be_gone_with_the_loop_while_the_answer_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[LlamaQuestion] = []

    def ask(question: LlamaQuestion) -> None:
        asked.append(question)
        question.emit(None)

    async def once() -> None:
        assert [chunk async for chunk in answers(ask, {})] == []
        # The loop may close between a look at it and a call to it.
        monkeypatch.setattr(asyncio.get_running_loop(), "is_closed", lambda: False)

    asyncio.run(once())
    question: Question = asked[0]
    question.emit(None)
    assert question.unwanted.is_set()


def test_nothing_of_a_question_is_kept_while_the_next_is_waited_for() -> None:
    waiting: QuestionQueue[Body, str] = QuestionQueue()
    body = Body()
    gone = weakref.ref(body)
    over = threading.Event()

    def work() -> None:
        for question in waiting:
            question.emit(None)
            del question

    thread = threading.Thread(target=work)
    thread.start()
    waiting.put(Question(body, lambda _: over.set()))
    assert over.wait(60)
    del body
    last = threading.Event()
    waiting.put(Question(Body(), lambda _: last.set()))
    assert last.wait(60)
    assert gone() is None
    waiting.close()
    thread.join(60)
    assert not thread.is_alive()


class Body:
    """What is asked."""


async def test_a_transformers_model_answers_in_turn_and_ends_what_comes_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = SimpleNamespace(modules=list, generation_config=SimpleNamespace(eos_token_id=[1]))
    torch = SimpleNamespace(nn=SimpleNamespace(ModuleList=list))
    loaded: Any = SimpleNamespace(model=parts, torch=torch, tokenizer=SimpleNamespace(eos_token_id=1))
    monkeypatch.setattr(Writing, "write", lambda self, body, emit, is_unwanted: body)
    engine = TransformersEngine(loaded, cast("Any", None))
    async with asyncio.timeout(60):
        assert [[event async for event in answers(engine.ask, cast("Any", body))] for body in "ab"] == [["a"], ["b"]]
        engine.close()
        engine.close()
        assert [event async for event in answers(engine.ask, cast("Any", "c"))] == []
