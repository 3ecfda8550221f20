"""An owner's models: what was typed is checked, tried and kept, and one of them answers."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.errors import (
    ConflictError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelUnavailableError,
    ParlourError,
    SettingsError,
    StorageError,
)
from core.llm.local_files import BUILT_IN, check_local_model
from core.messages.events import CallStarted, ReasoningDelta, TextDelta
from core.messages.message import USER, Message
from core.models.loading import ModelLoader
from core.models.menu import (
    MENU,
    checked_address,
    checked_key,
    checked_model,
    model_cfg,
    same_place,
    service_named,
)
from core.models.pool import ActiveModel, Choice, ModelPool
from core.readiness import Readiness
from core.settings import NO_KEY
from core.storage.base import LOCAL_OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.llm.base import BaseChatModel
    from core.settings import Settings
    from core.storage.model_services import ModelService, ModelServiceStore
    from core.storage.stores import Stores

_TEST_SECONDS = 30.0
_PATIENCE = 3  # times as long a model may take that is to be used: it may have to be loaded first
_AT_ONCE = 20
_QUESTION = "Reply with the word yes."


@dataclass(frozen=True, slots=True)
class Draft:
    """A choice as a reader typed it.

    Args:
        service: Its name in the menu.
        address: Where it is; empty for its usual place.
        model: Empty for its usual model.
        key: `None` where the kept one is meant, empty where there is none.
    """

    service: str
    address: str = ""
    model: str = ""
    key: str | None = field(default=None, repr=False)


class AllModels:
    """What the models of all owners share; `of` hands out those of one.

    Args:
        settings: How models write, where weights are, and the installation's keys.
        changed: Called with the owner whose model changed.
        fixed: The installation's model answers everybody: those who answer bring their own.
        seconds: How long a test may take.

    Attributes:
        pool: Those that are open.
        trying: The owners who test one.
        listing: How many services are being asked for their models.
    """

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        default: ActiveModel,
        changed: Callable[[str], None],
        *,
        fixed: bool = False,
        seconds: float = _TEST_SECONDS,
    ) -> None:
        self.settings = settings
        self.changed = changed
        self.fixed = fixed
        self.seconds = seconds
        self.pool = ModelPool(default)
        self.trying: set[str] = set()
        self.listing = 0
        self._stores = stores

    def of(self, owner: str) -> OwnerModels:
        """Those of one owner."""
        return OwnerModels(self, owner, self._stores.of(owner).model_services)

    async def aclose(self) -> None:
        """Close all models but the installation's."""
        await self.pool.aclose()


