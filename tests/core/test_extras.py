"""A missing extra is one sentence that names it, whatever asks for it; a chat with tools asks for none."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from core import extras
from core.errors import MissingExtraError, extra_for, need_packages
from webui.words import Words

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Runs what follows it in a process in which the packages of all extras are as if they were not installed.
WITHOUT = """
import sys
from core.extras import PACKAGES
for names in PACKAGES.values():
    sys.modules.update(dict.fromkeys(names))
from core.errors import MissingExtraError
"""


def said_without_extras(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{WITHOUT}\n{program}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


ASKED = {
    "from core import MCPManager": "mcp",
    "from core import Assistant; Assistant(function_list=[{'mcpServers': {'s': {'command': 'x'}}}])": "mcp",
    "from core import Library; import tempfile; Library.open(tempfile.mkdtemp())": "documents",
    "from core import get_chat_model; get_chat_model({'model_type': 'transformers', 'model': 'x'})": "transformers",
    "from core import get_chat_model; get_chat_model({'model_type': 'qwen_dashscope', 'model': 'qwen-plus'})."
    "quick_chat('a')": "dashscope",
    "import asyncio; from core import TOOL_REGISTRY\n"
    "    asyncio.run(TOOL_REGISTRY['web_search']({}).call({'query': 'a'}))": "web",
    "from webui import WebUI": "page",
    "from core import get_chat_model; get_chat_model({'model_type': 'llama_cpp'}).quick_chat('a')": "local",
}


@pytest.mark.parametrize(("program", "extra"), ASKED.items(), ids=list(ASKED.values()))
def test_what_needs_an_extra_names_it_in_one_sentence(program: str, extra: str) -> None:
    said = said_without_extras(f"try:\n    {program}\nexcept MissingExtraError as error:\n    print(error)")
    assert f"needs the extra '{extra}'" in said
    assert said.endswith(f'pip install ".[{extra}]"')
    assert len(said.splitlines()) == 1


def test_the_command_says_it_without_a_traceback() -> None:
    said = said_without_extras("from webui.__main__ import main\nsys.stderr = sys.stdout\nprint(main([]))")
    assert "The page needs the extra 'page'" in said
    assert said.endswith("1")


def test_a_chat_with_tools_needs_no_extra() -> None:
    program = """
from core import Assistant, tool
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

model = ScriptedModel(Reply(calls=[("add", {"a": 1, "b": 2})]), "It is 3.")
print(Assistant(llm=model, function_list=[add]).run_nonstream([{"role": "user", "content": "1 + 2?"}])[-1]["content"])
"""
    assert said_without_extras(program) == "It is 3."


def test_a_package_that_no_extra_brings_stays_a_plain_error() -> None:
    with pytest.raises(ModuleNotFoundError), extra_for("Something"):
        __import__("no_such_package_at_all")


def test_an_installed_wheel_is_told_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "in_checkout", lambda: False)
    error = MissingExtraError("Reading PDF files", "pymupdf", "documents")
    assert str(error).endswith('run: pip install "parlour[documents]"')
    monkeypatch.setattr("webui.words.in_checkout", lambda: False)
    for lang in ("en", "zh"):
        assert 'pip install "parlour[documents]"' in Words(lang).error(error)
        assert "Parlour" not in Words(lang).error_parts(error)[1]


@pytest.mark.parametrize("extra", sorted(extras.PACKAGES))
def test_the_table_and_the_project_name_the_same_extras(extra: str) -> None:
    assert extra in PROJECT["optional-dependencies"]


def test_all_is_what_is_offered_without_its_heavy_and_rare_parts() -> None:
    (everything,) = PROJECT["optional-dependencies"]["all"]
    left_out = {"bedrock", "bulk", "grown", "transformers", "voice", "zerogpu"}
    assert Requirement(everything).extras == set(extras.PACKAGES) - left_out


def test_no_package_is_both_in_the_base_and_in_an_extra() -> None:
    base = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    for name, asked in PROJECT["optional-dependencies"].items():
        assert not base & {canonicalize_name(Requirement(text).name) for text in asked}, name


@pytest.mark.parametrize("name", ["json", "not_there_at_all"])
def test_a_package_that_no_extra_brings_is_a_mistake_of_the_program(name: str) -> None:
    with pytest.raises(ValueError, match=f"No extra brings {name}"):
        need_packages("A test", ["numpy", name])
