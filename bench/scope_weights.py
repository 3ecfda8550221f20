"""Fits the weights by which questions are understood (core/rag/scope_weights.py) to lists of questions.

    python -m bench.scope_weights            # writes core/rag/scope_weights.json
    python -m bench.scope_weights --crossed  # fits to all lists but one and asks that one's questions, in turns

The lists are `scopes_practice.txt`, of several writers, and the three older ones. The rules were developed on two of
these and are right about nearly all of their questions, as they are about no others: what they find is left out there.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from pathlib import Path
from struct import pack
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from core.rag import scope
from core.rag.scope_weights import FILE, NEEDS, checksum, unpacked, words_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HERE = Path(__file__).parent
PRACTICE = HERE / "scopes_practice.txt"
LISTS = (PRACTICE, HERE / "scopes.txt", HERE / "scopes_plain.txt", HERE / "scopes_once.txt")
_FITTED = frozenset({"scopes", "scopes_plain"})
_FEWEST = 2
"""Questions that must have a feature."""
_DECAY = 1.0
_ROUNDS = 200
_LEAST_STEPS = 3
"""A feature whose weights all are less says next to nothing, and is left out."""
_TOWARDS_WHOLE = 0.3
"""Added for "whole": a passage too few is worse than a reading too much."""


class Row(NamedTuple):
    """A question of a list: who wrote it, what it needs, its features, and whether the rules decide it alone."""

    writer: str
    need: str
    asked: str
    features: frozenset[str]
    is_sure: bool


def rows() -> list[Row]:
    """All questions, in the order of the lists."""
    found: list[Row] = []
    for file in LISTS:
        writer = file.stem
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("## "):
                writer = line[3:].split(":")[0]
            elif line and not line.startswith("#"):
                need, asked = line.split(" ", 1)
                text = scope.looked_at(asked)
                ruled = scope.by_rules(text)
                signs = () if writer in _FITTED else scope.signs_in(text, ruled)
                features = frozenset((*words_in(text)[1], *(f"r:{one}" for one in signs)))
                found.append(Row(writer, need, asked, features, scope.is_sure(text, ruled)))
    return found


def lists_sum() -> str:
    """The checksum of the lists."""
    return sha256(b"".join(file.read_bytes() for file in LISTS)).hexdigest()


def fitted(given: Sequence[Row]) -> dict[str, object]:
    """The weights for these questions, as they are stored; what the rules decide alone is not weighed."""
    given = [row for row in given if not row.is_sure]
    seen = Counter(feature for row in given for feature in row.features)
    names = sorted((name for name, count in seen.items() if count >= _FEWEST), key=checksum)
    places = {name: at for at, name in enumerate(names)}
    each = [sorted(places[one] for one in row.features if one in places) for row in given]
    wanted = np.array([NEEDS.index(row.need) for row in given])
    found, first = _logistic(each, wanted, len(names))
    first[NEEDS.index("whole")] += _TOWARDS_WHOLE
    step = float(np.abs(found).max()) / 127
    steps = np.rint(found / step).astype(np.int8)
    kept = np.flatnonzero((np.abs(steps.astype(np.int16)) >= _LEAST_STEPS).any(axis=1))
    return {
        "lists": lists_sum(),
        "step": round(step, 6),
        "first": [round(float(one), 4) for one in first],
        "features": b64encode(pack(f"<{len(kept)}I", *(checksum(names[at]) for at in kept))).decode(),
        "weights": b64encode(steps[kept].tobytes()).decode(),
    }


def crossed() -> Iterator[str]:
    """How many questions of each list are understood by what was fitted to all others, a line for each."""
    given = rows()
    for writer in dict.fromkeys(row.writer for row in given if row.writer not in _FITTED):
        weights = unpacked(fitted([row for row in given if row.writer != writer]))
        asked = [row for row in given if row.writer == writer]
        for chinese in (False, True):
            those = [row for row in asked if (max(row.asked) > "\u3400") is chinese]
            told = Counter((row.need, scope.judged(scope.looked_at(row.asked), weights).need) for row in those)
            right = sum(count for (need, guess), count in told.items() if need == guess)
            wrong = ", ".join(f"{n} of {need} as {guess}" for (need, guess), n in told.most_common() if need != guess)
            lang = "Chinese" if chinese else "English"
            yield f"{writer}, {lang}: {right / len(those):.3f} of {len(those)}; {wrong}\n"


def _logistic(each: Sequence[Sequence[int]], wanted: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of each feature for each need, and what each need has from the start: the least loss, with decay."""
    needs, many = len(NEEDS), len(each)
    at = np.repeat(np.arange(many), [len(one) for one in each])
    of = np.concatenate([np.array(one, dtype=np.int64) for one in each])
    right = np.eye(needs)[wanted]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        table = flat.reshape(width + 1, needs)
        scores = np.stack([np.bincount(at, table[of, need], many) for need in range(needs)], 1) + table[-1]
        scores -= scores.max(1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(1, keepdims=True)
        wrong = shares - right
        slope = np.empty_like(table)
        for need in range(needs):
            slope[:-1, need] = np.bincount(of, wrong[at, need], width)
        slope[:-1] += _DECAY * table[:-1]
        slope[-1] = wrong.sum(0)
        missed = -np.log(shares[np.arange(many), wanted] + 1e-300).sum()
        return float(missed + _DECAY / 2 * (table[:-1] ** 2).sum()), slope.ravel()

    table = _least(loss, np.zeros((width + 1) * needs)).reshape(width + 1, needs)
    return table[:-1], table[-1] - table[-1].mean()


def _least(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], here: np.ndarray) -> np.ndarray:
    """Where a smooth convex function is least, by L-BFGS."""
    value, slope = loss(here)
    steps: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(_ROUNDS):
        way, shares = -slope, []
        for moved, turned in reversed(steps):
            share = moved @ way / (moved @ turned)
            shares.append(share)
            way = way - share * turned
        if steps:
            moved, turned = steps[-1]
            way = way * (moved @ turned / (turned @ turned))
        for (moved, turned), share in zip(steps, reversed(shares), strict=True):
            way = way + (share - turned @ way / (moved @ turned)) * moved
        size = 1.0 if steps else 1.0 / max(1.0, float(np.abs(slope).sum()))
        while True:
            there = here + size * way
            next_value, next_slope = loss(there)
            if next_value <= value + 1e-4 * size * float(slope @ way) or size < 1e-10:
                break
            size /= 2
        moved, turned = there - here, next_slope - slope
        if moved @ turned > 0:
            steps = [*steps[-9:], (moved, turned)]
        done = value - next_value < 1e-7 * abs(value)
        here, value, slope = there, next_value, next_slope
        if done:
            break
    return here


if __name__ == "__main__":
    if "--crossed" in sys.argv:
        sys.stdout.writelines(crossed())
    else:
        FILE.write_text(json.dumps(fitted(rows()), indent=1) + "\n", "ascii")
