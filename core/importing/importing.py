"""Brings conversations in: all of a file is read and checked first, then it is stored together, or nothing is."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from core.bridge.cancellation import run_to_end
from core.errors import ConflictError
from core.importing.archive import Archive
from core.importing.bundle import BundleReader, is_bundle
from core.importing.foreign import Foreign
from core.importing.problems import problem
from core.importing.stage import Stage
from core.storage.data_folder import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from core.storage.arriving import ArrivingConversation
    from core.storage.base import FileRecord
    from core.storage.stores import OwnerStores

OWN: Final = "Parlour"
_ZIP: Final = b"PK\x03\x04"
_READ: Final = 0.3  # the share of the work that reading is


@dataclass(frozen=True, slots=True)
class Imported:
    """What was brought in.

    Args:
        source: Whose export it was.
        conversations: The ids that they have now.
        messages: How many turns they have.
        files: How many files came along.
        left_out: How much was left out, by the reason: `tool_results`, `files`, `hidden`, `broken`, `cut`, `empty`,
            `passages` (texts of agents with them, where a conversation has too much); `computed` counts the replies
            for which a bundle says that something was counted by program.
        documents: The conversations and files that are to be read.
        here: For each conversation that was left out because it was there already, the id that it has here.
    """

    source: str
    conversations: tuple[str, ...]
    messages: int
    files: int
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    documents: tuple[tuple[str, FileRecord], ...] = ()
    here: tuple[str, ...] = ()


async def bring_in(  # noqa: PLR0913 - a file, and each option by name
    path: Path,
    stores: OwnerStores,
    *,
    name: str = "",
    told: Callable[[float], None] = lambda _: None,
    look: Callable[[], None] = lambda: None,
    used_at: float | None = None,
    unless_there: Collection[str] | None = None,
) -> Imported:
    """Take a file's conversations in.

    Args:
        path: A bundle or JSON of Parlour's, or an export of ChatGPT, Claude, Open WebUI or LibreChat: ZIP or JSON.
        stores: Of whom they are from now on.
        name: What the reader calls the file; its own name if left out.
        told: Called with the share of the work that is done, in another thread.
        look: Called at each turn of a conversation while it is read and stored, in any thread: what it raises ends the
            work, and nothing is taken in. It is not called any more once all is stored.
        used_at: When the conversations count as used last, in Unix seconds; as the file says if left out.
        unless_there: Given, what is there already is left out; conversations of these ids, which are about to be
            deleted, do not count, nor do files that only they need. Else it comes in once more, as a copy.

    Raises:
        NoSpaceError: The disk is full; nothing was taken in.
        QuotaError: The owner's files take too much room with it; nothing was taken in.
        StorageError: The database failed; nothing was taken in.
        UnsupportedFormatError: It is none of these, or not as it should be; nothing was taken in.
    """
    shown = name or path.name
    with TemporaryDirectory(prefix="parlour-import-") as folder:
        left_out: Counter[str] = Counter()
        loop = asyncio.get_running_loop()

        def check(size: int) -> None:  # in the thread that reads: nothing is unpacked for which there is no room
            asyncio.run_coroutine_threadsafe(stores.files.check_room(size), loop).result()

        stage = Stage(Path(folder), check, look)
        try:
            source = await asyncio.to_thread(_read, path, shown, stage, left_out, lambda share: told(share * _READ))
        except OSError as error:
            raise translated(error, Path(folder)) from error
        here: dict[str, str] = {}
        if unless_there is not None:
            here = await stores.arriving.there_already(partial(_looking, stage), unless_there)
            await asyncio.to_thread(stage.leave, here)
        imported = await _stored(
            stage,
            stores,
            source,
            used_at,
            lambda share: told(_READ + share * (1 - _READ)),
            unless_there or (),
        )
        if disowned := sum(stage.disowned.values()):
            left_out["computed"] = disowned
    told(1.0)
    return replace(imported, left_out=dict(left_out), here=tuple(here.values()))


def check(path: Path, *, name: str = "") -> None:
    """Read a file as `bring_in` does, and keep nothing of it.

    Args:
        name: What the reader calls the file; its own name if left out.

    Raises:
        StorageError: There is no room to unpack it.
        UnsupportedFormatError: It cannot be taken in.
    """
    with TemporaryDirectory(prefix="parlour-import-") as folder:
        try:
            _read(path, name or path.name, Stage(Path(folder), lambda _: None), Counter(), lambda _: None)
        except OSError as error:
            raise translated(error, Path(folder)) from error


def _looking(stage: Stage) -> Iterator[ArrivingConversation]:
    """Its conversations; before each, whether the work is to end."""
    for one in stage:
        stage.look()
        yield one


def _read(path: Path, name: str, stage: Stage, left_out: Counter[str], told: Callable[[float], None]) -> str:
    if not path.is_file():
        raise problem("import_folder" if path.is_dir() else "import_no_file", file=name)
    with path.open("rb") as file:
        is_zip = file.read(len(_ZIP)) == _ZIP
    if not is_zip:
        return Foreign(path, name, None, stage, left_out, told).read()
    with Archive(path, name) as archive:
        if is_bundle(archive):
            BundleReader(archive, stage, told).read()
            return OWN
        return Foreign(path, name, archive, stage, left_out, told).read()


async def _stored(
    stage: Stage,
    stores: OwnerStores,
    source: str,
    used_at: float | None,
    told: Callable[[float], None],
    going: Collection[str],
) -> Imported:
    fresh: dict[str, FileRecord] = {}
    renamed: dict[str, str] = {}
    try:
        await stores.files.check_room(sum(one.path.stat().st_size for one in stage.files.values()))
        for one in stage.files.values():
            stage.look()
            is_taken, is_same = await stores.arriving.known_file(one.id, one.sha256, going)
            if is_same:
                continue
            try:
                record = await stores.files.put(one.name, one.path, wanted="" if is_taken else one.id)
            except ConflictError:  # somebody else takes the same file in at this moment
                record = await stores.files.put(one.name, one.path)
            fresh[one.id] = record
            if record.id != one.id:
                renamed[one.id] = record.id
        ids = await stores.arriving.take_in(
            lambda: _used(stage, used_at), renamed, lambda count: told(count / stage.conversations), stage.look
        )
    except BaseException:
        await run_to_end(stores.files.let_go(fresh.values()))
        raise
    read = [(talk, renamed.get(one, one)) for talk, each in zip(ids, stage, strict=True) for one in each.documents]
    documents = [(talk, await stores.files.record(file_id)) for talk, file_id in read]
    return Imported(source, tuple(ids), stage.messages, len(fresh), documents=tuple(documents))


def _used(stage: Stage, at: float | None) -> Iterator[ArrivingConversation]:
    for one in stage:
        yield one if at is None else replace(one, row={**one.row, "updated_at": at})
