"""Models that run on this machine, for real: each is loaded once for all promises."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from core.llm.base import BaseChatModel
from core.llm.open_model import get_chat_model
from core.llm.weights import WeightStore
from core.llm.weights_catalog import DEFAULT, named
from core.settings import Settings
from core.testing.back_end import WORD_FOR_WORD, BackEnd

SERVICE = "there is no service that could fail or refuse"
LEFT_OUT = {
    "errors": SERVICE,
    "unreachable": SERVICE,
    "refusal": SERVICE,
}
ONE_CHOICE = {"three_calls": "what it is told of tools asks for one choice; the row with tools in the prompt keeps it"}
NOT_TRIED: dict[str, str] = dict.fromkeys(
    ("reasoning", "three_calls"), "the same weights keep it in llama.cpp; not tried here"
)
ABOVE = "the row of the same model without that keeps it, by the same way"
SAME: dict[str, str] = dict.fromkeys(
    ("text", "reasoning", "one_call", "usage", "stop", "close", "picture", "no_picture", "next_question"), ABOVE
)


@lru_cache
def _loaded(model_type: str, name: str) -> BaseChatModel:
    file = WeightStore(Settings.load().weights_dir).fetch(named(name))
    return get_chat_model({"model_type": model_type, "model": str(file), "threads": 1})


def _shared(settings: dict[str, Any]) -> BaseChatModel:
    model = _loaded(settings["model_type"], settings["model"])
    model.generate_cfg = {"temperature": 0, "max_tokens": 60, **settings["generate_cfg"]}
    return model


def _row(model_type: str, what: str, leaves_out: dict[str, str], **native: Any) -> BackEnd:
    return BackEnd(
        f"{model_type}, {what}",
        lambda _: {"model_type": model_type, "model": DEFAULT},
        scripted=False,
        native=native,
        open=_shared,
        closes=False,
        leaves_out={**LEFT_OUT, **leaves_out},
        questions=WORD_FOR_WORD,
        marks=("slow", "weights"),
    )


ROWS = [
    _row("llama_cpp", "for real", ONE_CHOICE),
    _row("llama_cpp", "for real, tools in the prompt", SAME, fncall_prompt_type="nous", max_tokens=160),
    _row("transformers", "for real", NOT_TRIED),
]
