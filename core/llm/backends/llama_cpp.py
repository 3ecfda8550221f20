"""The built-in model, run by llama.cpp in this process: its weights, requests as that takes them, and its replies."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, Field

from core.errors import (
    ContextTooLongError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    SettingsError,
    need_packages,
)
from core.llm.backends.llama_server import LlamaServer, Shape, SharedLlama
from core.llm.backends.local import answers, local_turns
from core.llm.backends.meanings import in_words
from core.llm.base import BaseChatModel
from core.llm.calling.neutral import has_calls, without_tokens
from core.llm.gguf import read_gguf
from core.llm.request import OUR_KEYS, ChatRequest, ReadSoFar, call_ids
from core.llm.usage import usage_from
from core.llm.validation import read_config
from core.llm.weights import WeightStore
from core.llm.weights_catalog import Weights, named, suited
from core.llm.wire.openai import ChunkReader, Senses, messages_json, settings_json
from core.llm.wire.tools import ToolNames
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import SYSTEM, Message
from core.resources import free_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.languages import Lang
    from core.llm.backends.llama_server import Chunk
    from core.llm.request import Progress, Stream
    from core.messages.message import Usage


_CONTEXT: Final = 8_192
_REPLY_TOKENS: Final = 1_024
_LARGE: Final = 2_000_000_000  # bytes: about three billion weights at four bits each
_WHO: Final[Mapping[Lang, str]] = {
    "en": "You are Parlour's built-in assistant: {model}, a small language model made by {maker}, running on the "
    "user's own computer. Be friendly, brief and honest.",
    "zh": "你是 Parlour 的内置助手：{model}，由{maker}开发的小型语言模型，在用户自己的电脑上运行。"
    "请友好、简短、诚实地回答。",
}
_WHO_UNKNOWN: Final[Mapping[Lang, str]] = {
    "en": "You are Parlour's built-in assistant: {model}, a language model running on the user's own computer. "
    "Be friendly, brief and honest.",
    "zh": "你是 Parlour 的内置助手：{model}，在用户自己的电脑上运行的语言模型。请友好、简短、诚实地回答。",
}


class LlamaCppConfig(BaseModel):
    """The settings of this back end; unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore")

    weights: Path | None = None
    weights_dir: Path = Field(default_factory=lambda: user_cache_path("parlour", appauthor=False) / "weights")
    context: int = Field(default=_CONTEXT, ge=512)
    threads: int = Field(default=0, ge=0)
    parallel: int = Field(default=2, ge=1, le=16)
    small: bool | None = None


