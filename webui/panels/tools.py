"""What the dialog about tools is told: how it is asked, the tools there are, and the servers. Never a secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.storage.sealing import end_of
from core.toolbox.accounts import TOOL_SERVICES
from core.toolbox.toolbox import CODE, MOST_FOR_SMALL
from core.tools.builtin.ask_documents import AskDocuments
from core.tools.catalog import TOOL_REGISTRY
from webui.panels.servers import sign_in_data
from webui.render.invisible import said

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.errors import ParlourError
    from core.mcp.settings import ServerSettings
    from core.toolbox.accounts import ToolAccount
    from core.toolbox.choices import SearchEngine
    from core.toolbox.standing import OfferedTool, OwnServer
    from core.toolbox.toolbox import Interpreter, Offered
    from core.tools.approval import Policy
    from core.tools.base import BaseTool
    from core.tools.own_notes import Note
    from core.tools.web.base import SearchService
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
_MAY = ("writes", "runs_code", "reaches_out")


def approval_data(policy: Policy) -> dict[str, Any]:
    """When the reader is asked."""
    return {"mode": policy.mode, "allow": [*policy.allow], "ask": [*policy.ask], "deny": [*policy.deny]}


def small_note(words: Words, *, small: bool) -> str:
    """What is to be known of a small model; empty for others."""
    return words("tools.small", n=MOST_FOR_SMALL) if small else ""


def tools_data(
    offered: Sequence[Offered], interpreter: Interpreter, words: Words, lacking: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The tools that Parlour brings; those of `lacking` are not offered before their service has a key."""
    told = [_builtin(one, interpreter, words) for one in offered]
    for one in told:
        if one["on"] and one["name"] in lacking:
            one["noted"] = words("tools.lacks_key")
    return [*told, _documents(words)]


def _builtin(offered: Offered, interpreter: Interpreter, words: Words) -> dict[str, Any]:
    tool, name = offered.tool, offered.name
    noted = ""
    if name == CODE:
        noted = words("tools.runs_in", driver=interpreter.driver) if tool else _no_sandbox(interpreter, words)
    return {
        "name": name,
        "label": tool.label(words.lang) if tool is not None else words("tools.code") if name == CODE else name,
        "about": tool.description
        if tool is not None and name in TOOL_REGISTRY.plug_ins
        else words(f"tools.about.{name}"),
        "may": may(tool, words) if tool is not None else "",
        "noted": noted,
        "available": tool is not None,
        "always": False,
        "on": offered.on and tool is not None,
    }


def _no_sandbox(interpreter: Interpreter, words: Words) -> str:
    why = words.sandbox(interpreter.why)
    return words("tools.no_sandbox", why=why) if why else words("tools.sandbox_loading")


def _documents(words: Words) -> dict[str, Any]:
    label = AskDocuments.labels.get(words.lang, AskDocuments.name)
    about, always = words("tools.about.ask_documents"), words("tools.always")
    told = {"name": AskDocuments.name, "label": label, "about": about, "may": always, "noted": ""}
    return {**told, "available": True, "always": True, "on": True}


def may(tool: BaseTool, words: Words) -> str:
    """What a tool may do, in a few words."""
    if tool.full_name.startswith("mcp:") and not tool.trusted:
        return words("tools.may_delete_unknown" if tool.destructive else "tools.may_unknown")
    keys = [f"tools.may_{name}" for name in _MAY if getattr(tool, name)]
    found = [words(f"{key}.{tool.name}" if f"{key}.{tool.name}" in words else key) for key in keys]
    if tool.destructive:
        found.append(words("tools.may_destructive"))
    if not found:
        found = [words("tools.may_inside")]
    return (", " if words.lang == "en" else "、").join(found)


def notes_data(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """What the assistant noted for the reader."""
    return [{"key": one.key, "text": one.text, "whole": one.whole} for one in notes]


def search_data(engine: SearchEngine, services: Mapping[str, type[SearchService]], words: Words) -> dict[str, Any]:
    """Which engine searches the web, and which could."""
    providers = [
        {
            "name": name,
            "label": _called(name, one.label, words),
            "key": one.needs_key,
            "address": not one.home,
            "usual": "",
            "model": "",
        }
        for name, one in services.items()
    ]
    kept = {"provider": engine.provider, "address": engine.address, "model": ""}
    return {**kept, "has_key": bool(engine.key), "end": engine.end, "providers": providers}


def account_data(tool: str, account: ToolAccount, words: Words) -> dict[str, Any]:
    """With whose key a tool asks a service, and which services it could ask."""
    providers = [
        {
            "name": name,
            "label": _called(name, one.label, words),
            "key": True,
            "address": bool(one.usual),
            "usual": one.usual,
            "model": one.model,
        }
        for name, one in TOOL_SERVICES[tool].items()
    ]
    kept = {"provider": account.service, "address": account.address, "model": account.model}
    return {**kept, "has_key": bool(account.key), "end": account.end, "providers": providers}


def _called(name: str, label: str, words: Words) -> str:
    key = f"tools.engine_{name}"
    return words(key) if key in words else label


# ---- servers


def row_data(server: OwnServer, words: Words) -> dict[str, Any]:
    """A server in the list."""
    return {
        "id": server.kept.id,
        "name": server.kept.name,
        "shape": "ask" if server.state == "ready" and server.marked else _SHAPES[server.state],
        "said": _said(server, words),
    }


def _said(server: OwnServer, words: Words) -> str:
    if server.state != "ready":
        return words(f"tools.state_{server.state}")
    if server.marked:
        return words("tools.state_changed_one" if server.marked == 1 else "tools.state_changed", n=server.marked)
    count = len(server.tools)
    return words("tools.state_ready_one" if count == 1 else "tools.state_ready", n=count)


def opened_data(server: OwnServer, words: Words, *, local: bool) -> dict[str, Any]:
    """A server with its tools. Of secrets it holds their names and ends."""
    settings, kept = server.settings, server.kept
    is_program = settings is None or settings.type == "stdio"
    told = _why(server.error, words, program=is_program) if server.error is not None else _said(server, words)
    tools = [_tool(one, words) for one in server.tools]
    return {
        **row_data(server, words),
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
    """What failed, and where more of it stands."""
    if error.details.get("command"):
        return words("tools.no_program", name=error.details["command"])
    happened, remedy = words.error_parts(error)
    if not remedy and error.words_key == "mcp_unreachable":
        remedy = words("tools.try_log" if program else "tools.try_address")
    return words.line(happened, remedy)


def _fields(settings: ServerSettings | None) -> dict[str, Any]:
    """What the form shows. An argument may be a secret too, but its owner must see it, to allow it."""
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


def _tool(one: OfferedTool, words: Words) -> dict[str, Any]:
    return {
        "id": one.name,
        "rule": one.tool.full_name,
        "label": one.tool.label(words.lang),
        "description": "\n".join(part for part in (said(one.tool.invisible, words), one.whole_description) if part),
        "may": may(one.tool, words),
        "on": one.on,
        "mark": one.mark,
        "mark_said": words(f"tools.mark_{one.mark}") if one.mark else "",
        "print": one.print,
    }
