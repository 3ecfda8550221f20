"""From what a program lists in `function_list` to tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.errors import SettingsError
from core.tools.base import BaseTool
from core.tools.catalog import TOOL_REGISTRY
from core.tools.from_function import FunctionTool

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from core.agents.base import Agent

GivenTool: TypeAlias = "str | Mapping[str, Any] | BaseTool | Agent | Callable[..., Any]"


def tools_from(given: Sequence[GivenTool] | None) -> dict[str, BaseTool]:
    """The tools by name.

    Args:
        given: Names, dicts (`{"name": ..., options}`), tools, functions, agents, `{"mcpServers": {...}}`, and
            `{"openapi": address, path, text or dict, "credentials": {...}}`.

    Raises:
        SettingsError: One of them is none of these, or its name is unknown (`UnknownNameError`).
        ServerUnreachableError: An MCP server cannot be started or reached.
        FetchError: An OpenAPI document cannot be fetched.
    """
    tools: dict[str, BaseTool] = {}
    for item in _listed(given):
        for tool in _made(item):
            if tool.name in tools and tools[tool.name] is not tool:
                _log.warning("Two tools are named %r; the later one counts.", tool.name)
            tools[tool.name] = tool
    return tools


def _listed(given: object) -> list[GivenTool]:
    """Raises SettingsError where one tool, or something else, stands where a list belongs."""
    if given is None:
        return []
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return list(cast("Iterable[GivenTool]", given))
    shown = str(cast("object", given)) if isinstance(given, Mapping) else "the_tool"
    shown = repr(given) if isinstance(given, str) else shown
    kind = type(cast("object", given)).__name__
    raise SettingsError(f"function_list must be a list, not {kind}.", hint=f"Write [{shown}].")


def _made(item: GivenTool) -> list[BaseTool]:
    from core.agents.agent_tool import AgentTool  # holds agents, which hold tools
    from core.agents.base import Agent

    match item:
        case Agent():
            return [AgentTool(item)]
        case BaseTool():
            return [item]
        case str():
            return [TOOL_REGISTRY[item]()]
        case Mapping():
            return _from_mapping(item)
        case _ if isinstance(item, type):
            if issubclass(kind := cast("type[object]", item), BaseTool):
                return [kind()]
            hint = "Give a class of tools, or a function."
            raise SettingsError(f"This is no tool: {kind!r}.", hint=hint)
        case _ if callable(item):
            return [FunctionTool(item)]
        case _:
            raise SettingsError(
                f"This is no tool: {item!r}.", hint="Give a name, a dict, a tool, a function or an agent."
            )


def _from_mapping(item: Mapping[str, Any]) -> list[BaseTool]:
    if "mcpServers" in item:
        from core.mcp.pool import MCPManager  # servers are rare, and their package is not small

        return list(MCPManager.shared().init_config(item))
    if "openapi" in item:
        from core.tools.openapi.as_tools import from_given  # as rare

        return list(from_given(item))
    if not isinstance(item.get("name"), str):
        raise SettingsError("A tool given as a dict needs its name.", hint='Write {"name": "calculator"}.')
    return [TOOL_REGISTRY[item["name"]](item)]
