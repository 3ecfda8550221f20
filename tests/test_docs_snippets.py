"""Every snippet of the documentation holds: Python runs, files are read, commands do what is printed below them.

A page is found by itself, and so is each of its fences. What a scripted model says to a fence stands before it, unseen
by readers of the site, `<!-- model: [{"text": "…"}] -->`, or in a file beside the page (`page.script.json`) by the
words of the question; without either it says "It is so.". A fence `text` is what the Python before it prints, `…`
standing for anything. A fence of YAML, TOML or JSON that begins with `# name` is a file.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from core.agents.config.build import problems_in
from core.agents.config.schema import AgentConfig
from core.judging.suite import Suite
from core.llm.backends.openai.service import client_pool
from core.llm.catalog import LLM_REGISTRY
from core.mcp.pool import MCPManager
from core.settings import Settings
from core.testing.behaviour import script_from_file
from core.testing.model_server import ModelServer
from core.testing.script import Answer, Reply, Request, reply_from
from core.tools.catalog import TOOL_REGISTRY
from webui.__main__ import main
from webui.commands import COMMANDS
from webui.web_ui import WebUI

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    if path.parent != ROOT / "docs" / "reference"  # written out from `docs/api`, whose snippets run
)
SAMPLES = ROOT / "assets" / "samples"
SAID = Reply(text="It is so.", usage=(5, 3))
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>[\w-]*)[^\n]*\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
MODEL = re.compile(r"<!-- model: ((?:(?!-->).)*) -->\s*\Z", re.DOTALL)
NAMED = re.compile(r"\A# (\S+\.(?:ya?ml|toml|jsonl?))\n")
KINDS = {"python", "yaml", "toml", "json", "console", "sh", "text", "markdown", ""}
KINDS |= {"py"}  # written for a peer; `python -m bench.beside` runs it in an environment of the peer's
KINDS |= {"nginx", "caddy", "haproxy"}  # run by the programs themselves, in tests/real/test_proxies.py
KINDS |= {"html"}  # tests/e2e/test_embed.py shows the same line in Chromium

# Models that are not asked; the scripted one answers in their place.
STOOD_IN_FOR = {
    "llama_cpp": "its weights are 490 MB",
    "anthropic": "it needs a key, and the network",
    "qwen_dashscope": "it needs a key, and the network",
    "transformers": "it needs torch, and weights",
}
# What is not run, by the page and the first line of its fence, or by the first word of a command, and why.
NOT_RUN: dict[tuple[str, str], str] = {
    (
        "docs/judging.md",
        "$ parlour eval samples --at-least 0.8 --built-in qwen2.5-coder-0.5b,qwen3-0.6b,qwen3.5-0.8b,qwen3.5-2b",
    ): "it downloads gigabytes of models",
    (
        "docs/programs.md",
        'curl http://127.0.0.1:7860/v1/chat/completions -H "Authorization: Bearer $KEY" \\',
    ): "it asks a Parlour that is open; tests/doors asks one the same",
    ("docs/spaces.md", "from gradio_client import Client"): "it asks a Space; tests/doors asks a Parlour the same",
}
NOT_COMMANDS = {
    "docker": "there is no Docker where the tests run",
    "make": "its targets are held to be there; what they do takes minutes",
    "python": "the module is held to be there; it serves until it is stopped",
}


@dataclass
class Fence:
    page: str
    line: int
    kind: str
    body: str
    replies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def not_run(self) -> str:
        return NOT_RUN.get((self.page, self.body.splitlines()[0]), "")


def fences(page: str) -> list[Fence]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found: list[Fence] = []
    for fence in FENCE.finditer(text):
        indent, before = len(fence["indent"]), text[: fence.start()]
        body = "".join(line[indent:] for line in fence["body"].splitlines(keepends=True))
        said = MODEL.search(before)
        replies = json.loads(said[1]) if said else []
        found.append(Fence(page, before.count("\n") + 1, fence["kind"], body, replies))
    return found


ALL = {page: fences(page) for page in PAGES}
WITH_FENCES = [page for page in PAGES if ALL[page]]


class Service:
    """The scripted model: what the fence wants said, then always the same."""

    def __init__(self) -> None:
        self.left: list[Reply] = []
        self.knows: Answer = lambda _: SAID
        self.server = ModelServer(self._answer)

    def _answer(self, request: Request) -> Reply:
        return self.left.pop(0) if self.left else self.knows(request)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    client_pool.cache_clear()
    service = Service()
    with service.server:
        yield service
    client_pool.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> Iterator[Path]:
    """A folder to stand in, where every model is the scripted one and the page opens at once and closes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("OPENAI_BASE_URL", service.server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setattr(WebUI, "run", lambda *_, **__: None)
    for name in ("manual.pdf", "contract.pdf", "assets/samples/policy.pdf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / "policy.pdf", tmp_path / name)
    Image.new("RGB", (60, 40), "white").save(tmp_path / "letter.png")
    (tmp_path / "meeting.m4a").write_bytes(b"\0\0\0\x20ftypM4A ")
    tools = set(TOOL_REGISTRY)
    for model_type in STOOD_IN_FOR:
        LLM_REGISTRY.add(model_type, _stand_in(model_type, service.server.base_url))
    try:
        yield tmp_path
    finally:
        for model_type in STOOD_IN_FOR:
            LLM_REGISTRY.remove(model_type)
        for name in set(TOOL_REGISTRY) - tools:
            TOOL_REGISTRY.remove(name)
        MCPManager.shared().close()
        service.left.clear()


def _stand_in(model_type: str, address: str) -> Any:
    """The class of a model that takes the settings of `model_type`, and asks the scripted one."""
    open_ai: Any = LLM_REGISTRY["openai"]
    meant = LLM_REGISTRY[model_type] if model_type != "transformers" else None

    class StandIn(open_ai):
        def __init__(self, cfg: Any) -> None:
            if meant is not None:
                meant(cfg)  # what is wrong with the settings is an error
            here = {"model": "scripted", "model_type": "openai", "base_url": address, "api_key": "any"}
            super().__init__({**here, "generate_cfg": cfg.get("generate_cfg") or {}})

    return StandIn


@pytest.mark.parametrize("page", WITH_FENCES)
def test_a_page_holds(page: str, folder: Path, service: Service) -> None:
    for fence in ALL[page]:
        if named := NAMED.match(fence.body):
            (folder / named[1]).write_text(_file(fence), encoding="utf-8")
    script: Any = (ROOT / page).with_suffix(".script.json")
    knows: Any = script_from_file(script) if script.exists() else lambda _: SAID
    service.knows = knows
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for fence in ALL[page]:
        service.left[:] = [reply_from(reply) for reply in fence.replies if fence.kind != "py"]
        match fence.kind:
            case "python":
                printed = _python(fence, names)
            case "py":
                ast.parse(fence.body)
            case "text" if printed:
                assert re.fullmatch(_pattern(fence.body), printed.strip(), re.DOTALL), (
                    f"{fence.place} is not what is printed:\n{printed}"
                )
            case "yaml" | "toml" | "json":
                _read(fence, folder)
            case "console" | "sh" | "":
                _commands(fence)
            case _:
                assert fence.kind in KINDS, f"{fence.place}: a fence of an unknown kind, {fence.kind!r}"
        assert not service.left, f"{fence.place}: the model was asked less often than the page says."


def test_what_is_not_run_is_there() -> None:
    there = {(fence.page, fence.body.splitlines()[0]) for found in ALL.values() for fence in found if fence.body}
    assert set(NOT_RUN) <= there


def _python(fence: Fence, names: dict[str, Any]) -> str:
    body = re.sub(r"(api_key|bearer|password)(\": |=)\"…\"", r'\1\2"any"', fence.body)
    code = compile(body, fence.place, "exec", dont_inherit=True)
    _imports_hold(fence)
    if fence.not_run:
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def _imports_hold(fence: Fence) -> None:
    for node in ast.walk(ast.parse(fence.body)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            missing = [name.name for name in node.names if not hasattr(module, name.name)]
            assert not missing, f"{fence.place}: {node.module} has no {missing}"


def _pattern(expected: str) -> str:
    return ".*".join(re.escape(part) for part in expected.strip().split("…")).replace(r"\ ", " ")


def _file(fence: Fence) -> str:
    return fence.body if fence.kind in {"yaml", "toml"} else NAMED.sub("", fence.body)


def _read(fence: Fence, folder: Path) -> None:
    """A file of an agent is one that `parlour check` finds nothing wrong with; other JSON is read."""
    named = NAMED.match(fence.body)
    if named is None:
        assert fence.kind == "json", f"{fence.place}: a file begins with its name, `# agent.yaml`"
        json.loads(fence.body)
    elif named[1].endswith(".jsonl"):
        assert [json.loads(line) for line in _file(fence).splitlines()]
    elif named[1].startswith("suite"):
        assert Suite.of(folder / named[1]).tasks
    else:
        assert not problems_in(AgentConfig.of(folder / named[1]), {}), fence.place


def _commands(fence: Fence) -> None:
    """Commands after `$ ` run and print the lines below them; others are held to be possible."""
    if fence.not_run:
        return
    if fence.kind == "console":
        for command in re.split(r"^\$ ", fence.body, flags=re.MULTILINE)[1:]:
            first, *expected = command.strip().splitlines()
            assert first.startswith("parlour "), f"{fence.place}: only `parlour` is run"
            code, said = _ran(shlex.split(first)[1:])
            assert code == 0, f"{fence.place}: exit code {code}\n{said}"
            assert re.fullmatch(_pattern("\n".join(expected)), said.strip(), re.DOTALL), f"{fence.place}:\n{said}"
        return
    for line in filter(None, fence.body.splitlines()):
        words = shlex.split(line, comments=True)
        _can_be(words, fence.place)
        if words[0] == "parlour":
            assert _ran(words[1:])[0] == 0, fence.place


def _ran(words: list[str]) -> tuple[int, str]:
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(said):
        code = main(words)
    said.seek(0)
    return code, said.read()


def _can_be(words: list[str], place: str) -> None:
    while words and (variable := re.match(r"([A-Z_]+)=", words[0])):
        assert _is_a_setting(variable[1]), f"{place}: nothing reads {variable[1]}"
        words = words[1:]
    for command in _split(words):
        if command[0] == "make":
            targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
            assert command[1] in targets, f"{place}: there is no target {command[1]!r}"
        elif command[0] == "parlour":
            _options_exist(command[1:], place)
        elif command[0].endswith("python"):
            assert command[1] == "-m", place
            assert importlib.util.find_spec(command[2]), f"{place}: there is no module {command[2]}"
            files = [word for word in command[3:] if "/" in word]
            assert all((ROOT / file).exists() for file in files), f"{place}: {files}"
        else:
            assert command[0] in NOT_COMMANDS, f"{place}: {command[0]!r} is neither run nor said why not"


def _split(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in [*words, "&&"]:
        if word == "&&":
            yield command
            command = []
        else:
            command.append(word)


def _is_a_setting(name: str) -> bool:
    known = {f"PARLOUR_{field.upper()}" for field in Settings.model_fields}
    return name in known | {"OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY"}


def _options_exist(words: list[str], place: str) -> None:
    command = [words[0]] if words and words[0] in COMMANDS else []
    for word in words:
        assert not word.startswith("--") or word in _help(command), f"{place}: `parlour {words[0]}` has no {word}"


def _help(command: list[str]) -> str:
    """What a command says of itself."""
    helped = io.StringIO()
    with contextlib.redirect_stdout(helped), contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return helped.getvalue()


INLINE = [
    (f"{page}:{text[: found.start()].count(chr(10)) + 1}", found[1])
    for page in PAGES
    for text in [FENCE.sub(lambda one: "\n" * one[0].count("\n"), (ROOT / page).read_text(encoding="utf-8"))]
    for found in re.finditer(r"`((?:parlour|make) [^`\n]+)`", text)
]


@pytest.mark.parametrize(("place", "command"), INLINE, ids=[f"{place} {command}" for place, command in INLINE])
def test_a_command_within_a_sentence_exists(place: str, command: str) -> None:
    _can_be(shlex.split(command), place)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_and_option_is_told(command: str) -> None:
    told = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    assert f"`parlour {command}" in told or f"$ parlour {command}" in told
    assert not [
        option for option in re.findall(r"--[a-z-]+", _help([command])) if option != "--help" and option not in told
    ]


def test_every_tool_is_told() -> None:
    told = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    shipped = vars(TOOL_REGISTRY)["_entries"]  # not what other tests add
    assert not [name for name in shipped if f"`{name}`" not in told]
