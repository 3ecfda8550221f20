"""One lenient reader for what models write as a call: no value is changed by how it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.calling.call_text import CallText, read_calls

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(
    [
        "it's",
        'say "hi"',
        "a\nb\tc",
        "{x: 1}",
        "// no comment",
        "http://x#y",
        "C:\\new",
        "😀",
        "</tool_call>",
        "None",
        "",
    ]
)
KEYS = st.from_regex(r"\A[a-z][a-z_]{0,8}\Z")
VALUES = st.recursive(
    TEXT
    | st.integers(-(10**20), 10**20)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
CALLED = '{"name": "f", "arguments": %s}'


@given(ARGUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_what_is_json_is_read_as_it_is(arguments: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    written = json.dumps(arguments, ensure_ascii=ascii_only, indent=indent)
    for body in (CALLED % written, CALLED % json.dumps(written), CALLED % written + "}"):
        [call] = read_calls(body)
        assert (call.name, json.loads(call.arguments), call.readable) == ("f", arguments, True)


@given(ARGUMENTS)
def test_a_brace_too_few_changes_nothing(arguments: dict[str, Any]) -> None:
    [call] = read_calls((CALLED % json.dumps(arguments, ensure_ascii=False))[:-1])
    assert json.loads(call.arguments) == arguments


SIMPLE = st.recursive(
    st.text(alphabet="abc XYZ 你😀.,:-_{}[]", max_size=10) | st.integers(-999, 999) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(KEYS, SIMPLE, max_size=4))
def test_what_is_python_is_read_as_it_was_meant(arguments: dict[str, Any]) -> None:
    [call] = read_calls(f"{{'name': 'f', 'arguments': {arguments!r},}}")
    assert json.loads(call.arguments) == arguments


@pytest.mark.parametrize("body", ["f", "[]x", "{", '"f"', "12", "<function=>x", "{'x': 1}", '{"name": 5}', "[1, 2]"])
def test_what_names_no_tool_is_no_readable_call(body: str) -> None:
    assert [call for call in read_calls(body) if call.readable] == []
    assert all(call.name == "" for call in read_calls(body))


def test_an_empty_body_is_no_call_at_all() -> None:
    assert read_calls(" \n ") == []
    assert read_calls("[]") == []


@pytest.mark.parametrize(
    "body",
    [
        '[{"name": "f"}, {"name": "g", "parameters": {"x": 1}}]',
        '{"name": "f"} {"name": "g", "arguments": {"x": 1}}',
        '{"name": "f"}\n{"function": "g", "arguments": {"x": 1}}',
        "<function=f></function>\n<function=g><parameter=x>1</parameter></function>",
    ],
)
def test_several_calls_in_one_tag_are_that_many(body: str) -> None:
    schema = {"name": "g", "parameters": {"properties": {"x": {"type": "integer"}}}}
    assert read_calls(body, [schema]) == [CallText("f", "{}"), CallText("g", '{"x": 1}')]


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "f", "arguments": {"path": "/home/a',
        '{"name": "f", "arguments": {"path": "/home/a"',
        "<function=f>\n<parameter=path>\n/home/a",
        '{"name": "f", "arguments": {}}\n<code>\nprint(1',
    ],
)
def test_half_a_call_is_not_read_where_nothing_may_be_mended(body: str) -> None:
    [call] = read_calls(body, mend=False)
    assert not call.readable
    assert call.arguments == body


def test_mending_that_would_lose_words_is_not_done() -> None:
    [call] = read_calls('{"name": "f", "arguments": {"code": "d = {"k": 1, "z": [1,2]}\\nprint(d["k"])"}}')
    assert not call.readable
    [call] = read_calls('{"name": "f", "arguments": {"x": "one" "two"}}')
    assert not call.readable


def test_a_schema_that_is_none_is_no_obstacle() -> None:
    for functions in ([{"name": "f", "parameters": None}], [{"name": "f", "parameters": {"properties": []}}], [{}]):
        assert read_calls("<function=f><parameter=x>1</parameter></function>", functions) == [
            CallText("f", '{"x": "1"}')
        ]


WEATHER = {"name": "f", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "f", "args": {"city": "Oslo"}}',
        '{"name": "f", "input": {"city": "Oslo"}}',
        '{"name": "f", "city": "Oslo"}',
        '{"type": "function", "function": {"name": "f", "city": "Oslo"}}',
    ],
)
def test_arguments_under_another_name_or_none_are_not_lost(body: str) -> None:
    for mend in (True, False):
        assert read_calls(body, [WEATHER], mend=mend) == [CallText("f", '{"city": "Oslo"}')]


@pytest.mark.parametrize("body", ['{"name": "f", "arguments": []}', '{"name": "f", "id": "1"}', '{"name": "f"}'])
def test_a_call_without_arguments_has_none(body: str) -> None:
    assert read_calls(body, [WEATHER]) == [CallText("f", "{}")]


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "-Infinity"])
def test_a_number_that_json_does_not_have_is_null_however_the_call_was_read(number: str) -> None:
    for mend in (True, False):
        assert read_calls(CALLED % f'{{"x": {number}}}', mend=mend) == [CallText("f", '{"x": null}')]
    assert read_calls(f"{{'name': 'f', 'arguments': {{'x': {number},}}}}") == [CallText("f", '{"x": null}')]
