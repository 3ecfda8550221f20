"""What a page shows of a conversation as the rows of a bundle: with other ids, and nothing that the page leaves out."""

from __future__ import annotations

import json
import re
from collections import deque
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from core.messages.events import MessageStarted, TextDelta
from core.messages.message import FUNCTION, USER, Message
from core.rag.attribution import sentences_of
from core.rag.claims.omission import LeftOut
from core.rag.claims.rules import Reason
from core.runs.log import (
    Checked,
    ClaimsChecked,
    ClaimsJudged,
    Edited,
    Judged,
    LoggedEvent,
    MoreSaid,
    NestedEvent,
    Uncounted,
)
from core.runs.reply import Reply, TextBlock
from core.runs.rows import events_of, rows_of
from core.storage.base import new_id
from core.storage.conversations import dumped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from core.export.schema import ExportedCitation, ExportedClaim, ExportedRun, ExportedTurn
    from core.messages.content import ContentItem
    from core.runs.log import RunEvent

NOTE: Final = "shared_without_files"
"""Names the sentence that the page of a copy shows with a question whose files did not come along."""
_SHOWN: Final = ("function_id", "failed")
"""What the page shows of what goes along with a message, its passages apart."""
_MOST_LEFT_OUT: Final = 20
_EMPTY: Final[Mapping[str, Any]] = {
    "text": "",
    "score": 0.0,
    "document": "",
    "document_id": "",
    "page": None,
    "rectangles": [],
    "heading": "",
    "chunk_id": 0,
}
_SIZE_OF_EMPTY: Final = len(json.dumps(_EMPTY)) + 20
_MOST_DETAILS: Final = 20
_LOOKS: Final = (25, 64 << 20)  # letters that are looked through for passages: so many for each byte of room, and these


class SharedTurns:
    """The turns of a page.

    Args:
        turns: In their order; one whose own is not among them follows the one before it.
        file_name: What the page calls a file that it does not hold.
        note: Names the sentence that a question has whose files did not come along.
        room: Bytes that copies may take, of passages for each message that was given them and of the calls that agents
            within were called by; `None` where the turns are our own.

    Attributes:
        left_out: How many passages, and messages of agents within, are left out as there was no room.
        rows: The lines of `messages.jsonl`.
        logs: The lines of each log, by the id of its run.
        leaf: The id of the last turn of the branch in sight, if there is one.
        ids: Those of rows, by those of their turns.
    """

    def __init__(
        self,
        turns: Iterable[ExportedTurn],
        file_name: Callable[[ContentItem], str],
        *,
        note: str = NOTE,
        room: int | None = None,
    ) -> None:
        self._file_name, self._note, self._room = file_name, note, room
        self._looks = _LOOKS[0] * room + _LOOKS[1] if room is not None else None
        self.left_out = 0
        self.rows: list[dict[str, Any]] = []
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.leaf: str | None = None
        self.ids: dict[str | None, str] = {}
        for turn in turns:
            row = self._row(turn)
            self.rows.append(row)
            self.ids[turn.id] = row["id"]
            self.leaf = row["id"] if turn.shown else self.leaf

    def parent(self, turn: ExportedTurn) -> str | None:
        """The id of the row that a turn follows."""
        return self.ids.get(turn.parent_id, self.leaf)

    def fits(self, size: int) -> bool:
        """Whether there is room for so many bytes more; they are taken of it.

        After what does not fit nothing does: a reply counts its passages, so that only its last ones can be left out.
        """
        if self._room is None:
            return True
        is_room = size <= self._room
        self._room = self._room - size if is_room else 0
        return is_room

    def _row(self, turn: ExportedTurn) -> dict[str, Any]:
        known = {one.number: _Citation(one) for one in turn.citations}
        parts = [self._part(one, known) for one in turn.messages]
        status = "interrupted" if turn.status == "running" else turn.status
        at = turn.created_at.timestamp()
        run = _run(turn.run, status, at) if turn.run is not None else None
        if run is not None and (log := _log(turn, parts, self._inner(turn))):
            self.logs[run["id"]] = log
        return {
            "id": new_id(),
            "parent_id": self.parent(turn),
            "role": turn.role,
            "status": status,
            "created_at": at,
            "parts": dumped(parts),
            "run": run,
            "thoughts": [],
        }

    def _part(self, message: Message, known: Mapping[int, _Citation]) -> Message:
        given = message.extra or {}
        extra = {name: given[name] for name in _SHOWN if name in given}
        if numbers := given.get("passages"):
            extra["passages"] = list(self._passages(numbers, message, known))
        if message.role == USER and message.is_multimodal():
            extra["note"] = self._note
        return message.model_copy(update={"content": self._content(message), "extra": extra or None})

    def _passages(
        self, numbers: Iterable[int], message: Message, known: Mapping[int, _Citation]
    ) -> Iterator[dict[str, Any]]:
        """Those of a message, as far as there is room; one that the page shows nowhere keeps its number alone."""
        said = _plainly(message.get_text_content())
        for number in numbers:
            one = known.get(number)
            if one is not None and one.is_looked_for and not self._may_look_through(said):
                self._room = 0
            if one is not None and self._room != 0 and one.is_shown(said):
                passage, size = one.passage, one.size
            else:
                # The number of the chunk tells it from the next one without a text.
                passage = {**_EMPTY, "number": number, "chunk_id": number}
                size = _SIZE_OF_EMPTY
            if self.fits(size):
                yield passage
            else:
                self.left_out += 1

    def _may_look_through(self, said: str) -> bool:
        if self._looks is None:
            return True
        self._looks -= len(said)
        return self._looks >= 0

    def _inner(self, turn: ExportedTurn) -> Iterator[RunEvent]:
        """What agents within said: each piece names the calls that it was said in."""
        for inner in turn.inner:
            calls = sum(map(len, inner.calls))
            for text in (one.get_text_content() for one in inner.messages if one.role != FUNCTION):
                if text and self.fits(2 * calls):
                    yield from (NestedEvent(inner.calls, one) for one in (MessageStarted(None), TextDelta(text)))
                elif text:
                    self.left_out += 1

    def _content(self, message: Message) -> str:
        """Its texts; the names of files that the page has no more of stand in brackets."""
        items = message.items
        files = [f"[{self._file_name(one)}]" for one in items if one.type != "text"]
        return "\n\n".join([*(one.text for one in items if one.type == "text" and one.text), *files])


