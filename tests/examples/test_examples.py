"""Each example runs, with a scripted model; what it shows is what comes out."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import wave
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from core import FnCallAgent
from core.llm.request import ChatRequest
from core.mcp.pool import MCPManager
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.sandbox import kernels as own_kernels
from core.tools.sandbox.results import CodeResult
from tests.golden.walk import HERE, RECORD, made_database

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
MOST_LINES = 40


def example(name: str) -> Any:
    """The example as a module, fresh."""
    spec = spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def no_server_stays() -> Iterator[None]:
    yield
    MCPManager.shared().close()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_is_listed_and_has_a_test(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    assert len(text.splitlines()) < MOST_LINES
    assert f"[{name}.py]({name}.py)" in (FOLDER / "README.md").read_text("utf-8")
    assert f'example("{name}")' in Path(__file__).read_text("utf-8")


def test_the_list_names_no_example_that_is_not_there() -> None:
    listed = re.findall(r"\]\((\w+)\.py\)", (FOLDER / "README.md").read_text("utf-8"))
    assert sorted(listed) == EXAMPLES


def test_custom_tool() -> None:
    model = ScriptedModel(Reply(calls=[("price", {"thing": "tea"}), ("opening_hours", {"day": "Monday"})]), _results)
    said = example("custom_tool").main(model)
    assert said == '{"tea": 3.5}|closed'


def test_document_qa(capsys: pytest.CaptureFixture[str]) -> None:
    said = example("document_qa").main(ScriptedModel("It is 500 [1]."))
    assert said == "It is 500 [1]."
    assert "[1] policy.pdf, page " in capsys.readouterr().out


def test_database_assistant(tmp_path: Path) -> None:
    database = made_database(tmp_path / "school.db")
    server = {"command": sys.executable, "args": [str(HERE / "sqlite_server.py"), str(RECORD), str(database)]}
    model = ScriptedModel(Reply(calls=[("sqlite-list_tables", {})]), _results, "Created.")
    answers = example("database_assistant").main(model, server)
    assert "students" in answers[0]
    assert answers[1] == "Created."


def test_parallel_calls() -> None:
    cities = ("Paris", "Rome", "上海")
    model = ScriptedModel(Reply(calls=[("temperature", {"city": city}) for city in cities]), _results)
    module, all_there = example("parallel_calls"), threading.Barrier(len(cities))
    module.time = SimpleNamespace(sleep=lambda _: all_there.wait(20), monotonic=time.monotonic)
    said, calls, _ = module.main(model)
    assert (said, calls) == ("15 °C|14 °C|12 °C", 3), "one after the other, none of them would ever end"


def test_react_data_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code and the file reach the sandbox; what that does with them has tests of its own."""
    handed: list[tuple[str, str]] = []

    async def run_here(key: str, code: str, files: dict[str, Path], *_: Any) -> CodeResult:
        handed.append((code, files["sales.csv"].read_text("utf-8")))
        return CodeResult("20.0")

    monkeypatch.setattr(own_kernels, "run_here", run_here)
    code = "import pandas as pd\npd.read_csv('sales.csv')['sold'].mean()"
    steps = [
        f"Thought: I compute it.\nAction: code_interpreter\nAction Input: {json.dumps({'code': code})}",
        "Thought: I know it.\nFinal Answer: It is 20.",
    ]
    module = example("react_data_analysis")
    reply = module.main(ScriptedModel(*steps))
    assert handed == [(code, module.ROWS)]
    assert [message["content"] for message in reply if message["role"] == "function"] == ["20.0"]
    assert reply[-1]["content"] == "It is 20."


def test_vision(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    Image.new("RGB", (64, 64), "red").save(picture)
    model = ScriptedModel("Something red.")
    model.support_multimodal_input = True
    assert example("vision").main(model, str(picture)) == "Something red."
    assert [item.type for item in model.requests[0].messages[-1].items].count("image") == 1


def test_audio(tmp_path: Path) -> None:
    recording = tmp_path / "recording.wav"
    with wave.open(str(recording), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 800)
    model = ScriptedModel("Nothing is said.")
    model.support_multimodal_input = model.support_audio_input = True
    assert example("audio").main(model, str(recording)) == "Nothing is said."
    assert [item.type for item in model.requests[0].messages[-1].items].count("audio") == 1


def test_long_dialogue() -> None:
    model = ScriptedModel(lambda request: f"I was given {len(request.messages)} messages.")
    questions = tuple(f"Question {number}: " + "word " * 100 for number in range(30))
    answers = example("long_dialogue").main(model, questions, room=1000)
    assert answers[0] == "I was given 2 messages."
    assert answers[-1] == answers[-2], "no more than fits"
    assert model.requests[-1].messages[0].get_text_content() == "You are brief."


def test_custom_model() -> None:
    assert example("custom_model").main("tell me more") == "TELL ME MORE"


def test_custom_agent() -> None:
    model = ScriptedModel("Herons fish.", "Herons fish with patience.")
    assert example("custom_agent").main(model) == ["Herons fish.", "Herons fish with patience."]
    assert "Herons fish." in model.requests[1].messages[-1].get_text_content()


def test_router() -> None:
    model = ScriptedModel("Call: Accountant", Reply(calls=[("calculator", {"expression": "17*23"})]), "It is 391.")
    assert example("router").main(model) == ("Accountant", "It is 391.")


def test_group_chat() -> None:
    model = ScriptedModel(*[f"{word}." for word in ("Yes", "No", "好")])
    assert example("group_chat").main(model) == [("Ann", "Yes."), ("Bob", "No."), ("李雷", "好.")]


def test_virtual_memory() -> None:
    search = Reply(calls=[("ask_documents", {"query": "deductible"})])
    model = ScriptedModel("Hello.", search, "It is 500.")
    assert [searches for searches, _ in example("virtual_memory").main(model)] == [0, 1]
    assert "deductible" in model.requests[2].messages[0].get_text_content()


def test_parallel_doc_qa() -> None:
    model = ScriptedModel("It names 500 [1].")
    told, answer = example("parallel_doc_qa").main(model)
    assert told[0] == "Reading policy.pdf: page 0 of 3"
    assert told[-2:] == ["1 of 2 parts", "2 of 2 parts"]
    assert len(model.requests) == 2 + 1
    assert answer.startswith("It names 500")


def test_article() -> None:
    model = ScriptedModel("# The policy\n1. Damage\n2. Duties", "The deductible is 500 [1].")
    plan, text = example("article").main(model)
    assert plan.startswith("# The policy")
    assert text.count("The deductible is 500 [1].") == 2


def test_agents_from_a_file() -> None:
    model = ScriptedModel("Call: Panel", "Let us do it.", "It may rain.")
    assert example("agents_from_a_file").main(model) == [("Ann", "Let us do it."), ("Bob", "It may rain.")]


def test_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("one\n\ntwo\nthree\n", "utf-8")
    model = ScriptedModel(lambda request: request.messages[-1].get_text_content().upper())
    assert example("batch").main(model, questions) == ["ONE", "TWO", "THREE"]
    assert "3 of 3" in capsys.readouterr().err


def test_in_the_browser() -> None:
    page = example("in_the_browser").page(ScriptedModel("Hello."))
    assert [agent.name for agent in page.agents] == ["Helper", "Analyst"]
    assert all(isinstance(agent, FnCallAgent) for agent in page.agents[:1])


def _results(request: ChatRequest) -> str:
    """What the tools gave in this turn, as the answer."""
    return "|".join(message.get_text_content() for message in request.messages if message.role == "function")
