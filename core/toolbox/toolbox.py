"""Which tools an owner has in a conversation: those that Parlour brings, and those of the owner's servers."""

from __future__ import annotations

import asyncio
import json
import logging
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from core.errors import NotFoundError, ParlourError, StorageError
from core.toolbox.choices import SEARCH, TOOL_SERVICES, Rules, ToolAccounts, ToolChoices
from core.toolbox.code_interpreter import GivenFiles, OwnerInterpreter
from core.toolbox.lent_tools import OwnerLentTools, RunningLent
from core.toolbox.user_mcp_servers import AllMcpServers, OwnerMcpServers
from core.toolbox.user_openapi import KnownServices, OwnerOpenApi
from core.tools.builtin.ask_documents import AskDocuments
from core.tools.builtin.storage import OwnerStorage
from core.tools.catalog import TOOL_REGISTRY
from core.tools.owner_notes import OwnerNotes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from core.settings import Settings
    from core.storage.lending import LentService
    from core.storage.owner_notes import NoteStore
    from core.storage.sealing import Sealer
    from core.storage.stores import Stores
    from core.tools.base import BaseTool
    from core.tools.builtin.code_interpreter import CodeInterpreter
    from core.tools.catalog import PageTool

_LOG = logging.getLogger(__name__)

CODE = "code_interpreter"
STORAGE = OwnerStorage.name
SEARCHING = (SEARCH, "image_search")
RUN_SKILL = "run_skill_script"
SKILLS = ("use_skill", RUN_SKILL)
SKILL = "skill:"
"""Before the name of a skill, where one is switched by itself among the tools of a conversation or a persona."""
MOST_FOR_SMALL = 6
"""So many tools a small model is offered: its context is small, and each more makes it choose worse."""
_LONGEST_NAME = 64  # what model services accept
_ROOM_FOR_SMALL = 4_000  # characters of their descriptions as JSON, about a thousand tokens


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool in the list that an owner switches them in.

    Args:
        tool: The tool itself, to be shown; `None` where it cannot be had.
        on: Whether models are offered it.
    """

    tool: BaseTool | None
    name: str
    on: bool


class Toolbox:
    """What the tools of all owners share; `of` hands out those of one.

    Args:
        stores: What owners chose and set up.
        sealer: Seals their keys.
        settings: Whether the page is for this machine alone, where the data folder is, and what tools are told.
        interpreter: How code is run for an owner; not at all if left out.
    """

    def __init__(
        self,
        stores: Stores,
        sealer: Sealer,
        settings: Settings,
        interpreter: Callable[[str], OwnerInterpreter] | None = None,
    ) -> None:
        self._stores = stores
        self._sealer = sealer
        self._settings = settings
        self._interpreter = interpreter
        self._servers = AllMcpServers(settings, stores)
        self._lent = RunningLent(stores.standing)
        self._known = KnownServices()

    def of(self, owner: str) -> OwnerTools:
        """The tools of one owner."""
        servers, stores = self._servers.of(owner), self._stores.of(owner)
        choices, own, given = stores.settings, servers.may_start_programs, GivenFiles(stores)
        return OwnerTools(
            rules=Rules(choices),
            choices=ToolChoices(owner, choices, self._sealer),
            accounts=ToolAccounts(owner, choices, self._sealer),
            servers=servers,
            openapi=OwnerOpenApi(owner, choices, self._sealer, known=self._known, at_home=own, given=given),
            lent=OwnerLentTools(stores, self._lent, self._services_of, given),
            kept=lambda: stores.notes,
            installed=self._installed(own_network=own),
            interpreter=partial(self._interpreter, owner) if self._interpreter is not None else OwnerInterpreter,
        )

    def _services_of(self, lent: LentService) -> OwnerOpenApi:
        """The web services of whoever shares one: they reach as far as their owner may."""
        choices = self._stores.of(lent.lender_id).settings
        return OwnerOpenApi(lent.lender_id, choices, self._sealer, known=self._known, at_home=lent.keeps)

    def _installed(self, *, own_network: bool) -> dict[str, dict[str, Any]]:
        """The options of tools that nobody chooses on the page, by tool: here a setting of the administrator's goes."""
        folder = self._settings.skills
        return {
            **({name: {"folder": str(folder), "strict": False} for name in SKILLS} if folder else {}),
            **{name: {"own_network": own_network} for name in (*SEARCHING, *TOOL_SERVICES)},
        }

    async def wake(self) -> None:
        """Begin to start the servers of the owner of the machine, so that the first question need not wait for them."""
        await self._servers.wake()

    async def aclose(self) -> None:
        """End all servers."""
        await self._lent.aclose()
        await self._servers.aclose()


