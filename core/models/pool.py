"""The models that are open, the installation's and those that owners chose, and how each is got ready."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.bridge.pool import BoundedDict
from core.bridge.watchdog import untimed
from core.errors import ParlourError, SettingsError
from core.llm.local_files import BUILT_IN
from core.models.model_name import UNSAID, Abilities, ModelName
from core.readiness import WAITS
from core.settings import NO_KEY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from core.llm.base import BaseChatModel
    from core.llm.request import Progress
    from core.models.menu import MenuService
    from core.readiness import Readiness

_LOG = logging.getLogger(__name__)
_REMEMBERED = 1_000  # owners
_OPEN = 1_000  # models, of all owners


@dataclass(frozen=True, slots=True)
class ActiveModel:
    """A model that answers, or could.

    Args:
        loader: Gets it ready.
        readiness: How far its part `model` is.
        service: Its name in the menu; empty for the installation's own choice.
        inside: It runs in this process, and takes memory while it is open.
    """

    loader: ModelLoader
    readiness: Readiness
    service: str = ""
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A service of the menu with all that is needed to ask it; everything in it was checked."""

    service: MenuService
    address: str
    model: str
    key: str = field(repr=False)
    abilities: Abilities = UNSAID

    def check_key(self) -> None:
        """Raises SettingsError, key `model_key_missing`: the service wants a key, and there is none."""
        if self.service.wants_key == "needed" and self.key in {"", NO_KEY}:
            host = urlsplit(self.address).hostname or ""
            raise SettingsError(f"{host} wants an API key.", hint="Type its key.", key="model_key_missing", host=host)


class ModelPool:
    """The models that somebody was answered by lately, the least recently used making room for others.

    They are not closed with what else an owner has open, for the installation's model answers most of them, and a
    model of this process takes minutes to load. What is replaced, or makes room, is closed once nobody works with it.
    Beside the installation's own, one model of this process is kept in memory: whoever works with another lets it go.

    Args:
        default: The installation's model, which is not closed here.

    Attributes:
        changes: How often somebody chose: what was read before that is not what is.
    """

    def __init__(self, default: ActiveModel) -> None:
        self.default = default
        self.changes = 0
        self._usual = BoundedDict[str, ModelName](_REMEMBERED)
        self._chosen = BoundedDict[tuple[str, ModelName], ActiveModel](_OPEN, self._retire)
        self._retired: set[ModelLoader] = set()  # somebody still works with them
        self._closing: set[asyncio.Task[None]] = set()

    def usual(self, owner: str) -> ModelName | None:
        """Which model answers where a conversation has none of its own, if it is known."""
        if owner in self._usual:
            self._usual.move_to_end(owner)
        return self._usual.get(owner)

    def remember_usual(self, owner: str, name: ModelName) -> None:
        """Note which it is, until the owner chooses."""
        self._usual[owner] = name

    def get(self, owner: str, name: ModelName) -> ActiveModel | None:
        """A model of an owner, if it is open."""
        if not name.service:
            return self.default
        if (owner, name) in self._chosen:
            self._chosen.move_to_end((owner, name))
        return self._chosen.get((owner, name))

    def put(self, owner: str, name: ModelName, chosen: ActiveModel) -> None:
        """Keep a model of an owner open, until it is dropped or makes room."""
        self._chosen[owner, name] = chosen

    def drop(self, owner: str, service: str | None = None) -> None:
        """The owner chose: what answers is looked up again; replies that are being written keep their model.

        Args:
            service: What is open of it is closed, for its settings changed; else what answered is.
        """
        self.changes += 1
        usual = self._usual.pop(owner, None)
        for key in [*self._chosen]:
            if key[0] == owner and (key[1] == usual if service is None else key[1].service == service):
                self._retire(self._chosen.pop(key))

    def make_room(self, wanted: ActiveModel) -> None:
        """Somebody works with a model: where it is one of this process, the others of them leave the memory."""
        if wanted.inside:
            for key, other in [*self._chosen.items()]:
                if other.inside and other.loader is not wanted.loader:
                    self._retire(self._chosen.pop(key))

    @property
    def has_inside(self) -> bool:
        """Whether a model of this process is open, beside the installation's."""
        return any(one.inside and one.loader is not self.default.loader for one in self._chosen.values())

    def with_loader(self, loader: ModelLoader) -> ActiveModel | None:
        """What is open and has this very loader."""
        return next((one for one in self._chosen.values() if one.loader is loader), None)

    def loaded(self, model_type: str) -> list[ModelLoader]:
        """The models of a type that are made already, the installation's first."""
        loaders = dict.fromkeys(chosen.loader for chosen in (self.default, *self._chosen.values()))
        return [loader for loader in loaders if loader.model is not None and loader.model.model_type == model_type]

    async def wait_closed(self) -> None:
        """Wait for models that nobody works with any more to be out of memory."""
        if self._closing:
            await asyncio.wait(set(self._closing))

    async def aclose(self) -> None:
        """Close all models but the installation's."""
        own = {chosen.loader for chosen in self._chosen.values()} - {self.default.loader}
        await asyncio.gather(*(loader.aclose() for loader in own | self._retired))
        await asyncio.gather(*self._closing)
        self._chosen.clear()

    def _retire(self, chosen: ActiveModel) -> None:
        shared = any(one.loader is chosen.loader for one in self._chosen.values())
        if chosen.loader is not self.default.loader and not shared:
            self._retired.add(chosen.loader)
            chosen.loader.retire(self._close)

    def _close(self, loader: ModelLoader) -> None:
        self._retired.discard(loader)
        task = asyncio.create_task(loader.aclose(), name="a model that is not chosen any more")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


