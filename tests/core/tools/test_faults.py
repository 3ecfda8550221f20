"""What is wrong with arguments has a sentence in each language of the page, whoever finds it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    RootModel,
    model_validator,
)
from typing_extensions import TypedDict

from core.errors import BadArgumentsError
from core.tools.arguments import check
from core.tools.faults import FAULTS
from core.tools.from_function import tool
from webui.panels.approval import unfit_sentence
from webui.words import Words

BEGINS = "This does not fit what the tool takes: "
A_LIST = {"type": "array", "items": {"type": "string"}}


def told(schema: dict[str, Any], value: Any, **of_all: Any) -> BadArgumentsError:
    """The error of a schema whose one property is `at`."""
    with pytest.raises(BadArgumentsError) as refused:
        check({"at": value}, {"type": "object", "properties": {"at": schema}, **of_all})
    return refused.value


@pytest.mark.parametrize(
    ("schema", "value", "english", "chinese"),
    [
        ({"type": "string"}, 3, "at must be text.", "at 必须是文本。"),
        ({"type": ["string", "null"]}, 3, "at must be text or null.", "at 必须是文本或null。"),
        ({"enum": ["a", "b"]}, "c", 'at must be one of these: "a", "b".', 'at 必须是以下之一："a", "b"。'),
        ({"const": 3}, 4, "at must be one of these: 3.", "at 必须是以下之一：3。"),
        (
            {"type": "string", "maxLength": 2},
            "abc",
            "the number of characters in at may be 2 at most.",
            "at 最多 2 个字符。",
        ),
        (
            {"type": "string", "minLength": 2},
            "a",
            "the number of characters in at must be 2 at least.",
            "at 至少 2 个字符。",
        ),
        ({**A_LIST, "maxItems": 1}, ["a", "b"], "the number of entries of at may be 1 at most.", "at 最多 1 项。"),
        ({**A_LIST, "minItems": 1}, [], "the number of entries of at must be 1 at least.", "at 至少 1 项。"),
        ({**A_LIST, "uniqueItems": True}, ["a", "a"], "at has an entry twice.", "at 中有重复的项。"),
        ({"maximum": 4}, 5, "at may be 4 at most.", "at 不能大于 4。"),
        ({"minimum": 4}, 3, "at must be 4 at least.", "at 不能小于 4。"),
        ({"exclusiveMaximum": 4}, 4, "at must be less than 4.", "at 必须小于 4。"),
        ({"exclusiveMinimum": 4}, 4, "at must be more than 4.", "at 必须大于 4。"),
        ({"multipleOf": 4}, 3, "at must be a multiple of 4.", "at 必须是 4 的倍数。"),
        ({"type": "object", "required": ["in"]}, {}, "at.in is missing.", "缺少 at.in。"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "at.b is missing.", "缺少 at.b。"),
        (
            {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
            {"a": 1, "b": 2},
            "it knows no at.b.",
            "没有 at.b 这个参数。",
        ),
        ({"not": {"type": "string"}}, "a", "at.", "at。"),
    ],
)
def test_each_fault_of_a_schema_has_its_sentence(
    schema: dict[str, Any], value: Any, english: str, chinese: str
) -> None:
    error = told(schema, value)
    assert unfit_sentence(error, Words("en")) == BEGINS + english
    assert unfit_sentence(error, Words("zh")) == f"与该工具的参数要求不符：{chinese}"


def test_what_is_wrong_with_all_of_them_has_a_sentence_without_a_name() -> None:
    error = told({}, 1, maxProperties=0)
    assert unfit_sentence(error, Words("zh")) == "与该工具的参数要求不符。"


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("An odd number of guests cannot sit in pairs.")
    return value


@tool
def given(
    name: Annotated[str, Field(min_length=2, max_length=4, pattern="^[a-z]+$")] = "abc",
    kind: Literal["red", "blue"] = "red",
    count: Annotated[int, Field(gt=0, le=10, multiple_of=2)] = 2,
    share: Annotated[float, Field(ge=0.5, lt=1)] = 0.5,
    many: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"],  # noqa: B006 - nobody changes it
    day: date = date(2026, 1, 1),
    site: HttpUrl | None = None,
    either: int | list[str] = 1,
    is_on: bool = False,
    pairs: Annotated[int, AfterValidator(_even)] = 2,
) -> str:
    """Take all of them."""
    return f"{name}{kind}{count}{share}{many}{day}{site}{either}{is_on}{pairs}"


@pytest.mark.parametrize(
    ("arguments", "english", "chinese"),
    [
        ({"name": 3}, "name must be text.", "name 必须是文本。"),
        ({"name": "abcde"}, "the number of characters in name may be 4 at most.", "name 最多 4 个字符。"),
        ({"name": "a"}, "the number of characters in name must be 2 at least.", "name 至少 2 个字符。"),
        ({"name": "A1"}, "name is not written by its pattern, ^[a-z]+$.", "name 不符合格式 ^[a-z]+$。"),
        ({"kind": "green"}, "kind must be one of these: 'red', 'blue'.", "kind 必须是以下之一：'red', 'blue'。"),
        ({"count": "x"}, "count must be a whole number.", "count 必须是整数。"),
        ({"count": 2.5}, "count must be a whole number.", "count 必须是整数。"),
        ({"count": 0}, "count must be more than 0.", "count 必须大于 0。"),
        ({"count": 12}, "count may be 10 at most.", "count 不能大于 10。"),
        ({"count": 3}, "count must be a multiple of 2.", "count 必须是 2 的倍数。"),
        ({"share": "x"}, "share must be a number.", "share 必须是数字。"),
        ({"share": 0.25}, "share must be 0.5 at least.", "share 不能小于 0.5。"),
        ({"share": 1}, "share must be less than 1.0.", "share 必须小于 1.0。"),
        ({"many": "x"}, "many must be a list.", "many 必须是列表。"),
        ({"many": []}, "the number of entries of many must be 1 at least.", "many 至少 1 项。"),
        ({"many": ["a", "b", "c"]}, "the number of entries of many may be 2 at most.", "many 最多 2 项。"),
        ({"day": "soon"}, "day is not written in the form that it needs.", "day 的写法不符合要求。"),
        ({"site": "nowhere"}, "site is not written in the form that it needs.", "site 的写法不符合要求。"),
        ({"either": {}}, "either must be a whole number or a list.", "either 必须是整数或列表。"),
        ({"is_on": "perhaps"}, "is_on must be true or false.", "is_on 必须是true 或 false。"),
    ],
)
def test_each_fault_of_a_functions_arguments_has_its_sentence(
    arguments: dict[str, Any], english: str, chinese: str
) -> None:
    with pytest.raises(BadArgumentsError) as refused:
        given.verify(arguments)
    assert unfit_sentence(refused.value, Words("en")) == BEGINS + english
    assert unfit_sentence(refused.value, Words("zh")) == f"与该工具的参数要求不符：{chinese}"


def test_what_a_tools_own_code_refuses_is_told_in_its_own_words() -> None:
    with pytest.raises(BadArgumentsError) as refused:
        given.verify({"pairs": 3})
    said = unfit_sentence(refused.value, Words("zh"))
    assert said.startswith("与该工具的参数要求不符。工具的说明：")
    assert "An odd number of guests" in said


class Place(BaseModel):
    row: int
    seat: int


@tool
def seated(
    guests: list[str] | None = None,
    ages: dict[str, int] | None = None,
    place: Place | None = None,
    table: int | list[str] = 1,
    code: Literal["a", 1] = 1,
    chairs: int = 2,
    plan: dict[int, int] | None = None,
) -> str:
    """Seat some guests."""
    return f"{guests}{ages}{place}{table}{code}{chairs}{plan}"


@pytest.mark.parametrize(
    ("arguments", "english"),
    [
        ({"guests": [1, 1]}, "guests.0 must be text."),
        ({"ages": {"Ann": None, "Ben": None}}, "ages.Ann must be a whole number."),
        ({"place": {}}, "place.row is missing."),
        ({"place": {"row": None, "seat": None}}, "place.row must be a whole number."),
        ({"table": {}, "chairs": "x"}, "table must be a whole number or a list."),
        ({"code": "b"}, "code must be one of these: 'a', 1."),
        ({"plan": {"first": 1}}, "it knows no plan.first."),  # the key is no number; its value is one
    ],
)
def test_of_several_faults_the_first_is_told_with_its_own_name(arguments: dict[str, Any], english: str) -> None:
    with pytest.raises(BadArgumentsError) as refused:
        seated.verify(arguments)
    assert unfit_sentence(refused.value, Words("en")) == BEGINS + english


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_fault_has_a_sentence_in_every_language(lang: str) -> None:
    for fault in FAULTS:
        error = BadArgumentsError("The field 'x' is wrong.", field="x", fault=fault, named="x", bound="7")
        said = unfit_sentence(error, Words(lang))
        assert "x" in said
        assert "{" not in said
        if lang == "zh":
            assert not re.search(r"[A-Za-z]{2,}", said)


class Side(BaseModel):
    """What comes with a dish."""

    name: str
    grams: int = Field(default=100, validation_alias=AliasChoices("weight", AliasPath("measures", 0)))


class Open(BaseModel):
    """Takes whatever comes along."""

    model_config = ConfigDict(extra="allow")

    name: str = ""


class Lax(BaseModel):
    """Says that it passes over what it does not know."""

    model_config = ConfigDict(extra="ignore")

    side: Side | None = None


class Own(BaseModel):
    """Reads keys in a way of its own."""

    name: str

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        return {"name": given["called"]} if "called" in given else given


@dataclass
class Table:
    """Has sides on it."""

    sides: list[Side]


class Wish(TypedDict, total=False):
    """A wish."""

    side: Side


class Prices(RootModel[dict[str, int]]):
    """Has whatever keys there are."""


class Sides(RootModel[list[Side]]):
    """Is a list of sides."""


def _named(given: Any) -> Any:
    return {"name": given["called"], **given} if isinstance(given, dict) and "called" in given else given


@tool
def order(
    side: Side | None = None,
    sides: list[Side] | None = None,
    named: dict[str, Side] | None = None,
    table: Table | None = None,
    wish: Wish | None = None,
    either: Side | str = "",
    others: tuple[Open, Lax, Own] | None = None,
    prices: Prices | None = None,
    root: Sides | None = None,
    numbered: dict[int, Side] | None = None,
    called: Annotated[Side, BeforeValidator(_named)] | None = None,
) -> str:
    """Take an order."""
    return repr((side, sides, named, table, wish, either, others, prices, root, numbered, called))


RICE = {"name": "rice"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"side": {**RICE, "gramms": 5}}, "side.gramms"),
        ({"sides": [RICE, {**RICE, "gramms": 5}]}, "sides.1.gramms"),
        ({"named": {"one": {**RICE, "gramms": 5}}}, "named.one.gramms"),
        ({"table": {"sides": [{**RICE, "gramms": 5}]}}, "table.sides.0.gramms"),
        ({"wish": {"side": {**RICE, "gramms": 5}}}, "wish.side.gramms"),
        ({"wish": {"sidee": RICE}}, "wish.sidee"),
        ({"either": {**RICE, "gramms": 5}}, "either.gramms"),
        ({"others": [{}, {"side": {**RICE, "gramms": 5}}, RICE]}, "others.1.side.gramms"),
        ({"root": [{**RICE, "gramms": 5}]}, "root.0.gramms"),
        ({"numbered": {"1": {**RICE, "gramms": 5}}}, "numbered.1.gramms"),
        ({"called": {**RICE, "gramms": 5}}, "called.gramms"),
        ({"side": {**RICE, "grams": 5}}, "side.grams"),  # it is written under other names
    ],
)
def test_a_key_of_an_object_that_its_type_does_not_know_is_refused_by_name(
    arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(BadArgumentsError) as refused:
        order.verify(arguments)
    assert str(refused.value).startswith(f"There is no field '{named}'.")
    assert unfit_sentence(refused.value, Words("en")) == f"{BEGINS}it knows no {named}."
    assert unfit_sentence(refused.value, Words("zh")) == f"与该工具的参数要求不符：没有 {named} 这个参数。"
    assert refused.value.details["field"] == named


@pytest.mark.parametrize(
    "arguments",
    [
        {"side": {**RICE, "weight": 5}},
        {"side": {**RICE, "measures": [5]}},
        {"either": "soup"},
        {"others": [{"any": 1}, {"more": 2}, {"called": "pea", "more": 3}]},
        {"prices": {"rice": 3}},
        {"root": [RICE]},
        {"called": {"called": "pea"}},
    ],
)
def test_what_a_type_says_that_it_takes_or_passes_over_is_not_refused(arguments: dict[str, Any]) -> None:
    order.verify(arguments)
