"""A value of another kind than its parameter takes is told in one sentence: which, what was given, what to write."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pydantic
import pytest

import core
from core import (
    BasicAgent,
    Cited,
    Claim,
    ContentItem,
    Decision,
    FunctionCall,
    Guard,
    Message,
    ModelResponse,
    Policy,
    Reply,
    RunContext,
    ToolResult,
    Usage,
    plain_parameters,
)
from core.agents import handoff as handoffs
from core.errors import ModelServiceError, ParlourError, SettingsError, WrongParametersError
from core.messages.events import Event, TextDelta
from core.plain_calls import telling
from core.testing.scripted_model import ScriptedModel


class Lease:
    """A type of a program's own."""


def agent() -> BasicAgent:
    return BasicAgent(llm=ScriptedModel("fine"))


def unchecked(made: Any, **named: Any) -> Any:
    """Made of values that a checker of types would not let pass."""
    return made(**named)


def awaited(made: Callable[..., Any], *values: Any, **named: Any) -> Callable[[], Any]:
    return lambda: asyncio.run(made(*values, **named))


KINDS: dict[str, tuple[Callable[[], Any], str]] = {
    "a text, of a function": (
        lambda: core.check_claims(7, ["Tea."]),  # type: ignore[arg-type]
        'answer of check_claims must be a text, not 7. Write check_claims(answer="…").',
    ),
    "a text, of an asynchronous one": (
        awaited(core.acheck_claims, "Tea.", ["Tea."], question=None),
        'question of acheck_claims must be a text, not None. Write acheck_claims(question="…").',
    ),
    "a list": (
        lambda: core.check_claims("Tea.", 7),  # type: ignore[arg-type]
        "passages of check_claims must be a list, not 7. Write check_claims(passages=[…]).",
    ),
    "a path": (
        lambda: core.add_cases(7, []),  # type: ignore[arg-type]
        'file of add_cases must be a path, not 7. Write add_cases(file="…").',
    ),
    "what another function is given on": (
        lambda: core.evaluate(None),  # type: ignore[arg-type]
        "suite of evaluate must be a Suite, a dict or a path, not None. Write evaluate(suite=Suite(…)).",
    ),
    "what is handed on to one of ours": (
        awaited(
            core.aevaluate, {"tasks": [{"id": "a", "question": "?", "checks": [{"contains": "a"}]}]}, agent(), policy=7
        ),
        "policy of aevaluate must be a Policy or None, not 7. Write aevaluate(policy=Policy(…)).",
    ),
    "of a class method": (
        lambda: core.Suite.of(7),  # type: ignore[arg-type]
        "given of Suite.of must be a Suite, a dict or a path, not 7. Write Suite.of(given=Suite(…)).",
    ),
    "a function": (
        lambda: Guard(Policy(), ask=7),  # type: ignore[arg-type]
        "ask of Guard must be a function or None, not 7. Write Guard(ask=the_function).",
    ),
    "one of ours": (
        lambda: core.compare(Lease, 2),  # type: ignore[arg-type]
        "before of compare must be a SuiteRun, not the class Lease. Write compare(before=SuiteRun(…)).",
    ),
    "one of ours, of a constructor": (
        lambda: Guard(Lease()),  # type: ignore[arg-type]
        "policy of Guard must be a Policy, not a Lease. Write Guard(policy=Policy(…)).",
    ),
    "true or false": (
        lambda: Decision("yes"),  # type: ignore[arg-type]
        "allowed of Decision must be True or False, not 'yes'. Write Decision(allowed=True).",
    ),
    "a list of texts": (
        lambda: Policy(allow=(3,)),  # type: ignore[arg-type]
        'allow of Policy must be a list of texts, not a tuple. Write Policy(allow=["…"]).',
    ),
    "one of a few values": (
        lambda: Claim("Tea.", 0, 4, "true"),  # type: ignore[arg-type]
        "verdict of Claim must be 'supported', 'weak' or 'unsupported', not 'true'. Write Claim(verdict='supported').",
    ),
    "true for a number": (
        lambda: Claim("Tea.", True, 4, "weak"),
        "start of Claim must be a whole number, not True. Write Claim(start=1).",
    ),
    "a dict": (
        lambda: ToolResult("Tea.", extra=[]),  # type: ignore[arg-type]
        "extra of ToolResult must be a dict, not a list. Write ToolResult(extra={…}).",
    ),
    "a class for a text": (
        lambda: RunContext(None, question=Lease),  # type: ignore[arg-type]
        'question of RunContext must be a text, not the class Lease. Write RunContext(question="…").',
    ),
    "a dict, of what opens a model": (
        lambda: core.BaseChatModel(7),  # type: ignore[arg-type]
        "cfg of BaseChatModel must be a dict or None, not 7. Write BaseChatModel(cfg={…}).",
    ),
    "a type where a question alone is taken": (
        lambda: agent().ask("Go", Lease),  # type: ignore[call-overload]
        (
            "BasicAgent.ask takes at most 1 value without a name, not 2. Write the others with their names: "
            "`output_type`, `output_retries`, `deps`, `limits`, `history`, `files`, `approval`."
        ),
    ),
}

