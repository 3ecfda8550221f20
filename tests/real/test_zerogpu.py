"""ZeroGPU with the platform's own package and torch, on this machine: the platform's service is a server on 127.0.0.1.

There is no GPU here, and torch may be its build for processors alone: the model is told to stay on the processor, and
what would touch a GPU in the new process is left out. That weights are put on the GPU that torch makes believe, and
leave memory for the disk, is tried for real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.testing.tiny_models import writing_model
from tests.zerogpu_api import ZeroGpuApi, zero_gpu_api

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
# In a process of its own: the package reads the environment when it is imported, and changes torch for good.
BEGIN = """
import asyncio, json, sys, threading
from contextlib import aclosing
import torch
from core.errors import ParlourError
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.llm.visitors import came
from core.messages.message import Message

if torch.version.cuda is None:  # what the package looks for in the platform's build
    torch.version.cuda, torch._C._cuda_init, torch.cuda._is_in_bad_fork = "12.8", bool, bool

def asked(tokens):
    return ChatRequest((Message("user", "Hi"),), generate={"max_tokens": tokens})

async def written(model, tokens):
    try:
        async with aclosing(model.stream(asked(tokens))) as events:
            return [event.model_dump() if hasattr(event, "model_dump") else event.kind async for event in events]
    except ParlourError as error:
        return [error.words_key, str(error)]

def say(**what):
    print("told " + json.dumps(what), flush=True)

def without_gpu():
    import spaces.zero.torch as hardware
    hardware.init = lambda uuid: None
    hardware.move = lambda callback=None: None
"""
REPLIES = """
async def main():
    model = get_chat_model({"model_type": "zerogpu", "model": sys.argv[1], "device": "cpu", "threads": 1, "at_once": 1})
    await model.prepare()
    without_gpu()
    came("ann", "aaa.e30.bbb")
    for _ in range(4):
        say(reply=await written(model, 12))
    events = model.stream(asked(480))
    async for event in events:
        if event.kind == "text_delta":
            break
    await events.aclose()
    say(reply=await written(model, 3))  # the one thread is free again: the GPU was given back
    waiting = asyncio.ensure_future(written(model, 12))
    await asyncio.to_thread(sys.stdin.readline)  # it waits in the platform's queue
    waiting.cancel()
    await asyncio.wait({waiting})
    await model.aclose()
    say(closed=True)

asyncio.run(main())
"""
EMULATED = """
async def main():
    model = get_chat_model({"model_type": "zerogpu", "model": sys.argv[1], "threads": 1})
    await model.prepare()
    import spaces.zero.torch.patching as hardware
    say(packed=[pack.total_size for pack in hardware.tensor_packs], left=hardware._total_unpacked_size())
    say(reply=await written(model, 12))
    await model.aclose()

asyncio.run(main())
"""
SAID = "said"  # the file with what such a process says of its trouble


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return writing_model(tmp_path_factory.mktemp("writes"))


@pytest.fixture
def api() -> Iterator[ZeroGpuApi]:
    with zero_gpu_api() as made:
        yield made


@contextmanager
def begun(program: str, folder: Path, home: Path, api: ZeroGpuApi) -> Iterator[subprocess.Popen[str]]:
    zero = {"SPACES_ZERO_GPU": "true", "SPACES_ZERO_DEVICE_API_URL": api.address, "HOME": str(home)}
    with (
        (home / SAID).open("w") as said,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", BEGIN + program, str(folder)],
            cwd=ROOT,
            env={**os.environ, **zero, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def told(out: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("told ")) for line in out.splitlines() if line.startswith("told ")]


def test_replies_are_written_by_processes_that_borrow_a_gpu_and_give_it_back(
    folder: Path, tmp_path: Path, api: ZeroGpuApi
) -> None:
    api.answers = ["gpu", {"left": 12, "wait": 12_000}, "full", "gpu", "gpu", "gpu", "queue"]
    with begun(REPLIES, folder, tmp_path, api) as process:
        began = time.monotonic()
        while not api.waits.wait(0.5):
            assert process.poll() is None, (tmp_path / SAID).read_text("utf-8")
            assert time.monotonic() < began + 300
        out, _ = process.communicate("go on\n", timeout=60)
    first, quota, full, again, after, closed = told(out)
    assert first["reply"][0] == "message_started"
    assert first["reply"][-1] == "message_finished"
    assert first == again
    assert quota["reply"][0] == "gpu_quota"
    assert quota["reply"][1].endswith("Try again in 3:20:00.")
    assert full["reply"][0] == "gpu_busy"
    assert after["reply"][-1] == "message_finished"
    assert closed == {"closed": True}
    scheduled = api.of("/schedule")
    assert {one["token"] for one in scheduled} == {"aaa.e30.bbb"}
    assert [one["durationSeconds"] for one in scheduled] == ["6", "6", "6", "6", "22", "6", "6"]
    assert api.paths()[:4] == ["/startup-report", "/schedule", "/allow", "/release"]
    assert [one["fail"] for one in api.of("/release")] == ["false"] * 4
    assert len({one["pid"] for one in api.of("/allow")}) == 4


def test_weights_go_to_the_gpu_that_torch_makes_believe_and_from_memory_to_the_disk(
    folder: Path, tmp_path: Path, api: ZeroGpuApi
) -> None:
    with begun(EMULATED, folder, tmp_path, api) as process:
        out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, (tmp_path / SAID).read_text("utf-8")
    packed, reply = told(out)
    assert packed["left"] == 0
    assert sum(packed["packed"]) > 100_000
    (file,) = (tmp_path / ".zerogpu" / "tensors").iterdir()
    assert file.stat().st_size >= sum(packed["packed"])  # in whole pages
    assert api.paths()[:3] == ["/startup-report", "/schedule", "/allow"]
    assert reply["reply"][0] == "model_failed"  # this machine has no driver for a real one
