"""A program's own evaluators: functions that say of a case and its reply what they are worth."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from core.agents.reply import Reply
from core.errors import ParlourError, SettingsError
from core.judging.checks import Outcome
from core.judging.problems import suite_problem
from core.messages.message import Usage
from core.tools.run_context import RunContext, called

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.agents.mapping import Answer
    from core.judging.suite import Task
    from core.messages.message import Message


@dataclass(frozen=True, slots=True)
class Score:
    """What an evaluator finds, where a bare `bool` or `float` is not enough.

    Args:
        value: True or False decides whether the task is passed; a number is only counted, and averaged.
        name: What reports call it; the function's name by default.
        why: A sentence on it.
    """

    value: bool | float
    name: str = ""
    why: str = ""


Evaluator: TypeAlias = Callable[["Task", Reply[Any]], Any]
"""`def evaluator(case, reply)`, or `async def`: gives a `bool`, a `float` or a `Score`."""


def checked_evaluators(given: object) -> list[Evaluator]:
    """The evaluators that were given.

    Raises:
        SettingsError: One is no function, or two have the same name.
    """
    if not isinstance(given, list | tuple):
        said = f"evaluators must be a list of functions, not {type(given).__name__}."
        raise SettingsError(said, hint="Write evaluators=[is_polite].", name="evaluators")
    found: dict[str, Evaluator] = {}
    for one in given:  # pyright: ignore[reportUnknownVariableType] - a program gives it
        if not callable(one):  # pyright: ignore[reportUnknownArgumentType]
            raise SettingsError(
                f"evaluators must be functions, not {one!r}.",
                hint="Write evaluators=[is_polite].",
                name="evaluators",
            )
        name = name_of(one)
        if name in found:
            said = f"Two evaluators are called {name!r}."
            raise SettingsError(said, hint="Give one of them another name.", name="evaluators")
        found[name] = one
    return list(found.values())


def named_evaluator(place: str) -> Evaluator:
    """The function that `module:function` names; modules of the folder that one works in are found, too.

    Raises:
        SettingsError: There is none.
    """
    module, _, name = place.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = getattr(import_module(module), name)
    except Exception as error:  # a module of the program's own may raise anything as it is imported
        why = f"{type(error).__name__}: {error}"
        raise suite_problem("suite_no_evaluator", name=place, why=why) from error
    if not callable(found):
        raise suite_problem("suite_no_evaluator", name=place, why="it is no function")
    return found


def name_of(evaluator: Evaluator) -> str:
    """What reports call what it finds."""
    return str(getattr(evaluator, "__name__", type(evaluator).__name__))


def mark_of(evaluators: Iterable[Evaluator]) -> str:
    """What tells them from others: rows of a run that others judged count no more."""
    told: list[str] = []
    for one in evaluators:
        try:
            source = inspect.getsource(one)
        except (OSError, TypeError):
            source = ""
        told.append(f"{name_of(one)}\n{source}")
    return sha256("\n".join(told).encode(errors="replace")).hexdigest()[:16] if told else ""


async def evaluated(
    evaluators: Sequence[Evaluator], task: Task, asked: Sequence[Message], answer: Answer
) -> tuple[list[Outcome], dict[str, float]]:
    """What they find: what decides whether the task is passed, and what is only counted.

    Raises:
        SettingsError: One failed, or gave what is no finding (key `suite_evaluator`).
    """
    outcomes: list[Outcome] = []
    scores: dict[str, float] = {}
    if not evaluators:
        return outcomes, scores
    reply = Reply(
        answer.text, tuple(answer.messages), tuple(asked), usage=answer.usage or Usage(), seconds=answer.seconds
    )
    for one in evaluators:
        try:
            found: object = await called(one, RunContext(None), task, reply)
        except ParlourError as error:
            raise suite_problem("suite_evaluator", name=name_of(one), why=str(error)) from error
        except Exception as error:  # a function of the program's own
            why = f"{type(error).__name__}: {error}"
            raise suite_problem("suite_evaluator", name=name_of(one), why=why) from error
        is_score = isinstance(found, Score)
        value: Any = found.value if is_score else found
        name, why = (found.name or name_of(one), found.why) if is_score else (name_of(one), "")
        if isinstance(value, bool):
            said = {"name": name, "said": why} if why else {"name": name}
            reason = "evaluator_said" if why else "evaluator"
            outcomes.append(Outcome(name, value) if value else Outcome(name, value, reason, said))
        elif isinstance(value, int | float) and isfinite(value):
            scores[name] = float(value)
        else:
            nonsense = f"it gave {value!r}, and a bool, a number or a Score is wanted"
            raise suite_problem("suite_evaluator", name=name_of(one), why=nonsense)
    return outcomes, scores
