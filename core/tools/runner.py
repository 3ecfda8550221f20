"""Runs the calls of one turn: at the same time, each with a deadline; whatever goes wrong becomes a result.

No call is made before its guard, where there is one, has decided about it. Equal calls of a turn are made once.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from core.bridge.cancellation import ProgramEnd, contained, result_for_all
from core.errors import BadArgumentsError, ParlourError, ToolError, ToolTimeoutError, UnknownNameError, ended
from core.languages import spoken
from core.messages.events import Event, ToolFinished, ToolStarted
from core.messages.message import FUNCTION, Message
from core.observing import record, span
from core.tools.approval import ApprovalFailedError, Decision, Guarded, OneQuestion, guard_for, under
from core.tools.arguments import ArgumentText, read_arguments
from core.tools.base import BaseTool
from core.tools.of_documents import mark_of_documents
from core.tools.results import as_message, as_result, exit_refused, failure, refusal, with_note
from core.tools.run_context import RETRIES, ModelRetry, OwnFunctionError
from core.tools.run_state import RunState, state_of
from core.tools.taint import mark_of_stranger
from core.tools.threads import ProgressReporter, ToolThreads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
    from types import TracebackType

    from core.languages import Lang
    from core.messages.message import FunctionCall
    from core.tools.approval import Guard
    from core.tools.base import ToolResult


def call_fingerprint(call: Message, tools: Mapping[str, BaseTool]) -> str:
    """The same text for calls that are the same, whatever the order of their arguments; "" where each is made.

    Only a tool that says so itself (`deduplicate`) is asked once for many, and never where it would change something.
    """
    requested = call.function_call
    tool = tools.get(requested.name) if requested is not None else None
    if requested is None or tool is None or not tool.deduplicate or tool.runs_code:
        return ""
    try:
        arguments = read_arguments(requested.arguments)
        tool.verify(arguments)
        if tool.changes(arguments) or tool.destroys(arguments):
            return ""
        return json.dumps([requested.name, arguments], sort_keys=True)
    except Exception:  # a tool's own code; whoever makes the call says what is wrong with it
        return ""


async def same_result(call_id: str, made: asyncio.Task[ToolFinished]) -> ToolFinished:
    """The result of a call that was made, as that of another one."""
    await asyncio.wait({made})
    message = made.result().message
    extra = {**(message.extra or {}), "function_id": call_id}
    return ToolFinished(call_id, message.model_copy(update={"extra": extra}))


class Credentials:
    """The checks of one turn; what was found good counts for as long as the tool lives.

    Args:
        threads: Where checks run that are plain functions.
    """

    _good: ClassVar[WeakSet[BaseTool]] = WeakSet()

    def __init__(self, threads: ToolThreads) -> None:
        self._threads = threads
        self._checks: dict[int, asyncio.Task[None]] = {}

    async def check(self, tool: BaseTool) -> None:
        """Check the tool's credentials unless that was done.

        Raises:
            SettingsError: They are missing or refused; the next call tries again.
        """
        if type(tool).validate_credentials is BaseTool.validate_credentials or tool in self._good:
            return
        check = self._checks.get(id(tool))
        if check is None or (check.done() and tool not in self._good):
            check = self._checks[id(tool)] = asyncio.create_task(self._checked(tool))
        await result_for_all(check)

    def close(self) -> None:
        """Call off what is still being checked."""
        for check in self._checks.values():
            check.cancel()

    async def _checked(self, tool: BaseTool) -> None:
        credentials = tool.credentials
        with contained():
            try:
                if inspect.iscoroutinefunction(tool.validate_credentials):
                    await tool.validate_credentials(credentials)
                else:
                    found = await self._threads.run(lambda: tool.validate_credentials(credentials), name=tool.name)
                    if inspect.isawaitable(found):
                        await found
            except SystemExit as error:
                raise exit_refused(tool.name) from error
        self._good.add(tool)


_log = logging.getLogger(__name__)

_OURS = f"{__package__}.builtin."
_OUR_FILES = str(Path(__file__).resolve().parents[1])  # of the library
_GRACE = 1.0  # seconds that a cancelled tool has to tidy up
_AT_ONCE = 16  # calls of one turn
# The conversation of a caller that does not tell it: anything may have been in it.
_UNTOLD = (Message(FUNCTION, "", name="untold"),)
_THREADS = ToolThreads(limit=64)  # one bound for the process: places, not a client; no thread exists until one is used


class ToolRunner:
    """Runs tools for a model.

    Args:
        tools: The tools by the names a model knows them by.
        guard: Decides about every call, besides the guard of whatever it all runs within; without either the tools
            run as they are called.
        deadline: Seconds for each call; `None` leaves each tool its own `timeout`. Nobody's answer counts towards it.
        limit: Bytes of text that a model is shown of one result; a longer one is cut to its two ends.
        at_once: Calls that may work at the same time; the others wait.
    """

    def __init__(
        self,
        tools: Mapping[str, BaseTool],
        *,
        guard: Guard | None = None,
        deadline: float | None = None,
        limit: int = 64 * 1024,
        at_once: int = _AT_ONCE,
    ) -> None:
        self._tools = tools
        self._guard = guard
        self._deadline = deadline
        self._limit = limit
        self._at_once = at_once

    async def run(self, calls: Sequence[Message], *, cut_off: bool = False, **context: Any) -> AsyncGenerator[Event]:
        """Run the calls. A `ToolStarted` comes when a tool really starts, a `ToolFinished` as each call is done.

        A call that is refused, or cannot be made, is finished without having started; so is one whose result another
        of the same turn brings, where both ask the same of a tool with `deduplicate`. Leaving early cancels what still
        works or waits to be allowed.

        Args:
            calls: Messages with a `function_call`, and `extra["function_id"]`.
            cut_off: Whether the reply ended in the middle: a call that is not whole is then never mended and run.
            context: Handed to those tools whose `call` takes it: `messages`, `lang`, `files` … `progress` is called
                with the call's id, a text, what is done and the total; a tool's own `progress` goes without the id.
                A tool that names `approval` is given the guard that decides about whatever it calls, as part of its
                own call; agents that it asks are guarded without it, too.
        """
        turn = _Turn(context, cut_off, asyncio.Semaphore(self._at_once), guard_for(self._guard))
        tasks = self._begun(calls, turn)
        try:
            left = len(tasks)
            while left:
                event = await turn.events.get()
                if isinstance(event, ProgramEnd):
                    raise event
                if isinstance(event, asyncio.Task):
                    left -= 1
                    yield event.result()
                else:
                    yield event
        finally:
            turn.credentials.close()
            await _close(tasks)

    def _begun(self, calls: Sequence[Message], turn: _Turn) -> list[asyncio.Task[ToolFinished]]:
        tasks: list[asyncio.Task[ToolFinished]] = []
        made: dict[str, asyncio.Task[ToolFinished]] = {}
        for call in calls:
            asks = "" if turn.cut_off or len(calls) == 1 else call_fingerprint(call, self._tools)
            if asks and asks in made:
                task = asyncio.create_task(same_result(_call_id(call), made[asks]))
            else:
                task = made[asks] = asyncio.create_task(self._finished(call, turn))
            task.add_done_callback(turn.finished)
            tasks.append(task)
        return tasks

    async def _finished(self, call: Message, turn: _Turn) -> ToolFinished:
        requested = call.function_call
        if requested is None:
            raise ValueError("A message without a function call cannot be run.")
        own = self._tools.get(requested.name)
        about: dict[str, Any] = {"function_id": _call_id(call), **mark_of_stranger(own)}
        try:
            with contained():
                result = await self._result(call, requested, turn, about)
        except (ApprovalFailedError, OwnFunctionError):  # no tool failed: the program around it did, and learns of it
            raise
        except Exception as error:  # a tool's own code: whatever it raises is its call's result, and the others go on
            _note(requested.name, error)
            result = failure(requested.name, error)
        about |= mark_of_documents(own, result)
        limit = self._limit if own is None or own.longest is None else own.longest
        return ToolFinished(_call_id(call), as_message(requested.name, result, limit, **about))

    async def _result(self, call: Message, requested: FunctionCall, turn: _Turn, about: dict[str, Any]) -> ToolResult:
        """What comes of one call. Arguments that somebody or a hook changed go into `about`."""
        tool = self._named(requested.name)
        if turn.cut_off and (call.extra or {}).get("unreadable"):
            raise BadArgumentsError("The reply was cut off in the middle of this call.")
        if (run := state_of(turn.context)) is not None and run.attempts[tool.name] > _retries(tool):
            raise ToolError(f"{tool.name!r} had its last try before: answer without it.", tool=tool.name)
        arguments = read_arguments(requested.arguments)
        tool.verify(arguments)
        written, arguments = arguments, await self._changed(tool, arguments, _call_id(call), turn)
        await tool.prepare_call(arguments)
        decision = await self._decided(tool, _call_id(call), arguments, turn)
        if decision.allowed is not True:
            return _refused(tool, decision, turn)
        arguments = _as_edited(tool, decision, arguments, about)
        is_late = turn.places.locked()
        async with turn.places:
            if is_late and decision.why != "user":  # what let it run may have been taken back while others worked
                decision = await self._decided(tool, _call_id(call), arguments, turn)
                if decision.allowed is not True:
                    return _refused(tool, decision, turn)
                arguments = _as_edited(tool, decision, arguments, about)
            is_edited = "arguments" in about
            if arguments is not written:  # the call of the transcript is the one that is made
                about["arguments"] = json.loads(json.dumps(arguments, default=str))
            turn.events.put_nowait(ToolStarted(_call_id(call)))
            with _observed(tool, _call_id(call), arguments):
                result = await self._hooked(tool, arguments, _call_id(call), turn)
        return with_note(result, arguments, turn.lang) if is_edited else result

    async def _changed(self, tool: BaseTool, arguments: dict[str, Any], call_id: str, turn: _Turn) -> dict[str, Any]:
        """The arguments as the program's functions want them, before anybody decides about the call."""
        run = state_of(turn.context)
        if run is None or not run.hooks.before_tool:
            return arguments
        given = json.loads(json.dumps(arguments))  # a hook may change what it is given
        changed = await run.before_tool(tool.name, call_id, given)
        if repr(changed) == repr(arguments):  # not `==`, for which True is 1
            return arguments
        tool.verify(changed)
        return changed

    async def _hooked(self, tool: BaseTool, arguments: dict[str, Any], call_id: str, turn: _Turn) -> ToolResult:
        """The call, with the program's functions after it; what its tool gives the program is kept."""
        run = state_of(turn.context)
        if run is None:
            return await self._within_deadline(tool, arguments, call_id, turn)
        try:
            result = await self._within_deadline(tool, arguments, call_id, turn)
        except ModelRetry as error:
            raise sent_back(tool, error, run) from error
        result = await run.after_tool(tool.name, call_id, result)
        if result.data is not None:
            run.data[call_id] = result.data
        return result

    async def _decided(self, tool: BaseTool, call_id: str, arguments: dict[str, Any], turn: _Turn) -> Decision:
        if turn.guard is None:
            return Decision(allowed=True, why="policy")
        try:
            with under(None):  # who decides is not decided about
                return await turn.guard.decide(tool, call_id, arguments, list(turn.messages))
        except ApprovalFailedError:
            raise
        except ParlourError:  # rules that cannot be read are a no
            _log.exception("Nothing could be decided about a call of %r; it is not made.", tool.name)
            return Decision(allowed=False, why="unattended")
        except Exception as error:  # a guard of the program's own
            raise ApprovalFailedError(tool.name, error) from error

    def _named(self, name: str) -> BaseTool:
        if name not in self._tools:
            raise UnknownNameError("tool", name, self._tools)
        return self._tools[name]

    async def _within_deadline(
        self, tool: BaseTool, arguments: dict[str, Any], call_id: str, turn: _Turn
    ) -> ToolResult:
        seconds = tool.timeout if self._deadline is None else self._deadline
        told = ProgressReporter(call_id, _follower(tool.name, turn))
        within = None if turn.guard is None else OneQuestion(turn.guard, call_id)
        context = {**turn.context, "call_id": call_id, "progress": told, "approval": within}
        if (run := state_of(context)) is not None:
            context["run_context"] = run.context(tool.name, call_id, run.attempts[tool.name])
        with under(None if within is None else Guarded(within, list(turn.messages))):
            task = asyncio.create_task(_call(tool, arguments, context, turn.credentials))
        try:
            await _wait(task, seconds, within)
            if not task.done():
                raise ToolTimeoutError(
                    f"The tool {tool.name!r} did not finish within {seconds:g} seconds.",
                    tool=tool.name,
                    seconds=seconds,
                )
            return as_result(task.result())
        except asyncio.CancelledError:
            if task.done() and task.cancelled():  # the tool cancelled itself; the run goes on
                raise ToolError(f"The tool {tool.name!r} stopped itself.", tool=tool.name) from None
            raise
        finally:
            told.end()
            if within is not None:
                within.close()
            await _close([task])


