"""The default model answers the starter prompts, in both languages, with its tools and the sample documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from core.agents.assistant import Assistant
from core.agents.react import ReActChat
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.request import has_chinese
from core.llm.weights_catalog import DEFAULT
from core.messages.events import ToolFinished
from core.messages.message import USER, Message
from core.messages.transcript import Transcript
from webui.words import Words

pytestmark = [pytest.mark.anyio, pytest.mark.weights, pytest.mark.slow]

SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"
TOOLS = ["calculator", "current_time"]
READ, CALCULATE, LOOK_UP, WRITE = 1, 2, 3, 4  # the page's starters
in_both_languages = pytest.mark.parametrize("lang", ["en", "zh"])


def question(number: int, lang: str) -> str:
    """What a starter of the page asks."""
    return Words(lang)(f"starter.{number}.text")


def file_of(number: int, lang: str) -> str:
    """The sample that comes with it."""
    return Words(lang)(f"starter.{number}.with")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def model(anyio_backend: str) -> AsyncIterator[LlamaCppModel]:
    loaded = LlamaCppModel({"model": DEFAULT, "threads": 1, "generate_cfg": {"temperature": 0, "max_tokens": 200}})
    await loaded.prepare()
    yield loaded
    await loaded.aclose()


async def asked(model: LlamaCppModel, said: str, file: str = "") -> tuple[str, list[Message]]:
    """The words of the answer, and the results of the tools that were used."""
    files = [str(SAMPLES / file)] if file else None
    agent = Assistant(list(TOOLS), model, files=files)
    transcript, results = Transcript(), list[Message]()
    async with aclosing(agent.stream([Message(USER, said)])) as events:
        async for event in events:
            transcript.apply(event)
            if isinstance(event, ToolFinished):
                results.append(event.message)
    return transcript.messages()[-1].get_text_content(), results


@in_both_languages
async def test_it_reckons_with_the_calculator(model: LlamaCppModel, lang: str) -> None:
    answer, results = await asked(model, question(CALCULATE, lang))
    assert [result.name for result in results] == ["calculator"]
    assert "15085" in answer.replace(",", "")


@in_both_languages
async def test_it_looks_up_the_time(model: LlamaCppModel, lang: str) -> None:
    answer, results = await asked(model, question(LOOK_UP, lang))
    assert [result.name for result in results] == ["current_time"]
    assert ":" in answer or "点" in answer


@pytest.mark.parametrize(
    ("said", "tool", "answer"),
    [
        (question(CALCULATE, "en"), "calculator", "15085"),
        (question(LOOK_UP, "zh"), "current_time", ":"),
        ("Hello!", "", "Hello"),
    ],
)
async def test_it_thinks_acts_and_answers_in_steps(model: LlamaCppModel, said: str, tool: str, answer: str) -> None:
    transcript = Transcript()
    async with aclosing(ReActChat(list(TOOLS), model).stream([Message(USER, said)])) as events:
        async for event in events:
            transcript.apply(event)
    reply = transcript.messages()
    assert [message.function_call.name for message in reply if message.function_call] == [tool] * bool(tool)
    assert reply[0].reasoning_content
    assert answer in reply[-1].get_text_content().replace(",", "")


@in_both_languages
async def test_it_answers_from_a_document_with_a_mark_and_says_how_soon_and_how(
    model: LlamaCppModel, lang: str
) -> None:
    answer, results = await asked(model, question(READ, lang), file_of(READ, lang))
    assert results
    assert (results[0].extra or {})["passages"]
    assert "[1]" in answer or "[2]" in answer
    assert [
        said for said in {"en": ["14 days", "telephone"], "zh": ["14 天", "电话"]}[lang] if said not in answer
    ] == []
    assert has_chinese(answer) == (lang == "zh")


@pytest.mark.parametrize(
    ("lang", "said"),
    [("en", ("12 May", "kettle", "lift", "Okafor")), ("zh", ("5 月 12 日", "一壶水", "电梯", "欧女士"))],
)
async def test_it_makes_a_letter_of_notes(model: LlamaCppModel, lang: str, said: tuple[str, ...]) -> None:
    file = file_of(WRITE, lang)
    answer, _ = await asked(model, question(WRITE, lang), file)
    assert [word for word in said if word not in answer] == []
    assert not answer.startswith("[")
    for copied in (file, "- ", "Task:", "任务", "Park School", "Lind", "家长", "林先生"):
        assert copied not in answer


@pytest.mark.parametrize("said", ["Who are you?", "你是谁？"])
async def test_it_knows_what_it_is(model: LlamaCppModel, said: str) -> None:
    answer, _ = await asked(model, said)
    assert "OpenAI" not in answer
    assert has_chinese(answer) == has_chinese(said)
