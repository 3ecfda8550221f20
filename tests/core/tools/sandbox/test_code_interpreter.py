"""The tool over the kernels: what it takes, what it gives a model and a person, and how a program uses it."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.errors import BadArgumentsError
from core.tools.builtin.code_interpreter import CodeInterpreter, PythonExecutor
from core.tools.catalog import TOOL_REGISTRY
from core.tools.sandbox import results
from core.tools.sandbox.results import CodeResult, Gathering, Made
from core.tools.sandbox.work_folder import plain_name

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[4]


class Pretended:
    """Kernels that note what they are given."""

    def __init__(self, result: CodeResult) -> None:
        self.result = result
        self.ran: list[tuple[str, str, Mapping[str, Path], float]] = []

    async def run(
        self, key: str, code: str, *, owner: str, files: Mapping[str, Path], timeout: float, progress: Any
    ) -> CodeResult:
        self.ran.append((key, code, files, timeout))
        return self.result


def interpreter(result: CodeResult | None = None, **more: Any) -> tuple[CodeInterpreter, Pretended]:
    kernels = Pretended(result or CodeResult())
    made: Any = kernels
    return CodeInterpreter(kernels=made, key="talk", **more), kernels


@pytest.mark.parametrize(
    "given",
    [
        {"code": "x = 1"},
        '{"code": "x = 1"}',
        "```py\nx = 1\n```",
        "```python\nx = 1",
        "x = 1",
        {"code": "```\nx = 1\n```"},
    ],
)
async def test_code_comes_as_an_argument_in_a_fence_or_bare(given: Any) -> None:
    tool, kernels = interpreter()
    result = await tool.call(given)
    assert kernels.ran[0][1].strip() == "x = 1"
    assert result.text == "Finished execution, no output."


@pytest.mark.parametrize("given", [{"code": "  "}, "", {"code": "#" * 200_001}])
async def test_no_code_and_too_much_are_refused(given: Any) -> None:
    tool, kernels = interpreter()
    with pytest.raises(BadArgumentsError):
        await tool.call(given)
    assert not kernels.ran


async def test_pictures_and_files_are_whole_in_the_result_and_named_for_the_model() -> None:
    made = CodeResult(
        "42",
        (Made("picture-1.png", "image/png", b"png"),),
        (Made("表 1.csv", "text/csv", b"a,b"), Made("more.jpg", "image/jpeg", b"jpg")),
    )
    tool, _ = interpreter(made)
    result = await tool.call({"code": "42"})
    assert result.text == "42\n[1 picture, shown to the user]\n[2 files, handed to the user: 表 1.csv, more.jpg]"
    assert [item.type for item in result.items] == ["image", "file", "file"]
    assert result.items[1].value == f"data:text/csv;name=%E8%A1%A8%201.csv;base64,{base64.b64encode(b'a,b').decode()}"
    assert not result.extra


async def test_a_picture_that_was_only_saved_is_shown_and_one_that_was_shown_is_not_shown_twice() -> None:
    saved = Made("plot.png", "image/png", b"png")
    shown = Made("picture-1.png", "image/png", b"other")
    for pictures, kinds in (((), ["image"]), ((shown,), ["image", "file"])):
        tool, _ = interpreter(CodeResult("", pictures, (saved,)))
        assert [item.type for item in (await tool.call({"code": "1"})).items] == kinds


async def test_a_failure_is_one_for_the_page_too() -> None:
    tool, _ = interpreter(CodeResult("ZeroDivisionError: division by zero", failed=True))
    assert (await tool.call({"code": "1/0"})).extra == {"failed": "code_failed"}


async def test_the_files_of_the_conversation_and_the_time_are_passed_on(tmp_path: Path) -> None:
    @asynccontextmanager
    async def files() -> AsyncGenerator[dict[str, Path]]:
        yield {"sales.csv": tmp_path}

    kernels = Pretended(CodeResult())
    made: Any = kernels
    tool = CodeInterpreter({"timeout": 5}, kernels=made, key="talk", files=files)
    await tool.call({"code": "1"})
    assert kernels.ran == [("talk", "1", {"sales.csv": tmp_path}, 5.0)]
    assert tool.timeout > 5 + 3 + 30, "the runner must not end the call before the kernel has been interrupted"


def test_it_says_what_it_does_and_both_names_are_known() -> None:
    for name, kind in (("code_interpreter", CodeInterpreter), ("python_executor", PythonExecutor)):
        assert TOOL_REGISTRY[name] is kind
        tool = kind()
        assert tool.name == name
        assert (tool.runs_code, tool.idempotent) == (True, False)
        assert tool.wants({"code": "1"}, "en") == "run Python code"
        assert tool.wants({"code": "1"}, "zh") == "运行 Python 代码"
        assert list(tool.schema["properties"]) == ["code"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("../../app/x.py", "x.py"),
        ("..\\..\\x.py", "x.py"),
        ("a\nb<c>.txt", "a_b_c_.txt"),
        ("..", "file"),
        ("表.csv", "表.csv"),
    ],
)
def test_f5_names_are_plain(path: str, name: str) -> None:
    assert plain_name(path) == name


def test_messages_that_make_no_sense_do_no_harm() -> None:
    gathered = Gathering(1000, "numpy")
    for message in (
        {"msg_type": "display_data", "content": {"data": "text"}},
        {"msg_type": "display_data", "content": {"data": {"image/png": "not base64!", "text/plain": 7}}},
        {"msg_type": "error", "content": {"ename": "E", "evalue": "v", "traceback": "none"}},
        {"msg_type": "comm_open", "content": {}},
        {"content": {}},
        {"msg_type": "stream", "content": {"text": "x" * 5000}},
    ):
        gathered.take(message)
    assert gathered.failed
    assert len(gathered.text) < 2100


def test_pictures_of_one_cell_have_so_much_room_together_and_it_is_said_that_some_are_missing() -> None:
    gathered = Gathering(1000, "numpy")
    for size in (7, 7, 7, 7, 7, 1, 1):
        png = base64.b64encode(b"\x89PNG\r\n" + bytes(size << 20)).decode()
        gathered.take({"msg_type": "display_data", "content": {"data": {"image/png": png}}})
    assert [len(one.data) >> 20 for one in gathered.pictures] == [7, 7, 7, 7, 1, 1]
    assert gathered.text.count("left out") == 1


def test_of_what_a_kernel_that_was_changed_prints_no_more_is_looked_at_than_could_fit(monkeypatch) -> None:
    looked: list[int] = []

    class Escapes:
        def sub(self, by: str, text: str) -> str:
            looked.append(len(text))
            return text.replace("\x1b[0m", by)

    monkeypatch.setattr(results, "_ESCAPES", Escapes())
    gathered = Gathering(1000, "numpy")
    gathered.take({"msg_type": "stream", "content": {"text": "\x1b[0mseen" + "x" * 10_000_000}})
    gathered.take({"msg_type": "stream", "content": {"text": "y" * 10_000_000}})
    assert gathered.text.startswith("seenx")
    assert max(looked) < 10_000


def test_a_program_uses_it_without_anything_else(tmp_path: Path) -> None:
    """State stays, files lie in the work folder, and at its end the program leaves nothing behind."""
    program = """
import glob, json, sys
from core import Assistant, Message, TOOL_REGISTRY
from core.bridge.sync import run
from core.errors import ToolError
from core.testing.scripted_model import ScriptedModel
from core.testing.script import Reply

code = "x = 20\\nopen('out.txt', 'w').write('made')\\nx + 1"
model = ScriptedModel(Reply(calls=(("code_interpreter", json.dumps({"code": code})),)), "Done.")
bot = Assistant(function_list=[{"name": "code_interpreter", "work_dir": sys.argv[1]}], llm=model)
*_, last = bot.run([Message("user", "Calculate.")])
print(json.dumps([one.get_text_content() for one in last if one.role == "function"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "work")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    (text,) = json.loads(done.stdout)
    if "is off on this machine" in text:
        return
    assert text == "21\n[1 file, handed to the user: out.txt]"
    (kept,) = (tmp_path / "work").iterdir()
    assert kept.read_text("utf-8") == "made"
    assert kept.name.endswith("-out.txt")
