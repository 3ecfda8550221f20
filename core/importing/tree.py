"""Messages of another application as turns of ours: a tree of questions and replies, whatever its file claims."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from core.messages.content import ContentItem
from core.messages.message import Message
from core.reading.attachments import title_of, user_message
from core.storage.arriving import ArrivingConversation, ArrivingTurn
from core.storage.base import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from core.storage.base import FileRecord

Keep: TypeAlias = "Callable[[Attached], FileRecord | None]"
LONGEST_TEXT: Final = 1_000_000
"""Characters of a message; what is longer is cut, and the report says so."""
_LATEST: Final = 4_102_444_800.0  # the year 2100


class BrokenTreeError(ValueError):
    """Messages follow each other in a circle, or two have the same id."""


class NewerExportError(ValueError):
    """A newer Parlour exported it."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A file of a message: its bytes, or the name of the entry that holds them."""

    name: str
    data: bytes = b""
    entry: str = ""


@dataclass(slots=True)
class Node:
    """A message as another application has it.

    Args:
        parent: The id of the message that it follows; one that is not there means "none".
        at: When, in Unix seconds; `None` where that is not told.
        model: What wrote it, as the application calls it.
    """

    id: str
    parent: str | None
    role: Literal["user", "assistant", "none"]
    text: str = ""
    reasoning: str = ""
    at: float | None = None
    model: str = ""
    attached: list[Attached] = field(default_factory=list[Attached])


@dataclass(slots=True)
class Foreign:
    """A conversation as another application has it; `leaf` is the message that was in sight."""

    title: str
    nodes: list[Node]
    created: float | None = None
    updated: float | None = None
    leaf: str | None = None


