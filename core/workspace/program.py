"""A program's own agents as those who answer in workspaces: what `WebUI(agent).run()` opens."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext, suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from core.agents.base import Agent
from core.agents.going_on import goes_on
from core.agents.hub import MultiAgentHub, UserAgent
from core.agents.protocol import nested_agents
from core.bridge.pool import BoundedDict
from core.errors import NotFoundError, SettingsError
from core.export.redaction import keys_inside
from core.llm.base import BaseChatModel
from core.mcp.settings import ServerSettings
from core.messages.computed import own_message
from core.messages.content import ContentItem
from core.messages.message import USER
from core.storage.data_folder import drafted
from core.storage.files import harmless_name
from core.storage.sealing import in_address, in_arguments, secrets_in_pairs
from core.workspace.addressed import last_reply, meant, mentioned_first, waiting_group
from core.workspace.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping

    from core.llm.request import ChatRequest, Stream
    from core.messages.message import Message
    from core.rag.attached import Attached
    from core.rag.library import Library
    from core.storage.base import StoredMessage
    from core.tools.base import BaseTool
    from core.workspace.services import OwnerServices
    from core.workspace.workspace import Workspace

_CHOSEN = "agents"  # the name of an owner's setting: {conversation: agent}
_LEFT = "groups_left"  # and of another: {conversation: the reply of a group that waited when an agent was chosen}
_BEGUN = 2_000  # owners whose untouched conversation is given again
_REMEMBERED = 500  # conversations whose agent was chosen, of one owner


class Program:
    """Given agents, who answer in place of Parlour's assistant; an async context manager.

    An agent answers with its own model and its own tools; what a tool may do is asked on the page as ever. One
    without a model is lent the one of Parlour's settings, unless its reply is code of its own (`_run`). A plain
    assistant without files of its own answers from the documents of the conversation; any other agent finds
    them as files of the question.

    Args:
        agents: Those who answer; the first one, until another is chosen.
        mention: Whether `@name` in a question turns to the agent of that name.
        beginning: What every new conversation begins with.
        at_once: How many replies are written at the same time; no limit if left out.
        options: What the agents are called with, besides what every reply has.

    Raises:
        SettingsError: There is no agent, two have the same name, or one is no agent.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        *,
        mention: bool = False,
        beginning: Sequence[Message] = (),
        at_once: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if at_once is not None and at_once < 1:
            raise SettingsError(f"concurrency_limit is at least 1, not {at_once!r}.")
        self.agents = tuple(agents)
        self.names = named(self.agents)
        self.mention = mention
        self.beginning = tuple(beginning)
        self.options = dict(options or {})
        self.turns = asyncio.Semaphore(at_once) if at_once is not None else nullcontext()
        self.brings_model = self.agents[0].llm is not None or _is_code(self.agents[0])
        self._begun = BoundedDict[str, str](_BEGUN)
        self._folder = Path()  # set while it is open

    async def __aenter__(self) -> Self:
        """Make a folder for the copies of files that agents are given."""
        self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="parlour-files-"))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Forget the copies."""
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    @property
    def model(self) -> BaseChatModel | None:
        """The model to get ready: the first agent's, none at all, or (`None`) the one of the settings."""
        agent = self.agents[0]
        return _Nobody({"model": agent.name or type(agent).__name__}) if _is_code(agent) else agent.llm

    @property
    def goes_on(self) -> bool:
        """Whether a reply of theirs can be taken up after the results of its calls: what is code begins all over."""
        return all(map(goes_on, self.agents))

    @property
    def says_once(self) -> bool:
        """Several of them may speak in one reply."""
        return False

    # ---- who answers

    @asynccontextmanager
    async def inside(self, services: OwnerServices, conversation_id: str, model: BaseChatModel) -> AsyncGenerator[Any]:
        """Who answers in a conversation. Raises NotFoundError."""
        conversation = Conversation(services, conversation_id)
        thread = await conversation.stores.conversations.thread(conversation_id)
        usual, waits = await self._who(conversation, thread)
        async with services.within_reach(conversation_id) as (library, documents):
            attached = partial(services.intake.attached, conversation_id)
            lent = partial(_placed, model=model, library=library, documents=documents, attached=attached)
            yield _Guest(self, conversation, partial(self._meant, usual=usual, waits=waits), lent)

    async def read_ahead(self, model: BaseChatModel) -> None:
        """Nothing: what a program's agents tell their models is known when they are asked."""

    @asynccontextmanager
    async def outside(
        self, services: OwnerServices, documents: Mapping[str, Sequence[str]], place: int = 0
    ) -> AsyncGenerator[Any]:
        """Who answers an owner's other programs; what would be asked about is refused there.

        Args:
            documents: What each is called, by its id in the index.
            place: Which agent, from 0.
        """
        model = await (await services.models.loader()).ready()
        async with services.index_for(documents, documents) as library:
            yield _placed(self.agents[place], model, library, [*documents])

    async def label(
        self,
        services: OwnerServices,
        conversation_id: str,
        thread: Sequence[StoredMessage],
        asked: Sequence[Message],
        model: str,
    ) -> str:
        """What the model is called that answers a question; of agents that lead others, all of theirs.

        Args:
            thread: What came before the question, or the question at its end.
            asked: Messages with the question at their end.
            model: What the one is called that an agent is lent which brings none.
        """
        usual, waits = await self._who(Conversation(services, conversation_id), thread)
        agent = self.agents[self._meant(asked, usual=usual, waits=waits)]
        return " + ".join(dict.fromkeys(_labels(agent, model)))

    async def answering(self, conversation: Conversation, thread: Sequence[StoredMessage]) -> int:
        """The place of the agent that the next question goes to unless it mentions another, from 0."""
        usual, waits = await self._who(conversation, thread)
        return usual if waits is None else waits

    async def chosen(self, conversation: Conversation) -> int | None:
        """The place of the agent that was chosen for a conversation, from 0; `None` where none was."""
        name = (await self._set(conversation, _CHOSEN)).get(conversation.id)
        return self.names.index(name) if name in self.names else None

    async def _set(self, conversation: Conversation, name: str) -> dict[str, Any]:
        found = await conversation.stores.settings.get(name, {})
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    async def _who(self, conversation: Conversation, thread: Sequence[StoredMessage]) -> tuple[int, int | None]:
        """The places of who answers a question that mentions nobody, and of the group that waits for one."""
        usual = await self.chosen(conversation)
        if usual is None:  # who was asked first
            first = next((one.parts[0] for one in thread if one.role == "user" and one.parts), None)
            usual = (mentioned_first(first, self.names) if self.mention else None) or 0
        last = last_reply(thread)
        waits = waiting_group(self.agents, last, usual)
        if waits is None or last is None:
            return usual, None
        left = (await self._set(conversation, _LEFT)).get(conversation.id) == last.id
        return usual, None if left else waits

    def _meant(self, messages: Sequence[Message], *, usual: int, waits: int | None) -> int:
        return meant(self.agents, self.names if self.mention else (), messages, usual, waits)

    async def choose(self, conversation: Conversation, place: int) -> None:
        """Let another agent answer a conversation from its next question on.

        Raises:
            NotFoundError: There is no such agent, or the conversation is not the owner's.
        """
        if not 0 <= place < len(self.names):
            raise NotFoundError("There is no such agent.", kind="agent")
        last = last_reply(await conversation.stores.conversations.thread(conversation.id))

        def changed(value: str, chosen: object) -> dict[str, str]:
            kept = dict(cast("dict[str, str]", chosen)) if isinstance(chosen, dict) else {}
            kept.pop(conversation.id, None)
            kept[conversation.id] = value
            return dict(list(kept.items())[-_REMEMBERED:])

        if last is not None and waiting_group(self.agents, last, place) not in {None, place}:
            await conversation.stores.settings.change(_LEFT, partial(changed, last.id))
        await conversation.stores.settings.change(_CHOSEN, partial(changed, self.names[place]))
        conversation.services.changed(conversation.id)

    # ---- what every conversation begins with

    async def begun(self, workspace: Workspace) -> Conversation:
        """A conversation that only has what every one begins with; an untouched one is given again."""
        owner, conversations = workspace.owner, workspace.stores.conversations
        waiting = self._begun.get(owner, "")
        with suppress(NotFoundError):
            if waiting and len(await conversations.thread(waiting)) == len(self.beginning):
                return workspace.conversation(waiting)
        fresh = workspace.conversation((await conversations.create()).id)
        await self.begin(fresh)
        self._begun[owner] = fresh.id
        return fresh

    async def begin(self, conversation: Conversation) -> None:
        """Put what every conversation begins with into a new one. Raises NotFoundError."""
        parent: str | None = None
        for message in self.beginning:
            role = "user" if message.role == USER else "assistant"
            stored = await conversation.stores.conversations.add_message(
                conversation.id, role, [own_message(message)], parent
            )
            parent = stored.id

    # ---- what the agents have

    def own_tools(self) -> list[BaseTool]:
        """The tools that the program has given its agents and those that these lead or can call, by full name once."""
        every = [*self.agents, *(one for agent in self.agents for one in nested_agents(agent))]
        found = (tool for one in every for tool in getattr(one, "function_map", {}).values())
        return list({tool.full_name: tool for tool in found}.values())

    async def secrets(self) -> list[str]:
        """Every key that the program has given its agents, for whoever must not repeat them; the same for all."""
        every = [*self.agents, *(one for agent in self.agents for one in nested_agents(agent))]
        models = [model for one in every if (model := getattr(one, "llm", None)) is not None]
        tools = self.own_tools()
        found = keys_inside([*(one.cfg for one in models), *(one.cfg for one in tools)])
        found += [key for one in models for key in in_address(str(one.cfg.get("model_server") or ""))]
        for server in (getattr(one, "settings", None) for one in tools):
            if isinstance(server, ServerSettings):
                pairs = [*server.revealed("env").items(), *server.revealed("headers").items()]
                found += [*secrets_in_pairs(pairs), *in_address(server.url or ""), *in_arguments(server.args)]
        return list(dict.fromkeys(found))

    async def path_of(self, conversation: Conversation, file_id: str, name: str) -> Path | None:
        """A file of the conversation's owner under its own name; `None` where it is gone."""
        try:
            async with conversation.stores.files.local(file_id) as (_, path):
                return await asyncio.to_thread(named_copy, path, self._folder / file_id, name)
        except NotFoundError:
            return None


