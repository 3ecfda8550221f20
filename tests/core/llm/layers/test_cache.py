"""The same request, answered again from the disk."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.errors import SettingsError
from core.llm.base import BaseChatModel
from core.llm.reply_store import ReplyStore
from core.llm.request import ChatRequest
from core.llm.telemetry import ModelCall
from core.messages.events import (
    Event,
    MessageFinished,
    MessageStarted,
    TextDelta,
)
from core.messages.message import USER, Message, Usage
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

QUESTION = (Message(USER, "How is the weather?"),)
LONG = "It is sunny, " * 40


async def reply(model: BaseChatModel, messages: tuple[Message, ...] = QUESTION, **generate: Any) -> list[Event]:
    async with aclosing(model.stream(ChatRequest(messages, generate=generate))) as events:
        return [event async for event in events]


def text_of(events: list[Event]) -> str:
    return "".join(message.get_text_content() for message in Transcript(events).messages())


def counting(*turns: Any) -> ScriptedModel:
    return ScriptedModel(*(turns or (Reply(text="one", usage=(5, 1)), Reply(text="two", usage=(5, 1)), "three")))


async def test_the_same_request_gets_the_same_answer_streamed_again_and_paid_once(tmp_path: Path):
    model = counting(Reply(reasoning="Hm.", text=LONG, calls=[("f", {"a": 1})], usage=(5, 7)), "another")
    calls: list[ModelCall] = []
    model.on_call(calls.append)
    first = await reply(model, cache_dir=str(tmp_path))
    again = await reply(model, cache_dir=str(tmp_path))
    assert Transcript(again).messages() == Transcript(first).messages()
    assert sum(isinstance(event, TextDelta) for event in again) > 5
    assert len(model.requests) == 1
    assert [call.cache_hit for call in calls] == [False, True]
    assert calls[1].raw == calls[0].raw
    assert calls[1].usage == Usage(prompt_tokens=5, completion_tokens=7, total_tokens=12, cost=0.0)


async def test_a_cache_dir_beside_generate_cfg_counts_too(tmp_path: Path):
    model = ScriptedModel({"script": ["one", "two"], "cache_dir": str(tmp_path)})
    assert [text_of(await reply(model)) for _ in range(2)] == ["one", "one"]


async def test_without_a_folder_nothing_is_kept(tmp_path: Path):
    model = counting()
    assert [text_of(await reply(model)) for _ in range(2)] == ["one", "two"]
    assert list(tmp_path.iterdir()) == []


async def test_a_reply_that_failed_or_was_left_is_not_kept(tmp_path: Path):
    half = (MessageStarted(), TextDelta("half"))
    filtered = (*half, MessageFinished("content_filter"))
    empty = (MessageStarted(), MessageFinished("stop"))
    model = counting(half, RuntimeError("broken"), filtered, empty, "a whole one", "another")
    await reply(model, cache_dir=tmp_path)
    with pytest.raises(RuntimeError):
        await reply(model, cache_dir=tmp_path)
    for _ in range(2):
        await reply(model, cache_dir=tmp_path)
    async with aclosing(model.stream(ChatRequest(QUESTION, generate={"cache_dir": tmp_path}))) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert text_of(await reply(model, cache_dir=tmp_path)) == "another"


@pytest.mark.parametrize(
    "wrong", [{"cache_dir": 7}, {"cache_size": -1}, {"cache_size": "inf"}, {"cache_age": "soon"}, {"cache_age": 0}]
)
async def test_a_wrong_setting_is_named(tmp_path: Path, wrong: dict[str, Any]):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        await reply(counting(), **{"cache_dir": tmp_path, **wrong})


async def test_what_is_too_old_is_asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = counting()
    await reply(model, cache_dir=tmp_path, cache_age=100)
    now = __import__("time").time()
    monkeypatch.setattr("core.llm.reply_store.time.time", lambda: now + 50)
    assert text_of(await reply(model, cache_dir=tmp_path, cache_age=100)) == "one"
    assert text_of(await reply(model, cache_dir=tmp_path, cache_age=40)) == "two"
    monkeypatch.setattr("core.llm.reply_store.time.time", lambda: now + 1000)
    assert text_of(await reply(model, cache_dir=tmp_path, cache_age=100)) == "three"


def test_the_folder_stays_within_its_size_and_the_oldest_go_first(tmp_path: Path):
    store = ReplyStore(tmp_path, 400_000)
    for number in range(200):
        store.keep(f"key {number}", "x" * 10_000, 1000)
    assert store.find("key 0", 1000) is None
    assert store.find("key 199", 1000) == "x" * 10_000
    assert sum(file.stat().st_size for file in (tmp_path / "replies").glob("cache.db")) < 1_000_000


def test_the_folder_is_open_to_its_user_alone(tmp_path: Path):
    (tmp_path / "replies").mkdir(mode=0o755)
    ReplyStore(tmp_path, 1000).keep("k", 1, 10)
    assert (tmp_path / "replies").stat().st_mode & 0o777 == 0o700


# -- what others may do to the folder ----------------------------------------------------------------------------------


class _Harm:
    """Runs when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def rewrite(folder: Path, **columns: Any) -> None:
    """What somebody who can write into the folder may do to the rows."""
    with sqlite3.connect(folder / "replies" / "cache.db") as table:
        names = ", ".join(f"{name} = ?" for name in columns)
        assert table.execute(f"UPDATE Cache SET {names}", tuple(columns.values())).rowcount == 1
    table.close()


