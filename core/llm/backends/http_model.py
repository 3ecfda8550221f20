"""`HttpModel`: what models behind HTTP services share: connections, and tools in the prompt where they must be."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from core.llm.backends.http_clients import http_pool
from core.llm.backends.meanings import NO_CALLS
from core.llm.base import BaseChatModel
from core.llm.layers.call_prompting import native_first
from core.llm.wire.tools import checked_functions

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from core.llm.request import ChatRequest, Progress, Stream


class HttpModel(BaseChatModel):
    """A model behind a service, over the connections that all of them share."""

    no_calls: ClassVar[re.Pattern[str]] = NO_CALLS
    """Refusals by models that have no tool calling."""

    def _holder(self) -> object:
        """What holds the connections."""
        raise NotImplementedError

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Load what the first request needs, in a thread; nothing is sent."""
        del progress  # nothing is fetched
        await http_pool().prepare()
        await asyncio.to_thread(self.count_tokens, self.label)

    async def aclose(self) -> None:
        """Close this loop's connections, unless another model uses them."""
        await http_pool().release(self._holder())

    def stream(self, request: ChatRequest) -> Stream:
        """As for every model; tools move into the prompt if the model turns out to have no tool calling."""
        checked_functions(request.functions)  # before any layer puts them into the prompt
        ask = partial(super().stream, request)
        return native_first(self, ask, self.no_calls) if self.native_calls and request.functions else ask()