class _Guest:
    """The agents, in one conversation."""

    def __init__(
        self,
        house: Program,
        conversation: Conversation,
        meant: Callable[[Sequence[Message]], int],
        lent: Callable[[Agent], Agent],
    ) -> None:
        self._house = house
        self._conversation = conversation
        self._meant = meant
        self._lent = lent

    async def stream(self, messages: list[Message], **kwargs: Any) -> Stream:
        """The reply as events, of the agent that is meant."""
        agent = self._lent(self._house.agents[self._meant(messages)])
        if not _answers_from_library(agent):
            messages = [await self._with_files(message) for message in messages]
        async with self._house.turns, aclosing(agent.stream(messages, **{**self._house.options, **kwargs})) as events:
            async for event in events:
                yield event

    async def _with_files(self, message: Message) -> Message:
        """A question with its documents as files of this machine; pictures and sounds it has already."""
        about = cast("list[dict[str, Any]]", (message.extra or {}).get("files") or [])
        names = {str(one["id"]): str(one["name"]) for one in about if one.get("kind") == "document"}
        if message.role != USER or not names:
            return message
        paths = [await self._house.path_of(self._conversation, file_id, name) for file_id, name in names.items()]
        files = [ContentItem(file=str(path)) for path in paths if path is not None]
        return message.model_copy(update={"content": [*message.items, *files]})