@dataclass(frozen=True, slots=True)
class OwnerTools:
    """The tools of one owner, and what was chosen about them. It holds nothing open, and costs nothing to make.

    Args:
        rules: When the owner is asked before a tool runs.
        choices: What the owner switched on and off, and which engine searches.
        accounts: With whose keys tools ask services; what needs one is left out without.
        servers: MCP servers.
        openapi: Services with an OpenAPI document.
        lent: Servers and services that others share.
        kept: Where the tool `storage` keeps notes.
        installed: Options that nobody chooses on the page, by tool.
        interpreter: How code is run now.
    """

    rules: Rules
    choices: ToolChoices
    accounts: ToolAccounts
    servers: OwnerMcpServers
    openapi: OwnerOpenApi
    lent: OwnerLentTools
    kept: Callable[[], NoteStore]
    installed: Mapping[str, Mapping[str, Any]]
    interpreter: Callable[[], OwnerInterpreter]

    @property
    def notes(self) -> OwnerNotes:
        """What the tool `storage` keeps."""
        return OwnerNotes(self.kept())

    async def for_model(
        self, conversation_id: str, *, small: bool = False, here: Mapping[str, bool] | None = None
    ) -> list[BaseTool]:
        """What a model is offered, by its name each once.

        A server that fails brings none and holds nothing up; what a tool needs and has not, leaves that tool out.

        Args:
            small: Whether it is a small model: then only what it can cope with, or was switched on by name.
            here: What is switched on or off in this conversation, by the full names of tools or of those who bring
                them (`mcp:<server>`); it outranks the owner's list.

        Raises:
            StorageError: The database failed.
        """
        chosen = here or {}
        names, on = await self._switched_on(chosen)
        if small:
            usual = {one.name for one in TOOL_REGISTRY.on_page() if one.small}
            names = [name for name in names if name in usual or name in on]
        skills = {"without": await self.skills_off(chosen)}
        own = await self._all_made(conversation_id, {name: skills if name in SKILLS else {} for name in names})
        brought = await self.servers.tools()
        brought += await self.openapi.tools(conversation_id)
        if conversation_id:  # what somebody shares is for its borrower, whom it asks, and not for her programs
            brought += await self.lent.tools(conversation_id)
        ours = {tool.name: tool for tool in own if tool is not None and getattr(tool, "skills", True)}
        wanted = [tool for tool in brought if is_wanted(tool.full_name, chosen)]
        others = [tool for tool in wanted if tool.name not in ours and tool.name != AskDocuments.name]
        found = [*ours.values(), *_apart(others)]
        return _fitting(found) if small else found

    async def on_here(self, here: Mapping[str, bool]) -> set[str]:
        """The names of Parlour's own tools that are on in a conversation; `here` is as of `for_model`.

        Raises:
            StorageError: The database failed.
        """
        return set((await self._switched_on(here))[0])

    async def skills_off(self, here: Mapping[str, bool]) -> list[str]:
        """The skills that are not used in a conversation; `here` is as of `for_model`. Raises StorageError."""
        whole = here.get("use_skill")
        if whole is None:
            off, _ = await self.choices.switched()
            whole = "use_skill" not in off
        listed = await self._made("", "use_skill", to_show=True) if "use_skill" in self.installed else None
        return [name for name in getattr(listed, "skills", ()) if not here.get(f"{SKILL}{name}", whole)]

    async def listed(self) -> list[ListedTool]:
        """All tools of the page, switched on or off. Raises StorageError."""
        off, on = await self.choices.switched()
        offered = self._on_page()
        made = await self._all_made("", {one.name: {} for one in offered}, to_show=True)
        are_on = [one.name not in off and (one.name in on or one.on) for one in offered]
        return [ListedTool(tool, one.name, on) for tool, one, on in zip(made, offered, are_on, strict=True)]

    async def switch(self, name: str, *, on: bool) -> None:
        """Offer a tool from the next question on, or no more.

        Raises:
            NotFoundError: key `tool_unknown`: Parlour brings no such tool.
            StorageError: The database failed.
        """
        if name not in {one.name for one in self._on_page()}:
            raise NotFoundError("There is no such tool.", key="tool_unknown")
        await self.choices.switch(name, on=on)

    async def secrets(self) -> list[str]:
        """Every key that the owner's tools are used with, for whoever must not repeat them. Raises StorageError."""
        found = await self.servers.secrets()
        found += await self.openapi.secrets()
        found += await self.lent.secrets()
        found += [(await self.accounts.of(name)).key for name in TOOL_SERVICES]
        return [*found, (await self.choices.shown_engine()).key]

    # ---- inside

    async def _switched_on(self, here: Mapping[str, bool]) -> tuple[list[str], set[str]]:
        """Parlour's own tools that are on in a conversation, in their order, and all that somebody switched on."""
        off, on = await self.choices.switched()
        if any(wanted for name, wanted in here.items() if name.startswith(SKILL)):
            here = {**here, "use_skill": True}
        off = {name for name in off if not here.get(name)} | {name for name, wanted in here.items() if not wanted}
        on = {*on, *(name for name, wanted in here.items() if wanted)} - off
        return [one.name for one in self._on_page() if one.name not in off and (one.name in on or one.on)], on

    def _on_page(self) -> list[PageTool]:
        """What the page offers here: skills, where there is a folder of them."""
        return [one for one in TOOL_REGISTRY.on_page() if one.name not in SKILLS or one.name in self.installed]

    async def _made(self, conversation_id: str, name: str, *, to_show: bool = False) -> BaseTool | None:
        (made,) = await self._all_made(conversation_id, {name: {}}, to_show=to_show)
        return made

    async def _all_made(
        self, conversation_id: str, wanted: Mapping[str, Mapping[str, Any]], *, to_show: bool = False
    ) -> list[BaseTool | None]:
        """Tools by their names, with their options and those of the conversation; one that fails is left out.

        They are made in a thread, for some look at files: all in one, for a change of threads costs more than most.
        `to_show` leaves out what the owner chose, such as a key that may not be there.
        """
        making: list[Callable[[], BaseTool | None]] = []
        for name, here in wanted.items():
            try:
                making.append(await self._maker(conversation_id, name, here, to_show=to_show))
            except ParlourError as error:
                _leave_out(name, error)
                making.append(_nothing)
        return await asyncio.to_thread(lambda: [_tried(name, make) for name, make in zip(wanted, making, strict=True)])

    async def _maker(
        self, conversation_id: str, name: str, here: Mapping[str, Any], *, to_show: bool
    ) -> Callable[[], BaseTool | None]:
        if name in {CODE, RUN_SKILL}:
            make = self.interpreter().make
            interpreter = make(conversation_id) if make is not None else None
            if name == CODE or interpreter is None:
                return lambda: interpreter
            return partial(_skill_runner, {**self.installed[RUN_SKILL], **here}, interpreter)
        if name == STORAGE:
            return partial(OwnerStorage, {"notes": self.kept()})
        chosen = {} if to_show else await self._chosen(name)
        if chosen is None:
            return _nothing
        return partial(TOOL_REGISTRY.made, name, {**self.installed.get(name, {}), **chosen, **here})

    async def _chosen(self, name: str) -> dict[str, Any] | None:
        """The options of a tool that the owner chose; `None` where it needs an account, and the owner has none."""
        if name in TOOL_SERVICES:
            account = await self.accounts.of(name)
            known = {"api_key": account.key, "base_url": account.address}
            return {**known, "model": account.model, "service": account.service} if account.usable else None
        if name in SEARCHING:
            engine = await self.choices.engine()
            return {"provider": engine.provider, "api_key": engine.key, "base_url": engine.address}
        return {}


