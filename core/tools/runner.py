"""Runs the calls of one turn: at the same time, each with a deadline; whatever goes wrong becomes a result."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from typing import TYPE_CHECKING, Any, cast

from core.errors import BadArgumentsError, ParlourError, ToolError, ToolTimeoutError, UnknownNameError
from core.messages.content import ContentItem
from core.messages.events import Event, ToolFinished, ToolStarted
from core.messages.message import FUNCTION, Message
from core.tools.arguments import ArgumentText, read_arguments
from core.tools.base import ToolResult
from core.tools.cut import cut_to_ends
from core.tools.threads import ToolThreads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from core.tools.base import BaseTool

_log = logging.getLogger(__name__)

_GRACE = 1.0  # seconds that a cancelled tool has to tidy up
_LONGEST_ERROR = 600  # characters of an error that the model reads
_THREADS = ToolThreads(limit=64)  # one bound for the process: places, not a client; no thread exists until one is used


class ToolRunner:
    """Runs tools for a model.

    Args:
        tools: The tools by the names a model knows them by.
        deadline: Seconds for each call; `None` leaves each tool its own `timeout`.
        limit: Bytes of text that a model is shown of one result; a longer one is cut to its two ends.
    """

    def __init__(self, tools: Mapping[str, BaseTool], *, deadline: float | None = None, limit: int = 64 * 1024) -> None:
        self._tools = tools
        self._deadline = deadline
        self._limit = limit

    async def run(self, calls: Sequence[Message], *, cut_off: bool = False, **context: Any) -> AsyncGenerator[Event]:
        """Run the calls; a `ToolFinished` comes as each is done. Leaving early cancels what still works.

        Args:
            calls: Messages with a `function_call`, and `extra["function_id"]`.
            cut_off: Whether the reply ended in the middle: a call that is not whole is then never mended and run.
            context: Handed to those tools whose `call` takes it: `messages`, `lang`, `files` …
        """
        tasks = [asyncio.create_task(self._finished(call, context, cut_off=cut_off)) for call in calls]
        try:
            for call in calls:
                yield ToolStarted(_call_id(call))
            for next_done in asyncio.as_completed(tasks):
                yield await next_done
        finally:
            await _close(tasks)

    async def _finished(self, call: Message, context: Mapping[str, Any], *, cut_off: bool) -> ToolFinished:
        requested = call.function_call
        if requested is None:
            raise ValueError("A message without a function call cannot be run.")
        extra: dict[str, Any] = {"function_id": _call_id(call)}
        try:
            tool = self._named(requested.name)
            if cut_off and (call.extra or {}).get("unreadable"):
                raise BadArgumentsError("The reply was cut off in the middle of this call.")
            arguments = read_arguments(requested.arguments)
            tool.verify(arguments)
            result = await self._within_deadline(tool, arguments, context)
        except Exception as error:
            result = _failure(requested.name, error)
        extra |= _plain(result.extra)
        if result.passages:
            extra["passages"] = list(result.passages)
        return ToolFinished(_call_id(call), self._message(requested.name, result, extra))

    def _named(self, name: str) -> BaseTool:
        if name not in self._tools:
            raise UnknownNameError("tool", name, self._tools)
        return self._tools[name]

    async def _within_deadline(
        self, tool: BaseTool, arguments: dict[str, Any], context: Mapping[str, Any]
    ) -> ToolResult:
        seconds = tool.timeout if self._deadline is None else self._deadline
        task = asyncio.create_task(_call(tool, arguments, context))
        try:
            await asyncio.wait({task}, timeout=seconds)
            if not task.done():
                raise ToolTimeoutError(
                    f"The tool {tool.name!r} did not finish within {seconds:g} seconds.",
                    tool=tool.name,
                    seconds=seconds,
                )
            return _as_result(task.result())
        except asyncio.CancelledError:
            if task.done() and task.cancelled():  # the tool cancelled itself; the run goes on
                raise ToolError(f"The tool {tool.name!r} stopped itself.", tool=tool.name) from None
            raise
        finally:
            await _close([task])

    def _message(self, name: str, result: ToolResult, extra: dict[str, Any]) -> Message:
        text, size = cut_to_ends(result.text, self._limit)
        if size:
            extra["cut_from"] = size
        if not result.items:
            return Message(FUNCTION, text, name=name, extra=extra)
        items = [ContentItem(text=text)] if text else []
        return Message(FUNCTION, [*items, *result.items], name=name, extra=extra)


async def _call(tool: BaseTool, arguments: dict[str, Any], context: Mapping[str, Any]) -> object:
    params = ArgumentText.of(arguments)
    wanted = _wanted(tool, context)
    try:
        if tool.is_async:
            result: object = tool.call(params, **wanted)
        else:
            result = await _THREADS.run(lambda: tool.call(params, **wanted), name=tool.name)
        return await result if inspect.isawaitable(result) else result
    except SystemExit as error:  # `sys.exit` in a tool, or `argparse`: it would end the loop with all that runs on it
        raise ToolError(f"The tool {tool.name!r} tried to end the program.", tool=tool.name) from error


def _wanted(tool: BaseTool, context: Mapping[str, Any]) -> dict[str, Any]:
    """That part of the context which the tool's `call` takes."""
    taken = inspect.signature(tool.call).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        wanted = dict(context)
    else:
        names = {parameter.name for parameter in taken}
        wanted = {name: value for name, value in context.items() if name in names}
    if not tool.file_access:
        wanted.pop("files", None)
    return wanted


def _as_result(returned: object) -> ToolResult:
    match returned:
        case ToolResult():
            return returned
        case None:
            return ToolResult()
        case str():
            return ToolResult(returned)
        case list() if found := _items(cast("list[object]", returned)):
            text = "\n".join(item.text for item in found if item.text)
            return ToolResult(text, tuple(item for item in found if item.type != "text"))
        case _:
            return ToolResult(json.dumps(returned, ensure_ascii=False, indent=2, default=str))


def _plain(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The same as JSON values, since the result is stored; what is none becomes text."""
    try:
        return json.loads(json.dumps(dict(extra), default=str))
    except (TypeError, ValueError, RecursionError):  # keys that are no text, circles
        return {str(key): str(value) for key, value in extra.items()}


def _items(returned: list[object]) -> list[ContentItem]:
    """The same list, if it is one of content items alone."""
    found = [item for item in returned if isinstance(item, ContentItem)]
    return found if len(found) == len(returned) else []


def _failure(name: str, error: Exception) -> ToolResult:
    """What a model is told of an error: a sentence, never a traceback."""
    if isinstance(error, ParlourError):
        _log.info("The tool %r failed: %s", name, error)
        key, text = error.words_key, str(error)
    else:
        _log.error("The tool %r raised.", name, exc_info=error)
        key, text = ToolError.key, f"The tool {name!r} failed: {type(error).__name__}: {error}"
    if isinstance(error, BadArgumentsError):
        text += " Call it again with corrected arguments."
    if len(text) > _LONGEST_ERROR:
        text = f"{text[:_LONGEST_ERROR]}…"
    return ToolResult(text, extra={"failed": key})


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