class _Turn:
    """What the calls of one turn share."""

    def __init__(
        self,
        context: Mapping[str, Any],
        cut_off: bool,  # noqa: FBT001 - four things, all needed
        places: asyncio.Semaphore,
        guard: Guard | None,
    ) -> None:
        self.context = context
        self.guard = guard
        self.cut_off = cut_off
        self.places = places
        self.lang: Lang = spoken(context.get("lang"))
        self.credentials = Credentials(_THREADS)
        self.events: asyncio.Queue[Event | asyncio.Task[ToolFinished] | ProgramEnd] = asyncio.Queue()

    @property
    def messages(self) -> Sequence[Message]:
        told: Sequence[Message] | None = self.context.get("messages")
        return _UNTOLD if told is None else told

    def finished(self, task: asyncio.Task[ToolFinished]) -> None:
        self.events.put_nowait(task)


@contextmanager
def _observed(tool: BaseTool, call_id: str, arguments: Mapping[str, Any]) -> Generator[None]:
    """A call as a span, and how long it took; the names of people's own tools are in traces alone."""
    began, outcome = perf_counter(), "failed"
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call_id,
    }
    try:
        with span(f"execute_tool {tool.name}", attributes, "tool") as traced:
            if traced is not None:
                traced.detail(arguments=arguments)
            yield
        outcome = "finished"
    except asyncio.CancelledError:
        outcome = "stopped"
        raise
    finally:
        own = tool.name if type(tool).__module__.startswith(_OURS) else "other"
        record("parlour.tool.duration", perf_counter() - began, {"gen_ai.tool.name": own, "outcome": outcome})


