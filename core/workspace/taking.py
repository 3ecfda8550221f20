"""An owner's conversations on their way out, and conversations from elsewhere on their way in."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from core.errors import NotFoundError
from core.export.bundle import bundled
from core.export.exporting import Exporting
from core.export.inspecting import Inspecting
from core.export.redaction import KnownSecrets
from core.export.together import zipped
from core.importing.importing import bring_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Sequence
    from pathlib import Path

    from core.export.together import FileForm
    from core.importing.importing import Imported
    from core.languages import Lang
    from core.workspace.services import OwnerServices


_PATIENCE: Final = 30.0  # seconds that documents may take to be read before it is said that all is here


class Taking:
    """Takes an owner's conversations along, and brings others in.

    Args:
        services: What it works with, of its owner.
    """

    def __init__(self, services: OwnerServices) -> None:
        self._services = services
        self._stores = services.stores

    @property
    def exporting(self) -> Exporting:
        """What exports single conversations."""
        services = self._services
        return Exporting(self._stores.whole, services.runs, self._secrets, services.index, self._stores.files)

    @property
    def inspecting(self) -> Inspecting:
        """What looks behind single replies."""
        return Inspecting(self._services.runs, self._secrets, self._stores)

    @property
    def _secrets(self) -> KnownSecrets:
        services = self._services
        return KnownSecrets(services.installation, services.models, services.tools, services.agents)

    async def chosen(self, ids: Sequence[str] = (), *, folder: str = "") -> list[str]:
        """The owner's conversations, the one used last first.

        Args:
            ids: Those that are wanted; ids of others are passed over.
            folder: Those in this folder.

        Returns:
            Their ids; of all of them, those that are archived included, where nothing is wanted.

        Raises:
            NotFoundError: There is no such folder of this owner.
        """
        listed = await self._stores.conversations.list(temporary=bool(ids))
        if ids:
            wanted = frozenset(ids)
            return [one.id for one in listed if one.id in wanted]
        if folder:
            inside = (await self._stores.folders.get(folder)).id
            return [one.id for one in listed if one.folder_id == inside]
        return [one.id for one in listed]

    def archive(self, ids: Sequence[str], form: FileForm, lang: Lang = "en") -> AsyncGenerator[bytes, None]:
        """Conversations as one ZIP, made while it is read. Raises as `core.export.together.zipped`."""
        return zipped(self.exporting, ids, form, lang)

    def bundle(self, ids: Sequence[str], lang: Lang = "en") -> AsyncGenerator[bytes, None]:
        """Conversations as a bundle, made while it is read. Raises as `core.export.bundle.bundled`."""
        return bundled(self.exporting, self._stores, ids, lang)

    async def bring_in(  # noqa: PLR0913 - a file, and each option by name
        self,
        path: Path,
        *,
        name: str = "",
        told: Callable[[float], None] = lambda _: None,
        look: Callable[[], None] = lambda: None,
        used_at: float | None = None,
        patience: float = _PATIENCE,
        unless_there: Collection[str] | None = None,
    ) -> Imported:
        """Take a file's conversations in, and read their documents; as `core.importing.importing.bring_in`.

        It returns once they are read, and goes on without them after `patience` seconds: the rest is read meanwhile.

        Raises:
            NoSpaceError: The disk is full; nothing was taken in.
            QuotaError: The owner's files take too much room with it; nothing was taken in.
            StorageError: The database failed; nothing was taken in.
            UnsupportedFormatError: It is no such file, or not as it should be; nothing was taken in.
        """
        imported = await bring_in(
            path, self._stores, name=name, told=told, look=look, used_at=used_at, unless_there=unless_there
        )
        read: dict[str, list[str]] = {}
        for conversation_id, file in imported.documents:
            document = await self._services.intake.add(conversation_id, file, is_let_in=True)
            read.setdefault(conversation_id, []).append(document.id)
        self._services.changed(None)
        ends = time.monotonic() + patience
        for conversation_id, documents in read.items():  # so that their marks lead to pages as soon as it is said
            with suppress(NotFoundError):  # deleted in another tab meanwhile
                await self._services.intake.wait(conversation_id, documents, max(0.0, ends - time.monotonic()))
        return imported
