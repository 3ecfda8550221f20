"""Constructors of public names say in one sentence which parameter they do not have, or need.

`core` hands each public class through `says_which_parameter`, so no class has to do anything for it.
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import WrongParametersError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

_HOUSE: Final = "".join(f"{part}." for part in __name__.split(".")[:-2])  # "parlour." in a wheel
_OURS: Final = tuple(f"{_HOUSE}{room}." for room in ("core", "webui"))
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
_TOLD: Final = "__tells_wrong_parameters__"


def says_which_parameter(kind: type) -> None:
    """Let the constructors of a class, its own and those of ours that it inherits, say what is wrong with parameters.

    These are `__init__` and the public class methods. What they take, and what type checkers see, stays as it is.
    """
    for one in kind.__mro__:
        if not one.__module__.startswith(_OURS):
            continue
        made: Any = vars(one).get("__init__")
        is_ours = inspect.isfunction(made) and made.__module__.startswith(_OURS)  # a protocol's is Python's own
        if is_ours and not hasattr(made, _TOLD):
            setattr(one, "__init__", _telling(made))  # noqa: B010 - a type checker refuses the assignment
        if hasattr(one, "model_fields"):
            continue  # class methods of pydantic's are its own
        for name, method in list(vars(one).items()):
            behind = cast("Any", method).__func__ if isinstance(method, classmethod) else None
            if behind is not None and not name.startswith("_") and not hasattr(behind, _TOLD):
                setattr(one, name, classmethod(_telling(behind)))


def _telling(made: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(made)
    def telling(*values: Any, **named: Any) -> Any:
        try:
            return made(*values, **named)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # it was called, and something in it went wrong
            raise _said(made, values, named) or error from None

    setattr(telling, _TOLD, True)
    return telling


def _said(made: Callable[..., Any], values: Sequence[Any], named: Mapping[str, Any]) -> WrongParametersError | None:
    """What is wrong with the parameters; None where these are right, and the error is of another kind."""
    kind = values[0] if isinstance(values[0], type) else type(values[0])
    kind = next(one for one in kind.__mro__ if one.__module__.startswith(_OURS))  # a program may derive its own
    name = kind.__name__ if made.__name__ == "__init__" else f"{kind.__name__}.{made.__name__}"
    takes = list(inspect.signature(made).parameters.values())[1:]
    known = [one.name for one in takes if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    takes_any = any(one.kind is one.VAR_KEYWORD for one in takes)
    if unknown := [] if takes_any else [one for one in named if one not in known]:
        offered = list(dict.fromkeys(_names(kind, made.__name__)))
        said = f"{name} has no parameter `{unknown[0]}`."
        return WrongParametersError(said, hint=meant(unknown[0], offered), name=unknown[0])
    in_order = [one for one in takes if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(values) - 1 > len(in_order):
        said = f"{name} takes {_counted(len(in_order))} without a name, not {len(values) - 1}."
        return WrongParametersError(said, hint=_taken(known))
    if twice := next((one.name for one in in_order[: len(values) - 1] if one.name in named), ""):
        said = f"{name} is given `{twice}` twice, with its name and without."
        return WrongParametersError(said, hint="Write it once.", name=twice)
    rest = [*in_order[len(values) - 1 :], *(one for one in takes if one.kind is one.KEYWORD_ONLY)]
    missing = [one.name for one in rest if one.default is one.empty and one.name not in named]
    if not missing:
        return None
    needs = " and ".join(f"`{one}`" for one in missing)
    hint = f"Write {name}({', '.join(f'{one}=…' for one in missing)})."
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


def _taken(known: Iterable[str]) -> str:
    return f"It takes {', '.join(f'`{one}`' for one in known) or 'none'}."


def _counted(number: int) -> str:
    return f"{'no' if not number else 'at most'} {number or ''}".strip() + f" value{'' if number == 1 else 's'}"
