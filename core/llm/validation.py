"""Validation of messages and settings before a model is asked, with hints at misspelt names."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import AliasChoices, BaseModel, ValidationError

from core.errors import BadMessagesError, SettingsError, shown
from core.llm.request import OUR_KEYS
from core.messages.message import SYSTEM, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.messages.message import Message

_log = logging.getLogger(__name__)
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
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
"""What services take of what all of them have: of these alone a value is known to be wrong."""
_TAKEN: Final[Mapping[str, tuple[float, float]]] = {**RANGES, "temperature": (0, inf)}  # of models here, above 2 too
_SECONDS: Final = frozenset({"request_timeout", "turn_timeout"})
_DICTS: Final = ("extra_body", "extra_headers", "extra_query")


def no_messages() -> BadMessagesError:
    """The error for an empty conversation."""
    return BadMessagesError(code="400", message="There is no message to answer.", hint="Give at least one message.")


def is_wordless(message: Message) -> bool:
    """Whether a message has neither words nor anything else."""
    return all(item.type == "text" and not (item.text or "").strip() for item in message.items)


def check_messages(messages: Sequence[Message]) -> None:
    """Check the order of the messages, and that there is a question.

    Raises:
        BadMessagesError: There is no message, there are two system messages, the first other one is not the user's, or
            the last one is the user's and empty.
    """
    if not messages:
        raise no_messages()
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
    if messages[-1].role == USER and is_wordless(messages[-1]):
        raise BadMessagesError(code="400", message="The last message is empty.", hint="Give it words, or a file.")


def read_settings(generate: Mapping[str, Any]) -> dict[str, Any]:
    """A validated `generate_cfg`; limits given as text, as in configuration files, become numbers.

    Raises:
        SettingsError: A name is misspelt, the language is unknown, a dict is none, or a limit is not a number, not a
            whole one, or too small.
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
    within = {
        name: _within(name, *ends, given) for name, ends in _TAKEN.items() if (given := generate.get(name)) is not None
    }
    return {**generate, **limits, **within}


def _number(given: Any) -> float:
    """What is given as one, also as text; NaN where it is none."""
    try:
        return float(given)
    except (TypeError, ValueError):
        return float("nan")


def _within(name: str, least: float, most: float, given: Any) -> Any:
    if not isinstance(given, bool) and least <= (number := _number(given)) <= most and isfinite(number):
        return given if isinstance(given, int | float) else number
    ends = f"from {least:g} to {most:g}" if isfinite(most) else f"of {least:g} or more"
    hint = f"Give a number {ends}; leave it out for the service's own."
    raise SettingsError(f"generate_cfg[{name!r}] cannot be {shown(given)}.", hint=hint, name=name)


def _limit(name: str, least: float, given: Any) -> float:
    number = _number(given)
    fine = number >= least and isfinite(number)
    if fine and name in _SECONDS:
        return number
    if fine and number.is_integer():
        return int(number)
    meaning = _MEANS.get(name, "leave it out for the service's own")
    smallest = "more than 0" if 0 < least < 1 else f"at least {least:g}"
    whole = "" if name in _SECONDS else "a whole number, "
    raise SettingsError(
        f"generate_cfg[{name!r}] cannot be {shown(given)}.", hint=f"Give {whole}{smallest}; {meaning}.", name=name
    )


MODEL_KEYS: Final = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "cache_age",
        "cache_dir",
        "cache_size",
        "generate_cfg",
        "model",
        "model_server",
        "model_type",
        "moderation",
        "use_raw_api",
    }
)
"""Settings of every model; a back end adds its own."""

BACK_END_KEYS: Final = frozenset(
    {
        *("anthropic_version", "api_version", "at_once", "audio", "aws_access_key_id", "aws_profile", "aws_region"),
        *("aws_secret_access_key", "aws_session_token", "azure_ad_token", "azure_deployment", "azure_endpoint"),
        *("base_http_api_url", "citations", "context", "default_headers", "deployment", "device", "documents", "dtype"),
        *("gguf_file", "gpu_seconds", "gpu_size", "parallel", "profile", "prompt_caching", "region", "region_name"),
        *("revision", "small", "threads", "tokens_per_second", "torch_dtype", "trust_remote_code", "video", "vision"),
        *("weights", "weights_dir", "workspace"),
    }
)
"""Settings of single back ends: a program that changes its model may leave them in its dict."""

_ELSEWHERE: Final = frozenset({"fallback", "fallbacks", "fallback_model", "fallback_models", "backup", "backups"})
"""Settings of other libraries that Parlour lacks: they would be ignored silently."""

