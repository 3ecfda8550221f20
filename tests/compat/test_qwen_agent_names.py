"""A program for Qwen-Agent runs when `qwen_agent` in its imports becomes `parlour.compat.qwen_agent`."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import core as library
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from parlour.compat import qwen_agent
from parlour.compat.qwen_agent import agents
from parlour.compat.qwen_agent import functions as utils
from parlour.compat.qwen_agent.agents import PENDING_USER_INPUT, Assistant, BasicDocQA, ParallelDocQA, ReActChat
from parlour.compat.qwen_agent.functions import typewriter_print
from parlour.compat.qwen_agent.llm import (
    ASSISTANT,
    DEFAULT_SYSTEM_MESSAGE,
    USER,
    BaseChatModel,
    ContentItem,
    Message,
    get_chat_model,
)
from parlour.compat.qwen_agent.tools import BaseTool, register_tool

ROOT = Path(__file__).resolve().parents[2]

# Modules that programs import from, with a name that they take from each.
MODULES = {
    "agent": "Agent",
    "agents.article_agent": "ArticleAgent",
    "agents.assistant": "Assistant",
    "agents.dialogue_retrieval_agent": "DialogueRetrievalAgent",
    "agents.fncall_agent": "FnCallAgent",
    "agents.group_chat": "GroupChat",
    "agents.group_chat_creator": "GroupChatCreator",
    "agents.react_chat": "ReActChat",
    "agents.router": "Router",
    "agents.tir_agent": "TIRMathAgent",
    "agents.user_agent": "UserAgent",
    "agents.virtual_memory_agent": "VirtualMemoryAgent",
    "agents.write_from_scratch": "WriteFromScratch",
    "agents.writing": "OutlineWriting",
    "llm.base": "register_llm",
    "llm.schema": "FunctionCall",
    "memory": "Memory",
    "multi_agent_hub": "MultiAgentHub",
    "tools": "TOOL_REGISTRY",
    "tools.base": "BaseToolWithFileAccess",
    "tools.mcp_manager": "MCPManager",
}


@pytest.mark.parametrize(("module", "name"), MODULES.items())
def test_a_name_stands_where_programs_look_for_it_and_is_ours(module: str, name: str) -> None:
    found = importlib.import_module(f"parlour.compat.qwen_agent.{module}")
    assert getattr(found, name) is getattr(library, name)


@pytest.mark.parametrize("module", ["agents", "gui", "gui.web_ui", "llm", "tools", "utils", "utils.utils", "log"])
def test_each_name_that_a_module_promises_is_there(module: str) -> None:
    found = importlib.import_module(f"parlour.compat.qwen_agent.{module}")
    assert not [name for name in getattr(found, "__all__", ()) if getattr(found, name, None) is None]


def test_a_module_below_another_is_that_one() -> None:
    below = "parlour.compat.qwen_agent.utils.output_beautify"
    assert importlib.import_module(below).typewriter_print is typewriter_print
    assert importlib.import_module("parlour.compat.qwen_agent.agents.doc_qa").BasicDocQA is BasicDocQA


def test_what_has_no_counterpart_is_a_plain_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"qwen_agent\.gui\.gradio_dep"):
        importlib.import_module("parlour.compat.qwen_agent.gui.gradio_dep")
    assert qwen_agent.Agent is library.Agent
    assert (PENDING_USER_INPUT, DEFAULT_SYSTEM_MESSAGE) == (library.PENDING_USER_INPUT, "")


@register_tool("compat_double", allow_overwrite=True)
class Double(BaseTool):
    description = "Doubles a number."
    parameters = [{"name": "number", "type": "integer", "description": "Which", "required": True}]

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return str(2 * utils.json_loads(str(params))["number"])


def test_a_program_prints_a_reply_as_it_grows(capsys: pytest.CaptureFixture[str]) -> None:
    turns = Reply(reasoning="Double it.", calls=[("compat_double", {"number": 21})]), "It is 42."
    bot = Assistant(llm=ScriptedModel(*turns), function_list=["compat_double"], system_message=DEFAULT_SYSTEM_MESSAGE)
    text = ""
    for response in bot.run([Message(USER, [ContentItem(text="Twice 21?")])]):
        text = typewriter_print(response, text)
    assert text == (
        "[THINK]\nDouble it.\n"
        '[TOOL_CALL] compat_double\n{"number": 21}\n'
        "[TOOL_RESPONSE] compat_double\n42\n"
        "[ANSWER]\nIt is 42."
    )
    assert capsys.readouterr().out == text


def test_agents_for_documents_and_steps_are_made_as_there() -> None:
    model = get_chat_model({"model_type": "scripted"})
    assert isinstance(model, BaseChatModel)
    for kind in (ReActChat, BasicDocQA, ParallelDocQA):
        assert kind(llm=model).run_nonstream([{"role": USER, "content": "Hello"}])[-1]["role"] == ASSISTANT


PROGRAM = """
from parlour.compat.qwen_agent.agents import Assistant, FnCallAgent, ReActChat
from parlour.compat.qwen_agent.llm import get_chat_model
from parlour.compat.qwen_agent import settings
import core as library
bot = Assistant(llm={"model_type": "scripted"}, function_list=["web_search"], rag_cfg={"max_ref_token": 700})
own = FnCallAgent(llm={"model_type": "scripted", "generate_cfg": {"max_input_tokens": 9}}, max_iteration=4)
print(isinstance(bot, library.Assistant), type(bot).__name__, bot.max_iteration, own.max_iteration)
print(bot.llm.generate_cfg.get("max_input_tokens"), own.llm.generate_cfg["max_input_tokens"])
print(bot.function_map["web_search"].cfg.get("provider"))
print(get_chat_model({"model_type": "scripted"}).generate_cfg.get("max_input_tokens"), settings.MAX_LLM_CALL_PER_RUN)
"""


def said(**variables: str) -> list[str]:
    program = PROGRAM.replace("import core as library", f"import {library.__name__} as library")
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, cwd=ROOT, env=environment, text=True, timeout=120).splitlines()


def test_its_variables_are_heard_under_what_a_program_says_itself() -> None:
    heard = said(
        QWEN_AGENT_MAX_LLM_CALL_PER_RUN="7",
        QWEN_AGENT_DEFAULT_MAX_INPUT_TOKENS="1234",
        QWEN_AGENT_DEFAULT_MAX_REF_TOKEN="900",
        SERPER_API_KEY="sk-test",
    )
    assert heard == ["True Assistant 7 4", "1234 9", "serper", "1234 7"]


def test_without_its_variables_agents_are_ours_as_they_are() -> None:
    assert said() == ["True Assistant 20 4", "None 9", "None", "None 20"]


# Makes each kind of agent, with what it needs as a user would say it, and prints what it heard.
EACH = """
import json
from inspect import signature
from parlour.compat.qwen_agent import agents
import core as library
model = {"model_type": "scripted"}
def members():
    return [agents.Assistant(llm=model, name="a"), agents.Assistant(llm=model, name="b")]
