"""What travels through the layers around a model: one request down, a stream of events up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from core.errors import SettingsError
from core.messages.events import Event

if TYPE_CHECKING:
    from core.llm.notes import CallNotes
    from core.llm.tokens import Counter
    from core.messages.message import Message

Lang: TypeAlias = Literal["en", "zh"]

OUR_KEYS = frozenset(
    {
        "cache_age",
        "cache_dir",
        "cache_size",
        "circuit_breaker",
        "fncall_prompt_type",
        "function_choice",
        "incremental_output",
        "lang",
        "log_messages",
        "max_input_tokens",
        "max_retries",
        "parallel_function_calls",
        "request_timeout",
        "skip_stopword_postproc",
        "thought_in_content",
        "turn_timeout",
        "use_raw_api",
    }
)
"""Keys of `generate_cfg` that Parlour acts on itself; `seed`, `stop` and the rest go to the service as they are."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model.

    Args:
        messages: The conversation, oldest first.
        functions: Tools on offer: `{"name", "description", "parameters"}`, the parameters as JSON Schema.
        generate: The merged `generate_cfg`.
        lang: The language of what Parlour adds to a prompt.
        answers_calls: Whether who asks answers every call, also one that cannot be read; else that one stays text.
        notes: What the layers learn about this call; the recording layer begins them.
    """

    messages: tuple[Message, ...]
    functions: tuple[dict[str, Any], ...] = ()
    generate: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lang: Lang = "en"
    answers_calls: bool = False
    notes: CallNotes | None = field(default=None, compare=False, repr=False)


Stream: TypeAlias = AsyncGenerator[Event, None]
"""A reply coming into being. It begins with `MessageStarted`, ends with one `MessageFinished`; closing it stops it."""

Source: TypeAlias = Callable[[ChatRequest], Stream]
Layer: TypeAlias = Callable[[ChatRequest, Source], Stream]
"""Takes a request and what lies below it. A layer with nothing to do returns `below(request)` itself."""


class ModelFacts(Protocol):
    """What a layer may ask about the model it surrounds."""

    model: str
    small: bool
    native_calls: bool
    support_multimodal_input: bool
    support_audio_input: bool

    tokens_per_message: int

    @property
    def counter(self) -> Counter:
        """Counts tokens and cuts texts by them."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something long has come: `what` is its name, `done` and `total` are bytes."""

    what: str
    done: int
    total: int


def is_native(model: ModelFacts, request: ChatRequest) -> bool:
    """Whether tools go through the service's own calling: as this one call wishes, else as the model does."""
    asked = request.generate.get("use_raw_api")
    return model.native_calls if asked is None else is_on(asked)


def merge_generate(base: Mapping[str, Any], extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """`extra` over `base`; the stop words of both are kept.

    Raises:
        SettingsError: `extra` is no dict, or the stop words are none.
    """
    given: Any = extra or {}
    if not isinstance(given, Mapping):
        raise SettingsError("extra_generate_cfg must be a dict.", hint="Give names and values.")
    merged = {**base, **(extra or {})}
    stops = [*_words(base.get("stop")), *_words((extra or {}).get("stop"))]
    if stops:
        merged["stop"] = list(dict.fromkeys(stops))
    return merged


def _words(stop: str | list[str] | None) -> list[str]:
    given: Any = stop or ()
    if not isinstance(given, str | list | tuple):
        raise SettingsError(f"generate_cfg['stop'] cannot be {given!r}.", hint="Give a text, or a list of texts.")
    return [stop] if isinstance(stop, str) else list(map(str, stop or ()))


def call_ids(messages: tuple[Message, ...]) -> set[str]:
    """The ids of calls and results that a conversation already holds, or that others in it have taken."""
    extras = [message.extra for message in messages if message.extra]
    here = {str(extra["function_id"]) for extra in extras if extra.get("function_id")}
    return here.union(*(map(str, extra.get("taken") or ()) for extra in extras))


def named_choice(request: ChatRequest) -> str:
    """The one tool that must be called; empty where the model may choose, or none may be called."""
    choice = str(request.generate.get("function_choice") or "auto")
    return "" if choice in {"auto", "none"} else choice


def is_off(setting: object) -> bool:
    """Whether a switch is set to no, also in words as configuration files have it; one that is not set is not off."""
    return setting is False or (isinstance(setting, str) and setting.strip().lower() in {"false", "0", "no", "off"})


def is_on(setting: object) -> bool:
    """Whether a switch is set to yes."""
    return bool(setting) and not is_off(setting)
