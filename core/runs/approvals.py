"""Questions to the user, for approval or input: asked in the run's log, where they outlive page and process."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from uuid import uuid4

from core.bridge.sync import on_loop
from core.errors import BadArgumentsError, ConflictError, NotFoundError
from core.mcp.forms import form_of
from core.messages.events import CallStarted
from core.runs.log import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven
from core.tools.approval import Decision, Guard, asked_within
from core.tools.taint import Taint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from core.messages.message import Message
    from core.runs.log import InputWhy, LoggedEvent, RunLog
    from core.tools.approval import ApprovalRequest, Policy, Why
    from core.tools.base import BaseTool


_LOG = logging.getLogger(__name__)

ASKED_FOR = 600.0
_Place: TypeAlias = "tuple[str, tuple[str, ...]]"


@dataclass(slots=True)
class _Open:
    """A question that waits."""

    asked: ApprovalAsked
    answer: asyncio.Future[Decision]
    timer: asyncio.TimerHandle | None = None
    heard: bool = False  # whether the call waits for it here
    verify: Callable[[dict[str, Any]], None] | None = None  # the tool's own check of arguments


class Questions:
    """The questions of one run.

    A decision is in the table before its tool starts: killed in between, the process does not ask again for what may
    have been done.

    Args:
        log: Where they are asked and answered.
        keep: Waits until the log is in the table.
        waiting: Told whether the run waits for the user, each time that changes.
        within: Seconds until silence counts as a refusal.
    """

    def __init__(
        self,
        log: RunLog,
        keep: Callable[[], Awaitable[None]],
        waiting: Callable[[bool], None],
        *,
        within: float = ASKED_FOR,
    ) -> None:
        self._log = log
        self._keep = keep
        self._waiting = waiting
        self._within = within
        self._open: dict[str, _Open] = {}
        self._answered: dict[_Place, _Open] = {}  # those whose calls have not come back for the answer
        self._always: set[str] = set()
        self._releasing: set[asyncio.Task[None]] = set()

    def restore(self, earlier: Sequence[LoggedEvent], calls: Iterable[str], *, lasting: bool = True) -> None:
        """Take up what was asked before the process died, with what is left of its time.

        Args:
            earlier: The run's events so far.
            calls: Those calls that have no result yet.
            lasting: Whether what was let run unasked then still is; else the rules say that.
        """
        last: dict[str, ApprovalAsked] = {}
        given: dict[_Place, tuple[ApprovalAsked, ApprovalGiven | None]] = {}
        for one in earlier:
            if isinstance(one.event, ApprovalAsked):
                last[one.event.call_id] = one.event
                given[_place(one.event)] = one.event, None  # an answer was that to another question
            elif isinstance(one.event, ApprovalGiven) and (asked := last.get(one.event.call_id)) is not None:
                given[_place(asked)] = asked, one.event
                if lasting and one.event.always:
                    self._always.add(asked.name)
        still = set(calls)
        for place, (asked, answer) in given.items():
            if place[0] not in still or (answer is None and asked is not last[place[0]]):
                continue
            if answer is None:
                self._await(asked)
                continue
            question = self._answered[place] = _Open(asked, asyncio.get_running_loop().create_future())
            question.answer.set_result(Decision(answer.allowed, answer.arguments, cast("Why", answer.why)))

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked something."""
        return bool(self._open)

    @property
    def open(self) -> list[ApprovalAsked]:
        """What the user is being asked."""
        return [one.asked for one in self._open.values()]

    def asked(self, call_id: str, within: Sequence[str] = ()) -> ApprovalAsked | None:
        """What was asked about the call, or one within it, before; where that has not been told the answer."""
        place = call_id, tuple(within)
        question = self._open.get(call_id)
        if question is None or _place(question.asked) != place:
            question = self._answered.get(place)
        return question.asked if question is not None else None

    async def answer(
        self, call_id: str, within: Sequence[str] = (), verify: Callable[[dict[str, Any]], None] | None = None
    ) -> Decision:
        """Wait for the answer to what was asked; cancelled, it is no question any more.

        Args:
            verify: The tool's own check, as `check` makes it.
        """
        question = self._answered.pop((call_id, tuple(within)), None) or self._open[call_id]
        question.heard, question.verify = True, verify
        try:
            return await question.answer
        finally:
            if self._open.get(call_id) is question:
                self._take_back(call_id)

    def drop(self, call_id: str, within: Sequence[str] | None = None) -> None:
        """Forget what was asked about a call, and within it: it needs no answer any more.

        Args:
            within: Forget what was asked about that one alone.
        """
        for place in [one for one in self._answered if one[0] == call_id]:
            if within is None or place[1] == tuple(within):
                del self._answered[place]
        question = self._open.get(call_id)
        if question is not None and (within is None or _place(question.asked)[1] == tuple(within)):
            self._take_back(call_id)

    def check(self, call_id: str, decision: Decision) -> None:
        """Hold arguments that the user edited against what the tool takes, while the question can still be answered.

        Raises:
            BadArgumentsError: They do not fit; the question stays.
        """
        question = self._open.get(call_id)
        if question is None or question.verify is None or not decision.allowed or decision.arguments is None:
            return
        try:
            question.verify(dict(decision.arguments))
        except BadArgumentsError:
            raise
        except Exception:  # noqa: BLE001 - a tool's own code; whoever makes the call says what is wrong with it
            _LOG.exception("The arguments of %s could not be checked.", question.asked.name)

    async def ask(
        self,
        asking: ApprovalRequest,
        full_name: str,
        within: Sequence[str] = (),
        verify: Callable[[dict[str, Any]], None] | None = None,
    ) -> Decision:
        """Put a question to the user and wait; cancelled, it is no question any more. `verify` is as of `answer`."""
        asked = ApprovalAsked(
            asking.call_id,
            full_name,
            dict(asking.arguments),
            asking.reason,
            dict(asking.wants),
            list(asking.addresses),
            time.time() + self._within,
            list(within),
        )
        while not (asked.may_be_always and full_name in self._always):
            asked = replace(asked, until=time.time() + self._within)
            self._take_back(asked.call_id)  # what was asked within it is asked again when its turn comes
            self._log.append(asked)
            self._await(asked)
            decision = await self.answer(asked.call_id, within, verify)
            if not decision.allowed or decision.why != "rule":
                return decision
            # Let go by "always" for another call: taken back since, that is no answer any more.
        return Decision(allowed=True, why="rule")

    async def decide(self, call_id: str, decision: Decision, *, always: bool = False) -> ApprovalAsked:
        """Answer a question; the first answer counts. Returns when it is in the table.

        Args:
            always: Whether the tool may run unasked from now on; left aside where that cannot be promised.

        Returns:
            What was asked.

        Raises:
            ConflictError: key `already_decided`: it is answered, or needs no answer any more.
            NotFoundError: There is no such call.
        """
        question = self._take_back(call_id)
        if question is None:
            raise self._too_late(call_id)
        asked = question.asked
        if decision.allowed and always and asked.may_be_always:
            self._always.add(asked.name)
            alike = [one for one in self._open.values() if one.asked.name == asked.name and one.asked.may_be_always]
            for other in alike:
                self._take_back(other.asked.call_id)
                self._settle(other, Decision(allowed=True, why="rule"))
            await self._settle(question, decision, always=True)
        else:
            await self._settle(question, decision)
        return asked

    def ask_again(self, tool: str) -> None:
        """Forget that a tool, by its full name, runs unasked in this run."""
        self._always.discard(tool)

    def close(self) -> None:
        """The run is over: nothing is asked any more."""
        for call_id in list(self._open):
            question = self._take_back(call_id)
            if question is not None:
                question.answer.cancel()

    def _await(self, asked: ApprovalAsked) -> _Open:
        loop = asyncio.get_running_loop()
        question = _Open(asked, loop.create_future())
        question.timer = loop.call_later(max(0.0, asked.until - time.time()), self._expire, asked.call_id)
        self._open[asked.call_id] = question
        self._waiting(True)  # noqa: FBT003 - the one thing it is told
        return question

    def _take_back(self, call_id: str) -> _Open | None:
        question = self._open.pop(call_id, None)
        if question is not None:
            if question.timer is not None:
                question.timer.cancel()
            if not self._open:
                self._waiting(False)  # noqa: FBT003 - the one thing it is told
        return question

    def _expire(self, call_id: str) -> None:
        question = self._take_back(call_id)
        if question is not None:
            self._settle(question, Decision(allowed=False, why="timeout"))

    def _settle(self, question: _Open, decision: Decision, *, always: bool = False) -> asyncio.Future[None]:
        """Log an answer, and let the call go on as soon as that is in the table."""
        if not question.heard:
            self._answered[_place(question.asked)] = question
        edited = dict(decision.arguments) if decision.allowed and decision.arguments is not None else None
        call_id = question.asked.call_id
        self._log.append(ApprovalGiven(call_id, decision.allowed, edited, decision.why, always))
        # A task of its own: whoever decided may close the page meanwhile.
        task = asyncio.create_task(self._release(question, replace(decision, arguments=edited)))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
        return asyncio.shield(task)

    async def _release(self, question: _Open, decision: Decision) -> None:
        await self._keep()
        if not question.answer.done():
            question.answer.set_result(decision)

    def _too_late(self, call_id: str) -> ConflictError | NotFoundError:
        started = (one.event for one in self._log.since() if isinstance(one.event, CallStarted))
        if not any(event.call_id == call_id for event in started):
            return NotFoundError("There is no such call.", kind="call")
        return already_decided()


