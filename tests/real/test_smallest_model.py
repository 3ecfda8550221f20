"""The smallest real model, in process: it answers, streams, stops, keeps to a schema and shares its time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from core import Assistant, Library
from core.errors import ContextTooLongError, ModelRefusedError
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.request import ChatRequest
from core.messages.events import CallStarted, MessageFinished, TextDelta
from core.messages.message import ASSISTANT, USER, Message, Usage
from core.messages.transcript import Transcript

pytestmark = [pytest.mark.anyio, pytest.mark.weights]

CALCULATOR = {
    "name": "calculator",
    "description": "Calculates.",
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
}
STORY = Message(USER, "Write a very long story about a fox.")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def model(anyio_backend: str) -> AsyncIterator[LlamaCppModel]:
    loaded = LlamaCppModel({"model": "smollm2-135m", "threads": 1, "generate_cfg": {"temperature": 0}})
    await loaded.prepare()
    yield loaded
    await loaded.aclose()


async def test_it_answers_and_counts_its_tokens(model: LlamaCppModel) -> None:
    transcript = Transcript()
    async with aclosing(model.stream(ChatRequest((Message(USER, "Say hello."),)))) as events:
        async for event in events:
            transcript.apply(event)
    assert "hello" in transcript.messages()[-1].get_text_content().lower()
    assert isinstance(transcript.usage, Usage)
    assert transcript.usage.completion_tokens > 0


async def test_a_text_that_was_begun_goes_on_whether_or_not_there_are_tools(model: LlamaCppModel) -> None:
    begun = [STORY, Message(ASSISTANT, "Once upon a time there was a fox who")]
    for tools in ([], [CALCULATOR]):
        reply = await model.achat(begun, tools, extra_generate_cfg={"max_tokens": 8})
        assert reply[-1].get_text_content().strip()
        assert not any(one.function_call for one in reply)


async def test_leaving_a_reply_stops_it_and_the_next_question_is_answered_at_once(model: LlamaCppModel) -> None:
    async with aclosing(model.stream(ChatRequest((STORY,), generate={"max_tokens": 3000}))) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    started = time.monotonic()
    await model.achat([Message(USER, "Say ok.")], extra_generate_cfg={"max_tokens": 2})
    assert time.monotonic() - started < 15  # three thousand tokens would take far longer


async def test_a_reply_that_waits_its_turn_can_be_left(model: LlamaCppModel) -> None:
    first = [model.stream(ChatRequest((STORY,), generate={"max_tokens": 400})) for _ in range(2)]
    for stream in first:
        await anext(stream)
        await anext(stream)
    waiting = asyncio.create_task(model.achat([STORY]))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for stream in first:
        await stream.aclose()


async def test_several_questions_are_answered_in_turn(model: LlamaCppModel) -> None:
    asked = [model.achat([Message(USER, f"Say {n}.")], extra_generate_cfg={"max_tokens": 4}) for n in range(5)]
    replies = await asyncio.gather(*asked)
    assert all(reply[-1].get_text_content() for reply in replies)


async def test_a_schema_is_kept_to(model: LlamaCppModel) -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    reply = await model.achat([Message(USER, "What colour is the sky?")], extra_generate_cfg={"response_format": form})
    assert json.loads(reply[-1].get_text_content())["colour"] in {"red", "blue"}


async def test_a_schema_with_a_fault_is_refused_and_the_next_question_is_answered(model: LlamaCppModel) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "nonsense"}}}
    with pytest.raises(ModelRefusedError, match="nonsense") as caught:
        await model.achat([Message(USER, "Hello?")], extra_generate_cfg={"response_format": form})
    assert caught.value.hint
    assert await model.achat([Message(USER, "Hello?")], extra_generate_cfg={"max_tokens": 2})


async def test_an_answer_that_was_begun_is_gone_on_with(model: LlamaCppModel) -> None:
    begun = [Message(USER, "What is the capital of France?"), Message(ASSISTANT, "The capital of France is")]
    reply = await model.achat(begun, extra_generate_cfg={"max_tokens": 4})
    assert reply[-1].get_text_content().strip().startswith("Paris")


async def test_it_ends_before_a_word_to_stop_at(model: LlamaCppModel) -> None:
    begun = [Message(USER, "What is the capital of France?"), Message(ASSISTANT, "The capital of France")]
    reply = await model.achat(begun, extra_generate_cfg={"max_tokens": 9, "stop": ["Paris"]})
    assert reply[-1].get_text_content().strip() == "is"


async def test_with_a_tool_on_offer_the_reply_is_text_or_a_call_and_never_json_in_the_open(
    model: LlamaCppModel,
) -> None:
    request = ChatRequest((Message(USER, "Hello!"),), (CALCULATOR,), {"max_tokens": 60})
    events = [event async for event in model.stream(request)]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text or any(isinstance(event, CallStarted) for event in events)
    assert '"name"' not in text


async def test_the_end_by_length_is_said(model: LlamaCppModel) -> None:
    events = [event async for event in model.stream(ChatRequest((STORY,), generate={"max_tokens": 5}))]
    finished = events[-1]
    assert isinstance(finished, MessageFinished)
    assert finished.reason == "length"


async def test_a_question_beyond_the_context_is_refused_by_name(model: LlamaCppModel) -> None:
    with pytest.raises(ContextTooLongError):
        await model.achat([Message(USER, "fox " * 9000)], extra_generate_cfg={"max_input_tokens": 0})


async def test_a_long_question_is_fitted_and_answered(model: LlamaCppModel) -> None:
    generate = {"max_tokens": 3, "max_input_tokens": 200}
    reply = await model.achat([Message(USER, "fox " * 9000)], extra_generate_cfg=generate)
    assert reply[-1].get_text_content()


def test_a_program_may_end_in_the_middle_of_a_reply() -> None:
    code = (
        "import asyncio\n"
        "from core.llm.backends.llama_cpp import LlamaCppModel\n"
        "async def main():\n"
        "    model = LlamaCppModel({'model': 'smollm2-135m', 'threads': 1})\n"
        "    stream = model._stream(__import__('core.llm.request').llm.request.ChatRequest((M('user', 'A story.'),)))\n"
        "    async for event in stream:\n"
        "        if event.kind == 'text_delta':\n"
        "            globals()['kept'] = stream, model\n"
        "            return\n"
        "from core.messages.message import Message as M\n"
        "asyncio.run(main())\n"
        "print('ended')\n"
    )
    home = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=home, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "ended")


async def test_a_second_question_on_a_document_reads_only_what_is_new(tmp_path: Path) -> None:
    lines = [f"Part {n} of the house is looked after by {who}." for n, who in enumerate(("Anna", "Bert", "Clara") * 9)]
    cfg = {"model": "smollm2-135m", "threads": 1, "small": False, "generate_cfg": {"temperature": 0, "max_tokens": 8}}
    model = LlamaCppModel(cfg)
    read: list[Usage] = []
    with Library.open(tmp_path) as library:
        library.add_text("\n\n".join(lines), name="house.md")
        agent = Assistant(llm=model, library=library)
        messages: list[Message] = []
        for question in ("Who looks after part 1?", "And part 7?"):
            messages.append(Message(USER, question))
            transcript = Transcript()
            async with aclosing(agent.stream(messages)) as events:
                async for event in events:
                    transcript.apply(event)
            assert transcript.usage is not None
            read.append(transcript.usage)
            messages += transcript.messages()
    await model.aclose()
    first, second = (usage.prompt_tokens - usage.cached_tokens for usage in read)
    assert first > 300
    assert second <= 0.35 * first
