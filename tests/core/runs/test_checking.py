"""A reply from documents ends with what its passages say to its sentences, and that is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from core.errors import NotFoundError
from core.messages.events import (
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import FUNCTION, Message
from core.rag.claims.rules import Reason
from core.rag.document import Passage
from core.rag.embedding.local import LocalEmbedder
from core.runs.claim_check import ClaimChecker
from core.runs.log import Checked
from core.runs.manager import Runs
from core.runs.reply import Reply
from core.runs.rows import KEPT_KINDS
from core.runs.run import RunOptions
from core.storage.base import RunRecord

pytestmark = pytest.mark.anyio

PASSAGE = Passage("The deductible is 300 dollars for each claim.", 1.0, "policy.pdf", "a", 2)
SAID = "The deductible is 300 dollars for each claim. The company was founded by sailors in a harbour."


class Reader:
    """An agent that looks something up, and answers."""

    def __init__(self, *passages: Passage) -> None:
        self.passages = [passage.as_dict() for passage in passages]

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        found = Message(FUNCTION, "…", name="ask_documents", extra={"passages": self.passages, "function_id": "1"})
        for event in (CallStarted("1", "ask_documents"), MessageFinished("calls"), ToolStarted("1")):
            yield event
        for event in (ToolFinished("1", found), MessageStarted(), TextDelta(SAID), MessageFinished("stop")):
            yield event


def with_check(talk: Any, check: Any) -> Any:
    talk.runs = Runs(talk.stores, check=check)
    return talk


@pytest.mark.parametrize("by_meaning", [True, False])
async def test_each_sentence_is_told_apart_and_read_back_from_the_table(talk: Any, by_meaning: bool) -> None:
    run = await with_check(talk, ClaimChecker(by_meaning=by_meaning)).ask(
        Reader(PASSAGE), terms=RunOptions(checked_within=300.0)
    )
    assert await run.wait() == "complete"
    first = SAID.index(" The company")
    expected = (Checked(1, first, "supported", (1,)), Checked(1, len(SAID), "unsupported", ()))
    assert run.reply().claims == expected
    kept = await Runs(talk.stores).of("alice").reply(await talk.last())
    assert kept.claims == expected
    assert kept.text == SAID


async def test_a_reply_without_passages_is_not_checked(talk: Any) -> None:
    run = await with_check(talk, ClaimChecker(by_meaning=True)).ask(Reader())
    await run.wait()
    assert run.reply().claims == ()


async def test_a_check_that_fails_takes_nothing_from_the_reply(talk: Any) -> None:
    async def broken(reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Checked]:
        raise ValueError("no such thing")

    run = await with_check(talk, broken).ask(Reader(PASSAGE))
    assert await run.wait() == "complete"
    assert run.reply().text == SAID


async def test_a_check_that_cannot_even_begin_takes_nothing_from_the_reply(talk: Any) -> None:
    def wants_nothing() -> Sequence[Checked]:
        return ()

    run = await with_check(talk, wants_nothing).ask(Reader(PASSAGE))
    async with asyncio.timeout(10):
        assert await run.wait() == "complete"
    assert run.reply().text == SAID


async def test_a_check_that_was_cancelled_from_inside_takes_nothing_from_the_reply(talk: Any) -> None:
    async def cancelled(reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Checked]:
        raise asyncio.CancelledError  # as of an index that is closed while it is asked

    run = await with_check(talk, cancelled).ask(Reader(PASSAGE))
    async with asyncio.timeout(10):
        assert await run.wait() == "complete"
    assert run.reply().text == SAID


async def test_a_check_that_takes_too_long_is_left_out_and_that_is_told(talk: Any) -> None:
    async def endless(reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Checked]:
        await asyncio.Event().wait()
        return ()

    run = await with_check(talk, endless).ask(Reader(PASSAGE), terms=RunOptions(checked_within=0.01))
    assert await run.wait() == "complete"
    assert (run.reply().text, run.reply().claims, run.reply().hurried) == (SAID, (), "none")
    assert (await Runs(talk.stores).of("alice").reply(await talk.last())).hurried == "none"


async def test_a_check_that_takes_too_long_is_not_missed_where_there_was_nothing_to_check(talk: Any) -> None:
    async def endless(reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Checked]:
        await asyncio.Event().wait()
        return ()

    run = await with_check(talk, endless).ask(Reader(), terms=RunOptions(checked_within=0.01))
    assert await run.wait() == "complete"
    assert run.reply().hurried == ""


async def test_rules_and_words_judge_at_once_where_the_model_of_meaning_is_only_being_loaded(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalEmbedder, "soon", lambda self, texts, within: None)
    run = await with_check(talk, ClaimChecker(by_meaning=True)).ask(Reader(PASSAGE))
    assert await run.wait() == "complete"
    assert [claim.verdict for claim in run.reply().claims] == ["supported", "unsupported"]
    assert run.reply().hurried == "words"
    mine = talk.runs.of("alice")
    await mine.bear_out(await talk.last(), {1})
    kept = await Runs(talk.stores).of("alice").reply(await talk.last())
    assert [claim.verdict for claim in kept.claims] == ["supported", "supported"]
    assert kept.hurried == "words"


async def test_rules_and_words_judge_where_a_search_of_the_documents_does_not_end(talk: Any) -> None:
    async def find(run: RunRecord, sentence: str) -> Sequence[Passage]:
        await asyncio.Event().wait()
        return ()

    checking = ClaimChecker(by_meaning=False, find=find, sought_within=0.01)
    run = await with_check(talk, checking).ask(Reader(PASSAGE))
    assert await run.wait() == "complete"
    assert [claim.verdict for claim in run.reply().claims] == ["supported", "unsupported"]
    assert run.reply().hurried == "searches"


async def test_stop_does_not_wait_for_the_check(talk: Any) -> None:
    begun = asyncio.Event()

    async def endless(reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Checked]:
        begun.set()
        await asyncio.Event().wait()
        return ()

    run = await with_check(talk, endless).ask(Reader(PASSAGE))
    await begun.wait()
    await asyncio.wait_for(run.stop(), 20)
    assert run.status == "complete"
    assert run.reply().text == SAID


async def test_a_sentence_that_another_document_says_is_not_called_unsupported(talk: Any) -> None:
    founded = Passage("The company was founded by sailors in a harbour in 1901.", 1.0, "history.pdf", "b", 1)
    asked: list[tuple[str, str, str]] = []

    async def find(run: RunRecord, sentence: str) -> Sequence[Passage]:
        asked.append((run.owner_id, run.conversation_id, sentence))
        return [founded]

    run = await with_check(talk, ClaimChecker(by_meaning=False, find=find)).ask(Reader(PASSAGE))
    await run.wait()
    assert [claim.verdict for claim in run.reply().claims] == ["supported", "supported"]
    assert run.reply().claims[1].numbers == ()
    assert asked == [("alice", run.conversation_id, "The company was founded by sailors in a harbour.")]


async def test_a_sentence_that_no_document_says_stays_unsupported_and_is_not_proved_by_what_comes_closest(
    talk: Any,
) -> None:
    async def find(run: RunRecord, sentence: str) -> Sequence[Passage]:
        return [PASSAGE]

    checking = ClaimChecker(by_meaning=True, find=find)
    run = await with_check(talk, checking).ask(Reader(PASSAGE), terms=RunOptions(checked_within=300.0))
    await run.wait()
    assert [claim.verdict for claim in run.reply().claims] == ["supported", "unsupported"]
    assert not await checking.supports("The deductible is 450 dollars for each claim.", [PASSAGE])
    assert await checking.supports("The deductible is 300 dollars for each claim.", [PASSAGE])


async def test_a_sentence_that_was_borne_out_later_stays_so_also_when_the_log_was_shortened(talk: Any) -> None:
    run = await with_check(talk, ClaimChecker(by_meaning=False)).ask(Reader(PASSAGE))
    await run.wait()
    message = await talk.last()
    mine = talk.runs.of("alice")
    assert [claim.verdict for claim in (await mine.reply(message)).claims] == ["supported", "unsupported"]
    await mine.bear_out(message, {1})
    assert [claim.verdict for claim in (await mine.reply(message)).claims] == ["supported", "supported"]
    await talk.stores.runs.prune(time.time() + 1, KEPT_KINDS)
    kept = await Runs(talk.stores).of("alice").reply(message)
    assert [(claim.verdict, claim.numbers) for claim in kept.claims] == [("supported", (1,)), ("supported", ())]
    assert kept.text == SAID


async def test_nobody_else_can_bear_out_a_sentence_and_a_reply_that_is_being_made_waits_for_its_end(talk: Any) -> None:
    run = await with_check(talk, ClaimChecker(by_meaning=False)).ask(Reader(PASSAGE))
    message = await talk.last()
    await talk.runs.of("alice").bear_out(message, {1})
    assert run.status == "complete"
    assert [claim.verdict for claim in (await talk.runs.of("alice").reply(message)).claims] == ["supported"] * 2
    with pytest.raises(NotFoundError):
        await talk.runs.of("bob").bear_out(message, {0})


async def test_the_reason_against_a_sentence_is_kept(talk: Any) -> None:
    said = Passage("The deductible is 450 dollars for each claim.", 1.0, "policy.pdf", "a", 2)
    run = await with_check(talk, ClaimChecker(by_meaning=False)).ask(Reader(said))
    await run.wait()
    kept = (await Runs(talk.stores).of("alice").reply(await talk.last())).claims
    assert kept == run.reply().claims
    assert kept[0].reasons == (Reason("amount", "300 dollars", "450 dollars", 1),)
    assert kept[1].reasons == ()
