"""A walk-through of three rounds over a database, and what the real server of it was recorded to say."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, TypeAlias

from core.agents.basic import FnCallAgent
from core.llm.telemetry import ModelCall
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel

HERE = Path(__file__).parent
RECORD = HERE / "records" / "mcp_sqlite_server.json"
SERVER: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
STAGES: dict[str, list[dict[str, Any]]] = json.loads((HERE / "records" / "sqlite_walkthrough.json").read_text("utf-8"))
STEPS = list(dict.fromkeys(stage.rpartition(".")[0] for stage in STAGES))
ROUNDS = {step: step.partition(".")[0] for step in STEPS}
TABLES = """
CREATE TABLE students (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, age INTEGER NOT NULL);
CREATE TABLE log (id INTEGER PRIMARY KEY, action TEXT, timestamp DATETIME DEFAULT CURRENT_TIMESTAMP);
INSERT INTO students (name, age) VALUES ('李雷', 7), ('韩梅梅', 6);
INSERT INTO log (action) VALUES ('建表');
"""

Said: TypeAlias = "tuple[str, str, str, str, str]"


def said(message: dict[str, Any]) -> Said:
    """Role, speaker, text and call of a message; how the text is cut into items is the recorder's."""
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(item["text"] for item in content)
    call = message.get("function_call") or {"name": "", "arguments": ""}
    return message["role"], message.get("name") or "", text, call["name"], call["arguments"]


def nameless(message: dict[str, Any]) -> Said:
    """The same without the speaker: a model is not told of it, and does not tell it."""
    return said({**message, "name": None})


def dumped(messages: Any) -> list[dict[str, Any]]:
    return [message.model_dump() for message in messages]


def recorded_text(stage: str) -> str:
    [message] = STAGES[stage]
    return message["content"]


def made_database(path: Path) -> Path:
    """The database that the walk goes over."""
    with sqlite3.connect(path) as database:
        database.executescript(TABLES)
    database.close()
    return path


def walked(agent: FnCallAgent) -> list[list[Message]]:
    """The replies of the three rounds; each round is asked with all that was said before.

    Between the second and the third a question about the tables was not recorded step by step: what was said then
    stands in the third round's input, and is taken from there.
    """
    history: list[Message] = []
    replies: list[list[Message]] = []
    for number in dict.fromkeys(ROUNDS.values()):
        recorded = STAGES[f"{number}.step1.input"][1:]
        history += [Message(**message) for message in recorded[len(history) :]]
        replies.append(agent.run_nonstream(history))
        history += replies[-1]
    return replies


def check_walk(server: dict[str, Any]) -> None:
    """All 26 recorded stages, message for message, with the tools and results of this server."""
    servers = {"mcpServers": {"sqlite": server}}
    model = ScriptedModel(*(recorded_text(f"{step}.model_output") for step in STEPS), native=False)
    calls: list[ModelCall] = []
    model.on_call(calls.append)
    system = STAGES[f"{STEPS[0]}.input"][0]["content"]
    replies = walked(FnCallAgent([servers], model, system, name="数据库助手"))
    assert len(calls) == len(STEPS)
    stages = 0
    for step, call in zip(STEPS, calls, strict=True):
        happened = {
            "input": [said(message) for message in dumped(call.given.messages)],
            "model_input": [nameless(message) for message in dumped(call.sent.messages)],
            "model_output": [nameless(message) for message in dumped(call.raw)],
            "output": [nameless(message) for message in dumped(call.parsed)],
        }
        for stage, messages in happened.items():
            recorded = STAGES.get(f"{step}.{stage}")
            if recorded is not None:  # what the model was sent in the last two steps was not written down
                stages += 1
                assert messages == [said(message) for message in recorded], f"{step}.{stage}"
    assert stages == len(STAGES) == 26
    assert replies[-1][-1].get_text_content() == recorded_text(f"{STEPS[-1]}.model_output")
    results = [reply for reply in replies[-1] if reply.role == "function"]
    assert [result.content for result in results] == ["[{'age': 6}]", "[{'affected_rows': 1}]"]
