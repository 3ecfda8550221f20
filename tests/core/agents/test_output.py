"""Typed output: what a model writes becomes a value of the type that was asked for, or goes back to it."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Optional, Required

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from core import Cited, Message, ModelRetry, OutputError, Partial, RunContext, Stop, tool
from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.output import OutputType
from core.errors import SettingsError
from core.testing.model_server import ModelServer
from core.testing.script import Reply as Said
from core.testing.script import refusal
from core.testing.scripted_model import ScriptedModel
from tests.core.agents.test_ask import PAGE, look
from tests.tries import tries


class Invoice(BaseModel):
    total: float = Field(gt=0)
    items: list[str]


class Order(TypedDict):
    number: int


@dataclass
class Point:
    x: int
    y: int


def doubled(number: int) -> int:
    """Twice the number."""
    if number > 100:
        raise ModelRetry("Too large: at most 100.")
    return number * 2


async def with_deps(context: RunContext[str], number: int) -> str:
    return f"{context.deps} {number}"


@pytest.mark.parametrize(
    ("kind", "said", "output"),
    [
        (Invoice, '{"total": 3, "items": ["tea"]}', Invoice(total=3, items=["tea"])),
        (Invoice, 'Here it is:\n```json\n{"total": 3, "items": []}\n```\nBye.', Invoice(total=3, items=[])),
        (Invoice, 'Sure! {"total": 3, "items": ["tea",]', Invoice(total=3, items=["tea"])),
        (Order, '{"number": 7}', {"number": 7}),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Literal["red", "blue"], '{"result": "red"}', "red"),
        (Literal["red", "blue"], "red", "red"),
        (list[int], '{"result": [1, 2]}', [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (Invoice | Point, '{"result": {"x": 1, "y": 2}}', Point(1, 2)),
        (int, "42", 42),
        (dict[str, int], '{"result": {"a": 1}}', {"a": 1}),
        (doubled, '{"number": 4}', 8),
        (with_deps, '{"number": 4}', "tea 4"),
        (str, "Just words.", "Just words."),
    ],
)
def test_what_the_model_writes_becomes_the_type(kind: Any, said: str, output: Any):
    assert BasicAgent(llm=ScriptedModel(said)).ask("What?", output_type=kind, deps="tea").output == output


def test_what_does_not_fit_goes_back_with_the_reason_and_without_tools():
    model = ScriptedModel('{"total": 0, "items": []}', '{"total": 3, "items": []}')
    reply = FnCallAgent([look], model).ask("What?", output_type=Invoice)
    assert reply.output == Invoice(total=3, items=[])
    told = model.requests[1]
    assert told.messages[-1].get_text_content().startswith("This does not fit: total: Input should be greater than 0.")
    assert [bool(one.functions) for one in model.requests] == [True, False]


@pytest.mark.parametrize("retries", [0, 2])
def test_what_never_fits_is_one_clear_error(retries: int):
    model = ScriptedModel("No idea.")
    with pytest.raises(OutputError, match=r"and its answer does not fit: .* raise output_retries") as error:
        BasicAgent(llm=model).ask("What?", output_type=Invoice, output_retries=retries)
    assert (error.value.tries, len(model.requests), error.value.text) == (retries + 1, retries + 1, "No idea.")


def test_a_function_of_the_output_sends_back_by_itself():
    model = ScriptedModel('{"number": 400}', '{"number": 40}')
    assert BasicAgent(llm=model).ask("What?", output_type=doubled).output == 80
    assert "at most 100" in model.requests[1].messages[-1].get_text_content()


def test_the_service_is_given_the_schema_and_does_without_where_it_refuses_it():
    answer = Said('{"total": 3, "items": []}')
    with ModelServer([answer, refusal(400, "Unknown parameter: response_format"), answer]) as server:
        agent = BasicAgent(llm={"model": "scripted", "model_server": server.base_url, "api_key": "any"})
        assert agent.ask("What?", output_type=Invoice).output.total == 3
        assert agent.ask("What?", output_type=Invoice).output.total == 3
        sent = [one.body.get("response_format") for one in server.requests]
    assert sent[0] is not None
    assert sent[0]["json_schema"]["strict"] is True
    assert sent[0]["json_schema"]["schema"]["required"] == ["total", "items"]
    assert [one is None for one in sent] == [False, False, True]


@tool
def weigh(what: str) -> int:
    """Weigh it."""
    return len(what)


def test_calls_come_first_and_the_answer_is_typed():
    model = ScriptedModel(Said(calls=[("weigh", {"what": "tea"})]), '{"total": 3, "items": ["tea"]}')
    reply = FnCallAgent([weigh], model).ask("How much?", output_type=Invoice)
    assert (reply.output.items, reply.calls[0].result) == (["tea"], "3")


class Brewing(BaseModel):
    minutes: Cited[int]
    maker: Cited[str | None]


def test_a_cited_field_knows_its_passage_and_page_and_a_wrong_number_goes_back():
    wrong = {"minutes": {"value": 4, "sources": [2]}, "maker": {"value": None, "sources": []}}
    right = {"minutes": {"value": 4, "sources": [1]}, "maker": {"value": None, "sources": []}}
    model = ScriptedModel(Said(calls=[("look", {"word": "tea"})]), json.dumps(wrong), json.dumps(right))
    output = FnCallAgent([look], model).ask("When?", output_type=Brewing).output
    assert (output.minutes.value, output.minutes.page, output.minutes.document) == (4, 3, "tea.pdf")
    assert (output.minutes.passages, output.minutes.rectangles) == ((PAGE,), PAGE.rectangles)
    assert (output.maker.page, output.maker.passages) == (None, ())
    assert "There is no passage 2; there are 1 to 1" in model.requests[2].messages[-1].get_text_content()


NO_SOURCE = {"minutes": {"value": 4, "sources": []}, "maker": {"value": None, "sources": []}}


def test_a_cited_value_without_a_source_goes_back_and_one_that_is_null_needs_none():
    right = NO_SOURCE | {"minutes": {"value": 4, "sources": [1]}}
    model = ScriptedModel(Said(calls=[("look", {"word": "tea"})]), json.dumps(NO_SOURCE), json.dumps(right))
    output = FnCallAgent([look], model).ask("When?", output_type=Brewing).output
    assert output.minutes.page == 3
    told = model.requests[2].messages[-1].get_text_content()
    assert "minutes: sources is empty: write the numbers (1 to 1) of the passages that say so." in told
    assert "maker" not in told


@pytest.mark.parametrize("retries", [0, 2])
def test_a_cited_value_that_stays_without_a_source_is_taken_after_the_retries_with_no_passages(retries: int):
    model = ScriptedModel(Said(calls=[("look", {"word": "tea"})]), *[json.dumps(NO_SOURCE)] * (retries + 1))
    output = FnCallAgent([look], model).ask("When?", output_type=Brewing, output_retries=retries).output
    assert (output.minutes.value, output.minutes.passages, output.minutes.page) == (4, (), None)
    assert len(model.requests) == retries + 2


def test_a_cited_value_needs_no_source_where_there_are_no_passages():
    model = ScriptedModel(json.dumps(NO_SOURCE))
    assert BasicAgent(llm=model).ask("When?", output_type=Brewing).output.minutes.value == 4


@pytest.mark.anyio
async def test_an_output_can_be_followed_while_it_is_written():
    text = ['{"total": 3, ', '"items": ["te', 'a"]}']
    agent = BasicAgent(llm=ScriptedModel(Said(text, pace=0.06)))
    seen: list[Partial[Invoice]] = [one async for one in agent.partials("What?", Invoice)]
    assert [one.value for one in seen] == [
        {"total": 3},
        {"total": 3, "items": ["te"]},
        {"total": 3, "items": ["tea"]},
        {"total": 3, "items": ["tea"]},
    ]
    assert (seen[0].output, seen[-1].output, seen[-1].done) == (None, Invoice(total=3, items=["tea"]), True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (3, "must be a type, not 3. Write a pydantic model, a dataclass"),
        ("Invoice", "must be a type, not 'Invoice'. Write output_type=Invoice."),
        (lambda x: x, "cannot be .*Write a pydantic model, a dataclass"),
        (object(), "cannot be .*Write a pydantic model, a dataclass"),
    ],
)
def test_what_is_no_type_is_refused_with_what_to_write(wrong: Any, said: str):
    with pytest.raises(SettingsError, match=f"^output_type {said}"):
        BasicAgent(llm=ScriptedModel("Yes.")).ask("What?", output_type=wrong)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=tries(100))
@given(JSON, st.text(alphabet="abc \n", max_size=10))
def test_any_json_is_read_as_it_was_written(value: Any, words: str):
    kind = OutputType.of(Any)
    assert kind is not None
    text = json.dumps({"result": value}, ensure_ascii=False)
    assert kind.read(text) == kind.read(f"{words}\n```json\n{text}\n```") == value


@settings(max_examples=tries(100))
@given(st.text(max_size=60))
def test_no_text_stops_the_reading(text: str):
    kind = OutputType.of(Invoice)
    assert kind is not None
    kind.partial(text)
    with pytest.raises(ValueError, match=r"."):
        kind.read(text)


def test_an_output_is_made_of_what_the_guards_let_through():
    def agent(*turns: str) -> FnCallAgent:
        made = FnCallAgent(llm=ScriptedModel(*turns))
        made.output_guard(lambda text: text.replace("1234", "0"))
        return made

    reply = agent('{"x": 1234, "y": 2}').ask("Where?", output_type=Point)
    assert (reply.output, reply.text) == (Point(0, 2), '{"x": 0, "y": 2}')
    checked = agent("The key is 1234.")
    checked.check(lambda output: output.upper())
    assert checked.ask("Key?").output == "THE KEY IS 0."
    with pytest.raises(OutputError) as error:
        agent(*['{"total": 1234, "items": []}'] * 3).ask("How much?", output_type=Invoice)
    assert "1234" not in str(error.value)


@pytest.mark.parametrize(("stops", "text", "output"), [(False, '{"result": 0}', 0), (True, "No.", None)])
def test_an_answer_that_is_written_anew_passes_guards_and_functions_around_the_model(
    stops: bool, text: str, output: int | None
):
    class Echo(Agent):
        def _run(self, messages: list[Message], lang: str = "en") -> Iterator[list[Message]]:  # type: ignore[override]
            yield [Message("assistant", "No number.")]

    secret = "1234567890123456"  # so long that no time and no id holds it by chance
    seen: list[str] = []
    agent = Echo(llm=ScriptedModel(f'{{"result": {secret}}}', "never said"))
    agent.output_guard(lambda text: (Stop("No.") if stops else text.replace(secret, "0")) if secret in text else None)
    agent.before_model(lambda request: seen.append("before"))
    agent.after_model(lambda messages: seen.append("after"))
    reply = agent.ask("Key?", output_type=int)
    assert (reply.text, reply.output, secret in str(reply.log)) == (text, output, False)
    assert seen == (["before"] if stops else ["before", "after"])


class Plain(typing.TypedDict):
    """A cake."""

    layers: int
    name: NotRequired[str]


class Wide(Plain, total=False):
    inner: Plain
    tins: Required[Annotated[list[Plain], Field(min_length=1)]]
    spare: Optional[Plain]  # noqa: UP045 - people write both


@pytest.mark.parametrize(
    ("kind", "said", "output"),
    [
        (Plain, '{"layers": "2"}', {"layers": 2}),
        (list[Plain], '{"result": [{"layers": 2, "name": "Ada"}]}', [{"layers": 2, "name": "Ada"}]),
        (Plain | Invoice, '{"total": 3, "items": []}', Invoice(total=3, items=[])),
        (
            Wide,
            '{"layers": 1, "tins": [{"layers": 1}], "spare": null}',
            {"layers": 1, "tins": [{"layers": 1}], "spare": None},
        ),
    ],
)
def test_a_typed_dict_of_the_standard_library_is_an_output(kind: Any, said: str, output: Any):
    assert BasicAgent(llm=ScriptedModel(said)).ask("?", output_type=kind).output == output


def test_a_typed_dict_of_the_standard_library_keeps_its_name_its_words_and_what_it_needs():
    kind = OutputType.of(Wide)
    assert kind is not None
    assert (kind.name, kind.schema["required"]) == ("Wide", ["layers", "tins"])
    assert kind.schema["$defs"]["Plain"] == {
        "type": "object",
        "description": "A cake.",
        "properties": {"layers": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["layers"],
    }