async def _wait(task: asyncio.Task[Any], seconds: float, within: OneQuestion | None) -> None:
    """Wait until a tool is done, or has worked for that long: what is asked meanwhile does not count."""
    waited = 0.0
    await asyncio.wait({task}, timeout=seconds)
    while within is not None and not task.done() and (more := within.waited - waited) > 0:
        waited += more
        await asyncio.wait({task}, timeout=more)


async def _call(
    tool: BaseTool, arguments: dict[str, Any], context: Mapping[str, Any], credentials: Credentials
) -> object:
    params = ArgumentText.of(arguments)
    wanted = _wanted(tool, context)
    with contained():
        try:
            await credentials.check(tool)
            if tool.is_async:
                result: object = tool.call(params, **wanted)
            else:
                result = await _THREADS.run(lambda: tool.call(params, **wanted), name=tool.name)
            return await result if inspect.isawaitable(result) else result
        except SystemExit as error:  # `sys.exit` in a tool, or `argparse`: the model can do without this one
            raise exit_refused(tool.name) from error


def sent_back(tool: BaseTool, error: ModelRetry, run: RunState) -> ToolError:
    """What the model is told of a call that it is to make otherwise; the last time, that it is not to."""
    run.attempts[tool.name] += 1
    tries, most = run.attempts[tool.name], _retries(tool)
    said = ended(str(error))
    if tries <= most:
        return ToolError(f"{said} Call it again with corrected arguments.", tool=tool.name)
    return ToolError(f"{said} This was the last try of {tries}: answer without it.", tool=tool.name)