_EVERY = 0.25
# What a reply fails with that the next one would fail with too.
_LASTING = frozenset({"model_unreachable", "model_key_wrong", "model_key_missing", "model_unknown"})


class ModelLoader:
    """One model, prepared once; after a failure it may be tried again.

    Args:
        make: Makes the model; called in a thread, since it may import a vendor's package.
        readiness: Is told.
        label: What to call the model before it is made.
        room: Awaited before a model of this process is loaded: memory that is being freed is free by then.
        waits: Weights are neither fetched nor loaded before somebody wants the model.
    """

    def __init__(
        self,
        make: Callable[[], BaseChatModel],
        readiness: Readiness,
        label: str = "",
        *,
        room: Callable[[], Awaitable[object]] | None = None,
        waits: bool = False,
    ) -> None:
        self.model: BaseChatModel | None = None
        self._make = make
        self._readiness = readiness
        self._label = label
        self._room = room
        self.wanted = asyncio.Event()
        """Whether somebody waits for the model, or it is to be there before anybody does."""
        if not waits:
            self.wanted.set()
        self._users = 0
        self._when_unused: Callable[[ModelLoader], None] | None = None
        self._task: asyncio.Task[BaseChatModel] | None = None
        self._told_at = 0.0
        self._warned = ""
        self._has_answered = False  # known before it is loaded, where it was tried to be chosen

    @property
    def label(self) -> str:
        """What the page calls the model."""
        return self.model.label if self.model is not None else self._label

    def start(self, *, inside: bool = False) -> None:
        """Begin, or begin again after a failure; does nothing while it works or when all is well.

        Args:
            inside: It is known to be one of this process, before it is made: a service loads nothing.
        """
        if self._task is None or (self._task.done() and _failure(self._task) is not None):
            known: dict[str, str | bool] = {"label": self._label} if self._label else {}
            self._readiness.mark("model", "loading", **known | ({"in_process": True} if inside else {}))
            self._task = asyncio.create_task(self._load(), name="model")
            self._task.add_done_callback(self._settled)

    def retry(self) -> None:
        """After a failure: load again; where a service failed a reply, the next reply tells whether it is back."""
        if self._task is not None and self._task.done() and _failure(self._task) is None:
            if self._readiness["model"].state == "failed":
                self._readiness.mark("model", "ready")
            return
        self.start()

    @property
    def has_answered(self) -> bool:
        """Whether the model wrote something, and nothing has failed for good since."""
        return self._has_answered

    def answered(self) -> None:
        """The model began to write a reply, wrote one, or answered a test."""
        self._has_answered = True
        part = self._readiness["model"]
        if self._is_loading:
            return  # told as soon as it is loaded
        if not (part.state == "ready" and part.answered):
            self._readiness.mark("model", "ready", answered=True)

    def failed(self, error: ParlourError) -> None:
        """A reply failed: where the next one would too, the model is not ready until one succeeds."""
        if error.words_key in _LASTING:
            self._has_answered = False
            self._readiness.fail("model", error)

    async def ready(self) -> BaseChatModel:
        """Wait for the model; a failed one is tried again first.

        Raises:
            ParlourError: It cannot be had; the key names the remedy.
        """
        self.wanted.set()
        self.start()
        task = self._task
        if task is None:
            raise ParlourError("The model is not ready.", key="model_not_ready")
        if not task.done():
            with untimed():  # to fetch it may take longer than a reply may
                await asyncio.wait({task})  # whoever stops waiting does not stop the loading
        error = _failure(task)
        if error is not None and not isinstance(error, ParlourError):
            raise ParlourError("The model cannot be loaded.", hint="The log has the details.") from error
        return task.result()

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Somebody works with the model: until then it is not `unused`."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._tell_if_unused()

    def retire(self, unused: Callable[[ModelLoader], None]) -> None:
        """Nobody is given the model any more.

        Args:
            unused: Called as soon as nobody works with it; again where somebody who had it already began only then.
        """
        self._when_unused = unused
        self._tell_if_unused()

    @property
    def is_retired(self) -> bool:
        """Whether nobody is given the model any more."""
        return self._when_unused is not None

    async def aclose(self) -> None:
        """Stop loading and close the model; whoever waits for it after that has it loaded anew."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        if self.model is not None:
            await self.model.aclose()

    @property
    def _is_loading(self) -> bool:
        return self._task is not None and not self._task.done()

    def _tell_if_unused(self) -> None:
        if not self._users and self._when_unused is not None:
            self._when_unused(self)

    async def _load(self) -> BaseChatModel:
        if self.model is None:
            self.model = await asyncio.to_thread(self._make)
        model = self.model
        built_in = model.in_process and model.model_type == BUILT_IN
        known: dict[str, Any] = {"label": model.label, "in_process": model.in_process, "built_in": built_in}
        if built_in and not self.wanted.is_set():
            self._readiness.note(WAITS, {"label": model.label})
            self._readiness.mark("model", "ready", **known)
            await self.wanted.wait()
            self._readiness.notes.pop(WAITS)
        self._readiness.mark("model", "loading", **known)
        if model.in_process and self._room is not None:
            await self._room()
        loop = asyncio.get_running_loop()
        await model.prepare(lambda progress: _in_loop(loop, self._tell, progress))
        return model

    def _tell(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._readiness["model"].state == "loading" and (
            now - self._told_at >= _EVERY or progress.done >= progress.total
        ):
            self._told_at = now
            # A model that comes in the place of another, which cannot be fetched, is called by its own name.
            known = {"label": self.model.label} if self.model is not None else {}
            self._readiness.mark("model", "loading", done=progress.done, total=progress.total, **known)

    def _settled(self, task: asyncio.Task[BaseChatModel]) -> None:
        if task.cancelled():
            return
        error = _failure(task)
        if error is None:
            self._warned = ""
            self._readiness.mark("model", "ready", label=task.result().label, answered=self._has_answered)
            return
        if isinstance(error, ParlourError):  # it is tried again for each question
            _LOG.log(
                logging.INFO if str(error) == self._warned else logging.WARNING, "The model is not ready: %s", error
            )
            self._warned = str(error)
        else:
            _LOG.error("The model failed in a way nobody foresaw.", exc_info=error)
        self._readiness.fail("model", error if isinstance(error, ParlourError) else ParlourError())


def _failure(task: asyncio.Task[BaseChatModel]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


def _in_loop(loop: asyncio.AbstractEventLoop, tell: Callable[[Progress], None], progress: Progress) -> None:
    """Progress comes from whichever thread does the work."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(tell, progress)
