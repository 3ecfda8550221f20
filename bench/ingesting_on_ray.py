"""Two machines take very many documents in, one of them is killed in the middle: all are there, none twice.

Both machines are Ray's own processes on this one (`ray.cluster_utils`). It needs the extra `bulk`, which is in no lock
file: `python -m bench.ingesting_on_ray [--files N] [FOLDER …]`, with real documents from folders among those that are
made.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.figures import Figure, report
from bench.ingesting import made
from core.engine import Engine
from core.errors import ParlourError
from core.ingesting.ingestion import Told, Wanted, ingest
from core.ingesting.running import Tally
from core.ingesting.sources import Item
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import libraries_of

FILES = 240
KILLED_AFTER = 2  # of so many files one is there when a machine is killed
QUESTION = "Which lamp stands beside door 7?"


class Machines:
    """A cluster whose head reads nothing, and two machines with a core each.

    Attributes:
        lost: How many were killed.
    """

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 100_000_000}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self._nodes = [self._cluster.add_node(num_cpus=1, object_store_memory=100_000_000) for _ in range(2)]
        self.address = str(self._cluster.address)
        self.lost = 0

    def kill(self) -> None:
        """Kill one of the two, as a power cut would."""
        self.lost += 1
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)

    def end(self) -> None:
        """End all of it."""
        self._cluster.shutdown()


async def checked(home: Path, files: int, same: int) -> str:
    """What the page has: every document once, whole and found; returns what is told of it."""
    async with Engine(Settings.load(home=home, embedding_model="use"), model=ScriptedModel()) as engine:
        libraries = libraries_of(engine, LOCAL_OWNER)
        (library,) = await libraries.list()
        records = (await libraries.opened(library.id)).documents
        assert Counter(one.status for one in records) == {"ready": files - same}, Counter(one.status for one in records)
        async with engine.workspaces.index(LOCAL_OWNER) as index:
            there = index.documents()
            assert sorted(one.id for one in there) == sorted({str(one.library_id) for one in records})
            made = index.retriever.vector_progress([one.id for one in there]).values()
            assert sum(total for _, total in made) == sum(one.chunks for one in there)
            assert all(done == total for done, total in made)
        assert (await libraries.tried(library.id, QUESTION))[0].document == "note 7.pdf"
        return f"{len(there)} documents of {files} files, {sum(one.chunks for one in there)} passages"


def main() -> None:
    """Take the files in, kill a machine in the midst of it, and look at what is there."""
    parser = argparse.ArgumentParser(prog="python -m bench.ingesting_on_ray")
    parser.add_argument("--files", type=int, default=FILES, help="how many are made")
    parser.add_argument("folders", nargs="*", type=Path, help="of real documents")
    given = parser.parse_args()
    killed_at = max(1, given.files // KILLED_AFTER)
    with tempfile.TemporaryDirectory(prefix="parlour-bench-") as folder:
        home, files = Path(folder) / "home", Path(folder) / "files"
        made(files, given.files)
        for path in given.folders:
            shutil.copytree(path, files / path.name)
        shutil.copy(files / "note 1.pdf", files / "the same as note 1.pdf")
        count = sum(path.is_file() for path in files.rglob("*"))
        machines, began = Machines(), time.perf_counter()

        def told(tally: Tally, item: Item, trouble: ParlourError | None) -> None:
            if trouble is not None:
                print(f"{item.name}: {trouble}", flush=True)
            if tally.read == killed_at and not machines.lost:
                machines.kill()
                print(f"A machine was killed when {tally.read} files were there.", flush=True)

        settings = Settings.load(home=home, embedding_model="use")
        wanted = Wanted(str(files), "Notes", LOCAL_OWNER, machines.address)
        try:
            tally, by_meaning = asyncio.run(ingest(settings, wanted, Told(told, lambda: None)))
        finally:
            machines.end()
        seconds = time.perf_counter() - began
        assert machines.lost == 1
        assert (tally.read, tally.failed) == (count, 0), tally
        assert by_meaning
        again, _ = asyncio.run(ingest(settings, Wanted(str(files), "Notes", LOCAL_OWNER), Told(told, lambda: None)))
        assert (again.read, again.known) == (0, count), again
        told_of_it = asyncio.run(checked(home, count, 1))
    what = "files that are missing or twice, where one of two machines of a Ray cluster is killed"
    report([Figure(what, 0, 0, "", f"{told_of_it}, {seconds:.0f} s with the start of the cluster")])


if __name__ == "__main__":
    main()
