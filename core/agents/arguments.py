"""Checks the arguments of agents and replies: whole numbers in bounds, and misspelt keywords."""

from __future__ import annotations

import inspect
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from core.agents.protocol import nested_agents
from core.errors import SettingsError, shown
from core.languages import LANGS
from core.llm.validation import WRITING_KEYS
from core.tools.approval import Guard, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.tools.base import BaseTool


def checked_int(field: str, given: object, minimum: int, maximum: int | None = None, *, such_as: int = 0) -> int:
    """`given`, if it is a whole number from `minimum` to `maximum`, both included; the hint has `such_as`.

    Raises:
        SettingsError: It is no whole number, or out of bounds.
    """
    if type(given) is int and minimum <= given and (maximum is None or given <= maximum):
        return given
    bounds = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    hint = f"Write {field}={such_as or minimum}."
    raise SettingsError(f"{field} must be {bounds}, as a whole number, not {given!r}.", hint=hint, name=field)


_ALWAYS: Final = ("approval", "knowledge", "lang", "progress", "run_state")
_NEAR: Final = 0.82
_ELSEWHERE: Final = {
    **dict.fromkeys(("output", "output_model", "output_schema", "response_format", "response_model"), "output_type"),
    **dict.fromkeys(("result_type", "schema", "text_format"), "output_type"),
    **dict.fromkeys(("max_retries", "result_retries", "retries"), "output_retries"),
    **dict.fromkeys(("context", "ctx", "dependencies"), "deps"),
    **dict.fromkeys(("max_steps", "max_turns", "timeout", "usage_limits"), "limits"),
    **dict.fromkeys(("chat_history", "message_history", "messages", "reset"), "history"),
    **dict.fromkeys(("attachments", "documents", "images"), "files"),
}
"""What other libraries call the keywords of `ask`."""
_APPROVAL: Final = ("approval", "approve")  # it decides what may run, so its likely names are caught, too
_NEAR_APPROVAL: Final = 0.8
_HOOKS: Final = ("_stream_reply", "_run")
_CONTEXT: Final = ("ask_user", "begun", "budget", "files", "inside", "max_ref_token", "may_have_run")
"""What tools of Parlour's are told by keyword, beside what they name."""
_OURS: Final = __name__.removesuffix("agents.arguments")
_WRITES: Final = 'It belongs into generate_cfg: write llm={{"model": …, "generate_cfg": {{"{0}": …}}}}.'
_MADE: Final = "It belongs to the agent: write {0}(…, {1}=…) where it is made."
_PLACES: Final = {
    **dict.fromkeys(WRITING_KEYS, _WRITES),
    "timeout": _WRITES.replace("{0}", "request_timeout"),
    "generate_cfg": 'It belongs to the model: write llm={{"model": …, "generate_cfg": {{…}}}}.',
    "extra_generate_cfg": "It belongs to the agent: write agent.extra_generate_cfg = {{…}}.",
    **dict.fromkeys(("api_key", "base_url", "llm", "llm_cfg", "model", "model_server"), _MADE.replace("{1}", "llm")),
    **dict.fromkeys(("function_list", "functions", "tools"), _MADE.replace("{1}", "function_list")),
    **dict.fromkeys(
        ("instructions", "system", "system_message", "system_prompt"), _MADE.replace("{1}", "system_message")
    ),
    **{name: _MADE.replace("{1}", name) for name in ("description", "max_iteration", "name", "rag_cfg")},
    "stream": "A reply that is shown while it is written is had by events(…) or run(…).",
}
"""Names that belong somewhere else, with where; the first blank is the agent's class, or the name."""
_NO_NAMES: Final = frozenset({"self", "messages", "kwargs"})


def check_keywords(
    agent: object, tools: Iterable[BaseTool], given: Mapping[str, Any], known: Iterable[str] = ()
) -> None:
    """Refuse a keyword that is almost one that the reply takes; any other unknown one is for the tools.

    Args:
        agent: The agent; the keywords of its hooks are known.
        tools: Its tools; the keywords of their `call` are known, too.
        given: Names and values.
        known: Further keywords of the caller.

    Raises:
        SettingsError: A keyword is misspelt, or a guard or policy is given under another one than `approval`; the
            hint has the right one. Or `lang` is neither `en` nor `zh`, or `progress` no function.
    """
    if (lang := given.get("lang")) and lang not in LANGS:
        raise SettingsError(f"lang cannot be {lang!r}.", hint=f"Give {' or '.join(LANGS)}.", name="lang")
    if (told := given.get("progress")) is not None and not callable(told):
        said = f"progress must be a function that is told how far a tool is, not {shown(told)}."
        raise SettingsError(said, hint="Write progress=print.", name="progress")
    for name, meant in _misspelt(agent, tools, given, known).items():
        said = f"A reply of {type(agent).__name__} has no argument {name!r}."
        raise SettingsError(said, hint=f"Did you mean {meant!r}?", name=name, meant=meant)


