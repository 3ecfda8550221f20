"""All models that an owner can choose from: what each can do and costs, and whether it would answer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from core.llm.local_files import BUILT_IN
from core.llm.model_names import hears_by_name, sees_by_name
from core.llm.usage import Listed, listed
from core.models.menu import MENU, checked_model, kind_of, menu, service_named
from core.models.model_name import INSTALLED, UNSAID, Abilities, ModelName
from core.net.addresses import is_public
from core.storage.lending import LENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.models.menu import MenuService
    from core.models.own_models import OwnerModels
    from core.models.remembered import Notes
    from core.models.weight_files import WeightFile
    from core.readiness import Part
    from core.storage.model_services import ModelService

Files: TypeAlias = "Mapping[str, WeightFile]"
State: TypeAlias = Literal["ready", "untried", "loading", "here", "absent", "no_answer", "no_key"]

_FRESH: Final = 600.0  # seconds that a list of models is taken for true
_LOCAL: Final = (".local", ".localhost", ".lan", ".internal", ".home.arpa")


@dataclass(frozen=True, slots=True)
class Choosable:
    """A model that can be chosen.

    Args:
        name: Its service, and what that calls it.
        state: Whether it would answer, as far as is known without asking it. A built-in one that is not in memory is
            `here`, or `absent` where its file must be downloaded first.
        done: Bytes that were fetched of it, of `total`; 0 where nothing is fetched.
        total: The size of its file, where it is being fetched or must be; 0 where that is not known.
        estimated: `total` is what others tell of it.
        calls: It takes tools in the way of the service's protocol, as far as is known.
        free: Nobody is paid for it: it runs on this machine, or in the owner's own network.
        listed: Its price and context, where the price list knows it.
        twin: What its service calls the model that the installation has anyway; "" where that is another.
    """

    name: ModelName
    state: State
    done: int = 0
    total: int = 0
    estimated: bool = False
    sees: bool = False
    hears: bool = False
    calls: bool = False
    free: bool = False
    listed: Listed = Listed()  # noqa: RUF009 - frozen
    twin: str = ""


@dataclass(frozen=True, slots=True)
class ServiceChoices:
    """A service with its models.

    Args:
        service: Its name among those that can be set up; empty for the installation's own model.
        address: Where it is; empty for a model of this process.
        models: The one that was set up first.
        lender: Who shares it with the owner; "" for the owner's own.
    """

    service: str
    address: str
    models: tuple[Choosable, ...]
    lender: str = ""


class ModelMenu:
    """The models of one owner, side by side."""

    def __init__(self, models: OwnerModels) -> None:
        self._models = models

    async def services(self) -> list[ServiceChoices]:
        """All services that could answer, the installation's model first, from what is known: nobody is asked.

        A service that wants a key and has none is there with its usual model, so that it can be found.

        Raises:
            StorageError: The database failed.
        """
        notes, used = await self._models.notes.all(), await self._models.notes.used()
        kept = {one.service: one for one in await self._models.kept()}
        files = await self._files()
        found = [ServiceChoices("", "", (await self._default(files),))]
        unset: list[ServiceChoices] = []
        for kind, service in menu(local=self._models.is_local).items():
            names = sorted((name for name in kept if kind_of(name) == kind), key=lambda name: (len(name), name))
            for name in names or ([kind] if not service.typed and kind != "transformers" else []):
                choices = await self._of(name, service, kept.get(name), notes, used, files)
                wants = all(one.state == "no_key" for one in choices.models)
                (unset if wants and name not in kept else found).append(choices)
        return [*found, *await self._of_others(), *unset]

    async def _of_others(self) -> list[ServiceChoices]:
        """The services that others share with the owner, each with the model that it is set up with."""
        found: list[ServiceChoices] = []
        for one in await self._models.others.list():
            kept, kind = one.service, kind_of(one.service.service)
            service = MENU.get(kind)
            if service is None or service.inside:
                continue
            address = kept.address or service.address
            name = ModelName(one.name, kept.model or next(iter(service.models), ""))
            prices = {} if is_near(address) else await listed([name.model], address)
            model = _choosable(
                name, self._state(name, "ready"), service, UNSAID, prices.get(name.model), free=is_near(address)
            )
            found.append(ServiceChoices(one.name, address, (model,), one.lender))
        return found

    async def _files(self) -> Files:
        """The files of built-in models, by name; none where nobody here is shown any."""
        model = self._models.default_model
        if not self._models.is_local and (model is None or model.model_type != BUILT_IN):
            return {}
        return {one.weights.name: one for one in await asyncio.to_thread(self._models.weight_files.list)}

    async def _default(self, files: Files) -> Choosable:
        """The installation's model; nothing but its name is known of it before it is made."""
        model = self._models.default_model
        if model is None:
            return Choosable(INSTALLED, *self._state(INSTALLED, "untried"))
        if model.model_type == BUILT_IN and (file := files.get(model.model)) is not None:
            twin = model.model if self._models.is_local else ""
            return replace(self._inside(INSTALLED, MENU[BUILT_IN], UNSAID, file), calls=model.native_calls, twin=twin)
        service, free = model.service, model.in_process or is_near(model.service.address)
        prices = {} if free or not service.address else await listed([model.model], service.address)
        return Choosable(
            INSTALLED,
            *self._state(INSTALLED, "untried"),
            sees=model.support_multimodal_input,
            hears=model.support_audio_input,
            calls=model.native_calls,
            free=free,
            listed=prices.get(model.model, Listed()),
        )

    async def refresh(self) -> bool:
        """Ask the services that were set up for their models, those whose list is old; returns whether any was asked.

        Raises:
            StorageError: The database failed.
        """
        offered = (await self._models.notes.all()).offered
        old = time.time() - _FRESH
        due = [
            one
            for one in await self._models.kept()
            if not ((known := offered.get(one.service)) and known.address == one.address and known.at > old)
        ]
        asked = await asyncio.gather(*(self._models.ask_offer(one) for one in due))
        return any(asked)

    async def star(self, name: ModelName, *, on: bool) -> None:
        """Make a model a favourite, or no longer.

        Raises:
            SettingsError: Its service is not on the menu, or its name is none.
            ConflictError: key `favourites_full`: there are nine already.
            StorageError: The database failed.
        """
        if on and name.service and not name.service.startswith(LENT):
            checked_model(name.model, service_named(name.service, local=self._models.is_local))
        await self._models.notes.mark(name, on=on)

    async def _of(
        self,
        name: str,
        service: MenuService,
        kept: ModelService | None,
        notes: Notes,
        used: Iterable[ModelName],
        files: Files,
    ) -> ServiceChoices:
        address = (kept.address if kept is not None else "") or service.address
        has_key = service.wants_key != "needed" or self._models.has_key(kept, address)
        offer = notes.offered.get(name)
        known = (
            offer.models if has_key and offer is not None and offer.address == (kept.address if kept else "") else ()
        )
        wrote = [one.model for one in used if one.service == name and one.model]
        names = _names(service, kept, known, wrote, files, has_key=has_key)
        free = service.here or is_near(address)
        prices = {} if free or not address else await listed(names, address)
        fallback: State = "no_key" if not has_key else "no_answer" if self._models.is_silent(name) else "untried"
        if known and fallback == "untried":
            fallback = "ready"  # it answered, with these names
        models: list[Choosable] = []
        for model in names:
            one = ModelName(name, model)
            said = notes.said.get(one, UNSAID)
            if service.model_type == BUILT_IN and (file := files.get(model)) is not None:
                models.append(self._inside(one, service, said, file))
                continue
            state = self._state(one, fallback) if has_key else (fallback, 0, 0)
            models.append(_choosable(one, state, service, said, prices.get(model), free=free))
        return ServiceChoices(name, address, tuple(models))

    def _state(self, name: ModelName, fallback: State) -> tuple[State, int, int]:
        part = self._models.known_part(name)
        return (fallback, 0, 0) if part is None else (_state(part, fallback), part.done, part.total)

    def _inside(self, name: ModelName, service: MenuService, said: Abilities, file: WeightFile) -> Choosable:
        """A built-in model: where it is not in memory, its file tells how far it is."""
        state, done, total = self._state(name, "here")
        is_absent = state not in {"ready", "loading"} and file.state != "here"
        weights, size = file.weights, file.weights.size or file.weights.about
        if is_absent:
            state, done, total = ("loading" if file.state == "fetching" else "absent"), file.done, size
        one = _choosable(name, (state, done, total), service, said, Listed(context=weights.context or None), free=True)
        return replace(one, estimated=is_absent and not weights.size)


