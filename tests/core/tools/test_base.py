"""Tools as classes: schemas in both forms, options, files, and the registry."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from core.errors import BadArgumentsError, SettingsError, UnknownNameError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.tools.base import BaseTool, BaseToolWithFileAccess, files_of
from core.tools.catalog import TOOL_REGISTRY, register_tool


class Search(BaseTool):
    name = "search"
    description = "Search."
    parameters = [
        {"name": "query", "type": "string", "description": "what", "required": True},
        {"name": "n", "type": "integer", "default": 10},
    ]
    labels = {"en": "Search", "zh": "搜索"}

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return self._verify_json_format_args(params, kwargs.get("strict", False))["query"]


def test_the_old_list_of_parameters_becomes_a_schema():
    assert Search().function == {
        "name": "search",
        "description": "Search.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "what"}, "n": {"type": "integer", "default": 10}},
            "required": ["query"],
        },
    }


def test_arguments_are_verified_by_the_seeds_method():
    assert Search().call({"query": "x"}) == "x"
    assert Search().call("{'query': 'x'}") == "x"
    with pytest.raises(ValueError, match="'query' is missing"):
        Search().call("{}")
    with pytest.raises(ValueError, match="not valid JSON"):
        Search().call("{'query': 'x'}", strict=True)


@pytest.mark.parametrize("given", ["soon", 0, -1, True, float("nan"), [3]])
def test_a_time_that_is_none_is_refused_in_a_sentence(given: object):
    with pytest.raises(SettingsError, match=r"The option 'timeout' must be a number of seconds above 0, not .*Write"):
        Search({"timeout": given})


def test_a_time_may_be_text_and_left_out():
    assert (Search({"timeout": "5"}).timeout, Search({"timeout": None}).timeout) == (5.0, Search().timeout)


def test_options_are_kept_and_the_callers_dict_is_not():
    mine = {"name_for_human": "Finder", "timeout": 3}
    search = Search(mine)
    mine.clear()
    assert (search.name_for_human, search.timeout, search.cfg["timeout"]) == ("Finder", 3.0, 3)
    assert Search().label("zh") == "搜索"
    assert not search.file_access


def test_a_schema_without_required_or_properties_is_completed():
    class Bare(BaseTool):
        name = "bare"
        parameters = {"type": "object"}

    assert Bare().schema == {"type": "object", "properties": {}, "required": []}


def test_a_tool_without_a_name_or_with_a_wrong_schema_is_refused():
    class Nameless(BaseTool): ...

    class Wrong(BaseTool):
        name = "wrong"
        parameters = {"type": "string"}

    class Missing(BaseTool):
        name = "missing"
        parameters = {"properties": {"a": {"type": "string"}}, "required": ["b"]}

    for cls, sentence in ((Nameless, "has no name"), (Wrong, "schema of an object"), (Missing, "requires 'b'")):
        with pytest.raises(SettingsError, match=sentence):
            cls()


def test_files_are_brought_to_the_tools_folder(tmp_path: Path):
    class Reader(BaseToolWithFileAccess):
        name = "reader"

        def call(self, params: str | dict[str, Any], files: list[str] | None = None, **kwargs: Any) -> str:
            super().call(params, files)
            return ",".join(sorted(path.name for path in Path(self.work_dir).iterdir()))

    source = tmp_path / "a b.txt"
    source.write_text("x")
    reader = Reader({"work_dir": str(tmp_path / "work")})
    assert reader.file_access
    assert reader.call("{}", files=[source.as_uri()]) == "a b.txt"
    with pytest.raises(BadArgumentsError, match=r"'gone.txt' is not on this machine"):
        reader.call("{}", files=["/nowhere/gone.txt"])


def test_files_of_a_conversation_are_listed_once():
    items = [ContentItem(text="see"), ContentItem(file="a.pdf"), ContentItem(image="b.png"), ContentItem(file="a.pdf")]
    assert files_of([Message("user", items), Message("user", "hi")]) == ["a.pdf", "b.png"]


@pytest.fixture
def clean_registry():
    before = set(TOOL_REGISTRY)
    yield
    for name in set(TOOL_REGISTRY) - before:
        TOOL_REGISTRY.remove(name)


@pytest.mark.usefixtures("clean_registry")
def test_a_registered_tool_has_its_name_and_is_found():
    @register_tool("mine")
    class Mine(BaseTool): ...

    assert TOOL_REGISTRY["mine"] is Mine
    assert Mine.name == "mine"


@pytest.mark.usefixtures("clean_registry")
def test_a_taken_name_is_an_error_and_overwriting_is_a_warning(caplog: pytest.LogCaptureFixture):
    @register_tool("mine")
    class Mine(BaseTool): ...

    class Other(BaseTool): ...

    with pytest.raises(ValueError, match="already a tool named 'mine'"):
        register_tool("mine")(Other)
    assert TOOL_REGISTRY["mine"] is Mine
    with caplog.at_level(logging.WARNING):
        register_tool("mine", allow_overwrite=True)(Other)
    assert TOOL_REGISTRY["mine"] is Other
    assert "'mine' already exists" in caplog.text


def test_a_conflicting_name_is_an_error_and_nothing_is_registered():
    class Named(BaseTool):
        name = "one"

    with pytest.raises(ValueError, match="conflicts with 'two'"):
        register_tool("two")(Named)
    assert "two" not in TOOL_REGISTRY


def test_an_unknown_tool_is_told_with_the_near_names():
    with pytest.raises(UnknownNameError, match="Did you mean 'calculator'"):
        TOOL_REGISTRY["calculater"]
