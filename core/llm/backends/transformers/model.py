"""`TransformersModel`: a model of the Transformers library in this process, and the one thread that answers with it."""

from __future__ import annotations

import asyncio
import atexit
import json
import threading
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from core.errors import ModelRefusedError, ModelServiceError, SettingsError, need_packages
from core.llm.backends.local import Question, QuestionQueue, answers, local_turns
from core.llm.backends.transformers.inputs import opened_pictures, sampling
from core.llm.backends.transformers.load import Dtype, Loaded, Place, cached_folder, fetched_folder, load
from core.llm.backends.transformers.writing import REPLY_TOKENS, StoppedError, Task, Writing
from core.llm.base import BaseChatModel
from core.llm.calling.neutral import flattened, has_calls
from core.llm.local_files import user_path
from core.llm.tokens import count_tokens
from core.llm.validation import read_config
from core.llm.visitors import newest_token
from core.messages.events import Event, MessageFinished, MessageStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from core.llm.request import ChatRequest, Progress, Stream

TaskQuestion: TypeAlias = Question[Task, Event]


class Engine(Protocol):
    """What answers with a loaded model."""

    def ask(self, question: TaskQuestion) -> None:
        """Queue the question. Set `question.unwanted` to stop it."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens the text takes."""
        ...

    def close(self) -> None:
        """Stop all answers."""
        ...


class TransformersEngine:
    """Answers with a loaded model, first come, first served.

    Args:
        place: Where it was loaded from, for errors.
    """

    def __init__(self, loaded: Loaded, place: Place) -> None:
        self._writing = Writing(loaded, place)
        self._queue: QuestionQueue[Task, Event] = QuestionQueue()
        self._thread = threading.Thread(target=self._work, name="parlour-transformers", daemon=True)
        self._thread.start()
        # A thread inside torch while the interpreter exits may crash the process.
        atexit.register(self.close)

    def ask(self, question: TaskQuestion) -> None:
        """Queue the question. Set `question.unwanted` to stop within a layer of the model."""
        self._queue.put(question)

    def count_tokens(self, text: str) -> int:
        """How many tokens the text takes."""
        return self._writing.count_tokens(text)

    def close(self) -> None:
        """Stop all answers. Blocks for a layer at most; idempotent."""
        if not self._queue.close():
            return
        atexit.unregister(self.close)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        for question in self._queue:
            self._answer(question)
            question.emit(None)
            del question  # nothing of it is kept while the queue is empty

    def _answer(self, question: TaskQuestion) -> None:
        def is_unwanted() -> bool:
            return self._queue.closed or question.unwanted.is_set()

        if is_unwanted():
            return
        try:
            question.emit(self._writing.write(question.body, question.emit, is_unwanted))
        except StoppedError:
            return
        except Exception as error:  # noqa: BLE001 - handed to the caller as a named error
            question.emit(self._writing.failure(error))


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
    _config_class: ClassVar[type[TransformersConfig]] = TransformersConfig
    tokens_per_message = 5  # the marks around each

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._config = read_config(self._config_class, self.cfg)
        if not self.model:
            raise SettingsError("The settings name no model.", hint="Give model: a folder, or a name on the hub.")
        need_packages(f"The model type {self.model_type!r}", self._packages())
        self._folder, self._gguf_file = _folder_and_file(self.model, self._config.gguf_file)
        name = Path(self._gguf_file).stem if self._gguf_file else self.model.rstrip("/\\").replace("\\", "/")
        self.label = f"{name.rpartition('/')[2]}, Transformers"
        self._engine: Engine | None = None
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
        task = Task(turns, await opened_pictures(turns), drawn, newest_token())
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
            loaded, engine = self._open(place)
            if config.threads:
                loaded.torch.set_num_threads(config.threads)
            self.support_multimodal_input = loaded.processor is not None
            self._fit(loaded.context)
            self._engine = engine

    def _packages(self) -> tuple[str, ...]:
        """What has to be installed."""
        return ("torch", "transformers")

    def _open(self, place: Place) -> tuple[Loaded, Engine]:
        """Load the model, and begin to answer with it. Blocks."""
        loaded = load(place)
        return loaded, TransformersEngine(loaded, place)

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
            longest = int(self.generate_cfg.setdefault("max_tokens", min(REPLY_TOKENS, max(1, context // 4))))
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
