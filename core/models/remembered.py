"""What an owner keeps about models: favourites, what they were said to be able to do, and what services offered."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import ConflictError
from core.models.model_name import UNSAID, Abilities, ModelName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.storage.owner_settings import Choices, OwnerSettings

MOST_FAVOURITES: Final = 9
_NAME = "models"  # among the owner's settings
_USED = "models_used"  # likewise: it changes with replies, and is small
_MOST_SAID = 200
_MOST_OFFERED = 1_000
_LONGEST = 200
_MOST_USED = 20


@dataclass(frozen=True, slots=True)
class Offer:
    """The models that a service said it has.

    Args:
        address: Where it was asked.
        at: When, in Unix seconds; 0 where it was never asked.
    """

    address: str = ""
    models: tuple[str, ...] = ()
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Notes:
    """All of it, as it was kept.

    Args:
        favourites: In the order in which they were marked.
        said: What models can do, by hand.
        offered: By service.
    """

    favourites: tuple[ModelName, ...]
    said: Mapping[ModelName, Abilities]
    offered: Mapping[str, Offer]

    @classmethod
    def read(cls, kept: object) -> Notes:
        """What can be read of what is kept; anything else counts as nothing."""
        given = _mapping(kept)
        favourites = [name for one in _list(given.get("favourites")) if (name := ModelName.read(one)) is not None]
        said = {name: Abilities.read(one) for one in _list(given.get("said")) if (name := ModelName.read(one))}
        offered = {str(service): _offer(one) for service, one in _mapping(given.get("offered")).items()}
        return cls(tuple(dict.fromkeys(favourites))[:MOST_FAVOURITES], said, offered)

    def as_json(self) -> dict[str, Any]:
        """As it is kept."""
        said = [name.as_json() | able.as_json() for name, able in [*self.said.items()][-_MOST_SAID:]]
        offered = {
            service: {"address": one.address, "models": list(one.models), "at": one.at}
            for service, one in self.offered.items()
        }
        return {"favourites": [name.as_json() for name in self.favourites], "said": said, "offered": offered}


class ModelNotes:
    """The notes of one owner, read and changed. Every method raises StorageError where the database fails."""

    def __init__(self, settings: OwnerSettings) -> None:
        self._settings = settings

    async def all(self) -> Notes:
        """All of it."""
        return Notes.read(await self._settings.get(_NAME))

    async def mark(self, name: ModelName, *, on: bool) -> None:
        """Make a model a favourite, or no longer.

        Raises:
            ConflictError: key `favourites_full`: there are nine already.
        """

        def changed(kept: object) -> dict[str, Any]:
            notes = Notes.read(kept)
            others = tuple(one for one in notes.favourites if one != name)
            if on and len(others) == MOST_FAVOURITES:
                hint = "Take the star from another first."
                raise ConflictError("Nine models are favourites.", hint=hint, key="favourites_full")
            favourites = notes.favourites if on and name in notes.favourites else (*others, *([name] if on else ()))
            return Notes(favourites, notes.said, notes.offered).as_json()

        await self._settings.change(_NAME, changed)

    async def said_of(self, name: ModelName) -> Abilities:
        """What was said that a model can do."""
        return (await self.all()).said.get(name, UNSAID)

    async def say(self, name: ModelName, abilities: Abilities) -> None:
        """Keep what a model can do; nothing said leaves it to its name."""

        def changed(kept: object) -> dict[str, Any]:
            notes = Notes.read(kept)
            said = {one: able for one, able in notes.said.items() if one != name}
            said |= {name: abilities} if abilities != UNSAID else {}
            return Notes(notes.favourites, said, notes.offered).as_json()

        await self._settings.change(_NAME, changed)

    async def keep_offer(self, service: str, address: str, models: Sequence[str]) -> None:
        """Remember which models a service offers."""

        def changed(kept: object) -> dict[str, Any]:
            notes = Notes.read(kept)
            fine = tuple(model for model in models if len(model) <= _LONGEST)[:_MOST_OFFERED]
            offered = {**notes.offered, service: Offer(address, fine, time.time())}
            return Notes(notes.favourites, notes.said, offered).as_json()

        await self._settings.change(_NAME, changed)

    async def used(self) -> tuple[ModelName, ...]:
        """The models that wrote replies, the one of the newest reply first."""
        return _names(await self._settings.get(_USED))

    async def note_used(self, name: ModelName) -> None:
        """A model wrote a reply. Nothing is written where it wrote the one before, too."""
        if (await self.used())[:1] != (name,):
            await self._settings.change(_USED, lambda kept: _as_json([name, *_names(kept)]))

    async def forget_used(self) -> None:
        """Forget which models wrote replies: these are deleted."""
        await self._settings.change(_USED, lambda _: None)

    async def forget(self, service: str) -> None:
        """Forget what a service offered, which of it were favourites, and which wrote replies: it was removed."""

        def changed(choices: Choices) -> None:
            notes = Notes.read(choices.get(_NAME))
            favourites = tuple(one for one in notes.favourites if one.service != service)
            said = {one: able for one, able in notes.said.items() if one.service != service}
            offered = {name: one for name, one in notes.offered.items() if name != service}
            choices.put(_NAME, Notes(favourites, said, offered).as_json())
            choices.put(_USED, _as_json(one for one in _names(choices.get(_USED)) if one.service != service) or None)

        await self._settings.change_together(changed)


def _names(kept: object) -> tuple[ModelName, ...]:
    return tuple(dict.fromkeys(name for one in _list(kept) if (name := ModelName.read(one)) is not None))


def _as_json(names: Iterable[ModelName]) -> list[dict[str, str]]:
    return [name.as_json() for name in [*dict.fromkeys(names)][:_MOST_USED]]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _offer(value: object) -> Offer:
    given = _mapping(value)
    models = tuple(model for model in _list(given.get("models")) if isinstance(model, str))
    address, at = given.get("address"), given.get("at")
    return Offer(address if isinstance(address, str) else "", models, at if isinstance(at, float | int) else 0.0)