def _nothing() -> None:
    return None


def _tried(name: str, make: Callable[[], BaseTool | None]) -> BaseTool | None:
    try:
        return make()
    except ParlourError as error:
        _leave_out(name, error)
        return None


def _leave_out(name: str, error: ParlourError) -> None:
    """Tell that a tool is missing; raises what is no fault of the tool's."""
    if isinstance(error, StorageError) and error.words_key != "key_unreadable":
        raise error
    _LOG.warning("The tool %s is left out: %s", name, error)


def _skill_runner(cfg: Mapping[str, Any], interpreter: BaseTool) -> BaseTool | None:
    """What runs the scripts of skills; `None` where none has any. Raises SettingsError."""
    from core.tools.builtin.skills import RunSkill

    runner = RunSkill(cfg, interpreter=cast("CodeInterpreter", interpreter))
    return runner if runner.has_scripts else None


def is_wanted(full_name: str, here: Mapping[str, bool]) -> bool:
    """Whether a tool of somebody else's may be used in a conversation: as said of the tool, else of who brings it."""
    return here.get(full_name, here.get(bringer(full_name), True))


def bringer(full_name: str) -> str:
    """Who brings a tool: `mcp:files` for `mcp:files:read`; "" for Parlour's own."""
    kind, _, rest = full_name.partition(":")
    return f"{kind}:{rest.partition(':')[0]}" if rest else ""


def _apart(tools: Iterable[BaseTool]) -> list[BaseTool]:
    """Tools under names that differ: models know little but letters, so names in Chinese may come to the same."""
    found: dict[str, BaseTool] = {}
    for tool in tools:
        name, number = tool.name, 2
        while name in found:
            end = f"_{number}"
            name, number = tool.name[: _LONGEST_NAME - len(end)] + end, number + 1
        found[name] = tool if name == tool.name else _named(tool, name)
    return list(found.values())


def _named(tool: BaseTool, name: str) -> BaseTool:
    other = copy(tool)
    other.name = name
    return other


def _fitting(tools: Iterable[BaseTool]) -> list[BaseTool]:
    """The first of them, as many as a small model can cope with."""
    found: list[BaseTool] = []
    room = _ROOM_FOR_SMALL
    for tool in tools:
        room -= len(json.dumps(tool.function, ensure_ascii=False))
        if room >= 0 and len(found) < MOST_FOR_SMALL:
            found.append(tool)
    return found