@pytest.mark.parametrize("kind", ["pickle", "pickle in a file", "another file", "no JSON", "other JSON", "bytes"])
async def test_a_row_that_is_none_of_ours_is_a_miss_and_runs_nothing(tmp_path: Path, kind: str):
    model, harmed = counting(), tmp_path / "harmed"
    await reply(model, cache_dir=tmp_path)
    harm = pickle.dumps(_Harm(harmed))
    (tmp_path / "replies" / "harm.val").write_bytes(harm)
    (tmp_path / "precious").write_text('{"at": 1, "reply": {}}')
    rewrite(
        tmp_path,
        **{
            "pickle": {"mode": 4, "value": harm},
            "pickle in a file": {"mode": 4, "value": None, "filename": "harm.val"},
            "another file": {"mode": 3, "value": None, "filename": "../precious"},
            "no JSON": {"value": "{"},
            "other JSON": {"value": '{"at": 1e12, "reply": {"form": 1}}'},
            "bytes": {"value": b"{}"},
        }[kind],
    )
    assert text_of(await reply(model, cache_dir=tmp_path)) == "two"
    assert not harmed.exists()
    assert (tmp_path / "precious").exists()
    assert text_of(await reply(model, cache_dir=tmp_path)) == "two", "the row is ours again"


async def test_a_file_damaged_beyond_use_is_begun_anew(tmp_path: Path):
    (tmp_path / "replies").mkdir()
    (tmp_path / "replies" / "cache.db").write_bytes(b"no database at all" * 100)
    model = counting()
    assert [text_of(await reply(model, cache_dir=tmp_path)) for _ in range(3)] == ["one"] * 3


async def test_a_folder_that_cannot_be_made_costs_the_cache_and_not_the_answer(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    model = counting()
    assert [text_of(await reply(model, cache_dir=tmp_path / "file")) for _ in range(2)] == ["one", "two"]


# -- many at once -----------------------------------------------------------------------------------------------------


def test_many_threads_share_a_folder(tmp_path: Path):
    store, wrong = ReplyStore(tmp_path, 10**8), []

    def work(number: int) -> None:
        for turn in range(20):
            store.keep(f"key {turn}", {"turn": turn}, 1000)
            found = store.find(f"key {turn}", 1000)
            if found != {"turn": turn}:
                wrong.append((number, turn, found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


PROGRAM = """
import json, sys
from core.llm.open_model import get_chat_model
model = get_chat_model({"model_type": "scripted", "cache_dir": sys.argv[1]})
hits = []
model.on_call(lambda call: hits.append(call.cache_hit))
sys.stdin.readline()  # all begin together
said = [model.quick_chat(f"question {number % 5}") for number in range(25)]
print(json.dumps([said, hits]))
"""


def test_many_processes_share_a_folder_from_its_first_moment_on(tmp_path: Path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(4)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert [errors for _, errors in results] == [""] * 4
    later = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True)
    whole = [json.loads(printed) for printed, _ in [*results, (later.stdout, "")]]
    for said, hits in whole:
        assert said == [f"You said: question {number % 5}" for number in range(25)]
        assert all(hits[5:]), "what a process has asked it finds again"
    assert all(whole[-1][1]), "one that comes later finds everything"
