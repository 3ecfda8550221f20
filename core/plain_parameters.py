"""Public names say in one sentence which parameter they do not have, or need, or what kind of value it takes.

`core` hands each public class and function through `says_which_parameter`, so none has to do anything for it.
"""

from __future__ import annotations

import inspect
from typing import Any, cast

from core.plain_calls import OURS, is_marked, telling


def says_which_parameter(value: Any) -> Any:
    """A public class or function that says what is wrong with its parameters; anything else as it is.

    Of a class these are its constructor and its public methods, its own and those of ours that it inherits; it is the
    same class. What they take, and what type checkers see, stays as it is.
    """
    if inspect.isfunction(value):
        return value if is_marked(value) else telling(value)
    if hasattr(value, "model_fields"):
        from core.plain_models import tells_wrong_fields  # brings pydantic

        tells_wrong_fields(value)
        _tell_methods(value, class_methods_alone=True)  # the others are pydantic's, or read what is there
    elif isinstance(value, type):
        for one in value.__mro__:
            if one.__module__.startswith(OURS) and not vars(one).get("_is_protocol", False):
                _tell(one)
    return value


def _tell(one: type) -> None:
    """Let a class say it: its own constructor and public methods."""
    made: Any = vars(one).get("__init__")
    if inspect.isfunction(made) and made.__module__.startswith(OURS) and not is_marked(made):
        checks = not issubclass(one, BaseException)  # no error shall hide another
        setattr(one, "__init__", telling(made, checks=checks))  # noqa: B010 - a type checker refuses the assignment
    _tell_methods(one)


def _tell_methods(one: type, *, class_methods_alone: bool = False) -> None:
    for name, method in list(vars(one).items()):
        is_class_method = isinstance(method, classmethod)
        behind = cast("Any", method).__func__ if is_class_method else method
        if name.startswith("_") or not inspect.isfunction(behind) or is_marked(behind):
            continue
        if behind.__module__.startswith(OURS) and (is_class_method or not class_methods_alone):
            told = telling(behind)
            setattr(one, name, classmethod(told) if is_class_method else told)
