"""The models that are open: the installation's, and those that owners chose for all or for single conversations."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from core.bridge.pool import BoundedDict
from core.errors import SettingsError
from core.models.model_name import UNSAID, Abilities, ModelName
from core.settings import NO_KEY

if TYPE_CHECKING:
    from core.models.loading import ModelLoader
    from core.models.menu import MenuService
    from core.readiness import Readiness

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
