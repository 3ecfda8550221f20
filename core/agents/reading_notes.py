"""Notes that a model makes of pieces of documents: items that are counted, and what fits of them."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from core.rag.citations import marks_in
from core.rag.prose import count_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NOTHING: Final = "NOTHING"
_LINE: Final = re.compile(r"\s*(?:[-*•–]|\d{1,4}[.)、])\s+(?P<item>\S.*)")
_MARKS: Final = re.compile(r"\s*\[\d{1,3}\]")


def items_in(notes: Iterable[str]) -> list[str]:
    """The items of lists, each once with the marks of all places where it was found, in the order of the first.

    Args:
        notes: One item a line, which begins with a dash or a number and ends in marks such as `[3]`.
    """
    found: dict[str, tuple[str, dict[str, None]]] = {}
    for line in (line for text in notes for line in text.splitlines()):
        match = _LINE.match(line)
        item = _MARKS.sub("", match["item"]).strip(" .。;；,，") if match else ""
        if match is None or not item or is_nothing(item):
            continue
        _, marks = found.setdefault(_same(item), (item, {}))
        marks.update(dict.fromkeys(f"[{number}]" for number in marks_in(line)))
    return [f"{item} {''.join(marks)}".rstrip() for item, marks in found.values()]


def _same(item: str) -> str:
    """Equal for items that differ in case, spaces, width of letters or punctuation alone."""
    text = unicodedata.normalize("NFKC", item).casefold()
    return "".join(sign for sign in text if sign.isalnum()) or text


def is_nothing(notes: str) -> bool:
    """Whether notes say that nothing was found."""
    return notes.strip(" .。*`\"'\n-").upper() in {"", _NOTHING}


def fitting(lines: Sequence[str], room: int) -> list[str]:
    """The first lines, as many as there is room for.

    Args:
        room: Tokens, by estimate.
    """
    kept: list[str] = []
    for line in lines:
        room -= round(count_tokens(line)) + 2
        if room < 0:
            break
        kept.append(line)
    return kept


def tokens_of(notes: Iterable[str]) -> float:
    """Tokens of all of them, by estimate."""
    return sum(count_tokens(one) for one in notes)


def grouped(notes: Sequence[str], most: float) -> list[list[str]]:
    """Neighbours together, as many as one request holds; two at least, or nothing gets shorter."""
    groups: list[list[str]] = [[]]
    taken = 0.0
    for one in notes:
        size = count_tokens(one)
        if len(groups[-1]) > 1 and taken + size > most:
            groups.append([])
            taken = 0.0
        groups[-1].append(one)
        taken += size
    return groups


def shortened(notes: Sequence[str], room: float) -> str:
    """The beginning of each of the notes, so that none is lost."""
    share = room / max(1.0, tokens_of(notes))
    return "\n\n".join(one[: max(40, int(len(one) * share))] for one in notes)
