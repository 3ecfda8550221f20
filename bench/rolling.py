"""`python -m bench.rolling --old REV`: an older Parlour and this one side by side, and replies from one to the other.

    python -m bench.rolling --old v0.9 --seconds 20

Both are real processes over one PostgreSQL that waits for its disk. The older one serves people all the time while this
one starts and brings the tables up to date; then both serve; then this one is told to stop in the midst of replies,
which the older one has to write to their ends, and at last the older one, whose replies this one takes. The older code
is what `git archive` gives of a revision, run with the packages of this environment.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import time
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import psycopg

from bench.figures import Figure, report
from bench.pages import Functions
from bench.replicas.people import GONE, Person, browser, config_of
from bench.replicas.place import AS_RUN, QUIET
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request
from tests.e2e.app_process import ROOT, AppProcess
from tests.grown_postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

_WORDS: Final = 60
_TEXT: Final = [f"word{number} " for number in range(_WORDS)] + ["at last"]
_PEOPLE: Final = 3  # at each
_PATIENCE: Final = 120.0  # seconds for what was begun to be whole
_SECRET: Final = "the same secret of both"
_REPLIES: Final = """
SELECT question.parts::text, reply.parts::text, reply.status, reply.conversation_id
FROM messages question LEFT JOIN messages reply ON reply.parent_id = question.id AND reply.role = 'assistant'
WHERE question.role = 'user'
"""
_TAG: Final = re.compile(r"question \d+ at \w+")
_BAD: Final = re.compile(r"^(?:ERROR|CRITICAL)\b.*|^Traceback.*|^\w*(?:Error|Exception)\b.*", re.MULTILINE)


def slowly(request: Request) -> Reply:
    """Six seconds of words, so that some reply is in the midst at any moment."""
    del request
    return Reply(text=_TEXT, pace=0.1)


class Older(AppProcess):
    """A Parlour whose code lies elsewhere."""

    code: Path = ROOT

    def start(self) -> Older:
        """As of `AppProcess`."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "webui"],
                cwd=self.code,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.wait_until_ready()
        return self


@dataclass
class Talk:
    """What people at both said, and what was acknowledged of it.

    Attributes:
        said: The tags of questions that were stored, as far as their pages know.
        broken: What pages met that were not told to leave.
        late: Seconds to the first word, by the Parlour that was asked.
    """

    number: int = 0
    said: list[str] = field(default_factory=list[str])
    broken: list[str] = field(default_factory=list[str])
    late: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    async def ask(self, person: Person, at: str) -> None:
        """Ask a question, which is stored when this returns. Raises one of `GONE`, also where it was refused."""
        self.number += 1
        tag = f"question {self.number} at {at}"
        before = len(person.told)
        await person.say(tag)
        if why := person.told[before:]:
            raise RuntimeError(f"{tag} was refused: {why}")
        self.said.append(tag)

    async def go_on(self, person: Person, at: str, leaving: asyncio.Event) -> None:
        """Ask, read the whole reply, and ask again, until this Parlour is about to be told to stop."""
        while not leaving.is_set():
            try:
                began = time.perf_counter()
                await self.ask(person, at)
                first, whole = await person.watch(first="word0", last="at last")
                self.late.setdefault(at, []).append(first - began)
                if not whole and not leaving.is_set():
                    self.broken.append(f"{at}: a page never saw the end of its reply")
            except GONE as error:
                if not leaving.is_set():
                    self.broken.append(f"{at}: {type(error).__name__}: {error}")


