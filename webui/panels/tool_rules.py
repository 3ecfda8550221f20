"""What is to be known of an owner's rules: those that match no tool there is, and what runs unasked in one chat."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from core.mcp.shown import rule_name
from core.tools.builtin.ask_documents import AskDocuments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.toolbox.own_services import OwnService
    from core.toolbox.standing import OwnServer
    from core.toolbox.toolbox import Offered
    from core.tools.approval import Policy
    from core.tools.base import BaseTool
    from webui.words import Words


def rule_hints(
    policy: Policy,
    offered: Sequence[Offered],
    servers: Sequence[OwnServer],
    services: Sequence[OwnService],
    words: Words,
) -> dict[str, list[str]]:
    """Sentences on the rules that match nothing, for each list of rules.

    Rules for a server that is not there now are left in peace: nobody knows what tools it will have.
    """
    names = _names(offered, servers, services)
    away = [rule_name(one.kept.name, "") for one in servers if one.state != "ready"]
    lists = {"deny": policy.deny, "ask": policy.ask, "allow": policy.allow}
    return {
        name: [
            _hint(rule, names, words) for rule in rules if not _matches(rule, (*names, *away), exact=name == "allow")
        ]
        for name, rules in lists.items()
    }


def allowed_data(
    allowed: Sequence[str],
    offered: Sequence[Offered],
    servers: Sequence[OwnServer],
    services: Sequence[OwnService],
    words: Words,
) -> list[dict[str, str]]:
    """The tools that run unasked in one conversation: their names in rules, and what the reader calls them."""
    known: dict[str, BaseTool] = {one.name: one.tool for one in offered if one.tool is not None}
    known |= {tool.full_name: tool for tool in _brought(servers, services)}
    return [
        {"id": name, "label": known[name].label(words.lang) if name in known else name.rsplit(":", 1)[-1]}
        for name in allowed
    ]


def _brought(servers: Sequence[OwnServer], services: Sequence[OwnService]) -> Iterable[BaseTool]:
    yield from (each.tool for one in servers for each in one.tools)
    yield from (tool for one in services for tool in one.tools)


def _names(
    offered: Sequence[Offered], servers: Sequence[OwnServer], services: Sequence[OwnService]
) -> dict[str, set[str]]:
    """The names of all tools in rules, with what people call them."""
    found = {one.name: _called(one.tool) for one in offered}
    found[AskDocuments.name] = {label.casefold() for label in AskDocuments.labels.values()}
    return found | {tool.full_name: _called(tool) for tool in _brought(servers, services)}


def _called(tool: BaseTool | None) -> set[str]:
    return (
        {tool.label(lang).casefold() for lang in ("en", "zh")} | {tool.name.casefold()} if tool is not None else set()
    )


def _matches(rule: str, names: Iterable[str], *, exact: bool) -> bool:
    """Whether it matches one of the names; one that ends in a colon is a server, with whatever tools it may have."""
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
