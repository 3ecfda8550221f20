"""Calls of one turn that are the same: one of them is made, and its result is everybody's."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from core.messages.events import ToolFinished
from core.tools.arguments import read_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.messages.message import Message
    from core.tools.base import BaseTool


def what_it_asks(call: Message, tools: Mapping[str, BaseTool]) -> str:
    """The same text for calls that are the same, whatever the order of their arguments; "" where each is made.

    Only a tool that says so itself (`steady`) is asked once for many, and never where it would change something.
    """
    requested = call.function_call
    tool = tools.get(requested.name) if requested is not None else None
    if requested is None or tool is None or not tool.steady or tool.runs_code:
        return ""
    try:
        arguments = read_arguments(requested.arguments)
        tool.verify(arguments)
        if tool.changes(arguments) or tool.destroys(arguments):
            return ""
        return json.dumps([requested.name, arguments], sort_keys=True)
    except Exception:  # noqa: BLE001 - a tool's own code; whoever makes the call says what is wrong with it
        return ""


async def same_result(call_id: str, made: asyncio.Task[ToolFinished]) -> ToolFinished:
    """The result of a call that was made, as that of another one."""
    await asyncio.wait({made})
    message = made.result().message
    extra = {**(message.extra or {}), "function_id": call_id}
    return ToolFinished(call_id, message.model_copy(update={"extra": extra}))
