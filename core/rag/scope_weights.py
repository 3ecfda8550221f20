"""Weighs what a question needs of documents, by its words and by what the rules find in it: a linear classifier.

Its weights stand in `scope_weights.json`; `python -m bench.scope_weights` fits them to lists of questions. It needs no
model and no package, and knows English and Chinese: of a question in other words it says nothing.
"""

from __future__ import annotations

import json
import re
from array import array
from base64 import b64decode
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import unpack
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from core.rag.scope_part import simplified

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FILE: Final = Path(__file__).with_name("scope_weights.json")
NEEDS: Final = ("files", "part", "passage", "whole")
_KNOWN: Final = 0.5
"""The share of its words, or of its letters in Chinese, that must be known."""
_WORDS: Final = 3
_LETTERS: Final = 4
_HAN = re.compile("[\u3400-\u9fff]")
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,:/]\d+)*|[?!:;]")
_END = re.compile(r"[\s？?。！!]+$")


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights as they are stored.

    Args:
        places: Where the weights of a feature begin, by the checksum of its name.
        values: For each feature one of each need, in steps.
        first: What each need has from the start.
        step: What a step of the values counts.
        lists: The checksum of the lists that they were fitted to.
    """

    places: Mapping[int, int]
    values: Sequence[int]
    first: Sequence[float]
    step: float
    lists: str


def words_in(text: str) -> tuple[list[str], list[str]]:
    """The features of a question: its words, and the sequences that these stand in with figures and signs.

    Figures are all one, and so are Latin words within Chinese.
    """
    if _HAN.search(text):
        text = simplified(text)
        letters = re.sub("[a-z]+", "a", re.sub(r"\d+", "0", _END.sub("", text).casefold()))
        return [f"z:{one}" for one in letters], [f"z:{one}" for one in _sequences(f"^{letters}$", _LETTERS, "")]
    tokens = [one.casefold().replace("’", "'") for one in _TOKEN.findall(text)]
    words = [("#y" if len(one) == 4 and one.isdigit() else "#") if one[0].isdigit() else one for one in tokens]
    return [f"w:{one}" for one in words if one[0].isalpha()], [
        f"w:{one}" for one in _sequences(["^", *words, "$"], _WORDS, " ")
    ]


def _sequences(units: Sequence[str], most: int, between: str) -> set[str]:
    return {between.join(units[at : at + size]) for size in range(1, most + 1) for at in range(len(units) - size + 1)}


def checksum(feature: str) -> int:
    """What a feature is known by."""
    return crc32(feature.encode("utf-8", "surrogatepass"))


def weighed(text: str, signs: Iterable[str], weights: Weights) -> dict[str, float] | None:
    """How much speaks for each need; `None` where too few of the words are known.

    Args:
        text: The question.
        signs: What the rules find in it, each by its name.
        weights: What each counts.
    """
    units, sequences = words_in(text)
    if not units or sum(checksum(one) in weights.places for one in units) < _KNOWN * len(units):
        return None
    totals = [0, 0, 0, 0]
    for feature in (*sequences, *(f"r:{one}" for one in signs)):
        at = weights.places.get(checksum(feature))
        if at is not None:
            for need, value in enumerate(weights.values[at : at + len(NEEDS)]):
                totals[need] += value
    return {need: first + weights.step * n for need, first, n in zip(NEEDS, weights.first, totals, strict=True)}


@cache
def loaded() -> Weights:
    """The weights that are stored; read once, which takes some milliseconds."""
    return unpacked(json.loads(FILE.read_text("ascii")))


def unpacked(stored: Mapping[str, Any]) -> Weights:
    """The weights as they are used."""
    known, values = b64decode(stored["features"]), array("b", b64decode(stored["weights"]))
    places = {one: at * len(NEEDS) for at, one in enumerate(unpack(f"<{len(known) // 4}I", known))}
    return Weights(places, values, stored["first"], stored["step"], stored["lists"])
