"""Recordings that anybody may watch: of everybody's, kept once, and taken over by who wants to go on."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeVar

from core.bridge.cancellation import result_for_all
from core.errors import NotFoundError, ParlourError
from core.importing.recording import Recording, read_about, read_recording
from core.messages.message import Message
from core.runs.log import LoggedEvent, RunFinished
from core.runs.playing import Tape
from core.runs.rows import events_of, logged_of
from core.storage.base import DEMONSTRATIONS, EventRow, StoredMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.importing.recording import About
    from core.workspace.workspace import Workspace
    from core.workspace.workspaces import Workspaces

_LOG = logging.getLogger(__name__)
SUFFIX: Final = ".jsonl"
_KNOWN: Final = "demonstrations"  # among the settings of their owner: digest and conversation, by name
_MOST: Final = 100
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A recording that can be watched.

    Args:
        name: By which it is offered.
        conversation_id: Where its turns, files and documents stand.
        tape: What is played; all who watch share it.
    """

    name: str
    recording: Recording
    conversation_id: str
    tape: Tape

    @property
    def about(self) -> About:
        """What it is called, and what is said beside its steps."""
        return self.recording.about


class Demonstrations:
    """The recordings that an installation offers.

    Args:
        workspaces: Where what they hold is kept, so that evidence, files and calls can be looked at as ever.
    """

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._files: dict[str, Path] = {}
        self._listed: dict[str, About] = {}
        self._opening: dict[str, asyncio.Task[Demonstration]] = {}

    def offer(self, places: Sequence[Path]) -> None:
        """Offer these recordings, and no others.

        Args:
            places: Files, or folders of them. One that cannot be read is passed over, and logged.
        """
        files = [one for place in places for one in ([place] if place.is_file() else sorted(place.glob(f"*{SUFFIX}")))]
        self._files, self._listed, self._opening = {}, {}, {}
        for file in files[:_MOST]:
            try:
                self._listed[file.stem] = read_about(file)
                self._files[file.stem] = file
            except ParlourError as error:
                _LOG.warning("A recording is not offered: %s", error)

    def listed(self, lang: str = "") -> Mapping[str, About]:
        """What is offered, by name.

        Args:
            lang: Those in this language; all where there is none in it.
        """
        spoken = {name: about for name, about in self._listed.items() if about.lang == lang}
        return spoken or dict(self._listed)

    def workspace(self) -> AbstractAsyncContextManager[Workspace]:
        """Where what all recordings hold is kept: to be read by everybody, and written by nobody."""
        return self._workspaces.open(DEMONSTRATIONS)

    async def also(self, owner: str, look: Callable[[Workspace], Awaitable[T]]) -> T:
        """What is found with an owner, else with the demonstrations, which anybody may see.

        Args:
            owner: Who asks.
            look: Finds it in a workspace, and changes nothing there.

        Raises:
            NotFoundError: It is with neither of them.
        """
        try:
            async with self._workspaces.open(owner) as workspace:
                return await look(workspace)
        except NotFoundError:
            async with self.workspace() as shown:
                return await look(shown)

    async def opened(self, name: str) -> Demonstration:
        """One that is offered; the first who wants it has it taken in.

        Raises:
            NotFoundError: None of this name is offered.
            NoSpaceError: The disk is full.
            StorageError: The database failed.
            UnsupportedFormatError: It is damaged.
        """
        if name not in self._files:
            raise NotFoundError("There is no such demonstration.", key="demo_gone")
        opening = self._opening.get(name)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opening[name] = asyncio.create_task(self._open(name))
        return await result_for_all(opening)

    async def take_over(self, one: Demonstration, turns: int, workspace: Workspace) -> str:
        """Make a conversation of a workspace's owner that begins with the recording, as far as it was watched.

        Args:
            turns: How many of its turns are in sight; a question comes with its reply.

        Returns:
            The id of the conversation.

        Raises:
            NoSpaceError: The disk is full.
            QuotaError: The owner's files take too much room with those of the recording.
            StorageError: The database failed.
        """
        return await _taken_in(one.recording, workspace, turns + turns % 2)

    async def _open(self, name: str) -> Demonstration:
        recording = await asyncio.to_thread(read_recording, self._files[name])
        async with self.workspace() as workspace:
            known: dict[str, Any] = await workspace.settings.get(_KNOWN, {})
            digest, there = known.get(name, ("", ""))
            thread = await _thread(workspace, there) if digest == recording.digest else ()
            if len(thread) != len(recording.messages):
                if there:
                    await _forget(workspace, there)
                there = await _taken_in(recording, workspace, None)
                thread = await _thread(workspace, there)
                kept = partial(_with, name, recording.digest, there)
                await workspace.settings.change(_KNOWN, kept)
        tape = await asyncio.to_thread(_tape, recording, thread)
        return Demonstration(name, recording, there, tape)


def steps_in(recording: Recording) -> int:
    """How many steps a recording has when it is played: questions, answers and, where these are few, tools."""
    thread = [
        StoredMessage(
            id=str(one["id"]),
            conversation_id="",
            parent_id=one["parent_id"],
            role=one["role"],
            parts=tuple(Message(**part) for part in one["parts"]),
            run_id=None,
            status=one["status"],
            created_at=one["created_at"],
        )
        for one in recording.messages
    ]
    return len(_tape(recording, thread).steps)


def _tape(recording: Recording, thread: Sequence[StoredMessage]) -> Tape:
    events = [_events(recording, turn, message) for turn, message in enumerate(thread)]
    return Tape(thread, events, [recording.model(turn) for turn in range(len(thread))])


async def _taken_in(recording: Recording, workspace: Workspace, turns: int | None) -> str:
    with TemporaryDirectory(prefix="parlour-recording-") as folder:
        bundle = Path(folder) / "recording.zip"
        await asyncio.to_thread(recording.write_bundle, bundle, turns)
        title = recording.about.title
        imported = await workspace.taking.bring_in(bundle, name=title, used_at=time.time(), patience=0.0)
    return imported.conversations[0]


async def _thread(workspace: Workspace, conversation_id: str) -> Sequence[StoredMessage]:
    """The turns; none where the conversation is gone."""
    try:
        return await workspace.conversations.thread(conversation_id) if conversation_id else ()
    except NotFoundError:
        return ()


async def _forget(workspace: Workspace, conversation_id: str) -> None:
    """Delete what an older recording of the same name left."""
    try:
        await workspace.conversation(conversation_id).delete()
    except NotFoundError:
        _LOG.debug("An older recording is gone already.")


def _with(name: str, digest: str, there: str, known: Any) -> dict[str, Any]:
    return {**(known or {}), name: [digest, there]}


def _events(recording: Recording, turn: int, message: StoredMessage) -> list[LoggedEvent]:
    """What happens in a turn, its end included; of a reply that has no log, what it became."""
    if message.role == "user":
        return []
    logged = logged_of(EventRow(row["seq"], row["at"], row["kind"], row["payload"]) for row in recording.log(turn))
    if not logged:
        logged = [LoggedEvent(0, 0.0, event) for event in events_of(message.parts)]
    ends = max((one.at for one in logged), default=0.0)
    return [*logged, LoggedEvent(0, ends, RunFinished(message.status, recording.error(turn)))]