class _Nobody(BaseChatModel):
    """Stands where a model stands, for an agent whose reply is code alone."""

    model_type = "none"
    in_process = True

    async def _stream(self, request: ChatRequest) -> Stream:
        del request
        raise SettingsError("This agent has no model.", hint="Pass llm=...", key="model_not_named")
        yield  # pyright: ignore[reportUnreachable] - makes it a generator


def agents_of(given: Agent | Sequence[Agent] | MultiAgentHub) -> tuple[Agent, ...]:
    """The agents that a program hands over: one, several, or those of a hub that is no agent itself.

    Raises:
        SettingsError: There is no agent, two have the same name, or one is no agent.
    """
    if isinstance(given, MultiAgentHub) and not isinstance(given, Agent):
        given = given.nonuser_agents
    agents = tuple(given) if isinstance(given, Sequence) else (given,)
    named(agents)
    return agents


def named(agents: Sequence[object]) -> tuple[str, ...]:
    """What the agents are called, each differently."""
    if not agents:
        raise SettingsError("There is no agent to serve.", hint="Write WebUI(agent) or WebUI([agent, ...]).")
    names: list[str] = []
    for agent in agents:
        if not isinstance(agent, Agent):
            raise SettingsError(f"This is no agent: {agent!r}.", hint="Pass an Agent, or a list of them.")
        name = agent.name or type(agent).__name__
        if name in names:
            raise SettingsError(f"Two agents are named {name!r}.", hint="Give each a name of its own.")
        names.append(name)
    return tuple(names)


