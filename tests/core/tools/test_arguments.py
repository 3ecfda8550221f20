"""What a model wrote becomes a dict, or one sentence that names the field."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadArgumentsError
from core.tools.arguments import ArgumentText, check, read_arguments

_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"enum": ["C", "F"]},
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
    },
    "required": ["city"],
}

objects = st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))


@given(objects)
def test_what_is_json_is_read_as_json(value: dict[str, Any]):
    assert read_arguments(json.dumps(value)) == value
    assert read_arguments(ArgumentText.of(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  ", {}),
        ("{'a': 1}", {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        (json.dumps('{"a": 1}'), {"a": 1}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_what_is_nearly_json_is_read_too(text: str, expected: dict[str, Any]):
    assert read_arguments(text) == expected


@pytest.mark.parametrize("text", ["[1, 2]", "3", "hello there", "null"])
def test_what_is_no_object_is_refused(text: str):
    with pytest.raises(BadArgumentsError):
        read_arguments(text)


def test_strict_reading_takes_json_alone():
    with pytest.raises(ValueError, match="not valid JSON"):
        read_arguments("{'a': 1}", strict=True)


def test_the_callers_dict_is_not_handed_on():
    mine = {"a": 1}
    read_arguments(mine)["a"] = 2
    assert mine == {"a": 1}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "The field 'city' is missing."),
        ({"city": 3}, "The field 'city' must be text, not 3."),
        ({"city": "x", "days": 1.5}, "The field 'days' must be a whole number, not 1.5."),
        ({"city": "x", "unit": "K"}, 'The field \'unit\' must be one of "C", "F", not "K".'),
        ({"city": "x", "place": {}}, "The field 'place.lat' is missing."),
    ],
)
def test_one_sentence_names_the_field(arguments: dict[str, Any], sentence: str):
    with pytest.raises(BadArgumentsError) as caught:
        check(arguments, _SCHEMA)
    assert str(caught.value) == sentence


def test_a_broken_schema_checks_nothing():
    check({"a": 1}, {"type": "nonsense"})
    check({"a": 1}, {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})


_TWICE = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"properties": {"b": {}}, "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"allOf": [{"patternProperties": {"^(a+)+$": {}}}], "unevaluatedProperties": False},
        {"properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": {**_TWICE, "a40": {}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
    ],
)
def test_whatever_schema_a_stranger_gives_a_check_has_an_end(schema: dict[str, Any]):
    arguments = {"a": "a" * 60 + "!", "a" * 60 + "!": 1}
    began = process_time()
    check(arguments, {"type": "object", **schema})
    assert process_time() - began < 5  # else it would be centuries


def test_what_has_an_end_is_still_checked():
    tree = {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}}
    check({"n": 1, "next": {"n": 2, "next": {"n": 3}}}, tree)
    with pytest.raises(BadArgumentsError, match=r"next\.n"):
        check({"n": 1, "next": {"n": "two"}}, tree)
    with pytest.raises(BadArgumentsError, match="'b' was unexpected"):
        check({"b": 1}, {"type": "object", "properties": {"a": {}}, "additionalProperties": False})
