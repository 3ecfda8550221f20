"""Dictation: which model turns an owner's recordings into text, and the account of what was turned."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from core.bridge.cancellation import run_to_end
from core.errors import ConflictError, DocumentError, MissingExtraError, SettingsError
from core.llm.backends.whisper import LocalTranscriber, Whisper
from core.llm.ledger import recorded_by
from core.llm.service import service_of
from core.llm.sound_parts import parts_of
from core.llm.transcription import recording_in, webvtt
from core.llm.usage import cost_of_sound
from core.models.choices import is_near
from core.models.menu import MENU, kind_of, menu
from core.models.model_name import ModelName
from core.runs.call_stages import packed
from core.runs.ledger import line_of
from core.runs.log import CallStages, LoggedEvent, ModelCalled
from core.runs.rows import logged_of, rows_of
from core.storage.base import EventRow
from core.storage.preferences import DICTATED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from core.languages import Lang
    from core.llm.ledger import LedgerCall
    from core.llm.request import ReadSoFar
    from core.llm.transcription import Moved, Recording, Transcriber
    from core.models.menu import MenuService
    from core.models.own_models import OwnerModels
    from core.models.pool import Choice
    from core.runs.log import RunEvent
    from core.runs.run import Run
    from core.storage.base import FileRecord
    from core.storage.stores import OwnerStores

BROWSER: Final = "browser"
HERE: Final = "here"
"""Beside names of services, what can be chosen for dictation; "" leaves it open."""
_USUAL: Final = "whisper-1"  # what servers of one's own answer to as a rule
_MOST_LINES: Final = 50
_LONGEST_STAGES: Final = 100_000
_AT_ONCE: Final = 8

Kind: TypeAlias = Literal["service", "here"]

_LONG: Final = 10  # minutes of a recording, above which its owner is told its price before it is sent
_LARGE: Final = 5_000_000  # bytes of one whose length is not known: some ten minutes as browsers record


@dataclass(frozen=True, slots=True)
class Way:
    """How recordings become text.

    Args:
        service: The service's name in the menu; empty on this machine.
        address: Where it is.
        model: Which of its models.
        free: Nobody is paid for it.
        minute: What a minute costs about in US dollars; `None` where no price is known.
    """

    kind: Kind
    service: str = ""
    address: str = ""
    model: str = ""
    free: bool = False
    minute: float | None = None

    @property
    def host(self) -> str:
        """The service's host."""
        return urlsplit(self.address).netloc

    @property
    def name(self) -> str:
        """Tells it from every other: what was announced under this name is what happens under it."""
        return f"{self.kind} {self.service} {self.address} {self.model}"


class Dictation:
    """What the dictation of all owners shares.

    Args:
        folder: Of the weights that are kept on this machine.

    Attributes:
        whisper: What there is of it on this machine.
        busy: Whose recordings are being turned into text.
    """

    def __init__(self, folder: Path) -> None:
        self.whisper = Whisper(folder / "whisper")
        self.busy: set[str] = set()


