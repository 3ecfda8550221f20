"""What every tool in the catalog promises."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator

from core.tools.catalog import TOOL_REGISTRY

names = pytest.mark.parametrize("name", sorted(TOOL_REGISTRY))


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
def test_it_has_a_label_in_both_languages(name: str):
    tool = TOOL_REGISTRY[name]()
    assert tool.label("en") != name
    assert re.search(r"[\u4e00-\u9fff]", tool.label("zh"))


@names
def test_it_has_a_deadline_and_says_what_it_does_to_the_world(name: str):
    tool = TOOL_REGISTRY[name]()
    assert 0 < tool.timeout <= 600
    assert all(isinstance(flag, bool) for flag in (tool.reads, tool.writes, tool.runs_code, tool.reaches_out))


@names
def test_missing_arguments_are_one_sentence_that_names_the_field(name: str):
    tool = TOOL_REGISTRY[name]()
    for field in tool.schema["required"]:
        with pytest.raises(ValueError, match=f"'{field}' is missing"):
            tool.verify({})
