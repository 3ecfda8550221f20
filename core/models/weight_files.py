"""The files of built-in models on this machine: what there is, what would fit, and downloads in the background."""

from __future__ import annotations

import shutil
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.errors import ConflictError, ParlourError
from core.llm.backends.llama_server import is_loaded
from core.llm.weights import NoLongerWantedError, WeightStore
from core.llm.weights_catalog import named, on_offer
from core.resources import all_memory, free_memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from core.llm.request import Progress
    from core.llm.weights_catalog import Weights

Fit: TypeAlias = Literal["suits", "tight", "no_memory", "no_disk", "unknown"]
FileState: TypeAlias = Literal["here", "begun", "fetching", "absent"]

_BESIDE: Final = 150_000_000  # bytes that the engine takes besides
_PER_BYTE: Final = 1.5  # of the file: it, and what is kept of a conversation (measured: 1.3 to 1.7)
_SPARE: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Machine:
    """What a model would have here, in bytes.

    Args:
        memory: All of it.
        free_memory: What no program uses now.
        free_disk: In the folder of weights.
    """

    memory: int
    free_memory: int
    free_disk: int

    @classmethod
    def measured(cls, folder: Path) -> Machine:
        """This one, now."""
        there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
        return cls(all_memory(), free_memory(), shutil.disk_usage(there).free)


@dataclass(frozen=True, slots=True)
class WeightFile:
    """Weights on offer, as they are here.

    Args:
        weights: With what the repository recorded, where it was asked.
        done: Bytes that are here.
        memory: Bytes that it takes while it runs; 0 where not even its size is known.
        estimated: `memory` was reckoned from the size, not measured.
        ours: Parlour fetched it, and may delete it.
        failed: Why the last download ended.
    """

    weights: Weights
    state: FileState
    done: int
    memory: int
    estimated: bool
    fit: Fit
    ours: bool = False
    failed: ParlourError | None = None


@dataclass(slots=True)
class _Download:
    stop: threading.Event = field(default_factory=threading.Event)
    done: int = 0
    total: int = 0
    failed: ParlourError | None = None
    over: bool = False


class WeightFiles:
    """The weights on offer, and at most one download of each that this process makes.

    Args:
        store: Where they are kept.
        machine: Measures what there is room for.
    """

    def __init__(self, store: WeightStore, machine: Callable[[Path], Machine] = Machine.measured) -> None:
        self._store = store
        self._machine = machine
        self._guard = threading.Lock()
        self._downloads: dict[str, _Download] = {}

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return self._store.folder

    def list(self) -> list[WeightFile]:
        """All on offer, the machine's first choice first. Blocks: a file that nobody has checked is hashed."""
        machine = self._machine(self._store.folder)
        return [self._file(weights, machine) for weights in on_offer().values()]

    def fetch(self, name: str, progress: Callable[[Progress], None] | None = None) -> Path:
        """Fetch weights, in this thread. Raises what `WeightStore.fetch` does, and UnknownNameError."""
        return self._store.fetch(named(name), progress)

    def start(self, name: str) -> None:
        """Fetch weights in the background; does nothing while they are being fetched. Raises UnknownNameError."""
        weights = named(name)
        with self._guard:
            before = self._downloads.get(name)
            if before is not None and not before.over:
                return
            download = self._downloads[name] = _Download()
        threading.Thread(
            target=self._run, args=(weights, download), name=f"parlour-weights-{name}", daemon=True
        ).start()

    def cancel(self, name: str) -> None:
        """End a download of this process; what has come stays. Raises UnknownNameError."""
        download = self._downloads.get(named(name).name)
        if download is not None:
            download.stop.set()

    def remove(self, name: str) -> int:
        """Delete weights, or what was begun of them; returns the bytes that are free then.

        Raises:
            UnknownNameError: There are none of that name.
            ConflictError: They are being fetched (`weights_busy`), or in this process's memory (`weights_loaded`).
            ModelServiceError: They cannot be deleted (`weights_not_removed`).
        """
        weights = named(name)
        if is_loaded(self._store.folder / weights.file):
            hint = "Let another model answer, then delete it."
            raise ConflictError(f"{weights.label} is in memory.", hint=hint, key="weights_loaded")
        freed = self._store.remove(weights)
        self._downloads.pop(name, None)
        return freed

    def _run(self, weights: Weights, download: _Download) -> None:
        def tell(progress: Progress) -> None:
            download.done, download.total = progress.done, progress.total

        try:
            self._store.fetch(weights, tell, download.stop)
        except NoLongerWantedError:
            pass
        except ParlourError as error:
            download.failed = error
        finally:
            download.over = True

    def _file(self, weights: Weights, machine: Machine) -> WeightFile:
        weights = self._store.known(weights)
        download = self._downloads.get(weights.name)
        path, begun = self._store.find(weights), self._store.begun(weights)
        state: FileState = "here" if path is not None else "begun" if begun else "absent"
        if download is not None and not download.over:
            state = "fetching"
        size = weights.size or weights.about
        memory = weights.memory or (round(size * _PER_BYTE) + _BESIDE if size else 0)
        missing = 0 if state == "here" else size - begun
        return WeightFile(
            weights,
            state,
            weights.size if state == "here" else begun,
            memory,
            estimated=not weights.memory,
            fit=_fit(memory, missing, machine),
            ours=path is not None and path.parent == self._store.folder,
            failed=download.failed if download is not None else None,
        )


def _fit(memory: int, missing: int, machine: Machine) -> Fit:
    """Whether a model suits a machine; memory that it never has is worse than a disk that can be cleared."""
    if not memory:
        return "unknown"
    if memory > machine.memory:
        return "no_memory"
    if missing > 0 and missing + _SPARE > machine.free_disk:
        return "no_disk"
    return "suits" if memory <= machine.free_memory else "tight"