def heard(name):
    kind, more = getattr(agents, name), {}
    if issubclass(kind, agents.MultiAgentHub):
        more["agents"] = members()
    elif issubclass(kind, agents.TIRMathAgent):
        more["function_list"] = ["code_interpreter"]
    elif kind.calls_tools:
        more["function_list"] = ["web_search", "code_interpreter"]
    agent = kind(llm=model, **more)
    tools, rag = agent.function_map, getattr(agent, "_rag", None)
    return {
        "input": agent.llm.generate_cfg.get("max_input_tokens"),
        "raw": agent.llm.generate_cfg.get("use_raw_api"),
        "calls": getattr(agent, "max_iteration", None),
        "rag": rag and [rag.max_ref_token, rag.chunk_size, rag.rag_keygen_strategy, rag.rag_searchers],
        "search": "web_search" in tools and str(tools["web_search"].cfg.get("provider")),
        "folder": "code_interpreter" in tools and str(tools["code_interpreter"].work_dir),
        "is": sorted(one for one in KINDS if isinstance(agent, getattr(agents, one))),
        "takes": list(signature(kind).parameters),
    }
KINDS = [one for one in agents.__all__ if isinstance(getattr(agents, one), type)]
told = {one: heard(one) for one in KINDS if one not in NOT_ASKED}
assert agents.ParallelDocQA([], model).llm is not None
assert agents.Assistant(rag_cfg=library.RAGConfig(max_ref_token=700))._rag.max_ref_token == 700
print(json.dumps(told))
"""
NOT_ASKED = ["Agent", "UserAgent", "MultiAgentHub"]  # the first is what others are made of; the others have no model
AGENTS = [name for name in agents.__all__ if name not in {*NOT_ASKED, "PENDING_USER_INPUT"}]
VARIABLES: dict[str, tuple[str, str, int | None, object]] = {  # value, what shows it, where, what it is then
    "QWEN_AGENT_MAX_LLM_CALL_PER_RUN": ("3", "calls", None, 3),
    "QWEN_AGENT_DEFAULT_MAX_INPUT_TOKENS": ("1234", "input", None, 1234),
    "QWEN_AGENT_USE_RAW_API": ("true", "raw", None, True),
    "QWEN_AGENT_DEFAULT_MAX_REF_TOKEN": ("900", "rag", 0, 900),
    "QWEN_AGENT_DEFAULT_PARSER_PAGE_SIZE": ("321", "rag", 1, 321),
    "QWEN_AGENT_DEFAULT_RAG_KEYGEN_STRATEGY": ("GenKeyword", "rag", 2, "keywords"),
    "QWEN_AGENT_DEFAULT_RAG_SEARCHERS": ("['keyword_search']", "rag", 3, ["keyword"]),
    "QWEN_AGENT_DEFAULT_WORKSPACE": ("/tmp/compat-work", "folder", None, "/tmp/compat-work/tools/code_interpreter"),
    "SERPER_API_KEY": ("sk-test", "search", None, "serper"),
}


# One process imports all of the library, and is forked for each variable before the compatible names are imported.
EACH_VARIABLE = """
import os, sys
import core as library
everything = [getattr(library, name) for name in library.__all__]
for variable, value in VARIABLES.items():
    if not os.fork():
        os.environ |= {variable: value} if variable else {}
        exec(EACH)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, variable
