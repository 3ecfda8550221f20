"""Whatever goes wrong with a server, as one sentence of ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
from mcp import MCPError

from core.errors import McpError, ServerMisbehavedError, ServerUnreachableError, SignInNeededError
from core.mcp.stdio import LONGEST_MESSAGE
from core.mcp.web import OutOfReachError, TooLargeAnswerError

if TYPE_CHECKING:
    from core.mcp.journal import ServerLog
    from core.mcp.settings import ServerSettings

_LONGEST_QUOTE = 200
_CLOSED = -32000  # the SDK's code for a connection that is gone
_TIMED_OUT = -32001
_UNREADABLE = -32700
_TOO_DEEP = re.compile("nested too deep|recursion limit")  # our words, and those of the parser of JSON
_NOT_SIGNED_IN = 401
_FORGOTTEN = "Session terminated"  # the SDK's words for a server that no longer knows this session
_NETWORK = (OSError, EOFError, httpx2.HTTPError, anyio.BrokenResourceError, anyio.ClosedResourceError)
FAILURES = (MCPError, McpError, *_NETWORK, RuntimeError, ValueError, BaseExceptionGroup)


class ErrorTranslator:
    """Makes the sentences about one server; no key of its settings is in them.

    Args:
        settings: How it is reached.
        journal: Where it says what is wrong, and how a text of it is repeated.
    """

    def __init__(self, name: str, settings: ServerSettings, journal: ServerLog) -> None:
        self._name = name
        self._settings = settings
        self._journal = journal

    def unreachable(self, what: str, wrote: str = "", *, key: str = "", **details: Any) -> ServerUnreachableError:
        """It is not there; `key` names the sentence for people, where there is one of its own."""
        said = self._journal.clean(wrote, _LONGEST_QUOTE) if wrote else ""
        more = f" It wrote: {said}" if said else ""
        if said:
            details["wrote"] = said
        hint = "Check its command, arguments and environment." if self._settings.command else "Check its address."
        text = f"The MCP server {self._name!r} {what}.{more}"
        return ServerUnreachableError(text, hint=hint, key=key, name=self._name, **details)

    def late(self) -> ServerUnreachableError:
        """It was waited for, and did not come."""
        seconds = f"{self._settings.connect_timeout:g}"
        return self.unreachable(f"did not answer within {seconds} seconds", key="mcp_late", seconds=seconds)

    def translated(self, error: BaseException, *, starting: bool = False) -> McpError:
        """The error as one of ours; where the server could not start, with the last that it said."""
        inner = innermost(error)
        if isinstance(inner, ServerUnreachableError) and self._settings.command:
            return self.unreachable(f"cannot be started: there is no program {self._settings.command!r}")
        if isinstance(inner, McpError):
            return inner
        if isinstance(inner, FileNotFoundError | PermissionError | NotADirectoryError):
            what = "folder" if self._settings.cwd and inner.filename == self._settings.cwd else "program"
            return self.unreachable(f"cannot be started: the {what} {inner.filename!r} cannot be used")
        if isinstance(inner, OutOfReachError):
            return self.unreachable(f"may not be reached: its address is {inner.whose}", key=inner.key)
        if unread := self._unread(inner):
            return unread
        if status := _status(inner) or (self._journal.status if isinstance(inner, MCPError) else 0):
            return self._refused(status)
        if isinstance(inner, _NETWORK) or (isinstance(inner, MCPError) and inner.code == _CLOSED):
            return self._gone(inner, starting=starting)
        if is_forgotten(error):
            return self.unreachable("has forgotten this session")
        if starting and not self._settings.command and isinstance(inner, MCPError | ValueError | RuntimeError):
            return self.unreachable("is none: something else answers at its address", key="mcp_none")
        return self._failed(inner)

    def _unread(self, error: BaseException) -> ServerMisbehavedError | None:
        """The sentence where it answered, and the answer cannot be taken in; `None` where it is something else."""
        if isinstance(error, TooLargeAnswerError):
            limit = LONGEST_MESSAGE // 1024 // 1024
            return self._misbehaved(f"sent more than {limit} MB at once", key="mcp_too_large", limit=limit)
        if isinstance(error, MCPError) and error.code == _UNREADABLE and _TOO_DEEP.search(error.message):
            return self._misbehaved("sent an answer that is nested too deep to be read", key="mcp_too_deep")
        return None

    def _failed(self, error: BaseException) -> ServerMisbehavedError:
        if isinstance(error, MCPError) and error.code == _TIMED_OUT:
            return self._misbehaved("did not answer in time")
        said = str(error.message if isinstance(error, MCPError) else error).partition("\n")[0]
        return self._misbehaved(f"failed: {self._journal.clean(said, _LONGEST_QUOTE)}")

    def _gone(self, error: BaseException, *, starting: bool) -> ServerUnreachableError:
        what = "has ended or cannot be reached"
        if self._settings.command:
            wrote = self._journal.last if starting else ""
            return self.unreachable(what, wrote, key=("mcp_ended_saying" if wrote else "mcp_ended") if starting else "")
        if isinstance(error, httpx2.TimeoutException):
            return self.late()
        refused = isinstance(error, httpx2.ConnectError | ConnectionRefusedError)
        return self.unreachable(what, key="mcp_refused" if refused else "")

    def _refused(self, status: int) -> ServerUnreachableError:
        if status == _NOT_SIGNED_IN and self._settings.may_sign_in:
            text, hint = f"The MCP server {self._name!r} does not take the sign-in.", "Sign in again."
            return SignInNeededError(text, hint=hint, name=self._name)
        if status in {401, 403}:
            text = f"The MCP server {self._name!r} wants a login (status {status})."
            hint = "Put its key into the header Authorization."
            return ServerUnreachableError(text, hint=hint, key="mcp_login", name=self._name, status=status)
        return self.unreachable(f"answers with the status {status}", key="mcp_status", status=status)

    def _misbehaved(self, what: str, *, key: str = "", **details: Any) -> ServerMisbehavedError:
        text = f"The MCP server {self._name!r} {what.removesuffix('.')}."
        return ServerMisbehavedError(text, key=key, name=self._name, **details)


def is_forgotten(error: BaseException) -> bool:
    """Whether the server no longer knows the session: it did nothing, so that the same may be asked again."""
    inner = innermost(error)
    return isinstance(inner, MCPError) and str(inner.message) == _FORGOTTEN


def innermost(error: BaseException) -> BaseException:
    """The first error in a group of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _status(error: BaseException) -> int:
    return error.response.status_code if isinstance(error, httpx2.HTTPStatusError) else 0
