"""One agent as an MCP server: a tool that asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from core.errors import ParlourError
from core.mcp.journal import many_lines, one_line
from core.mcp.progress import Telling
from core.mcp.serving import Serving
from core.tools.arguments import check

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.types import Scope

    from core.mcp.serving import Heard

_LONGEST_QUESTION = 20_000
_QUESTION = {"type": "string", "minLength": 1, "maxLength": _LONGEST_QUESTION, "description": "What is asked."}
_SCHEMA = {"type": "object", "properties": {"question": _QUESTION}, "required": ["question"]}


class AgentServing(Serving):
    """An ASGI application at one address; whoever mounts it has looked at the token.

    Args:
        name: The agent's.
        about: What it is good at, for models that choose among tools.
        ask: Gives its answer to a question; it is told of the request by which that came, and tells of each event.
        schema: What the tool takes, in JSON Schema, if not any question of up to 20,000 characters.
    """

    def __init__(
        self,
        name: str,
        about: str,
        ask: Callable[[str, Scope, Heard], Awaitable[str]],
        schema: Mapping[str, Any] = _SCHEMA,
    ) -> None:
        async def let_in(token: str, visitor: bool, base: str) -> Any:  # noqa: FBT001 - Serving's
            del token, visitor, base
            return _Asked()

        super().__init__(let_in, about=many_lines(about))
        self._ask = ask
        self._tool = Tool(name="ask", title=one_line(name), description=many_lines(about), input_schema=dict(schema))

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        del context, params
        return ListToolsResult(tools=[self._tool])

    async def _call(self, context: Any, params: Any) -> CallToolResult:
        try:
            if params.name != self._tool.name:
                return _said(f"There is no tool named {one_line(str(params.name))!r}.", failed=True)
            arguments = dict(params.arguments or {})
            check(arguments, dict(self._tool.input_schema))
            telling = Telling(context.session.report_progress)
            return _said(await self._ask(arguments["question"], context.request.scope, telling.heard))
        except ParlourError as error:
            return _said(str(error), failed=True)


class _Asked:
    """What `Serving` offers to whoever comes in: here the tool alone, so nothing of this is asked."""

    may = frozenset({"search", "ask"})

    async def libraries(self) -> Sequence[str]:
        """None."""
        return ()

    async def search(self, question: str, library: str | None, k: int) -> Sequence[dict[str, Any]]:
        """Nothing."""
        del question, library, k
        return ()

    async def ask(self, question: str, heard: Heard | None = None) -> str:
        """Nothing."""
        del heard
        return question


def _said(text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)
