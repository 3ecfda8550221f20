"""A session in a file: its replies are runs, with their log, so that one outlives a crash and waits for a person."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from core.agents.asking import Asking
from core.agents.reply import Logged, Reply, ReplyFold
from core.agents.session import Session, check_decision, nothing_to_resume
from core.bridge.cancellation import run_to_end
from core.bridge.sync import on_loop
from core.errors import ConflictError, LimitReachedError, ParlourError, SettingsError
from core.messages.events import CallStarted, ToolFinished
from core.messages.message import USER
from core.messages.transcript import Transcript
from core.runs.lease import seems_held
from core.runs.log import ApprovalAsked, ApprovalGiven, LoggedEvent, RunFinished, message_events
from core.runs.manager import Runs
from core.runs.resumable import ResumableRun
from core.runs.resume import events_to_continue
from core.runs.run import Beginning, RunOptions
from core.storage.base import LOCAL_OWNER
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.tools.approval import ApprovalRequest, Decision, Guard, Policy, decided_by
from core.tools.run_state import out_of_time

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from core.agents.mapping import Question
    from core.agents.protocol import ExtensibleAgent
    from core.messages.events import Event
    from core.messages.message import Message
    from core.runs.manager import OwnerRuns
    from core.runs.run import Run
    from core.storage.base import Lease, RunRecord, StoredMessage
    from core.tools.approval import Ask, Reason

T = TypeVar("T")
_WAITS: Final = 30 * 86_400.0  # seconds until a question that nobody answers is a no
_A_DAY: Final = 86_400.0
_NOT_GIVEN: Final = ("ask_user", "budget", "enough")  # what is for a page


class _Answerer:
    """The agent, as a run calls it; what it failed with is kept, for whoever asked."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self.error: BaseException | None = None

    async def stream(self, messages: list[Message], **given: Any) -> AsyncGenerator[Event, None]:
        """The reply as events."""
        asking = self._asking
        asking.asked = messages
        asking.approval = given.pop("approval")
        asking.options |= {name: value for name, value in given.items() if name not in _NOT_GIVEN}
        try:
            async with aclosing(asking.events()) as events:
                async for event in events:
                    yield event
        except Exception as error:
            self.error = error
            raise


