"""Tries whether a service answers with the key it was given: by a token, and by looking something up."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.tools.openapi.as_tools import ApiTool


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it.

    Args:
        asked: The operation that was asked, for people; "" where none can be asked without arguments.
        has_token: Whether the service gave a token.
        seconds: How long it all took.
    """

    asked: str
    has_token: bool
    seconds: float


async def tried(tools: Sequence[ApiTool]) -> Trial:
    """Get a token, where one is needed, and ask the first operation that looks something up and needs no arguments.

    Raises:
        FetchError: The service, or who gives tokens, may not be called or does not answer.
        SettingsError: The key is not whole, or cannot be sent.
        ToolError: The service refuses.
    """
    start = monotonic()
    asking = _harmless(tools)
    has_token = await (asking or tools[0]).signed_in()
    if asking is not None:
        await asking.call({})
    return Trial(asking.operation.summary if asking is not None else "", has_token, monotonic() - start)


def _harmless(tools: Sequence[ApiTool]) -> ApiTool | None:
    """An operation that only looks something up; rather one for which the service must know who asks."""
    plain = [tool for tool in tools if tool.operation.method == "GET" and not tool.operation.schema["required"]]
    return max(plain, key=lambda tool: (bool(tool.credentials), bool(tool.operation.security)), default=None)
