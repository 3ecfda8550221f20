"""What the dialog about tools is told of services with an OpenAPI document. Never a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webui.panels.tools import may
from webui.render.invisible import said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.toolbox.own_services import Draft, OwnService
    from core.toolbox.service_keys import ServiceKey
    from core.tools.openapi.as_tools import ApiTool
    from core.tools.openapi.trying import Trial
    from core.tools.openapi.ways import Way
    from webui.words import Words

_LEAST_SAID = 0.1


def service_data(service: OwnService, words: Words) -> dict[str, Any]:
    """A service with its operations."""
    offered = sum(1 for tool in service.tools if tool.operation.name not in service.off)
    said = words("services.offered", n=offered, all=len(service.tools))
    if service.wants_together:
        said = f"{said} · {words('services.together', names=', '.join(service.wants_together))}"
    if service.error is not None:
        said = words.error(service.error)
    return {
        "id": service.id,
        "name": service.name,
        "address": service.address,
        "on": service.on,
        "said": said,
        "failed": service.error is not None,
        "key": _key(service.key),
        "ways": _ways(service.ways),
        "tools": [_tool(tool, words, on=tool.operation.name not in service.off) for tool in service.tools],
    }


def draft_data(draft: Draft) -> dict[str, Any]:
    """What a document says of a service that is to be set up."""
    return {"title": draft.title, "address": draft.address, "ways": _ways(draft.ways)}


def trial_said(trial: Trial, words: Words) -> str:
    """What came of trying a service."""
    seconds = words.seconds(max(trial.seconds, _LEAST_SAID))
    if trial.asked:
        key = "services.tried_token" if trial.has_token else "services.tried"
        return words(key, what=trial.asked, seconds=seconds)
    return words("services.token_came", seconds=seconds) if trial.has_token else words("services.nothing_to_try")


def _key(key: ServiceKey) -> dict[str, str]:
    return {"kind": key.kind, "name": key.name, "end": key.end, "token_url": key.token_url, "scope": key.scope}


def _ways(ways: Sequence[Way]) -> list[dict[str, Any]]:
    return [
        {"kind": way.kind, "name": way.name, "token_url": way.token_url, "scopes": list(map(list, way.scopes.items()))}
        for way in ways
    ]


def _tool(tool: ApiTool, words: Words, *, on: bool) -> dict[str, Any]:
    operation = tool.operation
    return {
        "id": operation.name,
        "label": operation.summary,
        "about": " · ".join(filter(None, (f"{operation.method} {operation.path}", said(tool.invisible, words)))),
        "may": may(tool, words),
        "on": on,
    }
