"""What a question of the palette costs among 10,000 conversations, and what keeping their words costs."""

from __future__ import annotations

import asyncio
import random
import re
import statistics
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from bench.figures import Figure, report
from core.messages.message import Message
from core.storage.base import StoredMessage, new_id
from core.storage.conversations import ConversationStore, insert_message
from core.storage.database import Database
from core.storage.search import SearchStore
from core.storage.tables import message_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

OWNER: Final = "local"
CONVERSATIONS: Final = 10_000
AT_ONCE: Final = 200  # conversations of one transaction
QUESTIONS: Final = 400
ROOT: Final = Path(__file__).resolve().parent.parent


def sentences() -> list[str]:
    """Sentences that people wrote: this project's documentation, and both languages of its page."""
    files = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    text = "\n".join(path.read_text("utf-8") for path in files)
    tables = (ROOT / "webui" / "words" / f"{lang}.toml" for lang in ("en", "zh"))
    said = re.findall(r'= "([^"]{12,})"', "\n".join(path.read_text("utf-8") for path in tables))
    return [one.strip() for one in re.split(r"(?<=[.。!?])\s+|\n+", text) if len(one.strip()) > 20] + said


def turns(conversation: str, chosen: random.Random, known: Sequence[str]) -> list[StoredMessage]:
    """Two to ten questions and replies; a question is a sentence, a reply up to fifteen."""
    made: list[StoredMessage] = []
    for number in range(chosen.randrange(1, 6) * 2):
        is_reply = bool(number % 2)
        text = " ".join(chosen.choices(known, k=chosen.randrange(3, 16) if is_reply else 1))
        role = "assistant" if is_reply else "user"
        above = made[-1].id if made else None
        said = (Message(role, text),)
        made.append(StoredMessage(new_id(), conversation, above, role, said, None, "complete", time.time()))
    return made


async def fill(database: Database, chosen: random.Random, known: Sequence[str]) -> int:
    """Make the conversations; returns how many messages they have."""
    store, count = ConversationStore(database, OWNER), 0
    for _ in range(CONVERSATIONS // AT_ONCE):
        records = [await store.create(chosen.choice(known)[:60]) for _ in range(AT_ONCE)]
        batch = [turn for record in records for turn in turns(record.id, chosen, known)]
        count += len(batch)
        await database.write(partial(keep, batch), durable=False)
    return count


def keep(batch: Sequence[StoredMessage], connection: Connection) -> None:
    """Store messages, inside a transaction."""
    for one in batch:
        insert_message(connection, OWNER, one)


def questions(chosen: random.Random, known: Sequence[str]) -> list[str]:
    """What somebody types: one to three words of a sentence, the last of them as far as it was typed."""
    asked: list[str] = []
    while len(asked) < QUESTIONS:
        sentence = chosen.choice(known)
        words = re.findall(r"[\u4e00-\u9fff]{1,4}|[^\W_]+", sentence)
        if not words:
            continue
        some = chosen.sample(words, min(len(words), chosen.randrange(1, 4)))
        asked.append(" ".join([*some[:-1], some[-1][: chosen.randrange(1, len(some[-1]) + 1)]]))
    return asked


async def measure() -> list[Figure]:
    """The figures."""
    chosen, known = random.Random(7), sentences()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "parlour.db"
        database = await Database.open(path)
        messages = await fill(database, chosen, known)
        search, spent = SearchStore(database, OWNER), list[float]()
        for asked in questions(chosen, known):
            began = time.perf_counter()
            await search.find(asked)
            spent.append((time.perf_counter() - began) * 1000)
        size = path.stat().st_size
        letters = await database.read(
            lambda c: c.exec_driver_sql(f"SELECT sum(length(words)) FROM {message_texts.name}").scalar_one()
        )
        await database.aclose()
    spent.sort()
    p50, p95 = statistics.median(spent), spent[int(len(spent) * 0.95)]
    held = f"{messages:,} messages of {letters / 1e6:.0f} million letters, in a database of {size / 1e6:.0f} MB"
    note = f"p50 {p50:.1f}, worst {spent[-1]:.0f} ms; {held}"
    return [Figure(f"{CONVERSATIONS:,} conversations, a question of the palette, p95", p95, 50, "ms", note)]


if __name__ == "__main__":
    report(asyncio.run(measure()))
