"""Programs at the door: whose key is shown, what it may ask, and the replies, which no page shows."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from core.agents.conversation import call_id, language_of, this_turn, unanswered_calls, with_call_id
from core.agents.limits import Budget
from core.bridge.pool import BoundedDict
from core.bridge.watchdog import own_time
from core.doors.catalog import Catalog
from core.doors.guard import ClientTool, DoorGuard
from core.errors import LimitReachedError, ModelServiceError, NotFoundError, ParlourError
from core.llm.ledger import recorded_by
from core.llm.parameters import generate_of
from core.llm.request import ChatRequest
from core.messages.events import CallStarted, ItemAdded, MessageFinished, TextDelta, ToolFinished
from core.messages.marks import appended
from core.messages.message import FUNCTION, Message
from core.messages.transcript import Transcript
from core.people.people import forbidden
from core.reading.libraries import names_in
from core.runs.account import Account
from core.runs.begun import begun_in, without_broken
from core.runs.log import LoggedEvent, NestedEvent
from core.runs.nested_events import bare
from core.storage.base import LOCAL_OWNER
from core.storage.sealing import Sealer
from core.workspace.assistants import Steered
from core.workspace.steering import PERSONA

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.agents.base import Agent
    from core.agents.going_on import Begun
    from core.doors.asked import Asked
    from core.doors.catalog import Offered
    from core.doors.guard import Answered, Settled
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.messages.events import Event
    from core.messages.message import Usage
    from core.people.people import People
    from core.storage.api_keys import ApiKey
    from core.workspace.program import Program
    from core.workspace.services import Services
    from core.workspace.workspace import Workspace
    from core.workspace.workspaces import Workspaces

_LOG = logging.getLogger(__name__)
_REMEMBERED: Final = 200  # replies that wait for what tools of programs gave
_MOST_LETTERS: Final = 2_000_000


class Sink(Protocol):
    """Where the events of a reply go."""

    @property
    def full(self) -> bool:
        """Whether it has taken in so much that `drained` is to be waited for."""
        ...

    def take(self, event: Event) -> None:
        """Take in the next one."""
        ...

    async def drained(self) -> None:
        """Wait until there is room."""
        ...


class Handed(NamedTuple):
    """What there is of a reply of an agent that waits for what a program's tools give.

    Args:
        reply: Its messages.
        ids: The calls' own ids, by those that the program knows them by.
    """

    reply: tuple[Message, ...]
    ids: Mapping[str, str]


class Doors:
    """What the programs of all owners share.

    Args:
        services: What every workspace works with.
        program: A program's own agents, where they answer in the place of Parlour's assistant.
        people: Know whose programs may come in.

    Attributes:
        sealer: Seals what a program keeps for us.
        handed: Replies that wait for what a program's tools give, by the key and what the program knows the call by,
            which nobody else can guess. One that is forgotten is begun anew: its search is made again.
    """

    def __init__(self, services: Services, workspaces: Workspaces, program: Program | None, people: People) -> None:
        self.services = services
        self.workspaces = workspaces
        self.program = program
        self.people = people
        self.sealer = Sealer(services.settings.signing_secret())
        self.handed = BoundedDict[tuple[str, str], Handed](_REMEMBERED)
        self._late: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait until what was used is noted."""
        if self._late:
            await asyncio.wait(set(self._late), timeout=5.0)

    async def owner_of_key(self, shown: str, *, visitor: bool) -> Door | None:
        """What whoever shows a key may use; `None` where it is nobody's, or its owner may have no programs any more.

        Args:
            shown: The key.
            visitor: It came through a proxy or by an allowed name: there the owner of this machine has no key, for the
                assistant that answers may start that owner's programs.
        """
        key = await self.services.stores.api_keys.owner_of_key(shown)
        if key is None or (visitor and key.owner_id == LOCAL_OWNER) or not self.people.lets_programs_in(key.owner_id):
            return None
        return Door(self, key)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something be written down after a reply, which nobody waits for."""
        task = asyncio.ensure_future(_noted(work))
        self._late.add(task)
        task.add_done_callback(self._late.discard)


class Door:
    """What one key may use.

    Args:
        key: The one that was shown; its owner decides about everything.
    """

    def __init__(self, doors: Doors, key: ApiKey) -> None:
        self.doors = doors
        self.key = key
        self.owner = key.owner_id
        self.stores = doors.services.stores.of(key.owner_id)

    async def check_use(self) -> None:
        """Whether the owner may ask once more. Raises TooManyRequestsError, StorageError."""
        await self.doors.services.stores.use.check(self.owner)

    def opened(self) -> AbstractAsyncContextManager[Workspace]:
        """The owner's workspace, open for all of a request, so that it is made once. Raises StorageError."""
        return self.doors.workspaces.open(self.owner)

    async def models(self) -> list[Offered]:
        """What can be named as a model. Raises StorageError."""
        async with self.opened() as workspace:
            found = await Catalog(workspace, self.doors.program).all()
        return [one for one in found if self.key.may_use(one.id)]

    async def find(self, wanted: str) -> Offered:
        """What an id names. Raises NotFoundError; key `api_not_for`: the key may not use it."""
        async with self.opened() as workspace:
            return await self.found(workspace, wanted)

    def note(self, usage: Usage | None, *, questions: int = 0) -> None:
        """Add what a request took to the account of the key; `questions` counts towards its owner's limit of them."""
        self.doors.later(self.stores.api_keys.note_use(self.key.id, usage, questions=questions))

    async def found(self, workspace: Workspace, wanted: str) -> Offered:
        """The same, where the workspace is open. Raises as `find`."""
        if not self.key.may_use(wanted):
            raise not_for(wanted)
        return await Catalog(workspace, self.doors.program).find(wanted)


