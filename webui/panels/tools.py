"""What the dialog of tools gets about built-in tools, approval and its rules. Never a secret."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from core.agents.read_documents import ReadDocuments
from core.languages import LANGS
from core.mcp.journal import rule_name
from core.toolbox.choices import TOOL_SERVICES
from core.toolbox.code_interpreter import OwnerInterpreter
from core.toolbox.toolbox import CODE, MOST_FOR_SMALL
from core.tools.builtin.ask_documents import AskDocuments
from core.tools.builtin.ask_tables import AskTables
from webui.render.tool_words import about_of, label_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.toolbox.choices import SearchEngine, ToolAccount
    from core.toolbox.lent_tools import LentTools
    from core.toolbox.server_form import OwnServer
    from core.toolbox.toolbox import ListedTool, OwnerInterpreter
    from core.toolbox.user_openapi import OwnService
    from core.tools.approval import Policy
    from core.tools.base import BaseTool
    from core.tools.owner_notes import Note
    from core.tools.web.base import SearchService
    from webui.words import Words

_OVER_DOCUMENTS = (AskDocuments, AskTables, ReadDocuments)
_MAY = ("writes", "runs_code", "reaches_out")


def approval_data(policy: Policy) -> dict[str, Any]:
    """The approval policy."""
    return {"mode": policy.mode, "allow": [*policy.allow], "ask": [*policy.ask], "deny": [*policy.deny]}


def small_note(words: Words, *, small: bool) -> str:
    """The note on small models; empty for others."""
    return words("tools.small", n=MOST_FOR_SMALL) if small else ""


def tools_data(
    listed: Sequence[ListedTool], interpreter: OwnerInterpreter, words: Words, lacking: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The built-in tools; those in `lacking` are not offered before their service has a key."""
    told = [_builtin(one, interpreter, words) for one in listed]
    for one in told:
        if one["on"] and one["name"] in lacking:
            one["noted"] = words("tools.lacks_key")
    return [*told, *(_over_documents(one, words) for one in _OVER_DOCUMENTS)]


def _builtin(listed: ListedTool, interpreter: OwnerInterpreter, words: Words) -> dict[str, Any]:
    tool, name = listed.tool, listed.name
    noted = ""
    if name == CODE:
        noted = _runs_in(interpreter, words) if tool else _no_sandbox(interpreter, words)
    return {
        "name": name,
        "label": _label(listed, words),
        "about": about_of(name, words) or (tool.description if tool is not None else ""),
        "may": may(tool, words) if tool is not None else "",
        "noted": noted,
        "available": tool is not None,
        "always": False,
        "on": listed.on and tool is not None,
    }


def _label(listed: ListedTool, words: Words) -> str:
    tool, name = listed.tool, listed.name
    return label_of(name, words) or (tool.label(words.spoken) if tool is not None else name)


def _runs_in(interpreter: OwnerInterpreter, words: Words) -> str:
    if not interpreter.hosts:
        return words("tools.runs_in", driver=interpreter.driver)
    return words("tools.runs_at", driver=interpreter.driver, host=words("attach.comma").join(interpreter.hosts))


def _no_sandbox(interpreter: OwnerInterpreter, words: Words) -> str:
    why = words.sandbox(interpreter.why)
    return words("tools.no_sandbox", why=why) if why else words("tools.sandbox_loading")


def _over_documents(tool: type[BaseTool], words: Words) -> dict[str, Any]:
    name, always = tool.name, words("tools.always")
    told = {"name": name, "label": label_of(name, words), "about": about_of(name, words), "may": always, "noted": ""}
    return {**told, "available": True, "always": True, "on": True}


def may(tool: BaseTool, words: Words) -> str:
    """What a tool may do, in a few words, such as "reads, goes online"."""
    if tool.full_name.startswith("mcp:") and not tool.trusted:
        return words("tools.may_delete_unknown" if tool.destructive else "tools.may_unknown")
    keys = [f"tools.may_{name}" for name in _MAY if getattr(tool, name)]
    found = [words(f"{key}.{tool.name}" if f"{key}.{tool.name}" in words else key) for key in keys]
    if tool.destructive:
        found.append(words("tools.may_destructive"))
    if not found:
        found = [words("tools.may_inside")]
    return words("attach.comma").join(found)


