"""Tiny Transformers models with random weights: pictures, templates, turns, closing, and everything that is wrong."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest

from core.errors import ModelRefusedError, ModelServiceError, ParlourError, SettingsError
from core.llm.backends.transformers.model import TransformersModel
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import SYSTEM, USER, Message
from core.testing.tiny_models import seeing_model, writing_model

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STORY = Message(USER, "Write a very long story about a fox.")


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


async def test_a_thought_that_the_template_begins_is_reasoning(written: Path, tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}<think>{{ '\\n' }}"
    folder = damaged(written, tmp_path / "model", "chat_template.jinja", template.encode())
    model = TransformersModel({"model": str(folder), "threads": 1})
    kinds = {type(event) for event in await events_of(model, STORY, max_tokens=9)}
    assert kinds == {MessageStarted, ReasoningDelta, MessageFinished}
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

    monkeypatch.setattr("core.resources.psutil.virtual_memory", Memory)
    with pytest.raises(ParlourError) as caught:
        await TransformersModel({"model": str(written)}).prepare()
    assert caught.value.words_key == "model_no_memory"