class Site:
    """Both Parlours, and people in front of them.

    Args:
        database: The address of the database.
        held: Ends what is opened.
    """

    def __init__(self, database: str, older: Older, newer: AppProcess, held: AsyncExitStack) -> None:
        self.database, self.older, self.newer = database, older, newer
        self.talk = Talk()
        self._held = held

    async def people(self, app: AppProcess, count: int = _PEOPLE) -> list[tuple[Person, httpx.AsyncClient]]:
        """So many browsers with a page of this Parlour open."""
        functions = Functions.read(await config_of(app.url))
        found = [(Person(client, functions), client) for client in (browser(app.url) for _ in range(count))]
        for person, client in found:
            self._held.push_async_callback(client.aclose)
            self._held.push_async_callback(person.close)
            await person.open()
        return found

    def rows(self) -> dict[str, tuple[str, str, str]]:
        """What the database has to each tag: text, status and conversation of the reply."""
        with psycopg.connect(self.database) as connection:
            found = connection.execute(_REPLIES).fetchall()
        tagged = ((_TAG.search(question), *rest) for question, *rest in found)
        return {tag[0]: (text or "", status or "", talk or "") for tag, text, status, talk in tagged if tag is not None}

    async def settled(self) -> list[str]:
        """What is wrong with the replies to all that was acknowledged, once they are over."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            rows = await asyncio.to_thread(self.rows)
            if all(rows.get(tag, ("", "", ""))[1] not in {"running", ""} for tag in self.talk.said):
                break
            await asyncio.sleep(0.5)  # between two looks
        rows = await asyncio.to_thread(self.rows)
        return [f"{tag}: {wrong}" for tag in self.talk.said if (wrong := _wrong_with(rows.get(tag)))]

    async def seen_at(self, app: AppProcess, client: httpx.AsyncClient, tag: str) -> bool:
        """Whether a page of another Parlour shows a reply that is being written, to its end."""
        conversation = (await asyncio.to_thread(self.rows))[tag][2]
        async with browser(app.url, client.cookies, conversation) as other:
            page = Person(other, Functions.read(await config_of(app.url)))
            try:
                await page.rejoin()
                return (await page.watch(first="word", last="at last"))[1]
            finally:
                await page.close()


def _wrong_with(row: tuple[str, str, str] | None) -> str:
    if row is None:
        return "its question is gone"
    text, status, _ = row
    if status != "complete":
        return f"its reply is {status or 'not there'}"
    return "" if "".join(_TEXT) in text and text.count("word0 ") == 1 else "its reply is not whole"


async def rolled(site: Site, seconds: float) -> list[Figure]:
    """Go through an update and back.

    Args:
        seconds: How long both serve side by side.
    """
    talk, leaving = site.talk, {"older": asyncio.Event(), "newer": asyncio.Event()}
    await asyncio.to_thread(site.older.start)
    at_older = await site.people(site.older)
    first, _ = at_older[0]
    await talk.ask(first, "older")
    if not (await first.watch(first="word0", last="at last"))[1]:
        raise SystemExit("The page of that revision shows replies in a call of its own, which people here do not read.")
    talking = [asyncio.create_task(talk.go_on(one, "older", leaving["older"])) for one, _ in at_older]
    began = time.monotonic()
    await asyncio.to_thread(site.newer.start)  # brings the tables up to date while the older one serves
    started, meanwhile = time.monotonic() - began, len(talk.said)
    at_newer = await site.people(site.newer)
    side_by_side = [asyncio.create_task(talk.go_on(one, "newer", leaving["newer"])) for one, _ in at_newer]
    across: list[bool] = []
    for asked, other, name in ((site.older, site.newer, "older"), (site.newer, site.older, "newer")):
        ((person, client),) = await site.people(asked, 1)
        await talk.ask(person, name)
        across.append(await site.seen_at(other, client, talk.said[-1]))
    await asyncio.sleep(seconds)  # of talk
    both = len(talk.said)
    handed = {"newer": await _handed_over(site, site.newer, "newer", leaving, side_by_side)}
    await asyncio.to_thread(site.newer.start)
    handed["older"] = await _handed_over(site, site.older, "older", leaving, talking)
    wrong = await site.settled()
    return [
        Figure(
            "replies that an update lost, or left in part", len(wrong), 0, "", _of(wrong, f"{len(talk.said)} asked")
        ),
        Figure("pages of both that met an error nobody told them to", len(talk.broken), 0, "", _of(talk.broken)),
        Figure("replies of one that a page of the other did not show to the end", across.count(False), 0, "", "of 2"),
        Figure("replies that the older one took from the newer", handed["newer"], _PEOPLE, "", "", at_least=True),
        Figure("replies that the newer one took from the older", handed["older"], _PEOPLE, "", "", at_least=True),
        Figure(
            "longest first word at the older one, while the newer one updates the tables and beside it",
            max(talk.late["older"]),
            10.0,
            "s",
            f"{meanwhile} questions within the {started:.0f} s of the start, {both - meanwhile} while both served",
        ),
    ]


async def _handed_over(
    site: Site, app: AppProcess, name: str, leaving: dict[str, asyncio.Event], talking: Sequence[asyncio.Task[None]]
) -> int:
    """Tell one to stop in the midst of replies; how many of these the other one wrote to their ends."""
    leaving[name].set()
    await asyncio.gather(*talking)
    begun = len(site.talk.said)
    for person, _ in await site.people(app):
        await site.talk.ask(person, name)
    mine = site.talk.said[begun:]
    await asyncio.sleep(1.0)  # in the midst of their words
    await asyncio.to_thread(app.stop)
    rows = await asyncio.to_thread(site.rows)
    unfinished = [tag for tag in mine if rows.get(tag, ("", ""))[1] == "running"]
    await site.settled()
    rows = await asyncio.to_thread(site.rows)
    return sum(not _wrong_with(rows.get(tag)) for tag in unfinished)


def _of(wrong: Sequence[str], besides: str = "") -> str:
    return "; ".join([*wrong[:5], *([besides] if besides else [])])


def complaints(log: Path) -> list[str]:
    """What a Parlour's log says of errors."""
    return _BAD.findall(log.read_text("utf-8", "replace"))


