"""Every error that Parlour raises on purpose.

    ParlourError                     .hint: what to do next · .key: names the sentence that the page shows · .see
    ├── SettingsError                UnknownNameError (near names) · WrongParametersError · MissingExtraError
    ├── ModelServiceError            .code .message .extra .retry_after   (= ModelError)
    │   ├── ModelUnavailableError    network, 408, 429, 5xx, timeout: may be tried again
    │   ├── ModelRefusedError        400, 401, 403, 404 …: never tried again; ContentRefusedError by moderation
    │   │   └── BadMessagesError     nothing to answer, two system messages, an answer before any question
    │   ├── ContextTooLongError      the messages do not fit, whatever is left out
    │   └── ModelMisbehavedError     broken stream, HTML instead of JSON, unreadable reply
    ├── ToolError                    becomes a short result for the model, without a traceback
    │   └── BadArgumentsError · ToolTimeoutError · ToolDeniedError
    ├── DocumentError                UnsupportedFormatError · BrokenDocumentError · LockedDocumentError · FetchError
    ├── LimitReachedError            a reply has used its model calls, its time or its money: it pauses
    ├── TooManyRequestsError         too often or too much at once: `retry_after` seconds later it may work
    ├── StorageError                 NotFoundError (LeaseLostError) · ConflictError · NoSpaceError · QuotaError
    └── McpError                     ServerUnreachableError (SignInNeededError) · ServerMisbehavedError

`docs/errors.md` has an entry for each: `error.see` names it, and a traceback ends with it.

The page never shows `str(error)` where it knows a sentence for `error.key` in the reader's language;
`error.details` fills the blanks of that sentence.
"""

from __future__ import annotations

from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final

from core.extras import extra_of, install_command, install_hint

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable


_LONGEST_SHOWN: Final = 60
_ENDS: Final = frozenset(".!?…:;。！？：；")


@lru_cache(maxsize=256)
def _entry(kind: type) -> str:
    """The nearest class of the library: a program may derive its own."""
    ours = f"{__name__.rpartition('.')[0]}."
    return next(one.__name__ for one in kind.__mro__ if one.__module__.startswith(ours))


def ended(text: str) -> str:
    """A sentence, often a foreign one, with its full stop, so that another may follow."""
    text = text.rstrip()
    last = text.rstrip("\"'”’)]」』）")[-1:]
    return text if not last or last in _ENDS else f"{text}."


class ParlourError(Exception):
    """What happened, in one sentence, and what to do next.

    Args:
        message: What happened, in English, for logs and programs.
        hint: What to do next, in English.
        key: Names the sentence of `webui/words` that says the same to a reader; the class's own by default.
        details: Values for the blanks of that sentence; never a secret.
    """

    key: ClassVar[str] = "unexpected"
    _is_traced: ClassVar[bool] = True  # whether people are told of it by a traceback

    def __init__(self, message: str = "", /, *, hint: str = "", key: str = "", **details: Any) -> None:
        super().__init__(message)
        self.hint = hint
        self.words_key = key or type(self).key
        self.details = details
        if self._is_traced:
            self.add_note(f"More about it: {self.see}")

    def __str__(self) -> str:
        text = str(self.args[0]) if self.args else ""  # a `KeyError` among the bases would put it in quotes
        return f"{ended(text)} {self.hint}" if self.hint and text else text or self.hint

    @property
    def see(self) -> str:
        """Where the documentation says when it comes and what to do, such as `docs/errors.md#outputerror`."""
        return f"docs/errors.md#{_entry(type(self)).lower()}"


class SettingsError(ParlourError):
    """A setting is missing or wrong."""

    key = "settings"


class UnknownNameError(SettingsError, KeyError):
    """A name is not in a registry; the message offers the near ones."""

    key = "unknown_name"

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(names) or 'none'}."
        super().__init__(f"There is no {kind} named {name!r}.", hint=hint, kind=kind, name=name, near=near)


class WrongParametersError(SettingsError, TypeError):
    """A public name has no parameter of that name, needs one, or was given another kind of value."""

    key = "settings"


class MissingExtraError(SettingsError):
    """An extra is not installed; the message names it, and the command that installs it."""

    key = "missing_extra"

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}, which brings the package {package!r}: {install_hint(extra)}",
            what=what,
            package=package,
            extra=extra,
            command=install_command(extra),
        )


def shown(given: Any) -> str:
    """What was given, as a sentence of an error shows it: short values as they are written, others by their kind."""
    if given is None or isinstance(given, bool | int | float | str | bytes):
        text = repr(given)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    kind = type(given).__name__
    return f"{'an' if kind[:1] in 'aeiouAEIOU' else 'a'} {kind}"


