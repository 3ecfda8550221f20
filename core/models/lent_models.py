"""Models of services that others set up and share with an owner; nobody sees their keys."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from core.errors import SettingsError, StorageError
from core.models.menu import checked_address, checked_model, kind_of, service_named
from core.models.model_name import INSTALLED, ModelName
from core.models.pool import Choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.settings import Settings
    from core.storage.lending import Lent, LentModel
    from core.storage.owner_settings import OwnerSettings

_USUAL: Final = "lent_model"  # the owner's setting: which of them answers conversations that have no model of their own


@dataclass(frozen=True, slots=True)
class Found:
    """A model that is lent to an owner, or is no more.

    Args:
        label: What the page calls it.
        stamp: Changes when its owner sets its service up anew; `None` where it is not lent.
        choice: Gives all that is needed to ask it. Raises SettingsError (`model_taken_back`), StorageError.
    """

    label: str
    stamp: tuple[float, str] | None
    choice: Callable[[], Choice] = field(repr=False)


class LentModels:
    """Those of one owner.

    Args:
        settings: Keep which of them answers where nothing else is chosen.
        installation: Has keys for whoever looks after the house, whose services these are.
    """

    def __init__(self, lent: Lent, settings: OwnerSettings, installation: Settings) -> None:
        self._lent = lent
        self._settings = settings
        self._installation = installation

    async def list(self) -> list[LentModel]:
        """All of them. Raises StorageError."""
        return await self._lent.models()

    async def found(self, name: ModelName) -> Found:
        """One of them, also where it is not lent to the owner any more. Raises StorageError."""
        lent = await self._lent.model(name.service)
        if lent is None:
            return Found(name.model or "?", None, _gone)
        kept = lent.service
        label = f"{kept.model or kind_of(kept.service)} · {lent.lender}"
        return Found(label, (kept.updated_at, kept.model), lambda: self._choice(name, lent))

    async def used(self) -> ModelName:
        """Which of them answers where nothing else is chosen, else the installation's model. Raises StorageError."""
        return ModelName.read(await self._settings.get(_USUAL)) or INSTALLED

    async def use(self, name: ModelName | None) -> None:
        """Let this one of them answer where nothing else is chosen, or none. Raises StorageError."""
        if name is not None or await self._settings.get(_USUAL) is not None:
            kept = name.as_json() if name is not None else None
            await self._settings.change(_USUAL, lambda _: kept)

    async def secrets(self) -> list[str]:
        """Their keys, for whoever must not repeat them; one that cannot be read is none."""
        found: list[str] = []
        for one in await self._lent.models():
            with suppress(StorageError):
                found.append(self._lent.key_of(one))
        return [one for one in found if one]

    def _choice(self, name: ModelName, lent: LentModel) -> Choice:
        """The model that a service is set up with, and no other of it; with its owner's key and reach."""
        kept = lent.service
        service = service_named(kept.service, local=True)
        model = checked_model(kept.model, service)
        if service.inside or name.model not in {"", model}:
            _gone()
        address = checked_address(kept.address, service, local=True)
        return Choice(service, address, model, self._lent.key_of(lent) or self._installation.key_for(address))


def _gone() -> Choice:
    hint = "Choose another one under its name."
    raise SettingsError("This model is not shared with you any more.", hint=hint, key="model_taken_back")
