"""Models that run on this machine, for real: each is loaded once for all promises."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from core.llm.base import BaseChatModel
from core.llm.open_model import get_chat_model
from core.llm.weights import WeightStore
from core.llm.weights_catalog import DEFAULT, named
from core.settings import Settings
from core.testing.back_end import BackEnd

SERVICE = "there is no service that could fail or refuse"
LEFT_OUT = {
    "errors": SERVICE,
    "unreachable": SERVICE,
    "refusal": SERVICE,
    "reasoning": "this model does not think before it speaks",
    "three_calls": "models of this size make one call at a time",
}


@lru_cache
def _loaded(model_type: str, name: str) -> BaseChatModel:
    file = WeightStore(Settings.load().weights_dir).fetch(named(name))
    return get_chat_model({"model_type": model_type, "model": str(file), "threads": 1})


def _shared(settings: dict[str, Any]) -> BaseChatModel:
    model = _loaded(settings["model_type"], settings["model"])
    model.generate_cfg = {**model.generate_cfg, "temperature": 0, "max_tokens": 60, **settings["generate_cfg"]}
    return model


def _row(model_type: str) -> BackEnd:
    return BackEnd(
        f"{model_type}, for real",
        lambda _: {"model_type": model_type, "model": DEFAULT},
        scripted=False,
        native={},
        open=_shared,
        closes=False,
        leaves_out=LEFT_OUT,
        marks=("slow", "weights"),
    )


ROWS = [_row("llama_cpp"), _row("transformers")]
