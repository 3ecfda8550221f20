"""An owner's models: what was typed is checked, tried and kept, and one of them answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.bridge.pool import BoundedDict
from core.errors import ConflictError, ModelRefusedError, ParlourError, SettingsError, StorageError
from core.llm.local_files import BUILT_IN
from core.llm.weights import WeightStore
from core.models.lent_models import LentModels
from core.models.menu import (
    MENU,
    checked_address,
    checked_key,
    checked_model,
    kind_of,
    model_cfg,
    same_place,
    service_named,
)
from core.models.model_name import INSTALLED, UNSAID, Abilities, ModelName
from core.models.pool import ActiveModel, Choice, ModelLoader, ModelPool
from core.models.remembered import ModelNotes
from core.models.trying import first_answer, loaded_tried, look_for, not_there, too_slow
from core.models.usual_model import UsualModel
from core.models.weight_files import WeightFiles
from core.readiness import Readiness
from core.settings import NO_KEY
from core.storage.lending import LENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.llm.base import BaseChatModel
    from core.models.lent_models import Found
    from core.models.menu import MenuService
    from core.readiness import Part
    from core.settings import Settings
    from core.storage.model_services import ModelService
    from core.storage.stores import OwnerStores, Stores

_TEST_SECONDS = 30.0
_PATIENCE = 3  # times as long a model may take that is to be used: it may have to be loaded first
_AT_ONCE = 20
_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class Draft:
    """A choice as a reader typed it.

    Args:
        service: Its name in the menu.
        address: Where it is; empty for its usual place.
        model: Empty for its usual model.
        key: `None` where the kept one is meant, empty where there is none.
        abilities: What the model can do, by hand; `None` leaves what was said before.
    """

    service: str
    address: str = ""
    model: str = ""
    key: str | None = field(default=None, repr=False)
    abilities: Abilities | None = None


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
        lent: How services of others were set up when owners came to use them.
        silent: The owners and services where nobody answered last, and when.
        listing: How many services are being asked for their models.
        keepers: Whose the machine, its network and its keys are to use.
        weight_files: The files of built-in models.
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
        self.lent = BoundedDict[tuple[str, str], tuple[float, str] | None](_REMEMBERED)
        self.silent = BoundedDict[tuple[str, str], float](_REMEMBERED)
        self.listing = 0
        self._stores = stores
        self.keepers = stores.people.keepers
        self.weight_files = WeightFiles(WeightStore(settings.weights_dir))

    def of(self, owner: str) -> OwnerModels:
        """Those of one owner."""
        stores = self._stores.of(owner)
        return OwnerModels(self, stores, LentModels(stores.lent, stores.settings, self.settings))

    async def aclose(self) -> None:
        """Close all models but the installation's."""
        await self.pool.aclose()


