"""What a conversation may use, for whoever switches it on or off: with the tokens that each costs in every message."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from core.agents.read_documents import ReadDocuments
from core.llm.tokens import counter_for
from core.toolbox.choices import TOOL_SERVICES
from core.toolbox.toolbox import CODE, SKILL, bringer, is_wanted
from core.tools.builtin.ask_documents import AskDocuments
from core.tools.builtin.ask_tables import AskTables
from core.workspace.levels import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.llm.tokens import Counter
    from core.toolbox.server_form import State
    from core.tools.base import BaseTool
    from core.workspace.services import OwnerServices
    from core.workspace.steering import Steering

WEB: Final = ("web_search", "web_extractor")
"""The tools that are meant by the web: to search it, and to read a page of it."""

_OVER_DOCUMENTS: Final = (AskDocuments, AskTables, ReadDocuments)

Kind = Literal["documents", "web", "code", "tool", "server", "skills", "skill"]


@dataclass(frozen=True, slots=True)
class Usable:
    """A tool, or several that are switched together.

    Args:
        names: Full names of the tools, or that of the server that brings them.
        tokens: What a model is told of it, in tokens.
        on: Whether it is used in the conversation.
        inner: The tools of a server, or the skills.
        tool: The tool itself, where it is one.
        state: Of a server that has no tools now.
        label: What a server is called, where that is not its name.
    """

    kind: Kind
    names: tuple[str, ...]
    tokens: int
    on: bool
    inner: tuple[Usable, ...] = ()
    tool: BaseTool | None = None
    state: State = "ready"
    label: str = ""

    @property
    def tokens_now(self) -> int:
        """What it costs as it is switched."""
        if not self.on:
            return 0
        return sum(one.tokens for one in self.inner if one.on) if self.inner else self.tokens


async def usable(
    services: OwnerServices, steering: Steering, conversation_id: str, counter: Counter | None = None
) -> list[Usable]:
    """All that a conversation may use, on or off: documents, Parlour's own tools, and those of the owner's servers.

    A server that is being started is not waited for.

    Args:
        conversation_id: "" for one that is not there yet.
        counter: Counts tokens as the model does; about so many are counted where it is left out.

    Raises:
        StorageError: The database failed.
    """
    here, tools = steering.tools, services.tools
    on = await tools.on_here(here)
    listed = {one.name: one.tool for one in await tools.listed() if one.tool is not None}
    for name in TOOL_SERVICES:
        if name in listed and not (await tools.accounts.of(name)).usable:
            del listed[name]  # without an account it would be left out
    servers = [one for one in await tools.servers.list() if one.kept.enabled]
    offered = [tool.tool for one in servers for tool in one.tools if tool.on and not tool.mark]
    lent = [one for one in await tools.lent.list() if one.on]
    brought = [*offered, *await tools.openapi.tools(conversation_id), *[tool for one in lent for tool in one.tools]]
    costs = await asyncio.to_thread(_counted, [*listed.values(), *brought], counter or counter_for(""))
    documents = await asyncio.to_thread(documents_row, counter or counter_for(""), on=steering.uses_documents)
    web = [name for name in WEB if name in listed]
    rows = [
        documents,
        *([Usable("web", tuple(web), sum(costs[name] for name in web), bool(on.intersection(web)))] if web else []),
        *(
            Usable("code" if name == CODE else "tool", (name,), costs[name], name in on, tool=tool)
            for name, tool in listed.items()
            if name not in WEB and name != "use_skill"
        ),
    ]
    if (reads := listed.get("use_skill")) is not None:
        off = await tools.skills_off(here)
        rows.append(_skills(reads, off, costs["use_skill"], counter or counter_for("")))
    silent = [
        Usable("server", (f"mcp:{one.kept.name}",), 0, on=here.get(f"mcp:{one.kept.name}", True), state=one.state)
        for one in servers
        if not any(tool.on and not tool.mark for tool in one.tools)
    ]
    labels = {f"{'mcp' if one.kind == 'server' else 'api'}:{one.rules}": one.shown for one in lent}
    silent += [
        Usable(
            "server",
            (name,),
            0,
            on=here.get(name, True),
            state="failed" if one.state == "failed" else "off",
            label=one.shown,
        )
        for one, name in zip(lent, labels, strict=True)
        if not one.tools
    ]
    return [*rows, *_servers(brought, here, costs, labels), *silent]


async def costs_of(services: OwnerServices, names: Iterable[str], counter: Counter) -> dict[str, int]:
    """What some of Parlour's own tools cost in each message while they are on, as `usable` counts it, by name.

    Raises:
        StorageError: The database failed.
    """
    wanted = set(names)
    found = [one.tool for one in await services.tools.listed() if one.tool is not None and one.name in wanted]
    return await asyncio.to_thread(_counted, found, counter)


def _servers(
    brought: Sequence[BaseTool], here: Mapping[str, bool], costs: Mapping[str, int], labels: Mapping[str, str]
) -> list[Usable]:
    """Servers with their tools, by who brings them; those of others have labels."""
    groups: dict[str, list[Usable]] = {}
    for tool in brought:
        name = tool.full_name
        inner = Usable("tool", (name,), costs[name], is_wanted(name, here), tool=tool)
        groups.setdefault(bringer(name), []).append(inner)
    return [
        Usable(
            "server",
            (name,),
            sum(one.tokens for one in inner),
            any(one.on for one in inner),
            tuple(inner),
            label=labels.get(name, ""),
        )
        for name, inner in groups.items()
    ]


def _skills(reads: BaseTool, off: Sequence[str], tokens: int, counter: Counter) -> Usable:
    """The skills, each to be switched by itself."""
    skills: Mapping[str, Any] = getattr(reads, "skills", {})
    inner = tuple(
        Usable("skill", (f"{SKILL}{name}",), counter.count(f"- {name}: {one.description}"), name not in off)
        for name, one in skills.items()
    )
    return Usable("skills", ("use_skill",), tokens, any(one.on for one in inner), inner, reads)


def documents_row(counter: Counter, *, on: bool) -> Usable:
    """The documents of a conversation, with what all tools over them cost together.

    That is what a message takes at most: computing is offered where documents hold tables, and reading all of them
    where they do not fit into one request. The names of tables and columns come on top.

    Args:
        on: Whether they are used in the conversation.
    """
    told = [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in _OVER_DOCUMENTS]
    tokens = sum(counter.count(json.dumps(function, ensure_ascii=False)) for function in told)
    return Usable("documents", (DOCUMENTS,), tokens, on)


def _counted(tools: Iterable[BaseTool], counter: Counter) -> dict[str, int]:
    """The tokens of what a model is told of each tool, by its full name."""
    return {tool.full_name: counter.count(json.dumps(tool.function, ensure_ascii=False)) for tool in tools}