def _retries(tool: BaseTool) -> int:
    return int(getattr(tool, "retries", RETRIES))


def _refused(tool: BaseTool, decision: Decision, turn: _Turn) -> ToolResult:
    _log.info("The tool %r was not run: %s.", tool.name, decision.why)
    return refusal(decision.why, turn.lang)


def _as_edited(tool: BaseTool, decision: Decision, arguments: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """The arguments as whoever decided wants them; edited ones go into `about`. Raises BadArgumentsError."""
    if decision.arguments is None:
        return arguments
    edited = read_arguments(decision.arguments)
    tool.verify(edited)
    about["arguments"] = edited
    return edited


def _wanted(tool: BaseTool, context: Mapping[str, Any]) -> dict[str, Any]:
    """That part of the context which the tool's `call` takes."""
    taken = inspect.signature(tool.call).parameters.values()
    if all(parameter.name != "approval" for parameter in taken):
        context = {name: value for name, value in context.items() if name != "approval"}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        wanted = dict(context)
    else:
        names = {parameter.name for parameter in taken}
        wanted = {name: value for name, value in context.items() if name in names}
    if not tool.file_access:
        wanted.pop("files", None)
    return wanted


def _follower(name: str, turn: _Turn) -> Callable[..., None] | None:
    """Whoever follows, so that their trouble is not the tool's."""
    follow: Callable[..., None] | None = turn.context.get("progress")
    if follow is None:
        return None

    def told(*progress: Any) -> None:
        try:
            with contained():
                follow(*progress)
        except ProgramEnd as end:
            turn.events.put_nowait(end)
        except Exception:  # a program's code, called from within the tool
            _log.exception("The progress of %r could not be told.", name)

    return told


def _note(name: str, error: Exception) -> None:
    if isinstance(error, ParlourError):
        _log.info("The tool %r failed: %s", name, error)
    else:
        _log.error("The tool %r raised.", name, exc_info=(type(error), error, _of_its_own(error)))


def _of_its_own(error: Exception) -> TracebackType | None:
    """The traceback from the tool's own code on: how Parlour came to call it mends nothing. Of ours, all of it."""
    rest = error.__traceback__
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_OUR_FILES):
        rest = rest.tb_next
    return rest or error.__traceback__


async def _close(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel what still works; one that does not listen is left behind after a moment."""
    working = [task for task in tasks if not task.done()]
    for task in working:
        task.cancel()
    if working:
        _, deaf = await asyncio.wait(working, timeout=_GRACE)
        for task in deaf:
            _log.warning("A tool did not stop when it was cancelled: %s", task.get_name())


def _call_id(call: Message) -> str:
    return str((call.extra or {}).get("function_id", ""))
