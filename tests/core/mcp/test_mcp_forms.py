"""What a server wants to know as a form: what can be shown is, and what is typed is checked before it is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ParlourError
from core.mcp.forms import answers, form_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "size": {"type": "number"},
        "sure": {"type": "boolean", "default": True},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"], "default": "g"},
        "town": {"oneOf": [{"const": "b", "title": "Bern"}, {"const": "u", "title": "Ulm"}]},
    },
    "required": ["name"],
}


def test_every_kind_of_a_flat_schema_becomes_a_field() -> None:
    fields = form_of(SCHEMA)
    assert fields is not None
    assert [(one.name, one.kind, one.needed, one.text) for one in fields] == [
        ("name", "text", True, ""),
        ("age", "integer", False, ""),
        ("size", "number", False, ""),
        ("sure", "truth", False, "true"),
        ("colour", "choice", False, "g"),
        ("town", "choice", False, ""),
    ]
    assert fields[0].title == "Your name"
    assert fields[4].choices == (("r", "Red"), ("g", "Green"))
    assert fields[5].choices == (("b", "Bern"), ("u", "Ulm"))


def test_what_was_typed_becomes_values_of_the_kinds_asked_for() -> None:
    typed = {"name": "Lin", "age": " 6 ", "size": "1.5", "sure": "false", "colour": "r", "town": ""}
    made = answers(form_of(SCHEMA) or (), typed)
    assert made == {"name": "Lin", "age": 6, "size": 1.5, "sure": False, "colour": "r"}
    assert isinstance(made["age"], int)


@pytest.mark.parametrize(
    "typed",
    [
        {},
        {"name": "  "},
        {"name": "L"},
        {"name": "Lin Yutang"},
        {"name": 3},
        {"name": "Lin", "age": "six"},
        {"name": "Lin", "age": "1.5"},
        {"name": "Lin", "age": "-1"},
        {"name": "Lin", "age": "1e999"},
        {"name": "Lin", "size": "NaN"},
        {"name": "Lin", "size": "Infinity"},
        {"name": "Lin", "sure": "yes"},
        {"name": "Lin", "colour": "Red"},
        {"name": "Lin", "colour": ["r"]},
    ],
)
def test_what_does_not_fit_is_not_sent(typed: dict[str, Any]) -> None:
    with pytest.raises(ParlourError) as caught:
        answers(form_of(SCHEMA) or (), typed)
    assert caught.value.words_key == "wrong_answer"


def test_what_the_form_does_not_ask_is_not_sent() -> None:
    assert answers(form_of(SCHEMA) or (), {"name": "Lin", "admin": "true"}) == {"name": "Lin"}


def test_a_form_that_cannot_be_shown_whole_is_none() -> None:
    nested = {"type": "object", "properties": {"deep": {"type": "object"}}}
    assert form_of(nested) == ()
    assert form_of({**nested, "required": ["deep"]}) is None
    assert form_of({"properties": "none"}) is None
    many = {"properties": {"one": {"enum": [str(n) for n in range(500)]}}, "required": ["one"]}
    assert form_of(many) is None


def test_titles_and_hints_hide_nothing() -> None:
    about = {"type": "string", "title": "Name\u202e\n", "description": "x" * 9000}
    fields = form_of({"properties": {"n": about}})
    assert fields is not None
    field = fields[0]
    assert "\u202e" not in field.title
    assert "\n" not in field.title
    assert len(field.hint) <= 500


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
_about = st.dictionaries(
    st.sampled_from(
        [
            "type",
            "enum",
            "oneOf",
            "anyOf",
            "enumNames",
            "items",
            "default",
            "title",
            "description",
            "minimum",
            "maxItems",
        ]
    ),
    _json | st.sampled_from(["string", "number", "integer", "boolean", "array", ["a", "b"], {"enum": ["a", "b"]}]),
)


@given(st.dictionaries(st.text(max_size=5), _about | _json, max_size=4), _json)
def test_no_schema_breaks_the_form(properties: dict[str, Any], needed: Any) -> None:
    fields = form_of({"type": "object", "properties": properties, "required": needed})
    for field in fields or ():
        assert field.kind not in {"choice", "choices"} or field.choices
        assert field.kind != "choices" or set(json.loads(field.text)) <= set(dict(field.choices))
        assert not field.text or field.kind != "choice" or field.text in dict(field.choices)


MANY: dict[str, Any] = {
    "properties": {
        "days": {
            "type": "array",
            "title": "Days",
            "items": {"type": "string", "enum": ["mo", "tu", "we"]},
            "default": ["tu"],
        },
        "towns": {
            "type": "array",
            "items": {"anyOf": [{"const": "b", "title": "Bern"}, {"const": "u", "title": "Ulm"}, {"const": "c"}]},
            "minItems": 1,
            "maxItems": 2,
        },
    },
    "required": ["towns"],
}


def test_of_many_choices_several_may_be_picked() -> None:
    fields = form_of(MANY)
    assert fields is not None
    days, towns = fields
    assert (days.kind, days.title, days.text, days.needed) == ("choices", "Days", '["tu"]', False)
    assert towns.choices == (("b", "Bern"), ("u", "Ulm"), ("c", "c"))
    assert (towns.kind, towns.least, towns.most, towns.text) == ("choices", 1, 2, "[]")
    assert answers(fields, {"days": '["we", "mo", "we"]', "towns": '["u"]'}) == {"days": ["mo", "we"], "towns": ["u"]}
    assert answers(fields, {"towns": '["b", "u"]'}) == {"towns": ["b", "u"]}
    free = form_of({"properties": {"days": MANY["properties"]["days"]}, "required": ["days"]})
    assert answers(free or (), {"days": "[]"}) == {"days": []}


def test_whoever_unticks_what_was_ticked_at_first_is_not_taken_for_silent() -> None:
    days = MANY["properties"]["days"]
    assert answers(form_of({"properties": {"days": days}}) or (), {"days": "[]"}) == {"days": []}
    assert answers(form_of({"properties": {"days": days | {"minItems": 1}}}) or (), {"days": "[]"}) == {}
    assert answers(form_of({"properties": {"days": days | {"default": []}}}) or (), {"days": "[]"}) == {}


@pytest.mark.parametrize("typed", ["", "[]", '["b", "u", "c"]', '["x"]', '"b"', "b", "[1]", "{}", "[" * 5000, ["b"]])
def test_a_choice_of_too_many_or_too_few_or_of_something_else_is_not_sent(typed: object) -> None:
    with pytest.raises(ParlourError) as caught:
        answers(form_of(MANY) or (), {"towns": typed})
    assert (caught.value.words_key, caught.value.details["name"]) == ("wrong_answer", "towns")


@pytest.mark.parametrize(
    "items", [None, {}, {"type": "string"}, {"enum": [1, 2]}, {"enum": []}, {"enum": ["a"] * 201}, [{}]]
)
def test_a_list_of_anything_cannot_be_shown(items: object) -> None:
    assert form_of({"properties": {"a": {"type": "array", "items": items}}, "required": ["a"]}) is None
    assert form_of({"properties": {"a": {"type": "array", "items": items}}}) == ()
