"""The models that are open: the installation's, and those that owners chose instead."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from core.bridge.pool import BoundedDict
from core.errors import SettingsError
from core.settings import NO_KEY

if TYPE_CHECKING:
    from core.models.loading import ModelLoader
    from core.models.menu import MenuService
    from core.readiness import Readiness

_REMEMBERED = 1_000  # owners


@dataclass(frozen=True, slots=True)
class ActiveModel:
    """The model of an owner.

    Args:
        loader: Gets it ready.
        readiness: How far its part `model` is.
        service: Its name in the menu; empty for the installation's own choice.
    """

    loader: ModelLoader
    readiness: Readiness
    service: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A service of the menu with all that is needed to ask it; everything in it was checked."""

    service: MenuService
    address: str
    model: str
    key: str = field(repr=False)

    def check_key(self) -> None:
        """Raises SettingsError, key `model_key_missing`: the service wants a key, and there is none."""
        if self.service.wants_key == "needed" and self.key in {"", NO_KEY}:
            host = urlsplit(self.address).hostname or ""
            raise SettingsError(f"{host} wants an API key.", hint="Type its key.", key="model_key_missing", host=host)


class ModelPool:
    """One model for each owner who was asked about lately; what is not used any more is closed.

    They are not closed with what else an owner has open, for the installation's model answers most of them, and a
    model of this process takes minutes to load. One that is replaced is closed once nobody works with it.

    Args:
        default: The installation's model, which is not closed here.

    Attributes:
        changes: How often somebody chose: what was read before that is not what is.
    """

    def __init__(self, default: ActiveModel) -> None:
        self.default = default
        self.changes = 0
        self._chosen = BoundedDict[str, ActiveModel](_REMEMBERED, self._retire)
        self._retired: set[ModelLoader] = set()  # somebody still works with them
        self._closing: set[asyncio.Task[None]] = set()

    def get(self, owner: str) -> ActiveModel | None:
        """The model of an owner, if it is open."""
        if owner in self._chosen:
            self._chosen.move_to_end(owner)
        return self._chosen.get(owner)

    def put(self, owner: str, chosen: ActiveModel) -> None:
        """Keep the model of an owner open, until it is dropped."""
        self._chosen[owner] = chosen

    def drop(self, owner: str) -> None:
        """The owner has another model from now on; replies that are being written keep theirs."""
        self.changes += 1
        if (old := self._chosen.pop(owner, None)) is not None:
            self._retire(old)

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
        if chosen.loader is not self.default.loader:
            self._retired.add(chosen.loader)
            chosen.loader.retire(self._close)

    def _close(self, loader: ModelLoader) -> None:
        self._retired.discard(loader)
        task = asyncio.create_task(loader.aclose(), name="a model that is not chosen any more")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
