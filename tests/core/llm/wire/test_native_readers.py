"""Replies of services with protocols of their own: no letter is lost, wherever they are cut or cited."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.llm.wire.cited import of_claude, of_page
from core.llm.wire.converse import ConverseReader
from core.llm.wire.gemini import GeminiReader
from core.llm.wire.mistral import MistralReader
from core.messages.events import Event, ReasoningDelta, SourceCited, TextDelta

PAGE = {"web": {"uri": "https://example.org/oslo", "title": "Oslo"}}


def line(chunk: object) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def told(*candidates: dict[str, Any]) -> list[Event]:
    reader = GeminiReader(model="gemini-2.5-pro")
    events = [event for one in candidates for event in reader.feed(line({"candidates": [one]}))]
    return events + reader.close()


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": {"parts": [{"text": text}]}, **more}


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def grounded(*ends: int) -> dict[str, Any]:
    supports = [{"segment": {"endIndex": end}, "groundingChunkIndices": [0]} for end in ends]
    return {"groundingChunks": [PAGE], "groundingSupports": supports}


def test_a_sign_that_comes_in_two_halves_is_one_sign() -> None:
    assert text_of(told(said("a \ud83d"), said("\ude00 b", finishReason="STOP"))) == "a 😀 b"


@pytest.mark.parametrize("end", range(1, 12))
def test_a_place_within_a_letter_costs_no_letter(end: int) -> None:
    events = told(said("aé雨😀 b", finishReason="STOP", groundingMetadata=grounded(end)))
    assert text_of(events) == "aé雨😀 b"
    assert sum(isinstance(event, SourceCited) for event in events) == 1


def test_a_source_without_a_place_moves_no_other() -> None:
    events = told(said("One. Two.", finishReason="STOP", groundingMetadata=grounded(0, 4)))
    at = next(at for at, event in enumerate(events) if isinstance(event, SourceCited))
    assert text_of(events[:at]) == "One."


def test_a_thought_is_not_over_where_an_empty_text_comes() -> None:
    reader = MistralReader(model="m")
    thoughts = [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": one}]}]} for one in ("a", "b")]
    events: list[Event] = []
    for delta in (thoughts[0], {"content": ""}, thoughts[1], {"content": "Yes."}):
        events += reader.feed(line({"choices": [{"index": 0, "delta": delta}]}))
    proven = [event for event in events if isinstance(event, ReasoningDelta) and event.proof]
    assert len(proven) == 1
    assert events.index(proven[0]) == len(events) - 2


def test_what_is_cited_has_no_half_signs() -> None:
    (document,) = of_claude({"type": "page_location", "document_title": "t\udc00", "cited_text": "cut \ud83d"})
    (page,) = of_page("https://example.org/\ud83d", "t \ud83d", "x \ud83d", "y \ud83d")
    json.dumps([document, page], ensure_ascii=False).encode()
    assert document["text"] == "cut \ufffd"


def test_an_exception_without_a_word_says_none() -> None:
    reader = ConverseReader()
    reader.feed(line({"exception": "throttlingException", "said": {}}))
    assert reader.error == {"type": "throttlingException", "message": ""}
