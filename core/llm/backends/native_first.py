"""Tools through a service's own calling, and in the prompt once it turns out to have none."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from core.errors import ModelRefusedError
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from core.llm.base import BaseChatModel
    from core.llm.request import Stream


async def native_first(model: BaseChatModel, ask: Callable[[], Stream], no_calls: re.Pattern[str]) -> Stream:
    """The reply to `ask`, asked a second time where the service has no calls of its own.

    Args:
        model: Its `native_calls` becomes false then, so that the layers write the tools down.
        ask: Begins the question.
        no_calls: Finds the service's words for that in a refusal.
    """
    told = False
    try:
        async with aclosing(ask()) as events:
            async for event in events:
                told = told or not isinstance(event, MessageStarted)
                yield event
        return
    except ModelRefusedError as error:
        if told or not no_calls.search(error.message):
            raise
    model.native_calls = False
    async with aclosing(ask()) as events:
        async for event in events:
            if not isinstance(event, MessageStarted):  # it was told by the attempt before
                yield event
