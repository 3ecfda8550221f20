"""What makes two requests the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.llm.catalog import LLM_REGISTRY
from core.llm.open_model import get_chat_model
from core.llm.reply_store import cache_key, stored_name
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.testing.scripted_model import ScriptedModel

QUESTION = (Message(USER, "How is the weather?"),)


def key(messages: tuple[Message, ...] = QUESTION, functions: tuple[Any, ...] = (), lang: Any = "en", **more: Any):
    model = ScriptedModel("a")
    model.cfg = {"base_url": "https://one.example/v1", "api_key": "sk-one", **more.pop("cfg", {})}
    model.model = more.pop("model", "m")
    return cache_key(model, ChatRequest(messages, functions, more, lang), asyncio.run(model.account()))


FUNCTION_F = {"name": "f", "parameters": {"a": {}, "b": {}}}
CALL = {"name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    "other",
    [
        lambda: key((Message(USER, "How is the weather"),)),
        lambda: key((Message(USER, [ContentItem(text="How is the weather?")]),)),
        lambda: key((Message(USER, "How is the weather?", name="Ann"),)),
        lambda: key((*QUESTION, Message(ASSISTANT, "It"))),
        lambda: key((Message(USER, "How is the weather?", extra={"a": 1}),)),
        lambda: key(functions=(FUNCTION_F,)),
        lambda: key(temperature=0.5),
        lambda: key(seed=1),
        lambda: key(stop=["END"]),
        lambda: key(use_raw_api=True),
        lambda: key(lang="zh"),
        lambda: key(model="n"),
        lambda: key(cfg={"base_url": "https://two.example/v1"}),
        lambda: key(cfg={"api_key": "sk-two"}),
        lambda: key(cfg={"default_headers": {"X-Team": "b"}}),
    ],
)
def test_whatever_matters_makes_another_request(other: Callable[[], str | None]):
    assert other() is not None
    assert other() == other() != key()


def test_how_it_is_asked_makes_no_other_request():
    how = {"cache_dir": "/a", "cache_age": 5, "max_retries": 3, "request_timeout": 9, "turn_timeout": 9}
    assert key(**how) == key()
    assert key(temperature=1, top_p=0.5) == key(top_p=0.5, temperature=1)


def test_the_order_of_parameters_is_part_of_what_the_model_reads():
    turned = {"name": "f", "parameters": {"b": {}, "a": {}}}
    assert key(functions=(FUNCTION_F,)) != key(functions=(turned,))


def test_calls_and_results_count_with_their_ids():
    def asked(call_id: str):
        extra = {"function_id": call_id}
        return key(
            (*QUESTION, Message(ASSISTANT, "", function_call=CALL, extra=extra), Message(FUNCTION, "1", name="f"))
        )

    assert asked("a") != asked("b")


def test_a_picture_counts_by_what_is_in_it(tmp_path: Path):
    picture = tmp_path / "a picture.png"
    for address in (str(picture), picture.as_uri()):
        picture.write_bytes(b"sky")
        asked = (Message(USER, [ContentItem(image=address)]),)
        before = key(asked)
        assert before == key(asked)
        picture.write_bytes(b"sea")
        assert key(asked) != before
    assert key((Message(USER, [ContentItem(image="https://one.example/a.png")]),)) is not None
    assert key((Message(USER, [ContentItem(audio={"data": "…", "format": "wav"})]),)) is not None


def test_settings_without_a_fixed_form_are_not_cached():
    assert key(cfg={"hook": print}) is None


@pytest.mark.anyio
async def test_what_a_vendor_s_client_takes_from_its_variables_counts_too(monkeypatch: pytest.MonkeyPatch):
    marks: set[str] = set()
    for address in ("https://one.example/v1", "https://two.example/v1"):
        for secret in ("sk-one", "sk-two"):
            monkeypatch.setenv("OPENAI_BASE_URL", address)
            monkeypatch.setenv("OPENAI_API_KEY", secret)
            model = get_chat_model({"model": "m", "model_type": "openai"})
            marks.add(await model.account())
            assert model.service.address == address
            await model.aclose()
    assert len(marks) == 4


def test_the_key_tells_nothing_of_a_secret():
    made = key()
    assert made is not None
    assert len(made) == 64
    assert "sk-" not in made


@pytest.mark.parametrize(
    ("model_type", "name"),
    [
        ("openai", "core.llm.backends.openai.OpenAIModel"),
        ("openai_public", "core.llm.backends.openai_public.PublicOpenAIModel"),
        ("qwenvl_oai", "core.llm.backends.openai_qwen.VisionModel"),
        ("qwenomni_oai", "core.llm.backends.openai_qwen.OmniModel"),
        ("azure", "core.llm.backends.azure.AzureModel"),
        ("qwen_dashscope", "core.llm.backends.dashscope.DashScopeModel"),
        ("qwenvl_dashscope", "core.llm.backends.dashscope.DashScopeVisionModel"),
        ("qwenaudio_dashscope", "core.llm.backends.dashscope.DashScopeAudioModel"),
        ("llama_cpp", "core.llm.backends.llama_cpp.LlamaCppModel"),
        ("transformers", "core.llm.backends.transformers.TransformersModel"),
    ],
)
def test_a_stored_reply_is_found_wherever_its_models_class_has_moved(model_type: str, name: str) -> None:
    assert stored_name(LLM_REGISTRY[model_type]) == name
