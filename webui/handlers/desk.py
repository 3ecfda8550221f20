"""What handlers are given, and what turns their failures into one sentence on the page."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, cast

import gradio as gr

from core.errors import ParlourError
from webui.deletions import Deletions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable
    from contextlib import AbstractAsyncContextManager

    from core.engine import Engine
    from core.workspace.conversation import Conversation
    from core.workspace.workspace import Workspace
    from webui.uploads import Uploads
    from webui.views import View, Views
    from webui.words import Words


@dataclass(frozen=True, slots=True)
class Desk:
    """The engine, what was sent up, the open tabs, and what is about to be deleted."""

    engine: Engine
    uploads: Uploads
    views: Views
    deletions: Deletions = field(default_factory=Deletions)

    def workspace(self, view: View) -> AbstractAsyncContextManager[Workspace]:
        """What the owner of a tab has, while something is done in it. Raises StorageError."""
        return self.engine.workspaces.open(view.owner)

    def reading(self, view: View) -> AbstractAsyncContextManager[Workspace]:
        """Where what a tab shows is kept: with its owner, or with the demonstrations. Raises StorageError."""
        return self.engine.demonstrations.workspace() if view.demo is not None else self.workspace(view)

    @asynccontextmanager
    async def conversation(self, view: View) -> AsyncGenerator[Conversation]:
        """The conversation that a tab shows, while something is done in it. Raises StorageError."""
        async with self.workspace(view) as workspace:
            yield workspace.conversation(view.conversation_id)


_log = logging.getLogger(__name__)
_SECONDS = 8


def toast(words: Words, error: ParlourError | dict[str, Any]) -> None:
    """Say what went wrong, where it has no place in the conversation.

    What holds for hours stays until it is closed: whoever looked away would press Send again and see nothing.
    """
    key = error.words_key if isinstance(error, ParlourError) else str(error.get("key", ""))
    # Gradio takes it for markup, and what is quoted there, such as a file's text, is none.
    cast("Any", gr).Warning(
        escape(words.error(error), quote=False), duration=None if key.startswith("quota_") else _SECONDS
    )


def untouched() -> Any:
    """The answer of a handler that leaves what it could write to as it is: a refused draft stays in the composer."""
    return cast("Any", gr).skip()


async def guarded(view: View, work: Awaitable[Any]) -> Any:
    """Do `work` for a tab; where it fails the page says so, and nothing is touched.

    An error on purpose is told as it is; any other is logged, and told as unexpected.
    """
    try:
        return await work
    except ParlourError as error:
        toast(view.words, error)
    except Exception:
        _log.exception("The page asked for something, and it failed.")
        toast(view.words, {"key": "unexpected"})
    view.wake_up(stale=True)
    return untouched()
