"""What Gemini grounds it tells after the text, by places in bytes: each mark stands where its sentence ends."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from core import BasicAgent
from core.llm.reply_store import packed, unpacked
from core.llm.wire.gemini import GeminiReader
from core.messages.events import MessageFinished, SourceCited, TextDelta
from core.messages.marks import appended
from core.runs.log import LoggedEvent
from core.runs.reply import Reply as Shown
from core.runs.resume import answer_in, events_to_edit
from core.runs.rows import logged_of, rows_of
from core.testing.script import Reply
from tests.core.llm.backends.native.services import SERVICES

SAID = ["奥斯陆是挪威的首都。", "那里常", "下雨 ☔。", "\n\n就这些。"]
TEXT = "".join(SAID)
PAGES = [{"web": {"uri": f"https://example.org/{one}", "title": one}} for one in ("oslo", "rain")]
MARKED = "奥斯陆是挪威的首都。 [1]那里常下雨 ☔。 [2] [1]\n\n就这些。"


@pytest.fixture
def gemini(serving):
    return serving(next(one for one in SERVICES if one.model_type == "gemini"))


def support(begin: int, end: int, *chunks: int, by: int = 0) -> dict[str, Any]:
    """A support as the service tells it: the segment by bytes, and its text."""
    segment = {"endIndex": len(TEXT[:end].encode()) + by, "text": TEXT[begin:end]}
    if begin:  # a zero is left out on the wire
        segment["startIndex"] = len(TEXT[:begin].encode()) + by
    return {"segment": segment, "groundingChunkIndices": list(chunks)}


def streamed(*supports: dict[str, Any], again: bool = False, with_text: bool = False) -> Reply:
    """A stream whose last piece has what was grounded; `again` tells the first of it with each piece."""
    lines: list[str] = []
    for number, said in enumerate(SAID):
        told: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": said}]}, "index": 0}
        if again or (with_text and said == SAID[-1]):
            told["groundingMetadata"] = {"groundingChunks": PAGES, "groundingSupports": supports[: number + 1]}
        lines.append(json.dumps({"candidates": [told]}))
    last: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
    if not with_text:
        last["groundingMetadata"] = {"groundingChunks": PAGES, "groundingSupports": supports, "webSearchQueries": ["q"]}
    lines.append(json.dumps({"candidates": [last], "usageMetadata": {"promptTokenCount": 3}}))
    return Reply(body="".join(f"data: {one}\n\n" for one in lines), content_type="text/event-stream")


FIRST, SECOND = support(0, 10, 0), support(10, 18, 1, 0)


@pytest.mark.parametrize(
    "reply",
    [
        streamed(FIRST, SECOND),
        streamed(SECOND, FIRST),
        streamed(FIRST, SECOND, again=True),
        streamed(FIRST, SECOND, with_text=True),
        streamed(
            support(0, 10, 0, by=2), support(10, 18, 1, 0, by=7)
        ),  # counted otherwise: the words themselves decide
    ],
    ids=["in order", "out of order", "again and again", "with the last text", "miscounted"],
)
def test_marks_stand_where_the_sentences_end_on_the_page_and_in_the_reply(gemini, reply):
    gemini.play(reply)
    found = BasicAgent(llm=gemini.model()).ask("奥斯陆怎么样？")
    assert found.text == MARKED
    assert [one.sentence for one in found.citations] == [SAID[0], "那里常下雨 ☔。"]
    log = [LoggedEvent(one.seq, one.at, one.event) for one in found.log]
    shown = Shown(log)
    assert (shown.text, [one["document"] for one in shown.passages]) == (MARKED, ["oslo", "rain"])
    assert Shown(logged_of(rows_of(log))).text == MARKED


def test_the_text_comes_piece_by_piece_before_its_marks(gemini):
    gemini.play(streamed(FIRST, SECOND))
    told = [one.event for one in BasicAgent(llm=gemini.model()).ask("q").log]
    assert "".join(one.text for one in told if isinstance(one, TextDelta)) == TEXT
    assert [(one.back, one.marks) for one in told if isinstance(one, SourceCited)] == [(14, " [1]"), (6, " [2] [1]")]


def test_what_is_grounded_without_a_place_is_marked_at_the_end(gemini):
    gemini.play(streamed())
    assert BasicAgent(llm=gemini.model()).ask("q").text == f"{TEXT} [1] [2]"


def test_a_guard_sees_the_marks_and_what_it_writes_instead_keeps_none(gemini):
    seen: list[str] = []

    def guard(text: str) -> str | None:
        seen.append(text)
        return "别的。" if len(seen) > 1 else None

    gemini.play(streamed(FIRST, SECOND), streamed(FIRST, SECOND))
    agent = BasicAgent(llm=gemini.model())
    agent.output_guard(guard)
    assert [agent.ask("q").text, agent.ask("q").text] == [MARKED, "别的。"]
    assert seen == [MARKED, MARKED]


def test_a_reply_that_its_reader_writes_anew_has_the_new_text_alone(gemini):
    gemini.play(streamed(FIRST, SECOND))
    told = BasicAgent(llm=gemini.model()).ask("q").log
    log = [LoggedEvent(one.seq, one.at, one.event) for one in told]
    assert answer_in(log) == MARKED
    assert Shown(events_to_edit(log, "新的。")).text == "新的。"


@pytest.mark.anyio
async def test_a_partial_text_ends_with_its_marks(gemini):
    gemini.play(streamed(FIRST, SECOND))
    *_, last = [one.value async for one in BasicAgent(llm=gemini.model()).partials("q", str)]
    assert last == MARKED


def test_whoever_can_only_write_on_has_the_marks_behind_the_text():
    late = SourceCited(({"document": "oslo"},), 6, " [1]")
    assert appended(late) == TextDelta(" [1]")
    assert appended(SourceCited(late.passages)) == SourceCited(late.passages)


def test_a_cached_reply_keeps_its_places():
    told = [TextDelta("One. Two."), SourceCited(({"document": "oslo"},), 5), SourceCited(({"document": "rain"},))]
    assert unpacked(packed([*told, MessageFinished("stop")]))[1:-1] == told


def told_by(*pieces: tuple[str, list[int]]) -> str:
    """What a reader tells of texts with the ends of what is grounded, in bytes; a stroke stands for each mark."""
    reader, text = GeminiReader(), ""
    for said, ends in pieces:
        supports = [{"segment": {"endIndex": end}, "groundingChunkIndices": [0]} for end in ends]
        told: dict[str, Any] = {"content": {"parts": [{"text": said}]}}
        told |= {"groundingMetadata": {"groundingChunks": PAGES, "groundingSupports": supports}} if ends else {}
        for event in reader.feed(f"data: {json.dumps({'candidates': [told]})}\n\n".encode()):
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, SourceCited):
                text = f"{text[: len(text) - event.back]}|{text[len(text) - event.back :]}"
    return text


def test_what_is_grounded_before_its_text_comes_stands_in_its_order_and_no_text_comes_twice():
    assert told_by(("One. ", [14]), ("Two. Three. Four.", [9])) == "One. Two.| Thre|e. Four."


def test_a_character_that_comes_in_halves_counts_as_the_service_counts_it():
    assert told_by(("Sun \ud83d", []), ("\ude00. Rain.", [9])) == "Sun 😀.| Rain."
    assert told_by(("Sun \ud83d", []), ("\ude00. Rain.", []), ("", [9])) == "Sun 😀.| Rain."


def test_however_many_places_a_service_names_they_are_read_at_once():
    began = time.process_time()
    assert told_by(("One.", [10**9 + number for number in range(30_000)])) == "One."
    assert time.process_time() - began < 5, "what looks at each pair of them takes minutes"
