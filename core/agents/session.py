"""A conversation with one agent that goes on: kept in memory, or in a file (`core.runs.stored_session`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

from core.agents.asking import Asking
from core.agents.asks import Asks
from core.bridge.closing import closed_within
from core.bridge.sync import run
from core.errors import ConflictError, SettingsError, shown
from core.registry import Entry, Registry
from core.tools.approval import Guard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from core.agents.mapping import Question
    from core.agents.protocol import ExtensibleAgent
    from core.agents.reply import Reply
    from core.messages.events import Event
    from core.messages.message import Message
    from core.tools.approval import ApprovalRequest, Ask, Policy

_A_FILE: Final = 'Write session(store="talks.db"), or leave it out.'
STORES: Registry[type[Session]] = Registry(
    "place of a session",
    {
        "memory": Entry("core.agents.session:MemorySession"),
        "file": Entry("core.runs.stored_session:StoredSession"),
    },
)


class Session(Asks):
    """A conversation with an agent: each question goes on from the one before. `Agent.session` makes it.

    It is a context manager, `with` and `async with` alike; `ask`, `aask`, `events` and `partials` are those of an
    agent, without `history`. One question at a time.

    Args:
        agent: Who answers.
        name: Which of the sessions of a file.
        approval: As of `Agent.stream`, for all questions.
        store: The file; `None` for memory.
    """

    def __init__(
        self, agent: ExtensibleAgent, name: str, approval: Guard | Policy | Ask | None, store: Path | None
    ) -> None:
        del store
        self.agent = agent
        self.name = name
        self._approval = approval

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        raise NotImplementedError

    @property
    def waiting(self) -> list[ApprovalRequest]:
        """The calls that wait for a decision; `decide` answers them."""
        return []

    def decide(self, call_id: str, allowed: bool, arguments: Mapping[str, Any] | None = None) -> None:  # noqa: FBT001 - the one thing it is told
        """Let a call that waits be made, or not; then `resume` goes on. The first answer counts.

        Args:
            call_id: Of one of `waiting`.
            allowed: Whether it is made.
            arguments: In place of the model's.

        Raises:
            SettingsError: An argument is of another kind.
            ConflictError: It waits no more.
        """
        run(self.adecide(call_id, allowed, arguments))

    async def adecide(self, call_id: str, allowed: bool, arguments: Mapping[str, Any] | None = None) -> None:  # noqa: FBT001 - as `decide`
        """As `decide`, for asynchronous code."""
        check_decision(call_id, allowed, arguments)
        raise ConflictError(f"No call {call_id!r} waits for a decision.", key="already_decided")

    def resume(self, **options: Any) -> Reply[Any]:
        """The reply that waited for a decision, or that a crash or a limit broke off, to its end.

        Args:
            options: As of `ask`; what the question was asked with is to be said again in a new process.

        Raises:
            SettingsError: The last question has its reply.
            ConflictError: key `elsewhere`: another process is writing it.
            ParlourError: As of `ask`.
        """
        return run(self.aresume(**options))

    async def aresume(self, **options: Any) -> Reply[Any]:
        """As `resume`, for asynchronous code."""
        del options
        raise nothing_to_resume()

    def close(self) -> None:
        """Close what is open. A reply that waits for a decision waits on, in a file."""
        run(self.aclose())

    async def aopen(self) -> None:
        """Open what is needed; the first question does so as well."""

    async def aclose(self) -> None:
        """As `close`, for asynchronous code."""

    def __enter__(self) -> Self:
        run(self.aopen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self.aopen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _asking(self, question: Question, options: Mapping[str, Any]) -> Asking:
        """The question, checked. Raises SettingsError where it brings a history of its own."""
        if "history" in options:
            said = "A session has its history, so history=... is not for its questions."
            raise SettingsError(said, hint="Ask the agent itself, or begin another session.", name="history")
        given = {"approval": self._approval, **options, "history": self.messages}
        return Asking.of(self.agent, question, given)


class MemorySession(Session):
    """A session that ends with the program."""

    def __init__(
        self, agent: ExtensibleAgent, name: str, approval: Guard | Policy | Ask | None, store: Path | None
    ) -> None:
        super().__init__(agent, name, approval, store)
        self._messages: list[Message] = []
        self._is_answering = False

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        return list(self._messages)

    async def _answered(self, question: Question, options: Mapping[str, Any]) -> Reply[Any]:
        whole: list[Any] = []
        async with aclosing(self._event_stream(question, options, whole)) as events:
            async for _ in events:
                pass
        return cast("Reply[Any]", whole[0])

    def _event_stream(
        self, question: Question, options: Mapping[str, Any], whole: list[Any] | None = None
    ) -> AsyncGenerator[Event, None]:
        return closed_within(self._events(self._asking(question, options), whole))

    async def _events(self, asking: Asking, whole: list[Any] | None) -> AsyncGenerator[Event, None]:
        if self._is_answering:
            said = "This session is answering another question."
            raise ConflictError(said, hint="Wait for its reply, or begin another session.", key="busy")
        self._is_answering = True
        try:
            async with aclosing(asking.events()) as events:
                async for event in events:
                    yield event
            made = await asking.finished()
            self._messages = made.history
        finally:
            self._is_answering = False
        if whole is not None:
            whole.append(made)


def session_of(
    agent: ExtensibleAgent, store: str | Path | None, name: str, approval: Guard | Policy | Ask | None
) -> Session:
    """The session of an agent in some place. Raises as `Agent.session`."""
    if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
        said = f"name must be a text, not {shown(name)}."
        raise SettingsError(said, hint='Write session(..., name="order 17").', name="name")
    Guard.of(approval)
    if store is None:
        return STORES["memory"](agent, name.strip(), approval, None)
    if not isinstance(store, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
        said = f"store must be the path of a file, not {shown(store)}."
        raise SettingsError(said, hint=_A_FILE, name="store")
    if not Path(store).name or "://" in str(store) or Path(store).is_dir():
        kind = "an address" if "://" in str(store) else "a folder" if str(store).strip() else "empty"
        raise SettingsError(
            f"store must be the path of a file, and {str(store)!r} is {kind}.", hint=_A_FILE, name="store"
        )
    return STORES["file"](agent, name.strip(), approval, Path(store))


def check_decision(call_id: object, allowed: object, arguments: object) -> None:
    """Check what `decide` is told. Raises SettingsError."""
    wrong = (
        ("call_id", "the text that names a call", call_id, isinstance(call_id, str)),
        ("allowed", "True or False", allowed, isinstance(allowed, bool)),
        ("arguments", "a dict", arguments, arguments is None or isinstance(arguments, Mapping)),
    )
    for name, kind, given, is_right in wrong:
        if not is_right:
            said = f"{name} must be {kind}, not {shown(given)}."
            raise SettingsError(said, hint="Write session.decide(session.waiting[0].call_id, True).", name=name)


def nothing_to_resume() -> SettingsError:
    """The last question has its reply."""
    return SettingsError("There is nothing to resume: the last question has its reply.", hint='Write session.ask("…").')
