"""The OpenAI back end against a server that nobody wrote for it: llama.cpp's own, with a real model."""

from __future__ import annotations

import atexit
from functools import lru_cache
from importlib import import_module
from typing import Any

from core.llm.weights import WeightStore
from core.llm.weights_catalog import DEFAULT, named
from core.settings import Settings
from core.testing.back_end import WORD_FOR_WORD, BackEnd
from core.testing.model_server import ModelServer

SERVICE = "the server fails when it likes, not when a test wants it"
LEFT_OUT = {
    "errors": SERVICE,
    "unreachable": SERVICE,
    "refusal": SERVICE,
}
ONE_CHOICE = {"three_calls": "its grammar leaves room for one call; the row with tools in the prompt keeps it"}
KEY = "sk-test-0123456789"


@lru_cache
def _running() -> Any:
    """The server, over HTTP, started once for all promises."""
    llama: Any = import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = str(WeightStore(Settings.load().weights_dir).fetch(named(DEFAULT)))
    params.n_ctx, params.n_parallel, params.n_threads_http = 4096, 1, 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # two would wait for each other on a busy machine
    params.api_keys, params.verbosity, params.warmup = [KEY], -1, False
    atexit.register(_running.cache_clear)  # it must be gone before the interpreter is
    return llama.Server(params)


def _settings(_: ModelServer) -> dict[str, Any]:
    generate = {"temperature": 0, "max_tokens": 40}
    address = f"{_running().listening_address}/v1"
    return {"model": "m", "model_type": "openai", "base_url": address, "api_key": KEY, "generate_cfg": generate}


ABOVE = "the row above keeps it, by the same way"
SAME: dict[str, str] = dict.fromkeys(
    ("text", "reasoning", "usage", "stop", "close", "picture", "no_picture", "next_question"), ABOVE
)


def _row(name: str, leaves_out: dict[str, str], **native: Any) -> BackEnd:
    return BackEnd(
        name,
        _settings,
        scripted=False,
        native=native,
        leaves_out={**LEFT_OUT, **leaves_out},
        questions=WORD_FOR_WORD,
        marks=("slow", "weights"),
    )


ROWS = [
    _row("openai, llama.cpp's own server", ONE_CHOICE, use_raw_api=True),
    _row(
        "openai, llama.cpp's own server, tools in the prompt",
        SAME,
        use_raw_api=False,
        fncall_prompt_type="nous",
        max_tokens=160,
        repeat_penalty=1.1,
        repeat_last_n=128,
    ),
]
