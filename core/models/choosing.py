"""Choosing a model: what an owner typed is checked, tried and kept."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
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
from core.models.menu import checked_address, checked_key, checked_model, same_place, service_named
from core.models.own_models import Choice, is_local
from core.settings import NO_KEY

if TYPE_CHECKING:
    from core.llm.base import BaseChatModel
    from core.models.loading import ModelLoader
    from core.models.own_models import OwnModels
    from core.storage.model_services import ModelService, ModelServiceStore

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


class Choosing:
    """What the page's dialog about models does.

    Args:
        store: What owners chose.
        models: Makes models, and is told of choices.
        seconds: How long a test may take.
    """

    def __init__(self, store: ModelServiceStore, models: OwnModels, *, seconds: float = _TEST_SECONDS) -> None:
        self._store = store
        self._models = models
        self._seconds = seconds
        self._trying: set[str] = set()
        self._listing = 0

    async def kept(self, owner: str) -> list[ModelService]:
        """The services that the owner set up. Raises StorageError."""
        return await self._store.list(owner)

    async def secrets(self, owner: str) -> list[str]:
        """The keys that the owner typed, for whoever must not repeat them; one that cannot be read is none."""
        return await self._store.secrets(owner)

    async def save(self, owner: str, draft: Draft, *, use: bool) -> None:
        """Keep a choice, and let it answer from the next question on if `use` says so.

        Raises:
            SettingsError: Something in it is wrong; the key says what.
            ModelServiceError: It is to be used, and its file is no model or damaged.
            StorageError: It cannot be kept.
            ConflictError: key `model_of_agent`: those who answer bring their own.
        """
        self._check_free()
        choice = await self.checked(owner, draft)
        if use:
            choice.check_key()
            await _look_for(choice)
        key = checked_key(draft.key) if draft.key is not None else None
        answers = await self._store.save(
            owner,
            draft.service,
            address=choice.address,
            model=choice.model,
            key=key,
            use=use,
            keeps=partial(same_place, choice.address),
        )
        if answers:  # else what does stays, and stays loaded
            self._models.renew(owner)

    async def take(self, owner: str, draft: Draft) -> None:
        """Keep a choice and let it answer, if it answers a tiny question: what a test would refuse is not taken.

        A model of this process is loaded when it is used, and tells then what is wrong.

        Raises:
            ParlourError: As `test` and `save`; then nothing has changed.
        """
        self._check_free()
        choice = await self.checked(owner, draft)
        if not choice.service.inside:
            await self.test(owner, draft, patience=_PATIENCE)
        await self.save(owner, draft, use=True)
        if not choice.service.inside:
            (await self._models.loader(owner)).answered()

    async def remove(self, owner: str, service: str) -> None:
        """Forget a service with its key; where it answered, the installation's model does.

        Raises:
            StorageError: It cannot be noted.
            ConflictError: key `model_of_agent`.
        """
        self._check_free()
        kept = await self._store.get(owner, service)
        await self._store.delete(owner, service)
        if kept is not None and kept.in_use:
            self._models.renew(owner)

    async def use(self, owner: str, service: str) -> None:
        """Let a kept service answer; an empty name means the installation's model.

        Raises:
            SettingsError: It is not on the menu.
            StorageError: It cannot be noted.
            ConflictError: key `model_of_agent`.
        """
        self._check_free()
        if service:
            service_named(service, local=is_local(owner))
        await self._store.use(owner, service)
        self._models.renew(owner)

    async def offered(self, owner: str, draft: Draft) -> list[str]:
        """The models that the service says it has, else those that are known of it; it is not asked at a great rush.

        Raises:
            SettingsError: The address or key is wrong.
            StorageError: The kept key cannot be read.
        """
        choice = await self.checked(owner, draft, named=False)
        if choice.service.model_type == BUILT_IN:
            from core.llm.weights_catalog import WEIGHTS

            return [*WEIGHTS]
        found: list[str] = []
        if choice.service.model_type == "openai" and self._listing < _AT_ONCE:
            from core.llm.backends.openai.service import offered_models

            stranger = choice.service.typed and not is_local(owner)
            self._listing += 1
            try:
                found = await offered_models(choice.address, choice.key, public_only=stranger)
            finally:
                self._listing -= 1
        return found or [*choice.service.models]

    async def test(self, owner: str, draft: Draft, *, patience: float = 1) -> tuple[str, float]:
        """Ask one tiny question, without a service the installation's model; `patience` lengthens how long it may take.

        Where it is what answers the owner, the page knows from now on whether it works.

        Returns:
            What the page calls the model, and the seconds until it began to answer.

        Raises:
            ConflictError: key `test_running`: one at a time.
            ParlourError: It does not work; the key says why.
        """
        if owner in self._trying or len(self._trying) >= _AT_ONCE:
            raise ConflictError("A test is running.", hint="Wait for its end.", key="test_running")
        self._trying.add(owner)
        tried = self._models.default.loader.label
        try:
            async with asyncio.timeout(self._seconds * patience):
                if not draft.service:
                    return await _loaded_tried(self._models.default.loader)
                choice = await self.checked(owner, draft)
                tried = urlsplit(choice.address).netloc or choice.model or choice.service.label
                answering = await self._answering(owner, draft.service, choice)
                try:
                    found = await self._tried(owner, choice)
                except ParlourError as error:
                    if answering is not None:
                        answering.failed(error)
                    raise
                if answering is not None:
                    answering.answered()
                return found
        except TimeoutError:
            raise _slow(tried or self._models.default.loader.label) from None
        finally:
            self._trying.discard(owner)

    async def checked(self, owner: str, draft: Draft, *, named: bool = True) -> Choice:
        """What was typed, checked and with the kept key; `named` asks for a model's name too.

        Raises:
            SettingsError: Something in it is wrong.
            StorageError: The kept key cannot be read.
        """
        local = is_local(owner)
        service = service_named(draft.service, local=local)
        if service.inside:
            return Choice(service, "", checked_model(draft.model, service) if named else "", "")
        address = checked_address(draft.address, service, local=local)
        model = checked_model(draft.model, service) if named else ""
        key = checked_key(draft.key) if draft.key is not None else await self._kept_key(owner, draft.service, address)
        return Choice(service, address, model, key or self._models.known_key(owner, address))

    def _check_free(self) -> None:
        if self._models.fixed:
            raise ConflictError("The agents of this page bring their own model.", key="model_of_agent")

    async def _answering(self, owner: str, service: str, choice: Choice) -> ModelLoader | None:
        """What gets the owner's model ready, if that is exactly this choice."""
        kept = await self._store.get(owner, service)
        if kept is None or not kept.in_use or (kept.address, kept.model) != (choice.address, choice.model):
            return None
        try:
            key = self._store.key_of(kept) or self._models.known_key(owner, kept.address)
        except StorageError:  # nor can what answers read it
            return None
        return await self._models.loader(owner) if key == choice.key else None

    async def _kept_key(self, owner: str, service: str, address: str) -> str:
        """The key that the owner gave for this very server."""
        kept = await self._store.get(owner, service)
        return self._store.key_of(kept) if kept is not None and same_place(kept.address, address) else ""

    async def _tried(self, owner: str, choice: Choice) -> tuple[str, float]:
        if choice.service.inside:
            return await self._inside_tried(choice)
        model = await asyncio.to_thread(self._models.made, owner, choice, max_retries=0, circuit_breaker=False)
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
        for loader in self._models.loaded(choice.service.model_type):
            if loader.model is not None and choice.model in {"", loader.model.model}:
                return await _loaded_tried(loader)
        await _look_for(choice)
        raise SettingsError("It is not loaded yet.", hint="Use it; it is fetched then.", key="built_in_not_loaded")


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
