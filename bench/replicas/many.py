"""Many replies at the same time, spread over all Parlours: whole, without a gap, begun and stopped soon."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import statistics
import time
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
from sqlalchemy import text

from bench.figures import Figure
from bench.replicas.people import Person, browser, config_of, listener, opened
from bench.replicas.place import between, in_words, load
from core.messages.events import TextDelta
from core.runs.feed import Rewound
from core.runs.log import RunFinished
from core.runs.redis_feed import RedisFeed
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from bench.replicas.place import Place
    from core.runs.feed import Feed
    from core.runs.log import LoggedEvent

WORDS: Final = 100
PACE: Final = 0.1  # seconds between two words
_FEW: Final = 10
EACH: Final = 10  # conversations of one person that are answered at the same time, at most
SCRIPT: Final = {
    "shortly": {"text": [f"w{number:03d} " for number in range(_FEW)], "pace": 0.02, "usage": [10, _FEW]},
    "": {"text": [f"w{number:03d} " for number in range(WORDS)], "pace": PACE, "usage": [10, WORDS]},
}
"""What the service says, by the words of the question."""
_LOOKS: Final = 0.02
_TAG: Final = re.compile(r"\[([0-9a-f]{16})\]")
_NEW: Final = text(
    "SELECT r.id, q.parts::text AS asked FROM runs r JOIN messages a ON a.id = r.message_id "
    "JOIN messages q ON q.id = a.parent_id WHERE r.status = 'running' AND NOT r.id = ANY(:known)"
)
_END: Final = text(
    "SELECT m.parts::text AS said, r.status FROM runs r JOIN messages m ON m.id = r.message_id WHERE r.id = :run"
)


@dataclass
class Heard:
    """What somebody hears who follows a reply in another process.

    Args:
        asked: When it was asked for, by the clock of `time.perf_counter`.
    """

    asked: float
    first: float = 0.0
    text: str = ""
    events: int = 0
    status: str = ""
    rewound: int = 0
    kept: list[LoggedEvent] = field(default_factory=list["LoggedEvent"])

    async def follow(self, feed: Feed, run_id: str) -> None:
        """To the end."""
        async with aclosing(feed.follow(run_id)) as told:
            async for one in told:
                if isinstance(one, Rewound):
                    self.rewound += 1
                    self.kept = [event for event in self.kept if event.seq <= one.after]
                    continue
                self.kept += one
                if not self.first and any(isinstance(event.event, TextDelta) for event in one):
                    self.first = time.perf_counter()
        self.text = "".join(one.event.text for one in self.kept if isinstance(one.event, TextDelta))
        end = self.kept[-1] if self.kept else None
        if end is not None and isinstance(end.event, RunFinished):
            self.status, self.events = end.event.status, end.seq - 1


class Listening:
    """A process beside the Parlours: sees which replies begin, and follows each by the feed, as a Parlour would.

    Args:
        database: Where they are.
        feed: Tells of them.
    """

    def __init__(self, database: Database, feed: Feed) -> None:
        self.database, self.feed = database, feed
        self.asked: dict[str, float] = {}
        self.heard: dict[str, Heard] = {}
        self._known: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def look(self) -> None:
        """Look for new replies again and again."""
        while True:
            for run, asked in await self.database.read(lambda c: c.execute(_NEW, {"known": self._known}).all()):
                self._known.append(run)
                found = _TAG.search(asked)
                if found is not None and found[1] in self.asked:
                    self.heard[run] = heard = Heard(self.asked[found[1]])
                    self._tasks.append(asyncio.create_task(heard.follow(self.feed, run)))
            await asyncio.sleep(_LOOKS)

    async def all_over(self, count: int, seconds: float) -> None:
        """Wait until so many replies were followed to their end, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._tasks) < count or not all(one.done() for one in self._tasks):  # noqa: ASYNC110
                    await asyncio.sleep(_LOOKS)

    async def stored(self, run: str) -> tuple[str, str]:
        """What the tables say in the end: the reply and its status."""
        row = (await self.database.read(lambda c: c.execute(_END, {"run": run}).all()))[0]
        return row.said, row.status


@asynccontextmanager
async def listening(place: Place) -> AsyncGenerator[Listening]:
    """Beside the Parlours of a place, to the end of the block."""
    database = await Database.open(place.database)
    feed = RedisFeed(Stores(database, Path(place.folder) / "nothing", Sealer("bench")).run_news, place.redis_address)
    beside = Listening(database, feed)
    looking = asyncio.create_task(beside.look())
    try:
        yield beside
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await feed.aclose()
        await database.aclose()


async def directly(model: str, times: int = 20) -> float:
    """Seconds that the service itself takes to its first word, without any Parlour: the median."""
    asked = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "Count shortly."}]}
    found: list[float] = []
    async with httpx.AsyncClient(timeout=60) as client:
        for _ in range(times):
            began = time.perf_counter()
            async with client.stream("POST", f"{model}/chat/completions", json=asked) as answer:
                async for line in answer.aiter_lines():
                    if "w000" in line:
                        found.append(time.perf_counter() - began)
                        break
    return statistics.median(found)


