"""The model services that owners set up: where they are, which model, a sealed key, and which of them answers."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, delete, select, update

from core.errors import StorageError
from core.storage.conversations import insert_owner
from core.storage.dialects import upsert
from core.storage.loans import end_loans
from core.storage.sealing import end_of, in_address
from core.storage.tables import model_services

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.storage.database import Database
    from core.storage.sealing import Sealer


@dataclass(frozen=True, slots=True)
class ModelService:
    """A service as an owner set it up.

    Args:
        service: Its name in the table of services.
        address: Where it is; empty where the service has one of its own.
        key: The sealed key, or `None` where there is none; `key_end` is what may be shown of it.
        in_use: Whether it answers the owner's questions.
        updated_at: Unix seconds.
    """

    owner_id: str
    service: str
    address: str
    model: str
    key: str | None = field(repr=False)
    key_end: str
    in_use: bool
    updated_at: float


class ModelServiceStore:
    """The services of one owner, at most one of them in use. What is somebody else's does not exist.

    Args:
        sealer: Seals the keys.
        owner: Whose they are; need not be known yet.
    """

    def __init__(self, database: Database, sealer: Sealer, owner: str) -> None:
        self._database = database
        self._sealer = sealer
        self._owner = owner

    async def list(self) -> list[ModelService]:
        """All that the owner set up, by name."""
        query = (
            select(model_services).where(model_services.c.owner_id == self._owner).order_by(model_services.c.service)
        )
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [service_record(row) for row in rows]

    async def get(self, service: str) -> ModelService | None:
        """One of them."""
        return next((one for one in await self.list() if one.service == service), None)

    async def in_use(self) -> ModelService | None:
        """The one that answers; `None` where the installation's model does."""
        return next((one for one in await self.list() if one.in_use), None)

    async def save(
        self,
        service: str,
        *,
        address: str,
        model: str,
        key: str | None,
        use: bool,
        keeps: Callable[[str], bool] = lambda _: True,
    ) -> bool:
        """Keep a service, in place of what was kept under its name; returns whether it answers now.

        Args:
            service: Its name in the table of services.
            key: The key itself, empty for none; `None` keeps what there is.
            use: Whether it answers from now on; if not, whichever answered before goes on.
            keeps: Told the address that a kept key was given for, whether the key may go to the new one; else it is
                dropped, in the same step, so that nothing comes in between.
        """
        values: dict[str, Any] = {"address": address, "model": model, "updated_at": time.time()}
        if key is not None:
            values["key"] = self._sealer.seal(key, self._owner, service) if key else None
            values["key_end"] = end_of(key)
        fresh = {"key": None, "key_end": "", "in_use": False, **values, "owner_id": self._owner, "service": service}

        def keep(connection: Connection) -> bool:
            insert_owner(connection, self._owner)
            old = connection.execute(select(model_services).where(_is(self._owner, service))).first()
            drops = {} if key is not None or old is None or keeps(old.address) else {"key": None, "key_end": ""}
            adding = upsert(model_services).values(fresh)
            changed = {**values, **drops}
            connection.execute(adding.on_conflict_do_update(index_elements=["owner_id", "service"], set_=changed))
            if use:
                _use(connection, self._owner, service)
            return use or (old is not None and old.in_use)

        return await self._database.write(keep)

    async def use(self, service: str) -> None:
        """Let this one answer; an empty name leaves it to the installation's model."""
        await self._database.write(lambda c: _use(c, self._owner, service))

    async def delete(self, service: str) -> None:
        """Forget a service with its key; it is shared with nobody any more."""

        def remove(connection: Connection) -> None:
            connection.execute(delete(model_services).where(_is(self._owner, service)))
            end_loans(connection, self._owner, "model", service)

        await self._database.write(remove)

    async def secrets(self) -> list[str]:
        """All of the owner's keys, for whoever must not repeat them; one that cannot be read is none."""
        found: list[str] = []
        for one in await self.list():
            found += in_address(one.address)
            with suppress(StorageError):
                found.append(self.key_of(one))
        return found

    def key_of(self, kept: ModelService) -> str:
        """The key itself; empty where there is none. It goes to the service and nowhere else.

        Raises:
            StorageError: key `key_unreadable`: the installation's secret has changed.
        """
        return self._sealer.open(kept.key, kept.owner_id, kept.service) if kept.key else ""


def _is(owner: str, service: str) -> ColumnElement[bool]:
    return (model_services.c.owner_id == owner) & (model_services.c.service == service)


def _use(connection: Connection, owner: str, service: str) -> None:
    mine = update(model_services).where(model_services.c.owner_id == owner)
    connection.execute(mine.values(in_use=model_services.c.service == service))


def service_record(row: Row[Any]) -> ModelService:
    """A row of the table `model_services`."""
    return ModelService(
        owner_id=row.owner_id,
        service=row.service,
        address=row.address,
        model=row.model,
        key=row.key,
        key_end=row.key_end,
        in_use=row.in_use,
        updated_at=row.updated_at,
    )
