"""Values that carry a stranger's text: blocks of a document, messages, turns, replies, passages, bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from core.export.schema import ExportedTurn
from core.messages.content import ContentItem
from core.messages.events import CallDelta, CallStarted, Event, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import FunctionCall, Message
from core.rag.attribution import sentences_of
from core.rag.document import Block, Passage
from core.runs.log import Checked, ClaimsChecked, LoggedEvent
from core.runs.reply import Reply, TextBlock

Make = Callable[[str], Any]
_ROW = 40  # characters of a table's row


def _table(text: str) -> Block:
    rows = [text[at : at + _ROW] for at in range(0, len(text), _ROW)] or [""]
    return Block("table", "\n".join(rows), page=1, cells=tuple((row[:10], row[10:]) for row in rows))


def _called(text: str) -> Message:
    return Message(
        "assistant", "", function_call=FunctionCall("a", json.dumps({"a": text})), extra={"function_id": "1"}
    )


def _turn(*messages: Message) -> ExportedTurn:
    return ExportedTurn(
        id="a",
        role=messages[0].role if messages[0].role == "user" else "assistant",
        status="complete",
        shown=True,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        messages=messages,
    )


def _reply(*events: Event) -> Reply:
    """A reply from a document; each sentence of its text is marked as unproved."""
    reply = Reply(LoggedEvent(at, 0.0, event) for at, event in enumerate([MessageStarted(), *events], start=1))
    claims = tuple(
        Checked(at, end, "unsupported", ())
        for at, block in enumerate(reply.blocks)
        if isinstance(block, TextBlock)
        for _, end in sentences_of(block.text)
    )
    reply.apply(LoggedEvent(reply.seen + 1, 0.0, ClaimsChecked(claims)))
    reply.passages.append({**Passage("It rains in Spain.", 1.0, "a.pdf", "a", page=1).as_dict(), "number": 1})
    return reply


# How each is made of a text, and what the form is called.
FORMS: Mapping[str, Mapping[str, Make]] = {
    "Block": {
        "paragraphs": lambda text: Block("paragraph", text, page=1),
        "headings": lambda text: Block("heading", text, level=1 + len(text) % 3),
        "tables": _table,
        "listings": lambda text: Block("code", text),
    },
    "ContentItem": {"texts": lambda text: ContentItem(text=text)},
    "ExportedTurn": {
        "questions": lambda text: _turn(Message("user", text)),
        "answers": lambda text: _turn(Message("assistant", text, reasoning_content=text), _called(text)),
    },
    "Message": {
        "questions": lambda text: Message("user", text),
        "answers": lambda text: Message("assistant", text, reasoning_content=text),
        "calls": _called,
        "results": lambda text: Message("function", text, name="a", extra={"function_id": "1"}),
    },
    "Passage": {"passages": lambda text: Passage(text, 1.0, "a.pdf", "a", page=1)},
    "Reply": {
        "answers": lambda text: _reply(TextDelta(text)),
        "thoughts": lambda text: _reply(ReasoningDelta(text)),
        "calls": lambda text: _reply(CallStarted("1", "a"), CallDelta("1", text)),
    },
    "bytes": {"bytes": lambda text: text.encode(errors="surrogatepass")},
}
_LISTED = re.compile(r"(?:Sequence|Iterable|list|Collection)\[(\w+)\]")


@cache
def carrier(annotation: str) -> tuple[str, bool]:
    """What kind of carrier a parameter wants, and whether several; "" where it wants text itself."""
    plain = annotation.removesuffix(" | None")
    listed = _LISTED.fullmatch(plain)
    name = listed[1] if listed else plain
    return (name, listed is not None) if name in FORMS else ("", False)