FIELDS: dict[str, tuple[Callable[[], Any], str]] = {
    "a role": (
        lambda: Message("tool", "Tea."),
        "The role must be one of system, user, assistant, function, not 'tool'.",
    ),
    "a text": (lambda: Message(7), 'role of Message must be a text, not 7. Write Message(role="…").'),  # type: ignore[arg-type]
    "a text or a list": (
        lambda: Message("user", 7),  # type: ignore[arg-type]
        'content of Message must be a text or a list, not 7. Write Message(content="…").',
    ),
    "a part of a list": (
        lambda: Message("user", [7]),  # type: ignore[list-item]
        "content[0] of Message must be a dict, not 7. Write {…} there.",
    ),
    "one of five": (
        lambda: ContentItem(text="a", image="b"),
        "Exactly one of text, image, file, audio and video must be provided; found text, image.",
    ),
    "a number": (
        lambda: unchecked(Usage, prompt_tokens="many"),
        "prompt_tokens of Usage must be a whole number, not 'many'. Write Usage(prompt_tokens=1).",
    ),
    "a list": (
        lambda: unchecked(ModelResponse, messages=3),
        "messages of ModelResponse must be a list, not 3. Write ModelResponse(messages=[…]).",
    ),
    "a message within": (
        lambda: unchecked(ModelResponse, messages=[{"role": "tool"}]),
        "The role must be one of system, user, assistant, function, not 'tool'.",
    ),
    "a name": (lambda: FunctionCall("", "{}"), "The name of a function call cannot be empty."),
    "what is needed": (lambda: Cited(value=1), "Cited needs `sources`. Write Cited(sources=…)."),  # type: ignore[call-arg]
    "of a class that was made for a type": (
        lambda: Cited[int](value="x", sources=[1]),  # type: ignore[arg-type]
        "value of Cited must be a whole number, not 'x'. Write Cited(value=1).",
    ),
}


OWN: dict[str, tuple[Callable[[], Any], str]] = {
    "a name of a model": (
        lambda: core.register_llm(7),  # type: ignore[arg-type]
        'name of register_llm must be a text with something in it, not 7. Write @register_llm("mine").',
    ),
    "no name of a tool": (
        lambda: core.register_tool(" "),
        "name of register_tool must be a text with something in it, not ' '. Write @register_tool(\"mine\").",
    ),
    "what a tool does": (
        lambda: core.tool(description=7)(agent),  # type: ignore[call-overload]
        "description of the tool 'agent' must be a text, not 7. Write @tool(description=\"…\").",
    ),
}


@pytest.mark.parametrize("what", OWN)
def test_what_a_function_returns_another_for_is_looked_at_by_itself(what: str) -> None:
    make, sentence = OWN[what]
    with pytest.raises(SettingsError) as raised:
        make()
    assert str(raised.value) == sentence


@pytest.mark.parametrize("what", KINDS)
def test_a_value_of_another_kind_is_told_in_one_sentence(what: str) -> None:
    make, sentence = KINDS[what]
    with pytest.raises(WrongParametersError) as raised:
        make()
    assert str(raised.value) == sentence


@pytest.mark.parametrize("what", FIELDS)
def test_a_wrong_field_is_told_in_one_sentence_and_is_still_an_error_of_pydantics(what: str) -> None:
    make, sentence = FIELDS[what]
    with pytest.raises(SettingsError) as raised:
        make()
    assert str(raised.value) == sentence
    assert isinstance(raised.value, pydantic.ValidationError)
    assert raised.value.errors()


def test_values_without_a_name_are_told_where_every_field_has_one() -> None:
    with pytest.raises(WrongParametersError, match=r"^Usage takes no value without a name\. Write Usage\(prompt_tok"):
        Usage(3)  # type: ignore[call-arg]


