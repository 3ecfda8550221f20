"""`TransformersModel`: a model of the Transformers library in this process, and the one thread that answers with it."""

from __future__ import annotations

import asyncio
import atexit
import json
import threading
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from core.errors import (
    ContextTooLongError,
    ModelRefusedError,
    ModelServiceError,
    ParlourError,
    SettingsError,
    need_packages,
)
from core.llm.backends.local import Question, QuestionQueue, answers, local_turns
from core.llm.backends.transformers.inputs import PLAIN_STOP, has_template, opened_pictures, prompt_text, sampling
from core.llm.backends.transformers.load import (
    Dtype,
    Loaded,
    Place,
    cached_folder,
    fetched_folder,
    is_out_of_memory,
    load,
    no_memory,
)
from core.llm.base import BaseChatModel
from core.llm.calling.neutral import flattened, has_calls
from core.llm.layers.reply import StopScanner
from core.llm.local_files import user_path
from core.llm.tokens import count_tokens
from core.llm.validation import read_config
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.llm.backends.local import Json
    from core.llm.backends.transformers.inputs import Sampling
    from core.llm.request import ChatRequest, Progress, Stream


_REPLY_TOKENS: Final = 2_048
_THOUGHT: Final = "<think>"


@dataclass(frozen=True, slots=True)
class Task:
    """One request to the engine.

    Args:
        pictures: Its opened pictures, in order.
        sampling: How the reply is sampled.
    """

    turns: Sequence[Json]
    pictures: Sequence[Any]
    sampling: Sampling


TaskQuestion: TypeAlias = Question[Task, Event]