def _is_code(agent: Agent) -> bool:
    """Whether it has no model and its reply is made by code of its own, which may need none."""
    own = (cls for cls in type(agent).__mro__ if cls is not Agent and {"_run", "_stream_reply"} & set(vars(cls)))
    first = next(own, Agent)
    return agent.llm is None and "_run" in vars(first) and "_stream_reply" not in vars(first)


def _labels(agent: Agent, lent: str) -> list[str]:
    """What the models are called that may write a reply of an agent: its own, and those of the members that it leads.

    Args:
        lent: What the one is called that an agent is given which brings none.
    """
    if isinstance(agent, UserAgent):
        return []
    if _is_code(agent):
        return [_Nobody({"model": agent.name or type(agent).__name__}).label]
    own = [agent.llm.label if agent.llm is not None else lent]
    if not isinstance(agent, MultiAgentHub):
        return own
    led = [label for one in agent.agents for label in _labels(one, lent)]
    return [*own, *led] if agent.calls_tools else led or own  # a group's own model only picks who speaks


def _placed(
    agent: Agent,
    model: BaseChatModel,
    library: Library | None,
    documents: Collection[str],
    attached: Callable[[], Awaitable[Sequence[Attached]]] | None = None,
) -> Agent:
    """The agent, with what it lacks: a model, and the documents of the conversation."""
    from core.agents.assistant import Assistant  # brings the document readers with it

    own = agent
    if agent.llm is None and not _is_code(agent):
        own = copy(agent)
        own.llm = model
    return own.over(library, documents, attached) if isinstance(own, Assistant) else own


def _answers_from_library(agent: Agent) -> bool:
    from core.agents.assistant import Assistant

    return isinstance(agent, Assistant) and agent.has_library


def named_copy(source: Path, folder: Path, name: str) -> Path:
    """The file under the name it came with, as far as a file system takes it; made once."""
    target = folder / harmless_name(name)
    if not target.is_file():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with drafted(target, lasts=False) as draft:
            shutil.copyfile(source, draft)
    return target
