"""What is asked wrongly: one sentence names the argument and what was given, and the next says what to write instead.

One table for each name: `ask` (with `aask`, `events`, `partials`), types of answers, sessions, folding, what a program
adds to an agent, limits, and handing over.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from core import (
    BasicAgent,
    Cited,
    Confirm,
    FnCallAgent,
    Limits,
    Message,
    ParlourError,
    Policy,
    RunContext,
    Stop,
    afold,
    fold,
    handoff,
    skills_in,
    tool,
)
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel

WHAT_TO_WRITE = re.compile(r"\b(?:Write|Give|Return|Ask|Pass|Correct|Did you mean)\b[^\n]+[.?]$")
Wrong = dict[str, tuple[Callable[[], object], str]]


class Bill(BaseModel):
    total: float


def agent(*turns: Any, tools: Any = None) -> Any:
    return FnCallAgent(tools, ScriptedModel(*(turns or ("fine",))), name="Ann", description="Helps.")


def asked(**options: Any) -> Callable[[], object]:
    return lambda: agent().ask("Go", **options)


def question(given: Any) -> Callable[[], object]:
    return lambda: agent().ask(given)


def typed(given: Any) -> Callable[[], object]:
    return asked(output_type=given)


def untyped(x):  # type: ignore[no-untyped-def]
    return x


class Opaque:
    """Nothing that JSON has a form for."""


def one_sentence(error: BaseException, about: str) -> None:
    """The error begins as told, and goes on with what to write; nothing of Python's or pydantic's own is in it."""
    said = str(error)
    assert re.match(about, said), said
    assert WHAT_TO_WRITE.search(said), said
    assert len(said) < 400
    assert "\n" not in said
    assert "pydantic-core" not in said


def all_are_told(wrong: Wrong, kind: type[Exception] = ParlourError) -> None:
    untold: list[str] = []
    for name, (make, about) in wrong.items():
        try:
            make()
        except kind as error:
            one_sentence(error, about)
        except Exception as error:
            untold.append(f"{name}: {type(error).__name__}: {error}")
        else:
            untold.append(f"{name}: no error")
    assert not untold, "\n".join(untold)


QUESTIONS: Wrong = {
    "nothing": (question(None), "question must be a text, a message or a list of messages, not None"),
    "no words": (question(""), "question must have words or files, and '' has none"),
    "blanks": (question(" \n"), r"question must have words or files, and ' \\n' has none"),
    "a message without words": (question(Message("user", " ")), "question must have words or files, and ' ' has none"),
    "a number": (question(5), "question must be .*, not 5"),
    "bytes": (question(b"x"), r"question must be .*, not b'x'"),
    "an object": (question(Opaque()), "question must be .*, not an Opaque"),
    "numbers": (question([5]), "question: Message 1 is a number. Give a Message, or a dict with role"),
    "a text in a list": (question(["a"]), "question: Message 1 is a text. Give a Message"),
    "an empty dict": (question({}), "question: Message 1 cannot be read: role"),
    "no messages": (question([]), "There is no message to answer"),
}
OPTIONS: Wrong = {
    **{
        f"limits {given!r}": (asked(limits=given), rf"limits must be a Limits, not {shown}")
        for given, shown in ((5, "5"), (0, "0"), ("x", "'x'"), ({"calls": 5}, "a dict"), (Limits, "the class Limits"))
    },
    **{
        f"history {given!r}": (
            asked(history=given),
            f"history must be an earlier Reply or a list of messages, not {shown}",
        )
        for given, shown in ((5, "5"), ("x", "'x'"), ({"role": "user"}, "a dict"), (Message("user", "x"), "a Message"))
    },
    "history of numbers": (asked(history=[5]), "history: Message 1 is a number. Give a Message, or a dict with role"),
    **{
        f"files {given!r}": (asked(files=given), f"files must be a list of paths and addresses, not {shown}")
        for given, shown in ((5, "5"), ("a.pdf", "'a.pdf'"), ({"a": 1}, "a dict"), (b"x", "b'x'"))
    },
    "a file that is a number": (asked(files=["a.pdf", 5]), "files must be .*, and 5 is neither"),
    "a file without a name": (asked(files=[""]), "files must be .*, and '' is neither"),
    "files without a question": (
        lambda: agent().ask([Message("user", "Go"), Message("assistant", "So.")], files=["a.pdf"]),
        "files belong to a question",
    ),
    **{
        f"approval {given!r}": (asked(approval=given), f"approval must be a Guard, a Policy or .*, not {shown}")
        for given, shown in ((5, "5"), (True, "True"), ([], "a list"), (Policy, "the class Policy"))
    },
    **{
        f"output_retries {given!r}": (asked(output_retries=given), f"output_retries must be 0 to 20, .*, not {given!r}")
        for given in (-1, 21, "2", 2.0, None, True)
    },
    "lang": (asked(lang="xx"), "lang cannot be 'xx'"),
    "progress": (asked(progress=5), "progress must be a function .*, not 5"),
    "run_state": (asked(run_state=5), "run_state is Parlour's own"),
    "a misspelt name": (asked(output_typ=Bill), "A reply of FnCallAgent has no argument 'output_typ'"),
    "another library's name": (
        asked(response_model=Bill),
        ".* no argument 'response_model'. Did you mean 'output_type'",
    ),
}
TYPES: Wrong = {
    "a number": (typed(5), "output_type must be a type, not 5"),
    "a name": (typed("Bill"), r"output_type must be a type, not 'Bill'. Write output_type=Bill"),
    "a list of one": (typed([Bill]), r"output_type must be a type, not a list. Write output_type=list\[Bill\]"),
    "a tuple": (typed((Bill, int)), r"output_type must be a type, not a tuple. Write output_type=Bill \| int"),
    "a dict": (typed({"total": float}), "output_type must be a type, not a dict"),
    "a value": (typed(Bill(total=1)), "output_type must be a type, not a Bill. Write output_type=Bill"),
    "dots": (typed(...), "output_type must be a type, not an ellipsis"),
    "an object": (typed(Opaque()), "output_type cannot be .*Opaque.*: no JSON schema can be made of it"),
    "a class of its own": (typed(Opaque), "output_type cannot be Opaque: no JSON schema can be made of it"),
    "a function without types": (typed(untyped), "output_type cannot be untyped: its parameter 'x' needs a type"),
    "what Python brings": (typed(print), "output_type cannot be print: its parameter 'args' needs a type"),
}


def session(*args: Any, **options: Any) -> Callable[[], object]:
    return lambda: agent().session(*args, **options)


SESSIONS: Wrong = {
    **{
        f"store {given!r}": (session(given), f"store must be the path of a file, {shown}")
        for given, shown in (
            (5, "not 5"),
            (b"x", "not b'x'"),
            (True, "not True"),
            ("", "and '' is empty"),
            ("/", "and '/' is a folder"),
            ("sqlite:///talks.db", "and 'sqlite:///talks.db' is an address"),
        )
    },
    **{
        f"name {given!r} in {store}": (session(store, given), f"name must be a text, not {shown}")
        for store in (None, "talks.db")
        for given, shown in ((5, "5"), (None, "None"), ("", "''"), (["a"], "a list"))
    },
    "approval": (session(approval=5), "approval must be a Guard, a Policy or .*, not 5"),
    "a history": (lambda: agent().session().ask("Go", history=[]), "A session has its history"),
    "nothing to resume": (lambda: agent().session().resume(), "There is nothing to resume"),
    "no call": (lambda: agent().session().decide(5, True), "call_id must be the text that names a call, not 5"),  # type: ignore[arg-type]
    "no decision": (lambda: agent().session().decide("c", "yes"), "allowed must be True or False, not 'yes'"),  # type: ignore[arg-type]
    "no arguments": (lambda: agent().session().decide("c", True, "{}"), "arguments must be a dict, not '{}'"),  # type: ignore[arg-type]
}


def folded(*given: Any) -> Callable[[], object]:
    return lambda: fold(*given)


def afolded(*given: Any) -> Callable[[], object]:
    return lambda: asyncio.run(afold(*given))


async def numbers() -> AsyncIterator[Any]:
    yield 5


FOLDS: Wrong = {
    "nothing": (folded(None), "events must be a list of events, not None"),
    "a text": (folded("x"), "events must be a list of events, not 'x'"),
    "numbers": (folded([5]), r"events\[0\] must be an event, not 5"),
    "dicts": (folded([{"kind": "text_delta"}]), r"events\[0\] must be an event, not a dict"),
    "a reply": (lambda: fold(agent().ask("Go")), "events must be a list of events, not a Reply"),
    "a stream": (folded(numbers()), r"events must be .*, not an async_generator. Write await afold\(...\)."),
    "a question": (folded([], "Go"), "asked must be a list of messages, not 'Go'"),
    "afold of nothing": (afolded(None), "events must be an asynchronous stream of events, not None"),
    "afold of a list": (afolded([]), r"events must be .*, not a list. Write fold\(...\)."),
    "afold of numbers": (lambda: asyncio.run(afold(numbers())), r"events\[0\] must be an event, not 5"),
}

SIGNATURES = {
    "instructions": 0,
    "toolset": 0,
    "check": 1,
    "input_guard": 1,
    "output_guard": 1,
    "before_reply": 1,
    "after_reply": 1,
    "before_model": 1,
    "after_model": 1,
    "before_tool": 2,
    "after_tool": 2,
}


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool
def shop(context: RunContext[Bill]) -> float:
    """What it costs."""
    return context.deps.total


def returning(name: str, found: object) -> Callable[[], object]:
    """A reply of an agent whose function of that kind returns something."""

    def ask() -> object:
        asks = agent(Said(calls=[("look", {})]), "fine", tools=[look])
        functions: tuple[Any, ...] = (lambda: found, lambda _: found, lambda _a, _b: found)
        getattr(asks, name)(functions[SIGNATURES[name]])
        return asks.ask("Go")

    return ask


def adding(name: str, function: Any) -> Callable[[], object]:
    return lambda: getattr(agent(), name)(function)


def by_name(*, why: str) -> str:
    return why


def calling(one: Any, **options: Any) -> Callable[[], object]:
    return lambda: agent(Said(calls=[(one.name, {})]), "fine", tools=[one]).ask("Go", **options)


ADDED: Wrong = {
    **{
        f"{name} {given!r}": (adding(name, given), f"{name} takes a function, not {given!r}")
        for name in SIGNATURES
        for given in (None, 5, "x")
    },
    **{
        f"{name} of too many": (adding(name, lambda _a, _b, _c, _d: None), f"{name} calls its function with .* takes 4")
        for name in SIGNATURES
    },
    **{f"{name} by name": (adding(name, by_name), f"{name} calls its function by place") for name in SIGNATURES},
    "no instructions": (returning("instructions", 5), "The instructions .* returned int"),
    "no tools": (returning("toolset", 5), "function_list must be a list, not int"),
    "no verdict of a question": (returning("input_guard", True), "The guard .* returned bool"),
    "no verdict of an answer": (returning("output_guard", True), "The guard .* returned bool"),
    "no conversation": (returning("before_reply", 5), "before_reply: .* returned 5, and a list of messages takes"),
    "no messages": (returning("before_reply", [5]), "before_reply: .* returned a list, and a list of messages takes"),
    "no request": (returning("before_model", 5), "before_model: .* returned 5, and a ChatRequest takes"),
    "no arguments": (returning("before_tool", 5), "before_tool: .* returned 5, and a dict of arguments takes"),
    "no result": (returning("after_tool", 5), "after_tool: .* returned 5, and a ToolResult or a text takes"),
    "no reply": (returning("after_reply", 5), "after_reply: .* returned int, and a Reply takes"),
    "no deps": (calling(shop), "'shop' wants deps of the type Bill, and was given nothing"),
    "other deps": (calling(shop, deps="x"), "'shop' wants deps of the type Bill, and was given 'x'"),
    "the class for deps": (
        calling(shop, deps=Bill),
        "'shop' wants deps of the type Bill, and was given the class Bill",
    ),
    "a stop without words": (lambda: Stop(5), "text of Stop must be a text, not 5"),  # type: ignore[arg-type]
    "an empty stop": (lambda: Stop(" "), "text of Stop must be a text, not ' '"),
    "no question to confirm": (lambda: Confirm(""), "question of Confirm must be a text, not ''"),
    "no other answer": (lambda: Confirm("send it", 5), "otherwise of Confirm must be a text, not 5"),  # type: ignore[arg-type]
    "no tool": (lambda: tool(5), "tool takes a function, not 5"),  # type: ignore[call-overload]
    "no folder of skills": (lambda: skills_in(5), "folder must be the path of a folder of skills, not 5"),  # type: ignore[arg-type]
}

LIMITS: Wrong = {
    f"{name}={given!r}": (
        lambda name=name, given=given: Limits(**{name: given}),  # type: ignore[misc]
        f"{name} of Limits must be a (whole )?number above 0, not {re.escape(repr(given))}",
    )
    for name in ("calls", "tokens", "cost", "seconds")
    for given in ("5", 0, -1, True, float("nan"), [1])
}


def handing(given: Any = None, **options: Any) -> Callable[[], object]:
    return lambda: handoff(agent() if given is None else given, **options)


HANDOFFS: Wrong = {
    **{
        f"to {given!r}": (handing(given), f"handoff takes an agent, not {shown}")
        for given, shown in ((5, "5"), ("Ann", "'Ann'"), ([], "a list"), (FnCallAgent, "the class FnCallAgent"))
    },
    "to nobody": (handing(BasicAgent(llm=ScriptedModel("x"))), "agent of handoff must have a name"),
    **{
        f"history {given!r}": (handing(history=given), f"history must be 'all', 'talk' or a function .*, not {shown}")
        for given, shown in ((None, "None"), ("ALL", "'ALL'"), (5, "5"), ([], "a list"))
    },
    "a history of three": (handing(history=lambda _a, _b, _c: []), "history calls its function with one value"),
    **{
        f"{name} {given!r}": (handing(**{name: given}), f"{name} of handoff must be a text, not {given!r}")
        for name in ("name", "description")
        for given in (5, "", " ", b"x")
    },
    **{
        f"back {given!r}": (handing(back=given), f"back must be True or False, not {given!r}")
        for given in (5, "yes", None)
    },
}


@pytest.mark.parametrize("wrong", [QUESTIONS, OPTIONS, TYPES], ids=["questions", "options", "types"])
def test_what_ask_is_told_wrongly_is_one_sentence(wrong: Wrong):
    all_are_told(wrong)


async def all_of(stream: Any) -> list[Any]:
    return [one async for one in stream]


@pytest.mark.parametrize("way", ["aask", "events", "partials"])
def test_the_other_ways_to_ask_say_the_same(way: str):
    def told(given: Any = "Go", **options: Any) -> str:
        with pytest.raises(ParlourError) as raised:
            if way == "aask":
                asyncio.run(agent().aask(given, **options))
            elif way == "events":
                asyncio.run(all_of(agent().events(given, **options)))
            else:
                asyncio.run(all_of(agent().partials(given, options.pop("output_type", str), **options)))
        return str(raised.value)

    def said(given: Any = "Go", **options: Any) -> str:
        with pytest.raises(ParlourError) as raised:
            agent().ask(given, **options)
        return str(raised.value)

    for options in (
        {"given": 5},
        {"limits": 5},
        {"files": "a.pdf"},
        {"history": 5},
        {"output_type": [Bill]},
        {"lang": "xx"},
    ):
        assert told(**options) == said(**options)


def test_sessions_limits_and_handing_over_say_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    all_are_told({f"session {name}": one for name, one in SESSIONS.items()})
    all_are_told(LIMITS)
    all_are_told(HANDOFFS)
    assert not list(tmp_path.iterdir()), "nothing is made of what was wrong"


def test_what_is_folded_wrongly_is_a_type_error_that_says_how():
    all_are_told(FOLDS, TypeError)


def test_what_a_program_adds_wrongly_ends_the_reply_with_one_sentence():
    all_are_told(ADDED)


def test_a_second_context_is_one_too_many():
    def twice(a: RunContext[int], b: RunContext[int]) -> None:
        """Twice."""

    with pytest.raises(ParlourError, match=r"The parameter 'b' of 'twice' is a RunContext in place 2\. Write one, as"):
        tool(twice)


@pytest.mark.parametrize("given", [{}, {"value": "x", "sources": []}, {"value": 1, "sources": "1"}, {"page": 4}])
def test_a_cited_value_is_a_model_of_pydantics_and_names_its_field(given: dict[str, Any]):
    with pytest.raises(ValidationError) as raised:
        Cited[int](**given)
    assert {str(one["loc"][0]) for one in raised.value.errors()} <= {"value", "sources", "page"}


def test_a_question_may_be_files_alone(tmp_path: Path):
    (tmp_path / "a.txt").write_text("Tea.", encoding="utf-8")
    assert agent().ask("", files=[tmp_path / "a.txt"]).text == "fine"


def test_a_path_is_a_file_like_its_text(tmp_path: Path):
    (tmp_path / "a.txt").write_text("Tea.", encoding="utf-8")
    model = ScriptedModel("fine")
    BasicAgent(llm=model).ask("Go", files=[tmp_path / "a.txt"])
    assert "a.txt" in str(model.requests[0].messages[-1].content)


def test_a_reply_cannot_be_changed_and_a_changed_copy_can_be_made():
    reply = agent().ask("Go")
    with pytest.raises(AttributeError):
        reply.output = "x"
    assert replace(reply, output="x").output == "x"


def tables() -> Iterator[str]:
    for table in (QUESTIONS, OPTIONS, TYPES, SESSIONS, FOLDS, ADDED, LIMITS, HANDOFFS):
        yield from (about for _, about in table.values())


def test_the_tables_hold_more_than_a_hundred_cases():
    assert sum(1 for _ in tables()) > 130
