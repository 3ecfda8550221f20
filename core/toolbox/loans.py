"""A tool that somebody shares, as it is used by whom they share it with: it ends with the loan, also in mid call."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pydantic import BaseModel

from core.errors import McpError, ParlourError, ServerUnreachableError, StorageError, ToolError
from core.messages.content import ContentItem
from core.tools.base import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_LOOKS: Final = 2.0  # seconds between two looks whether it is shared still: another process may have ended that
_SHORTEST: Final = 6  # characters: what is shorter is no secret, and stands in many words


class Loan:
    """One thing of somebody else, in the hands of whom it is shared with.

    Whoever uses it hears nothing of its owner's settings: what it answers and what is said of its failures is without
    their keys, and a failure to reach it says no more than that.

    Args:
        rules: What stands for it in the names that rules know.
        name: What it is called for whom it is shared with.
        lender: What its owner is called.
        still: Whether it is shared with them at this moment.
        secrets: What nobody may hear.
    """

    def __init__(
        self,
        rules: str,
        name: str,
        lender: str,
        *,
        still: Callable[[], Awaitable[bool]],
        secrets: Callable[[], Awaitable[Sequence[str]]],
    ) -> None:
        self.rules = rules
        self._name = name
        self._lender = lender
        self._still = still
        self._secrets = secrets
        self._looking: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    async def __call__(self, use: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What comes of a use, without secrets.

        Raises:
            ToolError: key `tool_taken_back`: it is not shared any more, or not until the end of the use, which is
                cancelled then; `lent_unreachable`: it cannot be reached.
            ParlourError: It failed.
        """
        if not await self._still():
            raise self._gone()
        work = asyncio.ensure_future(use())
        work.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may wait for it any more
        try:
            await self._followed(work)
            found = work.result()
        except ParlourError as error:
            raise await self._said(error) from None
        finally:
            work.cancel()
        return cast("T", without(found, await self._secrets()))

    async def ended(self, every: float | None = None) -> None:
        """Returns once it is not shared any more.

        Args:
            every: Seconds between two looks, where nobody says that something changed; two if left out.
        """
        loop, look = asyncio.get_running_loop(), asyncio.Event()
        self._looking.add((loop, look))
        try:
            while True:
                try:
                    if not await self._still():
                        return
                except StorageError as error:
                    _LOG.info("It is not known whether something is shared still: %s", error)
                try:
                    async with asyncio.timeout(_LOOKS if every is None else every):
                        await look.wait()
                except TimeoutError:
                    continue
                look.clear()
        finally:
            self._looking.discard((loop, look))

    def look_again(self) -> None:
        """Something changed: whether it is shared still is looked at now."""
        for loop, look in tuple(self._looking):
            loop.call_soon_threadsafe(look.set)

    async def _followed(self, work: asyncio.Future[Any]) -> None:
        """Wait for a use. Raises ToolError (`tool_taken_back`) where it is not shared before the use is over."""
        ending = asyncio.ensure_future(self.ended())
        try:
            await asyncio.wait({work, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise self._gone()
        finally:
            ending.cancel()

    async def _said(self, error: ParlourError) -> ParlourError:
        """What went wrong, for whoever may know nothing of how it is reached."""
        if error.words_key == "tool_taken_back":
            return error
        if not await self._still():
            return self._gone()
        if isinstance(error, McpError | ToolError) and not isinstance(error, ServerUnreachableError):
            secrets = await self._secrets()
            said = without(str(error), secrets)
            details = {name: without(value, secrets) for name, value in error.details.items() if name not in _HOW}
            kind = ToolError if isinstance(error, ToolError) else McpError
            return kind(said, key=error.words_key, **details)
        hint = f"Try again later, or ask {self._lender}."
        text = f"{self._name!r}, which {self._lender} shares with you, cannot be reached."
        return ToolError(text, hint=hint, key="lent_unreachable", name=self._name, lender=self._lender)

    def _gone(self) -> ToolError:
        text = f"{self._name!r} is not shared with you any more."
        hint = f"Answer without it, or ask {self._lender} to share it again."
        return ToolError(text, hint=hint, key="tool_taken_back", name=self._name, lender=self._lender)


_HOW: Final = frozenset({"command", "url", "address", "host", "wrote", "program"})


def without(found: Any, secrets: Sequence[str]) -> Any:
    """What a tool gave, or a part of it, with "…" in the place of each secret."""
    known = sorted({one for one in secrets if len(one) >= _SHORTEST}, key=len, reverse=True)
    return _cleaned(found, known) if known else found


def _cleaned(found: Any, secrets: Sequence[str]) -> Any:
    match found:
        case str():
            for one in secrets:
                found = found.replace(one, "…")
            return found
        case dict():
            known = cast("dict[Any, Any]", found)
            return {_cleaned(key, secrets): _cleaned(value, secrets) for key, value in known.items()}
        case list():
            return [_cleaned(one, secrets) for one in cast("list[Any]", found)]
        case tuple():
            return tuple(_cleaned(one, secrets) for one in cast("tuple[Any, ...]", found))
        case ContentItem():
            return found.model_copy(update={"text": _cleaned(found.text, secrets)}) if found.text else found
        case BaseModel():
            plain = found.model_dump(mode="json", by_alias=True)
            clean = _cleaned(plain, secrets)
            return found if clean == plain else type(found).model_validate(clean)
        case ToolResult():
            parts: Any = {
                name: _cleaned(getattr(found, name), secrets) for name in ("text", "items", "passages", "data")
            }
            return replace(found, **parts, extra=_cleaned(dict(found.extra), secrets))
        case _:
            return found
