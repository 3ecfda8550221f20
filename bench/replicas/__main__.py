"""`python -m bench.replicas`: several Parlours over one PostgreSQL and one Redis, measured and killed.

    python -m bench.replicas --kills 20
    python -m bench.replicas --only soak --people 100 --soak 10

PostgreSQL waits for the disk, as people run it. Parlours are forked from a process that has imported everything, so
that a start costs a third; otherwise they are what `parlour` starts. `--web 2 --worker 2` parts them by their roles.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
from typing import TYPE_CHECKING, Final

from bench.figures import Figure, report
from bench.replicas import feeding, kills, many, soak
from bench.replicas.place import ALL, Place, shared
from bench.service import service
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PARTS: Final = ("feeding", "many", "kills", "soak")


def main() -> None:
    """What is asked for, or everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.replicas")
    parser.add_argument("--kills", type=int, default=100, help="of each role")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no more is killed")
    parser.add_argument("--replies", type=int, default=200, help="at the same time")
    parser.add_argument("--rate", type=float, default=10.0, help="how many of them begin in a second")
    parser.add_argument("--pages", type=int, default=40, help="that ask in turn, and half as many that stop")
    parser.add_argument("--soak", type=float, default=10.0, help="minutes, of each form")
    parser.add_argument("--form", choices=("embedded", "grown"), help="only that form; both otherwise")
    parser.add_argument("--people", type=int, default=100, help="who talk meanwhile")
    parser.add_argument("--web", type=int, default=0, help="Parlours that only serve pages")
    parser.add_argument("--worker", type=int, default=0, help="Parlours that only write replies")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PARTS, action="append", help="this part, and others that are named so")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)  # what was started ends too
    roles = [*["web"] * given.web, *["worker"] * given.worker] or [*ALL]
    for part in given.only or PARTS:
        report(_measured(part, roles, given))


def _end(*_: object) -> None:
    raise SystemExit(143)


def _measured(part: str, roles: Sequence[str], given: argparse.Namespace) -> Iterator[Figure]:
    with shared(roles) as place:
        match part:
            case "feeding":
                yield from feeding.measured(place)
            case "many":
                yield from _many(place, given)
            case "kills":
                yield from _kills(place, given)
            case _:
                yield from _soak(place, given)


def _many(place: Place, given: argparse.Namespace) -> Iterator[Figure]:
    with service(script=many.SCRIPT) as model:
        place.begin(model, REPLIES_AT_ONCE=str(many.EACH))
        goal = 150.0 if "all" in place.roles else 400.0
        yield asyncio.run(many.first_words(place, model, given.pages, goal))
        yield from asyncio.run(many.at_once(place, given.replies, given.rate))
        yield asyncio.run(many.stops(place, given.pages // 2))


def _kills(place: Place, given: argparse.Namespace) -> list[Figure]:
    chance = random.Random(given.seed)
    kinds = [role for role in sorted({*place.roles}) for _ in range(given.kills)]
    chance.shuffle(kinds)
    with ModelServer(kills.answer) as model:
        place.begin(model.base_url)
        figures, wrong = asyncio.run(kills.measured(place, kinds, given.seed, given.minutes))
        place.end()
    sys.stderr.writelines(f"{one}\n" for one in wrong)
    return figures


def _soak(place: Place, given: argparse.Namespace) -> Iterator[Figure]:
    with service(script=soak.SCRIPT) as model:
        settings = {"BASE_URL": model, "MODEL": "scripted", "API_KEY": "any", "OWNERS": "cookie", "TOKEN": "off"}
        settings |= {"RETRIEVAL": "keyword", "MESSAGES_PER_DAY": "0,0"}
        if given.form != "grown":
            alone = AppProcess(place.folder / "alone", None, settings).start()
            try:
                yield from soak.measured([alone], given.people, given.soak, "one Parlour alone")
            finally:
                alone.stop()
        if given.form != "embedded":
            place.begin(model)
            every = [*place.parlours.values()]
            yield from soak.measured(every, given.people, given.soak, "the grown form", place.serving)


if __name__ == "__main__":
    main()
