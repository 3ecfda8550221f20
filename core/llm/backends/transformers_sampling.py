"""`generate_cfg`, in the words of the services, as what Transformers takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import ModelRefusedError, SettingsError
from core.llm.request import OUR_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

_LENGTHS: Final = ("max_tokens", "max_completion_tokens", "max_new_tokens")
_NAMES: Final = {"repeat_penalty": "repetition_penalty"}
# Settings of services that change nothing with these values, and that nothing here can do with another.
_NEUTRAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "n": (1,),
    "response_format": ({"type": "text"},),
    "logprobs": (False,),
}
_FOR_SERVICES: Final = frozenset({"stream", "stream_options", "user", "store", "metadata", "service_tier"})


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is drawn.

    Args:
        arguments: For `generate`.
        stop: Words before which the reply ends.
        max_tokens: The longest reply; `None` leaves it to the context.
        seed: The same seed gives the same reply.
        template: For the chat template.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    seed: int | None = None
    template: Mapping[str, Any] = field(default_factory=dict[str, Any])


def sampling(generate: Mapping[str, Any]) -> Sampling:
    """The settings of one request.

    Raises:
        SettingsError: A value is not of its kind; the message names the field.
        ModelRefusedError: A local model cannot do what is asked for.
    """
    given = {key: value for key, value in generate.items() if key not in OUR_KEYS | _FOR_SERVICES}
    given.update(_dict("extra_body", given.pop("extra_body", None)))
    given = {_NAMES.get(key, key): value for key, value in given.items() if value is not None}
    for key, values in _NEUTRAL.items():
        if key in given and (value := given.pop(key)) not in values:
            raise ModelRefusedError(
                code="400",
                message=f"A Transformers model cannot do {key}={value!r}.",
                hint="Leave it out, or use a GGUF file or a service that can.",
                sent=False,
            )
    template = _dict("chat_template_kwargs", given.pop("chat_template_kwargs", None))
    if "enable_thinking" in given:
        template = {"enable_thinking": given.pop("enable_thinking"), **template}
    lengths = [_whole(key, given.pop(key), least=1) for key in _LENGTHS if key in given]
    seed = _whole("seed", given.pop("seed")) if "seed" in given else None
    stop = _words(given.pop("stop", ()))
    return Sampling(_drawn(given), stop, min(lengths, default=None), seed, template)


def _drawn(given: dict[str, Any]) -> dict[str, Any]:
    """Whether the likeliest token is taken or one is drawn: temperature 0 means the likeliest."""
    for key in ("temperature", "top_p", "repetition_penalty"):
        if key in given:
            given[key] = _number(key, given[key])
    if given.get("temperature") == 0 or given.get("do_sample") is False:
        dropped = {"temperature", "top_p", "top_k", "min_p", "do_sample"}
        return {"do_sample": False, **{key: value for key, value in given.items() if key not in dropped}}
    if given.keys() & {"temperature", "top_p", "top_k", "min_p"}:
        given.setdefault("do_sample", True)
    return given


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise SettingsError(f"The setting {key!r} must be a number of at least 0, not {value!r}.")
    return float(value)


def _whole(key: str, value: object, *, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingsError(f"The setting {key!r} must be a whole number of at least {least}, not {value!r}.")
    return value


def _words(stop: object) -> tuple[str, ...]:
    words: Any = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in cast("list[Any]", words)):
        raise SettingsError(f"The setting 'stop' must be words, not {stop!r}.")
    return tuple(word for word in cast("list[str]", words) if word)


def _dict(key: str, value: object) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise SettingsError(f"The setting {key!r} must be a dict, not {value!r}.")
    return dict(cast("dict[str, Any]", value or {}))
