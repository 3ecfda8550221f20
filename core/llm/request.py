"""The request that goes down through the layers around a model, and the types of what comes up."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from core.errors import SettingsError
from core.messages.events import Event
from core.messages.message import SYSTEM, USER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.languages import Lang
    from core.llm.tokens import Counter
    from core.llm.wire_log import WireLog
    from core.messages.message import Message


OUR_KEYS = frozenset(
    {
        "cache_age",
        "cache_dir",
        "cache_size",
        "circuit_breaker",
        "fncall_prompt_type",
        "function_choice",
        "if_taken",
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
    """One request to a model.

    Args:
        functions: Tools on offer: `{"name", "description", "parameters"}`, the parameters as JSON Schema.
        generate: The merged `generate_cfg`.
        lang: The language of what Parlour adds to the prompt.
        answers_calls: Whether the caller answers every call, also an unreadable one; otherwise that stays text.
        must_fit: A conversation that is longer than the model takes is refused, not shortened.
        notes: What the layers learn about this call; set by the recording layer.
        purpose: What the call is for, as an account of calls names it.
    """

    messages: tuple[Message, ...]
    functions: tuple[dict[str, Any], ...] = ()
    generate: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lang: Lang = "en"
    answers_calls: bool = False
    must_fit: bool = False
    notes: CallNotes | None = field(default=None, compare=False, repr=False)
    purpose: Purpose = field(default="answer", compare=False)


Purpose: TypeAlias = Literal[
    "answer",
    "search",
    "reading",
    "merging",
    "summary",
    "title",
    "follow-up",
    "router",
    "transcription",
    "claims",
    "test",
]
"""What a model is called for."""

Stream: TypeAlias = AsyncGenerator[Event, None]
"""A streaming reply: `MessageStarted` first, one `MessageFinished` last; closing it stops the model."""

Source: TypeAlias = Callable[[ChatRequest], Stream]
Layer: TypeAlias = Callable[[ChatRequest, Source], Stream]
"""Takes a request and the source below it; an inactive layer returns `below(request)` itself."""


class ModelFacts(Protocol):
    """What layers need to know about their model."""

    model: str
    small: bool
    native_calls: bool
    support_multimodal_input: bool
    support_audio_input: bool
    support_document_input: bool

    tokens_per_message: int

    @property
    def counter(self) -> Counter:
        """Counts tokens and cuts texts by them."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of `what`; `done` and `total` are bytes."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ReadSoFar:
    """How far a model has read its prompt, by its own count.

    Args:
        done: Tokens that it has read, those that it still knew included.
        total: Tokens of the prompt.
        speed: Tokens a second; 0 while that is not known.
    """

    done: int
    total: int
    speed: int = 0


def is_native(model: ModelFacts, request: ChatRequest) -> bool:
    """Whether tools go through the service's own calling: as set for this call, else for the model."""
    asked = request.generate.get("use_raw_api")
    return model.native_calls if asked is None else is_on(asked)


def merge_generate(base: Mapping[str, Any], extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """`extra` over `base`; the stop words of both are kept.

    Raises:
        SettingsError: `extra` is not a dict, or the stop words are not text.
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
    """The ids of calls and results in a conversation, and those reserved in it."""
    extras = [message.extra for message in messages if message.extra]
    here = {str(extra["function_id"]) for extra in extras if extra.get("function_id")}
    return here.union(*(map(str, extra.get("taken") or ()) for extra in extras))


def named_choice(request: ChatRequest) -> str:
    """The tool that must be called; empty if the model may choose, or none may be called."""
    choice = str(request.generate.get("function_choice") or "auto")
    return "" if choice in {"auto", "none"} else choice


def is_off(setting: object) -> bool:
    """Whether a switch is set to false, also as text in configuration files; an unset one is not off."""
    return setting is False or (isinstance(setting, str) and setting.strip().lower() in {"false", "0", "no", "off"})


def is_on(setting: object) -> bool:
    """Whether a switch is set to true."""
    return bool(setting) and not is_off(setting)


def _request_id() -> str:
    return token_hex(8)


@dataclass(slots=True)
class CallNotes:
    """What is learned about one call while it runs, for the layer that records it.

    Attributes:
        request_id: Our own id of the call, in logs and traces.
        response_id: The service's id of its reply, set by the back end.
        retries: Attempts after the first.
        cache_hit: Whether the reply came from the cache.
        deadline: When the whole turn must be over, in the loop's seconds.
        sent: The request after templates and fitting.
        raw: The events of the raw reply; `None` if nobody wants it.
        wire: What goes over the wire, noted by back ends that ask a service; `None` if nobody wants it.
        on_read: Told by back ends that know how far the prompt is read; `None` if nobody wants to know.
    """

    request_id: str = field(default_factory=_request_id)
    response_id: str | None = None
    retries: int = 0
    cache_hit: bool = False
    deadline: float | None = None
    sent: ChatRequest | None = None
    raw: list[Event] | None = None
    wire: WireLog | None = None
    on_read: Callable[[ReadSoFar], None] | None = None


_CHINESE = re.compile("[\u4e00-\u9fff]")


def language_of(messages: Iterable[Message]) -> Lang:
    """Chinese if a user or system message has Chinese characters; tool results do not count."""
    said = (message.get_text_content() for message in messages if message.role in {SYSTEM, USER})
    return "zh" if any(map(has_chinese, said)) else "en"


def has_chinese(text: str) -> bool:
    """Whether any character is a Chinese one (U+4E00 to U+9FFF)."""
    return not text.isascii() and _CHINESE.search(text) is not None
