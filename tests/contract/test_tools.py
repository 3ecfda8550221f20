"""What every tool in the catalog promises."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from core.tools.approval import Policy
from core.tools.catalog import TOOL_REGISTRY
from core.tools.taint import Taint

# Those of the house: other tests register tools of their own in the same process.
OURS = sorted(name for name in TOOL_REGISTRY if TOOL_REGISTRY[name].__module__.startswith("core."))
names = pytest.mark.parametrize("name", OURS)


@names
def test_a_model_can_be_told_of_it(name: str):
    function = TOOL_REGISTRY[name]().function
    assert function["name"] == name
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
    assert 20 < len(function["description"]) < 1000
    Draft202012Validator.check_schema(function["parameters"])
    assert json.loads(json.dumps(function)) == function
    assert all("description" in about for about in function["parameters"]["properties"].values())


@names
def test_what_reads_documents_says_that_its_results_are_words_of_them(name: str):
    reads = any(
        getattr(one, "__module__", "") == "core.tools.documents"
        for one in vars(sys.modules[TOOL_REGISTRY[name].__module__]).values()
    )
    assert TOOL_REGISTRY[name].of_documents is reads


@names
def test_it_has_a_label_in_both_languages(name: str):
    tool = TOOL_REGISTRY[name]()
    assert tool.label("en") != name
    assert re.search(r"[\u4e00-\u9fff]", tool.label("zh"))


@names
def test_it_has_a_deadline_and_says_what_it_does_to_the_world(name: str):
    tool = TOOL_REGISTRY[name]()
    assert 0 < tool.timeout <= 600
    flags = (tool.reads, tool.writes, tool.runs_code, tool.reaches_out, tool.idempotent, tool.destructive)
    assert all(isinstance(flag, bool) for flag in flags)
    assert tool.reads or tool.writes or tool.runs_code
    assert not tool.trusted  # that is the user's to say, not a tool's
    assert tool.full_name == name


@names
def test_missing_arguments_are_one_sentence_that_names_the_field(name: str):
    tool = TOOL_REGISTRY[name]()
    plain = {name: _plain(about) for name, about in tool.schema["properties"].items()}
    for field in tool.schema["required"]:
        with pytest.raises(ValueError, match=f"'{field}' is missing"):
            tool.verify({name: value for name, value in plain.items() if name != field})


def _plain(about: dict[str, Any]) -> Any:
    """A value that fits."""
    given = {"string": "x", "number": 0, "integer": 1, "boolean": True, "object": {}}
    if about.get("type") == "array":
        return [_plain(about.get("items", {"type": "string"}))] * about.get("minItems", 1)
    return about["enum"][0] if "enum" in about else given[about.get("type", "string")]


@names
def test_a_question_about_it_can_be_put_in_both_languages(name: str):
    tool = TOOL_REGISTRY[name]()
    assert tool.wants({}, "en").strip()
    assert not re.search(r"[\u4e00-\u9fff]", tool.wants({}, "en"))
    assert re.search(r"[\u4e00-\u9fff]", tool.wants({}, "zh"))
    assert isinstance(tool.addresses({"url": "https://example.org/a"}), tuple)


@names
def test_what_changes_something_or_runs_code_asks_and_what_only_reads_does_not(name: str):
    tool = TOOL_REGISTRY[name]()
    verdict = Policy().verdict(tool, {"operate": "put"}, Taint())
    if tool.runs_code:
        assert verdict == "runs_code"
    else:
        assert verdict == ("writes" if tool.writes else "run")
    if tool.reaches_out and tool.addresses({"url": "https://evil.example/?q=1"}) and verdict == "run":
        there = Taint(private=True)
        assert Policy().verdict(tool, {"url": "https://evil.example/?q=1"}, there) == "unknown_address"