_OURS: Final = OUR_KEYS | {"seed", "stop", *RANGES, *_LEAST}
_THEIRS: Final = frozenset(
    {
        *("max_completion_length", "max_new_tokens", "max_output_tokens", "min_completion_tokens", "min_new_tokens"),
        *("min_tokens", "parallel_tool_calls", "speed", "temperature_last", "top_a", "top_h", "top_k", "top_n"),
        *("auto_max_new_tokens", "typ_p"),
    }
)
"""Services' own settings that resemble one of ours; a test goes through the vendors' lists."""
WRITING_KEYS: Final = (_OURS - MODEL_KEYS) | {
    *("enable_thinking", "extra_body", "extra_headers", "extra_query", "logit_bias", "n", "parallel_tool_calls"),
    *("reasoning_effort", "repetition_penalty", "response_format", "thinking_budget", "top_k"),
}
"""Settings that belong into `generate_cfg`: elsewhere nothing would heed them."""
_NEAR: Final = 0.8


def check_generate_names(names: Iterable[str]) -> None:
    """Check that no name in a `generate_cfg` is a misspelling of one of ours; other names go to the service.

    Raises:
        SettingsError: One is misspelt; the hint has the right one.
    """
    for name in names:
        if name not in _OURS and (meant := _near_name(name)):
            raise _unknown("generate_cfg has", name, meant)


def check_model_names(names: Iterable[str], known: Iterable[str] = ()) -> None:
    """Check that no name in a model's settings is a misspelling.

    Args:
        known: The back end's, beside `MODEL_KEYS`.

    Raises:
        SettingsError: One is misspelt, or belongs into `generate_cfg`; the hint has the right one.
    """
    every = MODEL_KEYS | set(known)
    for name in names:
        if name not in every and (name in WRITING_KEYS or name == "timeout"):
            meant = "request_timeout" if name == "timeout" else name
            hint = f'It belongs into generate_cfg: write "generate_cfg": {{"{meant}": …}}.'
            raise SettingsError(f"A model has no setting {name!r} of its own.", hint=hint, name=name)
        if name in _ELSEWHERE and name not in every:
            hint = "A dict is one model: give a list of models, and the next one answers where one cannot."
            raise SettingsError(f"A model has no setting {name!r}.", hint=hint, name=name)
        if name not in every and (meant := _nearest(name, every)):
            raise _unknown("A model has", name, meant)


@lru_cache(maxsize=256)
def _near_name(name: str) -> str:
    return "" if name in _THEIRS else _nearest(name, _OURS)


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(str(name).lower().replace("-", "_"), sorted(names), n=1, cutoff=_NEAR)
    return near[0] if near else ""


def _unknown(where: str, name: str, meant: str) -> SettingsError:
    return SettingsError(f"{where} no setting {name!r}.", hint=f"Did you mean {meant!r}?", name=name, meant=meant)


def _strange(name: str, known: Iterable[str]) -> SettingsError:
    near = get_close_matches(name.lower().replace("-", "_"), sorted(known), n=3, cutoff=0.65)
    meant = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"It has {', '.join(sorted(known))}."
    hint = f"{meant} What the service is to get belongs into generate_cfg."
    return SettingsError(f"A model has no setting {name!r}.", hint=hint, name=name)


Config = TypeVar("Config", bound=BaseModel)


def read_config(kind: type[Config], cfg: Mapping[str, Any]) -> Config:
    """A model's settings as the `Config` of its back end; of those of other back ends the log tells.

    Raises:
        SettingsError: A name is misspelt, belongs into `generate_cfg`, or is known to no back end, or a value is wrong;
            the message does not show the value.
    """
    given = {name: value for name, value in cfg.items() if value is not None}
    known = set(_names(kind))
    check_model_names(given, known)
    unknown = sorted(map(str, given.keys() - MODEL_KEYS - known))
    if strange := [name for name in unknown if name not in BACK_END_KEYS]:
        raise _strange(strange[0], MODEL_KEYS | known)
    if unknown:
        told = ", ".join(map(repr, unknown))
        _log.warning("Settings of the model that only other back ends know have no effect: %s.", told)
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(map(str, wrong["loc"]))
        said = str(wrong["msg"]).removeprefix("Value error, ").rstrip(".")
        hint = "Correct it in the model's settings."
        raise SettingsError(f"The model's {name!r} is wrong: {said}.", hint=hint) from None


def _names(kind: type[BaseModel]) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield name
        if isinstance(field.validation_alias, AliasChoices):
            yield from (choice for choice in field.validation_alias.choices if isinstance(choice, str))