def check_taken(agent: object, given: Iterable[str], known: Iterable[str] = ()) -> None:
    """Refuse a keyword that nothing takes: no step of the agent or of those it leads, and none of their tools.

    A step of the program's own that takes any keyword may mean it, as may such a tool, unless it is known to belong
    elsewhere.

    Args:
        agent: The agent.
        given: Names.
        known: Further keywords of the caller.

    Raises:
        SettingsError: There is one; the hint says where it belongs, or what there is.
    """
    ours = {*_ALWAYS, *_CONTEXT, *known}
    if not set(given) - ours:
        return
    everyone = [agent, *nested_agents(agent)]
    steps = [step for one in everyone for hook in _HOOKS if (step := getattr(type(one), hook, None)) is not None]
    if any(_takes_any_of_its_own(step) for step in steps):
        return
    calls = [tool.call for one in everyone for tool in getattr(one, "function_map", {}).values()]
    unknown = sorted(set(given) - ours - _parameter_names([*steps, *calls]))
    kind = type(agent).__name__
    for name in unknown:
        if place := _PLACES.get(name):
            hint = place.format(name if place is _WRITES else kind)
            raise SettingsError(f"A reply of {kind} has no argument {name!r}.", hint=hint, name=name)
    brought = any((extras := getattr(one, "extras", None)) is not None and extras.toolsets for one in everyone)
    if not unknown or brought or any(map(_takes_any_of_its_own, calls)):
        return
    said = f"A reply of {kind} has no argument {unknown[0]!r}."
    hint = f"It takes {', '.join(sorted({*_ALWAYS, *known} - {'run_state'}))}."
    raise SettingsError(said, hint=hint, name=unknown[0])


def _takes_any_of_its_own(function: Any) -> bool:
    return takes_any(function) and not function.__module__.startswith(_OURS)


def takes_any(function: Any) -> bool:
    """Whether a function takes keywords that it does not name."""
    return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values())


def accepted_keywords(agent: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords that another agent may pass on to this one: without those that it would refuse as misspelt."""
    tools: Mapping[str, BaseTool] = getattr(agent, "function_map", {})
    wrong = _misspelt(agent, tools.values(), given)
    return {name: value for name, value in given.items() if name not in wrong}


def _misspelt(
    agent: object, tools: Iterable[BaseTool], given: Mapping[str, Any], known: Iterable[str] = ()
) -> dict[str, str]:
    """Misspelt keywords, each with the one that is meant."""
    if not given.keys() - {*_ALWAYS, *known}:
        return {}
    ours = {*_ALWAYS, *known, *_parameter_names(getattr(type(agent), hook, None) for hook in _HOOKS)}
    unknown = given.keys() - ours
    if unknown:
        unknown -= _parameter_names(tool.call for tool in tools)
    meant = {
        name: elsewhere if (elsewhere := _ELSEWHERE.get(name, "")) in ours else _suggestion(name, given[name], ours)
        for name in sorted(unknown)
    }
    return {name: one for name, one in meant.items() if one}


def _suggestion(name: str, value: object, ours: Iterable[str]) -> str:
    if isinstance(value, Guard | Policy):
        return "approval"
    written = name.lower().strip("_")
    if max(_similarity(written, one) for one in _APPROVAL) >= _NEAR_APPROVAL:
        return "approval"
    nearest = max(sorted(ours), key=lambda one: _similarity(written, one))
    return nearest if _similarity(written, nearest) >= _NEAR else ""


@lru_cache(maxsize=1024)  # replies are given the same few keywords again and again
def _similarity(written: str, name: str) -> float:
    return SequenceMatcher(None, written, name).ratio()


def _parameter_names(functions: Iterable[Any]) -> set[str]:
    """The names of the functions' parameters that can be given by keyword."""
    names: set[str] = set()
    for function in functions:
        if function is None:
            continue
        parameters = inspect.signature(function).parameters.values()
        names |= {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    return names - _NO_NAMES