class _Citation:
    """A passage that the page shows: what is made of its text is made once, however many messages name it."""

    def __init__(self, one: ExportedCitation) -> None:
        self._one = one

    @property
    def is_looked_for(self) -> bool:
        """Whether only what a tool said tells if the page shows it."""
        return not self._one.cited and bool(self._one.text)

    def is_shown(self, said: str) -> bool:
        """Whether the page shows it: its reply cites it, or its text is part of what a tool said."""
        return self._one.cited or (self.is_looked_for and self._plain in said)

    @cached_property
    def passage(self) -> dict[str, Any]:
        """It as a message holds it."""
        one = self._one
        web = {"url": one.url} if one.url else {}
        return {
            **_EMPTY,
            "number": one.number,
            "text": one.text,
            "document": one.document,
            "document_id": one.document_id,
            "page": one.page,
            "rectangles": [list(at) for at in one.rectangles],
            "heading": one.heading,
            **web,
        }

    @cached_property
    def size(self) -> int:
        """The bytes that it takes in a row."""
        return len(json.dumps(self.passage))

    @cached_property
    def _plain(self) -> str:
        return _plainly(self._one.text)


def _plainly(text: str) -> str:
    """A text without what JSON and line breaks do to it, so that it is found in what a tool said."""
    return "".join(text.replace("\\n", "").replace("\\t", "").replace("\\", "").split())


def _run(one: ExportedRun, status: str, at: float) -> dict[str, Any]:
    return {
        "id": new_id(),
        "status": status,
        "error": _error(one.error) if one.error is not None else None,
        "model": one.model,
        "usage": None,
        "started_at": at,
        "finished_at": at,
    }


def _error(given: Mapping[str, Any]) -> dict[str, Any]:
    """How it ended, in the words that the page has for it."""
    key, message = str(given.get("key") or ""), str(given.get("message") or "")
    given_details: Any = given.get("details")
    details = cast("dict[str, Any]", given_details) if isinstance(given_details, dict) else {}
    told = {name: one for name, one in islice(details.items(), _MOST_DETAILS) if str(one) in message}
    return {"key": key, "message": message, "details": told}


def _log(turn: ExportedTurn, parts: Sequence[Message], inner: Iterable[RunEvent]) -> list[dict[str, Any]]:
    """What its messages do not say: what the check found, that its reader wrote the answer, what agents within said."""
    events = [*inner, *_check(turn, parts)]
    if turn.edited:
        events.append(Edited())
    logged = [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, start=1)]
    rows = ({"seq": one.seq, "at": one.at, "kind": one.kind, "payload": one.payload} for one in rows_of(logged))
    return [json.loads(json.dumps(row)) for row in rows]


def _check(turn: ExportedTurn, parts: Sequence[Message]) -> Iterator[RunEvent]:
    """What was found of its sentences, by their places in the messages as they are now."""
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(parts), start=1))
    waiting: dict[str, deque[ExportedClaim]] = {}
    for one in turn.claims:
        waiting.setdefault(one.text, deque()).append(one)
    found: list[tuple[ExportedClaim, Checked]] = []
    for at, block in enumerate(reply.blocks):
        for sentence, end in sentences_of(block.text) if isinstance(block, TextBlock) else ():
            if alike := waiting.get(" ".join(sentence.split())):
                claim = alike.popleft()
                reasons = tuple(Reason(one.kind, one.words, one.instead, one.passage) for one in claim.reasons)
                found.append((claim, Checked(at, end, claim.verdict, claim.numbers, reasons)))
    if found or turn.uncounted:
        uncounted = (Uncounted(),) if turn.uncounted else ()
        yield ClaimsChecked(tuple(checked for _, checked in found), uncounted=uncounted)
    if left_out := tuple(_left_out(turn)):
        yield MoreSaid(left_out)
    if turn.judged_by:
        said = [Judged(at.block, at.end, one.judged) for one, at in found if one.judged is not None]
        yield ClaimsJudged(turn.judged_by, tuple(said), len(said))


def _left_out(turn: ExportedTurn) -> Iterator[LeftOut]:
    sentences = [" ".join(given.split()) for given in turn.left_out[:_MOST_LEFT_OUT]]
    joined = [" ".join(one.text.split()) for one in turn.citations] if any(sentences) else []
    for sentence in filter(None, sentences):
        for one, text in zip(turn.citations, joined, strict=True):
            if (place := _place_of(sentence, one.text, text)) is not None:
                yield LeftOut(one.number, *place, sentence)
                break


def _place_of(sentence: str, text: str, joined: str) -> tuple[int, int] | None:
    """Where a sentence with single blanks stands in a text, whatever is between its words there.

    Args:
        joined: The text with single blanks.
    """
    at = joined.find(sentence)
    if at < 0:
        return None
    words = [word.start() for word in re.finditer(r"\S+", text)]

    def there(place: int) -> int:
        return words[joined.count(" ", 0, place)] + place - (joined.rfind(" ", 0, place) + 1)

    return there(at), there(at + len(sentence) - 1) + 1
