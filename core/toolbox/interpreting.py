"""The code interpreter of an installation: its kernels, and the files that code finds in a conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Self

from core.errors import NotFoundError
from core.storage.base import file_ids
from core.toolbox.toolbox import Interpreter
from core.tools.sandbox.kernels import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from core.settings import Settings
    from core.storage.conversations import ConversationStore
    from core.storage.documents import DocumentStore
    from core.storage.files import FileStore
    from core.tools.builtin.code_interpreter import CodeInterpreter

_PATIENCE: Final = 2.0  # seconds: what a person waits for goes first


class Interpreting:
    """Runs the code of conversations; each has a kernel of its own.

    Args:
        settings: Which sandbox is wanted, and where the data folder is, which nothing inside may see.
        conversations: Whose messages name files.
        documents: Those of the conversations.
        files: Where the files are.
        changed: Called when it is known whether there is a sandbox.
    """

    def __init__(
        self,
        settings: Settings,
        conversations: ConversationStore,
        documents: DocumentStore,
        files: FileStore,
        changed: Callable[[], None],
    ) -> None:
        self._conversations, self._documents, self._files = conversations, documents, files
        home = settings.home.absolute()
        known = home / "sandbox.json"
        self.kernels = Kernels(wanted=settings.code, private=(home,), known=known, changed=changed, patience=_PATIENCE)

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
        """What `/readyz` says: whether it is known, the driver, and why it is that one or none."""
        choice = self.kernels.choice
        if choice is None:
            return {"state": "loading", "driver": "", "reason": ""}
        return {"state": "ready" if choice.driver else "off", "driver": choice.driver, "reason": choice.reason}

    def interpreter(self) -> Interpreter:
        """What the toolbox is told: how code is run here, or why it is not."""
        told = self.as_dict()
        make = self.make if told["state"] == "ready" else None
        return Interpreter(make, str(told["driver"]), str(told["reason"]))

    def make(self, owner: str, conversation_id: str) -> CodeInterpreter:
        """The tool of a conversation; where code may soon be run, a kernel is made ready."""
        from core.tools.builtin.code_interpreter import CodeInterpreter

        async def files() -> dict[str, Path]:
            return await self._files_of(owner, conversation_id)

        if conversation_id:  # the reply goes first
            asyncio.get_running_loop().call_later(_PATIENCE, self.kernels.warm)
        return CodeInterpreter(kernels=self.kernels, key=_key(owner, conversation_id), files=files)

    async def forget(self, owner: str, conversation_id: str) -> None:
        """A conversation is deleted: its kernel ends, with all files in it."""
        await self.kernels.forget(_key(owner, conversation_id))

    async def _files_of(self, owner: str, conversation_id: str) -> dict[str, Path]:
        """What was added to the conversation, by name; of two with one name, the later."""
        try:
            thread = await self._conversations.thread(owner, conversation_id)
        except NotFoundError:
            return {}
        wanted = [record.file_id for record in await self._documents.list(owner, conversation_id)]
        wanted += file_ids(part for message in thread if message.role == "user" for part in message.parts)
        found: dict[str, Path] = {}
        for file_id in dict.fromkeys(wanted):
            try:
                record, path = await self._files.get(owner, file_id)
            except NotFoundError:
                continue
            found[record.name] = path
        return found


def _key(owner: str, conversation_id: str) -> str:
    return f"{owner}\n{conversation_id}"