class OwnerDictation:
    """The dictation of one owner.

    Args:
        shared: What all share.
        stores: What is kept of the owner.
        models: The owner's models, whose services turn recordings into text as well.
    """

    def __init__(self, shared: Dictation, stores: OwnerStores, models: OwnerModels) -> None:
        self._shared = shared
        self._stores = stores
        self._models = models

    async def chosen(self) -> str:
        """What the owner chose: "", `BROWSER`, `HERE`, or the name of a service. Raises StorageError."""
        return (await self._stores.preferences.get()).dictation

    async def way(self) -> Way | None:
        """How a recording becomes text, as it was chosen; `None` where nothing was, and nothing is there.

        Raises:
            SettingsError: What was chosen cannot be used: a service that is gone, or without a key; no weights.
            MissingExtraError: This machine was chosen, and the extra is not installed.
            StorageError: The database failed.
        """
        kept = await self._stores.preferences.get()
        if kept.dictation == BROWSER:
            return None
        if kept.dictation == HERE:
            if not self._models.is_local and not self._shared.whisper.is_ready:
                raise _gone(HERE)  # what is missing, and where, is the machine's owner's concern
            return _here(LocalTranscriber(self._shared.whisper))
        if kept.dictation:
            return await _way(kept.dictation, await self._choice(kept.dictation, kept.dictation_model))
        for name in await self._services():
            if _menu_service(name, local=self._models.is_local).transcribes:
                try:
                    return await _way(name, await self._choice(name, ""))
                except SettingsError:  # it has no key: the next one
                    continue
        return _here(LocalTranscriber(self._shared.whisper)) if self._shared.whisper.is_ready else None

    async def services(self) -> list[tuple[str, str]]:
        """The services that can be chosen, each with its address. Raises StorageError."""
        kept = {one.service: one.address for one in await self._models.kept()}
        local = self._models.is_local
        return [(name, kept.get(name) or _menu_service(name, local=local).address) for name in await self._services()]

    @property
    def may_be_here(self) -> bool:
        """Whether this machine can be chosen; its owner is told what is missing."""
        if self._models.is_local:
            return self._shared.whisper.is_installed
        return self._shared.whisper.is_ready

    async def transcribe(self, recording: Recording, announced: str, conversation_id: str, lang: Lang = "en") -> str:
        """The text of a recording. The call is noted in the account of the next reply of the conversation.

        Args:
            announced: The name of the way that the owner was told of.
            conversation_id: Where it is dictated; empty for a new conversation.
            lang: The language of the page.

        Raises:
            ConflictError: key `dictation_changed`: something else is chosen by now; `dictation_busy`: one at a time.
            ParlourError: It does not work; the key says why.
        """
        busy, owner = self._shared.busy, self._stores.owner
        if owner in busy or len(busy) >= _AT_ONCE:
            hint = "Try again in a moment."
            raise ConflictError("A recording is being turned into text.", hint=hint, key="dictation_busy")
        busy.add(owner)
        try:
            way = await self.way()
            if way is None or way.name != announced:
                hint = "Look at what is chosen now, and try again."
                raise ConflictError("Dictation was set to something else.", hint=hint, key="dictation_changed")
            account = _Account()
            try:
                with recorded_by(account):
                    return await (await self._transcriber(way)).transcribe(recording, lang)
            finally:
                # What was asked has its line, also where the page has left meanwhile.
                await run_to_end(self._keep(account.calls, conversation_id))
        finally:
            busy.discard(owner)

    # ---- recordings that are files

    async def file_way(self) -> Way | None:
        """How a recording that came as a file becomes text; `None` where nothing is there for it.

        By the service that the owner chose for dictation, or on this machine; what a browser does it does for its
        microphone alone. The microphone's button says where a recording goes before it is made; a file is read as soon
        as it is sent. So a service that happens to have a key gets none that its owner did not name.

        Raises:
            StorageError: The database failed.
        """
        if await self.chosen() not in {"", BROWSER}:
            try:
                return await self.way()
            except (MissingExtraError, SettingsError):
                return None
        return _here(LocalTranscriber(self._shared.whisper)) if self._shared.whisper.is_ready else None

    async def hear(
        self, file: FileRecord, path: Path, conversation_id: str, moved: Moved, *, agreed: bool = False
    ) -> tuple[bytes, str]:
        """The transcript of a file, as WebVTT, and what made it. The call is noted in the account of the next reply.

        Args:
            moved: Told how far it is.
            agreed: Its owner was told what a long one costs, and wants it all the same.

        Raises:
            DocumentError: It is long, and its owner was not told yet what the service takes for it (`ASKED_FIRST`).
            SettingsError: key `hearing_missing`: nothing is there that turns recordings into text.
            ParlourError: It does not work; the key says why.
        """
        way = await self.file_way()
        if way is None:
            hint = "Choose a service or Whisper under Dictation in the settings."
            said = "There is nothing here that turns recordings into text."
            raise SettingsError(said, hint=hint, key="hearing_missing")
        if not (way.free or agreed):
            await _tell_price(way, file, path)
        account = _Account()
        try:
            transcriber = await self._transcriber(way)
            with recorded_by(account):
                cues = await transcriber.transcribe_timed(recording_in(b"", file.media_type, path), moved)
        finally:
            await run_to_end(self._keep(account.calls, conversation_id))
        return webvtt(cues).encode(), transcriber.label

    # ---- the account

    async def waiting(self) -> list[ModelCalled]:
        """The lines of calls whose text is in no question yet. Raises StorageError."""
        kept = await self._stores.settings.get(DICTATED)
        return [one for row in _rows(kept) for one in _events(row) if isinstance(one, ModelCalled)]

    async def note_in(self, run: Run) -> None:
        """Put the lines of what was dictated for a conversation into the account of its reply. Raises StorageError."""
        settings = self._stores.settings
        if not _rows(await settings.get(DICTATED)):
            return
        taken: list[Mapping[str, Any]] = []

        def changed(kept: object) -> list[Any] | None:
            rows = _rows(kept)
            taken[:] = [row for row in rows if row.get("talk") in {"", run.conversation_id}]
            return [row for row in rows if row not in taken] or None

        await settings.change(DICTATED, changed)
        for row in taken:
            for event in _events(row):
                run.ledger.note(event)

    async def forget(self) -> None:
        """Forget what was dictated and is in no question. Raises StorageError."""
        await self._stores.settings.change(DICTATED, lambda _: None)

    async def _keep(self, calls: Sequence[LedgerCall], conversation_id: str) -> None:
        if not calls:
            return
        rows = [await asyncio.to_thread(_row, call, conversation_id) for call in calls]
        await self._stores.settings.change(DICTATED, lambda kept: [*_rows(kept), *rows][-_MOST_LINES:])

    # ---- inside

    async def _services(self) -> list[str]:
        """The names of services that may turn speech into text: known for it, or at an address of one's own."""
        kept = {one.service: one for one in await self._models.kept()}
        found: list[str] = []
        for kind, service in menu(local=self._models.is_local).items():
            own = service.typed and not service.speaks
            if service.model_type != "openai" or not (service.transcribes or own):
                continue
            names = sorted((name for name in kept if kind_of(name) == kind), key=lambda name: (len(name), name))
            usable = not service.typed and self._models.has_key(None, service.address)
            found += names or ([kind] if usable else [])
        return found

    async def _choice(self, name: str, model: str) -> Choice:
        service = _menu_service(name, local=self._models.is_local)
        if service.model_type != "openai":
            raise _gone(name)
        return await self._models.choice_of(ModelName(name, model or usual_model(name)))

    async def _transcriber(self, way: Way) -> Transcriber:
        if way.kind == HERE:
            return LocalTranscriber(self._shared.whisper)
        from core.llm.backends.openai.transcription import ServiceTranscriber

        choice = await self._choice(way.service, way.model)
        stranger = choice.service.typed and not self._models.is_local
        return ServiceTranscriber(choice.address, choice.key, choice.model, public_only=stranger)