async def at_once(place: Place, count: int, rate: float) -> list[Figure]:
    """So many replies, so many begun in a second, each followed by another process to its end."""
    expected = "".join(f"w{number:03d} " for number in range(WORDS)).strip()
    urls = [one.url for one in place.serving]
    new = listener(await config_of(urls[0]), "bus-go", "click")
    async with listening(place) as beside, opened(urls, -(-count // EACH)) as people:
        before, busy, began = place.used(), load(), time.monotonic()

        async def ask(number: int, person: Person) -> None:
            for at in range(number, count, len(people)):
                await asyncio.sleep(max(0.0, began + at / rate - time.monotonic()))
                tag = secrets.token_hex(8)
                beside.asked[tag] = time.perf_counter()
                await person.say(f"[{tag}] Count.")
                await person.do(new, do="new")

        await asyncio.gather(*(ask(number, person) for number, (person, _) in enumerate(people)))
        await beside.all_over(count, count / rate + WORDS * PACE + 60)
        spent = between(before, place.used())
        wrong = count - len(beside.heard)
        for run, heard in beside.heard.items():
            said, status = await beside.stored(run)
            whole = heard.text.strip() == expected and expected in said
            wrong += not (whole and heard.status == status == "complete")
        firsts = [one.first - one.asked for one in beside.heard.values() if one.first]
        events = sum(one.events for one in beside.heard.values())
        rewound = sum(one.rewound for one in beside.heard.values())
    roles = " and ".join(sorted(place.parlours))
    each = in_words(spent, events)
    total = sum(spent.values()) / max(1, events) * 1e6
    said = f"{roles}; {events} events; rewound {rewound} times; {busy}"
    took = f"{each}, with model client, agent loop and the page's sends; {rate:g} begun a second, {1 / PACE:g} words"
    return [
        Figure(f"{count} replies over {len(place.parlours)} Parlours: not whole, or with a gap", wrong, 0, "", said),
        Figure("of these: all processes, CPU an event", total, 1000, "µs", took),
        Figure("of these: first word heard in another process, p95", p95(firsts) * 1000, 1000, "ms", middle(firsts)),
    ]


async def first_words(place: Place, model: str, count: int, goal: float) -> Figure:
    """Pages that ask one after the other, and what is added until each shows the first word."""
    async with opened([one.url for one in place.serving], count) as people:
        bare, busy, added = await directly(model), load(), list[float]()
        for person, _ in people:
            began = time.perf_counter()
            await person.say("Count shortly.")
            shown, _whole = await person.watch(first="w000", last=f"w{_FEW - 1:03d}")
            added.append(shown - began - bare)
    said = f"{middle(added)}; the service itself {bare * 1000:.0f} ms; {count} pages in turn; {busy}"
    return Figure("first word on the page that asked, added, p95", p95(added) * 1000, goal, "ms", said)


async def stops(place: Place, count: int) -> Figure:
    """Replies that are stopped on a page of another Parlour than the one that was asked."""
    urls = [one.url for one in place.serving]
    stop = listener(await config_of(urls[0]), "composer", "stop")
    taken, wrong = list[float](), 0
    async with listening(place) as beside, opened(urls[:1], count) as people:
        for person, client in people:
            tag = secrets.token_hex(8)
            beside.asked[tag] = time.perf_counter()
            known = {*beside.heard}
            await person.say(f"[{tag}] Count.")
            run = await _begun(beside, known)
            talk = await _conversation(beside.database, run)
            async with browser(urls[-1], client.cookies, talk) as other:
                second = Person(other, person.functions)
                await second.open_only()
                began = time.perf_counter()
                await second.stop(stop)
                status = ""
                while status in {"", "running"} and time.perf_counter() - began < 30:
                    _, status = await beside.stored(run)
                taken.append(time.perf_counter() - began)
                wrong += status != "stopped"
                await second.close()
    said = f"{middle(taken)}; {count} replies, {wrong} not stopped; {load()}"
    return Figure("Stop on the page of another Parlour, p95", p95(taken) * 1000, 1000, "ms", said)


async def _begun(beside: Listening, known: set[str]) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for run, heard in beside.heard.items():
            if run not in known and heard.first:
                return run
        await asyncio.sleep(0.02)
    raise RuntimeError("A reply never began.")


async def _conversation(database: Database, run: str) -> str:
    query: Any = text("SELECT conversation_id FROM runs WHERE id = :run")
    return str(await database.read(lambda c: c.execute(query, {"run": run}).scalar_one()))


def p95(times: Sequence[float]) -> float:
    """What nineteen of twenty do not exceed."""
    return sorted(times)[math.ceil(len(times) * 0.95) - 1] if times else float("nan")


def middle(times: Sequence[float]) -> str:
    """For a reader."""
    if not times:
        return "none"
    return f"median {statistics.median(times) * 1000:.0f} ms, worst {max(times) * 1000:.0f} ms"
