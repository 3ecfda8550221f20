"""What is wrong with a question before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from core.errors import BadMessagesError, SettingsError
from core.llm.meant_names import check_generate_names
from core.messages.message import SYSTEM, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.message import Message

_LEAST: Final[Mapping[str, float]] = {
    "max_input_tokens": 0,
    "max_retries": 0,
    "request_timeout": 0.001,
    "turn_timeout": 0,
    "max_tokens": 1,
    "max_completion_tokens": 1,
    "max_new_tokens": 1,
}
_MEANS: Final[Mapping[str, str]] = {
    "max_input_tokens": "0 turns the limit off",
    "max_retries": "0 means none",
    "request_timeout": "it is in seconds",
    "turn_timeout": "it is in seconds, and 0 means no limit",
}
_SECONDS: Final = frozenset({"request_timeout", "turn_timeout"})
_DICTS: Final = ("extra_body", "extra_headers", "extra_query")


def nothing_asked() -> BadMessagesError:
    """There is no message."""
    return BadMessagesError(code="400", message="There is no message to answer.", hint="Give at least one message.")


def check_messages(messages: Sequence[Message]) -> None:
    """Whether a model can be asked this.

    Raises:
        BadMessagesError: There is no message, there are two system messages, or the first of the others is no
            question.
    """
    if not messages:
        raise nothing_asked()
    systems = sum(message.role == SYSTEM for message in messages)
    if systems > 1:
        raise BadMessagesError(
            code="400",
            message=f"There are {systems} system messages.",
            hint="Join them into one, and put it first.",
        )
    first = next((message for message in messages if message.role != SYSTEM), None)
    if first is not None and first.role != USER:
        raise BadMessagesError(
            code="400",
            message=f"The conversation begins with a message of role {first.role!r}.",
            hint="After the system message, if any, the first message must be a user's.",
        )


def read_settings(generate: Mapping[str, Any]) -> dict[str, Any]:
    """A `generate_cfg` that can be meant, with limits that were given as text, as configuration files do, as numbers.

    Raises:
        SettingsError: A name is almost one of ours, the language is none, a dict is none, or a limit is no number, not
            a whole one, or below the least that has a meaning.
    """
    check_generate_names(generate)
    if (lang := generate.get("lang")) and lang not in {"en", "zh"}:
        raise SettingsError(f"generate_cfg['lang'] cannot be {lang!r}.", hint="Give en or zh.", name="lang")
    for name in _DICTS:
        if not isinstance(generate.get(name) or {}, Mapping):
            raise SettingsError(f"generate_cfg[{name!r}] must be a dict.", hint="Give names and values.", name=name)
    limits = {
        name: _limit(name, least, given) for name, least in _LEAST.items() if (given := generate.get(name)) is not None
    }
    return {**generate, **limits}


def _limit(name: str, least: float, given: Any) -> float:
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = float("nan")
    fine = number >= least and isfinite(number)
    if fine and name in _SECONDS:
        return number
    if fine and number.is_integer():
        return int(number)
    meaning = _MEANS.get(name, "leave it out for the service's own")
    smallest = "more than 0" if 0 < least < 1 else f"at least {least:g}"
    whole = "" if name in _SECONDS else "a whole number, "
    raise SettingsError(
        f"generate_cfg[{name!r}] cannot be {given!r}.", hint=f"Give {whole}{smallest}; {meaning}.", name=name
    )