class OwnerModels:
    """The models of one owner: which one answers, and what the page's dialog about them does."""

    def __init__(self, shared: AllModels, owner: str, store: ModelServiceStore) -> None:
        self._shared = shared
        self._pool = shared.pool
        self._owner = owner
        self._store = store
        self.is_local = is_local(owner)

    # ---- the one that answers

    async def chosen(self) -> ActiveModel:
        """The model that answers the owner; it is made, or fetched, from now on.

        Raises:
            StorageError: The database failed.
        """
        if self._shared.fixed:
            return self._pool.default
        while (found := self._pool.get(self._owner)) is None:
            changes = self._pool.changes
            kept = await self._store.in_use()
            if changes == self._pool.changes and self._pool.get(self._owner) is None:
                self._pool.put(self._owner, self._opened(kept) if kept is not None else self._pool.default)
        return found

    async def loader(self) -> ModelLoader:
        """What gets it ready. Raises StorageError."""
        return (await self.chosen()).loader

    def made(self, choice: Choice, **generate: Any) -> BaseChatModel:
        """The model of a choice; `generate` goes over how the settings say that models write.

        Raises:
            SettingsError: key `model_key_missing`: the service wants a key, and there is none.
            ParlourError: It cannot be made.
        """
        from core.llm.open_model import get_chat_model

        choice.check_key()

        cfg = model_cfg(choice.service, choice.address, choice.model, choice.key, local=self.is_local)
        whole = self._shared.settings.completed(cfg)
        return get_chat_model({**whole, "generate_cfg": {**whole["generate_cfg"], **generate}})

    # ---- choosing

    async def kept(self) -> list[ModelService]:
        """The services that the owner set up. Raises StorageError."""
        return await self._store.list()

    async def secrets(self) -> list[str]:
        """The keys that the owner typed, for whoever must not repeat them; one that cannot be read is none."""
        return await self._store.secrets()

    async def save(self, draft: Draft, *, use: bool) -> None:
        """Keep a choice, and let it answer from the next question on if `use` says so.

        Raises:
            SettingsError: Something in it is wrong; the key says what.
            ModelServiceError: It is to be used, and its file is no model or damaged.
            StorageError: It cannot be kept.
            ConflictError: key `model_of_agent`: those who answer bring their own.
        """
        self._check_free()
        choice = await self.checked(draft)
        if use:
            choice.check_key()
            await _look_for(choice)
        key = checked_key(draft.key) if draft.key is not None else None
        answers = await self._store.save(
            draft.service,
            address=choice.address,
            model=choice.model,
            key=key,
            use=use,
            keeps=partial(same_place, choice.address),
        )
        if answers:  # else what does stays, and stays loaded
            self._renew()

    async def take(self, draft: Draft) -> None:
        """Keep a choice and let it answer, if it answers a tiny question: what a test would refuse is not taken.

        A model of this process is loaded when it is used, and tells then what is wrong.

        Raises:
            ParlourError: As `test` and `save`; then nothing has changed.
        """
        self._check_free()
        choice = await self.checked(draft)
        if not choice.service.inside:
            await self.test(draft, patience=_PATIENCE)
        await self.save(draft, use=True)
        if not choice.service.inside:
            (await self.loader()).answered()

    async def remove(self, service: str) -> None:
        """Forget a service with its key; where it answered, the installation's model does.

        Raises:
            StorageError: It cannot be noted.
            ConflictError: key `model_of_agent`.
        """
        self._check_free()
        kept = await self._store.get(service)
        await self._store.delete(service)
        if kept is not None and kept.in_use:
            self._renew()

    async def use(self, service: str) -> None:
        """Let a kept service answer; an empty name means the installation's model.

        Raises:
            SettingsError: It is not on the menu.
            StorageError: It cannot be noted.
            ConflictError: key `model_of_agent`.
        """
        self._check_free()
        if service:
            service_named(service, local=self.is_local)
        await self._store.use(service)
        self._renew()

    async def offered(self, draft: Draft) -> list[str]:
        """The models that the service says it has, else those that are known of it; it is not asked at a great rush.

        Raises:
            SettingsError: The address or key is wrong.
            StorageError: The kept key cannot be read.
        """
        choice = await self.checked(draft, named=False)
        if choice.service.model_type == BUILT_IN:
            from core.llm.weights_catalog import WEIGHTS

            return [*WEIGHTS]
        found: list[str] = []
        if choice.service.model_type == "openai" and self._shared.listing < _AT_ONCE:
            from core.llm.backends.openai.service import offered_models

            stranger = choice.service.typed and not self.is_local
            self._shared.listing += 1
            try:
                found = await offered_models(choice.address, choice.key, public_only=stranger)
            finally:
                self._shared.listing -= 1
        return found or [*choice.service.models]

    async def test(self, draft: Draft, *, patience: float = 1) -> tuple[str, float]:
        """Ask one tiny question, without a service the installation's model; `patience` lengthens how long it may take.

        Where it is what answers the owner, the page knows from now on whether it works.

        Returns:
            What the page calls the model, and the seconds until it began to answer.

        Raises:
            ConflictError: key `test_running`: one at a time.
            ParlourError: It does not work; the key says why.
        """
        if self._owner in self._shared.trying or len(self._shared.trying) >= _AT_ONCE:
            raise ConflictError("A test is running.", hint="Wait for its end.", key="test_running")
        self._shared.trying.add(self._owner)
        tried = self._pool.default.loader.label
        try:
            async with asyncio.timeout(self._shared.seconds * patience):
                if not draft.service:
                    return await _loaded_tried(self._pool.default.loader)
                choice = await self.checked(draft)
                tried = urlsplit(choice.address).netloc or choice.model or choice.service.label
                answering = await self._answering(draft.service, choice)
                try:
                    found = await self._tried(choice)
                except ParlourError as error:
                    if answering is not None:
                        answering.failed(error)
                    raise
                if answering is not None:
                    answering.answered()
                return found
        except TimeoutError:
            raise _slow(tried or self._pool.default.loader.label) from None
        finally:
            self._shared.trying.discard(self._owner)

    async def checked(self, draft: Draft, *, named: bool = True) -> Choice:
        """What was typed, checked and with the kept key; `named` asks for a model's name too.

        Raises:
            SettingsError: Something in it is wrong.
            StorageError: The kept key cannot be read.
        """
        service = service_named(draft.service, local=self.is_local)
        if service.inside:
            return Choice(service, "", checked_model(draft.model, service) if named else "", "")
        address = checked_address(draft.address, service, local=self.is_local)
        model = checked_model(draft.model, service) if named else ""
        key = checked_key(draft.key) if draft.key is not None else await self._kept_key(draft.service, address)
        return Choice(service, address, model, key or self._known_key(address))

    # ---- inside

    def _renew(self) -> None:
        """The owner chose: the next question asks another model. Replies that are being written keep theirs."""
        self._pool.drop(self._owner)
        self._shared.changed(self._owner)

    def _known_key(self, address: str) -> str:
        """The installation's key for this vendor: for whoever runs it, never for a reader of a shared page."""
        return self._shared.settings.key_for(address) if self.is_local else ""

    def _opened(self, kept: ModelService) -> ActiveModel:
        if self._is_the_default(kept):
            return ActiveModel(self._pool.default.loader, self._pool.default.readiness, kept.service)
        readiness = Readiness(changed=partial(self._shared.changed, self._owner))
        place = urlsplit(kept.address).hostname or ""
        label = f"{kept.model} · {place}" if place else kept.model
        loader = ModelLoader(partial(self._remade, kept), readiness, label, room=self._pool.wait_closed)
        loader.start()
        return ActiveModel(loader, readiness, kept.service)

    def _remade(self, kept: ModelService) -> BaseChatModel:
        """The kept choice as a model. What could be chosen once may not be any more, so it is checked again."""
        service = service_named(kept.service, local=self.is_local)
        if service.inside:
            return self.made(Choice(service, "", kept.model, ""))
        address = checked_address(kept.address, service, local=self.is_local)
        key = self._store.key_of(kept) or self._known_key(address)
        return self.made(Choice(service, address, kept.model, key))

    def _is_the_default(self, kept: ModelService) -> bool:
        """Whether the installation runs this model in this process already: it is loaded once."""
        service, cfg = MENU.get(kept.service), self._shared.settings.model_cfg()
        same_kind = service is not None and service.inside and cfg.get("model_type") == service.model_type
        return same_kind and kept.model in {"", cfg.get("model")}

    def _check_free(self) -> None:
        if self._shared.fixed:
            raise ConflictError("The agents of this page bring their own model.", key="model_of_agent")

    async def _answering(self, service: str, choice: Choice) -> ModelLoader | None:
        """What gets the owner's model ready, if that is exactly this choice."""
        kept = await self._store.get(service)
        if kept is None or not kept.in_use or (kept.address, kept.model) != (choice.address, choice.model):
            return None
        try:
            key = self._store.key_of(kept) or self._known_key(kept.address)
        except StorageError:  # nor can what answers read it
            return None
        return await self.loader() if key == choice.key else None

    async def _kept_key(self, service: str, address: str) -> str:
        """The key that the owner gave for this very server."""
        kept = await self._store.get(service)
        return self._store.key_of(kept) if kept is not None and same_place(kept.address, address) else ""

    async def _tried(self, choice: Choice) -> tuple[str, float]:
        if choice.service.inside:
            return await self._inside_tried(choice)
        model = await asyncio.to_thread(self.made, choice, max_retries=0, circuit_breaker=False)
        try:
            return model.label, await _first_answer(model)
        except ModelRefusedError as error:
            if choice.key in {"", NO_KEY} and error.words_key == "model_key_wrong":
                error.words_key = "model_key_missing"
            raise
        finally:
            await model.aclose()

    async def _inside_tried(self, choice: Choice) -> tuple[str, float]:
        """One that is loaded answers itself; any other takes time and memory, and is loaded when it is used."""
        for loader in self._pool.loaded(choice.service.model_type):
            if loader.model is not None and choice.model in {"", loader.model.model}:
                return await _loaded_tried(loader)
        await _look_for(choice)
        raise SettingsError("It is not loaded yet.", hint="Use it; it is fetched then.", key="built_in_not_loaded")


