"""`FallbackModel`: several models, of which the next answers where one cannot."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from core.errors import ContextTooLongError, ModelServiceError, ModelUnavailableError, SettingsError
from core.llm.base import BaseChatModel
from core.llm.request import merge_generate
from core.messages.events import MessageFinished, MessageStarted

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.llm.parameters import Efforts
    from core.llm.request import ChatRequest, Progress, Stream
    from core.llm.service import Service
    from core.llm.telemetry import OnCall
    from core.llm.tokens import Counter

_LOG = logging.getLogger(__name__)

Trouble: TypeAlias = Literal["connection", "busy", "server", "quota", "key", "unknown", "context", "content", "refused"]
"""What goes wrong with a model: it cannot be reached or says nothing; it is overloaded or asked too often; it broke;
the account is used up; the key is wrong; there is no such model; the conversation is too long for it; its service
refuses what is said; it refuses anything else."""

_SETTINGS: Final = frozenset({"model", "model_type", "models", "on", "generate_cfg"})
USUAL: Final[tuple[Trouble, ...]] = ("connection", "busy", "server")
_KEYS: Final[Mapping[str, Trouble]] = {
    "model_unreachable": "connection",
    "model_slow": "connection",
    "model_cut_off": "connection",
    "model_resting": "connection",
    "model_html": "connection",
    "model_overloaded": "busy",
    "model_quota": "quota",
    "model_key_wrong": "key",
    "model_key_missing": "key",
    "model_unknown": "unknown",
    "model_content_refused": "content",
    "content_refused": "content",
}


def trouble_of(error: ModelServiceError) -> Trouble:
    """What an error of a model's says went wrong."""
    if isinstance(error, ContextTooLongError):
        return "context"
    if found := _KEYS.get(error.words_key):
        return found
    code = str(error.code or "")
    if code == "429":
        return "busy"
    if code in {"408", "409"}:
        return "connection"
    if code.startswith("5") or isinstance(error, ModelUnavailableError):
        return "server"
    if not code and isinstance(error.exception, OSError):
        return "connection"
    return "refused" if code else "server"