class TransformersEngine:
    """Answers with a loaded model, first come, first served.

    Args:
        place: Where it was loaded from, for errors.
    """

    def __init__(self, loaded: Loaded, place: Place) -> None:
        self.loaded = loaded
        self._place = place
        self._queue: QuestionQueue[Task, Event] = QuestionQueue()
        self._answered: TaskQuestion | None = None
        self._ends = _ends(loaded)
        self._hooks = [layer.register_forward_pre_hook(self._check_stop) for layer in _layers(loaded)]
        self._thread = threading.Thread(target=self._work, name="parlour-transformers", daemon=True)
        self._thread.start()
        # A thread inside torch while the interpreter exits may crash the process.
        atexit.register(self.close)

    def ask(self, question: TaskQuestion) -> None:
        """Queue the question. Set `question.unwanted` to stop within a layer of the model."""
        self._queue.put(question)

    def count_tokens(self, text: str) -> int:
        """How many tokens the text takes."""
        fast = getattr(self.loaded.tokenizer, "backend_tokenizer", None)
        if fast is not None:  # the wrapper around it is not thread-safe
            return len(fast.encode(text, add_special_tokens=False).ids)
        return len(self.loaded.tokenizer.encode(text, add_special_tokens=False))

    def close(self) -> None:
        """Stop all answers. Blocks for a layer at most; idempotent."""
        if not self._queue.close():
            return
        atexit.unregister(self.close)
        if self._thread is not threading.current_thread():
            self._thread.join()
        for hook in self._hooks:  # breaks the reference cycle between the model and this object
            hook.remove()

    def _work(self) -> None:
        for question in self._queue:
            self._answered = question
            if not self._is_unwanted():
                self._answer(question)
            question.emit(None)
            self._answered = None
            del question  # nothing of it is kept while the queue is empty

    def _is_unwanted(self) -> bool:
        return self._queue.closed or (self._answered is not None and self._answered.unwanted.is_set())

    def _check_stop(self, *_: Any) -> None:
        """Hook before each layer of the model, so that a long prompt can be abandoned while it is read."""
        if self._is_unwanted():
            raise _StoppedError

    def _answer(self, question: TaskQuestion) -> None:
        try:
            question.emit(self._generate(question))
        except _StoppedError:
            return
        except ParlourError as error:
            question.emit(error)
        except Exception as error:  # noqa: BLE001 - handed to the caller as a named error
            question.emit(self._translated(error))

    def _generate(self, question: TaskQuestion) -> MessageFinished:
        """Generate the reply; its text is passed on as it comes."""
        torch, task = self.loaded.torch, question.body
        text = prompt_text(self.loaded, task.turns, task.sampling.template)
        inputs = self._inputs(text, task.pictures)
        asked = int(inputs["input_ids"].shape[1])
        longest = self._longest(asked, task.sampling.max_tokens)
        tokenizer = self.loaded.tokenizer
        stop = task.sampling.stop + (() if has_template(self.loaded) else PLAIN_STOP)
        decode = partial(tokenizer.decode, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        writer = _Writer(ReplyText(decode, stop), question)
        if text.rstrip().endswith(_THOUGHT):  # the template opens the thought: the reply's reader must see the tag
            writer.say(f"{_THOUGHT}\n")
        arguments = {**inputs, **_ends_given(self._ends), **task.sampling.arguments, "max_new_tokens": longest}
        with ExitStack() as around:
            around.enter_context(torch.inference_mode())
            if task.sampling.seed is not None:
                device = self.loaded.model.device
                around.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
                torch.manual_seed(task.sampling.seed)
            stopping = self.loaded.transformers.StoppingCriteriaList([writer.is_over])
            self.loaded.model.generate(**arguments, streamer=writer, stopping_criteria=stopping)
        writer.say(writer.text.close())
        cut = writer.text.count >= longest and writer.last not in self._ends and not writer.text.stopped
        written = writer.text.count
        usage = Usage(prompt_tokens=asked, completion_tokens=written, total_tokens=asked + written)
        return MessageFinished("length" if cut else "stop", usage)

    def _inputs(self, text: str, pictures: Sequence[Any]) -> dict[str, Any]:
        loaded = self.loaded
        start = loaded.tokenizer.bos_token
        if not pictures:
            made = loaded.tokenizer(text, return_tensors="pt", add_special_tokens=not has_template(loaded))
            return {key: made[key].to(loaded.model.device) for key in ("input_ids", "attention_mask")}
        special = not (start and text.startswith(start))
        made = loaded.processor(text=[text], images=[*pictures], return_tensors="pt", add_special_tokens=special)
        return dict(made.to(loaded.model.device, loaded.model.dtype))

    def _longest(self, asked: int, wanted: int | None) -> int:
        """The longest reply in tokens.

        Raises:
            ContextTooLongError: The prompt fills the context.
        """
        if not self.loaded.context:
            return wanted or _REPLY_TOKENS
        room = self.loaded.context - asked
        if room < 1:
            message = f"The conversation has {asked} tokens, and the model reads {self.loaded.context} at once."
            raise ContextTooLongError(
                code="400", message=message, hint="Ask less at once, or begin a new conversation.", sent=False
            )
        return min(wanted or _REPLY_TOKENS, room)

    def _translated(self, error: Exception) -> ModelServiceError:
        if is_out_of_memory(error):
            return no_memory(self._place, error)
        if isinstance(error, ValueError | TypeError):  # a setting that `generate` does not know, or a wrong value
            return ModelRefusedError(
                error, code="400", message=f"The model cannot do what generate_cfg asks: {error}", sent=False
            )
        return ModelServiceError(error, message=f"The model failed: {error}")


class _StoppedError(Exception):
    """The answer is no longer wanted."""


@dataclass(slots=True)
class _Writer:
    """The streamer and stopping criterion that `generate` calls for each token."""

    text: ReplyText
    question: TaskQuestion
    last: int = -1
    _begun: bool = False

    def put(self, tokens: Any) -> None:
        """The prompt first, then token after token."""
        if self._begun:
            self.last = int(tokens.reshape(-1)[-1])
            self.say(self.text.add(self.last))
        self._begun = True

    def end(self) -> None:
        """Required by `generate`; `close` of the text does it."""

    def say(self, more: str) -> None:
        """Pass on more text."""
        if more and not self.question.unwanted.is_set():
            self.question.emit(TextDelta(more))

    def is_over(self, *_: Any) -> bool:
        """Whether a stop word came."""
        return self.text.stopped


def _ends(loaded: Loaded) -> list[int]:
    """The end tokens, of the generation config and of the tokenizer."""
    named = loaded.model.generation_config.eos_token_id
    ends: list[Any] = [*named] if isinstance(named, list) else [named]
    return list(dict.fromkeys(int(end) for end in [*ends, loaded.tokenizer.eos_token_id] if end is not None))


def _ends_given(ends: list[int]) -> dict[str, Any]:
    return {"eos_token_id": ends, "pad_token_id": ends[0]} if ends else {"pad_token_id": 0}


def _layers(loaded: Loaded) -> list[Any]:
    """The layers that run one after another."""
    lists = [part for part in loaded.model.modules() if isinstance(part, loaded.torch.nn.ModuleList)]
    return [layer for part in lists for layer in part]


_HALF: Final = "\ufffd"
_LONGEST_CHARACTER: Final = 8  # tokens: whatever takes more is not an unfinished character


@dataclass(slots=True)
class ReplyText:
    """Decodes the tokens of one reply as they come, never showing half a character or part of a stop word.

    Args:
        stop: Stop words.

    Attributes:
        count: How many tokens came.
    """

    decode: Callable[[Sequence[int]], str]
    stop: tuple[str, ...] = ()
    count: int = 0
    _tokens: list[int] = field(default_factory=list[int])  # the last shown ones, then those not yet shown
    _shown: int = 0  # how many of them are shown
    _stops: StopScanner = field(init=False)

    def __post_init__(self) -> None:
        self._stops = StopScanner(self.stop)

    @property
    def stopped(self) -> bool:
        """Whether a stop word came; further tokens are ignored."""
        return self._stops.stopped

    def add(self, token: int) -> str:
        """Add a token; returns the text that may be shown now."""
        self.count += 1
        self._tokens.append(token)
        return self._stops.feed(self._decoded(whole=False))

    def close(self) -> str:
        """The rest of the text, after the last token."""
        rest = self._stops.feed(self._decoded(whole=True))
        return rest + self._stops.close()

    def _decoded(self, *, whole: bool) -> str:
        """The new text; earlier tokens are decoded with it, as the space between words depends on them."""
        before = self.decode(self._tokens[: self._shown])
        text = self.decode(self._tokens)
        waiting = len(self._tokens) - self._shown
        if not whole and (len(text) <= len(before) or (text.endswith(_HALF) and waiting < _LONGEST_CHARACTER)):
            return ""
        self._tokens = self._tokens[self._shown :]
        self._shown = len(self._tokens)
        return text[len(before) :]


_GGUF: Final = ".gguf"


class TransformersConfig(BaseModel):
    """The settings of this back end; unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore")

    gguf_file: str = ""
    device: str = "auto"
    dtype: Dtype = Field(default="auto", validation_alias=AliasChoices("dtype", "torch_dtype"))
    revision: str | None = None
    vision: bool | None = None
    threads: int = Field(default=0, ge=0)
    trust_remote_code: bool = False


class TransformersModel(BaseChatModel):
    """A model of the Transformers library, fetched and loaded on first use or by `prepare`.

    Tools go into the prompt, through Parlour's own calling templates.

    Args:
        cfg: `model`: a folder, the path of a GGUF file, or a name on the Hugging Face hub. `gguf_file`: the GGUF file
            to take from there; `device`: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`; `dtype`: `auto`, `float32`,
            `float16`, `bfloat16`; `revision`: of the name on the hub; `vision`: whether it is to see pictures
            (by default, if the model can); `threads`: of the processor (0: torch decides); `trust_remote_code`:
            whether code that comes with the model may run; `generate_cfg`.

    Raises:
        MissingExtraError: torch or transformers is not installed; the message has the command.
        SettingsError: A value is wrong, or no model is named.
    """

    model_type = "transformers"
    in_process = True
    tokens_per_message = 5  # the marks around each

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._config = read_config(TransformersConfig, self.cfg)
        if not self.model:
            raise SettingsError("The settings name no model.", hint="Give model: a folder, or a name on the hub.")
        need_packages("The model type 'transformers'", ("torch", "transformers"))
        self._folder, self._gguf_file = _folder_and_file(self.model, self._config.gguf_file)
        name = Path(self._gguf_file).stem if self._gguf_file else self.model.rstrip("/\\").replace("\\", "/")
        self.label = f"{name.rpartition('/')[2]}, Transformers"
        self._engine: TransformersEngine | None = None
        self._loading = threading.Lock()
        self._read_config(self._folder or cached_folder(self.model, self._config.revision))

    @property
    def is_ready(self) -> bool:
        """Whether the model is in memory."""
        return self._engine is not None

    def count_tokens(self, text: str) -> int:
        """By the model's own tokenizer once it is loaded, else an estimate."""
        engine = self._engine
        return engine.count_tokens(text) if engine is not None else count_tokens(text)

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Fetch and load the model.

        Args:
            progress: Called with bytes while it is fetched, from another thread.

        Raises:
            SettingsError: There is no such folder, file or device.
            MissingExtraError: The model needs a package that is not installed.
            ModelServiceError: It cannot be fetched, or not be loaded; the key says which.
        """
        if self._engine is None:
            await asyncio.to_thread(self._load, progress)

    async def aclose(self) -> None:
        """Stop all answers and free the memory; the next request loads the model again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.close)

    async def _stream(self, request: ChatRequest) -> Stream:
        yield MessageStarted()
        if request.functions:
            message = "A Transformers model has no tool calling of its own."
            raise ModelRefusedError(
                code="400", message=message, hint="Leave use_raw_api out: tools go into the prompt.", sent=False
            )
        drawn = sampling(request.generate)
        await self.prepare()
        engine = self._engine
        if engine is None:
            raise ModelServiceError(message="The model was just closed.", key="model_not_ready")
        messages = flattened(request.messages, request.lang) if has_calls(request.messages) else request.messages
        turns = local_turns(messages, request.lang, sees=self.support_multimodal_input)
        task = Task(turns, await opened_pictures(turns), drawn)
        finished = False
        async with aclosing(answers(engine.ask, task)) as events:
            async for event in events:
                if isinstance(event, Exception):
                    raise event
                finished = finished or isinstance(event, MessageFinished)
                yield event
        if not finished:
            raise ModelServiceError(message="The model was closed in the middle of its answer.", key="model_not_ready")

    def _load(self, progress: Callable[[Progress], None] | None) -> None:
        with self._loading:
            if self._engine is not None:
                return
            folder = self._folder or fetched_folder(self.model, self._config.revision, self._gguf_file, progress)
            if not folder.is_dir():
                raise SettingsError(f"There is no model folder {str(folder)!r}.", hint="Check the path.")
            config = self._config
            place = Place(
                folder, self._gguf_file, config.device, config.dtype, config.vision, trusts=config.trust_remote_code
            )
            loaded = load(place)
            if config.threads:
                loaded.torch.set_num_threads(config.threads)
            self.support_multimodal_input = loaded.processor is not None
            self._fit(loaded.context)
            self._engine = TransformersEngine(loaded, place)

    def _read_config(self, folder: Path | None) -> None:
        """Read what `config.json` says about the model, before it is loaded."""
        if folder is None or self._gguf_file:
            return
        try:
            config = json.loads((folder / "config.json").read_text("utf-8"))
            text = config.get("text_config") or config
            self.support_multimodal_input = self._config.vision is not False and bool(config.get("vision_config"))
            self._fit(int(text.get("max_position_embeddings") or 0))
        except (OSError, ValueError, TypeError, AttributeError):
            return  # `prepare` reports what is wrong

    def _fit(self, context: int) -> None:
        """Set the default limits of reply and prompt for a context of so many tokens."""
        if context:
            longest = int(self.generate_cfg.setdefault("max_tokens", min(_REPLY_TOKENS, max(1, context // 4))))
            self.generate_cfg.setdefault("max_input_tokens", max(1, (context - longest) * 9 // 10))


def _folder_and_file(model: str, gguf_file: str) -> tuple[Path | None, str]:
    """The model's folder, `None` for a name on the hub, and the GGUF file in it, if that is meant."""
    path = user_path(model)
    if model.lower().endswith(_GGUF):
        return path.parent, path.name
    is_path = path.is_dir() or path.is_absolute() or model.startswith((".", "~")) or "\\" in model
    if not is_path and model.count("/") <= 1:
        return None, gguf_file
    if not gguf_file and not (path / "config.json").exists():
        files = sorted(path.glob(f"*{_GGUF}"))
        gguf_file = files[0].name if len(files) == 1 else ""
    return path, gguf_file