def is_local(owner: str) -> bool:
    """Whether it is the one who runs Parlour, at this machine; readers of a shared page have names of their own."""
    return owner == LOCAL_OWNER


async def _look_for(choice: Choice) -> None:
    """See whether a model of this process can be there at all. Raises as `check_local_model`."""
    if choice.service.inside:
        await asyncio.to_thread(check_local_model, choice.service.model_type, choice.model)


async def _loaded_tried(loader: ModelLoader) -> tuple[str, float]:
    with loader.in_use():
        model = await loader.ready()
        seconds = await _first_answer(model)
        loader.answered()
        return model.label, seconds


async def _first_answer(model: BaseChatModel) -> float:
    """Seconds until the model began to answer; the rest of what it would say is not waited for."""
    from core.llm.request import ChatRequest

    began = time.monotonic()
    async with aclosing(model.stream(ChatRequest((Message(USER, _QUESTION),)))) as events:
        async for event in events:
            if isinstance(event, TextDelta | ReasoningDelta | CallStarted):
                return time.monotonic() - began
    raise ModelMisbehavedError(message="The model answered with nothing.", hint="Try another.", key="model_silent")


def _slow(host: str) -> ModelUnavailableError:
    error = ModelUnavailableError(message=f"{host} took too long to answer.", hint="Try again.", key="model_slow")
    error.details["host"] = host
    return error