def _place(asked: ApprovalAsked) -> _Place:
    """The call that the user sees, and those within it down to the one that is asked about."""
    return asked.call_id, tuple(asked.within)


class RunGuard(Guard):
    """Stands before the calls of a run and asks its user, on the loop of the run: agents may work on another one.

    Args:
        questions: Where the user is asked; without them what would be asked is refused.
        rules: Reads the rules anew.
        noted: Waits until the call is in the table, where another process would read that it may have run.
        noted_within: The same for calls of agents that are tools: these go on by what is in the table.
        unasked: Why it is refused then.
    """

    def __init__(
        self,
        policy: Policy,
        questions: Questions | None,
        rules: Callable[[], Awaitable[Policy]] | None = None,
        noted: Callable[[], Awaitable[None]] | None = None,
        noted_within: Callable[[], Awaitable[None]] | None = None,
        unasked: Why = "unattended",
    ) -> None:
        super().__init__(policy, self._put if questions is not None else None)
        self._read = rules
        self._noted = noted
        self._noted_within = noted_within
        self._questions = questions
        self._unasked = unasked
        self._tools: dict[str, BaseTool] = {}
        self._inside: dict[str, tuple[str, ...]] = {}  # of what is asked within a call, the calls down to it
        self._loop = asyncio.get_running_loop()

    async def decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        """Decide about one call; what was asked of it before the process died is not asked again.

        Unless a rule has decided meanwhile, or tool or arguments are no longer what was asked about.
        """
        self._inside[call_id] = asked_within()
        return await on_loop(self._loop, lambda: self._settled(tool, call_id, arguments, messages))

    async def _settled(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        decision = await self._decide(tool, call_id, arguments, messages)
        noted = self._noted_within if self._inside.get(call_id) else self._noted
        if decision.allowed and noted is not None and not tool.idempotent:
            await noted()
        return decision

    async def _decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        self._tools[call_id] = tool
        questions, within = self._questions, self._inside.get(call_id, ())
        asked = questions.asked(call_id, within) if questions is not None else None
        if questions is not None and asked is not None:
            if await self._still_holds(asked, tool, arguments):
                decision = await questions.answer(call_id, within, tool.verify)
                if not decision.allowed or await self._still_holds(asked, tool, arguments):
                    return decision
            questions.drop(call_id, within)
        decision = await super().decide(tool, call_id, arguments, messages)
        return replace(decision, why=self._unasked) if decision.why == "unattended" else decision

    async def rules(self) -> Policy:
        """The rules as they are now."""
        if self._read is not None:
            self.policy = await self._read()
        return self.policy

    async def _still_holds(self, asked: ApprovalAsked, tool: BaseTool, arguments: Mapping[str, Any]) -> bool:
        verdict = (await self.rules()).verdict(tool, arguments, Taint())
        now = tool.full_name, {lang: tool.wants(arguments, lang) for lang in ("en", "zh")}
        # Functions of the program's may have made other arguments of the same call this time.
        alike = asked.name == now[0] and dict(asked.arguments) == json.loads(json.dumps(dict(arguments)))
        return verdict != "refuse" and alike and (not tool.changed or asked.wants == now[1])

    async def _put(self, asking: ApprovalRequest) -> Decision:
        if self._questions is None:
            return Decision(allowed=False, why="unattended")
        tool, within = self._tools[asking.call_id], self._inside.get(asking.call_id, ())
        return await self._questions.ask(asking, tool.full_name, within, tool.verify)


def with_allowances(policy: Policy, tools: Iterable[str]) -> Policy:
    """The same rules, and these tools (by full names) let run in the chat."""
    return replace(policy, lasting=(*policy.lasting, *tools))


def already_decided() -> ConflictError:
    """Somebody was quicker, or the call is over."""
    return ConflictError("This question is already answered, or its call is over.", key="already_decided")


_LARGEST = 64 * 1024  # characters of a schema as it is kept


@dataclass(slots=True)
class _OpenInput:
    asked: InputAsked
    answer: asyncio.Future[Mapping[str, Any] | None]
    why: InputWhy = "over"


class Inputs:
    """The forms of one run. What is typed into them goes to the server, and is not kept.

    Args:
        waiting: Told when the run begins to wait for the user, or does so no more.
        within: Seconds until silence counts as a no.
    """

    def __init__(self, log: RunLog, waiting: Callable[[bool], None], *, within: float = ASKED_FOR) -> None:
        self._log = log
        self._waiting = waiting
        self._within = within
        self._open: dict[str, _OpenInput] = {}
        self._closed = False
        self._loop = asyncio.get_running_loop()

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked something."""
        return bool(self._open)

    async def ask(self, call_id: str, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user and wait, from whichever loop; cancelled, nobody is asked any more.

        Args:
            call_id: The call during which the server asks.
            schema: A flat JSON Schema of an object.

        Returns:
            The values by name; `None` for a no, for silence, and for what cannot be shown as a form.
        """
        return await on_loop(self._loop, lambda: self._ask(call_id, server, message, schema))

    async def _ask(self, call_id: str, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        if self._closed or form_of(schema) is None or len(str(schema)) > _LARGEST:
            return None
        asked = InputAsked(call_id, uuid4().hex, server, message, schema, time.time() + self._within)
        question = _OpenInput(asked, asyncio.get_running_loop().create_future())
        self._open[asked.input_id] = question
        self._log.append(asked)
        self._waiting(True)  # noqa: FBT003 - the one thing it is told
        try:
            async with asyncio.timeout(self._within):
                given = await question.answer
        except TimeoutError:
            question.why = "timeout"
            return None
        finally:
            self._open.pop(asked.input_id, None)
            self._log.append(InputGiven(call_id, asked.input_id, question.why))
            if not self._open:
                self._waiting(False)  # noqa: FBT003 - the one thing it is told
        return None if given is None else dict(given)

    def give(self, input_id: str, values: Mapping[str, Any] | None) -> None:
        """Answer one; the first answer counts. `None` is a no.

        Raises:
            ConflictError: key `already_decided`: nobody waits for it any more.
        """
        question = self._open.pop(input_id, None)
        if question is None or question.answer.done():
            raise already_decided()
        question.why = "declined" if values is None else "answered"
        question.answer.set_result(values)

    def close(self) -> None:
        """The run is over: nothing is asked any more."""
        self._closed = True
        for question in self._open.values():
            question.answer.cancel()


class Resting:
    """Lets a run go that has waited for its user for a while and does nothing else.

    Args:
        after: Seconds; `None` for never.
        until: Says when silence becomes an answer, in Unix seconds; `None` while something else is done.
        rest: Lets it go.

    Attributes:
        until: When silence becomes an answer to a run that was let go.
    """

    def __init__(self, after: float | None, until: Callable[[], float | None], rest: Callable[[], None]) -> None:
        self._after = after
        self._until = until
        self._rest = rest
        self._timer: asyncio.TimerHandle | None = None
        self.until: float | None = None

    @property
    def begun(self) -> bool:
        """Whether it is let go: what is said to the run from now on is for the process that goes on with it."""
        return self.until is not None

    def stand(self, waiting: bool) -> None:  # noqa: FBT001 - the one thing it is told
        """The run begins to wait for its user, or does so no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if waiting and self._after is not None and not self.begun:
            self._timer = asyncio.get_running_loop().call_later(self._after, self._look)

    def _look(self) -> None:
        until = self._until()
        if until is None:
            self.stand(waiting=True)
        else:
            self.until = until
            self._rest()
