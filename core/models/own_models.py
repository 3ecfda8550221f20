"""The model that answers an owner: the one the owner chose, else the installation's."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.errors import SettingsError
from core.models.loading import ModelLoader
from core.models.menu import MENU, MenuService, checked_address, model_cfg, service_named
from core.readiness import Readiness
from core.settings import NO_KEY
from core.storage.base import LOCAL_OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.llm.base import BaseChatModel
    from core.settings import Settings
    from core.storage.model_services import ModelService, ModelServiceStore

_REMEMBERED = 1_000  # owners


@dataclass(frozen=True, slots=True)
class Chosen:
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


class OwnModels:
    """Models by owner.

    Args:
        settings: How models write, where weights are, and the installation's keys.
        store: What owners chose.
        default: The installation's model.
        changed: Called with the owner whose model changed.

    Attributes:
        fixed: The installation's model answers everybody: those who answer bring their own.
    """

    fixed = False

    def __init__(
        self, settings: Settings, store: ModelServiceStore, default: Chosen, changed: Callable[[str], None]
    ) -> None:
        self.default = default
        self._settings = settings
        self._store = store
        self._tell = changed
        self._chosen: OrderedDict[str, Chosen] = OrderedDict()
        self._changes = 0
        self._retired: set[ModelLoader] = set()  # somebody still works with them
        self._closing: set[asyncio.Task[None]] = set()

    async def of(self, owner: str) -> Chosen:
        """The owner's model; it is made, or fetched, from now on.

        Raises:
            StorageError: The database failed.
        """
        if self.fixed:
            return self.default
        while owner not in self._chosen:
            changes = self._changes
            kept = await self._store.in_use(owner)
            if changes == self._changes and owner not in self._chosen:
                self._chosen[owner] = self._opened(owner, kept) if kept is not None else self.default
                self._forget_the_oldest()
        self._chosen.move_to_end(owner)
        return self._chosen[owner]

    async def loader(self, owner: str) -> ModelLoader:
        """What gets the owner's model ready. Raises StorageError."""
        return (await self.of(owner)).loader

    def renew(self, owner: str) -> None:
        """The owner chose: the next question asks another model. Replies that are being written keep theirs."""
        self._changes += 1
        old = self._chosen.pop(owner, None)
        if old is not None:
            self._retire(old)
        self._tell(owner)

    def loaded(self, model_type: str) -> list[ModelLoader]:
        """The models of a type that are made already, the installation's first."""
        loaders = dict.fromkeys(chosen.loader for chosen in (self.default, *self._chosen.values()))
        return [loader for loader in loaders if loader.model is not None and loader.model.model_type == model_type]

    def made(self, owner: str, choice: Choice, **generate: Any) -> BaseChatModel:
        """The model of a choice; `generate` goes over how the settings say that models write.

        Raises:
            SettingsError: key `model_key_missing`: the service wants a key, and there is none.
            ParlourError: It cannot be made.
        """
        from core.llm.open_model import get_chat_model

        choice.check_key()

        cfg = model_cfg(choice.service, choice.address, choice.model, choice.key, local=is_local(owner))
        whole = self._settings.completed(cfg)
        return get_chat_model({**whole, "generate_cfg": {**whole["generate_cfg"], **generate}})

    def known_key(self, owner: str, address: str) -> str:
        """The installation's key for this vendor: for whoever runs it, never for a reader of a shared page."""
        return self._settings.key_for(address) if is_local(owner) else ""

    async def aclose(self) -> None:
        """Close all models but the installation's."""
        own = {chosen.loader for chosen in self._chosen.values()} - {self.default.loader}
        await asyncio.gather(*(loader.aclose() for loader in own | self._retired))
        await asyncio.gather(*self._closing)
        self._chosen.clear()

    def _opened(self, owner: str, kept: ModelService) -> Chosen:
        if self._is_the_default(kept):
            return Chosen(self.default.loader, self.default.readiness, kept.service)
        readiness = Readiness(changed=partial(self._tell, owner))
        place = urlsplit(kept.address).hostname or ""
        label = f"{kept.model} · {place}" if place else kept.model
        loader = ModelLoader(partial(self._remade, owner, kept), readiness, label, room=self._freed)
        loader.start()
        return Chosen(loader, readiness, kept.service)

    def _remade(self, owner: str, kept: ModelService) -> BaseChatModel:
        """The kept choice as a model. What could be chosen once may not be any more, so it is checked again."""
        local = is_local(owner)
        service = service_named(kept.service, local=local)
        if service.inside:
            return self.made(owner, Choice(service, "", kept.model, ""))
        address = checked_address(kept.address, service, local=local)
        key = self._store.key_of(kept) or self.known_key(owner, address)
        return self.made(owner, Choice(service, address, kept.model, key))

    def _is_the_default(self, kept: ModelService) -> bool:
        """Whether the installation runs this model in this process already: it is loaded once."""
        service, cfg = MENU.get(kept.service), self._settings.model_cfg()
        same_kind = service is not None and service.inside and cfg.get("model_type") == service.model_type
        return same_kind and kept.model in {"", cfg.get("model")}

    def _forget_the_oldest(self) -> None:
        while len(self._chosen) > _REMEMBERED:
            self._retire(self._chosen.popitem(last=False)[1])

    def _retire(self, chosen: Chosen) -> None:
        if chosen.loader is not self.default.loader:
            self._retired.add(chosen.loader)
            chosen.loader.retire(self._close)

    async def _freed(self) -> None:
        """Wait for models that nobody works with any more to be out of memory."""
        if self._closing:
            await asyncio.wait(set(self._closing))

    def _close(self, loader: ModelLoader) -> None:
        self._retired.discard(loader)
        task = asyncio.create_task(loader.aclose(), name="a model that is not chosen any more")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def is_local(owner: str) -> bool:
    """Whether it is the one who runs Parlour, at this machine; readers of a shared page have names of their own."""
    return owner == LOCAL_OWNER
