"""The code interpreter of an installation: its kernels, and the files that code finds in a conversation."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from core.errors import NotFoundError
from core.storage.base import LOCAL_OWNER, file_ids
from core.tools.given_files import GivenFile
from core.tools.sandbox.kernels import Kernels

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from types import TracebackType

    from core.settings import Settings
    from core.storage.stores import OwnerStores, Stores
    from core.tools.base import BaseTool
    from core.tools.builtin.code_interpreter import CodeInterpreter
    from core.tools.sandbox.runner import CodeRunner


class GivenFiles:
    """The files of one owner's conversations. What is somebody else's does not exist.

    Args:
        stores: What is kept of the owner.
    """

    def __init__(self, stores: OwnerStores) -> None:
        self._stores = stores

    async def of(self, conversation_id: str) -> dict[str, GivenFile]:
        """What the user added to the conversation, by name; of two with one name, the later. Raises StorageError."""
        try:
            thread = await self._stores.conversations.thread(conversation_id)
        except NotFoundError:
            return {}
        wanted = [record.file_id for record in await self._stores.documents.list(conversation_id)]
        wanted += file_ids(part for message in thread if message.role == "user" for part in message.parts)
        found: dict[str, GivenFile] = {}
        for file_id in dict.fromkeys(wanted):
            try:
                record = await self._stores.files.record(file_id)
            except NotFoundError:
                continue
            source = partial(self._here, file_id)
            found[record.name] = GivenFile(record.name, record.media_type, record.size, source)
        return found

    @asynccontextmanager
    async def here(self, conversation_id: str) -> AsyncGenerator[dict[str, Path]]:
        """The same as files of this machine, to the end of an `async with` block. Raises StorageError."""
        async with AsyncExitStack() as held:
            found: dict[str, Path] = {}
            for name, one in (await self.of(conversation_id)).items():
                if not isinstance(one.source, Path | bytes):
                    with suppress(NotFoundError):  # its bytes are gone
                        found[name] = await held.enter_async_context(one.source())
            yield found

    @asynccontextmanager
    async def _here(self, file_id: str) -> AsyncGenerator[Path]:
        async with self._stores.files.local(file_id) as (_, path):
            yield path


_ALL: Final = 1000
_PATIENCE: Final = 2.0  # seconds: what a person waits for goes first


async def _nothing(conversation_id: str) -> None:
    del conversation_id


@dataclass(frozen=True, slots=True)
class OwnerInterpreter:
    """How the code of one owner is run, where it can be.

    Args:
        make: Makes the tool of a conversation; `None` where no sandbox of this machine holds.
        driver: The sandbox that is used.
        why: Why there is none.
        hosts: The machines on which code runs; none where it is this one.
        forget: Ends the kernel of a conversation that is deleted, with all files in it.
    """

    make: Callable[[str], BaseTool] | None = None
    driver: str = ""
    why: str = ""
    hosts: tuple[str, ...] = ()
    forget: Callable[[str], Awaitable[None]] = _nothing


class CodeInterpreters:
    """Runs the code of conversations; each has a kernel of its own. The kernels of all owners are in one place.

    Args:
        settings: Which sandbox is wanted, and where the data folder is, which nothing inside may see.
        stores: What is kept of owners.
        changed: Called when it is known whether there is a sandbox.
    """

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        changed: Callable[[], None],
    ) -> None:
        self._stores = stores
        self._needs_account = settings.has_accounts
        home = settings.home.absolute()
        known = home / "sandbox.json"
        self.kernels: CodeRunner
        if settings.sandbox and settings.code != "off":
            from core.tools.sandbox.remote import RemoteKernels

            self.kernels = RemoteKernels(
                settings.sandbox, settings.sandbox_key, most_of=partial(_most_of, settings), changed=changed
            )
            return
        self.kernels = Kernels(
            wanted=settings.code,
            private=(home,),
            known=known,
            most_of=partial(_most_of, settings),
            changed=changed,
            patience=_PATIENCE,
        )

    async def __aenter__(self) -> Self:
        """Begin to look for a sandbox that holds, in the background."""
        self.kernels.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all kernels."""
        await self.kernels.aclose()

    def as_dict(self) -> dict[str, Any]:
        """What `/readyz` says: whether it is known, the driver, why it is that one or none, and on which machines."""
        choice, hosts = self.kernels.choice, self.kernels.hosts
        where = {"hosts": list(hosts)} if hosts else {}
        if choice is None:
            return {"state": "loading", "driver": "", "reason": "", **where}
        state = "ready" if choice.driver else "off"
        return {"state": state, "driver": choice.driver, "reason": choice.reason, **where}

    def of(self, owner: str) -> OwnerInterpreter:
        """How code is run here for an owner, or why it is not."""
        told = self.as_dict()
        if self._needs_account and self._stores.people.roles.get(owner, "guest") == "guest":
            return OwnerInterpreter(why="guests run no code here")
        make = partial(self._tool, owner) if told["state"] == "ready" else None
        hosts = self.kernels.hosts
        return OwnerInterpreter(make, str(told["driver"]), str(told["reason"]), hosts, partial(self._forget, owner))

    def _tool(self, owner: str, conversation_id: str) -> CodeInterpreter:
        """The tool of a conversation; where code may soon be run, a kernel is made ready."""
        from core.tools.builtin.code_interpreter import CodeInterpreter

        files = partial(GivenFiles(self._stores.of(owner)).here, conversation_id)
        if conversation_id:  # the reply goes first
            asyncio.get_running_loop().call_later(_PATIENCE, self.kernels.warm)
        return CodeInterpreter(kernels=self.kernels, key=_key(owner, conversation_id), owner=owner, files=files)

    async def _forget(self, owner: str, conversation_id: str) -> None:
        await self.kernels.forget(_key(owner, conversation_id))


def _most_of(settings: Settings, owner: str) -> int:
    """How many kernels an owner may have."""
    return _ALL if owner == LOCAL_OWNER else settings.code_kernels


def _key(owner: str, conversation_id: str) -> str:
    return f"{owner}\n{conversation_id}"