def is_near(address: str) -> bool:
    """Whether a service is on this machine or in a private network: nobody is paid for it."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:  # brackets that are none of an address
        return False
    try:
        return not is_public(str(ip_address(host)))
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_LOCAL))


def _state(part: Part, fallback: State) -> State:
    if part.state == "failed":
        return "no_key" if part.remedy_key in {"model_key_missing", "model_key_wrong"} else "no_answer"
    if part.state == "loading":
        return "loading" if part.total else fallback
    return "ready" if part.answered or part.in_process else fallback


def _names(
    service: MenuService,
    kept: ModelService | None,
    offered: Iterable[str],
    used: Iterable[str],
    files: Files,
    *,
    has_key: bool,
) -> list[str]:
    """Its models: the one that was set up first, then what it offers, else what is known of it, or wrote replies.

    Of the built-in ones that nobody has measured yet those are there of which something is on this machine.
    """
    first = [kept.model] if kept is not None and (kept.model or service.model_type != BUILT_IN) else []
    if service.model_type == BUILT_IN:
        from core.llm.weights_catalog import WEIGHTS

        there = [name for name, one in files.items() if name in WEIGHTS or one.state != "absent"]
        return list(dict.fromkeys([*first, *(there or WEIGHTS)]))
    others = [*offered] or [*service.models, *used]
    names = [*dict.fromkeys([*first, *others])]
    return names if has_key else names[:1]


def _choosable(
    name: ModelName,
    state: tuple[State, int, int],
    service: MenuService,
    said: Abilities,
    price: Listed | None,
    *,
    free: bool,
) -> Choosable:
    by_name = not service.inside
    return Choosable(
        name,
        *state,
        sees=(by_name and sees_by_name(name.model)) if said.sees is None else said.sees,
        hears=(by_name and hears_by_name(name.model)) if said.hears is None else said.hears,
        calls=(by_name and not service.typed) if said.calls is None else said.calls,
        free=free,
        listed=price or Listed(),
    )