def test_a_model_that_a_program_derives_takes_its_own_fields() -> None:
    class More(Usage):
        pages: int = 0

    assert More(pages=3).pages == 3
    with pytest.raises(WrongParametersError, match=r"^Usage has no parameter `pags`. Did you mean `pages`\?"):
        unchecked(More, pags=3)


def test_a_model_that_a_program_derives_may_take_other_names_too() -> None:
    class Open(Usage):
        model_config = pydantic.ConfigDict(extra="allow")

    class Other(Usage):
        pages: int = pydantic.Field(0, alias="Pages")
        sheets: int = pydantic.Field(0, validation_alias=pydantic.AliasChoices("Sheets", "leaves"))

    class Old(Usage):
        pages: int = 0

        @pydantic.model_validator(mode="before")
        @classmethod
        def of_old(cls, given: dict[str, Any]) -> dict[str, Any]:
            return {"pages": given["sheets"]}

    assert unchecked(Open, zz=3).model_dump()["zz"] == 3
    made = unchecked(Other, Pages=3, leaves=4)
    assert (made.pages, made.sheets) == (3, 4)
    assert unchecked(Old, sheets=3).pages == 3


@pytest.mark.parametrize("ask", [core.Agent.run, core.Agent.ask, BasicAgent.session])
def test_a_method_that_is_called_on_its_class_is_told(ask: Callable[..., Any]) -> None:
    for given in ((), ("Hello",), ([Message("user", "Hello")],)):
        with pytest.raises(
            WrongParametersError, match=r"was called on a class, not on an object of it\. Make an object"
        ):
            ask(*given, no_such_thing=1)


def test_numbers_and_switches_of_numpy_fit_and_its_arrays_are_told() -> None:
    assert Decision(np.True_).allowed  # type: ignore[arg-type]
    assert Claim("Tea.", np.int32(0), 4, "weak").start == 0  # type: ignore[arg-type]
    with pytest.raises(WrongParametersError, match=r"^verdict of Claim must be 'supported', 'weak' or 'unsupported'"):
        Claim("Tea.", 0, 4, np.array([1, 2]))  # type: ignore[arg-type]


def test_an_error_of_a_model_has_its_sentence_in_another_process_too() -> None:
    with pytest.raises(SettingsError) as raised:
        Message("tool", "Tea.")
    there = pickle.loads(pickle.dumps(raised.value))
    assert (str(there), type(there)) == (str(raised.value), type(raised.value))
    assert there.errors()


def test_a_public_function_is_one_also_where_two_threads_ask_for_it_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handoffs, "handoff", core.handoff)  # as it was, afterwards
    monkeypatch.delitem(vars(core), "handoff")
    meanwhile = list[Any]()

    def slow(value: Any) -> Any:
        if not meanwhile:  # the other thread comes, and is through first
            meanwhile.append(value)
            meanwhile.append(core.__getattr__("handoff"))
        return telling(value)

    monkeypatch.setattr(plain_parameters, "says_which_parameter", slow)
    assert core.handoff is meanwhile[1] is handoffs.handoff


def test_what_fits_is_taken_as_it_was() -> None:
    assert Policy(allow=["a"], deny={"b"}).allow == ["a"]  # type: ignore[arg-type]
    assert Reply("x", [], seconds=1).seconds == 1
    assert Message("user", "x", tool_calls=[]).content == "x"
    assert Usage.model_validate({"prompt_tokens": 2, "of_another_service": 1}).prompt_tokens == 2
    assert Decision(True).allowed


def test_an_error_is_never_hidden_by_one_about_how_it_was_made() -> None:
    assert str(ModelServiceError(code=503, message="Busy.")) == "Error code: 503. Busy."  # type: ignore[arg-type]


def test_what_went_wrong_deeper_stays_as_it_is_where_all_that_was_given_fits() -> None:
    def events() -> Iterator[Event]:
        yield TextDelta("Tea")
        raise AttributeError("of the program's own")

    with pytest.raises(AttributeError, match=r"^of the program's own"):
        core.fold(events())


def test_a_public_function_is_the_same_one_in_its_own_module_and_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(core.handoff)) is core.handoff


def test_the_errors_name_their_entry_in_the_documentation() -> None:
    for make, _sentence in FIELDS.values():
        with pytest.raises(ParlourError) as raised:
            make()
        assert raised.value.see == "docs/errors.md#validationerror"