class OwnerModels:
    """The models of one owner: which one answers, and what the page's dialog about them does.

    Attributes:
        notes: Favourites, what models can do, and which ones services offered.
        weight_files: The files of built-in models.
    """

    def __init__(self, shared: AllModels, stores: OwnerStores, others: LentModels) -> None:
        self.notes = ModelNotes(stores.settings)
        self.others = others
        self._shared = shared
        self._pool = shared.pool
        self._owner = stores.owner
        self._stores = stores
        self._store = stores.model_services
        self.is_local = stores.owner in shared.keepers
        self.weight_files = shared.weight_files

    @cached_property
    def _usual(self) -> UsualModel:
        """What changes which model answers: made when somebody changes it, since a question does not."""
        return UsualModel(self._store, self.others, self._stores.answered)

    # ---- the one that answers

    async def chosen(self, name: ModelName | None = None) -> ActiveModel:
        """The model of that name, else the one that answers the owner; it is made, or fetched, from now on.

        One of this process is only fetched by whoever looks at it where no other has to leave the memory for it. One
        that is not there any more is there as one that fails, key `model_gone`, and nothing takes its place: what is
        written for one service is not sent to another.

        Raises:
            StorageError: The database failed.
        """
        if self._shared.fixed:
            return self._pool.default
        while True:
            changes = self._pool.changes
            wanted = name if name is not None else self._pool.usual(self._owner)
            if wanted is not None and wanted.service.startswith(LENT):
                return await self._of_others(wanted)
            if wanted is not None and (found := self._pool.get(self._owner, wanted)) is not None:
                return found
            kept = {one.service: one for one in await self._store.list()}
            said = (await self.notes.all()).said
            if changes != self._pool.changes:
                continue
            if wanted is None:
                used = next((one for one in kept.values() if one.in_use), None)
                wanted = ModelName(used.service, used.model) if used is not None else await self.others.used()
                self._pool.remember_usual(self._owner, wanted)
                if wanted.service.startswith(LENT):
                    continue
            if self._pool.get(self._owner, wanted) is None:
                opened = self._opened(wanted, kept.get(wanted.service), said.get(wanted, UNSAID))
                self._pool.put(self._owner, wanted, opened)

    async def loader(self, name: ModelName | None = None) -> ModelLoader:
        """What gets the model of that name ready, else the one that answers the owner, to be worked with.

        Raises:
            StorageError: The database failed.
        """
        active = await self.chosen(name)
        self._pool.make_room(active)
        return active.loader

    async def usual(self) -> ModelName:
        """Which model answers conversations that have none of their own. Raises StorageError."""
        await self.chosen()
        return self._pool.usual(self._owner) or INSTALLED

    async def named(self, name: ModelName) -> ModelName:
        """A model as a conversation may have it: one that is there now, with its name in full.

        Raises:
            SettingsError: It is not on the menu, has no name, wants a key that is not there, or (key `model_gone`) its
                service was not set up.
            StorageError: The database failed, or the kept key cannot be read.
            ConflictError: key `model_of_agent`: those who answer bring their own.
        """
        self._check_free()
        if not name.service:
            return INSTALLED
        return ModelName(name.service, (await self.choice_of(name)).model)

    async def choice_of(self, name: ModelName) -> Choice:
        """A model of a service with all that is needed to ask it. Raises as `named`, but for the agents' own."""
        if name.service.startswith(LENT):
            choice = (await self.others.found(name)).choice()
        else:
            choice = self._choice(name, await self._store.get(name.service))
        choice.check_key()
        return choice

    async def use_for_all(self, name: ModelName) -> None:
        """Let a model answer every new conversation that has none of its own. Raises as `named`."""
        await self._usual.choose(await self.named(name), local=self.is_local)
        self._renew()

    def made(self, choice: Choice, *, local: bool | None = None, **generate: Any) -> BaseChatModel:
        """The model of a choice; `generate` goes over how the settings say that models write.

        Args:
            local: Whether it may be in the machine's own network; by default, whether its owner may reach that.

        Raises:
            SettingsError: key `model_key_missing`: the service wants a key, and there is none.
            ParlourError: It cannot be made.
        """
        from core.llm.open_model import get_chat_model

        choice.check_key()

        able, of = choice.abilities, (choice.service, choice.address, choice.model, choice.key)
        whole = self._shared.settings.completed(
            model_cfg(*of, local=self.is_local if local is None else local, abilities=able)
        )
        calls = {"use_raw_api": able.calls} if able.calls is not None else {}
        return get_chat_model({**whole, "generate_cfg": {**whole["generate_cfg"], **calls, **generate}})

    # ---- choosing

    async def kept(self) -> list[ModelService]:
        """The services that the owner set up. Raises StorageError."""
        return await self._store.list()

    async def secrets(self) -> list[str]:
        """The keys that the owner typed, and those of services lent to the owner, for whoever must not repeat them.

        One that cannot be read is none.
        """
        return [*await self._store.secrets(), *await self.others.secrets()]

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
            await look_for(choice)
            await self._usual.leave(draft.service)
        key = checked_key(draft.key) if draft.key is not None else None
        answers = await self._store.save(
            draft.service,
            address=choice.address,
            model=choice.model,
            key=key,
            use=use,
            keeps=partial(same_place, choice.address),
        )
        if draft.abilities is not None and not choice.service.inside:
            await self.notes.say(ModelName(draft.service, choice.model), draft.abilities)
        if answers:
            self._renew(draft.service)
        else:  # what answers stays, and stays loaded
            self._replaced(draft.service)

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
        """Forget a service with its key; where it answered new conversations, the installation's model does.

        Raises:
            StorageError: It cannot be noted.
            ConflictError: key `model_of_agent`.
        """
        self._check_free()
        answered = await self._usual.remove(service)
        await self.notes.forget(service)
        if answered:
            self._renew(service)
        else:
            self._replaced(service)

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
        await self._usual.use(service)
        self._renew()

    async def offered(self, draft: Draft) -> list[str]:
        """The models that the service says it has, else those that are known of it; it is not asked at a great rush.

        Raises:
            SettingsError: The address or key is wrong.
            StorageError: The kept key cannot be read.
        """
        choice = await self.checked(draft, named=False)
        if choice.service.model_type == BUILT_IN:
            from core.llm.weights_catalog import on_offer

            return [*on_offer()]
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
                    return await loaded_tried(self._pool.default.loader)
                tried = draft.address or draft.model or draft.service
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
            raise too_slow(tried or self._pool.default.loader.label) from None
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
        able = draft.abilities
        if able is None:
            able = await self.notes.said_of(ModelName(draft.service, model))
        return Choice(service, address, model, key or self._known_key(address), able)

    # ---- what is known of them, for whoever shows them side by side

    @property
    def default_model(self) -> BaseChatModel | None:
        """The installation's model, once it is made."""
        return self._pool.default.loader.model

    def known_part(self, name: ModelName) -> Part | None:
        """How ready a model is, where it is open."""
        active = self._pool.get(self._owner, name)
        return active.readiness["model"] if active is not None else None

    def has_key(self, kept: ModelService | None, address: str) -> bool:
        """Whether there is a key for a service: the owner's own, or the installation's."""
        own = kept is not None and kept.key is not None
        return own or self._known_key(address) not in {"", NO_KEY}

    def is_silent(self, service: str) -> bool:
        """Whether nobody answered when the service was asked for its models last."""
        return (self._owner, service) in self._shared.silent

    async def ask_offer(self, kept: ModelService) -> bool:
        """Ask a service that was set up for its models, and remember them; returns whether it was asked.

        Raises:
            StorageError: They cannot be kept.
        """
        service = MENU.get(kind_of(kept.service))
        needs = service is not None and service.wants_key == "needed"
        if service is None or service.model_type != "openai" or self._shared.listing >= _AT_ONCE:
            return False
        if needs and not self.has_key(kept, kept.address):
            return False
        from core.llm.backends.openai.service import listed_models

        self._shared.listing += 1
        try:
            key = self._store.key_of(kept) or self._known_key(kept.address)
            stranger = service.typed and not self.is_local
            found = await listed_models(kept.address, key, public_only=stranger)
        except StorageError:  # the key cannot be read; whoever asks the model is told
            return False
        finally:
            self._shared.listing -= 1
        if found is None:
            self._shared.silent[self._owner, kept.service] = time.time()
            return True
        self._shared.silent.pop((self._owner, kept.service), None)
        await self.notes.keep_offer(kept.service, kept.address, found)
        return True

    # ---- inside

    def _renew(self, service: str = "") -> None:
        """The owner chose: the next question asks another model. Replies that are being written keep theirs."""
        self._pool.drop(self._owner)
        self._replaced(service)

    def _replaced(self, service: str) -> None:
        """The settings of a service changed: what a conversation has of it is made anew."""
        if service:
            self._pool.drop(self._owner, service)
        self._shared.changed(self._owner)

    def _known_key(self, address: str) -> str:
        """The installation's key for this vendor: for whoever runs it, never for a reader of a shared page."""
        return self._shared.settings.key_for(address) if self.is_local else ""

    def _opened(self, name: ModelName, kept: ModelService | None, said: Abilities) -> ActiveModel:
        service = MENU.get(kind_of(name.service))
        inside = service is not None and service.inside
        for loader in self._same_inside(name, service) if service is not None and inside else ():
            known = self._pool.default if loader is self._pool.default.loader else self._pool.with_loader(loader)
            if known is not None:
                return ActiveModel(known.loader, known.readiness, name.service, inside=True)
        readiness = Readiness(changed=partial(self._shared.changed, self._owner))
        place = urlsplit(kept.address if kept is not None else service.address if service is not None else "").hostname
        model = name.model or (kept.model if kept is not None else "") or name.service
        label = f"{model} · {place}" if place else model
        loader = ModelLoader(partial(self._remade, name, kept, said), readiness, label, room=self._pool.wait_closed)
        if inside and self._pool.has_inside:  # to look at it is no reason to unload another
            readiness.mark("model", "ready", label=label)
        else:
            loader.start(inside=inside)
        return ActiveModel(loader, readiness, name.service, inside=inside)

    def _choice(self, name: ModelName, kept: ModelService | None) -> Choice:
        """A model with all that is needed to ask it. What could be chosen once may not be any more: it is checked."""
        service = service_named(name.service, local=self.is_local)
        if service.inside:
            return Choice(service, "", checked_model(name.model, service), "")
        known = "" if service.typed else self._known_key(service.address)
        if kept is None and known in {"", NO_KEY}:
            raise not_there(name)
        address = checked_address(kept.address if kept is not None else "", service, local=self.is_local)
        model = checked_model(name.model or (kept.model if kept is not None else ""), service)
        key = (self._store.key_of(kept) if kept is not None else "") or self._known_key(address)
        return Choice(service, address, model, key)

    async def _of_others(self, name: ModelName) -> ActiveModel:
        """A model whose service somebody else set up: that it is lent to the owner is looked up each time."""
        found = await self.others.found(name)
        known = self._pool.get(self._owner, name)
        if known is not None and self._shared.lent.get((self._owner, name.service)) == found.stamp:
            return known
        usual = self._pool.usual(self._owner)
        self._pool.drop(self._owner, name.service)
        if usual is not None:  # what answers is the same, set up anew
            self._pool.remember_usual(self._owner, usual)
        self._shared.lent[self._owner, name.service] = found.stamp
        readiness = Readiness(changed=partial(self._shared.changed, self._owner))
        loader = ModelLoader(partial(self._made_of_others, found), readiness, found.label, room=self._pool.wait_closed)
        loader.start()
        active = ActiveModel(loader, readiness, name.service)
        self._pool.put(self._owner, name, active)
        return active

    def _made_of_others(self, found: Found) -> BaseChatModel:
        model = self.made(found.choice(), local=True)
        model.label = found.label
        return model

    def _remade(self, name: ModelName, kept: ModelService | None, said: Abilities) -> BaseChatModel:
        return self.made(replace(self._choice(name, kept), abilities=said))

    def _same_inside(self, name: ModelName, service: MenuService) -> list[ModelLoader]:
        """What has this very model of this process already, or gets it: it is loaded once."""
        cfg = self._shared.settings.model_cfg()
        is_default = cfg.get("model_type") == service.model_type and name.model in {"", cfg.get("model")}
        loaded = self._pool.loaded(service.model_type)
        same = [loader for loader in loaded if loader.model is not None and loader.model.model == name.model]
        return [self._pool.default.loader, *same] if is_default else same

    def _check_free(self) -> None:
        if self._shared.fixed:
            raise ConflictError("The agents of this page bring their own model.", key="model_of_agent")

    async def _answering(self, service: str, choice: Choice) -> ModelLoader | None:
        """What gets the owner's model ready, if that is exactly this choice."""
        kept = await self._store.get(service)
        if kept is None or kept.address != choice.address:
            return None
        try:
            key = self._store.key_of(kept) or self._known_key(kept.address)
        except StorageError:  # nor can what answers read it
            return None
        if key != choice.key:
            return None
        if kept.in_use and kept.model == choice.model:
            return await self.loader()
        active = self._pool.get(self._owner, ModelName(service, choice.model))
        return active.loader if active is not None else None

    async def _kept_key(self, service: str, address: str) -> str:
        """The key that the owner gave for this very server."""
        kept = await self._store.get(service)
        return self._store.key_of(kept) if kept is not None and same_place(kept.address, address) else ""

    async def _tried(self, choice: Choice) -> tuple[str, float]:
        if choice.service.inside:
            return await self._inside_tried(choice)
        model = await asyncio.to_thread(self.made, choice, max_retries=0, circuit_breaker=False)
        try:
            return model.label, await first_answer(model)
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
                return await loaded_tried(loader)
        await look_for(choice)
        raise SettingsError("It is not loaded yet.", hint="Use it; it is fetched then.", key="built_in_not_loaded")
