"""The default model answers the starter prompts, in both languages, with its tools and the sample documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from core.agents.assistant import Assistant
from core.agents.react import ReActChat
from core.llm.backends.llama_cpp.model import LlamaCppModel
from core.llm.request import has_chinese
from core.llm.weights_catalog import DEFAULT
from core.messages.events import ToolFinished
from core.messages.message import USER, Message
from core.messages.transcript import Transcript

pytestmark = [pytest.mark.anyio, pytest.mark.weights, pytest.mark.slow]

SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"
TOOLS = ["calculator", "current_time"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def model(anyio_backend: str) -> AsyncIterator[LlamaCppModel]:
    loaded = LlamaCppModel({"model": DEFAULT, "threads": 1, "generate_cfg": {"temperature": 0, "max_tokens": 200}})
    await loaded.prepare()
    yield loaded
    await loaded.aclose()


async def asked(model: LlamaCppModel, question: str, file: str = "") -> tuple[str, list[Message]]:
    """The words of the answer, and the results of the tools that were used."""
    files = [str(SAMPLES / file)] if file else None
    agent = Assistant(list(TOOLS), model, files=files)
    transcript, results = Transcript(), list[Message]()
    async with aclosing(agent.stream([Message(USER, question)])) as events:
        async for event in events:
            transcript.apply(event)
            if isinstance(event, ToolFinished):
                results.append(event.message)
    return transcript.messages()[-1].get_text_content(), results


@pytest.mark.parametrize("question", ["What is 1250 * 12 + 340 / 4?", "1250 * 12 + 340 / 4 等于多少？"])
async def test_it_reckons_with_the_calculator(model: LlamaCppModel, question: str) -> None:
    answer, results = await asked(model, question)
    assert [result.name for result in results] == ["calculator"]
    assert "15085" in answer.replace(",", "")


@pytest.mark.parametrize("question", ["What time is it in Tokyo now?", "东京现在几点？"])
async def test_it_looks_up_the_time(model: LlamaCppModel, question: str) -> None:
    answer, results = await asked(model, question)
    assert [result.name for result in results] == ["current_time"]
    assert ":" in answer or "点" in answer


@pytest.mark.parametrize(
    ("question", "tool", "answer"),
    [
        ("What is 1250 * 12 + 340 / 4?", "calculator", "15085"),
        ("东京现在几点？", "current_time", ":"),
        ("Hello!", "", "Hello"),
    ],
)
async def test_it_thinks_acts_and_answers_in_steps(model: LlamaCppModel, question: str, tool: str, answer: str) -> None:
    transcript = Transcript()
    async with aclosing(ReActChat(list(TOOLS), model).stream([Message(USER, question)])) as events:
        async for event in events:
            transcript.apply(event)
    reply = transcript.messages()
    assert [message.function_call.name for message in reply if message.function_call] == [tool] * bool(tool)
    assert reply[0].reasoning_content
    assert answer in reply[-1].get_text_content().replace(",", "")


@pytest.mark.parametrize(
    ("question", "file"),
    [("What does the policy say about the deductible?", "policy.pdf"), ("这份保险单的免赔额是多少？", "保险单.pdf")],
)
async def test_it_answers_from_a_document_with_a_mark(model: LlamaCppModel, question: str, file: str) -> None:
    answer, results = await asked(model, question, file)
    assert results
    assert (results[0].extra or {})["passages"]
    assert "[1]" in answer or "[2]" in answer
    assert any(character.isdigit() for character in answer.replace("[1]", "").replace("[2]", ""))
    assert has_chinese(answer) == has_chinese(question)


@pytest.mark.parametrize(
    ("question", "file", "said"),
    [
        ("Turn these notes into a short letter to the tenants.", "notes.md", ("12 May", "kettle", "lift", "Okafor")),
        ("把这些笔记写成一封给住户的简短的信。", "笔记.md", ("5 月 12 日", "一壶水", "电梯", "欧女士")),
    ],
)
async def test_it_makes_a_letter_of_notes(
    model: LlamaCppModel, question: str, file: str, said: tuple[str, ...]
) -> None:
    answer, _ = await asked(model, question, file)
    assert [word for word in said if word not in answer] == []
    assert not answer.startswith("[")
    for copied in (file, "- ", "Task:", "任务", "Park School", "Lind", "家长", "林先生"):
        assert copied not in answer


@pytest.mark.parametrize("question", ["Who are you?", "你是谁？"])
async def test_it_knows_what_it_is(model: LlamaCppModel, question: str) -> None:
    answer, _ = await asked(model, question)
    assert "OpenAI" not in answer
    assert has_chinese(answer) == has_chinese(question)
