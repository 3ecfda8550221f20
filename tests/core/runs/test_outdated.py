"""What a process wrote that died stays in sight until the one that goes on says something; no word is shown twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import anyio
import pytest

from core.errors import StorageError
from core.messages.events import (
    CallStarted,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import FUNCTION, Message
from core.runs.feed import Rewound, Told
from core.runs.followed import FollowedRun, Following
from core.runs.log import LoggedEvent, ModelAsked, RunFinished, TakenOver
from core.runs.reply import CallBlock, ReasoningBlock, TextBlock
from core.storage.base import RunRecord
from webui.render.reply import reply_entries
from webui.words import Words

pytestmark = pytest.mark.anyio
CALLED = (
    MessageStarted(),
    TextDelta("I look. "),
    CallStarted("c", "look"),
    MessageFinished("calls"),
    ToolStarted("c"),
    ToolFinished("c", Message(FUNCTION, "It is green.", name="look", extra={"function_id": "c"})),
)
AGAIN = (TakenOver(), ModelAsked("m", "answer", "a model", 100))


class Teller:
    """A feed that tells what it is given."""

    tells = False

    def __init__(self) -> None:
        self.given: asyncio.Queue[Told | StorageError | None] = asyncio.Queue()

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[Told, None]:
        while (told := await self.given.get()) is not None:
            if isinstance(told, StorageError):
                raise told
            yield told


class Seen:
    """A reply that is followed, as its reader sees it."""

    def __init__(self, record: RunRecord) -> None:
        self.feed, self.looks = Teller(), list[str]()
        feed: Any = self.feed
        self.following = Following(FollowedRun(record), feed, self._moved, lambda _: None)

    def _moved(self, _: FollowedRun) -> None:
        self.looks.append(self.text)

    @property
    def run(self) -> FollowedRun:
        return self.following.run

    @property
    def text(self) -> str:
        return "|".join(one.text for one in self.run.reply().blocks if isinstance(one, TextBlock))

    async def hears(self, *told: Told | StorageError) -> str:
        """The text when all of it was told."""
        for one in told:
            self.feed.given.put_nowait(one)
        with anyio.fail_after(10):
            while not self.feed.given.empty():
                await asyncio.sleep(0)
            for _ in range(3):
                await asyncio.sleep(0)
        return self.text


def news(*events: Any, after: int = 0) -> Sequence[LoggedEvent]:
    return [LoggedEvent(seq, 0.1 * seq, one) for seq, one in enumerate(events, start=after + 1)]


@pytest.fixture
async def seen(talk: Any) -> AsyncIterator[Seen]:
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker="elsewhere")
    made = Seen(record)
    yield made
    made.following.close()
    await asyncio.gather(made.following.task, return_exceptions=True)


async def test_the_text_stays_until_the_next_writer_says_something_which_takes_its_place(seen: Seen) -> None:
    assert await seen.hears(news(MessageStarted(), TextDelta("It was "), TextDelta("green"))) == "It was green"
    assert await seen.hears(Rewound()) == "It was green"
    assert await seen.hears(news(*AGAIN)) == "It was green"
    assert seen.run.reply().outdated
    assert await seen.hears(news(MessageStarted(), after=2)) == "It was green"
    assert await seen.hears(news(TextDelta("It"), after=3)) == "It"
    assert await seen.hears(news(TextDelta(" was"), after=4)) == "It was"
    assert not seen.run.reply().outdated
    assert seen.looks == ["It was green", "It"]  # the page looks again, and sees a text each time


async def test_what_was_called_before_stands_there_once_and_what_was_said_after_it_stays(seen: Seen) -> None:
    assert await seen.hears(news(*CALLED, MessageStarted(), TextDelta("It is gr"))) == "I look. |It is gr"
    assert await seen.hears(Rewound(), news(*CALLED, *AGAIN)) == "I look. |It is gr"
    assert sum(isinstance(one, CallBlock) for one in seen.run.reply().blocks) == 1
    assert await seen.hears(news(MessageStarted(), TextDelta("Green."), after=8)) == "I look. |Green."
    assert sum(isinstance(one, CallBlock) for one in seen.run.reply().blocks) == 1


async def test_what_the_next_writer_says_at_once_is_shown_at_once(seen: Seen) -> None:
    await seen.hears(news(*CALLED, MessageStarted(), TextDelta("It is gr")))
    assert await seen.hears(Rewound(), news(*CALLED, *AGAIN, MessageStarted(), TextDelta("G"))) == "I look. |G"
    await seen.hears(Rewound(), news(MessageStarted(), TextDelta("whole"), MessageFinished("stop"), TakenOver()))
    assert seen.text == "whole"  # only its end was not stored


async def test_a_call_of_the_next_writer_takes_its_place_too(seen: Seen) -> None:
    await seen.hears(news(MessageStarted(), TextDelta("It is gr")))
    assert await seen.hears(Rewound(), news(*AGAIN, *CALLED)) == "I look. "
    await seen.hears(Rewound(), news(*AGAIN))
    assert await seen.hears(news(CallStarted("d", "look"), after=2)) == ""


async def test_thoughts_take_the_place_of_thoughts_and_of_no_text(seen: Seen) -> None:
    thought = (MessageStarted(), ReasoningDelta("Hm."))
    await seen.hears(news(*thought, TextDelta("Green")))
    assert await seen.hears(Rewound(), news(*AGAIN, *thought)) == "Green"
    assert await seen.hears(news(TextDelta("Blue"), after=4)) == "Blue"


async def test_a_thought_alone_stays_until_there_is_another(seen: Seen) -> None:
    await seen.hears(news(MessageStarted(), ReasoningDelta("Hm.")), Rewound(), news(*AGAIN))
    assert [one.text for one in seen.run.reply().blocks if isinstance(one, ReasoningBlock)] == ["Hm."]
    await seen.hears(news(MessageStarted(), ReasoningDelta("Well."), after=2))
    assert [one.text for one in seen.run.reply().blocks if isinstance(one, ReasoningBlock)] == ["Well."]


async def test_killed_again_before_it_said_anything_the_text_stays(seen: Seen) -> None:
    await seen.hears(news(MessageStarted(), TextDelta("It was green")))
    for _ in range(2):
        assert await seen.hears(Rewound(), news(*AGAIN)) == "It was green"
    assert await seen.hears(Rewound(2), news(ModelAsked("n", "answer", "a model"), after=2)) == "It was green"
    assert await seen.hears(news(TextDelta("Blue"), after=3)) == "Blue"


async def test_at_the_end_there_is_what_is_stored(seen: Seen) -> None:
    await seen.hears(news(MessageStarted(), TextDelta("It was green")), Rewound(), news(*AGAIN))
    before = seen.run
    assert await seen.hears(news(RunFinished("interrupted"), after=2)) == ""
    assert (before.status, seen.run.reply().status) == ("interrupted", "interrupted")


async def test_while_the_tables_cannot_be_read_the_text_stays(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.runs.followed._TRY_AGAIN_AFTER", 0)
    assert await seen.hears(news(MessageStarted(), TextDelta("It was green")), StorageError("away")) == "It was green"
    assert await seen.hears(news(MessageStarted(), TextDelta("It was green, yes"))) == "It was green, yes"


async def test_that_nobody_writes_is_said_below_the_text_that_stays(seen: Seen, talk: Any) -> None:
    await seen.hears(news(MessageStarted(), TextDelta("It was green")), Rewound(), news(*AGAIN))
    words, message = Words("en"), await talk.last()

    def shown() -> str:
        return str(reply_entries(message, seen.run.reply(), words, last=True))

    assert "100 tokens" in shown()
    seen.run.stand("nobody")
    assert words("reply.nobody_left").split(".")[0] in shown()
    assert "It was green" in shown()
    seen.run.stand("")
    assert "100 tokens" in shown()
