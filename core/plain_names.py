"""Sentences for parameters that a public name does not have, or needs: which one was meant, and what there is."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, get_overloads

from core.errors import WrongParametersError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

_ELSEWHERE: Final = {
    **dict.fromkeys(("functions", "toolkit", "tool_list", "tools"), "function_list"),
    **dict.fromkeys(("chat_model", "llm_cfg", "model"), "llm"),
    **dict.fromkeys(("instruction", "instructions", "prompt", "system", "system_prompt"), "system_message"),
    **dict.fromkeys(("docs", "documents", "knowledge"), "files"),
    **dict.fromkeys(("max_iterations", "max_steps", "max_turns"), "max_iteration"),
    **dict.fromkeys(("max_calls", "requests"), "calls"),
    **dict.fromkeys(("max_tokens", "total_tokens"), "tokens"),
    **dict.fromkeys(("budget", "price"), "cost"),
    **dict.fromkeys(("max_seconds", "time", "timeout"), "seconds"),
}
"""What other libraries call the parameters of agents and limits."""


def wrong_names(
    name: str, made: Callable[..., Any], values: Sequence[Any], named: Mapping[str, Any], kind: type | None
) -> WrongParametersError | None:
    """What is wrong with the parameters; None where these are right, and the error is of another kind.

    Args:
        name: What a program writes before the parentheses.
        made: What was called.
        values: What was given without a name, without its own object.
        named: What was given with one.
        kind: The class, of a constructor or a method.
    """
    takes = list(inspect.signature(made).parameters.values())[0 if kind is None else 1 :]
    known = [one.name for one in takes if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    takes_any = any(one.kind is one.VAR_KEYWORD for one in takes)
    if unknown := [] if takes_any else [one for one in named if one not in known]:
        offered = known if kind is None else list(dict.fromkeys(_names(kind, made.__name__)))
        said = f"{name} has no parameter `{unknown[0]}`."
        return WrongParametersError(said, hint=meant(unknown[0], offered), name=unknown[0])
    in_order = [one for one in takes if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(values) > len(in_order):
        said = f"{name} takes {_counted(len(in_order))} without a name, not {len(values)}."
        return WrongParametersError(said, hint=_by_name(made, [one.name for one in in_order], known))
    if twice := next((one.name for one in in_order[: len(values)] if one.name in named), ""):
        said = f"{name} is given `{twice}` twice, with its name and without."
        return WrongParametersError(said, hint="Write it once.", name=twice)
    rest = [*in_order[len(values) :], *(one for one in takes if one.kind is one.KEYWORD_ONLY)]
    missing = [one.name for one in rest if one.default is one.empty and one.name not in named]
    opens = made.__name__ == "__init__" and callable(getattr(kind, "open", None))
    return needed(name, missing, opens=opens) if missing else None


def needed(name: str, missing: Sequence[str], *, opens: bool = False) -> WrongParametersError:
    """The sentence for parameters that were not given; `opens` where a class has `open` for programs."""
    needs = " and ".join(f"`{one}`" for one in missing)
    hint = f"Write {name}.open(…)." if opens else f"Write {name}({', '.join(f'{one}=…' for one in missing)})."
    return WrongParametersError(f"{name} needs {needs}.", hint=hint, name=missing[0])


def _names(kind: type, method: str) -> Iterator[str]:
    """The parameters by name, with those of base classes where a class passes `**options` on."""
    for one in kind.__mro__:
        made: Any = vars(one).get(method)
        if made is None:
            continue
        takes = list(inspect.signature(getattr(made, "__func__", made)).parameters.values())[1:]
        yield from (
            one.name
            for one in takes
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and not one.name.startswith("_")
        )
        if not any(one.kind is one.VAR_KEYWORD for one in takes):
            return


def meant(given: str, known: Collection[str]) -> str:
    """Which parameter was meant by an unknown one, as a hint; all of them where none is near."""
    if (elsewhere := _ELSEWHERE.get(given, "")) in known:
        return f"Did you mean `{elsewhere}`?"
    if near := get_close_matches(given.lower(), known, n=1):
        return f"Did you mean `{near[0]}`?"
    return _taken(known)


def _by_name(made: Callable[..., Any], in_order: Sequence[str], known: Sequence[str]) -> str:
    """What to write with its name, where too much is given without one."""
    told = {name: None for one in get_overloads(made) for name in inspect.signature(one).parameters}
    every = {**told, **dict.fromkeys(known)}
    others = [one for one in every if one not in {*in_order, "self", "kwargs"}]
    if not others:
        return _taken(known)
    return f"Write the others with their names: {', '.join(f'`{one}`' for one in others)}."


def _taken(known: Iterable[str]) -> str:
    return f"It takes {', '.join(f'`{one}`' for one in known) or 'none'}."


def _counted(number: int) -> str:
    return f"{'no' if not number else 'at most'} {number or ''}".strip() + f" value{'' if number == 1 else 's'}"
