"""The README keeps its promises: its Python runs, its commands exist, its files are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.tools.catalog import TOOL_REGISTRY

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


BUILT_IN = '{"model_type": "llama_cpp"}'


def ten_lines() -> str:
    found = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert found
    assert BUILT_IN in found[1]
    return found[1]


def reply_of(source: str, folder: Path) -> list[dict[str, str]]:
    names: dict[str, object] = {"__name__": "readme"}
    file = folder / "readme_snippet.py"
    file.write_text(source, encoding="utf-8")
    exec(compile(source, str(file), "exec"), names)
    reply = names["reply"]
    assert isinstance(reply, list)
    return cast("list[dict[str, str]]", reply)


@pytest.mark.weights
@pytest.mark.slow
def test_the_ten_lines_of_python_answer_without_a_key(tmp_path: Path) -> None:
    assert "841,600" in reply_of(ten_lines(), tmp_path)[-1]["content"]


def test_the_ten_lines_of_python_run_with_any_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Reply(calls=[("population", {"city": "Turin"})]), Reply(text="841,600 people live in Turin.")]
    with ModelServer(script) as service:
        monkeypatch.setenv("OPENAI_BASE_URL", service.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        reply = reply_of(ten_lines().replace(BUILT_IN, '{"model": "gpt-5-mini"}'), tmp_path)
    assert "841,600 people live in Turin" in reply[-1]["content"]
    results = [message for message in service.requests[-1].messages if message["role"] == "tool"]
    assert [message["content"] for message in results][-1] == "841,600"


def test_the_first_code_is_seen_without_scrolling() -> None:
    lines = README.partition("\n---\n")[2].splitlines()  # what stands before is for the platform alone
    end_of_python = lines.index("```", lines.index("```python"))
    assert end_of_python < 28


def test_the_commands_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", README)) <= targets


@pytest.mark.parametrize("page", ["README.md", "docs/backups.md"])
def test_who_reads_of_the_command_is_told_where_it_is(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    command = re.search(r"^.*`parlour [a-z-].*$", text, re.MULTILINE)
    assert command
    assert "`.venv/bin/parlour`" in text[: command.end()]


def test_every_file_that_a_page_of_docs_points_to_is_there() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        told = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))  # what stands as code points nowhere
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", told):
            assert (page.parent / target).exists(), f"{page.name} points to {target}, which is not there."


def test_the_tools_page_shows_python_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    sources = [source for source in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "import" in source]
    assert len(sources) == 4
    before = set(TOOL_REGISTRY)
    monkeypatch.chdir(tmp_path)  # `storage` keeps its notes in the folder one stands in
    script = [Reply(calls=[("storage", {"operate": "put", "key": "a", "value": "b"})]), Reply(text="It is 437.")]
    with ModelServer(script) as service:
        about = {"model": "scripted", "base_url": service.base_url, "api_key": "any"}
        model = repr({**about, "generate_cfg": {"use_raw_api": True}})
        for source in sources:
            names: dict[str, object] = {"__name__": "tools_page"}
            exec(compile(source.replace(BUILT_IN, model), "tools.md", "exec"), names)
    told = next(message["content"] for message in service.requests[-1].messages if message["role"] == "tool")
    assert "not allowed" in told or "rule" in told
    lamp = TOOL_REGISTRY["switch_lamp"]()
    assert lamp.call('{"lamp": "the green one"}') == "Switched the green one."
    for name in set(TOOL_REGISTRY) - before:  # another test may run the same page
        TOOL_REGISTRY.remove(name)
