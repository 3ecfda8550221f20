"""Tools of installed packages: found when they are needed; a broken one harms nobody."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from core.errors import SettingsError, UnknownNameError
from core.registry import Entry
from core.tools import catalog as plugins
from core.tools.base import BaseTool
from core.tools.catalog import GROUP, ToolRegistry


class TideTable(BaseTool):
    """A tool of somebody's package."""

    description = "Tells when the tide is high."

    def call(self, params: str | dict[str, object], **kwargs: object) -> str:
        return "at noon"


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("somebodys_tides")
    module.TideTable = TideTable  # type: ignore[attr-defined]
    module.Calculator = TideTable  # type: ignore[attr-defined]
    module.table = "no tool"  # type: ignore[attr-defined]
    module.Other = type("Other", (BaseTool,), {"name": "another_name"})  # type: ignore[attr-defined]
    monkeypatch.setattr(TideTable, "name", "")
    monkeypatch.setitem(sys.modules, "somebodys_tides", module)
    return module


def points(**named: str) -> list[EntryPoint]:
    return [EntryPoint(name, value, GROUP) for name, value in named.items()]


@pytest.fixture
def registry(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ToolRegistry:
    found = points(
        broken="somebodys_missing_package:Tool",
        gone="somebodys_tides:NoSuchTool",
        table="somebodys_tides:table",
        wrong="somebodys_tides:Other",
        calculator="somebodys_tides:Calculator",
        tide_table="somebodys_tides:TideTable",
    )
    monkeypatch.setattr(plugins, "entry_points", lambda group: found if group == GROUP else [])
    return ToolRegistry("tool", {"calculator": Entry("core.tools.builtin.calculator:Calculator")})


def test_a_plug_in_is_a_tool_like_any_other(registry: ToolRegistry):
    assert registry["tide_table"]().name == "tide_table"
    assert registry["tide_table"]().call("{}") == "at noon"
    assert "tide_table" in registry
    assert registry.plug_ins == ("tide_table",)


def test_broken_ones_are_left_out_and_said(registry: ToolRegistry, caplog: pytest.LogCaptureFixture):
    assert list(registry) == ["calculator", "tide_table"]
    assert len(registry) == 2
    for name in ("broken", "table", "gone", "wrong"):
        with pytest.raises(UnknownNameError):
            registry[name]
    for value in ("somebodys_missing_package:Tool", "NoSuchTool", "somebodys_tides:table", "somebodys_tides:Other"):
        assert value in caplog.text


def test_nobody_can_take_the_place_of_a_built_in_tool(registry: ToolRegistry, caplog: pytest.LogCaptureFixture):
    assert registry["calculator"].__module__ == "core.tools.builtin.calculator"
    assert "calculator" in list(registry)
    assert "already a tool named 'calculator'" in caplog.text


def test_a_tool_that_ships_is_had_without_looking_for_plug_ins(registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch):
    def never(group: str) -> list[EntryPoint]:
        raise AssertionError(group)

    monkeypatch.setattr(plugins, "entry_points", never)
    assert "calculator" in registry
    assert registry["calculator"]().name == "calculator"


def test_one_that_cannot_be_made_is_one_sentence(registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch):
    def broken(self: TideTable, cfg: object = None) -> None:
        raise RuntimeError("no cable")

    assert registry.made("tide_table").name == "tide_table"
    monkeypatch.setattr(TideTable, "__init__", broken)
    with pytest.raises(SettingsError, match="RuntimeError"):
        registry.made("tide_table")
