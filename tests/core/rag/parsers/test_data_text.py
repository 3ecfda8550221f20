"""JSON and source code: every value is found, with the names that lead to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import BrokenDocumentError
from core.rag.parsers.base import clean
from core.rag.parsers.data_text import DataTextParser
from core.rag.parsers.process import Parsed
from tests.tries import tries

Read = Callable[..., Parsed]


@pytest.fixture
def blocks(read: Read, tmp_path: Path) -> Callable[..., list[tuple[str, str]]]:
    def blocks(value: Any, name: str = "a.json") -> list[tuple[str, str]]:
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return [(block.kind, block.text) for block in read(path).blocks]

    return blocks


def test_values_stand_beside_the_names_that_lead_to_them(blocks: Callable[..., Any]) -> None:
    value = {
        "name": "灯",
        "on": True,
        "size": {"w": 1.5, "h": None},
        "tags": ["a", "b"],
        "deep": {"x": [{"y": 1}, [2, 3]]},
    }
    assert blocks(value) == [
        ("paragraph", "name: 灯\non: true\nsize.w: 1.5\ntags: a, b"),
        ("heading", "deep"),
        ("paragraph", "deep.x[0].y: 1\ndeep.x[1]: 2, 3"),
    ]


def test_a_list_of_records_is_a_table(blocks: Callable[..., Any]) -> None:
    records = [{"city": "Ulm", "people": 130_000}, {"city": "Bonn", "mayor": {"name": "K"}}]
    expected = ("table", "city | people | mayor\nUlm | 130000 | \nBonn |  | name: K")
    assert blocks(records) == [expected]
    assert blocks({"a": 1, "b": {"cities": records}}) == [
        ("paragraph", "a: 1"), ("heading", "b"), ("heading", "b.cities"), expected,
    ]  # fmt: skip
    lines = "\n".join(map(json.dumps, records))
    assert blocks(lines, "a.jsonl") == [expected]
    assert blocks(lines + '\n{"cut', "a.jsonl") == [expected]


def test_a_notebook_reads_as_texts_and_programs(blocks: Callable[..., Any]) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Words"]},
        {"cell_type": "code", "source": "x = 1\n", "outputs": []},
    ]
    assert blocks({"cells": cells}, "a.ipynb") == [("heading", "Title"), ("paragraph", "Words"), ("code", "x = 1")]


def test_what_programs_of_a_notebook_printed_is_read_as_far_as_it_is_text(blocks: Callable[..., Any]) -> None:
    outputs = [
        {"output_type": "stream", "text": ["one\n", "\x1b[31mtwo\x1b[0m\n"]},
        {"output_type": "execute_result", "data": {"text/plain": "42 灯", "text/html": "<b>42</b>"}},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
        {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["a", "b"]},
        "no output",
    ]
    found = blocks({"cells": [{"cell_type": "code", "source": "run()", "outputs": outputs}, "no cell"]}, "a.ipynb")
    assert [text for _, text in found] == ["run()", "one\ntwo", "42 灯", "ValueError: bad"]


@pytest.mark.parametrize("cells", [{}, 3, [[]], [{"source": 7}], [{"outputs": 7}], [{"outputs": [{"data": [1]}]}]])
def test_a_notebook_of_another_shape_says_less_and_does_not_fail(blocks: Callable[..., Any], cells: Any) -> None:
    assert blocks({"cells": cells}, "a.ipynb") == []


@pytest.mark.parametrize("text", ["{", "not json", "[" * 100_000, "1" * 10_000])
def test_what_is_no_json_says_so(blocks: Callable[..., Any], text: str) -> None:
    with pytest.raises(BrokenDocumentError):
        blocks(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(60))
@given(_VALUES)
def test_no_value_is_lost(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    found = [one for one in DataTextParser().parse(path, "a.json") if hasattr(one, "kind")]
    text = "".join("".join((one.text + "".join(map("".join, one.cells))).split()) for one in found)  # type: ignore[union-attr]
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)
        elif here is not None:
            shown = here if isinstance(here, str) else json.dumps(here)
            assert "".join(clean(shown).split()) in text


def test_a_class_stays_with_its_methods(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "import os\n\n\nclass A:\n    x = 2\n\n    def f(self):\n        return 1\n\n\ndef g():\n    pass\n"
    )
    assert [block.text for block in read(path).blocks] == [
        "import os",
        "class A:\n    x = 2\n\n    def f(self):\n        return 1",
        "def g():\n    pass",
    ]


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "utf-16", "utf-8"])
def test_source_code_is_read_whatever_its_encoding(read: Read, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.c"
    comment = (
        "/* 這是一個計算平均數的函數，輸入是數字 */"
        if encoding == "big5"
        else "/* 这是一个计算平均数的函数，输入是数字 */"
    )
    path.write_bytes(f"{comment}\nint f(void) {{\n\n    return 1;\n\n}}\n".encode(encoding))
    (found,) = read(path).blocks
    assert (found.kind, found.text) == ("code", f"{comment}\nint f(void) {{\n\n    return 1;\n\n}}")
