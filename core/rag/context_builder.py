"""The context of an answer: neighbouring chunks merged to one passage, and short documents in full."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from core.rag.document import strokes
from core.rag.not_read import of_text
from core.rag.prose import count_tokens
from core.rag.scope_part import passages_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from core.rag.document import Passage
    from core.rag.scope_part import Part
    from core.rag.shelf import Shelf

_MOST_TOGETHER = 3  # chunks in one passage: its number has to stand for something that can be looked at
_SHORTEST_TOKEN = 0.25  # a letter is this much of a token, or more
_SAID_ONCE = 0.5  # of the text of chunks at least; the rest may be what the chunk before has too


@dataclass(frozen=True, slots=True)
class _Placed:
    """A passage, its position in its document, and how much of its text repeats the chunk before it."""

    passage: Passage
    position: int
    overlap: int

    def follows(self, other: _Placed) -> bool:
        """Whether it directly follows the other, on the same page and under the same heading."""
        mine, its = self.passage, other.passage
        same = (mine.document_id, mine.page, mine.heading) == (its.document_id, its.page, its.heading)
        return same and self.position == other.position + 1


class ContextBuilder:
    """Builds passages by their positions in their documents."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def merged(self, passages: Sequence[Passage]) -> list[Passage]:
        """The passages, with neighbours on a page merged, in the order of the best of each.

        Overlapping text is there once; places on the page are united. A merged passage keeps the score and the
        `chunk_id` of its best part.

        Raises:
            StorageError: The library cannot be read.
        """
        placed = self._placed(passages)
        rank = {one.passage.chunk_id: at for at, one in enumerate(placed)}
        runs = _runs(sorted(placed, key=lambda one: (one.passage.document_id, one.position)))
        groups = [sorted((rank[one.passage.chunk_id], at) for at, one in enumerate(run)) for run in runs]
        order = sorted(range(len(runs)), key=lambda at: groups[at][0])
        return [_as_one(runs[at], runs[at][groups[at][0][1]].passage) for at in order]

    def part(self, documents: Collection[str], part: Part) -> list[Passage]:
        """The passages that stand in a part of the documents, as far as they are read; none where there is no such.

        Args:
            documents: Ids.

        Raises:
            StorageError: The library cannot be read.
        """
        return of_text(passages_in(part, self._shelf.whole(documents)))

    def whole(self, documents: Collection[str], part: Part | None = None, *, unread: bool = False) -> list[Passage]:
        """All passages of the documents there are so far, or of a part of them, neighbours on a page merged.

        Args:
            documents: Ids.
            part: What is meant of them; all by default.
            unread: Whether to give as well what stands in place of files within them that were not read.

        Raises:
            StorageError: The library cannot be read.
        """
        passages = self._shelf.whole(documents) if unread else of_text(self._shelf.whole(documents))
        wanted = passages if part is None else passages_in(part, passages)
        return [_as_one(run, run[0].passage) for run in _runs(self._placed(wanted))]

    def letters(self, documents: Collection[str]) -> int:
        """How long the text of the documents is, as far as it is read; what chunks repeat counts each time.

        Args:
            documents: Ids.

        Raises:
            StorageError: The library cannot be read.
        """
        return self._shelf.letters(documents)

    def full_text(self, documents: Collection[str], most_tokens: int) -> list[Passage] | None:
        """All passages of the documents in their own order; `None` if they do not fit, or are still being read.

        Args:
            documents: Ids.
            most_tokens: What there is room for, by estimate.

        Raises:
            StorageError: The library cannot be read.
        """
        wanted = frozenset(documents)
        fitting = most_tokens / (_SHORTEST_TOKEN * _SAID_ONCE)
        if not 0 < self._shelf.letters(wanted, fitting) <= fitting:
            return None
        if any(one.status == "reading" for one in self._shelf.documents() if one.id in wanted):
            return None
        passages = of_text(self._shelf.whole(wanted))
        if not passages:
            return None
        joined = [_as_one(run, run[0].passage) for run in _runs(self._placed(passages))]
        return joined if sum(count_tokens(one.text) for one in joined) <= most_tokens else None

    def _placed(self, passages: Sequence[Passage]) -> list[_Placed]:
        """The passages that are still here, each once."""
        places = self._shelf.places([passage.chunk_id for passage in passages])
        once = {passage.chunk_id: passage for passage in reversed(passages)}
        first = [passage for passage in passages if once.pop(passage.chunk_id, None) is not None]
        return [_Placed(one, *places[one.chunk_id]) for one in first if one.chunk_id in places]


def _runs(placed: Iterable[_Placed]) -> list[list[_Placed]]:
    """Those that follow one another, together; not too many."""
    runs: list[list[_Placed]] = []
    for one in placed:
        if runs and len(runs[-1]) < _MOST_TOGETHER and one.follows(runs[-1][-1]):
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


def _as_one(run: Sequence[_Placed], best: Passage) -> Passage:
    if len(run) == 1:
        return best
    text = run[0].passage.text
    for before, one in pairwise(run):
        text += _added(before.passage.text, one.passage.text, one.overlap)
    places = strokes(place for one in run for place in one.passage.rectangles)
    return replace(best, text=text, rectangles=places)


def _added(before: str, text: str, overlap: int) -> str:
    """A chunk's text without its overlap with the one before, and with the space between both."""
    said = text[:overlap].rstrip()
    # A sentence that was said last, or the header of a table that goes on.
    if not said or not (before.endswith(said) or before.startswith(said)):
        return f"\n{text}"
    return (text[len(said) : overlap] if before.endswith(said) else "\n") + text[overlap:]