def not_for(wanted: str) -> NotFoundError:
    """The refusal of a key that is for other models and agents; it tells nobody whether there is this one."""
    said, hint = f"This key is not for {wanted!r}.", "GET /v1/models lists what it is for."
    return NotFoundError(said, hint=hint, key="api_not_for", model=wanted)


class Answer:
    """A reply to one question; it is made by one task, and ends with it.

    Args:
        asked: The question.
        documents: Files that came with it: it is answered from these alone.
        decided: What the program answered to questions about calls; the reply goes on where it asked.
        settled: What it answered in earlier responses.
        inside: What agents that are tools had done for the calls with which it goes on.
        may_ask: Whether the program answers such questions.

    Attributes:
        events: What happened.
        account: What its model calls took.
        reason: Why it ended.
        earlier: What there was of the reply already, where it goes on.
    """

    def __init__(  # noqa: PLR0913 - the question, and by name what few have
        self,
        door: Door,
        asked: Asked,
        *,
        documents: bool = False,
        decided: Sequence[Answered] | None = None,
        settled: Sequence[Settled] = (),
        inside: Sequence[LoggedEvent] = (),
        may_ask: bool = False,
    ) -> None:
        self.door = door
        self.asked = asked
        self.events: list[Event] = []
        self.account = Account()
        self.reason = "stop"
        self.lang: Lang = language_of(asked.messages)
        self.earlier: tuple[Message, ...] = ()
        self.guard: DoorGuard | None = None
        self.offered: Offered | None = None
        self._documents = documents
        self._decided = decided
        self._settled = settled
        self.inside = list(inside)
        self._may_ask = may_ask
        self._ids: dict[str, str] = {}
        self._open: set[str] = set()
        self._letters = 0
        self._is_turn_over = False
        self._is_handed = False
        self._task: asyncio.Task[Any] | None = None
        self.seconds = door.doors.services.settings.reply_seconds

    async def run(self, sink: Sink) -> None:
        """Make the reply; its events go to `sink`. Being cancelled ends the model and the tools.

        Raises:
            TooManyRequestsError: Too many replies of the owner wait for their turn already, or a limit is reached.
            NotFoundError: There is no such model.
            LimitReachedError: It took too long, or cost too much.
            ParlourError: The model or a document cannot be had, or the reply failed.
        """
        self._task = asyncio.current_task()
        await self.door.check_use()
        slot = self.door.doors.services.runs.at_once.take(self.door.owner)
        try:
            await slot.wait()
            with recorded_by(self.account):
                async with own_time(self.seconds):
                    await self._pump(sink)
        except TimeoutError as error:
            text = f"The reply has taken {round(self.seconds / 60)} minutes and was ended."
            raise LimitReachedError(text, hint="Ask for less.", key="time_limit") from error
        except asyncio.CancelledError:
            if not self._is_handed or self._task is None or self._task.uncancel() > 0:
                raise
            self.reason = "calls"
        finally:
            slot.release()
            self.door.doors.later(self._count())

    def messages(self) -> list[Message]:
        """The reply, without what there was of it already."""
        return Transcript(self.events).messages()

    def remember(self) -> None:
        """Keep what there is of a reply of an agent until the results of the program's own tools are there."""
        if self.guard is None or not self.guard.handed:
            return
        kept, key = self.door.doors.handed, self.door.key.id
        ids = {**self._ids, **{known: own for own, known in self.guard.handed.items()}}
        handed = Handed((*self.earlier, *self.messages()), ids)
        for own, known in self.guard.handed.items():
            if own != known or (key, known) in kept:  # an id that the program made up may be that of another reply
                kept[key, known] = handed

    async def _count(self) -> None:
        usage = await self.account.usage()
        await self.door.stores.api_keys.note_use(self.door.key.id, usage, questions=1)

    async def _pump(self, sink: Sink) -> None:
        async with (
            self.door.opened() as workspace,
            self._speaking(workspace) as stream,
            aclosing(stream) as events,
        ):
            keep, take = self.events.append, sink.take
            async for event in events:
                keep(event)
                if type(event) is TextDelta:
                    self._letters += len(event.text)
                else:
                    self._follow(event)
                take(appended(event))
                if sink.full:
                    await sink.drained()
                if self.door.doors.people.is_gone(self.door.owner):  # nothing more is asked or kept for nobody
                    raise forbidden()
                if self._letters > _MOST_LETTERS:
                    raise LimitReachedError("The reply became too long.", hint="Ask for less.", key="length_limit")

    def _follow(self, event: Event) -> None:
        match event:
            case CallStarted(begun, _):
                self._open.add(begun)
                self._is_turn_over = False
            case ToolFinished(done, _):
                self._open.discard(done)
                self.inside = [one for one in self.inside if _outermost(one) != done]  # it is over
                self._look()
            case MessageFinished(reason, _, _):
                self.reason = reason
                self._is_turn_over = True
            case _:
                pass

    def _look(self) -> None:
        """End the reply where nothing is left to do but what the program does."""
        guard = self.guard
        waits = guard is not None and bool(guard.waiting) and self._open <= guard.waiting
        if waits and self._is_turn_over and not self._is_handed and self._task is not None:
            self._is_handed = True
            self._task.cancel()

    @asynccontextmanager
    async def _speaking(self, workspace: Workspace) -> AsyncGenerator[AsyncGenerator[Event, None]]:
        """The reply as it is made. Raises ParlourError."""
        offered = self.offered = await self.door.found(workspace, self.asked.model)
        if self.door.doors.program is not None and offered.kind == "agent":
            services, documents = workspace.services, await _documents(workspace)
            async with self.door.doors.program.outside(services, documents, offered.place) as agent:
                await self._guarded(workspace)
                own = copy(agent)
                yield self._of_agent(workspace, own, own)
            return
        loader = await workspace.models.loader(offered.model)
        with loader.in_use():
            model = await loader.ready()
            try:
                if offered.kind == "model" and not self._documents:
                    yield self._of_model(model)
                else:
                    async with self._assistant(workspace, offered, model) as (agent, steered):
                        yield self._of_agent(workspace, agent, steered)
            except ModelServiceError as error:
                loader.failed(error)
                raise
            loader.answered()

    def _of_model(self, model: BaseChatModel) -> AsyncGenerator[Event, None]:
        asked = self.asked
        generate = {**asked.generate, "function_choice": asked.choice} if asked.tools else dict(asked.generate)
        request = ChatRequest(
            tuple(asked.messages),
            tuple(map(dict, asked.tools)),
            generate,
            self.lang,
            answers_calls=True,
            must_fit=not asked.may_shorten,
        )
        return model.stream(request)

    def _of_agent(self, workspace: Workspace, agent: Agent, speaker: Any) -> AsyncGenerator[Event, None]:
        """The reply of an agent, with its own tools and the program's."""
        messages, kwargs = [*self.asked.messages], dict[str, Any]()
        known = self._known(messages)
        if known or self._decided is not None:
            kwargs["may_have_run"] = frozenset[str]()  # it goes on: what was found before counts on
            messages = known or messages
            self.earlier = self.earlier or tuple(this_turn(messages))
            self._open |= {call_id(one) for one in unanswered_calls(messages)}
            if self.guard is not None:  # what was handed before is known to the program already
                self.guard.known |= {one: one for one in self._open} | {own: known for known, own in self._ids.items()}
            self._is_turn_over = True  # these calls are made first
            kwargs["begun"] = self._begun(agent, unanswered_calls(messages))
        kwargs["inside"] = self._note_inside
        tools = {tool.name: tool for tool in map(ClientTool, self.asked.tools)}
        agent.function_map = {**agent.function_map, **tools}
        agent.extra_generate_cfg = {**agent.extra_generate_cfg, **self.asked.generate}
        if tools and self.asked.choice != "auto":
            agent.extra_generate_cfg["function_choice"] = self.asked.choice
        cost = workspace.services.installation.reply_cost
        if cost is not None:
            kwargs["budget"] = Budget(cost)
        return speaker.stream(messages, approval=self.guard, lang=self.lang, **kwargs)

    def _begun(self, agent: Agent, waiting: Sequence[Message]) -> dict[str, Begun]:
        """What agents that are tools had done for calls that are made now; it is not asked about again."""
        tools = {call_id(one): agent.function_map.get(one.function_call.name) for one in waiting if one.function_call}
        calls = {one for one, tool in tools.items() if tool is not None and tool.goes_on}
        self.inside = [one for one in without_broken(self.inside, calls) if _outermost(one) in calls]
        found = begun_in(self.inside, calls, parked=True)
        if self.guard is not None:
            self.guard.forget(found)
        return found

    def _note_inside(self, calls: tuple[str, ...], event: Event) -> None:
        if self._may_ask and not isinstance(event, ItemAdded):  # else nothing goes on from it
            self.inside.append(LoggedEvent(len(self.inside) + 1, 0.0, NestedEvent(calls, bare(event))))

    def _known(self, messages: Sequence[Message]) -> list[Message]:
        """The conversation, with all that there was of a reply that was handed to the program; empty for another."""
        turn = this_turn(messages)
        results = [one for one in turn if one.role == FUNCTION]
        for one in reversed(results):
            handed = self.door.doors.handed.get((self.door.key.id, call_id(one)))
            if handed is not None:
                before, self._ids = handed.reply, dict(handed.ids)
                answered = {call_id(each) for each in before if each.role == FUNCTION}
                own = [with_call_id(each, self._ids.get(call_id(each), call_id(each))) for each in results]
                self.earlier = (*before, *(each for each in own if call_id(each) not in answered))
                return [*messages[: len(messages) - len(turn)], *self.earlier]
        return []

    @asynccontextmanager
    async def _assistant(
        self, workspace: Workspace, offered: Offered, model: BaseChatModel
    ) -> AsyncGenerator[tuple[Agent, Any]]:
        """Parlour's assistant as it answers a program; over a model alone it has neither tools nor instructions."""
        from core.agents.assistant import Assistant  # brings the document readers with it

        services = workspace.services
        most = services.installation.max_iteration
        async with AsyncExitStack() as opened:
            if offered.kind == "model":
                agent = Assistant([], model, "", max_iteration=most)
                await self._guarded(workspace)
                yield agent, agent
                return
            draft = {PERSONA: offered.persona.as_dict()} if offered.persona is not None else {}
            steering = await services.steering.of_draft(draft)
            own = {str(one["name"]) for one in self.asked.tools}
            given = await services.tools.for_model("", small=model.small, here=steering.tools)
            tools = [one for one in given if not one.runs_code and one.name not in own]
            more: dict[str, Any] = {}
            if not self._documents:
                wanted = offered.persona.level.libraries if offered.persona is not None else ()
                documents = await _documents(workspace, wanted) if steering.uses_documents else {}
                library = await opened.enter_async_context(services.index_for(documents, documents))
                more = {"library": library, "documents": [*documents]}
            agent = Assistant(tools, model, max_iteration=most, **more)
            agent.extra_generate_cfg = generate_of(steering.parameters, model.efforts)
            await self._guarded(workspace)
            yield agent, Steered(agent, steering)

    async def _guarded(self, workspace: Workspace) -> None:
        policy = workspace.rules.policy
        self.guard = DoorGuard(
            await policy(),
            policy,
            parked=self._look,
            given=self._decided,
            before=self._settled,
            may_ask=self._may_ask,
        )


def _outermost(one: LoggedEvent) -> str:
    return one.event.calls[0] if isinstance(one.event, NestedEvent) else ""


async def _documents(workspace: Workspace, libraries: Sequence[str] = ()) -> dict[str, list[str]]:
    """The documents of these of the owner's libraries, or of all, by their ids in the index: what each is called."""
    known = {one.id for one in await workspace.libraries.list()}
    wanted = [one for one in libraries if one in known] or ([] if libraries else list(known))
    return names_in([await workspace.libraries.opened(one) for one in wanted])


async def _noted(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except ParlourError as error:
        _LOG.warning("What a program used could not be noted: %s", error)
