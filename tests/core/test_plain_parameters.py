"""A parameter that a class does not have is told in one sentence, which has the one that is meant."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import core
from core import Assistant, Guard, Library, Limits, Message, Policy, RAGConfig, Session, ToolResult
from core.errors import ParlourError, SettingsError, WrongParametersError
from core.plain_parameters import says_which_parameter
from core.testing.scripted_model import ScriptedModel
from webui import WebUI

ready_agent = core.BasicAgent(llm=ScriptedModel("fine"))
WRONG: dict[str, tuple[Callable[..., object], dict[str, Any], str]] = {
    "a misspelt one": (Assistant, {"fils": []}, "Assistant has no parameter `fils`. Did you mean `files`?"),
    "of a dataclass": (Limits, {"call": 3}, "Limits has no parameter `call`. Did you mean `calls`?"),
    "of a policy": (Policy, {"alow": ("x",)}, "Policy has no parameter `alow`. Did you mean `allow`?"),
    "of a model of pydantic's": (RAGConfig, {"topk": 3}, "RAGConfig has no parameter `topk`. Did you mean `top_k`?"),
    "of an agent that passes options on": (
        core.ParallelDocQA,
        {"part_token": 3},
        "ParallelDocQA has no parameter `part_token`. Did you mean `part_tokens`?",
    ),
    "of the class that such an agent passes them on to": (
        core.ArticleAgent,
        {"fils": []},
        "ArticleAgent has no parameter `fils`. Did you mean `files`?",
    ),
    "of a class method": (
        Library.open,
        {"folder": "x", "limts": 1},
        "Library.open has no parameter `limts`. Did you mean `limits`?",
    ),
    "of the page": (WebUI, {"agnet": 1}, "WebUI has no parameter `agnet`. Did you mean `agent`?"),
    "what another library calls tools": (
        Assistant,
        {"tools": []},
        "Assistant has no parameter `tools`. Did you mean `function_list`?",
    ),
    "what another library calls a system message": (
        core.BasicAgent,
        {"instructions": "x"},
        "BasicAgent has no parameter `instructions`. Did you mean `system_message`?",
    ),
    "one that is near to none": (
        Limits,
        {"xyz": 1},
        "Limits has no parameter `xyz`. It takes `calls`, `tokens`, `cost`, `seconds`.",
    ),
    "of a class that programs open": (Library, {"folder": "x"}, "Library needs `config`. Write Library.open(…)."),
    "none at all": (Guard, {}, "Guard needs `policy`. Write Guard(policy=…)."),
    "of a function": (core.tool, {"nme": "x"}, "tool has no parameter `nme`. Did you mean `name`?"),
    "of a method": (
        ready_agent.session,
        {"stor": 1},
        "BasicAgent.session has no parameter `stor`. Did you mean `store`?",
    ),
    "of what is checked as a value": (
        core.Usage,
        {"zz": 1},
        (
            "Usage has no parameter `zz`. It takes `prompt_tokens`, `completion_tokens`, `total_tokens`, "
            "`reasoning_tokens`, `cached_tokens`, `kept_tokens`, `cost`, `estimated`."
        ),
    ),
    "of a cited value": (core.Cited, {"page": 4}, "Cited has no parameter `page`. It takes `value`, `sources`."),
    "almost one of a message, which takes others as they come": (
        Message,
        {"role": "user", "contents": "Hello"},
        "Message has no parameter `contents`. Did you mean `content`?",
    ),
    "none where others are taken as they come": (Message, {"x": 1}, "Message needs `role`. Write Message(role=…)."),
    "a wrong value": (
        RAGConfig,
        {"top_k": 0},
        "RAGConfig is wrong: 'top_k' must be a whole number from 1 to 100.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_parameter_is_told_in_one_sentence(case: str):
    make, given, sentence = WRONG[case]
    with pytest.raises(SettingsError) as raised:
        make(**given)
    assert str(raised.value) == sentence


def test_too_many_values_and_one_that_is_given_twice_are_told():
    with pytest.raises(
        WrongParametersError, match=r"Limits takes at most 4 values without a name, not 5\. It takes `c"
    ):
        Limits(1, 2, 3, 4, 5)  # type: ignore[call-arg]
    with pytest.raises(WrongParametersError, match="Limits is given `calls` twice, with its name and without"):
        Limits(1, calls=2)  # type: ignore[misc]


def test_it_is_still_the_error_that_python_would_raise():
    with pytest.raises(TypeError):
        Assistant(fils=[])  # type: ignore[call-arg]


def test_of_a_class_that_a_program_derives_the_one_of_ours_is_named():
    class Mine(Assistant):
        def __init__(self) -> None:
            super().__init__(llm=ScriptedModel("fine"), colour="red")  # type: ignore[call-arg]

    with pytest.raises(WrongParametersError, match=r"^Assistant has no parameter `colour`"):
        Mine()


def test_an_error_within_a_constructor_stays_what_it_is():
    class Odd:
        __module__ = Assistant.__module__

        def __init__(self) -> None:
            len(3)  # type: ignore[arg-type]

    says_which_parameter(Odd)
    with pytest.raises(TypeError, match=r"^object of type 'int' has no len"):
        Odd()


def test_a_class_that_is_also_one_of_our_protocols_is_made_by_its_own_constructor():
    class Kept:
        def __init__(self) -> None:
            self.labels = ["Thought"]

    class Mine(core.OutputParser, Kept):
        """It inherits how it is made."""

    made: Any = Mine  # the methods of a parser are not what is looked at
    assert made().labels == ["Thought"]


def agents_of() -> None:
    """A function where a class belongs."""


# What a checker of types would not let pass.
FIVE: Any = 5
AGENTS_OF: Any = agents_of
HUB: Any = core.MultiAgentHub


def public_classes() -> Iterator[tuple[str, type]]:
    for name in core.__all__:
        kind = getattr(core, name)
        if inspect.isclass(kind):
            yield name, kind


TAKES_ANY = {"BaseModelCompatibleDict", "GenerateConfig", "LLMConfig", "ModelRetry", "ParlourError"}


def test_no_public_class_or_function_says_it_in_pythons_own_words():
    makers: dict[str, Any] = dict(public_classes())
    makers |= {name: one for name in core.__all__ if inspect.isfunction(one := getattr(core, name))}
    for name, made in makers.items():
        if name in TAKES_ANY:
            continue
        with pytest.raises(ParlourError) as raised:
            called = made(no_such_thing_at_all=1)
            if inspect.iscoroutine(called):
                asyncio.run(called)
        assert "unexpected keyword" not in str(raised.value), name


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: HUB(1),
            "MultiAgentHub takes nothing: its subclass holds the agents. Write GroupChat(agents=[...]), or your own.",
        ),
        (
            core.OutputParser,
            "OutputParser only says what a parser has. Write a class of your own, with feed and close.",
        ),
        (
            lambda: core.register_tool("mine")(FIVE),
            'register_tool takes a class, not 5. Write @register_tool("mine") above a class of BaseTool.',
        ),
        (
            lambda: core.register_llm("mine")(AGENTS_OF),
            'register_llm takes a class, not a function. Write @register_llm("mine") above a class of BaseChatModel.',
        ),
        (
            lambda: core.tool(retries=1)(FIVE),
            "tool takes a function, not 5. Write @tool above a function, or tool(the_function).",
        ),
    ],
)
def test_what_makes_nothing_by_itself_says_what_to_write(make: Callable[[], object], sentence: str):
    with pytest.raises(SettingsError) as raised:
        make()
    assert str(raised.value) == sentence


def test_a_hub_of_the_programs_own_is_made_as_the_class_beside_it_says():
    class Own(core.MultiAgentHub, core.Agent):
        """Its members are told to it later."""

    class Bare(core.MultiAgentHub):
        """It is no agent."""

    assert Own(name="own").name == "own"
    assert isinstance(Bare(), core.MultiAgentHub)


def test_what_a_constructor_takes_is_seen_as_before():
    assert "files" in inspect.signature(Assistant).parameters
    assert next(iter(inspect.signature(ToolResult).parameters)) == "text"
    assert inspect.signature(Session.__init__).parameters["name"].annotation == "str"