def usual_model(name: str) -> str:
    """The model of a service that is asked where none was chosen."""
    service = MENU.get(kind_of(name))
    return service.transcribes or _USUAL if service is not None else _USUAL


class _Account:
    """Collects calls, to be noted in a reply that is not there yet."""

    def __init__(self) -> None:
        self.calls: list[LedgerCall] = []

    def began(self, call: LedgerCall, spoke: Callable[[], bool]) -> None:
        del call, spoke

    def reads(self, call: LedgerCall, so_far: ReadSoFar) -> None:
        del call, so_far

    def ended(self, call: LedgerCall) -> None:
        self.calls.append(call)


def _menu_service(name: str, *, local: bool) -> MenuService:
    """What the menu says of a service that was chosen. Raises SettingsError, key `dictation_gone`."""
    found = menu(local=local).get(kind_of(name))
    if found is None:
        raise _gone(name)
    return found


async def _way(name: str, choice: Choice) -> Way:
    free = choice.service.here or is_near(choice.address)
    service = service_of({"base_url": choice.address}, "openai")
    minute = None if free else await cost_of_sound(60.0, None, choice.model, service)
    return Way("service", name, choice.address, choice.model, free, minute)


async def _tell_price(way: Way, file: FileRecord, path: Path) -> None:
    """Raises DocumentError: the recording is long; its key is one of `ASKED_FIRST`."""
    parts = await asyncio.to_thread(parts_of, path, file.media_type)
    minutes = round(parts[-1].end / 60) if parts else 0
    if minutes <= _LONG if parts else file.size <= _LARGE:
        return
    details: dict[str, Any] = {"name": file.name, "host": way.host, "minutes": minutes}
    key = "recording_long" if parts else "recording_large"
    if parts and way.minute is not None:
        key, details["price"] = "recording_price", f"{max(minutes * way.minute, 0.01):.2f}"
    details["megabytes"] = round(file.size / 1_000_000)
    hint = "Have it read once more to send it there, or choose Whisper on this machine."
    raise DocumentError(
        f"{file.name} is long, and {way.host} is paid for what it hears.", hint=hint, key=key, **details
    )


def _here(transcriber: LocalTranscriber) -> Way:
    return Way(HERE, model=transcriber.model, free=True)


def _gone(name: str) -> SettingsError:
    hint = "Choose another in the settings."
    return SettingsError(f"The service {name} cannot be used for dictation.", hint=hint, key="dictation_gone")


def _row(call: LedgerCall, conversation_id: str) -> dict[str, Any]:
    """A call as it is kept until a question takes it along."""
    stages = packed(call)
    events: list[RunEvent] = [line_of(call, call.usage)]
    events += [CallStages(call.call_id, stages)] if len(stages) <= _LONGEST_STAGES else []
    rows = rows_of(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, start=1))
    return {"talk": conversation_id, "at": time.time(), "rows": [{"kind": one.kind, "of": one.payload} for one in rows]}


def _rows(kept: object) -> list[dict[str, Any]]:
    """What was kept; anything else counts as nothing."""
    found = cast("list[object]", kept) if isinstance(kept, list) else []
    return [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]


def _events(row: Mapping[str, Any]) -> list[RunEvent]:
    parts = _rows(row.get("rows"))
    rows = [EventRow(seq, 0.0, str(one.get("kind")), one.get("of") or {}) for seq, one in enumerate(parts, start=1)]
    return [one.event for one in logged_of(rows)]