@contextmanager
def extra_for(what: str) -> Generator[None]:
    """Inside, a package that is not installed is a `MissingExtraError`, if one of our extras brings it.

    Args:
        what: What needs it, as the beginning of a sentence: "Search of the web".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = extra_of(package)
        if not extra:
            raise
        raise MissingExtraError(what, package, extra) from error


def need_packages(what: str, names: Iterable[str]) -> None:
    """Check that packages are installed, without importing them.

    Args:
        what: What needs them, as the beginning of a sentence.
        names: Modules that one of our extras brings.

    Raises:
        MissingExtraError: One is not; the message has the command.
        ValueError: No extra brings one of them, installed or not.
    """
    names = list(names)
    if stray := [name for name in names if not extra_of(name)]:
        raise ValueError(f"No extra brings {', '.join(stray)}: see core/extras.py.")
    missing = next((name for name in names if find_spec(name) is None), None)
    if missing is not None:
        raise MissingExtraError(what, missing, extra_of(missing))


class ModelServiceError(ParlourError):
    """A model service failed.

    Args:
        exception: The error underneath, if any (Qwen-Agent passes it first).
        code: The service's code as text: '400', '429', 'DataInspectionFailed' …
        message: What the service said.
        extra: What else is known, for programs.
        hint: What to do next.
        retry_after: Seconds that the service asks to wait, if it said so.
        key: What programs and pages tell errors apart by, where it is not the class's own.
        sent: Whether a service was asked at all; the text begins with the code of its answer only then.
    """

    key = "model_failed"
    _was_sent: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913 - Qwen-Agent's order, and four of our own by name
        self,
        exception: Exception | str | None = None,
        code: str | None = None,
        message: str | None = None,
        extra: dict[str, Any] | None = None,
        *,
        hint: str = "",
        retry_after: float | None = None,
        key: str = "",
        sent: bool = True,
    ) -> None:
        said = message if message is not None else str(exception or "The model service failed.")
        text = f"Error code: {code}. {said}" if code and self._was_sent and sent else said
        super().__init__(text, hint=hint, key=key, code=code or "", message=said)
        self.exception = exception if isinstance(exception, Exception) else None
        self.code = code
        self.message = said
        self.extra = extra
        self.retry_after = retry_after


ModelError = ModelServiceError


class ModelUnavailableError(ModelServiceError):
    """The service could not be reached, is overloaded or too slow: trying again may help."""

    key = "model_unavailable"


class ModelRefusedError(ModelServiceError):
    """The service refused the request: trying the same again cannot help."""

    key = "model_refused"


class ContentRefusedError(ModelRefusedError):
    """Moderation refused what was asked (`details["side"]` is `in`) or answered (`out`); `message` is its reason."""

    key = "content_refused"


class BadMessagesError(ModelRefusedError, ValueError):
    """The messages cannot be asked: none at all, two system messages, or an answer before any question."""

    key = "bad_messages"
    _was_sent = False  # they are refused before anybody is asked


class ContextTooLongError(ModelServiceError):
    """The messages do not fit into the model's context, whatever is left out."""

    key = "context_too_long"


class ModelMisbehavedError(ModelServiceError):
    """The service answered something that is not a reply."""

    key = "model_misbehaved"


class ToolError(ParlourError):
    """A tool could not do its work; the text goes to the model as the result."""

    key = "tool_failed"
    _is_traced: ClassVar[bool] = False  # models are told


class BadArgumentsError(ToolError, ValueError):
    """The arguments of a call do not fit the tool's parameters."""

    key = "bad_arguments"


class ToolTimeoutError(ToolError):
    """A tool ran past its deadline."""

    key = "tool_timeout"


class ToolDeniedError(ToolError):
    """The user, or a rule of the user's, said no."""

    key = "tool_denied"


class DocumentError(ParlourError):
    """A document cannot be read."""

    key = "document_failed"


class UnsupportedFormatError(DocumentError):
    """No parser reads this kind of file."""

    key = "document_unsupported"


class BrokenDocumentError(DocumentError):
    """The file is damaged, empty, too large to parse, or not what its name says."""

    key = "document_broken"


class LockedDocumentError(DocumentError):
    """The file is encrypted. The detail `asks` says that a password would open it."""

    key = "document_locked"


class FetchError(DocumentError):
    """What is at a web address cannot be fetched, or may not be."""

    key = "fetch_failed"


class LimitReachedError(ParlourError):
    """A reply has used what it may use; it can go on when told to.

    Its key is `call_limit`, `time_limit`, `length_limit`, `token_limit` or `cost_limit`. Where `ask` raises it, `reply`
    is the `Reply` as far as it has come.
    """

    key = "call_limit"
    reply: Any = None


class TooManyRequestsError(ParlourError):
    """Somebody asked too often, or for too much at once.

    Args:
        message: What happened, in English.
        hint: What to do next, in English.
        key: Names the sentence for a reader.
        retry_after: Seconds after which it is worth trying again; 0 where nobody can know.
        details: Values for the blanks of the sentence.
    """

    key = "too_many_requests"

    def __init__(
        self, message: str = "", /, *, hint: str = "", key: str = "", retry_after: int = 0, **details: Any
    ) -> None:
        super().__init__(message, hint=hint, key=key, **details)
        self.retry_after = retry_after


class StorageError(ParlourError):
    """The data folder or database failed."""

    key = "storage_failed"


class NotFoundError(StorageError):
    """There is no such thing, or it belongs to somebody else; the two look the same on purpose."""

    key = "not_found"


class LeaseLostError(NotFoundError):
    """Another process has taken a run over: what this one still writes to it is refused."""


class ConflictError(StorageError):
    """Somebody else changed it first, or it is busy."""

    key = "conflict"


class NoSpaceError(StorageError):
    """The disk is full."""

    key = "no_space"


class QuotaError(StorageError):
    """An owner's files take as much room as those of one owner may."""

    key = "quota_full"


class McpError(ParlourError):
    """An MCP server failed."""

    key = "mcp_failed"


class ServerUnreachableError(McpError):
    """An MCP server could not be started or reached."""

    key = "mcp_unreachable"


class SignInNeededError(ServerUnreachableError):
    """An MCP server wants its user to sign in, or what was tried for that did not work."""

    key = "mcp_sign_in"


class ServerMisbehavedError(McpError):
    """An MCP server broke the protocol."""

    key = "mcp_misbehaved"