class StoredSession(Session):
    """A session in an SQLite file, which several sessions may share; any process may go on with one.

    It belongs to the loop that it was opened on; synchronous calls from elsewhere are made there.
    """

    def __init__(
        self, agent: ExtensibleAgent, name: str, approval: Guard | Policy | Ask | None, store: Path | None
    ) -> None:
        super().__init__(agent, name, approval, store)
        if store is None:
            raise SettingsError("A session in a file needs its path.", hint='Write session(store="talks.db").')
        self._path = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._database: Database | None = None
        self._thread: list[StoredMessage] = []
        self._live: tuple[Run, Asking, _Answerer] | None = None
        self._left: tuple[RunRecord, Lease] | None = None
        self._log: Sequence[LoggedEvent] = ()
        self._decisions: dict[str, Decision] = {}
        self._opening = asyncio.Lock()  # noqa: TID251 - opening awaits the file: a second task must not open it as well
        self._policy, self._ask = _approval(approval)

    # -- what there is ------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The conversation so far; a reply that is not over yet is not in it."""
        self._stores()
        return [part for turn in self._thread if turn.status != "running" for part in turn.parts]

    @property
    def waiting(self) -> list[ApprovalRequest]:
        """The calls that wait for a decision."""
        self._stores()
        log = self._live[0].log.since() if self._live is not None else self._log
        return [_request(one) for one in _waiting(log) if one.call_id not in self._decisions]

    async def aopen(self) -> None:
        """Open the file, or make it, and read the conversation.

        Raises:
            StorageError: It cannot be used.
        """
        self._loop = self._loop or asyncio.get_running_loop()
        await self._here(self._open)

    async def aclose(self) -> None:
        """Close the file; a reply that waits for a decision waits on."""
        if self._database is not None:
            await self._here(self._close)

    async def adecide(self, call_id: str, allowed: bool, arguments: Mapping[str, Any] | None = None) -> None:  # noqa: FBT001 - as `decide`
        """Let a call that waits be made, or not. Raises as `Session.decide`."""
        check_decision(call_id, allowed, arguments)
        await self._here(lambda: self._decide(call_id, Decision(allowed is True, arguments)))

    async def aresume(self, **options: Any) -> Reply[Any]:
        """The reply that waits or was broken off, to its end. Raises as `Session.resume`."""
        return await self._here(lambda: self._resume(options))

    async def _answered(self, question: Question, options: Mapping[str, Any]) -> Reply[Any]:
        return await self._here(lambda: self._asked(question, options))

    async def _event_stream(
        self, question: Question, options: Mapping[str, Any], whole: list[Any] | None = None
    ) -> AsyncGenerator[Event, None]:
        await self.aopen()
        if asyncio.get_running_loop() is not self._loop:
            said = "The events of a session can be read on the loop alone that it was opened on."
            raise SettingsError(said, hint="Write `async with agent.session(...)` there.")
        live = await self._started(question, options)
        async with aclosing(self._followed(live)) as logged:
            async for one in logged:
                for event in message_events([one]):
                    yield event
        if whole is not None:
            whole.append(await self._reply(live))

    # -- on its loop --------------------------------------------------------------------------------------------------

    async def _here(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self._loop = self._loop or asyncio.get_running_loop()
        return await on_loop(self._loop, make)

    def _stores(self) -> tuple[Stores, OwnerRuns, str]:
        if self._database is None:
            said = "The session is not open."
            raise SettingsError(said, hint="Write `with agent.session(...) as session:`.")
        return self._all, self._runs.of(LOCAL_OWNER), self._id

    async def _open(self) -> None:
        async with self._opening:
            if self._database is not None:
                return
            database = await Database.open(self._path)
            try:
                await self._begin_with(database)
            except BaseException:
                self._database = None
                await run_to_end(database.aclose())
                raise

    async def _begin_with(self, database: Database) -> None:
        self._all = Stores(database, self._path.with_name(f"{self._path.name}.files"), Sealer(self._path.name))
        self._runs = Runs(self._all)
        mine, key = self._all.of(LOCAL_OWNER), f"session {self.name}"
        await mine.conversations.ensure_owner()
        known: str = await mine.settings.get(key, "")
        if not known:
            fresh = (await mine.conversations.create()).id
            known = await mine.settings.change(key, lambda there: there or fresh)
        self._id, self._database = known, database
        await self._read()

    async def _close(self) -> None:
        database, self._database = self._database, None
        await self._runs.aclose()
        self._live = None
        if database is not None:
            await database.aclose()

    async def _read(self) -> None:
        """The conversation, and what is left of a reply that nobody writes any more."""
        stores, runs, conversation = self._stores()
        self._thread = list(await stores.of(LOCAL_OWNER).conversations.thread(conversation))
        running = [one for one in await stores.runs.running() if one[0].conversation_id == conversation]
        self._left = next(iter(running), None)
        self._log = await runs.events(running[0][0].id, whole=True) if running else ()

    async def _asked(self, question: Question, options: Mapping[str, Any]) -> Reply[Any]:
        await self._open()
        return await self._to_the_end(await self._started(question, options))

    def _asking(self, question: Question, options: Mapping[str, Any]) -> Asking:
        _check_options(options)
        return super()._asking(question, options)

    async def _started(self, question: Question, options: Mapping[str, Any]) -> tuple[Run, Asking, _Answerer]:
        if self._live is not None or self._left is not None:
            await self._free()
        asking = self._asking(question, options)
        new = asking.asked[len(self.messages) :]
        if len(new) != 1:
            said = f"A question to a session is one message, not {len(new)}."
            raise SettingsError(said, hint='Write session.ask("…").', name="question")
        parent = self._thread[-1].id if self._thread else None
        return await self._begun(asking, user=new[0], parent_id=parent, beginning=Beginning())

    async def _begun(
        self, asking: Asking, *, user: Message | None, parent_id: str | None, beginning: Beginning
    ) -> tuple[Run, Asking, _Answerer]:
        _, runs, conversation = self._stores()
        answerer, terms, history = _Answerer(asking), self._terms(asking), list(asking.asked)
        run = await runs.start(
            conversation,
            answerer,
            user=user,
            parent_id=parent_id,
            history=history,
            model=self.agent.llm.label if self.agent.llm is not None else "",
            beginning=beginning,
            terms=terms,
        )
        self._live = run, asking, answerer
        return self._live

    def _terms(self, asking: Asking) -> RunOptions:
        """What the run may do; the time that it waits for a person does not count."""
        limits = asking.state.meter.limits
        asking.state.meter.limits = replace(limits, seconds=None)
        return RunOptions(self._policy, seconds=limits.seconds or _A_DAY, asked_for=_WAITS)

    async def _free(self) -> None:
        """The conversation, for a new question: what a crash left is closed. Raises ConflictError where it waits."""
        if self._live is not None and self._live[0].log.closed:  # whoever asked left before its end
            self._live = None
        if self._live is None:
            await self._read()
        if self._live is not None or _waiting(self._log):
            said = "A reply of this session waits for a decision, or is being written."
            raise ConflictError(said, hint="Call session.decide(...) and session.resume().", key="busy")
        left = await self._take_left()
        if left is not None:  # in the middle of a call: a new question takes the place of going on
            await self._runs.interrupt(left.record, left.lease)
        await self._read()

    async def _take_left(self) -> ResumableRun | None:
        """What can go on of what a dead process left; what cannot is closed. Raises ConflictError."""
        if self._left is None:
            return None
        if seems_held(self._left[1]):  # whoever is wrong about that by a clock is refused by the epoch of the run
            said = "This reply belongs to another process that is writing it."
            raise ConflictError(said, hint="Wait for it.", key="elsewhere")
        found = ResumableRun.of(*self._left, self._log)
        if found is None:
            await self._runs.interrupt(*self._left)
        return found

    async def _decide(self, call_id: str, decision: Decision) -> None:
        await self._open()
        if self._live is not None:
            await self._live[0].questions.decide(call_id, decision)
        elif any(one.call_id == call_id for one in self.waiting):
            self._decisions[call_id] = decision
        else:
            raise ConflictError(f"No call {call_id!r} waits for a decision.", key="already_decided")

    async def _resume(self, options: Mapping[str, Any]) -> Reply[Any]:
        await self._open()
        if self._live is not None:
            return await self._to_the_end(self._live)
        await self._read()
        left = await self._take_left()
        if left is None:
            await self._read()
            return await self._to_the_end(await self._continued(options))
        _, runs, _ = self._stores()
        asking = self._again(options, left.messages())
        answerer = _Answerer(asking)
        run = await runs.resume(left, answerer, history=list(asking.asked), terms=self._terms(asking))
        self._live, self._left = (run, asking, answerer), None
        for call_id in [one.call_id for one in run.questions.open if one.call_id in self._decisions]:
            await run.questions.decide(call_id, self._decisions.pop(call_id))
        return await self._to_the_end(self._live)

    async def _continued(self, options: Mapping[str, Any]) -> tuple[Run, Asking, _Answerer]:
        """Another reply to the last question, that begins with what there is of the one that broke off."""
        last = self._thread[-1] if self._thread else None
        if last is None or (last.role == "assistant" and last.status == "complete"):
            raise nothing_to_resume()
        if last.role == "user":
            return await self._begun(self._again(options, ()), user=None, parent_id=last.id, beginning=Beginning())
        _, runs, _ = self._stores()
        kept = events_to_continue(await runs.events(last.run_id, whole=True)) if last.run_id else []
        after_calls = bool(kept) and isinstance(kept[-1].event, ToolFinished)
        self._thread.pop()  # the new reply stands in its place
        said = Transcript(message_events(kept)).messages() if after_calls else ()
        beginning = Beginning(kept if after_calls else (), may_have_run=frozenset() if after_calls else None)
        return await self._begun(self._again(options, said), user=None, parent_id=last.parent_id, beginning=beginning)

    def _again(self, options: Mapping[str, Any], said: Sequence[Message]) -> Asking:
        """The last question, asked once more, with what was said to it."""
        _check_options(options)
        thread = self.messages
        asking = Asking.of(self.agent, thread[-1:], {**options, "history": thread[:-1]})
        asking.asked = [*asking.asked, *said]
        return asking

    # -- to its end ---------------------------------------------------------------------------------------------------

    async def _to_the_end(self, live: tuple[Run, Asking, _Answerer]) -> Reply[Any]:
        async with aclosing(self._followed(live)) as logged:
            async for _ in logged:
                pass
        return await self._reply(live)

    async def _followed(self, live: tuple[Run, Asking, _Answerer]) -> AsyncGenerator[LoggedEvent, None]:
        """What happens in the run, until it is over or waits for decisions alone. Leaving early stops it."""
        run, waits, asked = live[0], False, False
        try:
            async with aclosing(run.log.follow()) as log:
                async for one in log:
                    yield one
                    # The log is followed from its beginning: some questions in it are decided.
                    if isinstance(one.event, ApprovalAsked) and _still_waits(one.event, run):
                        await self._decide_now(one.event, run)
                    asked = asked or isinstance(one.event, ApprovalAsked)
                    if asked and one.seq == len(run.log):  # whatever was logged last: others write beside a question
                        so_far = run.log.since()
                        waits, asked = _only_waits(so_far), bool(_waiting(so_far))
                        if waits:
                            break
        finally:
            if not waits and not run.log.closed:
                await run_to_end(run.stop())

    async def _decide_now(self, asked: ApprovalAsked, run: Run) -> None:
        """What was decided before a guard asks again, after a restart; else whoever is there decides."""
        decision = self._decisions.pop(asked.call_id, None)
        if decision is None and self._ask is not None:
            decision = await decided_by(self._ask, _request(asked))
        if decision is not None:
            await run.questions.decide(asked.call_id, decision)

    async def _reply(self, live: tuple[Run, Asking, _Answerer]) -> Reply[Any]:
        run, asking, answerer = live
        folded = ReplyFold(_up_to_question(asking.asked))
        for one in run.log.since():
            folded.apply(Logged(one.seq, one.at, one.event))
        if not run.log.closed:
            made = replace(asking.reply(), messages=folded.reply().messages, asked=folded.asked, log=tuple(folded.log))
            return replace(made, stop_reason="approval", waiting=self.waiting)
        asking.folded = folded
        self._live = None
        await self._read()
        if answerer.error is not None and run.status != "stopped":
            if isinstance(answerer.error, LimitReachedError):
                answerer.error.reply = asking.reply()
            raise answerer.error
        if run.status in {"error", "paused"}:
            raise _failed(run, asking)
        if run.status == "complete":
            return await asking.finished()
        return replace(asking.reply(), stop_reason="stopped" if run.status == "stopped" else "interrupted")


def _approval(given: Guard | Policy | Ask | None) -> tuple[Policy, Ask | None]:
    """The rules, and who is asked; without who, what is asked about waits for `decide`."""
    if given is None:
        return Policy("never"), None
    if isinstance(given, Policy):
        return given, None
    guard = Guard.of(given)
    if type(guard) is not Guard:  # its own way of deciding would not be heard
        said = f"approval of a session in a file cannot be {type(guard).__name__}."
        raise SettingsError(said, hint="Give a Policy, a function that decides, or Guard(policy, function).")
    return guard.policy, guard.asks


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises SettingsError where one question is to be decided about by somebody else."""
    if options.get("approval") is not None:
        said = "A session in a file has one approval for all its questions, since others may decide about them later."
        raise SettingsError(said, hint="Write agent.session(..., approval=...).", name="approval")


def _request(asked: ApprovalAsked) -> ApprovalRequest:
    reason, addresses = cast("Reason", asked.reason), tuple(asked.addresses)
    return ApprovalRequest(asked.call_id, asked.name, asked.arguments, reason, asked.wants, addresses)


def _waiting(log: Sequence[LoggedEvent]) -> list[ApprovalAsked]:
    """The questions that wait, in order."""
    asked: dict[str, ApprovalAsked] = {}
    for one in log:
        match one.event:
            case ApprovalAsked():
                asked[one.event.call_id] = one.event
            case ApprovalGiven() | ToolFinished():
                asked.pop(one.event.call_id, None)
            case RunFinished():
                asked.clear()
            case _:
                continue
    return list(asked.values())


def _still_waits(asked: ApprovalAsked, run: Run) -> bool:
    return any(one.call_id == asked.call_id for one in _waiting(run.log.since()))


def _only_waits(log: Sequence[LoggedEvent]) -> bool:
    """Whether every call that has no result waits for a decision."""
    begun = {one.event.call_id for one in log if isinstance(one.event, CallStarted)}
    over = {one.event.call_id for one in log if isinstance(one.event, ToolFinished)}
    waits = {one.call_id for one in _waiting(log)}
    return bool(waits) and begun - over <= waits


def _up_to_question(asked: list[Message]) -> list[Message]:
    """The conversation without what a resumed run goes on with: that is part of its reply."""
    last = max((at for at, one in enumerate(asked) if one.role == USER), default=len(asked) - 1)
    return asked[: last + 1]


def _failed(run: Run, asking: Asking) -> ParlourError:
    """What the run itself ended with."""
    about = run.error or {}
    if about.get("key") == "time_limit":
        error = out_of_time(run.seconds)
        error.reply = asking.reply()
        return error
    return ParlourError(str(about.get("message", "The reply failed.")), hint=str(about.get("hint", "")))
