"""Recorded behaviour of parts that Parlour does not have yet. The day one of them is here, its test below fails."""

from __future__ import annotations

import importlib.util

import pytest

import core
from core.tools.catalog import TOOL_REGISTRY
from tests.golden.claimed import Record, name, of


@pytest.mark.parametrize("record", of("react.detect_tool"), ids=name)
def test_there_is_no_agent_that_reads_steps_from_text(record: Record) -> None:
    assert len(record["output"]) == 4
    assert not hasattr(core, "ReActChat")


@pytest.mark.parametrize("record", of("extract_code"), ids=name)
def test_there_is_no_code_interpreter_that_would_take_code_out_of_a_fence(record: Record) -> None:
    assert "```" in record["input"]
    assert "code_interpreter" not in TOOL_REGISTRY
    assert importlib.util.find_spec("core.tools.sandbox") is None