def notes_data(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """The assistant's notes."""
    return [{"key": one.key, "text": one.text, "whole": one.whole} for one in notes]


def search_data(engine: SearchEngine, services: Mapping[str, type[SearchService]], words: Words) -> dict[str, Any]:
    """The search engine, and the choices."""
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
    """The service account of a tool, and the choices."""
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


def rule_hints(
    policy: Policy,
    listed: Sequence[ListedTool],
    servers: Sequence[OwnServer],
    services: Sequence[OwnService],
    words: Words,
    lent: Sequence[LentTools] = (),
) -> dict[str, list[str]]:
    """Hints about rules that match no tool, by list of rules.

    Rules for a server that is not connected are not judged: its tools are unknown.
    """
    names = _names(listed, servers, services, lent)
    away = [rule_name(one.kept.name, "") for one in servers if one.state != "ready"]
    away += [rule_name(one.rules, "") for one in lent if one.kind == "server" and one.state != "ready"]
    lists = {"deny": policy.deny, "ask": policy.ask, "allow": policy.allow}
    return {
        name: [
            _hint(rule, names, words) for rule in rules if not _matches(rule, (*names, *away), exact=name == "allow")
        ]
        for name, rules in lists.items()
    }


def allowed_data(
    allowed: Sequence[str],
    listed: Sequence[ListedTool],
    servers: Sequence[OwnServer],
    services: Sequence[OwnService],
    words: Words,
    lent: Sequence[LentTools] = (),
) -> list[dict[str, str]]:
    """The tools that run without approval in a conversation: names in rules, and labels."""
    labels = {one.name: _label(one, words) for one in listed}
    labels |= {tool.full_name: tool.label(words.spoken) for tool in _brought(servers, services, lent)}
    return [{"id": name, "label": labels.get(name, name.rsplit(":", 1)[-1])} for name in allowed]


def _brought(
    servers: Sequence[OwnServer], services: Sequence[OwnService], lent: Sequence[LentTools]
) -> Iterable[BaseTool]:
    yield from (each.tool for one in servers for each in one.tools)
    yield from (tool for one in lent for tool in one.tools)
    yield from (tool for one in services for tool in one.tools)


def _names(
    listed: Sequence[ListedTool],
    servers: Sequence[OwnServer],
    services: Sequence[OwnService],
    lent: Sequence[LentTools],
) -> dict[str, set[str]]:
    """All tools by their name in rules, with their labels in lower case."""
    found = {one.name: _labels(one.tool) for one in listed}
    found |= {one.name: {label.casefold() for label in one.labels.values()} for one in _OVER_DOCUMENTS}
    return found | {tool.full_name: _labels(tool) for tool in _brought(servers, services, lent)}


def _labels(tool: BaseTool | None) -> set[str]:
    return {tool.name.casefold(), *(tool.label(lang).casefold() for lang in LANGS)} if tool is not None else set()


def _matches(rule: str, names: Iterable[str], *, exact: bool) -> bool:
    """Whether a rule matches one of the names; a name that ends in a colon is a server with unknown tools."""
    wanted = rule if exact else rule.casefold()
    of_server = ":".join(wanted.split(":")[:2]) + ":"
    for name in names:
        known = name if exact else name.casefold()
        if fnmatchcase(known, of_server if name.endswith(":") else wanted):
            return True
    return False


def _hint(rule: str, names: Mapping[str, set[str]], words: Words) -> str:
    said = rule.casefold()
    meant = next((name for name, called in names.items() if said == name.casefold() or said in called), "")
    if not meant:
        meant = next(iter(get_close_matches(rule, names, n=1, cutoff=0.8)), "")
    return words("rules.meant", rule=rule, name=meant) if meant else words("rules.unknown", rule=rule)
