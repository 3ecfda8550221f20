"""What feed and checkpoint cost: replies written in two processes and followed in two others, without a model.

Each reply is of another person. Its beginning and its end are in the figure, shared out over its 90 events.
`python -m bench.replicas.feeding writes|reads|bare …` is one of the processes; it says how much processor it took.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.figures import Figure
from bench.replicas.place import between, in_words, load
from core.messages.events import MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.followed import FollowedRun, Following
from core.runs.manager import Runs
from core.runs.redis_feed import feed_at
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from tests.e2e.app_process import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from bench.replicas.place import Place
    from core.runs.feed import Feed

REPLIES: Final = 100  # of each process
EVENTS: Final = 90
PACE: Final = 1 / 15
GOAL: Final = 250
EARLIER: Final = 20_000  # replies that are in the database already, of 1,000 people
_NUMBERS: Final = "generate_series(1, %(most)s) AS n"
_EARLIER: Final = (
    "INSERT INTO owners (id, created_at) SELECT DISTINCT 'earlier ' || n %% 1000, 0 FROM " + _NUMBERS,
    "INSERT INTO conversations (id, owner_id, title, leaf_id, created_at, updated_at) "
    "SELECT md5('c' || n), 'earlier ' || n %% 1000, 'Counted', md5('a' || n), n, n FROM " + _NUMBERS,
    "INSERT INTO messages (id, owner_id, conversation_id, parent_id, role, parts, run_id, status, created_at) "
    "SELECT md5('q' || n), 'earlier ' || n %% 1000, md5('c' || n), NULL, 'user', '[]', NULL, 'complete', n FROM "
    + _NUMBERS,
    "INSERT INTO messages (id, owner_id, conversation_id, parent_id, role, parts, run_id, status, created_at) "
    "SELECT md5('a' || n), 'earlier ' || n %% 1000, md5('c' || n), md5('q' || n), 'assistant', '[]', md5('r' || n), "
    "'complete', n FROM " + _NUMBERS,
    "INSERT INTO runs (id, owner_id, conversation_id, message_id, status, model, worker, started_at, finished_at) "
    "SELECT md5('r' || n), 'earlier ' || n %% 1000, md5('c' || n), md5('a' || n), 'complete', '', '', n, n FROM "
    + _NUMBERS,
    "INSERT INTO run_events (run_id, owner_id, seq, at, kind, payload) SELECT md5('r' || n), 'earlier ' || n %% 1000, "
    "seq, 0, 'text_delta', '{\"text\": \"w\"}' FROM generate_series(1, 5) AS seq, " + _NUMBERS,
    "INSERT INTO message_agent_thoughts (id, owner_id, message_id, thought, position, created_at) "
    "SELECT md5('t' || n), 'earlier ' || n %% 1000, md5('a' || n), '', 1, n FROM " + _NUMBERS,
    "ANALYZE",
)
_LONGEST: Final = EVENTS * PACE * 3 + 60


class Says:
    """A reply of so many words, at the pace of a model."""

    async def stream(self, messages: list[Message], **_: Any) -> AsyncGenerator[Any, None]:
        """Word by word."""
        del messages
        yield MessageStarted()
        began = time.monotonic()
        for number in range(1, EVENTS):
            await asyncio.sleep(max(0.0, began + number * PACE - time.monotonic()))
            yield TextDelta(f"w{number:03d} ")


_SAID: Final = "".join(f"w{number:03d} " for number in range(1, EVENTS))


async def _writes(runs: Runs, stores: Stores, owner: str) -> str:
    people = [f"{owner} {number}" for number in range(REPLIES)]  # each asks once, as so many would
    asked, made = Message("user", "Count."), [await stores.of(one).conversations.create("Counted") for one in people]
    await _together("made")
    begun = time.process_time()

    async def one(number: int, talk: str) -> str:
        await asyncio.sleep(number / REPLIES)
        run = await runs.of(people[number]).start(talk, Says(), user=asked, parent_id=None, history=[asked])
        return await run.wait()

    ended = await asyncio.gather(*(one(number, talk.id) for number, talk in enumerate(made)))
    return json.dumps({"cpu": time.process_time() - begun, "whole": ended.count("complete")})


async def _reads(feed: Feed, stores: Stores, owner: str) -> str:
    await _together("made")
    begun, followed, known = time.process_time(), list[Following](), set[str]()
    end = time.monotonic() + _LONGEST
    while len(followed) < REPLIES and time.monotonic() < end:
        for record, _ in await stores.runs.running():
            if record.owner_id.rpartition(" ")[0] == owner and record.id not in known:
                known.add(record.id)
                followed.append(Following(FollowedRun(record), feed, lambda _: None, lambda _: None))
        await asyncio.sleep(0.25)
    await asyncio.wait_for(asyncio.gather(*(one.task for one in followed)), _LONGEST)
    said = [one.run.reply().text for one in followed]
    return json.dumps({"cpu": time.process_time() - begun, "whole": said.count(_SAID)})


async def _bare() -> str:
    await _together("made")
    begun = time.process_time()

    async def one(number: int) -> None:
        await asyncio.sleep(number / REPLIES)
        async for _ in Says().stream([]):
            pass

    await asyncio.gather(*(one(number) for number in range(REPLIES)))
    return json.dumps({"cpu": time.process_time() - begun, "whole": REPLIES})


async def _together(said: str) -> None:
    """Say that it is ready, and wait until all are."""
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)


async def _part(role: str, database: str, redis: str, owner: str) -> str:
    if role == "bare":
        return await _bare()
    opened = await Database.open(database)
    stores = Stores(opened, Path("nothing"), Sealer("bench"))
    feed = feed_at(redis.removeprefix("none"), stores)
    runs = Runs(stores, worker=f"{role} {owner}", feed=feed)
    try:
        return await (_writes(runs, stores, owner) if role == "writes" else _reads(feed, stores, owner))
    finally:
        await runs.aclose()
        await opened.aclose()


def _all(place: Place, redis: str, *, apart: str) -> tuple[dict[str, float], int]:
    """Seconds of the processor of each, and how many replies were whole both where written and where read."""
    parts = [(role, f"{apart} {number}") for number in range(2) for role in ("writes", "reads", "bare")]
    command = [sys.executable, "-m", "bench.replicas.feeding"]
    begun = [
        subprocess.Popen(
            [*command, role, place.database, redis or "none", owner],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for role, owner in parts
        if role != "bare" or owner.endswith("0")
    ]
    for one in begun:
        assert one.stdout is not None
        one.stdout.readline()
    before = place.used_by_servers()
    for one in begun:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    told = [json.loads(one.communicate(timeout=_LONGEST * 2)[0].splitlines()[-1]) for one in begun]
    spent = between(before, place.used_by_servers())
    roles = [role for role, owner in parts if role != "bare" or owner.endswith("0")]
    for role, one in zip(roles, told, strict=True):
        spent[role] = spent.get(role, 0.0) + one["cpu"] * (2 if role == "bare" else 1)
    both = [(role, one["whole"]) for role, one in zip(roles, told, strict=True)]
    whole = min(sum(count for role, count in both if role == kind) for kind in ("writes", "reads"))
    spent["writes"] -= spent.pop("bare")  # what the words alone take
    return spent, whole


def measured(place: Place) -> Iterator[Figure]:
    """With a Redis, and by the tables alone."""
    asyncio.run(_made(place.database))
    for how, redis in (("by Redis", place.redis_address), ("by the tables alone", "")):
        busy = load()
        spent, whole = _all(place, redis, apart=how)
        events = 2 * REPLIES * EVENTS
        total = sum(spent.values()) / events * 1e6
        said = f"{in_words(spent, events)}; {whole} of {2 * REPLIES} replies whole; {busy}"
        yield Figure(f"feed and checkpoint {how}, all processes, CPU an event", total, GOAL, "µs", said)


async def _made(database: str) -> None:
    """The tables, with earlier replies: in empty ones all rows share a page, so that all are in conflict."""
    opened = await Database.open(database)
    await opened.write(lambda c: [c.exec_driver_sql(one, {"most": EARLIER}) for one in _EARLIER])
    await opened.aclose()


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(_part(*sys.argv[1:])) + "\n")