def moment(given: Any) -> float | None:
    """A time as seconds: a number of seconds or milliseconds, or ISO 8601; `None` where it is none."""
    if isinstance(given, bool) or given is None:
        return None
    if isinstance(given, int | float):
        value = float(given) if abs(given) < 1e18 else math.nan
        while value > _LATEST * 10:
            value /= 1000
        return value if 0 < value < _LATEST else None
    try:
        value = datetime.fromisoformat(str(given)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return value if 0 < value < _LATEST else None


def said(given: Any) -> str:
    """A text; what is none is empty."""
    return given if isinstance(given, str) else ""


def arrived(
    foreign: Foreign, left_out: Counter[str], keep: Keep, look: Callable[[], None] = lambda: None
) -> ArrivingConversation | None:
    """The conversation as rows; `None` where nothing in it was said.

    Args:
        left_out: Counts what is left out, by the reason.
        keep: Takes an attached file, and gives its record; `None` where it cannot be had.
        look: Called at each turn; it may raise to end the reading.

    Raises:
        BrokenTreeError: It is no tree.
    """
    order = _ordered(foreign.nodes)
    begun = foreign.created or next((one.at for one in order if one.at), None) or time.time()
    turns: dict[str, _Turn] = {}  # by the ids of the nodes that they are made of
    made: list[_Turn] = []
    children = Counter(one.parent for one in foreign.nodes)
    at = begun
    for node in order:
        look()
        above = turns.get(node.parent or "")
        if node.role == "none" or not (node.text.strip() or node.reasoning.strip() or node.attached):
            if above is not None:
                turns[node.id] = above
                if above.last == node.parent and children[node.parent] == 1:
                    above.last = node.id  # what is said after it goes on
            continue
        at = node.at if node.at is not None and node.at > at else at + 1e-3
        goes_on = above is not None and node.role == above.role == "assistant" and children[node.parent] == 1
        if goes_on and above is not None and above.last == node.parent:
            turn = above
        else:
            turn = _Turn(new_id(), above.id if above is not None else None, node.role, at)
            made.append(turn)
        turn.add(node, left_out, keep)
        turns[node.id] = turn
    if not made:
        left_out["empty"] += 1
        return None
    leaf = turns.get(foreign.leaf or "", made[-1])
    row = {
        "id": new_id(),
        "title": " ".join(foreign.title.split()) or _title(made),
        "titled_by": "person",
        "created_at": begun,
        "updated_at": max(foreign.updated or 0.0, begun),
        "leaf_id": leaf.id,
    }
    files = tuple(dict.fromkeys(one for turn in made for one in turn.files))
    return ArrivingConversation(row, tuple(turn.arriving() for turn in made), files)


def _title(turns: Sequence[_Turn]) -> str:
    """What a conversation is called that has no title: by its first question, as those that begin here."""
    asked = (title_of(turn.parts[0]) for turn in turns if turn.role == "user")
    return next((one for one in asked if one), "")


class _Turn:
    def __init__(self, turn_id: str, parent: str | None, role: str, at: float) -> None:
        self.id, self.parent, self.role, self.at = turn_id, parent, role, at
        self.parts: list[Message] = []
        self.files: list[str] = []
        self.model, self.ended, self.last = "", at, ""

    def add(self, node: Node, left_out: Counter[str], keep: Keep) -> None:
        text, reasoning = _cut(node.text, left_out), _cut(node.reasoning, left_out)
        kept: list[FileRecord] = []
        for one in node.attached:
            record = keep(one)
            if record is None:
                left_out["files"] += 1
            else:
                kept.append(record)
                self.files.append(record.id)
        if self.role == "user":
            self.parts.append(user_message(text, kept))
        else:
            items = [ContentItem(text=text)] if text else []
            content = [*items, *(ContentItem(image=one.address) for one in kept)] if kept else text
            self.parts.append(Message(self.role, content, reasoning_content=(reasoning.strip() and reasoning) or None))
        self.model = node.model or self.model
        self.ended, self.last = max(self.ended, node.at or self.ended), node.id

    def arriving(self) -> ArrivingTurn:
        row: dict[str, Any] = {
            "id": self.id,
            "parent_id": self.parent,
            "role": self.role,
            "status": "complete",
            "created_at": self.at,
            "parts": [one.model_dump(mode="json", fallback=str) for one in self.parts],
        }
        if self.role == "user" or not self.model:
            return ArrivingTurn(row)
        run = {"id": new_id(), "status": "complete", "error": None, "model": self.model[:200], "usage": None}
        return ArrivingTurn(row, {**run, "started_at": self.at, "finished_at": self.ended})


def _cut(text: str, left_out: Counter[str]) -> str:
    plain = text.encode(errors="replace").decode().replace("\0", "")
    if len(plain) > LONGEST_TEXT:
        left_out["cut"] += 1
    return plain[:LONGEST_TEXT]


def _ordered(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, each after the one that it follows. Raises BrokenTreeError."""
    known = {one.id: one for one in nodes}
    if len(known) < len(nodes):
        raise BrokenTreeError
    below: dict[str, list[Node]] = {}
    waiting: list[Node] = []
    for one in nodes:
        if one.parent in known:
            below.setdefault(one.parent or "", []).append(one)
        else:
            waiting.append(one)
    order: list[Node] = []
    waiting.reverse()
    while waiting:
        one = waiting.pop()
        order.append(one)
        waiting += reversed(below.get(one.id, []))
    if len(order) < len(nodes):
        raise BrokenTreeError
    return _by_time(order)


def _by_time(order: list[Node]) -> list[Node]:
    """As they came, where their times say so; else branch by branch."""
    place = {one.id: at for at, one in enumerate(order)}
    times: dict[str, float] = {}
    for one in order:  # never before what it follows
        above = times.get(one.parent or "", 0.0)
        times[one.id] = max(above, one.at or above)
    return sorted(order, key=lambda one: (times[one.id], place[one.id]))


def strings(values: Iterable[Any]) -> list[str]:
    """Those of some values that are texts."""
    return [one for one in values if isinstance(one, str)]