class LlamaCppModel(BaseChatModel):
    """A model that runs inside Parlour, fetched and loaded on first use or by `prepare`.

    Models with the same file and shape share it in memory.

    Args:
        cfg: `model`: the name of weights that `parlour models` lists (`qwen2.5-coder-0.5b` …) or the path of a GGUF
            file; by default, what suits the machine. `weights_dir`: where known weights are kept.
            `context`: tokens at once; `threads`: of the processor (0: by the number of cores); `parallel`: answers at
            once; `small`: whether tool calls need a JSON schema to constrain them (by default, decided by file size; a
            larger model gets tools through the `nous` template); `generate_cfg`.

    Raises:
        SettingsError: A value is wrong, or the name is unknown.
    """

    model_type = "llama_cpp"
    in_process = True
    keeps_prompt = True
    takes_schema = True
    takes_grammar = True
    tokens_per_message = 5  # the marks around each: the context is small and must not overflow
    small = True

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._config = read_config(LlamaCppConfig, self.cfg)
        self._file = self._config.weights or (Path(self.model) if self.model.lower().endswith(".gguf") else None)
        self._choices = () if self._file else self._weights()
        self._describe(self._choices[0] if self._choices else None)
        self.small = self._is_small() if self._config.small is None else self._config.small
        if self._choices and self._choices[0].thinks:
            self.generate_cfg.setdefault("enable_thinking", False)
        context = min(self._config.context, _context_of(self._file) or self._config.context)
        self.generate_cfg.setdefault("max_tokens", min(_REPLY_TOKENS, context // 4))
        room = context - int(self.generate_cfg["max_tokens"])
        self.generate_cfg.setdefault("max_input_tokens", room * 9 // 10)  # counting is an estimate
        self._server: SharedLlama | None = None
        self._loading = threading.Lock()
        self._ahead: asyncio.Future[Any] | None = None  # reads what questions to come begin with
        self._asked = 0  # how many questions came

    @property
    def is_ready(self) -> bool:
        """Whether the model is in memory."""
        return self._server is not None

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Fetch and load the weights.

        Args:
            progress: Called with bytes, from another thread.

        Raises:
            MissingExtraError: The extra `local` is not installed.
            ModelServiceError: They cannot be fetched, or not be loaded; the key says which.
            NoSpaceError: The disk has no room for them.
        """
        if self._server is not None:
            return
        stop = threading.Event()
        try:
            await asyncio.to_thread(self._load, progress, stop)
        finally:
            stop.set()

    async def read_ahead(
        self, messages: Sequence[Message], functions: Sequence[Mapping[str, Any]] = (), lang: Lang = "en"
    ) -> None:
        """As for every model. A question that comes meanwhile ends it: whoever asks waits for nothing else.

        Raises:
            ModelServiceError: The model cannot be loaded, or fails.
        """
        if self._asked:  # it is busy with what somebody waits for
            return
        answer = self.achat(
            [*messages], [dict(one) for one in functions], {"temperature": 0, "max_tokens": 1, "lang": lang}
        )
        self._ahead = ahead = asyncio.ensure_future(answer)
        try:
            await asyncio.wait({ahead})
        finally:
            ahead.cancel()
        if not ahead.cancelled() and (error := ahead.exception()) is not None:
            raise error

    async def aclose(self) -> None:
        """Stop all replies, and free the memory unless another model shares it."""
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)

    async def _stream(self, request: ChatRequest) -> Stream:
        yield MessageStarted()
        await self.prepare()
        server = self._server
        if server is None:
            raise ModelServiceError(message="The model was just closed.", key="model_not_ready")
        if asyncio.current_task() is not self._ahead:
            self._asked += 1
            self._stop_ahead()
        reply = LlamaReply(request)
        async with aclosing(answers(server.ask, question_body(request, self._who[request.lang]))) as chunks:
            async for chunk in chunks:
                for event in reply.feed(chunk):
                    yield event
        for event in reply.close():
            yield event

    def _stop_ahead(self) -> None:
        """Read nothing ahead any more; it may be read on another loop than the caller's, which must end it itself."""
        ahead = self._ahead
        if ahead is None or ahead.done():
            return
        if ahead.get_loop() is asyncio.get_running_loop():
            ahead.cancel()
            return
        with suppress(RuntimeError):  # that loop is closed, and what ran on it is over
            ahead.get_loop().call_soon_threadsafe(ahead.cancel)

    # -- weights ------------------------------------------------------------------------------------------------------

    def _is_small(self) -> bool:
        """Whether the model is too small to call tools without a schema that constrains it."""
        if self._choices:
            return max(self._choices[0].size, self._choices[0].about) < _LARGE
        try:
            return self._file is None or self._file.stat().st_size < _LARGE
        except OSError:
            return True

    def _weights(self) -> tuple[Weights, ...]:
        if self.model:
            return (named(self.model),)
        return suited(_cores(), free_memory())

    def _describe(self, weights: Weights | None) -> None:
        if weights is not None:
            self.model = weights.name
            self.languages = weights.spoken
        name = weights.label if weights else self._file.stem if self._file else self.model
        self.label = f"{name}, built in"
        who = _WHO if weights else _WHO_UNKNOWN
        maker = weights.maker if weights else {"en": "", "zh": ""}
        self._who = {lang: words.format(model=name, maker=maker[lang]) for lang, words in who.items()}

    def _load(self, progress: Callable[[Progress], None] | None, stop: threading.Event) -> None:
        with self._loading:
            if self._server is not None:
                return
            path, limit = self._fetch(progress, stop)
            shape = Shape(min(self._config.context, limit), self._config.threads or _threads(), self._config.parallel)
            try:
                self._server = SharedLlama(path, shape, LlamaServer)
            except RuntimeError as error:
                raise ModelServiceError(
                    error,
                    message=f"The model file {path.name} cannot be loaded.",
                    hint="Check that it is a GGUF file and that memory is enough.",
                    key="weights_not_loaded",
                ) from error

    def _fetch(self, progress: Callable[[Progress], None] | None, stop: threading.Event) -> tuple[Path, int]:
        """The file and its longest context: of the first choice that can be fetched."""
        need_packages("A model in this process", ("xllamacpp",))  # said before weights are fetched for nothing
        if self._file is not None:
            if not self._file.is_file():
                raise SettingsError(f"There is no model file {str(self._file)!r}.", hint="Check the path.")
            facts = read_gguf(self._file, whole=True)
            return self._file, facts.context or self._config.context
        store = WeightStore(self._config.weights_dir)
        failed: ModelServiceError | None = None
        for weights in self._choices:
            self._describe(weights)  # also while it is fetched
            try:
                path = store.fetch(weights, progress, stop)
            except ModelServiceError as error:
                failed = failed or error
            else:
                return path, weights.context or read_gguf(path, whole=True).context or self._config.context
        self._describe(self._choices[0] if self._choices else None)
        raise failed or ModelServiceError(message="There is no model to load.")


def _context_of(file: Path | None) -> int:
    """The longest context of a file; 0 where it cannot be read, which `prepare` will report."""
    try:
        return read_gguf(file).context if file else 0
    except (OSError, ModelServiceError):
        return 0


def _cores() -> int:
    """Physical cores that this process may use."""
    real = psutil.cpu_count(logical=False) or 1
    try:
        return min(real, len(psutil.Process().cpu_affinity() or [0] * real))
    except AttributeError:  # macOS does not say
        return real


def _threads() -> int:
    """One on up to two cores, where two would contend; else all but one, at most eight."""
    cores = _cores()
    return 1 if cores <= 2 else min(cores - 1, 8)


# Small models fall into loops: their makers advise a repetition penalty of 1.1, and the DRY sampler makes each token
# after 24 repeated ones less likely, across line breaks too (hence a breaker that nobody writes). Quoting a sentence
# stays possible.
_AGAINST_LOOPS: Final[Mapping[str, Any]] = {
    "repeat_penalty": 1.1,
    "repeat_last_n": 128,
    "dry_multiplier": 0.8,
    "dry_allowed_length": 24,
    "dry_penalty_last_n": 512,
    "dry_sequence_breakers": ["\u241e"],
}
_REFUSED: Final = "built_in_refused"
_HINT: Final = "Check generate_cfg and response_format."


def question_body(request: ChatRequest, who: str) -> dict[str, Any]:
    """The request as llama.cpp takes it, `who` at the front of the system message.

    Tools that are still in the request are for the model's own chat template.

    Raises:
        ModelRefusedError: A tool cannot be sent as it is.
    """
    if _is_native(request):
        names = _AnyName()
        settings = settings_json(request)
        harmless = [_harmless(message) for message in request.messages]
        messages = messages_json((Message(SYSTEM, who), *harmless), Senses(), request.lang, names)
    else:
        settings = {key: value for key, value in request.generate.items() if key not in OUR_KEYS and value is not None}
        messages = local_turns(request.messages, request.lang, who=who)
    if "enable_thinking" in settings:
        given = {"enable_thinking": bool(settings.pop("enable_thinking")), **settings.get("chat_template_kwargs", {})}
        settings["chat_template_kwargs"] = given
    return {
        "temperature": 0.2,
        **_AGAINST_LOOPS,
        **settings,
        "messages": messages,
        "cache_prompt": True,
        "stream_options": {"include_usage": True},
    }


class LlamaReply:
    """Reads one reply.

    Args:
        request: The one that it answers.
    """

    def __init__(self, request: ChatRequest) -> None:
        native = _is_native(request)
        self._native = ChunkReader(call_ids(request.messages)) if native else None
        self._begun = False
        self._reason = ""
        self._usage: Usage | None = None
        self._on_read = request.notes.on_read if request.notes is not None else None

    def feed(self, chunk: Chunk | Exception) -> list[Event]:
        """The events of one chunk.

        Raises:
            ModelServiceError: It is a failure, or reports one.
        """
        if isinstance(chunk, Exception):
            raise _broken(chunk, begun=self._begun)
        if "error" in chunk:
            raise _failed(chunk["error"])
        self._begun = True
        self._tell_progress(chunk.get("prompt_progress"))
        if self._native is not None:
            return self._native.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        events: list[Event] = []
        for choice in chunk.get("choices") or ():
            delta: Mapping[str, Any] = choice.get("delta") or {}
            if thought := delta.get("reasoning_content"):
                events.append(ReasoningDelta(thought))
            if text := delta.get("content"):
                events.append(TextDelta(text))
            self._reason = choice.get("finish_reason") or self._reason
        self._usage = usage_from(chunk.get("usage")) or self._usage
        return events

    def _tell_progress(self, read: Mapping[str, int] | None) -> None:
        """Pass on how far the prompt is read; what was still known of it took no time."""
        if not read or self._on_read is None:
            return
        done, seconds = read.get("processed", 0), read.get("time_ms", 0) / 1000
        speed = round((done - read.get("cache", 0)) / seconds) if seconds else 0
        self._on_read(ReadSoFar(done, read.get("total", 0), speed))

    def close(self) -> list[Event]:
        """The last events.

        Raises:
            ModelMisbehavedError: The reply is incomplete.
        """
        events: list[Event] = []
        if self._native is not None:
            events = self._native.close()
        elif self._reason:
            events = [MessageFinished("length" if self._reason == "length" else "stop", self._usage)]
        if not events or not isinstance(events[-1], MessageFinished):
            raise ModelMisbehavedError(message="The built-in model stopped in the middle of its answer.")
        return events


def _is_native(request: ChatRequest) -> bool:
    """Whether llama.cpp handles tool calls; Parlour's calling templates would have taken them out of the request."""
    return bool(request.functions) or has_calls(request.messages)


class _AnyName(ToolNames):
    """Names as they are: llama.cpp takes any, and the model may write them as text."""

    def wire_name(self, name: str) -> str:
        """The name itself."""
        return name


def _harmless(message: Message) -> Message:
    items = [
        ContentItem(text=without_tokens(item.text or "")) if item.type == "text" else item for item in message.items
    ]
    return message.model_copy(update={"content": items}) if items else message


def _broken(error: Exception, *, begun: bool) -> ModelServiceError:
    if begun:
        return ModelMisbehavedError(error, message=f"The built-in model failed: {error}", hint="Ask again.")
    # What fails before the first chunk is a bad request, mostly a faulty schema.
    message = f"The built-in model cannot do what was asked: {in_words(str(error)).rstrip('.')}."
    return ModelRefusedError(error, code="400", message=message, hint=_HINT, key=_REFUSED)


def _failed(error: Mapping[str, Any]) -> ModelServiceError:
    code, message = str(error.get("code", "")), in_words(str(error.get("message", "")))
    if error.get("type") == "exceed_context_size_error":
        return ContextTooLongError(code=code, message=message, hint="Ask less at once, or begin a new conversation.")
    if code.startswith("4"):
        return ModelRefusedError(code=code, message=message, hint=_HINT, key=_REFUSED)
    return ModelMisbehavedError(code=code, message=message, hint="Ask again, or start Parlour again.")
