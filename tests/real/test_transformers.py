"""Transformers for real: the smallest model from its GGUF file, and tiny models with random weights made here."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from core.errors import ContextTooLongError, ModelRefusedError, ModelServiceError, ParlourError, SettingsError
from core.llm.backends.transformers import TransformersModel
from core.llm.request import ChatRequest
from core.llm.weights import WeightStore
from core.llm.weights_catalog import SMALLEST, named
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, SYSTEM, USER, Message
from core.settings import Settings
from core.testing.tiny_models import seeing_model, writing_model

pytestmark = [pytest.mark.anyio, pytest.mark.weights, pytest.mark.slow]

STORY = Message(USER, "Write a very long story about a fox.")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def model(anyio_backend: str) -> AsyncIterator[TransformersModel]:
    file = WeightStore(Settings.load().weights_dir).fetch(named(SMALLEST))
    loaded = TransformersModel({"model": str(file), "threads": 1, "generate_cfg": {"temperature": 0}})
    await loaded.prepare()
    yield loaded
    await loaded.aclose()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that writes nonsense, quickly."""
    return writing_model(tmp_path_factory.mktemp("writes"))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that writes nonsense about pictures."""
    return seeing_model(tmp_path_factory.mktemp("sees"))


async def events_of(model: TransformersModel, *messages: Message, **generate: object) -> list[Event]:
    async with aclosing(model.stream(ChatRequest(messages, generate=generate))) as stream:
        return [event async for event in stream]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def last(events: list[Event]) -> MessageFinished:
    assert isinstance(events[-1], MessageFinished)
    return events[-1]


# -- the smallest real model ------------------------------------------------------------------------------------------


async def test_it_answers_piece_by_piece(model: TransformersModel) -> None:
    events = await events_of(model, Message(USER, "Say hello."), max_tokens=12)
    assert events[0] == MessageStarted()
    assert "hello" in text_of(events).lower()
    assert sum(isinstance(event, TextDelta) for event in events) > 3


async def test_tokens_are_counted_exactly(model: TransformersModel) -> None:
    finished = last(await events_of(model, STORY, max_tokens=7))
    prompt = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    asked = last(await events_of(model, Message(SYSTEM, "Be brief."), Message(USER, "Hi"), max_tokens=1))
    assert (finished.reason, finished.usage and finished.usage.completion_tokens) == ("length", 7)
    assert asked.usage
    assert (asked.usage.prompt_tokens, asked.usage.estimated) == (model.count_tokens(prompt), False)


async def test_it_ends_by_itself_and_before_a_word_to_stop_at(model: TransformersModel) -> None:
    whole = await events_of(model, Message(USER, "Say hello."), max_tokens=100)
    word = text_of(whole).split()[3]
    cut = await events_of(model, Message(USER, "Say hello."), max_tokens=100, stop=[word])
    assert last(whole).reason == last(cut).reason == "stop"
    assert text_of(cut) == text_of(whole)[: text_of(whole).index(word)]
    assert "<|im_end|>" not in text_of(whole)


async def test_an_answer_that_was_begun_is_gone_on_with(model: TransformersModel) -> None:
    begun = [Message(USER, "What is the capital of France?"), Message(ASSISTANT, "The capital of France is")]
    assert text_of(await events_of(model, *begun, max_tokens=4)).startswith(" Paris")


async def test_the_same_seed_gives_the_same_answer(model: TransformersModel) -> None:
    drawn = [
        text_of(await events_of(model, STORY, max_tokens=12, temperature=1.0, top_p=0.95, seed=seed))
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


async def test_leaving_takes_no_time_even_while_a_long_question_is_read(model: TransformersModel) -> None:
    long = Message(USER, "The fox runs. " * 1000)
    stream = model.stream(ChatRequest((long,), generate={"max_tokens": 500}))
    assert await anext(stream) == MessageStarted()
    reading = asyncio.ensure_future(anext(stream))
    await asyncio.wait([reading], timeout=0.5)
    assert not reading.done()
    started = time.monotonic()
    reading.cancel()
    await asyncio.wait([reading])
    await stream.aclose()
    assert time.monotonic() - started < 0.1
    await events_of(model, Message(USER, "Say ok."), max_tokens=1)
    assert time.monotonic() - started < 5  # reading it to the end would take far longer


async def test_a_question_beyond_the_context_is_refused_by_name(model: TransformersModel) -> None:
    with pytest.raises(ContextTooLongError):
        await events_of(model, Message(USER, "fox " * 9000), max_input_tokens=0)


async def test_a_setting_that_nobody_knows_is_refused_by_name(model: TransformersModel) -> None:
    with pytest.raises(ModelRefusedError, match="wizardry"):
        await events_of(model, STORY, wizardry=1)


# -- tiny models ------------------------------------------------------------------------------------------------------


async def test_questions_are_answered_in_turn_and_after_closing_again(written: Path) -> None:
    model = TransformersModel({"model": str(written), "threads": 1})
    replies = await asyncio.gather(*(events_of(model, STORY, max_tokens=5) for _ in range(3)))
    assert [len(events) > 1 and last(events).reason for events in replies] == ["length"] * 3
    await model.aclose()
    assert not model.is_ready
    assert last(await events_of(model, STORY, max_tokens=2)).reason == "length"
    await model.aclose()


async def test_closing_ends_the_answers_that_are_being_written(written: Path) -> None:
    model = TransformersModel({"model": str(written), "threads": 1})
    stream = model.stream(ChatRequest((STORY,), generate={"max_tokens": 400}))
    assert await anext(stream) == MessageStarted()
    await anext(stream)
    await model.aclose()
    with pytest.raises(ModelServiceError, match="closed"):
        async for _ in stream:
            pass


async def test_a_model_without_a_chat_template_takes_turns_all_the_same(written: Path, tmp_path: Path) -> None:
    folder = damaged(written, tmp_path / "model", "chat_template.jinja", None)
    model = TransformersModel({"model": str(folder), "threads": 1})
    usage = last(await events_of(model, Message(SYSTEM, "S"), Message(USER, "Hi"), max_tokens=1)).usage
    turns = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert usage
    assert usage.prompt_tokens == model.count_tokens(turns)
    await model.aclose()


async def test_a_template_that_knows_no_system_gets_it_with_the_question(written: Path, tmp_path: Path) -> None:
    template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    )
    folder = damaged(written, tmp_path / "model", "chat_template.jinja", template.encode())
    model = TransformersModel({"model": str(folder), "threads": 1})
    usage = last(await events_of(model, Message(SYSTEM, "S"), Message(USER, "Hi"), max_tokens=1)).usage
    assert usage
    assert usage.prompt_tokens == model.count_tokens("[user]S\n\nHi")
    await model.aclose()


async def test_pictures_are_seen(seen: Path, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 30), "red").save(tmp_path / "red.png")
    Image.new("RGB", (40, 30), "blue").save(tmp_path / "blue.png")
    generate = {"temperature": 0, "max_tokens": 6, "max_input_tokens": 0}
    model = TransformersModel({"model": str(seen), "threads": 1, "generate_cfg": generate})
    assert model.support_multimodal_input

    async def asked(*content: ContentItem) -> tuple[str, int]:
        events = await events_of(model, Message(SYSTEM, "S"), Message(USER, list(content)))
        usage = last(events).usage
        assert usage
        return text_of(events), usage.prompt_tokens

    question = ContentItem(text="What is it?")
    words, without = await asked(question)
    red, one = await asked(ContentItem(image=str(tmp_path / "red.png")), question)
    blue, two = await asked(*[ContentItem(image=str(tmp_path / "blue.png"))] * 2, question)
    assert words
    assert red != blue
    assert (one - without, two - one) == (4, 4)  # the four patches of each picture
    with pytest.raises(ModelRefusedError):
        await asked(ContentItem(image=str(seen / "config.json")), question)
    await model.aclose()


async def test_a_model_that_sees_can_be_told_not_to(seen: Path) -> None:
    model = TransformersModel({"model": str(seen), "vision": False})
    with pytest.raises(ModelServiceError) as caught:  # this one has no blind form
        await model.prepare()
    assert caught.value.words_key == "model_not_loaded"


# -- what is wrong is told, and the process lives on ------------------------------------------------------------------


def damaged(source: Path, target: Path, name: str, content: bytes | None) -> Path:
    target.mkdir(exist_ok=True)
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    if content is None:
        (target / name).unlink()
    else:
        (target / name).write_bytes(content)
    return target


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", None),
        ("model.safetensors", b""),
        ("model.safetensors", b"no weights at all, only words"),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"no json"),
        ("config.json", b"no json"),
        ("config.json", b"[]"),
        ("config.json", b'{"model_type": "of_tomorrow"}'),
        ("config.json", b'{"model_type": "llama", "hidden_size": "wide"}'),
    ],
)
async def test_a_damaged_folder_is_one_named_error_with_a_hint(
    written: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    folder = damaged(written, tmp_path / "model", name, content)
    with pytest.raises(ModelServiceError, match="model") as caught:
        await TransformersModel({"model": str(folder)}).prepare()
    assert caught.value.words_key == "model_not_loaded"
    assert caught.value.hint


async def test_weights_that_are_cut_off_are_told(written: Path, tmp_path: Path) -> None:
    half = (written / "model.safetensors").read_bytes()[:-100]
    folder = damaged(written, tmp_path / "model", "model.safetensors", half)
    with pytest.raises(ModelServiceError) as caught:
        await TransformersModel({"model": str(folder)}).prepare()
    assert caught.value.words_key == "model_not_loaded"


async def test_code_of_a_models_own_runs_only_where_it_is_trusted(written: Path, tmp_path: Path) -> None:
    config = json.loads((written / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.OwnModel"}}
    folder = damaged(written, tmp_path / "model", "config.json", json.dumps(config).encode())
    (folder / "own.py").write_text("raise SystemExit('this code ran')")
    with pytest.raises(SettingsError, match="code of its own"):
        await TransformersModel({"model": str(folder)}).prepare()


@pytest.mark.parametrize("device", ["cuda:99", "quantum"])
async def test_a_device_that_is_not_here_is_told(written: Path, device: str) -> None:
    with pytest.raises(SettingsError, match=device) as caught:
        await TransformersModel({"model": str(written), "device": device}).prepare()
    assert caught.value.hint


async def test_a_model_larger_than_memory_is_not_begun(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 1000

    monkeypatch.setattr("core.llm.backends.transformers_load.psutil.virtual_memory", Memory)
    with pytest.raises(ParlourError) as caught:
        await TransformersModel({"model": str(written)}).prepare()
    assert caught.value.words_key == "model_no_memory"
