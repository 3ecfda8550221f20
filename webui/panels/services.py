"""What the dialog about tools is told of services with an OpenAPI document. Never a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webui.panels.tools import may

if TYPE_CHECKING:
    from core.toolbox.own_services import OwnService
    from core.tools.openapi.as_tools import ApiTool
    from webui.words import Words


def service_data(service: OwnService, words: Words) -> dict[str, Any]:
    """A service with its operations."""
    offered = sum(1 for tool in service.tools if tool.operation.name not in service.off)
    said = words("services.offered", n=offered, all=len(service.tools))
    if service.error is not None:
        said = words.error(service.error)
    return {
        "id": service.id,
        "name": service.name,
        "address": service.address,
        "on": service.on,
        "said": said,
        "failed": service.error is not None,
        "key": {"kind": service.key.kind, "name": service.key.name, "end": service.key.end},
        "tools": [_tool(tool, words, on=tool.operation.name not in service.off) for tool in service.tools],
    }


def _tool(tool: ApiTool, words: Words, *, on: bool) -> dict[str, Any]:
    operation = tool.operation
    return {
        "id": operation.name,
        "label": operation.summary,
        "about": f"{operation.method} {operation.path}",
        "may": may(tool, words),
        "on": on,
    }