def archived(revision: str, folder: Path) -> Path:
    """The code of a revision, in a folder. Raises CalledProcessError where there is no such revision."""
    folder.mkdir()
    told = subprocess.run(["git", "archive", "--format=tar", revision], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=told.stdout, check=True)
    return folder


def main() -> None:
    """What is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.rolling")
    parser.add_argument("--old", required=True, help="a revision of this repository")
    parser.add_argument("--seconds", type=float, default=20.0, help="while both serve side by side")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="parlour-rolling-")))
        code = archived(given.old, folder / "code")
        model = stack.enter_context(ModelServer(slowly))
        postgres = stack.enter_context(running_postgres())
        postgres.stop()
        postgres.start(*AS_RUN)
        shared = {**QUIET, "SECRET": _SECRET, "DATABASE": postgres.make("parlour")}
        older, newer = Older(folder / "older", model, shared), AppProcess(folder / "newer", model, shared)
        older.code = code
        for app in (older, newer):
            stack.callback(app.stop)
        try:
            figures = asyncio.run(_measured(shared["DATABASE"], older, newer, given.seconds))
        except BaseException:
            for app in (older, newer):
                with suppress(OSError):
                    sys.stderr.write(f"---- {app.home.name}\n{app.log.read_text('utf-8')[-6000:]}\n")
            raise
        for app in (older, newer):
            app.stop()
        said = {app.home.name: complaints(app.log) for app in (older, newer)}
        warned = sorted(set(re.findall(r"^WARNING .*", older.log.read_text("utf-8"), re.MULTILINE)))
        figures += [
            Figure(f"errors in the log of the {name} one", len(found), 0, "", _of(found))
            for name, found in said.items()
        ]
        report(figures)
        for line in warned:
            sys.stdout.write(f"the older one warned: {line}\n")


async def _measured(database: str, older: Older, newer: AppProcess, seconds: float) -> list[Figure]:
    async with AsyncExitStack() as held:
        return await rolled(Site(database, older, newer, held), seconds)


if __name__ == "__main__":
    main()