class FallbackModel(BaseChatModel):
    """A chain of models: each question goes to the first, and to the next one where that cannot answer.

    It is what a list of models becomes (`llm=[a, b, c]`). Once anything of a reply was shown, no other model is asked:
    a reply is of one model. Each keeps its own settings, retries, prompts and account; `MessageFinished.model` and
    `Reply.models` say which one answered.

    Args:
        cfg: `models`, a list of names, dicts and models; and `on`, the troubles with which one goes on to the next:
            `connection`, `busy` (429, overloaded) and `server` (5xx) by default, and `quota`, `key`, `unknown`,
            `context`, `content`, `refused`.

    Raises:
        SettingsError: There are no models, one is none, `on` has a word that is none of these, or there is a setting
            beside these and `generate_cfg`, which goes to all of them.
    """

    model_type = "fallback"

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        given = dict(cfg or {})
        if strange := sorted(given.keys() - _SETTINGS):
            said = f"A chain of models has no setting {strange[0]!r}."
            raise SettingsError(said, hint="Set it for each of its models, or in generate_cfg.", name=strange[0])
        self.models: tuple[BaseChatModel, ...] = _models(given.get("models"))
        self.on: frozenset[str] = _troubles(given.get("on"))
        first = self.models[0]
        super().__init__({**given, "model": first.model, "model_type": self.model_type})
        self.label = " → ".join(model.label for model in self.models)
        self.small = all(model.small for model in self.models)
        self.native_calls = all(model.native_calls for model in self.models)
        self.takes_schema = all(model.takes_schema for model in self.models)
        self.in_process = all(model.in_process for model in self.models)
        self.keeps_prompt = first.keeps_prompt
        self.tokens_per_message = first.tokens_per_message
        # What one of them does not take is named in its question: it gets what it can.
        self.support_multimodal_input = any(model.support_multimodal_input for model in self.models)
        self.support_multimodal_output = any(model.support_multimodal_output for model in self.models)
        self.support_audio_input = any(model.support_audio_input for model in self.models)
        self.support_video_input = any(model.support_video_input for model in self.models)
        self.support_document_input = any(model.support_document_input for model in self.models)

    @property
    def service(self) -> Service:
        """Where the first model is."""
        return self.models[0].service

    @property
    def efforts(self) -> Efforts:
        """Those of the first model."""
        return self.models[0].efforts

    @property
    def counter(self) -> Counter:
        """That of the first model."""
        return self.models[0].counter

    @property
    def left_out(self) -> Mapping[str, Any]:
        """What any of their services refused."""
        return {name: value for model in reversed(self.models) for name, value in model.left_out.items()}

    async def account(self) -> str:
        """A digest of all their accounts."""
        return sha256("\n".join([await model.account() for model in self.models]).encode()).hexdigest()

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Get the first model ready; the others are prepared when they are asked.

        Args:
            progress: Called with bytes while weights are fetched.
        """
        await self.models[0].prepare(progress)

    async def aclose(self) -> None:
        """Close all of them, also where closing one fails.

        Raises:
            Exception: Closing one failed; the first such error is raised once all were asked to.
        """
        failed: Exception | None = None
        for model in self.models:
            try:
                await model.aclose()
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
        if failed is not None:
            raise failed

    def count_tokens(self, text: str) -> int:
        """As the first model counts.

        Args:
            text: Any text.
        """
        return self.models[0].count_tokens(text)

    def on_call(self, listen: OnCall) -> Callable[[], None]:
        """Listen to the calls of all of them, those that failed too.

        Args:
            listen: Called on the loop that ran the call; it must be quick, and must not fail.

        Returns:
            A function that removes the listener.
        """
        removers = [model.on_call(listen) for model in self.models]

        def remove() -> None:
            for each in removers:
                each()

        return remove

    def stream(self, request: ChatRequest) -> Stream:
        """The reply of the first model that can answer, as events.

        Args:
            request: What each of them is asked.

        Raises:
            ModelServiceError: None could; it is that of the last one that was asked, `extra["tried"]` names them all.
        """
        return self._asked(replace(request, generate=merge_generate(self.generate_cfg, request.generate)))

    async def _asked(self, request: ChatRequest) -> Stream:
        tried: list[str] = []
        begun = started = False
        for model in self.models:
            try:
                async with aclosing(model.stream(request)) as events:
                    async for event in events:
                        if isinstance(event, MessageStarted):
                            if started:
                                continue  # an earlier one announced it
                            started = True
                        else:
                            begun = True
                        yield (
                            replace(event, model=event.model or model.label)
                            if isinstance(event, MessageFinished)
                            else event
                        )
                return
            except ModelServiceError as error:
                trouble = trouble_of(error)
                inner: object = (error.extra or {}).get("tried")  # a chain within the chain says whom it asked
                tried += map(str, cast("list[object]", inner)) if isinstance(inner, list) else [model.label]
                if begun or trouble not in self.on or model is self.models[-1]:
                    error.extra = {**(error.extra or {}), "tried": tried}
                    raise
                _LOG.warning("%s cannot answer (%s): the next model is asked.", model.label, trouble)

    async def _connect(self) -> None:
        await self.models[0].awarm_up()


def _models(given: object) -> tuple[BaseChatModel, ...]:
    from core.llm.open_model import get_chat_model

    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not given:
        said = "A chain of models needs at least one." if not given else f"models cannot be {given!r}."
        raise SettingsError(said, hint='Give a list, such as ["gpt-5-mini", {"model_type": "llama_cpp"}].')
    return tuple(get_chat_model(one) for one in cast("Sequence[Any]", given))


def _troubles(given: object) -> frozenset[str]:
    if given is None:
        return frozenset(USUAL)
    several = isinstance(given, list | tuple | set | frozenset)
    words: list[Any] = list(cast("Sequence[Any]", given)) if several else [given]
    known = get_args(Trouble)
    for word in words:
        if word not in known:
            raise SettingsError(f"on cannot have {word!r}.", hint=f"Give some of {', '.join(known)}.", name="on")
    return frozenset(map(str, words))
