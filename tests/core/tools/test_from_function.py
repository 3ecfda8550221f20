"""`@tool`: types and docstring become the schema, arguments become Python values."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Required, TypedDict, cast

import pytest
from pydantic import BaseModel, Field

from core.agents.basic import FnCallAgent
from core.errors import BadArgumentsError, SettingsError
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from core.tools.from_function import FunctionTool, tool
from core.tools.taint import Taint


class Place(BaseModel):
    city: str
    lat: float = 0.0


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


@tool
def forecast(
    place: Place,
    days: Annotated[int, Field(ge=1, le=7)] = 1,
    unit: Literal["C", "F"] = "C",
    tags: list[str] | None = None,
    notes: Optional[dict[str, int]] = None,  # noqa: UP045 - people write both
    title: Annotated[str, "What to call it"] = "",
) -> str:
    """Tell the weather of the coming days.

    It knows every city.

    Args:
        place: Where, with the
            country if need be.
        days (int): How many days.
        tags: Labels: as many as you like.

    Returns:
        What it will be.
    """
    return f"{place.city}/{type(place).__name__}/{days}/{unit}/{tags}/{notes}/{title}"


@tool
def pension(
    years: int,
    rate: float | None = None,
    shares: list[int] | None = None,
    named: dict[str, int] | None = None,
    either: int | str = 0,
    married: bool = False,
    of: bool | int = 0,
    level: Literal[1, 2] = 1,
    where: Place | None = None,
) -> str:
    """Tell a pension."""
    return f"{years}/{rate}/{shares}/{named}/{either}/{married}/{of}/{level}/{where}"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"years": True}, "years"),
        ({"years": 1, "rate": False}, "rate"),
        ({"years": 1, "shares": [2, True]}, "shares.1"),
        ({"years": 1, "named": {"a": False}}, "named.a"),
        ({"years": 1, "either": True}, "either"),
        ({"years": 1, "level": True}, "level"),
        ({"years": 1, "where": {"city": "Rome", "lat": True}}, "where.lat"),
    ],
)
def test_true_is_no_number(arguments: dict[str, Any], field: str):
    with pytest.raises(BadArgumentsError) as refused:
        pension.verify(arguments)
    assert refused.value.details["field"] == field
    assert str(refused.value).startswith(f"The field {field!r} must be ")
    assert str(refused.value).endswith((" not true.", " not false."))


def test_true_is_taken_where_it_may_stand_and_numbers_written_as_text_beside_it():
    assert pension.call({"years": "5", "married": True, "of": True}) == "5/None/None/None/0/True/True/1/None"
    assert pension.call({"years": 5.0, "married": 1, "shares": ["3"]}) == "5/None/[3]/None/0/True/0/1/None"


def test_the_docstrings_beginning_is_the_description():
    assert forecast.name == "forecast"
    assert forecast.description == "Tell the weather of the coming days.\n\nIt knows every city."


def test_types_and_docstring_become_the_schema():
    schema = forecast.function["parameters"]
    assert schema["required"] == ["place"]
    properties = schema["properties"]
    assert properties["days"] == {
        "default": 1,
        "description": "How many days.",
        "maximum": 7,
        "minimum": 1,
        "type": "integer",
    }
    assert properties["unit"] == {"default": "C", "enum": ["C", "F"], "type": "string"}
    assert properties["title"] == {"default": "", "description": "What to call it", "type": "string"}
    assert properties["tags"]["description"] == "Labels: as many as you like."
    assert properties["place"]["description"] == "Where, with the country if need be."
    assert "title" not in schema["$defs"]["Place"]


def test_a_parameter_called_title_stays():
    assert "title" in forecast.function["parameters"]["properties"]


def test_arguments_arrive_as_python_values():
    assert forecast.call('{"place": {"city": "Oslo"}, "days": "3"}') == "Oslo/Place/3/C/None/None/"


def test_the_function_can_still_be_called():
    assert forecast(Place(city="Rom"), 2).startswith("Rom/Place/2")
    assert forecast.__doc__ is not None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "The field 'place' is missing."),
        ({"place": {}}, "The field 'place.city' is missing."),
        (
            {"place": {"city": "x"}, "days": 9},
            "The field 'days' does not fit: input should be less than or equal to 7.",
        ),
        ({"place": {"city": "x"}, "day": 9}, "There is no field 'day'."),
    ],
)
def test_wrong_arguments_are_told_with_the_field(arguments: dict[str, Any], sentence: str):
    with pytest.raises(BadArgumentsError) as caught:
        forecast.call(arguments)
    assert str(caught.value) == sentence


def test_options_and_names_of_ones_own():
    @tool(name="pick", description="Picks.", cfg={"timeout": 3})
    def choose(unit: Unit, _hidden: int = 7) -> str:
        return f"{unit.name}{_hidden}"

    assert choose.function["name"] == "pick"
    assert choose.description == "Picks."
    assert choose.timeout == 3
    assert list(choose.function["parameters"]["properties"]) == ["unit"]
    assert choose.call('{"unit": "celsius"}') == "C7"


def test_sphinx_docstrings_are_read_too():
    @tool
    def add(a: int, b: int) -> int:
        """Add.

        :param a: The first.
        :param int b: The second.
        :returns: The sum.
        """
        return a + b

    properties = add.function["parameters"]["properties"]
    assert [properties[name]["description"] for name in "ab"] == ["The first.", "The second."]
    assert add.description == "Add."
    assert add.call({"a": 1, "b": 2}) == "3"


def test_a_function_without_parameters_is_a_tool():
    @tool
    def ping() -> str:
        """Ping."""
        return "pong"

    assert ping.function["parameters"] == {"type": "object", "properties": {}, "required": []}
    assert ping.call("{}") == "pong"


def test_a_parameter_without_a_type_is_refused_when_the_tool_is_made():
    with pytest.raises(SettingsError, match="'x' of the tool 'vague' needs a type"):

        @tool
        def vague(x):  # pyright: ignore[reportUnusedFunction]
            return x


def test_a_type_that_json_cannot_fill_is_refused_when_the_tool_is_made():
    class Thing: ...

    with pytest.raises(SettingsError, match="'odd'"):
        tool(_odd_with(Thing))


def _odd_with(kind: type) -> Any:
    def odd(x):
        return x

    odd.__annotations__["x"] = kind
    return odd


def gathers_places(*places: str) -> str:
    return ", ".join(places)


def gathers_names(**names: str) -> str:
    return ", ".join(names)


@pytest.mark.parametrize(("function", "said"), [(gathers_places, r"\*places"), (gathers_names, r"\*\*names")])
def test_a_parameter_that_gathers_arguments_is_refused(function: Any, said: str):
    """No model could fill it in: it has no names."""
    with pytest.raises(SettingsError, match=rf"^The parameter '{said}' of the tool .* Write each with its name"):
        tool(function)


def test_a_parameter_that_gathers_what_the_tool_does_not_want_is_not_for_a_model():
    def counts(number: int, **_others: Any) -> str:
        return str(number)

    made = tool(counts)
    assert list(made.schema["properties"]) == ["number"]
    assert made.call({"number": 3}) == "3"


class Cake(TypedDict, total=False):
    """A cake."""

    layers: Required[int]
    name: str


def test_a_typed_dict_of_the_standard_library_is_a_parameter():
    @tool
    def bake(cakes: list[Cake]) -> str:
        return str(cakes)

    (shape,) = bake.schema["$defs"].values()
    assert (list(shape["properties"]), shape["required"]) == (["layers", "name"], ["layers"])
    assert bake.call({"cakes": [{"layers": "2"}]}) == "[{'layers': 2}]"


def tripled(number: int) -> str:
    """Three times the number."""
    return str(3 * number)


@tool(timeout=5, retries=3)
def halved(number: int) -> str:
    """Half the number."""
    return str(number // 2)


class Till:
    def __init__(self, start: int) -> None:
        self.start = start

    @tool
    def total(self, number: int) -> str:
        """The total."""
        return str(self.start + number)


COPIES: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    lambda one: pickle.loads(pickle.dumps(one)),
    lambda one: pickle.loads(pickle.dumps(copy.deepcopy(one))),
]


@pytest.mark.parametrize("copied", COPIES)
def test_a_tool_of_a_function_of_a_module_can_be_copied_and_pickled(copied: Callable[[Any], Any]):
    plain = copied(tool(name="thrice", cfg={"timeout": 7})(tripled))
    assert (plain.name, plain.timeout, plain.description) == ("thrice", 7, "Three times the number.")
    assert plain.call({"number": "3"}) == "9"
    marked = copied(halved)
    assert (marked.name, marked.timeout, marked.retries, marked.call({"number": 8})) == ("halved", 5, 3, "4")
    bound = copied(Till(3).total)
    assert (bound.name, bound.call({"number": 8})) == ("total", "11")
    assert copied(FnCallAgent([tripled, halved], ScriptedModel())).function_map["halved"].call({"number": 8}) == "4"


FLAGS = ("writes", "runs_code", "reaches_out", "destructive", "needs_consent", "deduplicate")


@pytest.mark.parametrize("flag", FLAGS)
def test_a_functions_tool_says_what_a_call_may_do(flag: str):
    set_, wrong = cast("Any", {flag: True}), cast("Any", {flag: "no"})
    marked = FunctionTool(tripled, **set_)
    assert getattr(tool(**set_)(tripled), flag)
    assert [name for name in FLAGS if getattr(marked, name)] == [flag]
    assert [name for name in FLAGS if getattr(tool(tripled), name)] == []
    assert (tool(idempotent=False)(tripled).idempotent, tool(tripled).idempotent) == (False, True)
    with pytest.raises(SettingsError, match=rf"^{flag} of the tool 'tripled' must be True or False, not 'no'\."):
        tool(**wrong)(tripled)
    with pytest.raises(SettingsError, match=r"^A tool has no option 'write'\."):
        FunctionTool(tripled, **cast("Any", {"write": True}))


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_a_functions_tool_says_what_it_says(copied: Callable[[Any], Any]):
    plain = tool(name="thrice", writes=True, idempotent=False)(tripled)
    plain.destructive = True
    assert [getattr(copied(plain), name) for name in ("writes", "idempotent", "destructive")] == [True, False, True]


def test_a_call_of_a_function_that_writes_is_asked_about_by_the_rules():
    verdict = Policy().verdict
    marks = ("writes", "runs_code", "destructive")
    found = [verdict(FunctionTool(tripled, **cast("Any", {mark: True})), {"number": 1}, Taint()) for mark in marks]
    assert found == ["writes", "runs_code", "destructive"]


def test_a_tool_of_a_function_inside_another_says_that_it_cannot_be_pickled():
    def inner(number: int) -> str:
        return str(number)

    said = r"^The tool 'inner' cannot be pickled: its function is not found as .*\. Write it at the top of a module\.$"
    with pytest.raises(TypeError, match=said):
        pickle.dumps(tool(inner))
    assert copy.deepcopy(tool(inner)).call({"number": 1}) == "1"
