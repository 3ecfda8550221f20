"""Reads files on the machines of a Ray cluster: they parse and make vectors, and this process alone writes.

What a machine that is lost was reading is read again by another one.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from core.bridge.cancellation import run_to_end
from core.errors import DocumentError, MissingExtraError, ParlourError, SettingsError, StorageError, extra_for
from core.rag.parsers.process import raised
from core.rag.parsers.worker import error_as_dict
from core.rag.prepared import Prepared, bulk_embedders, prepared
from core.reading import job as outcome

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from core.ingesting.keeping import Keeping
    from core.ingesting.sources import Item, Source
    from core.rag.config import RAGConfig
    from core.rag.embedding.base import Embedder
    from core.rag.library import Library
    from core.rag.parsers.process import Limits

_TRIES: Final = 3  # further ones, where a worker is lost
_QUEUED: Final = 2  # files for each core: one is read, one waits
_OF_THE_STORE: Final = frozenset({"files_server", "files_keys", "files_bucket"})
HERE: Final = "ray"
"""Names a cluster of this machine alone, which ends with the run."""


@contextmanager
def cluster(where: str, workers: int) -> Generator[Any]:
    """The package `ray`, connected to a cluster to the end of the block.

    Args:
        where: `ray`, or the address of a cluster: `host:6379` from one of its machines, `ray://host:10001` from afar.
        workers: How many cores a cluster of this machine has.

    Raises:
        MissingExtraError: Ray is not installed.
        SettingsError: There is no such cluster.
    """
    with extra_for("Reading on a Ray cluster"):
        import ray  # pyright: ignore[reportMissingImports]
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # noqa: TID251 - else Ray tells its makers of this machine
    package: Any = ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if where == HERE:
            package.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        else:
            package.init(address=where, **quiet)
    except (ConnectionError, OSError, ValueError, RuntimeError, TimeoutError) as error:
        raise SettingsError(
            f"There is no Ray cluster at {where}.",
            hint="Give host:port or ray://host:port of its head, or `ray` for one of this machine. If the cluster "
            "wants its token, set RAY_AUTH_MODE=token, too.",
            key="ingest_no_cluster",
            place=where,
        ) from error
    try:
        yield package
    finally:
        package.shutdown()


def read_there(source: Source, item: Item, config: RAGConfig, limits: Limits) -> Prepared | dict[str, Any]:
    """Read a file on the machine where this runs; what went wrong is a value, for errors do not travel well."""
    try:
        with source.opened(item, limits.file_bytes) as path:
            return prepared(path, item.name, config, limits, _models(_Chosen(config)))
    except ParlourError as error:
        return error_as_dict(error)
    except OSError as error:
        why = error.strerror or str(error)
        failed = DocumentError(f"{item.name!r} cannot be opened: {why}.", key="document_unopened", why=why)
        return error_as_dict(failed)


class _Chosen:
    """A config by what makes its vectors: the models of a worker are made once."""

    def __init__(self, config: RAGConfig) -> None:
        self.chosen = config.embedding_model

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Chosen) and other.chosen == self.chosen

    def __hash__(self) -> int:
        return hash(str(self.chosen))


@lru_cache(maxsize=2)
def _models(config: _Chosen) -> list[Embedder]:
    return bulk_embedders(config.chosen)


class ReaderOnRay:
    """A `Reader` on a cluster.

    Args:
        ray: The package, connected.
        keeping: Keeps files as documents.
        index: The owner's; one that makes no vectors by itself.
        source: Where the files are, for the cluster's machines too.
        how: How they are read, and what one may cost.
    """

    def __init__(
        self, ray: Any, keeping: Keeping, index: Library, source: Source, how: tuple[RAGConfig, Limits]
    ) -> None:
        self._ray, self._keeping, self._index, self._source, self._how = ray, keeping, index, source, how
        self._task = ray.remote(max_retries=_TRIES, num_cpus=1)(read_there)
        self._writing = asyncio.Semaphore(1)  # one writer: the database has the documents in one order
        self._vectors = index.prepared_vectors()

    @property
    def at_once(self) -> int:
        """As of `Reader`: by the cores that the cluster has now."""
        return max(2, _QUEUED * int(self._ray.cluster_resources().get("CPU", 1)))

    async def read(self, item: Item) -> str:
        """As of `Reader`."""
        ready = await self._there(item)
        async with self._writing, self._keeping.opened(item, self._how[0].pdf_reader) as path:
            return await self._kept(item, path, ready)

    async def _kept(self, item: Item, path: Path, ready: Prepared) -> str:
        async with self._keeping.document(path, item.name) as new:
            if new.status == "ready":  # the same bytes stood elsewhere
                return new.id
            taken = asyncio.to_thread(self._index.take, path, ready, self._vectors)
            state = outcome.read(await run_to_end(taken), new.name, None, known=False)
            return (await self._keeping.stores.documents.update(new.id, **state)).id

    async def _there(self, item: Item) -> Prepared:
        """What a worker reads. Raises as `Reader.read`."""
        errors = self._ray.exceptions
        asked = self._task.remote(self._source, item, *self._how)
        try:
            told: Prepared | dict[str, Any] = await asyncio.wrap_future(asked.future())
        except asyncio.CancelledError:
            self._ray.cancel(asked, force=True)
            raise
        except errors.RayTaskError as error:
            why = next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
            raise SettingsError(
                f"The machines of the cluster cannot read: {why}.",
                hint='Install the same version of "parlour[bulk,documents]" on all of them.',
                key="ingest_workers",
                why=why,
            ) from error
        except errors.RayError as error:
            raise DocumentError(
                f"The machines that read {item.name} were lost {_TRIES + 1} times.",
                hint="Run it once more.",
                key="ingest_worker_lost",
                name=item.name,
            ) from error
        if isinstance(told, Prepared):
            return told
        if told["key"] in _OF_THE_STORE:
            raise StorageError(told["message"], hint=told["hint"], key=told["key"], **told["details"])
        error = raised(told)
        raise error if isinstance(error, DocumentError | MissingExtraError) else DocumentError(str(error))
