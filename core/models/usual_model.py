"""Which model answers an owner's conversations that have none of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.models.menu import service_named
from core.models.model_name import MODEL, ModelName
from core.storage.lending import LENT

if TYPE_CHECKING:
    from core.models.lent_models import LentModels
    from core.storage.answered import AnsweredConversations
    from core.storage.model_services import ModelServiceStore


class UsualModel:
    """The usual model of one owner. Every method raises StorageError where the database fails.

    Where another one becomes the usual one, conversations that were answered keep the one that they had, as their own:
    what was written to a model on this machine is not sent to a service because that answers new conversations.

    Args:
        store: The services that the owner set up, one of them in use.
        others: The models that others share with the owner.
        answered: The owner's conversations in which replies were written.
    """

    def __init__(self, store: ModelServiceStore, others: LentModels, answered: AnsweredConversations) -> None:
        self._store = store
        self._others = others
        self._answered = answered

    async def name(self) -> ModelName:
        """Which it is."""
        used = await self._store.in_use()
        return ModelName(used.service, used.model) if used is not None else await self._others.used()

    async def leave(self, service: str, model: str | None = None) -> None:
        """Another model is about to become the usual one.

        Args:
            service: Its service; "" for the installation's own model.
            model: Which of it; left out, another model of the same service is set up in place of the one before, and
                answers where that did.
        """
        before = await self.name()
        if before.service != service or model not in {None, before.model}:
            await self._answered.configure(lambda kept: _own(kept, before))

    async def choose(self, name: ModelName, *, local: bool) -> None:
        """Let a model answer, which is there.

        Args:
            local: Whether the owner may use what is on this machine.
        """
        await self.leave(name.service, name.model)
        lent = name.service.startswith(LENT)
        kept = await self._store.get(name.service) if name.service and not lent else None
        await self._others.use(name if lent else None)
        if name.service and not lent:
            address = kept.address if kept is not None else service_named(name.service, local=local).address
            await self._store.save(name.service, address=address, model=name.model, key=None, use=True)
        else:
            await self._store.use("")

    async def use(self, service: str) -> None:
        """Let a service answer that was set up, with its model; "" for the installation's own."""
        await self.leave(service)
        await self._others.use(None)
        await self._store.use(service)

    async def remove(self, service: str) -> bool:
        """Forget a service with its key; returns whether it was the usual one, and is none any more.

        What it answered says that its model is gone, as where that was chosen: no other is sent what was said to it.
        """
        kept = await self._store.get(service)
        answered = kept is not None and kept.in_use
        if answered:
            await self.leave("")
        await self._store.delete(service)
        return answered


def _own(settings: dict[str, Any], model: ModelName) -> dict[str, Any]:
    """The settings of a conversation with this model as its own, where it has none."""
    return settings if ModelName.read(settings.get(MODEL)) is not None else {**settings, MODEL: model.as_json()}
