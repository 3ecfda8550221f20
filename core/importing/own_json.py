"""Parlour's own export as JSON, taken in again: what its page shows of each turn, and no bytes of files."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, cast

from core.export.schema import FORMAT, VERSION, ConversationExport
from core.export.shared_turns import SharedTurns
from core.importing.tree import BrokenTreeError, NewerExportError, moment
from core.storage.arriving import LONGEST_TITLE, ArrivingConversation, ArrivingTurn
from core.storage.base import is_id, new_id

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    from core.export.schema import ExportedTurn
    from core.messages.content import ContentItem

_NOTE: Final = "json_without_files"
_MOST_NUMBER: Final = 1 << 31
_LONGEST_NAME: Final = 200
_TIMES: Final = 4  # what is copied for messages may take so many times the bytes of its conversation in the file
_MOST_COPIED: Final = 64 << 20
_WRONG: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, OverflowError)
_ROLES: Final = {"user": {"user"}, "assistant": {"assistant", "function"}}


def takes(one: dict[str, Any]) -> bool:
    """Whether an object of a file is an exported conversation of ours."""
    return one.get("format") == FORMAT


def read(one: dict[str, Any], left_out: Counter[str], find: Callable[[str], str]) -> ArrivingConversation | None:
    """The conversation as rows; `None` where nothing in it was said.

    Args:
        left_out: Counts what is left out, by the reason.
        find: Not used: of files it has no bytes.

    Raises:
        BrokenTreeError: It is none, or not all of it.
        NewerExportError: A newer Parlour exported it.
    """
    del find
    version = one.get("version")
    if isinstance(version, int) and version > VERSION:
        raise NewerExportError
    try:
        room = min(_TIMES * len(json.dumps(one)), _MOST_COPIED)
        return _read(ConversationExport.model_validate(one), left_out, room)
    except _WRONG as error:
        raise BrokenTreeError from error


def _read(export: ConversationExport, left_out: Counter[str], room: int) -> ArrivingConversation | None:
    turns = export.turns
    if not any(turn.messages for turn in turns):
        left_out["empty"] += 1
        return None
    if len({turn.id for turn in turns}) < len(turns) or not all(map(_is_right, turns)):
        raise BrokenTreeError
    begun, used = (
        moment(when.isoformat()) for when in (export.conversation.created_at, export.conversation.updated_at)
    )
    if begun is None or any(moment(turn.created_at.isoformat()) is None for turn in turns):
        raise BrokenTreeError
    made = _Turns(export, room)
    row = {
        "id": new_id(),
        "title": " ".join(export.conversation.title.split())[:LONGEST_TITLE],
        "titled_by": "person",
        "created_at": begun,
        "updated_at": max(used or 0.0, begun),
        "leaf_id": made.leaf or made.rows[-1]["id"],
    }
    own = export.conversation.id
    arriving = ArrivingConversation(row, tuple(made.arriving()), origin=own if is_id(own) else "", retold=True)
    for reason, count in (("files", len(export.files)), ("passages", made.left_out)):
        if count:
            left_out[reason] += count
    return arriving


def _is_right(turn: ExportedTurn) -> bool:
    """Whether its messages are of its role, and the page can show what goes along with them."""
    numbers = [one.number for one in turn.citations]
    numbers += [number for one in turn.claims for number in one.numbers]
    corners = [at for one in turn.citations for place in one.rectangles for at in place]
    return (
        all(part.role in _ROLES[turn.role] and _is_right_extra(part.extra or {}) for part in turn.messages)
        and all(map(_is_number, numbers))
        and all(one.passage == 0 or _is_number(one.passage) for claim in turn.claims for one in claim.reasons)
        and all(map(math.isfinite, corners))
    )


def _is_right_extra(extra: Mapping[str, Any]) -> bool:
    """Whether what goes along with a message is of the kinds that Parlour writes."""
    numbers: Any = extra.get("passages") or []
    texts = (extra.get("function_id"), extra.get("failed"))
    return (
        isinstance(numbers, list)
        and all(map(_is_number, cast("list[Any]", numbers)))
        and all(isinstance(one, str | None) for one in texts)
    )


def _is_number(given: Any) -> bool:
    """Whether it can be the number of a passage: these count from 1."""
    return isinstance(given, int) and not isinstance(given, bool) and 1 <= given < _MOST_NUMBER


class _Turns(SharedTurns):
    """All versions of all turns, each where it was."""

    def __init__(self, export: ConversationExport, room: int) -> None:
        self._names = {one.id: one.name[:_LONGEST_NAME] for one in export.files}
        super().__init__(export.turns, self._called, note=_NOTE, room=room)

    def arriving(self) -> list[ArrivingTurn]:
        """Them as rows."""
        found: list[ArrivingTurn] = []
        for row in self.rows:
            own = {name: value for name, value in row.items() if name not in {"run", "thoughts"}}
            log = self.logs.get(row["run"]["id"], []) if row["run"] is not None else []
            found.append(ArrivingTurn(own, row["run"], tuple(log)))
        return found

    def parent(self, turn: ExportedTurn) -> str | None:
        """Raises BrokenTreeError: it follows none that came before it."""
        if turn.parent_id is not None and turn.parent_id not in self.ids:
            raise BrokenTreeError
        return self.ids[turn.parent_id] if turn.parent_id is not None else None

    def _called(self, item: ContentItem) -> str:
        addresses = [str(one) for one in (item.value if isinstance(item.value, list) else [item.value])]
        found = (self._names.get(one.rpartition("/")[2], "") for one in addresses)
        said = ", ".join(filter(None, dict.fromkeys(found)))
        return said if said and self.fits(len(said)) else item.type
