"""What the list of conversations costs a frame with 10,000 conversations, against 50: the server's CPU, and bytes.

The two take turns in one run. Some conversations are pinned, some are archived, and a third are in twenty folders, half
of which are open. A page follows a reply of 200 words, as its own script does.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from contextlib import aclosing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import httpx
import psutil
from sqlalchemy import insert

from bench.figures import Figure, report
from bench.load import cpu
from bench.pages import QUESTION, Functions, RawPage
from core.storage.base import LOCAL_OWNER, new_id
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.folders import FolderStore
from core.storage.tables import conversations
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sqlalchemy import Connection

FEW, MANY = 50, 10_000
FOLDERS: Final = 20
ROUNDS: Final = 3
_DAY = 86_400.0


async def keep(path: Path, count: int, owner: str = LOCAL_OWNER) -> None:
    """Put so many conversations into a database: of the last two years, as somebody keeps them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = await Database.open(path)
    try:
        await ConversationStore(database, owner).ensure_owner()
        folders = FolderStore(database, owner)
        made = [await folders.create(f"Folder {number}") for number in range(FOLDERS)]
        for folder in made[::2]:
            await folders.configure(folder.id, lambda kept: {**kept, "open": True})
        now, each = time.time() - 60, 730 * _DAY / count
        rows: list[dict[str, Any]] = []
        for number in range(count):
            at = now - number * each
            rows.append(
                {
                    "id": new_id(),
                    "owner_id": owner,
                    "title": f"What was said about matter {number}, and when",
                    "created_at": at,
                    "updated_at": at,
                    "folder_id": made[number % FOLDERS].id if number % 3 == 0 else None,
                    "pinned_at": at if number % 200 == 1 else None,
                    "archived_at": at if number % 10 == 5 else None,
                }
            )
        await database.write(partial(_insert, rows))
    finally:
        await database.aclose()


def _insert(rows: Sequence[dict[str, Any]], connection: Connection) -> None:
    connection.execute(insert(conversations), rows)


class Weighed(RawPage):
    """A tab that weighs what it is sent."""

    async def followed(self, process: psutil.Process) -> tuple[float, float, float]:
        """Ask, and follow to the end: ms of the server's CPU and kB of a frame, and kB of the first."""
        before = cpu(process)
        async with aclosing(self._call(self._functions.send, [{"text": QUESTION, "files": []}])) as messages:
            sizes = [len(json.dumps(message, ensure_ascii=False).encode()) async for message in messages]
        return (cpu(process) - before) / len(sizes) * 1000, sum(sizes) / len(sizes) / 1024, sizes[0] / 1024


async def measured(app: AppProcess) -> tuple[float, float, float]:
    """One page that opens, asks and follows."""
    assert app.process is not None
    url = app.url
    async with httpx.AsyncClient(base_url=url, headers={"Referer": url + "/"}, timeout=60) as client:
        await client.get(app.address, follow_redirects=True)
        page = Weighed(client, Functions.read((await client.get("/config")).json()))
        await page.open()
        return await page.followed(psutil.Process(app.process.pid))


def main() -> None:
    """Both sizes in turns."""
    with TemporaryDirectory() as folder, ModelServer(behave) as model:
        apps: dict[int, AppProcess] = {}
        try:
            for count in (FEW, MANY):
                asyncio.run(keep(Path(folder) / str(count) / "parlour.db", count))
                apps[count] = AppProcess(Path(folder) / str(count), model).start()
            for app in apps.values():
                asyncio.run(measured(app))  # warm
            taken = {count: [asyncio.run(measured(app)) for app in [apps[count]] * ROUNDS] for count in apps}
        finally:
            for app in apps.values():
                app.stop()
    middle = {count: [statistics.median(column) for column in zip(*rows, strict=True)] for count, rows in taken.items()}
    report(
        Figure(
            f"a frame beside {MANY:,} conversations over one beside {FEW}: {what}",
            middle[MANY][at] / middle[FEW][at],
            limit,
            "×",
            f"{middle[MANY][at]:.3g} against {middle[FEW][at]:.3g} {unit}",
        )
        for at, (what, unit, limit) in enumerate(
            (
                ("the server's CPU", "ms", 1.1),
                ("bytes, all frames of a reply", "kB", 1.1),
                ("bytes, the first frame", "kB", 1.1),
            )
        )
    )


if __name__ == "__main__":
    main()
