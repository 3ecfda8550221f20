"""What the dialog of tools gets about MCP servers and web services: state, settings and tools. Never a secret."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.storage.sealing import end_of
from webui.panels.tools import may
from webui.render.markup import invisible_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.errors import ParlourError
    from core.mcp.settings import ServerSettings
    from core.toolbox.lent_tools import LentTools
    from core.toolbox.server_form import OfferedTool, OwnServer
    from core.toolbox.user_openapi import Draft, OwnService, ServiceKey
    from core.tools.openapi.as_tools import ApiTool, Trial
    from core.tools.openapi.credentials import AuthScheme
    from webui.words import Words

_SHAPES = {
    "off": "open",
    "confirm": "ask",
    "connecting": "run",
    "ready": "ok",
    "failed": "bad",
    "sign_in": "ask",
    "signing_in": "run",
}
_AGAIN = {"failed", "ready", "sign_in", "signing_in"}
_STYLE = (
    "html{color-scheme:light dark}body{max-width:34rem;margin:18vh auto 0;padding:0 1.5rem;"
    "font:1.05rem/1.6 system-ui,sans-serif}h1{font-size:1.4rem;line-height:1.3}p{opacity:.8}"
)


def sign_in_data(server: OwnServer, words: Words) -> dict[str, Any]:
    """Whether signing in is needed, where, and whether the reader is signed in."""
    host = urlsplit(server.page).netloc
    return {
        "needed": server.state == "sign_in",
        "address": server.page,
        "at": words("servers.sign_in_at", host=host) if host else "",
        "out": server.kept.signed_in,
    }


def answered_page(title: str, said: str, words: Words) -> str:
    """The page that a service sends the reader back to after signing in; its tab can be closed."""
    return (
        f'<!doctype html><html lang="{words("lang.tag")}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body><main><h1 dir="auto">{escape(title)}</h1><p>{escape(said)}</p></main></body></html>'
    )


def server_row(server: OwnServer, words: Words) -> dict[str, Any]:
    """A server in the list."""
    return {
        "id": server.kept.id,
        "name": server.kept.name,
        "shape": "ask" if server.state == "ready" and server.marked else _SHAPES[server.state],
        "said": _server_line(server, words),
    }


def _server_line(server: OwnServer, words: Words) -> str:
    if server.state != "ready":
        return words(f"tools.state_{server.state}")
    if server.marked:
        return words("tools.state_changed_one" if server.marked == 1 else "tools.state_changed", n=server.marked)
    count = len(server.tools)
    return words("tools.state_ready_one" if count == 1 else "tools.state_ready", n=count)


def server_data(server: OwnServer, words: Words, *, local: bool) -> dict[str, Any]:
    """A server with its tools; of secrets it has the names and last characters."""
    settings, kept = server.settings, server.kept
    is_program = settings is None or settings.type == "stdio"
    told = _why(server.error, words, program=is_program) if server.error is not None else _server_line(server, words)
    tools = [_server_tool(one, words) for one in server.tools]
    return {
        **server_row(server, words),
        "told": told,
        "ready": server.state == "ready",
        "waits": server.state == "confirm",
        "enabled": kept.enabled,
        "trusted": kept.trusted,
        "asks": kept.asks,
        "may_connect": kept.enabled and settings is not None and server.state in _AGAIN,
        "sign_in": sign_in_data(server, words),
        "reached": _reached(server),
        "confirm": _confirm(server, words) if server.state == "confirm" and local else None,
        "tools": tools,
        "log": [*server.log, *([str(server.error)] if server.error is not None else [])],
        **_fields(settings),
    }


def _why(error: ParlourError, words: Words, *, program: bool) -> str:
    """What failed, and where to look."""
    if error.details.get("command"):
        return words("tools.no_program", name=error.details["command"])
    happened, remedy = words.error_parts(error)
    if not remedy and error.words_key == "mcp_unreachable":
        remedy = words("tools.try_log" if program else "tools.try_address")
    return words.line(happened, remedy)


def _fields(settings: ServerSettings | None) -> dict[str, Any]:
    """The contents of the form. An argument may be a secret, but its owner must see it to confirm the command."""
    if settings is None:
        return {"kind": "address", "command": "", "args": [], "folder": "", "url": "", "env": [], "headers": []}
    return {
        "kind": "command" if settings.type == "stdio" else "address",
        "command": settings.command or "",
        "args": [*settings.args],
        "folder": settings.cwd or "",
        "url": settings.url or "",
        "env": [{"name": name, "end": end_of(value)} for name, value in settings.revealed("env").items()],
        "headers": [{"name": name, "end": end_of(value)} for name, value in settings.revealed("headers").items()],
    }


def _reached(server: OwnServer) -> str:
    if server.settings is None:
        return ""
    if server.settings.type != "stdio":
        return server.settings.url or ""
    words = [server.command.program if server.command else server.settings.command or "", *server.settings.args]
    return " ".join(json.dumps(word, ensure_ascii=False) if not word or " " in word else word for word in words)


def _confirm(server: OwnServer, words: Words) -> dict[str, Any] | None:
    command, settings = server.command, server.settings
    if command is None or settings is None:
        return None
    return {
        "program": command.program,
        "arguments": [*command.args],
        "folder": settings.cwd or "",
        "variables": sorted(settings.env),
        "risks": [words(f"tools.risk_{risk}") for risk in command.risks],
        "print": server.print,
    }


def _server_tool(one: OfferedTool, words: Words) -> dict[str, Any]:
    return {
        "id": one.name,
        "rule": one.tool.full_name,
        "label": one.tool.label(words.spoken),
        "description": "\n".join(
            part for part in (invisible_note(one.tool.invisible, words), one.whole_description) if part
        ),
        "may": may(one.tool, words),
        "on": one.on,
        "mark": one.mark,
        "mark_said": words(f"tools.mark_{one.mark}") if one.mark else "",
        "print": one.print,
    }


def lent_data(lent: LentTools, words: Words) -> dict[str, Any]:
    """A server or service that somebody shares, with its tools; nothing of how it is reached, and no log."""
    count = len(lent.tools)
    if lent.state == "ready":
        told = words("tools.state_ready_one" if count == 1 else "tools.state_ready", n=count)
    else:
        told = words("lent.waits", lender=lent.lender) if lent.state == "waits" else words(f"lent.{lent.state}")
    kind = words(f"lending.one_{lent.kind}")
    return {
        "id": lent.mark,
        "name": lent.name,
        "whose": words("lending.of_use", lender=lent.lender),
        "said": f"{kind} · {told}",
        "shape": "ask" if lent.state == "waits" else _SHAPES[lent.state],
        "on": lent.on,
        "moves": lent.state == "connecting",
        "tools": [
            {"id": tool.full_name, "label": tool.label(words.spoken), "may": may(tool, words)} for tool in lent.tools
        ],
    }


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
        "key": _key_data(service.key),
        "ways": _ways(service.ways),
        "tools": [_operation(tool, words, on=tool.operation.name not in service.off) for tool in service.tools],
    }


def draft_data(draft: Draft) -> dict[str, Any]:
    """A service that is being set up, as its OpenAPI document describes it."""
    return {"title": draft.title, "address": draft.address, "ways": _ways(draft.ways)}


def trial_said(trial: Trial, words: Words) -> str:
    """The result of testing a service, as a sentence."""
    seconds = words.seconds(max(trial.seconds, _LEAST_SAID))
    if trial.asked:
        key = "services.tried_token" if trial.has_token else "services.tried"
        return words(key, what=trial.asked, seconds=seconds)
    return words("services.token_came", seconds=seconds) if trial.has_token else words("services.nothing_to_try")


def _key_data(key: ServiceKey) -> dict[str, str]:
    return {"kind": key.kind, "name": key.name, "end": key.end, "token_url": key.token_url, "scope": key.scope}


def _ways(ways: Sequence[AuthScheme]) -> list[dict[str, Any]]:
    return [
        {"kind": way.kind, "name": way.name, "token_url": way.token_url, "scopes": list(map(list, way.scopes.items()))}
        for way in ways
    ]


def _operation(tool: ApiTool, words: Words, *, on: bool) -> dict[str, Any]:
    operation = tool.operation
    return {
        "id": operation.name,
        "label": operation.summary,
        "about": " · ".join(
            filter(None, (f"{operation.method} {operation.path}", invisible_note(tool.invisible, words)))
        ),
        "may": may(tool, words),
        "on": on,
    }