"""


@cache
def of_each_variable() -> dict[str, dict[str, Any]]:
    given = {"": "", **{name: row[0] for name, row in VARIABLES.items()}}
    program = f"NOT_ASKED, VARIABLES = {NOT_ASKED}, {given}\nEACH = {EACH!r}\n{EACH_VARIABLE}"
    program = program.replace("import core as library", f"import {library.__name__} as library")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=120, check=False)
    assert not done.returncode, done.stderr
    return dict(zip(given, map(json.loads, done.stdout.splitlines()), strict=True))


def each_agent(variable: str = "") -> dict[str, dict[str, Any]]:
    return of_each_variable()[variable]


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("variable", VARIABLES)
def test_each_agent_hears_each_variable_and_is_else_what_it_was(variable: str, name: str) -> None:
    _, shows, at, now = VARIABLES[variable]
    before, after = each_agent()[name], each_agent(variable)[name]
    if shows in {"input", "raw"} or before[shows] not in (None, False):  # it has a model, and perhaps the rest
        assert (after[shows] if at is None else after[shows][at]) == now
    rest = {key for key in before if key != shows}
    assert {key: after[key] for key in rest} == {key: before[key] for key in rest}


@pytest.mark.parametrize(
    ("function", "given", "answer"),
    [
        ("get_basename_from_url", ("https://a.example/b/c%20d.pdf?x=1",), "c d.pdf"),
        ("get_basename_from_url", ("/tmp/b/report.docx",), "report.docx"),
        ("get_file_type", ("https://a.example/b",), "html"),
        ("get_file_type", ("a/B.PDF",), "pdf"),
        ("is_http_url", ("ftp://a",), False),
        ("has_chinese_chars", ([{"a": "苍鹭"}],), True),
        ("has_chinese_messages", ([{"role": "function", "name": "a", "content": "苍鹭"}],), False),
        ("extract_code", ("Look:\n```python\nprint(1)\n```\n",), "print(1)\n"),
        (
            "extract_urls",
            ("see https://a.example/b, and http://c.example。",),
            ["https://a.example/b,", "http://c.example"],
        ),
        ("json_loads", ('{"a": 1,}',), {"a": 1}),
        ("json_dumps_compact", ({"a": "鹭"},), '{"a": "鹭"}'),
        ("merge_generate_cfgs", ({"stop": ["a"]}, {"stop": ["b"], "seed": 1}), {"stop": ["a", "b"], "seed": 1}),
        ("hash_sha256", ("",), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ],
)
def test_functions_that_programs_use(function: str, given: tuple[Any, ...], answer: object) -> None:
    assert getattr(utils, function)(*given) == answer


def test_what_a_message_holds(tmp_path: Path) -> None:
    items = [ContentItem(text=" Look "), ContentItem(image="a/heron.png"), ContentItem(file="b/manual.pdf")]
    message = Message(USER, items)
    assert utils.extract_text_from_message(message) == "Look"
    assert utils.extract_images_from_messages([message]) == ["a/heron.png"]
    assert utils.extract_files_from_messages([message]) == ["b/manual.pdf"]
    assert utils.extract_files_from_messages([message], include_images=True) == ["a/heron.png", "b/manual.pdf"]
    told = utils.format_as_text_message(message, add_upload_info=True)
    assert told.content == "(Uploaded [file](heron.png) [file](manual.pdf)) Look"
    utils.save_text_to_file(str(tmp_path / "a.txt"), "苍鹭")
    copy = utils.save_url_to_local_work_dir(str(tmp_path / "a.txt"), str(tmp_path / "work"), "b.txt")
    assert utils.read_text_from_file(copy) == "苍鹭"


def test_tools_of_a_programs_own_need_no_extra() -> None:
    program = (
        "import sys\n"
        "for name in ('mcp', 'gradio', 'sqlalchemy', 'pymupdf', 'numpy', 'PIL', 'tiktoken'):\n"
        "    sys.modules[name] = None\n"
        "from parlour.compat.qwen_agent.tools.base import BaseTool, register_tool\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
