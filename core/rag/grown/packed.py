"""Lists of words as numbers: how one is packed, and how the lists of several terms are added up.

A list has four bytes for each passage: two for its place in the part, one for how often the term is there, and one for
the passage's length. So the lists of a part say all that ranking by words needs, to within two per cent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from core.rag.embedding.base import Floats

_LENGTHS: Final = 256  # different lengths, each some four per cent more than the one before
_LONGEST: Final = 65_535.0  # terms of a passage
_STEP: Final = np.log1p(_LONGEST) / (_LENGTHS - 1)
_MOST_TIMES: Final = 255
_SHARES: Final = 16  # in which terms are sorted, by the upper bits of their numbers
_SHIFT: Final = 64 - 4


class Packing:
    """Passages on their way into the lists of a part."""

    def __init__(self) -> None:
        self.passages = self.listed = 0
        self._ids: list[NDArray[np.int64]] = []
        self._keys: list[NDArray[np.int64]] = []
        self._entries: list[NDArray[np.uint32]] = []

    def add(self, rows: Sequence[tuple[int, int, Sequence[int], Sequence[int], Sequence[int]]]) -> None:
        """Passages by growing ids: each with its length, its terms, and which of them are there how often."""
        keys = _joined([row[2] for row in rows])
        places = np.repeat(np.arange(len(rows), dtype=np.int64), [len(row[2]) for row in rows])
        times = np.ones(len(keys), np.int64)
        # A term that is there more than once stands with the lower half of its number.
        repeated = _joined([row[3] for row in rows]) + 0x8000_0000
        of = np.repeat(np.arange(len(rows), dtype=np.int64), [len(row[3]) for row in rows])
        there = places << 32 | (keys & 0xFFFF_FFFF)
        order = np.argsort(there)
        at = order[np.searchsorted(there, of << 32 | repeated, sorter=order)]
        times[at] = _joined([row[4] for row in rows])
        lengths = _length_codes(np.array([row[1] for row in rows], np.float64))[places]
        entries = (places + self.passages) << 16 | np.minimum(times, _MOST_TIMES) << 8 | lengths
        self._ids.append(np.array([row[0] for row in rows], np.int64))
        self._keys.append(keys)
        self._entries.append(entries.astype(np.uint32))
        self.passages += len(rows)
        self.listed += len(keys)

    @property
    def last(self) -> int:
        """The greatest id."""
        return int(self._ids[-1][-1])

    def ids(self) -> bytes:
        """The ids by their places, eight bytes each."""
        return np.concatenate(self._ids).astype(">i8").tobytes()

    def lists(self) -> Iterator[tuple[int, bytes]]:
        """Each term with its list, by growing numbers of the terms."""
        # To sort all of them at once would take three times the memory that they take.
        for share in range(-_SHARES // 2, _SHARES // 2):
            of_share = [(keys >> _SHIFT) == share for keys in self._keys]
            keys = np.concatenate([some[here] for some, here in zip(self._keys, of_share, strict=True)])
            entries = np.concatenate([some[here] for some, here in zip(self._entries, of_share, strict=True)])
            if not len(keys):
                continue
            order = np.argsort(keys, kind="stable")
            keys, packed = keys[order], entries[order].astype("<u4").tobytes()
            starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
            ends = [*starts[1:].tolist(), len(keys)]
            for key, start, end in zip(keys[starts].tolist(), starts.tolist(), ends, strict=True):
                yield key, packed[4 * start : 4 * end]


def _joined(each: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    count = sum(map(len, each))
    return np.fromiter((number for some in each for number in some), np.int64, count)


def _length_codes(lengths: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(np.log1p(np.minimum(lengths, _LONGEST)) / _STEP).astype(np.int64)


class Scores:
    """What the lists of some terms say of the passages of a library.

    Args:
        rows: Of each part and term: the part's number, its last id, how many passages it has, the term, and its list.
        weights: Of each term.
        more: As of BM25, with `flat` and `sloped`: `weight * times * more / (times + flat + sloped * length)`.
    """

    def __init__(
        self,
        rows: Sequence[tuple[int, int, int, int, bytes]],
        weights: Mapping[int, float],
        *,
        more: float,
        flat: float,
        sloped: float,
    ) -> None:
        counts = _counts(more, flat, sloped)
        self._parts: dict[int, Floats] = {}
        for part, _, passages, key, packed in rows:
            scores = self._parts.get(part)
            if scores is None:
                scores = self._parts[part] = np.zeros(passages, np.float32)
            if packed:
                entries = np.frombuffer(packed, "<u4")
                scores[entries >> 16] += np.float32(weights[key]) * counts[entries & 0xFFFF]  # each place once

    def best(self, most: int) -> tuple[list[int], list[int], bool]:
        """The parts and places of the best passages, and whether these are all that have any of the terms."""
        parts, places, scores = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
        count, least = 0, np.float32(0)
        for part, of_part in self._parts.items():
            count += int(np.count_nonzero(of_part))
            there = np.flatnonzero(of_part > least)
            parts = np.concatenate([parts, np.full(len(there), part)])
            places, scores = np.concatenate([places, there]), np.concatenate([scores, of_part[there]])
            if len(scores) > most:
                kept = _first(scores, most)
                parts, places, scores = parts[kept], places[kept], scores[kept]
                least = scores.min()
        return parts.tolist(), places.tolist(), count == len(places)


def _first(scores: Floats, most: int) -> NDArray[np.int64]:
    """Where the highest scores are; of equal ones the first."""
    least = np.partition(scores, len(scores) - most)[len(scores) - most]
    higher, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([higher, equal[: most - len(higher)]]))


def _counts(more: float, flat: float, sloped: float) -> Floats:
    """What a term counts by how often it is there and by the passage's length, as the lists have both."""
    lengths = np.expm1(np.arange(_LENGTHS) * _STEP)
    times = np.arange(_MOST_TIMES + 1)[:, None]
    return (times * more / (times + flat + sloped * lengths)).astype(np.float32).ravel()
