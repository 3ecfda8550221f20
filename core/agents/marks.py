"""The marks of what a model's service cites by itself: numbers for its passages, and the places in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.messages.events import SourceCited, TextDelta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.messages.events import Event
    from core.rag.document import Passage


@dataclass(slots=True)
class TurnMarks:
    """The marks of one turn of a model, which knows nothing of them.

    Attributes:
        placed: Behind how many characters of what the model told each stands, and how long it is; in order.
    """

    placed: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def marked(self, event: SourceCited, evidence: list[Passage], text: str | None) -> Iterator[Event]:
        """The marks of what the service cites, and those of its passages that had no number yet.

        Args:
            evidence: The passages that have a number, in their order; new ones are added.
            text: That of the turn so far, with its marks; `None` where it is data, and gets none.
        """
        from core.rag.document import Passage  # brings the document readers with it

        numbers: dict[int, None] = {}
        new: list[dict[str, Any]] = []
        known = {_identity(one): number for number, one in enumerate(evidence, 1)}
        for row in event.passages:
            passage = Passage.from_dict(row)
            number = known.get(_identity(passage), 0)
            if not number:
                evidence.append(passage)
                number = known[_identity(passage)] = len(evidence)
                new.append({**row, "number": number})
            numbers[number] = None
        marks = "" if text is None else "".join(f" [{number}]" for number in numbers)
        back = self._back(event, text, len(marks)) if text and marks else 0
        if marks and not back:
            yield TextDelta(marks)
        if new or back:
            yield SourceCited(tuple(new), back, marks if back else "")

    def _back(self, event: SourceCited, text: str, length: int) -> int:
        """How many characters of the text with its marks come after the place; the marks there are noted."""
        plain = self._without(text)
        place = _place(plain, len(plain) - event.back, str(event.passages[0].get("said") or "") if event.back else "")
        back = len(plain) - place + sum(long for at, long in self.placed if at > place)
        self.placed = sorted([*self.placed, (place, length)], key=lambda one: one[0])
        return back

    def _without(self, text: str) -> str:
        """What the model told, without the marks."""
        pieces: list[str] = []
        told = at = 0
        for place, length in self.placed:
            pieces.append(text[at : at + place - told])
            at, told = at + place - told + length, place
        return "".join([*pieces, text[at:]])


def _place(text: str, place: int, said: str) -> int:
    """The end of what the passages bear out: where the service counts it, unless its words stand elsewhere alone."""
    before = text[: max(0, place)].rstrip()
    if said and not before.endswith(said):
        ends = [found.end() for found in re.finditer(re.escape(said), text)]
        if ends:  # of the same words said twice, those nearest to it
            return min(ends, key=lambda end: abs(end - place))
    return len(before) if before and place < len(text) else len(text)


def _identity(passage: Passage) -> tuple[Any, ...]:
    return passage.document_id, passage.chunk_id, passage.page, passage.text
